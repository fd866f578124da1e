//! The protocol of a FADE-10G board (rtl/fade10g).

use std::time::Duration;

use crc32fast::Hasher;
use fadelink_wire::fade10g::{
    self, Data, Identity, Request, ResetBy, Response, DATA_FRAME_LEN, DATA_HEADER_LEN, PACKET_BYTES,
};
use fadelink_wire::serial::after16;
use fadelink_wire::{MacAddr, Permit, Resets};

use crate::congestion::{follow, Congestion};
use crate::permits::Permits;
use crate::quirks::Quirk;
use crate::settings::BoardSettings;
use crate::status::Status;

/// Length of one clock cycle of the transmit side, in which delays are told: 156.25 MHz, as at 10 Gb/s.
const CYCLE: Duration = Duration::from_nanos(6);
/// Shortest and longest time that the cyclic scan waits for a confirmation. A program is put to sleep for longer
/// than the round trip now and then, so it is more patient than the RTL.
const TICK_MIN: Duration = Duration::from_millis(1);
const TICK_MAX: Duration = Duration::from_millis(7);
/// The same until the round trip is known.
const TICK_INIT: Duration = Duration::from_micros(420);

/// What is behind the protocol: data and user commands.
pub trait User {
    /// A transmission begins.
    fn begin(&mut self);
    /// Writes data words that are there now to `out`; returns their bytes, a multiple of 8.
    fn fill(&mut self, out: &mut [u8]) -> usize;
    /// Executes a user command, returns its value.
    fn command(&mut self, code: u16, argument: u32, status: &Status) -> u64;
}

/// A place of the window, with its frame ready but for the fields that change.
struct Slot {
    frame: Box<[u8; DATA_FRAME_LEN]>,
    last: bool,
    /// Sequence number and time of its last frame.
    sent: (u16, Duration),
    confirmed: bool,
    /// To be sent again at once.
    early: bool,
}

/// One front-end board.
pub struct Fade10gBoard<U> {
    mac: MacAddr,
    settings: BoardSettings,
    /// What is behind the protocol.
    pub user: U,
    status: Status,
    peer: Option<MacAddr>,
    stored: Option<(MacAddr, u16, Response)>,
    /// CSN of the START of the transmission, or of the last one.
    transmission: u16,
    /// Since the first START of this number.
    resets: Resets,
    permits: Permits,
    pending: Option<Response>,
    /// Answers to IDENTIFY, each to its asker.
    identities: Vec<(MacAddr, Response)>,
    slots: Vec<Slot>,
    /// Packets since the start: confirmed, sent, filled.
    tail: u64,
    fresh: u64,
    head: u64,
    /// Bytes of the packet that is being filled.
    filled: usize,
    /// Of the words so far, if START has asked for it.
    crc: Option<Hasher>,
    closed: bool,
    /// The source has not begun since RESET.
    fresh_source: bool,
    any_early: bool,
    sequence: u16,
    congestion: Congestion,
    next_frame: Duration,
    round_trip: Duration,
    next_scan: Duration,
    response_frame: [u8; fadelink_wire::ethernet::MIN_LEN],
}

impl<U: User> Fade10gBoard<U> {
    /// A FEB that is idle.
    ///
    /// # Panics
    /// If the window is not a power of two up to 64.
    pub fn new(mac: MacAddr, settings: BoardSettings, user: U) -> Fade10gBoard<U> {
        assert!(settings.window.is_power_of_two() && settings.window <= 64, "window: expected a power of two to 64");
        let slot = || Slot {
            frame: Box::new([0; DATA_FRAME_LEN]),
            last: false,
            sent: (0, Duration::ZERO),
            confirmed: false,
            early: false,
        };
        Fade10gBoard {
            mac,
            settings,
            user,
            status: Status::default(),
            peer: None,
            stored: None,
            transmission: 0,
            resets: Resets::default(),
            permits: Permits::default(),
            pending: None,
            identities: Vec::new(),
            slots: (0..settings.window).map(|_| slot()).collect(),
            tail: 0,
            fresh: 0,
            head: 0,
            filled: 0,
            crc: None,
            closed: false,
            fresh_source: true,
            any_early: false,
            sequence: settings.quirks.has(Quirk::SequenceFromOne).into(),
            congestion: Congestion::new(settings.rule, mac),
            next_frame: Duration::ZERO,
            round_trip: TICK_INIT,
            next_scan: Duration::ZERO,
            response_frame: [0; fadelink_wire::ethernet::MIN_LEN],
        }
    }

    /// Address of the FEB.
    pub fn mac(&self) -> MacAddr {
        self.mac
    }

    /// State and counters.
    pub fn status(&self) -> Status {
        Status { delay: self.congestion.delay(), ..self.status }
    }

    fn has(&self, quirk: Quirk) -> bool {
        self.settings.quirks.has(quirk)
    }

    fn counts_resets(&self) -> bool {
        !self.has(Quirk::NoResetCount) && !self.has(Quirk::NoIdentify)
    }

    /// The CRC has its place in a final word of Fadelink's order alone, and begins with START.
    fn has_checksum(&self) -> bool {
        !([Quirk::NoChecksum, Quirk::BigCount, Quirk::StartContinues].iter().any(|quirk| self.has(*quirk)))
    }

    fn clear(&mut self) {
        self.status.running = false;
        self.status.stopping = false;
        (self.tail, self.fresh, self.head, self.filled) = (0, 0, 0, 0);
        self.closed = false;
        self.any_early = false;
        self.sequence = self.has(Quirk::SequenceFromOne).into();
        self.congestion.restart();
        self.round_trip = TICK_INIT;
    }

    fn slot(&mut self, index: u64) -> &mut Slot {
        let at = index as usize & (self.slots.len() - 1);
        &mut self.slots[at]
    }

    /// Takes a frame from the wire, without its frame check sequence.
    pub fn take(&mut self, frame: &[u8], now: Duration) {
        let (header, request) = match fade10g::parse_request(frame) {
            Ok(parsed) => parsed,
            Err(fade10g::Error::EtherType(_)) => return self.status.wrong_ethertype += 1,
            Err(fade10g::Error::Version(_)) => return self.status.wrong_version += 1,
            Err(fade10g::Error::Truncated { .. }) => return self.status.short += 1,
            Err(_) => return self.status.wrong_code += 1,
        };
        let identify = matches!(request, Request::Command { code: fade10g::CMD_IDENTIFY, .. });
        let identify = identify && !self.has(Quirk::NoIdentify);
        if header.dst != self.mac && !(identify && header.dst == MacAddr::BROADCAST) {
            self.status.wrong_destination += 1;
            return;
        }
        match request {
            Request::Command { csn, .. } if identify => {
                let value = Identity {
                    window: self.settings.window,
                    running: self.status.running,
                    stopping: self.status.stopping,
                    block_acks: !self.has(Quirk::NoBlockAcks),
                    csn: self.stored.map(|(_, csn, _)| csn),
                    transmission: self.transmission,
                    resets: self.counts_resets().then_some(self.resets.count),
                    checksum: self.has_checksum(),
                    same_words: !self.has(Quirk::OtherWords),
                }
                .to_value();
                self.identities.push((header.src, Response { code: fade10g::CMD_IDENTIFY, csn, value }));
            }
            Request::Command { code, csn, .. } if code == fade10g::CMD_RESET_BY && self.counts_resets() => {
                let value = ResetBy { transmission: self.transmission, by: self.resets.by }.to_value();
                self.identities.push((header.src, Response { code, csn, value }));
            }
            Request::Command { code: fade10g::CMD_RESET, .. } => {
                self.clear();
                (self.stored, self.pending, self.fresh_source) = (None, None, true);
                self.permits.use_up();
                self.resets = Resets { count: self.resets.count.saturating_add(1), by: Some(header.src) };
            }
            _ if self.has(Quirk::AnyComputer) => {
                self.peer = Some(header.src);
                self.obey(header.src, request, now);
            }
            _ if self.status.running && self.peer != Some(header.src) => self.status.wrong_source += 1,
            _ => self.obey(header.src, request, now),
        }
    }

    fn obey(&mut self, src: MacAddr, request: Request, now: Duration) {
        match request {
            Request::Command { code, csn, argument } => self.command(src, code, csn, argument),
            Request::Ack { negative: true, .. } if self.has(Quirk::IgnoresNack) => {}
            Request::Ack { negative, sequence, packet, stored, .. } => {
                let stored = stored.filter(|_| !self.has(Quirk::NoBlockAcks)).unwrap_or(0);
                self.ack(negative, sequence, packet, stored, now);
            }
        }
    }

    fn command(&mut self, src: MacAddr, code: u16, csn: u16, argument: u32) {
        if self.has(Quirk::ExecutesAgain) && self.stored.is_none() && csn == 0 {
            // Taken for the repetition of a command that there was not.
            self.pending = Some(Response { code: 0, csn: 0, value: 0 });
            return;
        }
        let again = self.stored.filter(|(peer, last, _)| (*peer, *last) == (src, csn));
        if let Some((_, _, response)) = again.filter(|_| !self.has(Quirk::ExecutesAgain)) {
            self.pending = Some(response);
            return;
        }
        let shown = Permit::from_argument(argument).filter(|_| !self.has(Quirk::NoPermit));
        let value = match code {
            fade10g::CMD_START if self.has(Quirk::StartContinues) => {
                if std::mem::take(&mut self.fresh_source) {
                    self.user.begin();
                }
                (self.status.running, self.closed) = (true, false);
                0
            }
            fade10g::CMD_IDENTIFY if self.has(Quirk::NoIdentify) => 0,
            fade10g::CMD_START if self.status.stopping => 1,
            fade10g::CMD_START if self.status.running => 2,
            fade10g::CMD_START if !self.permits.allow(shown) => self.permits.current().to_answer(),
            fade10g::CMD_START => {
                self.clear();
                self.permits.use_up();
                self.status.running = true;
                // A START that is repeated behind a RESET begins anew under its number: the RESET stays known.
                if std::mem::replace(&mut self.transmission, csn) != csn {
                    self.resets = Resets::default();
                }
                let asks = argument & fade10g::START_CHECKSUM != 0;
                self.crc = (asks && self.has_checksum()).then(Hasher::new);
                self.user.begin();
                0
            }
            fade10g::CMD_STOP => {
                let continues = self.has(Quirk::StartContinues);
                self.status.stopping = self.status.running && !(continues && self.closed);
                0
            }
            fade10g::CMD_USER_FIRST.. => {
                let status = self.status();
                self.user.command(code, argument, &status)
            }
            _ => return self.status.wrong_code += 1,
        };
        self.peer = Some(src);
        let response = Response { code, csn, value };
        self.stored = Some((src, csn, response));
        self.pending = Some(response);
    }

    /// `stored`: bit i is set if packet `packet - 1 - i` is confirmed, too.
    fn ack(&mut self, negative: bool, sequence: u16, packet: u32, stored: u64, now: Duration) {
        let first = self.settings.first_packet.wrapping_add(self.tail as u32);
        let ahead = packet.wrapping_sub(first);
        let index = self.tail + u64::from(ahead);
        if !self.status.running || ahead >= 1 << 31 {
            self.status.stale_acks += 1;
            return;
        }
        if index >= self.fresh {
            self.status.protocol_errors += 1;
            return;
        }
        if negative {
            let slot = self.slot(index);
            if !slot.confirmed && !slot.early && !after16(slot.sent.0, sequence) {
                slot.early = true;
                self.any_early = true;
                self.status.early += 1;
            }
            return;
        }
        let slot = self.slot(index);
        let is_new = !slot.confirmed;
        slot.confirmed = true;
        slot.early = false;
        let sample = now.saturating_sub(slot.sent.1);
        let measures = is_new && slot.sent.0 == sequence;
        self.status.acknowledged += u64::from(is_new);
        if measures {
            self.congestion.measured(sample);
            self.round_trip = follow(self.round_trip, sample);
        }
        for earlier in self.tail..index {
            let is_stored = stored >> (index - 1 - earlier) & 1 != 0;
            let slot = self.slot(earlier);
            if slot.confirmed {
                continue;
            }
            if is_stored {
                (slot.confirmed, slot.early) = (true, false);
                self.status.acknowledged += 1;
            } else if !slot.early && after16(sequence, slot.sent.0) {
                slot.early = true;
                self.any_early = true;
                self.status.early += 1;
            }
        }
        while self.tail < self.fresh && self.slot(self.tail).confirmed {
            let last = self.slot(self.tail).last;
            self.tail += 1;
            if last && !self.has(Quirk::StartContinues) {
                self.clear();
                return;
            }
        }
    }

    /// Packs what the source has.
    fn fill(&mut self) {
        while self.status.running && !self.closed && self.head - self.tail < u64::from(self.settings.window) {
            let (filled, stopping) = (self.filled, self.status.stopping);
            let (big_words, big_count) = (self.has(Quirk::BigWords), self.has(Quirk::BigCount));
            let changes = self.has(Quirk::BadMemory) && self.head == 0;
            let at = self.head as usize & (self.slots.len() - 1);
            let payload = &mut self.slots[at].frame[DATA_HEADER_LEN..];
            if !stopping {
                self.filled += self.user.fill(&mut payload[filled..]);
                if big_words {
                    payload[filled..self.filled].chunks_exact_mut(8).for_each(<[u8]>::reverse);
                }
                if let Some(crc) = &mut self.crc {
                    crc.update(&payload[filled..self.filled]);
                }
                if let Some(byte) = payload[filled..self.filled].first_mut().filter(|_| changes && filled == 0) {
                    *byte ^= 1;
                }
            }
            let last = if self.filled == PACKET_BYTES {
                None
            } else if stopping {
                let words = self.filled as u64 / 8;
                payload[self.filled..PACKET_BYTES - 8].fill(fade10g::FILLER);
                let crc = self.crc.clone().map(Hasher::finalize);
                let count = if big_count { words.to_be_bytes() } else { fade10g::final_word(words as u16, crc) };
                payload[PACKET_BYTES - 8..].copy_from_slice(&count);
                (self.closed, self.status.stopping) = (true, !self.settings.quirks.has(Quirk::StartContinues));
                Some(words)
            } else {
                return;
            };
            self.filled = 0;
            let packet = self.settings.first_packet.wrapping_add(self.head as u32);
            let (peer, mac) = (self.peer.unwrap_or(MacAddr::BROADCAST), self.mac);
            let slot = &mut self.slots[at];
            let mut head = [0; DATA_HEADER_LEN];
            Data { sequence: 0, packet, delay: 0, response: None, last, payload: &[] }
                .write_header(peer, mac, &mut head);
            slot.frame[..DATA_HEADER_LEN].copy_from_slice(&head);
            (slot.last, slot.confirmed, slot.early) = (last.is_some(), false, false);
            self.head += 1;
        }
    }

    /// The packet to send next. In falling urgency: early, fresh, overdue.
    fn choose(&mut self, now: Duration) -> Option<u64> {
        if self.any_early {
            if let Some(index) = (self.tail..self.fresh).find(|i| self.slot(*i).early) {
                return Some(index);
            }
            self.any_early = false;
        }
        if self.fresh < self.head {
            return Some(self.fresh);
        }
        if now < self.next_scan {
            return None;
        }
        let patience = self.tick() * 2;
        let found = (self.tail..self.fresh).find(|i| {
            let slot = self.slot(*i);
            !slot.confirmed && now.saturating_sub(slot.sent.1) >= patience
        });
        if found.is_none() {
            self.next_scan = now + self.tick() / 4;
        }
        found
    }

    fn tick(&self) -> Duration {
        (self.round_trip * 5 / 4).clamp(TICK_MIN, TICK_MAX)
    }

    /// The confirmation of `packet` is overdue, whatever the time: for tests that follow another FEB. False if
    /// it waits for none.
    pub fn mark_overdue(&mut self, packet: u32) -> bool {
        let first = self.settings.first_packet.wrapping_add(self.tail as u32);
        let index = self.tail + u64::from(packet.wrapping_sub(first));
        if index >= self.fresh || self.slot(index).confirmed {
            return false;
        }
        self.slot(index).sent.1 = Duration::ZERO;
        self.next_scan = Duration::ZERO;
        true
    }

    /// Time before which no data frame is due.
    pub fn next_frame(&self) -> Duration {
        self.next_frame
    }

    fn fill_response(&mut self, response: Response, to: MacAddr) {
        self.response_frame = response.to_frame(to, self.mac);
        if self.has(Quirk::ZeroFiller) {
            self.response_frame[18..20].fill(0);
            self.response_frame[fade10g::RESPONSE_FIELDS_LEN..].fill(0);
        }
    }

    /// The next frame to send, if one is due.
    pub fn give(&mut self, now: Duration) -> Option<&[u8]> {
        if let Some((asker, response)) = self.identities.pop() {
            self.fill_response(response, asker);
            return Some(&self.response_frame);
        }
        // As in the RTL, the answer to STOP does not wait for the last packet to be closed.
        if self.pending.is_none() || !self.status.stopping || self.closed {
            self.fill();
        }
        let index = if now >= self.next_frame { self.choose(now) } else { None };
        let response = self.pending.take();
        let Some(index) = index else {
            let peer = self.peer?;
            self.fill_response(response?, peer);
            return Some(&self.response_frame);
        };
        let response = match self.stored {
            Some((_, _, last)) if self.has(Quirk::ResponseStays) => Some(last),
            _ => response,
        };
        let again = index < self.fresh;
        self.fresh = self.fresh.max(index + 1);
        self.status.sent += 1;
        self.status.retransmitted += u64::from(again);
        let (sequence, delay) = (self.sequence, self.congestion.delay());
        self.sequence = sequence.wrapping_add(1);
        self.congestion.sent(again);
        let pace = self.settings.pace;
        let pause = pace + CYCLE * delay + self.congestion.extra(pace);
        if !pause.is_zero() {
            // A frame that was late for a moment does not slow the line down.
            self.next_frame = (self.next_frame + pause).max(now.saturating_sub(pause));
        }
        let peer = self.peer;
        let slot = self.slot(index);
        slot.early = false;
        slot.sent = (sequence, now);
        fade10g::set_changing_fields(&mut slot.frame, sequence, delay, response);
        if let Some(peer) = peer {
            slot.frame[..6].copy_from_slice(&peer.0);
        }
        Some(&slot.frame[..])
    }
}

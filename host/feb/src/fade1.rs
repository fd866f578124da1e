//! The protocol of a FADE v1 board (rtl/fade1).

use std::time::Duration;

use crc32fast::Hasher;
use fadelink_wire::fade1::{
    self, Data, Phase, Request, State, DATA_FRAME_LEN, DATA_HEADER_LEN, PACKET_BYTES, SET_PACKETS, STATE_FRAME_LEN,
};
use fadelink_wire::{fade10g, Checksum, MacAddr, Permit, Resets};

use crate::congestion::{follow, Congestion};
use crate::feb::User;
use crate::permits::Permits;
use crate::quirks::Quirk;
use crate::settings::BoardSettings;
use crate::status::Status;

/// Length of one clock cycle of the transmit side, in which delays are told: 125 MHz, as at 1 Gb/s.
const CYCLE: Duration = Duration::from_nanos(8);
/// Time that a packet waits for its confirmation before it is sent again: a little more than the round trip,
/// which is measured, within these limits (the lower is about the time of a window).
const WAIT_MIN: Duration = Duration::from_micros(30);
const WAIT_INIT: Duration = Duration::from_millis(2);
const WAIT_MAX: Duration = Duration::from_millis(7);
/// ACKs in a row that measure nothing after which the estimate of the round trip may be too short.
const SUSPICIOUS: u32 = 4;
/// Packets in flight: a set.
const WINDOW: u64 = SET_PACKETS as u64;

struct Slot {
    frame: Box<[u8; DATA_FRAME_LEN]>,
    sent: Duration,
    /// Sent more than once: its ACK measures no round trip (Karn).
    again: bool,
    confirmed: bool,
}

/// One front-end board of FADE v1. [`BoardSettings::window`] is not used: it is a set.
pub struct Fade1Board<U> {
    mac: MacAddr,
    settings: BoardSettings,
    /// What is behind the protocol.
    pub user: U,
    status: Status,
    peer: Option<MacAddr>,
    /// What it reports on its last transmission; while one runs, `status` tells where it is.
    state: State,
    permits: Permits,
    /// The answer to who has asked for that.
    answer: Option<[u8; STATE_FRAME_LEN]>,
    /// The answer on its way.
    answered: [u8; STATE_FRAME_LEN],
    slots: Vec<Slot>,
    /// Packets since the start: confirmed, sent, filled.
    tail: u64,
    fresh: u64,
    head: u64,
    /// Bytes of the packet that is being filled.
    filled: usize,
    /// Of the words so far.
    crc: Hasher,
    /// Words of the last packet; 0: it is full.
    last_words: u16,
    closed: bool,
    /// The source has not begun since RESET.
    fresh_source: bool,
    /// Packet at which the cyclic scan goes on.
    cyclic: u64,
    congestion: Congestion,
    next_frame: Duration,
    round_trip: Duration,
    /// ACKs since the last one that measured the round trip.
    unmeasured: u32,
}

/// Of a transmission that has begun now, or of none.
fn state(phase: Phase, transmission: u16) -> State {
    State { phase, transmission, packets: 0, resets: Some(Resets::default()), checksum: None, permit: None }
}

impl<U: User> Fade1Board<U> {
    /// A FEB that is idle.
    pub fn new(mac: MacAddr, settings: BoardSettings, user: U) -> Fade1Board<U> {
        let slot =
            || Slot { frame: Box::new([0; DATA_FRAME_LEN]), sent: Duration::ZERO, again: false, confirmed: false };
        Fade1Board {
            mac,
            settings,
            user,
            status: Status::default(),
            peer: None,
            state: state(Phase::None, 0),
            permits: Permits::default(),
            answer: None,
            answered: [0; STATE_FRAME_LEN],
            slots: (0..WINDOW).map(|_| slot()).collect(),
            tail: 0,
            fresh: 0,
            head: 0,
            filled: 0,
            crc: Hasher::new(),
            last_words: 0,
            closed: false,
            fresh_source: true,
            cyclic: 0,
            congestion: Congestion::new(settings.rule, mac),
            next_frame: Duration::ZERO,
            round_trip: WAIT_INIT,
            unmeasured: 0,
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

    fn takes_block_acks(&self) -> bool {
        !self.has(Quirk::NoMark) && !self.has(Quirk::NoBlockAcks)
    }

    /// True if a START that shows this permit is to be obeyed.
    fn allows(&mut self, permit: Option<Permit>) -> bool {
        let gives = !self.has(Quirk::NoPermit) && !self.has(Quirk::NoIdentify);
        self.permits.allow(permit.filter(|_| gives))
    }

    /// All that was sent is confirmed after STOP: the board is idle.
    fn ends(&mut self) {
        if self.closed && self.tail == self.head && !self.has(Quirk::StartContinues) {
            self.clear(Phase::Ended);
        }
    }

    /// The transmission ends so, if one runs.
    fn clear(&mut self, phase: Phase) {
        if self.status.running {
            self.state.phase = phase;
            let checksum = || Checksum { last_words: self.last_words, crc: self.crc.clone().finalize() };
            self.state.checksum = (phase == Phase::Ended).then(checksum);
        }
        self.crc.reset();
        (self.status.running, self.status.stopping, self.closed) = (false, false, false);
        (self.tail, self.fresh, self.head, self.filled, self.cyclic) = (0, 0, 0, 0, 0);
        self.congestion.restart();
        (self.round_trip, self.unmeasured) = (WAIT_INIT, 0);
    }

    fn slot(&mut self, index: u64) -> &mut Slot {
        &mut self.slots[(index % WINDOW) as usize]
    }

    /// Takes a frame from the wire, without its frame check sequence.
    pub fn take(&mut self, frame: &[u8], now: Duration) {
        if let Ok((header, fade10g::Request::Command { code: fade10g::CMD_IDENTIFY, .. })) =
            fade10g::parse_request(frame)
        {
            if header.dst == self.mac || header.dst == MacAddr::BROADCAST {
                if self.status.running && self.peer != Some(header.src) {
                    return self.status.wrong_source += 1;
                }
                return self.tell(header.src);
            }
        }
        let (header, request) = match fade1::parse_request(frame) {
            Ok(parsed) => parsed,
            Err(fade1::Error::EtherType(_)) => return self.status.wrong_ethertype += 1,
            Err(fade1::Error::Version(_)) => return self.status.wrong_version += 1,
            Err(fade1::Error::Truncated { .. }) => return self.status.short += 1,
            Err(_) => return self.status.wrong_code += 1,
        };
        if header.dst != self.mac {
            self.status.wrong_destination += 1;
            return;
        }
        match request {
            Request::Reset => {
                self.clear(Phase::Reset);
                self.fresh_source = true;
                self.permits.use_up();
                let count = self.state.resets.map_or(0, |resets| resets.count).saturating_add(1);
                self.state.resets = Some(Resets { count, by: Some(header.src) });
            }
            _ if self.has(Quirk::AnyComputer) => {
                self.peer = Some(header.src);
                self.obey(header.src, request, now);
            }
            _ if self.status.running && self.peer != Some(header.src) => self.status.wrong_source += 1,
            _ => self.obey(header.src, request, now),
        }
        self.ends();
    }

    fn obey(&mut self, src: MacAddr, request: Request, now: Duration) {
        match request {
            Request::Start { .. } if self.has(Quirk::StartContinues) => {
                self.peer = Some(src);
                if std::mem::take(&mut self.fresh_source) {
                    self.user.begin();
                }
                (self.status.running, self.status.stopping, self.closed) = (true, false, false);
            }
            Request::Start { .. } if self.status.running => self.tell(src),
            Request::Start { permit, .. } if !self.allows(permit) => self.tell(src),
            Request::Start { transmission, .. } => {
                self.clear(Phase::Reset);
                self.permits.use_up();
                self.status.running = true;
                // A START that is repeated behind a RESET begins anew under its number: the RESET stays known.
                let resets = self.state.resets.filter(|_| self.state.transmission == transmission);
                let begun = state(Phase::Running, transmission);
                self.state = State { resets: resets.or(begun.resets), ..begun };
                self.peer = Some(src);
                self.user.begin();
                self.tell(src);
            }
            Request::Stop => {
                self.status.stopping = self.status.running;
                self.tell(src);
            }
            Request::Ack { set, packet, stored } => {
                let stored = stored.filter(|_| self.takes_block_acks()).unwrap_or(0);
                self.ack(set, packet, stored, now);
            }
            Request::Reset => {}
        }
    }

    /// Its state will be told to `to`, unless it is a board that does not.
    fn tell(&mut self, to: MacAddr) {
        let phase = match (self.status.running, self.status.stopping) {
            (false, _) => self.state.phase,
            (true, false) => Phase::Running,
            (true, true) => Phase::Stopping,
        };
        let resets = self.state.resets.filter(|_| !self.has(Quirk::NoResetCount));
        let checksum = self.state.checksum.filter(|_| !self.has(Quirk::NoChecksum));
        let permit = Some(self.permits.current()).filter(|_| !self.has(Quirk::NoPermit));
        let answer = State { phase, resets, checksum, permit, ..self.state }.to_frame(to, self.mac);
        self.answer = (!self.has(Quirk::NoIdentify)).then_some(answer);
    }

    /// `stored`: bit i is set if the packet `1 + i` before this one is confirmed, too.
    fn ack(&mut self, set: u16, packet: u8, stored: u64, now: Duration) {
        // Numbers run modulo 2^21; a distance is the same modulo that.
        let number = u64::from(set) * WINDOW + u64::from(packet);
        let ahead = number.wrapping_sub(self.tail) % (WINDOW << 16);
        if !self.status.running || ahead >= WINDOW << 15 {
            self.status.stale_acks += 1;
        } else if u64::from(packet) >= WINDOW || self.tail + ahead >= self.fresh {
            self.status.protocol_errors += 1;
        } else {
            let index = self.tail + ahead;
            let slot = self.slot(index);
            let is_new = !std::mem::replace(&mut slot.confirmed, true);
            let (again, sample) = (slot.again, now.saturating_sub(slot.sent));
            self.status.acknowledged += u64::from(is_new);
            if is_new && !again {
                self.congestion.measured(sample);
                self.unmeasured = 0;
                self.round_trip = follow(self.round_trip, sample);
            } else if is_new {
                self.unmeasured += 1;
                if self.unmeasured.is_multiple_of(SUSPICIOUS) {
                    self.round_trip = (self.round_trip * 2).min(WAIT_MAX);
                }
            }
            for earlier in self.tail..index {
                let is_stored = stored >> (index - 1 - earlier) & 1 != 0;
                let slot = self.slot(earlier);
                if is_stored && !std::mem::replace(&mut slot.confirmed, true) {
                    self.status.acknowledged += 1;
                }
            }
            while self.tail < self.fresh && self.slot(self.tail).confirmed {
                self.tail += 1;
            }
        }
    }

    /// Packs what the source has; at the end fills the packet up.
    fn fill(&mut self) {
        while self.status.running && !self.closed && self.head - self.tail < WINDOW {
            let (filled, stopping, head) = (self.filled, self.status.stopping, self.head);
            let changes = self.has(Quirk::BadMemory) && head == 0;
            let (big_words, partial_stays) = (self.has(Quirk::BigWords), self.has(Quirk::PartialStays));
            let payload = &mut self.slots[(head % WINDOW) as usize].frame[DATA_HEADER_LEN..];
            if stopping {
                (self.closed, self.last_words) = (true, (filled / 8) as u16);
                if filled == 0 || partial_stays {
                    return;
                }
                payload[filled..].fill(fade1::FILLER);
            } else {
                self.filled += self.user.fill(&mut payload[filled..]);
                if big_words {
                    payload[filled..self.filled].chunks_exact_mut(4).for_each(<[u8]>::reverse);
                }
                self.crc.update(&payload[filled..self.filled]);
                if let Some(byte) = payload[filled..self.filled].first_mut().filter(|_| changes && filled == 0) {
                    *byte ^= 1;
                }
                if self.filled < PACKET_BYTES {
                    return;
                }
            }
            self.filled = 0;
            self.head += 1;
            self.slot(head).confirmed = false;
        }
    }

    /// The packet to send next: overdue ones in turn, then a fresh one.
    fn choose(&mut self, now: Duration) -> Option<u64> {
        let (tail, fresh) = (self.tail, self.fresh);
        let patience = (self.round_trip * 5 / 4).clamp(WAIT_MIN, WAIT_MAX);
        let begin = self.cyclic.clamp(tail, fresh);
        let overdue = (begin..fresh).chain(tail..begin).find(|i| {
            let slot = self.slot(*i);
            !slot.confirmed && now.saturating_sub(slot.sent) >= patience
        });
        overdue.inspect(|index| self.cyclic = index + 1).or((fresh < self.head).then_some(fresh))
    }

    /// The confirmation of packet `number` since the start is overdue, whatever the time: for tests that follow
    /// another FEB. False if no packet waits for it.
    pub fn mark_overdue(&mut self, number: u64) -> bool {
        if !(self.tail..self.fresh).contains(&number) || self.slot(number).confirmed {
            return false;
        }
        self.slot(number).sent = Duration::ZERO;
        true
    }

    /// Packets sent at least once since the start.
    pub fn fresh(&self) -> u64 {
        self.fresh
    }

    /// Time before which no data frame is due.
    pub fn next_frame(&self) -> Duration {
        self.next_frame
    }

    /// The next frame to send, if one is due.
    pub fn give(&mut self, now: Duration) -> Option<&[u8]> {
        self.fill();
        self.ends();
        if let Some(answer) = self.answer.take() {
            self.answered = answer;
            return Some(&self.answered);
        }
        let peer = self.peer.filter(|_| self.status.running && now >= self.next_frame)?;
        let index = self.choose(now)?;
        let again = index < self.fresh;
        self.fresh = self.fresh.max(index + 1);
        self.state.packets = self.fresh as u32;
        self.status.sent += 1;
        self.status.retransmitted += u64::from(again);
        let delay = self.congestion.delay();
        self.congestion.sent(again);
        let pace = self.settings.pace;
        let pause = pace + CYCLE * delay + self.congestion.extra(pace);
        if !pause.is_zero() {
            self.next_frame = (self.next_frame + pause).max(now.saturating_sub(pause));
        }
        let retry = if self.has(Quirk::NoMark) { 0 } else { fade1::RETRY_FADELINK };
        let (mac, block_acks) = (self.mac, self.takes_block_acks());
        let same_words = !self.has(Quirk::NoMark) && !self.has(Quirk::OtherWords);
        let slot = self.slot(index);
        (slot.sent, slot.again) = (now, again);
        let (set, packet) = ((index / WINDOW) as u16, (index % WINDOW) as u8);
        let data = Data { set, packet, retry, delay, block_acks, same_words, payload: &[] };
        if let Some(head) = slot.frame.first_chunk_mut() {
            data.write_header(peer, mac, head);
        }
        Some(&slot.frame[..])
    }
}

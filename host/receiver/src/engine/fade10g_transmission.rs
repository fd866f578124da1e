//! A transmission of FADE-10G: its window, and the gaps in its frame sequence numbers (docs/protocol/fade10g.md).

use std::sync::atomic::Ordering;
use std::time::Duration;

use fadelink_wire::fade10g::{Data, Identity, Request, PACKET_BYTES};

use super::command::{Confirm, FIRST_PATIENCE};
use super::first::{Admission, First};
use super::held::Held;
use super::known::Known;
use super::outbox::Outbox;
use super::transmission::Transmission;
use crate::counters::{add, count};
use crate::kind::Swap;
use crate::shared::{Ending, Phase, Shared};
use crate::told::WordsCrc;
use crate::window::{stored_before, Verdict, Window};

/// So many frames show that packets are confirmed which have not come: one may be of another sender.
const SHOWN: u32 = 2;

/// The receiver's view of a transmission.
pub(super) struct Fade10g {
    window: Window,
    next_sequence: Option<u16>,
    first: First,
    stop_sent: bool,
    /// Packets of the FEB's window, if it takes block ACKs.
    blocks: Option<u32>,
    waiting: Option<Waiting>,
    /// Where packets are confirmed when their data is released: of each its last sequence and delay.
    held: Option<Held<(u16, u32)>>,
    known: Known,
    /// Packets of the FEB's window, if it has told; and frames that show that it has confirmation of packets that have not come.
    feb_window: Option<u32>,
    beyond: u32,
    /// The FEB sends the same words again.
    same_words: bool,
}

/// What a block ACK will tell: of the newest packet that was stored since the last one.
struct Waiting {
    sequence: u16,
    packet: u32,
    delay: u32,
    /// Packets before it since the start.
    index: u64,
}

impl Fade10g {
    /// `proven`: all that comes is of this transmission; `identity`: what a FEB of Fadelink has told.
    pub(super) fn new(window: Window, proven: bool, identity: Option<Identity>, confirm: Confirm) -> Fade10g {
        let held = (confirm == Confirm::Released).then(|| Held::new(window.packets()));
        Fade10g {
            window,
            next_sequence: None,
            first: First::new(proven),
            stop_sent: false,
            blocks: identity.filter(|identity| identity.block_acks).map(|identity| identity.window),
            waiting: None,
            held,
            known: Known::new(),
            feb_window: identity.map(|identity| identity.window),
            beyond: 0,
            same_words: identity.is_some_and(|identity| identity.same_words),
        }
    }

    /// Packets since the start whose data is released.
    fn released(&self, shared: &Shared) -> u64 {
        let head = shared.head();
        // The last packet may have fewer words.
        let all = self.window.complete() && head == self.window.bytes();
        if all {
            self.window.packets()
        } else {
            head / PACKET_BYTES as u64
        }
    }

    /// If a packet is of this transmission.
    pub(super) fn admits(&mut self, packet: u32, now: Duration) -> Admission {
        if self.first.has_come() {
            return Admission::Take;
        }
        let verdict = self.window.judge(packet, None, 0);
        let (is_first, is_foreign) = (verdict == Verdict::Store { index: 0 }, verdict == Verdict::ProtocolError);
        self.first.admit(is_first, is_foreign, FIRST_PATIENCE, now)
    }

    /// Takes a data frame: stores what is new, and sends the ACK of what is stored, unless a block ACK will.
    pub(super) fn data(&mut self, data: &Data<'_>, swap: Swap, shared: &Shared, out: &mut Outbox<'_>) {
        let Fade10g { window, next_sequence, stop_sent, waiting, known, feb_window, beyond, same_words, .. } = self;
        let counters = &shared.counters;
        counters.delay.store(data.delay.into(), Ordering::Relaxed);
        let expected = next_sequence.unwrap_or(data.sequence);
        let skipped = data.sequence.wrapping_sub(expected);
        if skipped < 1 << 15 {
            add(&counters.missing_frames, skipped.into());
            *next_sequence = Some(data.sequence.wrapping_add(1));
        } else if counters.missing_frames.load(Ordering::Relaxed) > 0 {
            // Late, not lost.
            add(&counters.missing_frames, u64::MAX);
        }

        if data.last.is_some() && !*stop_sent {
            return count(&counters.protocol_errors);
        }
        if let Some(confirmed) = feb_window.and_then(|feb_window| window.confirmed_by(data.packet, feb_window)) {
            *beyond += 1;
            if *beyond >= SHOWN {
                shared.told.set_confirmed(confirmed);
            }
        }
        let released = shared.head() / PACKET_BYTES as u64;
        let index = match window.judge(data.packet, data.last, released) {
            Verdict::Store { index } => {
                known.store(index, data.payload, *same_words);
                let (at, gap_free) = (index * PACKET_BYTES as u64, window.is_gap_free());
                // SAFETY: the window gives a place only when the reader has released it.
                unsafe { shared.store(at, data.payload, swap, gap_free) };
                if window.stored(index, data.last) {
                    count(&counters.repaired);
                }
                count(&counters.packets);
                if let Some(crc) = data.checksum() {
                    // Before its words: who reads them knows it then.
                    shared.told.set_crc(WordsCrc { crc, filler_words: 0 });
                }
                shared.set_tail(window.bytes());
                if window.complete() {
                    shared.end(Phase::Complete, Ending::Confirmed);
                }
                index
            }
            Verdict::ConfirmAgain { index } => {
                count(&counters.duplicates);
                add(&counters.contradictions, known.contradicts(index, data.payload, *same_words).into());
                index
            }
            Verdict::NoSpace => return count(&counters.no_space),
            Verdict::ProtocolError => return count(&counters.protocol_errors),
        };
        let Data { sequence, packet, delay, .. } = *data;
        if self.held.as_mut().is_some_and(|held| held.note(index, (sequence, delay))) {
            return;
        }
        if self.blocks.is_some() {
            if waiting.as_ref().is_none_or(|newest| index >= newest.index) {
                *waiting = Some(Waiting { sequence, packet, delay, index });
            }
            return;
        }
        out.fade10g(Request::Ack { negative: false, sequence, packet, delay, stored: None });
        count(&counters.acks);
    }
}

impl Transmission for Fade10g {
    fn first(&self) -> &First {
        &self.first
    }

    fn blocks(&self) -> Option<u32> {
        self.blocks
    }

    fn confirm(&mut self, shared: &Shared, out: &mut Outbox<'_>) {
        let released = self.released(shared);
        if let Some(held) = &mut self.held {
            for (index, (sequence, delay)) in held.release(released) {
                let packet = self.window.number(index);
                if self.blocks.is_some() {
                    // The bits of the last one cover the window.
                    self.waiting = Some(Waiting { sequence, packet, delay, index });
                } else {
                    out.fade10g(Request::Ack { negative: false, sequence, packet, delay, stored: None });
                    count(&shared.counters.acks);
                }
            }
        }
        let Some(Waiting { sequence, packet, delay, index }) = self.waiting.take() else { return };
        // Of held packets all before a confirmed one are confirmed, and no others.
        let before =
            if self.held.is_some() { stored_before(index, index, 0) } else { self.window.stored_before(index) };
        let stored = Some(before);
        out.fade10g(Request::Ack { negative: false, sequence, packet, delay, stored });
        count(&shared.counters.acks);
    }

    fn stop(&mut self, _: &Shared, _: Duration) {
        self.stop_sent = true;
    }

    fn is_stopping(&self) -> bool {
        self.stop_sent
    }
}

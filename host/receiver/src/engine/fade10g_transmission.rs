//! A transmission of FADE-10G: its window, and the gaps in its frame sequence numbers (docs/protocol/fade10g.md).

use std::sync::atomic::Ordering;
use std::time::Duration;

use fadelink_wire::fade10g::{Data, Request, PACKET_BYTES};

use super::first::{Admission, First};
use crate::counters::{add, count};
use crate::kind::Swap;
use crate::shared::{Phase, Shared};
use crate::window::{Verdict, Window};

/// The receiver's view of a transmission.
pub(super) struct Fade10g {
    window: Window,
    next_sequence: Option<u16>,
    pub(super) first: First,
    /// Packets of the FEB's window, if it takes block ACKs.
    blocks: Option<u32>,
    waiting: Option<Waiting>,
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
    /// `proven`: all that comes is of this transmission; `blocks`: packets of the FEB's window, if it takes block ACKs.
    pub(super) fn new(window: Window, proven: bool, blocks: Option<u32>) -> Fade10g {
        Fade10g { window, next_sequence: None, first: First::new(proven), blocks, waiting: None }
    }

    /// Packets of the FEB's window, if it takes block ACKs.
    pub(super) fn blocks(&self) -> Option<u32> {
        self.blocks
    }

    /// Confirms what was stored since the last call, by one block ACK.
    pub(super) fn confirm(&mut self, shared: &Shared, send: impl FnOnce(Request)) {
        let Some(Waiting { sequence, packet, delay, index }) = self.waiting.take() else { return };
        let stored = Some(self.window.stored_before(index));
        send(Request::Ack { negative: false, sequence, packet, delay, stored });
        count(&shared.counters.acks);
    }

    /// If a packet is of this transmission.
    pub(super) fn admits(&mut self, packet: u32, now: Duration) -> Admission {
        if self.first.has_come() {
            return Admission::Take;
        }
        let verdict = self.window.judge(packet, None, 0);
        self.first.admit(verdict == Verdict::Store { index: 0 }, verdict == Verdict::ProtocolError, now)
    }

    /// Takes a data frame: stores what is new, and sends the ACK of what is stored, unless a block ACK will.
    pub(super) fn data(&mut self, data: &Data<'_>, swap: Swap, shared: &Shared, send: impl FnOnce(Request)) {
        let Fade10g { window, next_sequence, waiting, .. } = self;
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

        let released = shared.head() / PACKET_BYTES as u64;
        let index = match window.judge(data.packet, data.last, released) {
            Verdict::Store { index } => {
                let (at, gap_free) = (index * PACKET_BYTES as u64, window.is_gap_free());
                // SAFETY: the window gives a place only when the reader has released it.
                unsafe { shared.store(at, data.payload, swap, gap_free) };
                if window.stored(index, data.last) {
                    count(&counters.repaired);
                }
                count(&counters.packets);
                shared.set_tail(window.bytes());
                if window.complete() {
                    shared.set_phase(Phase::Complete);
                }
                index
            }
            Verdict::ConfirmAgain { index } => {
                count(&counters.duplicates);
                index
            }
            Verdict::NoSpace => return count(&counters.no_space),
            Verdict::ProtocolError => return count(&counters.protocol_errors),
        };
        let Data { sequence, packet, delay, .. } = *data;
        if self.blocks.is_some() {
            if waiting.as_ref().is_none_or(|newest| index >= newest.index) {
                *waiting = Some(Waiting { sequence, packet, delay, index });
            }
            return;
        }
        send(Request::Ack { negative: false, sequence, packet, delay, stored: None });
        count(&counters.acks);
    }
}

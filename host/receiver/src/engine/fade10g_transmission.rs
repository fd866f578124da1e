//! A transmission of FADE-10G: its window, and the gaps in its frame sequence numbers (design section 2).

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
}

impl Fade10g {
    /// `proven`: all that comes is of this transmission.
    pub(super) fn new(window: Window, proven: bool) -> Fade10g {
        Fade10g { window, next_sequence: None, first: First::new(proven) }
    }

    /// If a packet is of this transmission.
    pub(super) fn admits(&mut self, packet: u32, now: Duration) -> Admission {
        if self.first.has_come() {
            return Admission::Take;
        }
        let verdict = self.window.judge(packet, None, 0);
        self.first.admit(verdict == Verdict::Store { index: 0 }, verdict == Verdict::ProtocolError, now)
    }

    /// Takes a data frame: stores what is new, and sends the ACK of what is stored.
    pub(super) fn data(&mut self, data: &Data<'_>, swap: Swap, shared: &Shared, send: impl FnOnce(Request)) {
        let Fade10g { window, next_sequence, .. } = self;
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
        match window.judge(data.packet, data.last, released) {
            Verdict::Store { index } => {
                // SAFETY: the window gives a place only when the reader has released it.
                unsafe { shared.ring.write(window.slot(index), data.payload, swap) };
                window.stored(index, data.last);
                count(&counters.packets);
                shared.set_tail(window.bytes());
                if window.complete() {
                    shared.set_phase(Phase::Complete);
                }
            }
            Verdict::ConfirmAgain => count(&counters.duplicates),
            Verdict::NoSpace => return count(&counters.no_space),
            Verdict::ProtocolError => return count(&counters.protocol_errors),
        }
        send(Request::Ack { negative: false, sequence: data.sequence, packet: data.packet, delay: data.delay });
        count(&counters.acks);
    }
}

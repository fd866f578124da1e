//! A transmission of FADE v1 (design section 3). Nothing but data is confirmed there:
//! - START is preceded by RESET and a time in which frames under way arrive, and repeated until data comes. Where
//!   the FEB is known to speak FADE v1, the transmission begins with the first START: its detector may be silent for
//!   long. Else it begins with the first packet.
//! - STOP is repeated; the transmission is complete when only silence has followed several of them. It is broken off
//!   when nothing came at all: nobody may be there.

use std::sync::atomic::Ordering;
use std::time::Duration;

use fadelink_wire::fade1::{Data, Request, PACKET_BYTES};
use fadelink_wire::fade10g;

use super::command::SETTLE;
use crate::counters::count;
use crate::sets::Sets;
use crate::shared::{Phase, Shared};
use crate::window::Verdict;

/// Time from one START to the next, while no data comes.
const START_INTERVAL: Duration = Duration::from_millis(100);
/// Time from one STOP to the next.
const STOP_INTERVAL: Duration = Duration::from_millis(100);
/// STOPs after the last data frame that must have met with silence: that all of them are lost is as good as
/// impossible, and a FEB that got one repeats what is not confirmed far sooner.
const STOPS: u32 = 5;

/// The receiver's view of a transmission.
pub(super) struct Fade1 {
    sets: Sets,
    /// Until data comes: what is sent next, and when.
    starting: Option<(Starting, Duration)>,
    stopping: Option<Stopping>,
}

struct Stopping {
    next_stop: Duration,
    /// STOPs sent since the last data frame.
    stops: u32,
}

/// What START has done about FADE v1 so far.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Starting {
    /// Nothing: RESET comes first.
    Fresh,
    /// RESET was sent: START comes next.
    Reset,
    /// START was sent: data begins the transmission.
    Started,
}

impl Starting {
    /// One attempt of START: what is sent, and the time until the next.
    pub(super) fn attempt(&mut self, timeout: Duration) -> (Request, Duration) {
        match self {
            Starting::Fresh => {
                *self = Starting::Reset;
                (Request::Reset, SETTLE)
            }
            Starting::Reset | Starting::Started => {
                *self = Starting::Started;
                (Request::Start, timeout)
            }
        }
    }

    /// True if this data begins the transmission; else it is of an earlier one, whose RESET was lost or is still to
    /// come, and START begins anew.
    pub(super) fn begins_with(&mut self, data: &Data<'_>) -> bool {
        let begins = *self == Starting::Started && data.set <= 1;
        if !begins && *self == Starting::Started {
            *self = Starting::Fresh;
        }
        begins
    }
}

impl Fade1 {
    /// For a ring of so many packets of 8192 bytes.
    pub(super) fn new(ring_packets: u64, starting: Option<(Starting, Duration)>) -> Fade1 {
        let packets = ring_packets * (fade10g::PACKET_BYTES / PACKET_BYTES) as u64;
        Fade1 { sets: Sets::new(packets), starting, stopping: None }
    }

    pub(super) fn next_deadline(&self) -> Option<Duration> {
        let stop = self.stopping.as_ref().map(|stopping| stopping.next_stop);
        stop.or(self.starting.map(|(_, next)| next))
    }

    /// Takes a data frame: stores what is new, and sends the ACK of what is stored.
    pub(super) fn data(&mut self, data: &Data<'_>, shared: &Shared, now: Duration, send: impl FnOnce(Request)) {
        let counters = &shared.counters;
        if let Some((starting, next)) = &mut self.starting {
            let was_started = *starting == Starting::Started;
            if !starting.begins_with(data) {
                if was_started {
                    *next = now;
                }
                return count(&counters.not_started);
            }
            self.starting = None;
        }
        counters.delay.store(data.delay.into(), Ordering::Relaxed);
        if let Some(stopping) = &mut self.stopping {
            stopping.stops = 0;
        }
        let released = shared.head() / PACKET_BYTES as u64;
        match self.sets.judge(data.set, data.packet, released) {
            // Complete: nothing new may come, but an ACK may have been lost.
            Verdict::Store { .. } if shared.phase() == Phase::Complete => return count(&counters.protocol_errors),
            Verdict::Store { index } => {
                // SAFETY: the window gives a place only when the reader has released it.
                unsafe { shared.ring.write(self.sets.slot(index), data.payload) };
                self.sets.stored(index);
                count(&counters.packets);
                shared.set_tail(self.sets.bytes());
            }
            Verdict::ConfirmAgain => count(&counters.duplicates),
            Verdict::NoSpace => return count(&counters.no_space),
            Verdict::ProtocolError => {
                // A packet of another set: the FEB is told to stop.
                count(&counters.protocol_errors);
                return self.stop(now);
            }
        }
        send(Request::Ack { set: data.set, packet: data.packet });
        count(&counters.acks);
    }

    /// STOP, at the next poll and until there is silence.
    pub(super) fn stop(&mut self, now: Duration) {
        self.stopping.get_or_insert(Stopping { next_stop: now, stops: 0 });
    }

    /// Sends START or STOP when it is time to.
    pub(super) fn poll(&mut self, shared: &Shared, now: Duration, mut send: impl FnMut(Request)) {
        let Fade1 { sets, starting, stopping } = self;
        if let Some((starting, next)) = starting.as_mut().filter(|(_, next)| stopping.is_none() && now >= *next) {
            let (request, wait) = starting.attempt(START_INTERVAL);
            *next = now + wait;
            send(request);
            count(&shared.counters.commands);
        }
        let Some(stop) = stopping.as_mut().filter(|stop| now >= stop.next_stop) else { return };
        if stop.stops >= STOPS && sets.is_gap_free() {
            *stopping = None;
            let anything = starting.take().is_none();
            shared.set_phase(if anything { Phase::Complete } else { Phase::Aborted });
            return;
        }
        stop.stops += 1;
        stop.next_stop = now + STOP_INTERVAL;
        count(&shared.counters.commands);
        send(Request::Stop);
    }
}

//! A transmission of FADE v1 (docs/protocol/fade1.md). Only data is confirmed in this protocol, and Fadelink's boards answer
//! STOP:
//! - RESET, and a time in which frames under way arrive, come before START. START is repeated until the FEB answers or
//!   data comes. A board that gives permits obeys START with its permit alone, which it tells in its answer to a START without.
//!   If
//!   the FEB is known to use FADE v1, the transmission begins with the first START, because its detector may be
//!   silent for long. Otherwise it begins when data comes.
//! - STOP is repeated. The transmission is complete when the FEB says that it has ended with as many packets as have come, or
//!   when only silence has followed several STOPs. It is aborted if the FEB says otherwise, or if nothing came at all,
//!   because there may be no board.

use std::sync::atomic::Ordering;
use std::time::Duration;

use fadelink_wire::fade1::{self, Data, Request, State, PACKET_BYTES, SET_PACKETS};
use fadelink_wire::{fade10g, Permit};

use super::command::{Confirm, Resumed, ANSWER_PATIENCE, FIRST_PATIENCE, START_INTERVAL};
use super::first::{Admission, First};
use super::held::Held;
use super::known::Known;
use super::outbox::Outbox;
use super::transmission::Transmission;
use crate::counters::{add, count};
use crate::kind::Swap;
use crate::sets::Sets;
use crate::shared::{Ending, Phase, Shared};
use crate::window::{stored_before, Verdict};

/// Time from one STOP to the next.
const STOP_INTERVAL: Duration = Duration::from_millis(100);
/// STOPs after the last data frame that must have met with silence: that all of them are lost is as good as
/// impossible, and a FEB that got one repeats what is not confirmed far sooner.
const STOPS: u32 = 5;

/// So many answers to START show that another transmission runs.
const SHOWN: u32 = 2;

/// Packets of FADE v1 in so many of 8192 bytes.
fn packets_of(ring_packets: u64) -> u64 {
    ring_packets * (fade10g::PACKET_BYTES / PACKET_BYTES) as u64
}

/// The receiver's view of a transmission.
pub(super) struct Fade1 {
    sets: Sets,
    first: First,
    /// What START called it; `None`: one goes on whose number is not known.
    number: Option<u16>,
    /// When START is repeated, until data comes or the FEB says that it has begun.
    next_start: Option<Duration>,
    /// What it shows.
    permit: Permit,
    /// It was sent with that permit.
    has_shown: bool,
    /// Answers to it by which the FEB runs another transmission.
    others: u32,
    stopping: Option<Stopping>,
    /// The FEB takes block ACKs.
    blocks: bool,
    /// What the next block ACK will name: the newest packet that has come since the last one, packets before it since the
    /// start.
    waiting: Option<u64>,
    /// Where packets are confirmed when their data is released.
    held: Option<Held<()>>,
    known: Known,
}

struct Stopping {
    next_stop: Duration,
    /// STOPs sent since the FEB was last known to send on.
    stops: u32,
    /// How it says that the transmission has ended, otherwise than it seems here.
    told: Option<Ending>,
}

impl Stopping {
    /// The FEB sends on.
    fn begins_anew(&mut self) {
        (self.stops, self.told) = (0, None);
    }
}

impl Fade1 {
    /// For a ring of so many packets of 8192 bytes. START with this `number` is sent at `next_start`, and again until it is
    /// obeyed.
    pub(super) fn new(ring_packets: u64, number: u16, next_start: Option<Duration>, confirm: Confirm) -> Fade1 {
        let sets = Sets::new(packets_of(ring_packets));
        Fade1 { first: First::new(false), number: Some(number), next_start, ..Fade1::of(sets, 0, confirm) }
    }

    /// One that goes on.
    pub(super) fn resumed(ring_packets: u64, resumed: Resumed, confirm: Confirm) -> Fade1 {
        let packets = resumed.bytes / PACKET_BYTES as u64;
        let sets = Sets::resumed(packets_of(ring_packets), packets);
        Fade1 { number: resumed.number, ..Fade1::of(sets, packets, confirm) }
    }

    fn of(sets: Sets, packets: u64, confirm: Confirm) -> Fade1 {
        let held = (confirm == Confirm::Released).then(|| Held::new(packets));
        Fade1 {
            sets,
            first: First::new(true),
            number: None,
            next_start: None,
            permit: Permit::NONE,
            has_shown: false,
            others: 0,
            stopping: None,
            blocks: false,
            waiting: None,
            held,
            known: Known::new(),
        }
    }

    /// True if a packet may be one of this transmission.
    pub(super) fn knows(&self, data: &Data<'_>) -> bool {
        self.sets.judge(data.set, data.packet, 0) != Verdict::ProtocolError
    }

    /// If a packet is of this transmission. `tells`: the FEB answers START.
    pub(super) fn admits(&mut self, data: &Data<'_>, tells: bool, now: Duration) -> Admission {
        let patience = if tells && self.next_start.is_some() { ANSWER_PATIENCE } else { FIRST_PATIENCE };
        self.first.admit(data.set == 0 && data.packet == 0, false, patience, now)
    }

    /// What answers START before any data of the transmission has come.
    fn begins(&mut self, is_ours: bool) {
        if is_ours {
            self.next_start = None;
            return self.first.is_proven();
        }
        self.others += 1;
        // One answer may be to IDENTIFY, and late.
        if self.others >= SHOWN {
            self.first.is_of_another();
        }
    }

    /// An idle board tells the permit of this moment, while START is not known to have been obeyed.
    fn may_begin(&mut self, permit: Permit, is_ours: bool) {
        if self.has_shown && (is_ours || permit != self.permit) {
            // That START may have been obeyed, and the board was reset or switched off behind it.
            return self.first.is_of_another();
        }
        if permit != self.permit {
            (self.permit, self.next_start) = (permit, Some(Duration::ZERO));
        }
    }

    /// Takes a data frame: stores what is new, and sends the ACK of what is stored, unless a block ACK will.
    pub(super) fn data(&mut self, data: &Data<'_>, swap: Swap, shared: &Shared, out: &mut Outbox<'_>) {
        let counters = &shared.counters;
        self.next_start = None;
        counters.delay.store(data.delay.into(), Ordering::Relaxed);
        if let Some(stopping) = &mut self.stopping {
            stopping.begins_anew();
        }
        let released = shared.head() / PACKET_BYTES as u64;
        let index = match self.sets.judge(data.set, data.packet, released) {
            // Complete: nothing new may come, but an ACK may have been lost.
            Verdict::Store { .. } if shared.phase() == Phase::Complete => return count(&counters.protocol_errors),
            Verdict::Store { index } => {
                self.known.store(index, data.payload, data.same_words);
                let (at, gap_free) = (index * PACKET_BYTES as u64, self.sets.is_gap_free());
                // SAFETY: the window gives a place only when the reader has released it.
                unsafe { shared.store(at, data.payload, swap, gap_free) };
                if self.sets.stored(index) {
                    count(&counters.repaired);
                }
                count(&counters.packets);
                shared.set_tail(self.sets.bytes());
                index
            }
            Verdict::ConfirmAgain { index } => {
                count(&counters.duplicates);
                let contradicts = self.known.contradicts(index, data.payload, data.same_words);
                add(&counters.contradictions, contradicts.into());
                index
            }
            Verdict::NoSpace => return count(&counters.no_space),
            Verdict::ProtocolError => {
                // A packet of another set: the FEB is told to stop.
                count(&counters.protocol_errors);
                return self.stop(shared, out.now);
            }
        };
        self.blocks = data.block_acks;
        if self.held.as_mut().is_some_and(|held| held.note(index, ())) {
            return;
        }
        if self.blocks {
            self.waiting = self.waiting.max(Some(index));
            return;
        }
        out.fade1(Request::Ack { set: data.set, packet: data.packet, stored: None });
        count(&counters.acks);
    }

    /// How the transmission has ended, as the FEB tells it when it is asked: [`Ending::Unknown`] if it goes on, or has not begun yet;
    /// [`Ending::Confirmed`] if all has come, though nobody here has asked for the end.
    pub(super) fn told_by(&self, state: &State) -> Ending {
        let packets = (self.sets.bytes() / PACKET_BYTES as u64) as u32;
        match state.phase {
            _ if self.next_start.is_some() => Ending::Unknown,
            fade1::Phase::None => Ending::SwitchedOff,
            _ if self.number.is_some_and(|number| number != state.transmission) => Ending::OtherTransmission,
            fade1::Phase::Running | fade1::Phase::Stopping => Ending::Unknown,
            fade1::Phase::Ended if state.packets == packets => Ending::Confirmed,
            fade1::Phase::Ended => Ending::OtherNumber,
            fade1::Phase::Reset => Ending::Reset,
        }
    }

    /// The FEB answers START or STOP, or a question. What does not agree is believed when no data follows.
    pub(super) fn state(&mut self, state: &State, was_asked: bool, swap: Swap, shared: &Shared) {
        let is_ours = self.number == Some(state.transmission);
        if shared.phase() == Phase::Running && (is_ours || self.number.is_none()) {
            shared.told.set_resets(state.resets);
        }
        let is_idle = !matches!(state.phase, fade1::Phase::Running | fade1::Phase::Stopping);
        let given = state.permit.filter(|permit| is_idle && !permit.is_none());
        let may_begin = self.next_start.is_some() && !self.first.has_come();
        // Where STOP is under way, what speaks against the transmission is said at its end.
        let may_begin = may_begin && (self.stopping.is_none() || !self.has_shown);
        if let Some(permit) = given.filter(|_| may_begin) {
            count(&shared.counters.responses);
            return self.may_begin(permit, is_ours);
        }
        let Some(stopping) = &mut self.stopping else {
            let counters = &shared.counters;
            return match state.phase {
                fade1::Phase::Running if self.next_start.is_some() && self.number.is_some() => {
                    count(&counters.responses);
                    self.begins(is_ours);
                }
                // Somebody else has stopped it.
                fade1::Phase::Stopping | fade1::Phase::Ended | fade1::Phase::Reset
                    if is_ours && shared.phase() == Phase::Running =>
                {
                    count(&counters.protocol_errors);
                }
                _ if was_asked => count(&counters.responses),
                _ => count(&counters.unexpected_responses),
            };
        };
        count(&shared.counters.responses);
        let packets = self.sets.bytes() / PACKET_BYTES as u64;
        match state.phase {
            fade1::Phase::None => stopping.told = Some(Ending::SwitchedOff),
            _ if self.number.is_some() && !is_ours => stopping.told = Some(Ending::OtherTransmission),
            fade1::Phase::Running | fade1::Phase::Stopping => stopping.begins_anew(),
            fade1::Phase::Ended if self.sets.is_gap_free() && state.packets == packets as u32 => {
                if let Some(checksum) = state.checksum {
                    shared.told.set_filler_words(checksum.filler_words());
                }
                // Of words that are not changed here.
                if let Some(checksum) = state.checksum.filter(|_| swap == Swap::None) {
                    shared.told.set_crc(checksum.into());
                }
                self.end(shared, Phase::Complete, Ending::Confirmed);
            }
            fade1::Phase::Ended => stopping.told = Some(Ending::OtherNumber),
            fade1::Phase::Reset => stopping.told = Some(Ending::Reset),
        }
    }

    fn end(&mut self, shared: &Shared, phase: Phase, ending: Ending) {
        (self.stopping, self.next_start) = (None, None);
        shared.end(phase, ending);
    }
}

impl Transmission for Fade1 {
    fn first(&self) -> &First {
        &self.first
    }

    fn blocks(&self) -> Option<u32> {
        self.blocks.then_some(SET_PACKETS)
    }

    fn confirm(&mut self, shared: &Shared, out: &mut Outbox<'_>) {
        let mut ack = |index: u64, stored: Option<u64>| {
            let sets = u64::from(SET_PACKETS);
            out.fade1(Request::Ack { set: (index / sets) as u16, packet: (index % sets) as u8, stored });
            count(&shared.counters.acks);
        };
        if let Some(held) = &mut self.held {
            for (index, ()) in held.release(shared.head() / PACKET_BYTES as u64) {
                if self.blocks {
                    // The bits of the last one cover the window.
                    self.waiting = Some(index);
                } else {
                    ack(index, None);
                }
            }
        }
        let Some(index) = self.waiting.take() else { return };
        // Of held packets all before a confirmed one are confirmed, and no others.
        let stored = if self.held.is_some() { stored_before(index, index, 0) } else { self.sets.stored_before(index) };
        ack(index, Some(stored));
    }

    /// STOP, at the next poll and until the end is known.
    fn stop(&mut self, shared: &Shared, now: Duration) {
        if shared.phase() != Phase::Running {
            // It is known already.
            return;
        }
        self.stopping.get_or_insert(Stopping { next_stop: now, stops: 0, told: None });
    }

    fn is_stopping(&self) -> bool {
        self.stopping.is_some()
    }

    /// Sends START or STOP when it is time to.
    fn poll(&mut self, shared: &Shared, out: &mut Outbox<'_>) {
        let now = out.now;
        let Fade1 { sets, first, number, next_start, permit, has_shown, stopping, .. } = self;
        // Also before STOP: what is asked to begin and to end at once begins.
        let is_new = !permit.is_none() && !*has_shown;
        if let Some(next) = next_start.as_mut().filter(|next| (is_new || stopping.is_none()) && now >= **next) {
            *next = now + START_INTERVAL;
            *has_shown |= is_new;
            out.fade1(Request::Start { transmission: number.unwrap_or_default(), permit: Some(*permit) });
            count(&shared.counters.commands);
        }
        let Some(stop) = stopping.as_mut().filter(|stop| now >= stop.next_stop) else { return };
        if !out.is_connected() {
            stop.begins_anew();
            stop.next_stop = now + STOP_INTERVAL;
            return;
        }
        if stop.stops >= STOPS && (stop.told.is_some() || sets.is_gap_free()) {
            let (phase, ending) = match stop.told {
                Some(ending) => (Phase::Aborted, ending),
                None if first.has_come() => (Phase::Complete, Ending::Silence),
                None => (Phase::Aborted, Ending::Unknown),
            };
            return self.end(shared, phase, ending);
        }
        stop.stops += 1;
        stop.next_stop = now + STOP_INTERVAL;
        count(&shared.counters.commands);
        out.fade1(Request::Stop);
    }

    fn next_deadline(&self) -> Option<Duration> {
        let stop = self.stopping.as_ref().map(|stopping| stopping.next_stop);
        stop.or(self.next_start).into_iter().chain(self.first.deadline()).min()
    }
}

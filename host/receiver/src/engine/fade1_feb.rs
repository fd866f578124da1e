//! A FEB that speaks FADE v1 (design section 3). Nothing but data is confirmed there:
//! - START is preceded by RESET and a time in which frames under way arrive, and repeated until data comes. Where
//!   the FEB is known to speak FADE v1, the transmission begins with the first START: its detector may be silent for
//!   long. Else it begins with the first packet.
//! - STOP is repeated; the transmission is complete when only silence has followed several of them. It is broken off
//!   when nothing came at all: nobody may be there.

use std::time::Duration;

use fadelink_wire::fade1::{Data, Error, Request, PACKET_BYTES};
use fadelink_wire::{fade10g, MacAddr, Protocol};

use super::{Actions, Command, CommandError, Feb, Transmission, SETTLE};
use crate::counters::count;
use crate::sets::Sets;
use crate::shared::Phase;
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

impl Fade1 {
    pub(super) fn next_deadline(&self) -> Option<Duration> {
        let stop = self.stopping.as_ref().map(|stopping| stopping.next_stop);
        stop.or(self.starting.map(|(_, next)| next))
    }
}

impl Feb {
    /// Takes a data frame, or what was wrong with it.
    pub(super) fn fade1_frame(
        &mut self,
        data: Result<Data<'_>, Error>,
        local: MacAddr,
        now: Duration,
        actions: &mut impl Actions,
    ) {
        let data = match data {
            Ok(data) => data,
            Err(Error::Packet(_)) => return self.fade1_error(now),
            Err(_) => return count(&self.shared.counters.wrong_length),
        };
        if !matches!(self.transmission, Transmission::Fade1(_)) && !self.fade1_begins(&data, local, now, actions) {
            return;
        }
        let Transmission::Fade1(fade1) = &mut self.transmission else { return };
        let counters = &self.shared.counters;
        if let Some((starting, next)) = &mut fade1.starting {
            if *starting != Starting::Started || data.set > 1 {
                // Of an earlier transmission, whose RESET was lost or has just been sent.
                if *starting == Starting::Started {
                    (*starting, *next) = (Starting::Fresh, now);
                }
                return count(&counters.not_started);
            }
            fade1.starting = None;
        }
        counters.delay.store(data.delay.into(), std::sync::atomic::Ordering::Relaxed);
        if let Some(stopping) = &mut fade1.stopping {
            stopping.stops = 0;
        }
        let released = self.shared.head() / PACKET_BYTES as u64;
        match fade1.sets.judge(data.set, data.packet, released) {
            // Complete: nothing new may come, but an ACK may have been lost.
            Verdict::Store { .. } if self.shared.phase() == Phase::Complete => return count(&counters.protocol_errors),
            Verdict::Store { index } => {
                // SAFETY: the window gives a place only when the reader has released it.
                unsafe { self.shared.ring.write(fade1.sets.slot(index), data.payload) };
                fade1.sets.stored(index);
                count(&counters.packets);
                self.shared.set_tail(fade1.sets.bytes());
            }
            Verdict::ConfirmAgain => count(&counters.duplicates),
            Verdict::NoSpace => return count(&counters.no_space),
            Verdict::ProtocolError => return self.fade1_error(now),
        }
        actions.send(&Request::Ack { set: data.set, packet: data.packet }.to_frame(self.mac, local));
        count(&self.shared.counters.acks);
    }

    /// Data without a transmission: true if it begins the one that waits for it.
    fn fade1_begins(&mut self, data: &Data<'_>, local: MacAddr, now: Duration, actions: &mut impl Actions) -> bool {
        let is_start = |pending: &mut super::Pending| pending.command.code == fade10g::CMD_START;
        let Some(mut pending) = self.pending.take_if(is_start) else {
            self.stray_data(Protocol::Fade1, local, now, actions);
            return false;
        };
        if pending.fade1 != Starting::Started || data.set > 1 {
            // Of an earlier transmission: its RESET was lost, or is still to come.
            count(&self.shared.counters.not_started);
            if pending.fade1 == Starting::Started {
                pending.fade1 = Starting::Fresh;
            }
            self.pending = Some(pending);
            return false;
        }
        self.fade1_begin(None);
        (pending.command.reply)(Ok(0));
        self.next_command(local, now, actions);
        true
    }

    pub(super) fn fade1_begin(&mut self, starting: Option<(Starting, Duration)>) {
        self.shared.begin(Protocol::Fade1, 0);
        let packets = self.config.ring_packets * (fade10g::PACKET_BYTES / PACKET_BYTES) as u64;
        self.transmission = Transmission::Fade1(Fade1 { sets: Sets::new(packets), starting, stopping: None });
    }

    /// A packet of another set: the FEB is told to stop (design section 3).
    fn fade1_error(&mut self, now: Duration) {
        count(&self.shared.counters.protocol_errors);
        self.fade1_stop(now);
    }

    /// STOP, which nothing will confirm; there are no others.
    pub(super) fn fade1_command(
        &mut self,
        command: Command,
        local: MacAddr,
        now: Duration,
        actions: &mut impl Actions,
    ) {
        if command.code == fade10g::CMD_STOP {
            self.fade1_stop(now);
            self.fade1_poll(local, now, actions);
            (command.reply)(Ok(0));
        } else {
            (command.reply)(Err(CommandError::NoCommands(command.code)));
        }
    }

    /// STOP, at the next poll and until there is silence.
    fn fade1_stop(&mut self, now: Duration) {
        if let Transmission::Fade1(fade1) = &mut self.transmission {
            fade1.stopping.get_or_insert(Stopping { next_stop: now, stops: 0 });
        }
    }

    /// Sends START or STOP when it is time to.
    pub(super) fn fade1_poll(&mut self, local: MacAddr, now: Duration, actions: &mut impl Actions) {
        let mac = self.mac;
        let Transmission::Fade1(Fade1 { sets, starting, stopping }) = &mut self.transmission else { return };
        if let Some((starting, next)) = starting.as_mut().filter(|(_, next)| stopping.is_none() && now >= *next) {
            *next = now + fade1_start(mac, starting, START_INTERVAL, local, actions);
            count(&self.shared.counters.commands);
        }
        let Some(stop) = stopping.as_mut().filter(|stop| now >= stop.next_stop) else { return };
        if stop.stops >= STOPS && sets.is_gap_free() {
            *stopping = None;
            let anything = starting.take().is_none();
            self.shared.set_phase(if anything { Phase::Complete } else { Phase::Aborted });
            return;
        }
        stop.stops += 1;
        stop.next_stop = now + STOP_INTERVAL;
        count(&self.shared.counters.commands);
        actions.send(&Request::Stop.to_frame(self.mac, local));
    }
}

/// One attempt of START. Returns the time until the next.
pub(super) fn fade1_start(
    mac: MacAddr,
    starting: &mut Starting,
    timeout: Duration,
    local: MacAddr,
    actions: &mut impl Actions,
) -> Duration {
    match starting {
        Starting::Fresh => {
            *starting = Starting::Reset;
            actions.send(&Request::Reset.to_frame(mac, local));
            SETTLE
        }
        Starting::Reset | Starting::Started => {
            *starting = Starting::Started;
            actions.send(&Request::Start.to_frame(mac, local));
            timeout
        }
    }
}

//! One FEB: its commands, its START and RESET, and the transmission that runs, by whichever protocol.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use fadelink_wire::fade10g::{self, Data, FebFrame, Request, Response};
use fadelink_wire::{fade1, MacAddr, Protocol};

use super::command::{Actions, Command, CommandError, FebConfig, RESET, RESET_INTERVAL, SETTLE, START_ATTEMPTS};
use super::fade10g_transmission::Fade10g;
use super::fade1_transmission::{Fade1, Starting};
use crate::counters::count;
use crate::shared::{Phase, Shared};
use crate::window::Window;

/// Answer to START: the transmission has begun.
const STATUS_DONE: u64 = 0;

/// A command under way.
struct Pending {
    command: Command,
    csn: u16,
    attempts: u32,
    next_attempt: Duration,
    start_attempts: u32,
    /// Of START, to a FEB that may speak FADE v1.
    fade1: Starting,
}

/// What is being received.
enum Transmission {
    None,
    Fade10g(Fade10g),
    Fade1(Fade1),
}

/// One FEB that is open.
pub(super) struct Feb {
    pub(super) mac: MacAddr,
    /// This program has the FEB's data, not only its commands.
    owned: bool,
    next_reset: Duration,
    config: FebConfig,
    pub(super) shared: Arc<Shared>,
    transmission: Transmission,
    next_csn: u16,
    pending: Option<Pending>,
    queue: VecDeque<Command>,
}

impl Feb {
    pub(super) fn new(mac: MacAddr, config: FebConfig, owned: bool, shared: Arc<Shared>) -> Feb {
        Feb {
            mac,
            owned,
            next_reset: Duration::ZERO,
            config,
            shared,
            transmission: Transmission::None,
            next_csn: fastrand::u16(..),
            pending: None,
            queue: VecDeque::new(),
        }
    }

    /// A transmission was started, or START is under way.
    pub(super) fn has_begun(&self) -> bool {
        !matches!(self.transmission, Transmission::None) || self.starting()
    }

    /// Forgets the transmission, of which nothing more will be taken.
    pub(super) fn forget(&mut self) {
        let ended = std::mem::replace(&mut self.transmission, Transmission::None);
        if !matches!(ended, Transmission::None) && self.shared.phase() == Phase::Running {
            self.shared.set_phase(Phase::Aborted);
        }
    }

    /// Sends a command when those before it are answered.
    pub(super) fn command(&mut self, command: Command, local: MacAddr, now: Duration, actions: &mut impl Actions) {
        self.queue.push_back(command);
        self.next_command(local, now, actions);
    }

    fn speaks_fade1_now(&self) -> bool {
        matches!(self.transmission, Transmission::Fade1(_))
    }

    fn speaks_fade1(&self) -> bool {
        self.config.protocol == Some(Protocol::Fade1) || self.speaks_fade1_now()
    }

    pub(super) fn next_deadline(&self) -> Option<Duration> {
        let stop = match &self.transmission {
            Transmission::Fade1(fade1) => fade1.next_deadline(),
            _ => None,
        };
        self.pending.as_ref().map(|pending| pending.next_attempt).into_iter().chain(stop).min()
    }

    pub(super) fn frame(&mut self, body: FebFrame<'_>, local: MacAddr, now: Duration, actions: &mut impl Actions) {
        match body {
            FebFrame::Response(response) => self.responses(response, local, now, actions),
            FebFrame::Data(data) => {
                // First: the response may be the one to START, which this very packet follows.
                self.responses(data.response, local, now, actions);
                self.data(&data, local, now, actions);
            }
        }
    }

    fn data(&mut self, data: &Data<'_>, local: MacAddr, now: Duration, actions: &mut impl Actions) {
        let mac = self.mac;
        match &mut self.transmission {
            Transmission::Fade10g(fade10g) => {
                fade10g.data(data, &self.shared, |ack| actions.send(&ack.to_frame(mac, local)))
            }
            _ => self.stray_data(Protocol::Fade10g, local, now, actions),
        }
    }

    /// A data frame of FADE v1, or what was wrong with it.
    pub(super) fn fade1_frame(
        &mut self,
        data: Result<fade1::Data<'_>, fade1::Error>,
        local: MacAddr,
        now: Duration,
        actions: &mut impl Actions,
    ) {
        let mac = self.mac;
        match data {
            Ok(data) => {
                if !self.speaks_fade1_now() && !self.fade1_begins(&data, local, now, actions) {
                    return;
                }
                if let Transmission::Fade1(fade1) = &mut self.transmission {
                    fade1.data(&data, &self.shared, now, |ack| actions.send(&ack.to_frame(mac, local)));
                }
            }
            Err(fade1::Error::Packet(_)) => {
                count(&self.shared.counters.protocol_errors);
                if let Transmission::Fade1(fade1) = &mut self.transmission {
                    fade1.stop(now);
                }
            }
            Err(_) => count(&self.shared.counters.wrong_length),
        }
    }

    /// Data of FADE v1 without a transmission: true if it begins the one that waits for it.
    fn fade1_begins(
        &mut self,
        data: &fade1::Data<'_>,
        local: MacAddr,
        now: Duration,
        actions: &mut impl Actions,
    ) -> bool {
        let is_start = |pending: &mut Pending| pending.command.code == fade10g::CMD_START;
        let Some(mut pending) = self.pending.take_if(is_start) else {
            self.stray_data(Protocol::Fade1, local, now, actions);
            return false;
        };
        if !pending.fade1.begins_with(data) {
            count(&self.shared.counters.not_started);
            self.pending = Some(pending);
            return false;
        }
        self.fade1_begin(None);
        (pending.command.reply)(Ok(0));
        self.next_command(local, now, actions);
        true
    }

    fn fade1_begin(&mut self, starting: Option<(Starting, Duration)>) {
        self.shared.begin(Protocol::Fade1, 0);
        self.transmission = Transmission::Fade1(Fade1::new(self.config.ring_packets, starting));
    }

    /// STOP of FADE v1, which nothing will confirm; there are no others.
    fn fade1_command(&mut self, command: Command, local: MacAddr, now: Duration, actions: &mut impl Actions) {
        if command.code == fade10g::CMD_STOP {
            if let Transmission::Fade1(fade1) = &mut self.transmission {
                fade1.stop(now);
            }
            self.fade1_poll(local, now, actions);
            (command.reply)(Ok(0));
        } else {
            (command.reply)(Err(CommandError::NoCommands(command.code)));
        }
    }

    fn fade1_poll(&mut self, local: MacAddr, now: Duration, actions: &mut impl Actions) {
        let mac = self.mac;
        if let Transmission::Fade1(fade1) = &mut self.transmission {
            fade1.poll(&self.shared, now, |request| actions.send(&request.to_frame(mac, local)));
        }
    }

    /// Data without a transmission: a RESET was lost. (A START will find out by itself.)
    fn stray_data(&mut self, protocol: Protocol, local: MacAddr, now: Duration, actions: &mut impl Actions) {
        count(&self.shared.counters.not_started);
        if self.owned && !self.starting() && now >= self.next_reset {
            self.next_reset = now + RESET_INTERVAL;
            self.reset_as(Some(protocol), local, actions);
        }
    }

    fn starting(&self) -> bool {
        self.pending.as_ref().is_some_and(|pending| pending.command.code == fade10g::CMD_START)
    }

    fn responses(&mut self, response: Option<Response>, local: MacAddr, now: Duration, actions: &mut impl Actions) {
        let Some(response) = response else { return };
        let answers = |p: &mut Pending| p.attempts > 0 && (p.command.code, p.csn) == (response.code, response.csn);
        let Some(mut pending) = self.pending.take_if(answers) else {
            count(&self.shared.counters.unexpected_responses);
            return;
        };
        count(&self.shared.counters.responses);
        if response.code == fade10g::CMD_START {
            if response.value != STATUS_DONE {
                // An earlier transmission still runs, perhaps of a reader that was killed.
                if pending.start_attempts == START_ATTEMPTS {
                    (pending.command.reply)(Err(CommandError::StillRunning(response.value)));
                } else {
                    self.reset_as(Some(Protocol::Fade10g), local, actions);
                    pending.start_attempts += 1;
                    pending.attempts = 0;
                    pending.csn = self.new_csn();
                    pending.next_attempt = now + SETTLE;
                    self.pending = Some(pending);
                    return;
                }
            } else {
                let window = Window::new(self.config.first_packet, self.config.window, self.config.ring_packets);
                self.shared.begin(Protocol::Fade10g, window.slot(0) * fade10g::PACKET_BYTES as u64);
                self.transmission = Transmission::Fade10g(Fade10g::new(window));
                (pending.command.reply)(Ok(response.value));
            }
        } else {
            (pending.command.reply)(Ok(response.value));
        }
        self.next_command(local, now, actions);
    }

    fn new_csn(&mut self) -> u16 {
        self.next_csn = self.next_csn.wrapping_add(1);
        self.next_csn
    }

    fn next_command(&mut self, local: MacAddr, now: Duration, actions: &mut impl Actions) {
        if self.pending.is_some() {
            return;
        }
        while let Some(command) = self.queue.pop_front() {
            if self.speaks_fade1() && command.code != fade10g::CMD_START {
                self.fade1_command(command, local, now, actions);
                continue;
            }
            if command.code == fade10g::CMD_START {
                // Frames of an earlier transmission must not pass for the new one's.
                self.transmission = Transmission::None;
            }
            let csn = self.new_csn();
            self.pending = Some(Pending {
                command,
                csn,
                attempts: 0,
                next_attempt: now,
                start_attempts: 0,
                fade1: Starting::Fresh,
            });
            self.poll(local, now, actions);
            return;
        }
    }

    pub(super) fn poll(&mut self, local: MacAddr, now: Duration, actions: &mut impl Actions) {
        self.fade1_poll(local, now, actions);
        let Some(mut pending) = self.pending.take_if(|pending| now >= pending.next_attempt) else { return };
        if pending.attempts > pending.command.retries {
            let error = CommandError::Timeout { code: pending.command.code, attempts: pending.attempts };
            (pending.command.reply)(Err(error));
            self.next_command(local, now, actions);
            return;
        }
        let Command { code, argument, timeout, .. } = pending.command;
        pending.next_attempt = now + timeout;
        let protocol = self.config.protocol;
        let is_start = code == fade10g::CMD_START;
        // Who speaks FADE-10G answers the first attempt; a later one may be for FADE v1.
        let may_be_fade1 = is_start && protocol.map_or(pending.attempts > 0, |p| p == Protocol::Fade1);
        if may_be_fade1 {
            let before = pending.fade1;
            let (request, wait) = pending.fade1.attempt(timeout);
            actions.send(&request.to_frame(self.mac, local));
            pending.next_attempt = now + wait;
            if before == Starting::Fresh {
                // RESET and START together are one attempt.
                count(&self.shared.counters.resets);
                self.pending = Some(pending);
                return;
            }
        }
        pending.attempts += 1;
        count(&self.shared.counters.commands);
        if is_start && protocol == Some(Protocol::Fade1) {
            self.fade1_begin(Some((pending.fade1, pending.next_attempt)));
            (pending.command.reply)(Ok(0));
            self.next_command(local, now, actions);
            return;
        }
        actions.send(&Request::Command { code, csn: pending.csn, argument }.to_frame(self.mac, local));
        self.pending = Some(pending);
    }

    pub(super) fn reset(&mut self, local: MacAddr, actions: &mut impl Actions) {
        let protocol = match self.transmission {
            Transmission::Fade10g(_) => Some(Protocol::Fade10g),
            Transmission::Fade1(_) => Some(Protocol::Fade1),
            Transmission::None => self.config.protocol,
        };
        self.reset_as(protocol, local, actions);
    }

    /// RESET of a protocol, or of both where it is not known.
    fn reset_as(&mut self, protocol: Option<Protocol>, local: MacAddr, actions: &mut impl Actions) {
        count(&self.shared.counters.resets);
        if protocol != Some(Protocol::Fade1) {
            actions.send(&RESET.to_frame(self.mac, local));
        }
        if protocol != Some(Protocol::Fade10g) {
            actions.send(&fade1::Request::Reset.to_frame(self.mac, local));
        }
    }

    pub(super) fn fail(&mut self, error: CommandError) {
        for command in self.pending.take().map(|p| p.command).into_iter().chain(self.queue.drain(..)) {
            (command.reply)(Err(error.clone()));
        }
    }
}

//! One FEB: its commands, its START and RESET, and its current transmission, in either protocol.

use std::sync::Arc;
use std::time::Duration;

use fadelink_wire::fade10g::{self, Data, FebFrame, Request, Response};
use fadelink_wire::{fade1, Firmware, Permit, Protocol};

use super::command::{
    Command, CommandError, Confirm, FebConfig, Resumed, RESET, RESETS, RESET_INTERVAL, START_ATTEMPTS,
};
use super::commands::{Commands, Overdue};
use super::current::Current;
use super::first::Admission;
use super::outbox::Outbox;
use super::peer::Peer;
use super::start::{Event, Goal, Known, Outcome, Send, Start, Step, STATUS_DONE};
use super::transmission::Transmission;
use crate::counters::{add, count};
use crate::numbers::Numbers;
use crate::shared::{Phase, Shared};

/// One FEB that is open.
pub(super) struct EngineFeb {
    pub(super) peer: Peer,
    /// This program has the FEB's data, not only its commands.
    owned: bool,
    next_reset: Duration,
    transmission: Current,
    commands: Commands,
    start: Option<Start>,
    /// Data came without a transmission, since the last START.
    stray: bool,
    /// STOP was sent since START: one that begins again is stopped again.
    stop_sent: bool,
    /// How often the transmission has begun again since START.
    restarts: u32,
    /// Time-out and attempts of the last START.
    patience: (Duration, u32),
}

impl EngineFeb {
    /// `stray`: data came before it was opened, and was answered by RESET.
    pub(super) fn new(config: FebConfig, owned: bool, stray: bool, shared: Arc<Shared>, numbers: Numbers) -> EngineFeb {
        EngineFeb {
            peer: Peer::new(config, shared),
            owned,
            next_reset: Duration::ZERO,
            transmission: Current::None,
            commands: Commands::new(numbers),
            start: None,
            stray,
            stop_sent: false,
            restarts: 0,
            patience: (Duration::ZERO, 0),
        }
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.peer.shared
    }

    /// Data came before it was opened, and was answered by RESET.
    pub(super) fn was_reset(&mut self) {
        self.stray = true;
    }

    /// A transmission was started, or START is under way.
    pub(super) fn has_begun(&self) -> bool {
        self.transmission.get().is_some() || self.start.is_some()
    }

    /// Forgets the transmission, of which nothing more will be taken.
    pub(super) fn forget(&mut self) {
        let had_one = self.transmission.get().is_some();
        self.transmission = Current::None;
        let restart = self.start.take_if(|start| !start.has_asker());
        if (had_one || restart.is_some()) && self.shared().phase() == Phase::Running {
            self.shared().set_phase(Phase::Aborted);
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Duration> {
        let transmission = self.transmission.get().and_then(Transmission::next_deadline);
        let start = self.start.as_ref().map(|start| start.next);
        [transmission, self.commands.next_deadline(), start].into_iter().flatten().min()
    }

    /// Packets of its window while data comes: 0 if each is to be confirmed at once; `None`: none comes.
    pub(super) fn window(&self) -> Option<u32> {
        let transmission = self.transmission.get().filter(|_| self.shared().phase() == Phase::Running)?;
        Some(transmission.blocks().unwrap_or(0))
    }

    /// Confirms what was stored since the last call, where that is not done at once.
    pub(super) fn confirm(&mut self, out: &mut Outbox<'_>) {
        if let Some(transmission) = self.transmission.get_mut() {
            transmission.confirm(&self.peer.shared, out);
        }
    }

    /// A frame of FADE-10G.
    pub(super) fn frame(&mut self, body: FebFrame<'_>, out: &mut Outbox<'_>) {
        match body {
            FebFrame::Response(response) => self.responses(response, false, out),
            FebFrame::Data(data) => {
                // First: the response may be the one to START, which this very packet follows.
                self.responses(data.response, true, out);
                self.data(&data, out);
            }
        }
    }

    fn data(&mut self, data: &Data<'_>, out: &mut Outbox<'_>) {
        if !matches!(self.transmission, Current::Fade10g(_)) {
            let is_of = self.listens().is_some_and(|resumed| self.peer.may_be_of(resumed, data));
            self.start_meets(Protocol::Fade10g, is_of, out);
        }
        let Current::Fade10g(fade10g) = &mut self.transmission else { return self.stray_data(Protocol::Fade10g, out) };
        match fade10g.admits(data.packet, out.now) {
            Admission::Take => fade10g.data(data, self.peer.swap, &self.peer.shared, out),
            other => self.refused(other, out),
        }
    }

    /// A frame of FADE v1, or what was wrong with it.
    pub(super) fn fade1_frame(&mut self, body: Result<fade1::FebFrame<'_>, fade1::Error>, out: &mut Outbox<'_>) {
        match body {
            Ok(fade1::FebFrame::Data(data)) => self.fade1_data(&data, out),
            Ok(fade1::FebFrame::State(state)) => self.fade1_state(&state, out),
            Err(fade1::Error::Packet(_)) => {
                count(&self.shared().counters.protocol_errors);
                if let Current::Fade1(fade1) = &mut self.transmission {
                    fade1.stop(&self.peer.shared, out.now);
                }
            }
            Err(_) => count(&self.shared().counters.wrong_length),
        }
    }

    /// The answer of a Fadelink FEB to START, STOP or IDENTIFY.
    fn fade1_state(&mut self, state: &fade1::State, out: &mut Outbox<'_>) {
        let known = self.known();
        if let Current::Fade1(fade1) = &mut self.transmission {
            let had_begun = fade1.first().has_come();
            let question = self.commands.identifies();
            fade1.state(state, question.is_some(), self.peer.swap, &self.peer.shared);
            if fade1.first().has_come() && !had_begun {
                self.peer.answers_fade1();
            }
            if let Some(question) = question {
                (question.reply)(Ok(fade1.told_by(state) as u64));
                self.next_command(out);
            }
        } else if self.start.as_ref().is_some_and(|start| start.asks(state, known)) {
            count(&self.shared().counters.responses);
            self.peer.told_state(state);
            self.step(Event::Told(*state), out);
        } else if let Some(command) = self.identifies() {
            count(&self.shared().counters.responses);
            self.peer.told_state(state);
            self.fade1_command(command, out);
            self.next_command(out);
        } else {
            count(&self.shared().counters.unexpected_responses);
        }
    }

    /// The command whose IDENTIFY a state answers.
    fn identifies(&mut self) -> Option<Command> {
        let is_open = self.peer.protocol.is_none() && self.transmission.get().is_none();
        is_open.then(|| self.commands.identifies()).flatten()
    }

    fn fade1_data(&mut self, data: &fade1::Data<'_>, out: &mut Outbox<'_>) {
        if !matches!(self.transmission, Current::Fade1(_)) {
            let is_of = self.listens().is_some_and(|resumed| self.peer.may_be_of_fade1(resumed, data));
            self.start_meets(Protocol::Fade1, is_of, out);
        }
        let Current::Fade1(fade1) = &mut self.transmission else { return self.stray_data(Protocol::Fade1, out) };
        if fade1.first().has_come() {
            return fade1.data(data, self.peer.swap, &self.peer.shared, out);
        }
        self.peer.sent_fade1(data);
        let admission = fade1.admits(data, self.peer.firmware == Some(Firmware::Fadelink), out.now);
        self.peer.speaks(Protocol::Fade1);
        match admission {
            Admission::Take => fade1.data(data, self.peer.swap, &self.peer.shared, out),
            other => self.refused(other, out),
        }
    }

    /// The transmission that is to go on, if its data is waited for.
    fn listens(&self) -> Option<Resumed> {
        self.start.as_ref().and_then(Start::listens)
    }

    /// Data comes while START may be under way. `is_of`: it may be of the transmission that is to go on.
    fn start_meets(&mut self, protocol: Protocol, is_of: bool, out: &mut Outbox<'_>) {
        self.step(if is_of { Event::Found(protocol) } else { Event::Data(protocol) }, out);
    }

    /// A packet that is not to be stored.
    fn refused(&mut self, admission: Admission, out: &mut Outbox<'_>) {
        count(&self.shared().counters.not_started);
        if admission == Admission::Restart {
            self.restart(out);
        }
    }

    /// The FEB goes on with an earlier transmission, of which nothing was confirmed here: RESET and START.
    fn restart(&mut self, out: &mut Outbox<'_>) {
        // It may have been this one, whose first packet was lost: the FEB has taken words for it. That it runs another one may have
        // been said before START reached it.
        count(&self.shared().counters.begun_again);
        self.restarts += 1;
        if self.restarts > START_ATTEMPTS {
            // Its numbers do not begin where they should: what comes from now on is answered by RESET.
            self.forget();
            return;
        }
        self.stop_sent |= self.transmission.get().is_some_and(Transmission::is_stopping);
        self.transmission = Current::None;
        self.begin_start(Goal::Again, true, out.now);
        self.step(Event::Due, out);
    }

    /// Data without a transmission: a RESET was lost, or START is under way.
    fn stray_data(&mut self, protocol: Protocol, out: &mut Outbox<'_>) {
        count(&self.shared().counters.not_started);
        if self.start.is_some() {
            return;
        }
        self.stray = true;
        // Where data is confirmed late, the transmission of a reader that was killed may go on.
        let may_go_on = self.peer.config.confirm == Confirm::Released;
        if self.owned && !may_go_on && out.now >= self.next_reset {
            self.next_reset = out.now + RESET_INTERVAL;
            let is_sent = match protocol {
                Protocol::Fade10g => out.refuse(RESET),
                Protocol::Fade1 => out.refuse_fade1(),
            };
            add(&self.shared().counters.resets, is_sent.into());
        }
    }

    /// `riding`: in a data frame.
    fn responses(&mut self, response: Option<Response>, riding: bool, out: &mut Outbox<'_>) {
        let Some(response) = response else { return };
        let again = self.commands.came(response) && riding;
        let is_identity = response.code == fade10g::CMD_IDENTIFY;
        let is_for_start = |start: &Start| start.is_answered(response.code, response.csn);
        let pending = self.commands.answered(response);
        // One that nobody asked for may be forged. The FEB stays what it is while a transmission runs.
        let is_asked = pending.is_some() || self.start.as_ref().is_some_and(is_for_start);
        if is_identity && is_asked && self.transmission.get().is_none() {
            self.peer.identified(response.value);
        }
        if let Some(pending) = pending {
            count(&self.shared().counters.responses);
            if pending.asks {
                self.send_next(pending.command, false, out);
            } else {
                (pending.command.reply)(Ok(response.value));
                self.next_command(out);
            }
        } else if self.start.as_ref().is_some_and(is_for_start) {
            count(&self.shared().counters.responses);
            if is_identity {
                self.commands.has_told();
            }
            self.step(
                if is_identity { Event::Identified(self.peer.identity) } else { Event::Answered(response.value) },
                out,
            );
        } else if !again {
            count(&self.shared().counters.unexpected_responses);
        }
    }

    fn known(&self) -> Known {
        Known { protocol: self.peer.protocol, firmware: self.peer.firmware }
    }

    /// A step of the START under way, and its result.
    fn step(&mut self, event: Event, out: &mut Outbox<'_>) {
        let known = self.known();
        let Some(start) = self.start.take() else { return };
        match start.step(event, known, out.now, || self.commands.draw()) {
            Step::On(start, send) => {
                self.start = Some(start);
                match send {
                    Some(Send::Reset) => (0..RESETS).for_each(|_| self.reset(out)),
                    Some(Send::Command { code, csn }) => self.send_command(code, csn, 0, out),
                    Some(Send::Start { csn, permit }) => self.send_start(csn, permit, out),
                    None => {}
                }
            }
            Step::End(start, outcome) => self.ends(start, outcome, out),
        }
    }

    /// Sends START, in both protocols where the FEB did not say what it speaks.
    fn send_start(&mut self, csn: u16, permit: Permit, out: &mut Outbox<'_>) {
        let argument = self.peer.start_argument(permit);
        self.send_command(fade10g::CMD_START, csn, argument, out);
        if self.peer.protocol.is_none() {
            out.fade1(fade1::Request::Start { transmission: csn, permit: Some(Permit::NONE) });
        }
    }

    /// START has ended.
    fn ends(&mut self, start: Start, outcome: Outcome, out: &mut Outbox<'_>) {
        add(&self.shared().counters.interrupted, start.interrupted.into());
        add(&self.shared().counters.begun_again, start.begun_again.into());
        let result = match outcome {
            Outcome::Over => return,
            Outcome::Failed(error) => {
                // A transmission that was to begin again is aborted.
                if !start.has_asker() && self.shared().phase() == Phase::Running {
                    self.shared().set_phase(Phase::Aborted);
                }
                Err(error)
            }
            Outcome::Begun(protocol, which) => {
                self.transmission = self.peer.begin(protocol, which);
                if self.stop_sent {
                    self.stopped(out.now);
                }
                if self.stop_sent && protocol == Protocol::Fade10g && !start.has_asker() {
                    // It began again after STOP was sent.
                    self.start = Some(Start::stop_again(self.commands.draw(), self.patience, out.now));
                }
                Ok(STATUS_DONE)
            }
        };
        if let Some(command) = start.asker() {
            (command.reply)(result);
        }
        self.poll(out);
        self.next_command(out);
    }

    /// Goes on with a transmission that still runs.
    pub(super) fn resume(&mut self, resumed: Resumed, command: Command, out: &mut Outbox<'_>) {
        self.transmission = Current::None;
        (self.stop_sent, self.restarts, self.stray) = (resumed.stopped, 0, false);
        self.patience = (command.timeout, command.retries);
        self.begin_start(Goal::Resume(resumed, command), false, out.now);
        self.poll(out);
    }

    fn begin_start(&mut self, goal: Goal, interrupted: bool, now: Duration) {
        let is_told = self.peer.identity.is_some() && self.commands.is_told();
        let known = (self.known(), is_told);
        let mut start = Start::new(goal, self.commands.draw(), known, self.patience, now);
        start.interrupted = interrupted;
        self.start = Some(start);
    }

    /// START of a new transmission.
    fn begin(&mut self, command: Command, out: &mut Outbox<'_>) {
        // Frames of an earlier transmission must not pass for the new one's.
        self.transmission = Current::None;
        (self.stop_sent, self.restarts) = (false, 0);
        self.patience = (command.timeout, command.retries);
        let interrupted = std::mem::take(&mut self.stray);
        self.begin_start(Goal::Begin(command), interrupted, out.now);
        self.poll(out);
    }

    /// Sends a command when those before it are answered.
    pub(super) fn command(&mut self, command: Command, out: &mut Outbox<'_>) {
        self.commands.queue.push_back(command);
        self.next_command(out);
    }

    fn next_command(&mut self, out: &mut Outbox<'_>) {
        let has_asker = self.start.as_ref().is_some_and(Start::has_asker);
        if self.commands.is_busy() || has_asker {
            return;
        }
        while let Some(command) = self.commands.queue.pop_front() {
            if command.code == fade10g::CMD_START {
                return self.begin(command, out);
            }
            // Fadelink's boards of FADE v1 answer it, too.
            let is_question = command.code == fade10g::CMD_IDENTIFY
                && self.peer.firmware == Some(Firmware::Fadelink)
                && self.transmission.get().is_some();
            if self.peer.protocol != Some(Protocol::Fade1) || is_question {
                // To the published core IDENTIFY is a command like any other, so it would not be safer.
                let published = self.peer.firmware == Some(Firmware::Published10g);
                let asks = !self.commands.is_told() && !published && command.code != fade10g::CMD_IDENTIFY;
                return self.send_next(command, asks, out);
            }
            self.fade1_command(command, out);
        }
    }

    /// Begins a command of FADE-10G; `asks`: after the answer to IDENTIFY.
    fn send_next(&mut self, command: Command, asks: bool, out: &mut Outbox<'_>) {
        if command.code == fade10g::CMD_STOP && !asks {
            self.stopped(out.now);
        }
        self.commands.begin(command, asks, out.now);
        self.poll(out);
    }

    /// STOP was asked for.
    fn stopped(&mut self, now: Duration) {
        // One that is to begin again is stopped then.
        self.stop_sent = true;
        if let Some(transmission) = self.transmission.get_mut() {
            transmission.stop(&self.peer.shared, now);
        }
    }

    /// STOP of FADE v1, which nothing will confirm; there are no others.
    fn fade1_command(&mut self, command: Command, out: &mut Outbox<'_>) {
        if command.code == fade10g::CMD_STOP {
            self.stopped(out.now);
            self.poll(out);
            (command.reply)(Ok(0));
        } else {
            (command.reply)(Err(CommandError::NoCommands(command.code)));
        }
    }

    /// Repeats what is overdue.
    pub(super) fn poll(&mut self, out: &mut Outbox<'_>) {
        if self.transmission.get().is_some_and(|transmission| transmission.first().is_overdue(out.now)) {
            self.restart(out);
        }
        if let Some(transmission) = self.transmission.get_mut() {
            transmission.poll(&self.peer.shared, out);
        }
        if self.start.as_ref().is_some_and(|start| out.now >= start.next) {
            self.step(Event::Due, out);
        }
        match self.commands.overdue(out.now) {
            Some(Overdue::Send { code, csn, argument }) => self.send_command(code, csn, argument, out),
            Some(Overdue::Failed(command, error)) => {
                (command.reply)(Err(error));
                self.next_command(out);
            }
            None => {}
        }
    }

    fn send_command(&mut self, code: u16, csn: u16, argument: u32, out: &mut Outbox<'_>) {
        count(&self.shared().counters.commands);
        out.fade10g(Request::Command { code, csn, argument });
    }

    /// RESET, in both protocols where it is not known which one it speaks.
    pub(super) fn reset(&mut self, out: &mut Outbox<'_>) {
        self.reset_as(self.peer.protocol, out);
    }

    fn reset_as(&mut self, protocol: Option<Protocol>, out: &mut Outbox<'_>) {
        count(&self.shared().counters.resets);
        if protocol != Some(Protocol::Fade1) {
            out.fade10g(RESET);
        }
        if protocol != Some(Protocol::Fade10g) {
            out.fade1(fade1::Request::Reset);
        }
    }

    pub(super) fn fail(&mut self, error: CommandError) {
        let starting = self.start.take().and_then(Start::asker);
        for command in starting.into_iter().chain(self.commands.drain()) {
            (command.reply)(Err(error.clone()));
        }
    }
}

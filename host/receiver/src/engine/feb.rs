//! One FEB: its commands, its START and RESET, and its current transmission, in either protocol.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use fadelink_wire::fade10g::{self, Data, FebFrame, Identity, Request, Response};
use fadelink_wire::{fade1, Firmware, MacAddr, Protocol};

use super::command::{
    Actions, Command, CommandError, Confirm, FebConfig, IDENTIFY_ATTEMPTS, IDENTIFY_SHARE, RESET, RESETS,
    RESET_INTERVAL, RESET_PATIENCE, RESET_ROUNDS, RESUME_PATIENCE, START_ATTEMPTS,
};
use super::fade10g_transmission::Fade10g;
use super::fade1_transmission::Fade1;
use super::first::Admission;
use super::start::{Stage, Start};
use crate::counters::{add, count};
use crate::kind::{Kind, Swap};
use crate::numbers::Numbers;
use crate::shared::{Phase, Shared};
use crate::window::{Verdict, Window};

/// Answer to START: the transmission has begun.
const STATUS_DONE: u64 = 0;

/// A command under way.
struct Pending {
    command: Command,
    /// IDENTIFY is sent first, for the number after which this command's comes.
    asks: bool,
    csn: u16,
    attempts: u32,
    next_attempt: Duration,
}

impl Pending {
    /// Code of what is sent now.
    fn code(&self) -> u16 {
        if self.asks {
            fade10g::CMD_IDENTIFY
        } else {
            self.command.code
        }
    }
}

/// What is being received.
enum Transmission {
    None,
    Fade10g(Fade10g),
    Fade1(Fade1),
}

/// Why a transmission of FADE-10G of which `bytes` are confirmed does not go on: only its last packet is not full.
fn ended(bytes: u64) -> CommandError {
    if bytes.is_multiple_of(fade10g::PACKET_BYTES as u64) {
        CommandError::NotRunning
    } else {
        CommandError::AtItsEnd
    }
}

/// The window of a transmission of FADE-10G of which `bytes` are confirmed.
fn resumed_window(config: FebConfig, bytes: u64) -> Window {
    let packets = bytes / fade10g::PACKET_BYTES as u64;
    Window::resumed(config.first_packet, config.window, config.ring_packets, packets)
}

/// A transmission of FADE v1 of which `bytes` are confirmed.
fn resumed_fade1(config: FebConfig, bytes: u64) -> Fade1 {
    Fade1::resumed(config.ring_packets, bytes / fade1::PACKET_BYTES as u64, config.confirm)
}

/// One FEB that is open.
pub(super) struct FebState {
    pub(super) mac: MacAddr,
    /// This program has the FEB's data, not only its commands.
    owned: bool,
    next_reset: Duration,
    config: FebConfig,
    pub(super) shared: Arc<Shared>,
    /// What the FEB was found to speak.
    protocol: Option<Protocol>,
    /// Whose core it was found to run.
    firmware: Option<Firmware>,
    /// What it reported about itself.
    identity: Option<Identity>,
    /// What makes its words native.
    swap: Swap,
    transmission: Transmission,
    numbers: Numbers,
    /// It has told which number it executed last, and none was used since.
    told: bool,
    start: Option<Start>,
    pending: Option<Pending>,
    queue: VecDeque<Command>,
    /// Data came without a transmission, since the last START.
    stray: bool,
    /// STOP was sent since START: one that begins again is stopped again.
    stop_sent: bool,
    /// How often the transmission has begun again since START.
    restarts: u32,
    /// The response that came last.
    last_response: Option<Response>,
    /// Time-out and attempts of the last START.
    patience: (Duration, u32),
}

impl FebState {
    /// `stray`: data came before it was opened, and was answered by RESET.
    pub(super) fn new(
        mac: MacAddr,
        config: FebConfig,
        owned: bool,
        stray: bool,
        shared: Arc<Shared>,
        numbers: Numbers,
    ) -> FebState {
        FebState {
            mac,
            owned,
            next_reset: Duration::ZERO,
            config,
            shared,
            protocol: config.protocol(),
            firmware: config.firmware,
            identity: None,
            swap: Swap::None,
            transmission: Transmission::None,
            numbers,
            told: false,
            start: None,
            pending: None,
            queue: VecDeque::new(),
            stray,
            stop_sent: false,
            restarts: 0,
            last_response: None,
            patience: (Duration::ZERO, 0),
        }
    }

    /// Data came before it was opened, and was answered by RESET.
    pub(super) fn was_reset(&mut self) {
        self.stray = true;
    }

    /// A transmission was started, or START is under way.
    pub(super) fn has_begun(&self) -> bool {
        !matches!(self.transmission, Transmission::None) || self.start.is_some()
    }

    /// Forgets the transmission, of which nothing more will be taken.
    pub(super) fn forget(&mut self) {
        let ended = std::mem::replace(&mut self.transmission, Transmission::None);
        let restart = self.start.take_if(|start| start.asker.is_none());
        if (!matches!(ended, Transmission::None) || restart.is_some()) && self.shared.phase() == Phase::Running {
            self.shared.set_phase(Phase::Aborted);
        }
    }

    /// Sends a command when those before it are answered.
    pub(super) fn command(&mut self, command: Command, local: MacAddr, now: Duration, actions: &mut impl Actions) {
        self.queue.push_back(command);
        self.next_command(local, now, actions);
    }

    pub(super) fn next_deadline(&self) -> Option<Duration> {
        let transmission = match &self.transmission {
            Transmission::Fade1(fade1) => fade1.next_deadline(),
            Transmission::Fade10g(fade10g) => fade10g.first.deadline(),
            Transmission::None => None,
        };
        let pending = self.pending.as_ref().map(|pending| pending.next_attempt);
        let start = self.start.as_ref().map(|start| start.next);
        [transmission, pending, start].into_iter().flatten().min()
    }

    pub(super) fn frame(&mut self, body: FebFrame<'_>, local: MacAddr, now: Duration, actions: &mut impl Actions) {
        match body {
            FebFrame::Response(response) => self.responses(response, false, local, now, actions),
            FebFrame::Data(data) => {
                // First: the response may be the one to START, which this very packet follows.
                self.responses(data.response, true, local, now, actions);
                self.data(&data, local, now, actions);
            }
        }
    }

    fn data(&mut self, data: &Data<'_>, local: MacAddr, now: Duration, actions: &mut impl Actions) {
        let mac = self.mac;
        let config = self.config;
        let is_of_it = |bytes| resumed_window(config, bytes).judge(data.packet, None, 0) != Verdict::ProtocolError;
        if let Some((start, bytes)) = self.listening(is_of_it) {
            self.resume_fade10g(start, bytes);
            self.next_command(local, now, actions);
        }
        let admission = match &mut self.transmission {
            Transmission::Fade10g(fade10g) => fade10g.admits(data.packet, now),
            _ => return self.stray_data(Protocol::Fade10g, local, now, actions),
        };
        if self.admitted(admission, local, now, actions) {
            if let Transmission::Fade10g(fade10g) = &mut self.transmission {
                fade10g.data(data, (self.swap, self.stop_sent), &self.shared, |ack| {
                    actions.send(&ack.to_frame(mac, local))
                });
            }
        }
    }

    /// Confirms what was stored since the last call, where that is not done at once.
    pub(super) fn confirm(&mut self, local: MacAddr, actions: &mut impl Actions) {
        let mac = self.mac;
        match &mut self.transmission {
            Transmission::Fade10g(fade10g) => {
                fade10g.confirm(&self.shared, |ack| actions.send(&ack.to_frame(mac, local)));
            }
            Transmission::Fade1(fade1) => {
                fade1.confirm(&self.shared, |ack| actions.send(&ack.to_frame(mac, local)));
            }
            Transmission::None => {}
        }
    }

    /// Packets of its window while data comes: 0 if each is to be confirmed at once; `None`: none comes.
    pub(super) fn window(&self) -> Option<u32> {
        let comes = self.shared.phase() == Phase::Running;
        match &self.transmission {
            Transmission::Fade10g(fade10g) if comes => Some(fade10g.blocks().unwrap_or(0)),
            Transmission::Fade1(fade1) if comes => Some(fade1.blocks().unwrap_or(0)),
            _ => None,
        }
    }

    /// A frame of FADE v1, or what was wrong with it.
    pub(super) fn fade1_frame(
        &mut self,
        body: Result<fade1::FebFrame<'_>, fade1::Error>,
        local: MacAddr,
        now: Duration,
        actions: &mut impl Actions,
    ) {
        match body {
            Ok(fade1::FebFrame::Data(data)) => self.fade1_data(&data, local, now, actions),
            Ok(fade1::FebFrame::State(state)) => self.fade1_state(&state, local, now, actions),
            Err(fade1::Error::Packet(_)) => {
                count(&self.shared.counters.protocol_errors);
                if let Transmission::Fade1(fade1) = &mut self.transmission {
                    fade1.stop(&self.shared, now);
                }
            }
            Err(_) => count(&self.shared.counters.wrong_length),
        }
    }

    /// The answer of a Fadelink FEB to STOP, or to IDENTIFY.
    fn fade1_state(&mut self, state: &fade1::State, local: MacAddr, now: Duration, actions: &mut impl Actions) {
        let is_unknown = self.protocol.is_none();
        let asks = |start: &&mut Start| is_unknown && start.stage == Stage::Identify && start.resume.is_none();
        if let Transmission::Fade1(fade1) = &mut self.transmission {
            fade1.state(state, &self.shared);
        } else if let Some(start) = self.start.as_mut().filter(asks) {
            count(&self.shared.counters.responses);
            // It need not be asked again.
            (start.attempts, start.next) = (IDENTIFY_ATTEMPTS, now);
            self.protocol = Some(Protocol::Fade1);
            self.firmware = self.config.firmware.or(Some(Firmware::Fadelink));
            self.poll(local, now, actions);
        } else {
            count(&self.shared.counters.unexpected_responses);
        }
    }

    fn fade1_data(&mut self, data: &fade1::Data<'_>, local: MacAddr, now: Duration, actions: &mut impl Actions) {
        let mac = self.mac;
        let config = self.config;
        if let Some((start, bytes)) = self.listening(|bytes| resumed_fade1(config, bytes).knows(data)) {
            self.note_fade1_firmware(data);
            self.resume_fade1(start, bytes);
            self.next_command(local, now, actions);
        }
        let both = self.protocol.is_none();
        if let Some(start) = self.start.take_if(|start| both && start.stage == Stage::Start && start.attempts > 0) {
            // It answers START of FADE v1, which is sent where the FEB did not say what it speaks.
            self.begin_fade1(start, None);
            self.next_command(local, now, actions);
        }
        let admission = match &mut self.transmission {
            Transmission::Fade1(fade1) if fade1.first.has_come() => Admission::Take,
            Transmission::Fade1(fade1) => {
                let admission = fade1.admits(data, now);
                self.note_fade1_firmware(data);
                self.tell_kind(Protocol::Fade1);
                admission
            }
            _ => return self.stray_data(Protocol::Fade1, local, now, actions),
        };
        if self.admitted(admission, local, now, actions) {
            if let Transmission::Fade1(fade1) = &mut self.transmission {
                fade1.data(data, self.swap, &self.shared, now, |ack| actions.send(&ack.to_frame(mac, local)));
            }
        }
    }

    /// Whether a packet is to be stored.
    fn admitted(&mut self, admission: Admission, local: MacAddr, now: Duration, actions: &mut impl Actions) -> bool {
        match admission {
            Admission::Take => return true,
            Admission::Wait => count(&self.shared.counters.not_started),
            Admission::Restart => {
                count(&self.shared.counters.not_started);
                self.restart(local, now, actions);
            }
        }
        false
    }

    /// The FEB goes on with an earlier transmission, of which nothing was confirmed here: RESET and START.
    fn restart(&mut self, local: MacAddr, now: Duration, actions: &mut impl Actions) {
        self.restarts += 1;
        if self.restarts > START_ATTEMPTS {
            // Its numbers do not begin where they should: what comes from now on is answered by RESET.
            self.forget();
            return;
        }
        let csn = self.draw();
        let mut start = Start::new(Stage::Reset, csn, self.patience, now);
        (start.interrupted, start.heard) = (true, true);
        if let Transmission::Fade1(fade1) = &self.transmission {
            self.stop_sent |= fade1.is_stopping();
        }
        self.transmission = Transmission::None;
        self.send_resets(&mut start, local, now, actions);
        self.start = Some(start);
    }

    /// STOP of FADE v1, which nothing will confirm; there are no others.
    fn fade1_command(&mut self, command: Command, local: MacAddr, now: Duration, actions: &mut impl Actions) {
        if command.code == fade10g::CMD_STOP {
            // One that is to begin again is stopped then.
            self.stop_sent = true;
            if let Transmission::Fade1(fade1) = &mut self.transmission {
                fade1.stop(&self.shared, now);
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

    /// Data without a transmission: a RESET was lost, or START is under way.
    fn stray_data(&mut self, protocol: Protocol, local: MacAddr, now: Duration, actions: &mut impl Actions) {
        count(&self.shared.counters.not_started);
        if let Some(start) = &mut self.start {
            start.data();
            return;
        }
        self.stray = true;
        // Where data is confirmed late, the transmission of a reader that was killed may go on.
        let may_go_on = self.config.confirm == Confirm::Released;
        if self.owned && !may_go_on && now >= self.next_reset {
            self.next_reset = now + RESET_INTERVAL;
            self.reset_as(Some(protocol), local, actions);
        }
    }

    /// `riding`: in a data frame.
    fn responses(
        &mut self,
        response: Option<Response>,
        riding: bool,
        local: MacAddr,
        now: Duration,
        actions: &mut impl Actions,
    ) {
        let Some(response) = response else { return };
        let again = self.last_response.replace(response) == Some(response) && riding;
        self.note_number(response);
        // It stays what it is while a transmission runs.
        if response.code == fade10g::CMD_IDENTIFY && matches!(self.transmission, Transmission::None) {
            self.identified(response.value);
        }
        let answers = |p: &mut Pending| p.attempts > 0 && (p.code(), p.csn) == (response.code, response.csn);
        if let Some(pending) = self.pending.take_if(answers) {
            count(&self.shared.counters.responses);
            self.told |= response.code == fade10g::CMD_IDENTIFY;
            if pending.asks {
                self.pending = Some(self.drawn(pending.command, false, now));
                self.poll_pending(local, now, actions);
                return;
            }
            (pending.command.reply)(Ok(response.value));
            self.next_command(local, now, actions);
        } else if self.answers_start(response) {
            count(&self.shared.counters.responses);
            self.start_answered(response.value, local, now, actions);
        } else if !again {
            count(&self.shared.counters.unexpected_responses);
        }
    }

    /// Notes the number that the FEB has executed last. The answer to IDENTIFY of Fadelink's cores tells it; any other
    /// response has it.
    fn note_number(&mut self, response: Response) {
        if response.code == fade10g::CMD_RESET_BY {
            // It is not executed, and has a number of its own.
            return;
        }
        let identity = Identity::from_value(response.value).filter(|_| response.code == fade10g::CMD_IDENTIFY);
        if let Some(csn) = identity.map_or(Some(response.csn), |identity| identity.csn) {
            self.numbers.saw(csn);
        }
    }

    /// The FEB has answered IDENTIFY, so it speaks FADE-10G.
    fn identified(&mut self, value: u64) {
        self.protocol = Some(Protocol::Fade10g);
        self.identity = Identity::from_value(value);
        if self.config.firmware.is_none() {
            let ours = self.identity.is_some();
            self.firmware = Some(if ours { Firmware::Fadelink } else { Firmware::Published10g });
        }
    }

    fn answers_start(&self, response: Response) -> bool {
        self.start.as_ref().is_some_and(|start| {
            let code = match start.stage {
                Stage::Identify => fade10g::CMD_IDENTIFY,
                Stage::Listen | Stage::Reset => return false,
                Stage::Start => fade10g::CMD_START,
                Stage::Stop => fade10g::CMD_STOP,
            };
            start.attempts > 0 && (code, start.csn) == (response.code, response.csn)
        })
    }

    fn start_answered(&mut self, value: u64, local: MacAddr, now: Duration, actions: &mut impl Actions) {
        let Some(mut start) = self.start.take() else { return };
        match (start.stage, start.resume, self.identity) {
            (Stage::Identify, Some(bytes), Some(Identity { running: true, .. })) => {
                self.resume_fade10g(start, bytes);
                self.next_command(local, now, actions);
                return;
            }
            (Stage::Identify, Some(bytes), Some(_)) => {
                self.failed(start, ended(bytes));
                self.next_command(local, now, actions);
                return;
            }
            (Stage::Identify, Some(_), None) => {
                start.enter(Stage::Listen, 0, now + RESUME_PATIENCE);
                self.start = Some(start);
                return;
            }
            _ => {}
        }
        self.told |= start.stage == Stage::Identify;
        match start.stage {
            Stage::Identify if self.firmware == Some(Firmware::Fadelink) => {
                start.enter(Stage::Start, self.draw(), now);
                self.start = Some(start);
                self.poll(local, now, actions);
            }
            Stage::Stop => {}
            Stage::Start if value == STATUS_DONE => {
                self.begin_fade10g(start);
                if self.stop_sent {
                    // It began again after STOP was sent.
                    let csn = self.draw();
                    self.start = Some(Start::new(Stage::Stop, csn, self.patience, now));
                    self.poll(local, now, actions);
                }
                self.next_command(local, now, actions);
            }
            Stage::Start if start.refusals == START_ATTEMPTS => {
                self.failed(start, CommandError::StillRunning(value));
                self.next_command(local, now, actions);
            }
            stage => {
                if stage == Stage::Start {
                    // An earlier transmission still runs, perhaps of a reader that was killed.
                    start.refusals += 1;
                    start.interrupted = true;
                }
                (start.heard, start.reset_since) = (true, None);
                self.send_resets(&mut start, local, now, actions);
                self.start = Some(start);
            }
        }
    }

    fn begin_fade10g(&mut self, start: Start) {
        self.protocol = Some(Protocol::Fade10g);
        // One that does not tell what it is, in so many attempts, is none of Fadelink's.
        let proven = *self.firmware.get_or_insert(Firmware::Published10g) == Firmware::Fadelink;
        self.tell_kind(Protocol::Fade10g);
        let window = Window::new(self.config.first_packet, self.config.window, self.config.ring_packets);
        self.shared.begin(0, Some(start.csn));
        self.transmission = Transmission::Fade10g(self.fade10g(window, proven));
        self.begun(start);
    }

    /// `proven`: all that comes is of this transmission.
    fn fade10g(&self, window: Window, proven: bool) -> Fade10g {
        let ours = self.firmware == Some(Firmware::Fadelink);
        let blocks = self.identity.filter(|identity| ours && identity.block_acks).map(|identity| identity.window);
        Fade10g::new(window, proven, blocks, self.config.confirm)
    }

    /// START of a transmission that goes on, if its data is waited for and this is some, and the bytes of it that are confirmed.
    fn listening(&mut self, is_of_it: impl FnOnce(u64) -> bool) -> Option<(Start, u64)> {
        let start = self.start.take_if(|start| start.stage == Stage::Listen && start.resume.is_some_and(is_of_it))?;
        let bytes = start.resume?;
        Some((start, bytes))
    }

    /// Goes on with a transmission of FADE-10G.
    fn resume_fade10g(&mut self, start: Start, bytes: u64) {
        if ended(bytes) == CommandError::AtItsEnd {
            return self.failed(start, CommandError::AtItsEnd);
        }
        self.protocol = Some(Protocol::Fade10g);
        self.firmware.get_or_insert(Firmware::Published10g);
        self.tell_kind(Protocol::Fade10g);
        self.shared.begin(bytes, self.identity.map(|identity| identity.transmission));
        self.transmission = Transmission::Fade10g(self.fade10g(resumed_window(self.config, bytes), true));
        self.begun(start);
    }

    /// Goes on with a transmission of FADE v1.
    fn resume_fade1(&mut self, start: Start, bytes: u64) {
        self.protocol = Some(Protocol::Fade1);
        self.tell_kind(Protocol::Fade1);
        self.shared.begin(bytes, None);
        self.transmission = Transmission::Fade1(resumed_fade1(self.config, bytes));
        self.begun(start);
    }

    fn note_fade1_firmware(&mut self, data: &fade1::Data<'_>) {
        if self.config.firmware.is_none() {
            let ours = data.retry == fade1::RETRY_FADELINK;
            self.firmware = Some(if ours { Firmware::Fadelink } else { Firmware::PublishedV1 });
        }
    }

    /// Goes on with a transmission that still runs, of which `bytes` bytes are confirmed. `stopped`: its end was asked for.
    pub(super) fn resume(
        &mut self,
        (bytes, stopped): (u64, bool),
        command: Command,
        local: MacAddr,
        now: Duration,
        actions: &mut impl Actions,
    ) {
        self.transmission = Transmission::None;
        (self.stop_sent, self.restarts, self.stray) = (stopped, 0, false);
        self.patience = (command.timeout, command.retries);
        let tells = self.protocol != Some(Protocol::Fade1) && self.firmware != Some(Firmware::Published10g);
        let stage = if tells { Stage::Identify } else { Stage::Listen };
        let begin = if tells { now } else { now + RESUME_PATIENCE };
        let csn = self.draw();
        let mut start = Start::new(stage, csn, self.patience, begin);
        (start.resume, start.stopped, start.asker) = (Some(bytes), stopped, Some(command));
        self.start = Some(start);
        self.poll(local, now, actions);
    }

    /// `next_start`: when START is sent, where no data has come yet.
    fn begin_fade1(&mut self, start: Start, next_start: Option<Duration>) {
        self.protocol = Some(Protocol::Fade1);
        self.tell_kind(Protocol::Fade1);
        self.shared.begin(0, Some(start.csn));
        let FebConfig { ring_packets, confirm, .. } = self.config;
        self.transmission = Transmission::Fade1(Fade1::new(ring_packets, start.csn, next_start, confirm));
        self.begun(start);
    }

    fn begun(&mut self, start: Start) {
        add(&self.shared.counters.interrupted, start.interrupted.into());
        start.tell(Ok(STATUS_DONE));
    }

    /// START has failed. A transmission that was to restart is aborted.
    fn failed(&mut self, start: Start, error: CommandError) {
        add(&self.shared.counters.interrupted, start.interrupted.into());
        if start.asker.is_none() && self.shared.phase() == Phase::Running {
            self.shared.set_phase(Phase::Aborted);
        }
        start.tell(Err(error));
    }

    /// Tells the reader what the FEB is, and decides what makes its words native.
    fn tell_kind(&mut self, protocol: Protocol) {
        let firmware = self.firmware;
        let word_order = self.config.word_order.or(firmware.map(Firmware::word_order));
        self.shared.set_kind(Kind { protocol, firmware, word_order });
        self.swap = word_order.map_or(Swap::None, |order| Swap::of(order, firmware));
    }

    /// A number for a command, or for IDENTIFY.
    fn draw(&mut self) -> u16 {
        // Those who count elsewhere, as the kernel driver, may send something before the next one.
        self.told = false;
        self.numbers.draw()
    }

    /// A command with a number of its own, to be sent at once. `asks`: after the answer to IDENTIFY.
    fn drawn(&mut self, command: Command, asks: bool, now: Duration) -> Pending {
        self.stop_sent |= command.code == fade10g::CMD_STOP && !asks;
        Pending { command, asks, csn: self.draw(), attempts: 0, next_attempt: now }
    }

    fn next_command(&mut self, local: MacAddr, now: Duration, actions: &mut impl Actions) {
        let has_asker = self.start.as_ref().is_some_and(|start| start.asker.is_some());
        if self.pending.is_some() || has_asker {
            return;
        }
        while let Some(command) = self.queue.pop_front() {
            if command.code == fade10g::CMD_START {
                self.begin_start(command, now);
            } else if self.protocol == Some(Protocol::Fade1) {
                self.fade1_command(command, local, now, actions);
                continue;
            } else {
                // To the published core IDENTIFY is a command like any other, so it would not be safer.
                let published = self.firmware == Some(Firmware::Published10g);
                let asks = !self.told && !published && command.code != fade10g::CMD_IDENTIFY;
                self.pending = Some(self.drawn(command, asks, now));
            }
            self.poll(local, now, actions);
            return;
        }
    }

    fn begin_start(&mut self, command: Command, now: Duration) {
        // Frames of an earlier transmission must not pass for the new one's.
        self.transmission = Transmission::None;
        (self.stop_sent, self.restarts) = (false, 0);
        self.patience = (command.timeout, command.retries);
        let stage = match (self.firmware, self.protocol) {
            (Some(Firmware::Fadelink), Some(Protocol::Fade10g)) if self.identity.is_some() && self.told => Stage::Start,
            (Some(Firmware::Published10g), _) | (_, Some(Protocol::Fade1)) => Stage::Reset,
            _ => Stage::Identify,
        };
        let csn = self.draw();
        let mut start = Start::new(stage, csn, self.patience, now);
        start.asker = Some(command);
        start.interrupted = std::mem::take(&mut self.stray);
        // Of the stage Reset, the first is sent at once.
        start.heard = stage == Stage::Reset;
        self.start = Some(start);
    }

    /// Repeats what is overdue.
    pub(super) fn poll(&mut self, local: MacAddr, now: Duration, actions: &mut impl Actions) {
        let overdue = match &self.transmission {
            Transmission::Fade10g(fade10g) => fade10g.first.is_overdue(now),
            Transmission::Fade1(fade1) => fade1.first.is_overdue(now),
            Transmission::None => false,
        };
        if overdue {
            self.restart(local, now, actions);
        }
        self.fade1_poll(local, now, actions);
        if let Some(start) = self.start.take_if(|start| now >= start.next) {
            self.poll_start(start, local, now, actions);
        }
        self.poll_pending(local, now, actions);
    }

    fn poll_pending(&mut self, local: MacAddr, now: Duration, actions: &mut impl Actions) {
        let Some(mut pending) = self.pending.take_if(|pending| now >= pending.next_attempt) else { return };
        let Command { code, argument, timeout, retries, .. } = pending.command;
        let share = if pending.asks { IDENTIFY_SHARE } else { 1 };
        let attempts = pending.attempts;
        if attempts >= retries.saturating_add(1).saturating_mul(share) {
            let error = match pending.asks {
                true => CommandError::NotSent { code, attempts },
                false => CommandError::Timeout { code, attempts },
            };
            (pending.command.reply)(Err(error));
            self.next_command(local, now, actions);
            return;
        }
        pending.next_attempt = now + timeout / share;
        pending.attempts += 1;
        let argument = if pending.asks { 0 } else { argument };
        self.send_command(pending.code(), pending.csn, argument, local, actions);
        self.pending = Some(pending);
    }

    fn poll_start(&mut self, mut start: Start, local: MacAddr, now: Duration, actions: &mut impl Actions) {
        let (timeout, retries) = start.patience;
        if start.stage == Stage::Identify && start.attempts < IDENTIFY_ATTEMPTS {
            start.next = now + timeout / IDENTIFY_SHARE;
            start.attempts += 1;
            self.send_command(fade10g::CMD_IDENTIFY, start.csn, 0, local, actions);
            self.start = Some(start);
            return;
        }
        if let Some(bytes) = start.resume {
            if start.stage == Stage::Listen && start.stopped && self.protocol != Some(Protocol::Fade10g) {
                // If it still runs, it sends its last packet at the next STOP.
                self.resume_fade1(start, bytes);
                self.next_command(local, now, actions);
            } else if start.stage == Stage::Listen {
                let error = match self.protocol {
                    Some(Protocol::Fade10g) => ended(bytes),
                    // No packet of FADE v1 is the last one by its length.
                    _ => CommandError::NotRunning,
                };
                self.failed(start, error);
                self.next_command(local, now, actions);
            } else {
                start.enter(Stage::Listen, 0, now + RESUME_PATIENCE);
                self.start = Some(start);
            }
            return;
        }
        // A Fadelink FEB answers START by telling whether it still runs.
        let tells = (self.firmware, self.protocol) == (Some(Firmware::Fadelink), Some(Protocol::Fade10g));
        let rounds = if tells { 1 } else { RESET_ROUNDS };
        let again = start.stage == Stage::Reset && (start.heard || start.rounds < rounds);
        if start.stage == Stage::Identify || again {
            if start.heard && start.reset_since.is_some_and(|since| now >= since + RESET_PATIENCE) {
                self.failed(start, CommandError::SendsOn);
                self.next_command(local, now, actions);
                return;
            }
            self.send_resets(&mut start, local, now, actions);
            self.start = Some(start);
            return;
        }
        if start.stage == Stage::Reset {
            if self.protocol == Some(Protocol::Fade1) {
                self.begin_fade1(start, Some(now));
                if self.stop_sent {
                    if let Transmission::Fade1(fade1) = &mut self.transmission {
                        fade1.stop(&self.shared, now);
                    }
                }
                self.fade1_poll(local, now, actions);
                self.next_command(local, now, actions);
                return;
            }
            start.enter(Stage::Start, self.draw(), now);
        }
        if start.attempts > retries && start.stage == Stage::Stop {
            return;
        }
        if start.attempts > retries {
            let error = CommandError::Timeout { code: fade10g::CMD_START, attempts: start.attempts };
            self.failed(start, error);
            self.next_command(local, now, actions);
            return;
        }
        start.next = now + timeout;
        start.attempts += 1;
        let code = if start.stage == Stage::Stop { fade10g::CMD_STOP } else { fade10g::CMD_START };
        self.send_command(code, start.csn, 0, local, actions);
        if self.protocol.is_none() {
            actions.send(&fade1::Request::Start { transmission: start.csn }.to_frame(self.mac, local));
        }
        self.start = Some(start);
    }

    fn send_command(&mut self, code: u16, csn: u16, argument: u32, local: MacAddr, actions: &mut impl Actions) {
        count(&self.shared.counters.commands);
        actions.send(&Request::Command { code, csn, argument }.to_frame(self.mac, local));
    }

    fn send_resets(&mut self, start: &mut Start, local: MacAddr, now: Duration, actions: &mut impl Actions) {
        for _ in 0..RESETS {
            self.reset_as(self.protocol, local, actions);
        }
        start.has_reset(now);
    }

    pub(super) fn reset(&mut self, local: MacAddr, actions: &mut impl Actions) {
        let protocol = match self.transmission {
            Transmission::Fade10g(_) => Some(Protocol::Fade10g),
            Transmission::Fade1(_) => Some(Protocol::Fade1),
            Transmission::None => self.protocol,
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
        let starting = self.start.take().and_then(|start| start.asker);
        let pending = self.pending.take().map(|pending| pending.command);
        for command in starting.into_iter().chain(pending).chain(self.queue.drain(..)) {
            (command.reply)(Err(error.clone()));
        }
    }
}

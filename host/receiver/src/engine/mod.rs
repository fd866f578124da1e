//! The receiver's side of FADE-10G and FADE v1 (design sections 2 and 3): a frame or a moment in time goes in, frames to
//! send come out. No clock, no socket, no thread: time is a parameter.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use fadelink_wire::fade10g::{self, Data, FebFrame, Request, Response};
use fadelink_wire::{fade1, MacAddr, Protocol};

use crate::counters::{add, count, LinkCounters};
use crate::shared::{Phase, Shared};
use crate::window::{Verdict, Window, MAX_WINDOW};

mod fade1_feb;

use fade1_feb::{fade1_start, Fade1, Starting};

/// Shortest time between two RESETs to a FEB that nobody opened.
const RESET_INTERVAL: Duration = Duration::from_millis(50);
/// FEBs that nobody opened, of which the time of the last RESET is kept.
const STRANGERS: usize = 64;
/// RESETs that end a transmission when its FEB is closed.
const CLOSING_RESETS: usize = 3;
/// Time after a RESET in which frames under way arrive and are thrown away.
const SETTLE: Duration = Duration::from_millis(20);
/// How often a START that meets a running transmission is preceded by RESET.
const START_ATTEMPTS: u32 = 10;

/// Packets of 8192 bytes that hold two sets of FADE v1.
const LEAST_RING_FADE1: u64 = 2 * (fade1::SET_PACKETS as usize * fade1::PACKET_BYTES / fade10g::PACKET_BYTES) as u64;

/// Answer to START: the transmission has begun.
const STATUS_DONE: u64 = 0;

/// Settings of one FEB.
#[derive(Debug, Clone, Copy)]
pub struct FebConfig {
    /// Packets of the ring, a power of two, at least the window.
    pub ring_packets: u64,
    /// Packets of the FEB's window, 1 to 64; a larger value than the FEB's own is safe.
    pub window: u32,
    /// Number of the first packet of a transmission: 0 but in tests of the wrap.
    pub first_packet: u32,
    /// What the FEB speaks; `None`: START finds out.
    pub protocol: Option<Protocol>,
}

impl Default for FebConfig {
    fn default() -> Self {
        FebConfig { ring_packets: 2048, window: MAX_WINDOW, first_packet: 0, protocol: None }
    }
}

impl FebConfig {
    /// Checks the values.
    ///
    /// # Errors
    /// A sentence that names the field, the value and what was expected.
    pub fn check(&self) -> Result<(), String> {
        if !(1..=MAX_WINDOW).contains(&self.window) {
            return Err(format!("window {}: expected 1 to {MAX_WINDOW} packets", self.window));
        }
        if self.protocol != Some(Protocol::Fade10g) && self.ring_packets < LEAST_RING_FADE1 {
            return Err(format!(
                "ring of {} packets: expected at least {LEAST_RING_FADE1}, two sets of FADE v1; for FADE-10G alone, say so",
                self.ring_packets
            ));
        }
        if !self.ring_packets.is_power_of_two()
            || self.ring_packets < u64::from(self.window)
            || self.ring_packets > 1 << 24
        {
            return Err(format!(
                "ring of {} packets: expected a power of two from the window ({}) to {}",
                self.ring_packets,
                self.window,
                1 << 24
            ));
        }
        Ok(())
    }
}

/// Why a command has no response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// No response in time.
    #[error("no response to command {code:#06x} after {attempts} attempts")]
    Timeout {
        /// Code of the command.
        code: u16,
        /// Frames sent.
        attempts: u32,
    },
    /// START found a transmission that RESET did not end.
    #[error("the FEB still runs an earlier transmission after {START_ATTEMPTS} RESETs (status {0})")]
    StillRunning(u64),
    /// The FEB was closed, or the receiver ended, meanwhile.
    #[error("the FEB was closed before it responded")]
    Closed,
    /// Another program on this computer sends commands to the FEB.
    #[error("another program keeps sending commands to the FEB")]
    Busy,
    /// A command to a FEB of FADE v1, which has START, STOP and RESET alone.
    #[error("command {0:#06x}: FADE v1 has no user commands")]
    NoCommands(u16),
    /// Codes that are no commands.
    #[error("command code {0:#06x}: expected STOP, IDENTIFY or 0x0100 to 0xffff")]
    BadCode(u16),
}

/// Is given the value of a command's response.
pub type Reply = Box<dyn FnOnce(Result<u64, CommandError>) + Send>;

/// A command to send.
pub struct Command {
    /// Code.
    pub code: u16,
    /// Argument.
    pub argument: u32,
    /// Time from each attempt to the next.
    pub timeout: Duration,
    /// Attempts after the first.
    pub retries: u32,
    /// Is told the outcome, once.
    pub reply: Reply,
}

/// What the engine does to the world.
pub trait Actions {
    /// Sends a frame.
    fn send(&mut self, frame: &[u8]);
    /// True if another program on this computer has opened `feb`.
    fn opened_elsewhere(&mut self, feb: MacAddr) -> bool {
        let _ = feb;
        false
    }
}

impl<F: FnMut(&[u8])> Actions for F {
    fn send(&mut self, frame: &[u8]) {
        self(frame);
    }
}

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
    Fade10g(Window),
    Fade1(Fade1),
}

struct Feb {
    mac: MacAddr,
    /// This program has the FEB's data, not only its commands.
    owned: bool,
    next_reset: Duration,
    config: FebConfig,
    shared: Arc<Shared>,
    transmission: Transmission,
    next_csn: u16,
    pending: Option<Pending>,
    queue: VecDeque<Command>,
    next_sequence: Option<u16>,
}

struct Stranger {
    mac: MacAddr,
    next_reset: Duration,
    opened_elsewhere: bool,
}

/// The protocol for all FEBs behind one interface.
pub struct Engine {
    local: MacAddr,
    /// Never sends a RESET on its own: for programs that look on.
    passive: bool,
    febs: HashMap<MacAddr, Feb>,
    strangers: VecDeque<Stranger>,
    link: Arc<LinkCounters>,
}

impl Engine {
    /// For an interface with address `local`. A `passive` engine leaves alone FEBs that nobody
    /// opened.
    pub fn new(local: MacAddr, passive: bool, link: Arc<LinkCounters>) -> Engine {
        Engine { local, passive, febs: HashMap::new(), strangers: VecDeque::new(), link }
    }

    /// Opens `mac`: from now on its frames are taken. `owned`: for its data, which no other program
    /// has; else for commands alone. False if it is open already.
    pub fn open(&mut self, mac: MacAddr, config: FebConfig, owned: bool, shared: Arc<Shared>) -> bool {
        if self.febs.contains_key(&mac) {
            return false;
        }
        self.febs.insert(
            mac,
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
                next_sequence: None,
            },
        );
        true
    }

    /// Closes `mac`; if a transmission was started, with RESET.
    pub fn close(&mut self, mac: MacAddr, actions: &mut impl Actions) {
        if let Some(mut feb) = self.febs.remove(&mac) {
            if !matches!(feb.transmission, Transmission::None) || feb.starting() {
                // It is not confirmed, and from now on nobody here would repeat it.
                for _ in 0..CLOSING_RESETS {
                    feb.reset(self.local, actions);
                }
            }
            feb.fail(CommandError::Closed);
            if feb.shared.phase() == Phase::Running {
                feb.shared.set_phase(Phase::Aborted);
            }
        }
    }

    /// Closes every FEB without a word to it: the interface has failed.
    pub fn abort(&mut self) {
        for (_, mut feb) in self.febs.drain() {
            feb.fail(CommandError::Closed);
            if feb.shared.phase() != Phase::Complete {
                feb.shared.set_phase(Phase::Aborted);
            }
        }
    }

    /// Sends RESET: the FEB forgets its transmission, and so does the receiver.
    pub fn reset(&mut self, mac: MacAddr, actions: &mut impl Actions) {
        if let Some(feb) = self.febs.get_mut(&mac) {
            feb.reset(self.local, actions);
            let ended = std::mem::replace(&mut feb.transmission, Transmission::None);
            if !matches!(ended, Transmission::None) && feb.shared.phase() == Phase::Running {
                feb.shared.set_phase(Phase::Aborted);
            }
        }
    }

    /// Sends a command to `mac`; a second one waits for the first. START only for the owner of the
    /// ring's [`crate::shared::Reader`], with no slice of it alive.
    pub fn command(&mut self, mac: MacAddr, command: Command, now: Duration, actions: &mut impl Actions) {
        let is_command = matches!(
            command.code,
            fade10g::CMD_START | fade10g::CMD_STOP | fade10g::CMD_IDENTIFY | fade10g::CMD_USER_FIRST..=u16::MAX
        );
        match self.febs.get_mut(&mac) {
            _ if !is_command => (command.reply)(Err(CommandError::BadCode(command.code))),
            None => (command.reply)(Err(CommandError::Closed)),
            Some(feb) => {
                feb.queue.push_back(command);
                feb.next_command(self.local, now, actions);
            }
        }
    }

    /// The next time at which [`Self::poll`] has something to do.
    pub fn next_deadline(&self) -> Option<Duration> {
        self.febs.values().filter_map(Feb::next_deadline).min()
    }

    /// Repeats commands whose response is overdue.
    pub fn poll(&mut self, now: Duration, actions: &mut impl Actions) {
        for feb in self.febs.values_mut() {
            feb.poll(self.local, now, actions);
        }
    }

    /// Takes a frame from the wire, without its frame check sequence.
    pub fn frame(&mut self, frame: &[u8], now: Duration, actions: &mut impl Actions) {
        count(&self.link.frames);
        if Protocol::of(frame) == Protocol::Fade1 {
            self.fade1_frame(frame, now, actions);
            return;
        }
        let error = match fade10g::parse_feb(frame) {
            Ok((header, _)) if header.dst != self.local => {
                count(&self.link.other_destination);
                return;
            }
            Ok((header, body)) => {
                match self.febs.get_mut(&header.src) {
                    Some(feb) => feb.frame(body, self.local, now, actions),
                    None => {
                        let reset = matches!(body, FebFrame::Data(_)).then(|| RESET.to_frame(header.src, self.local));
                        self.stranger(header.src, reset, now, actions);
                    }
                }
                return;
            }
            Err(error) => error,
        };
        // A frame whose length or content is wrong is charged to its FEB where it has one.
        let source = fadelink_wire::ethernet::Header::split(frame).map(|(header, _)| header.src);
        let feb = source.and_then(|source| self.febs.get(&source)).map(|feb| &feb.shared.counters);
        match (error, feb) {
            (fade10g::Error::Length(_), Some(feb)) => count(&feb.wrong_length),
            (fade10g::Error::ValidWords(_), Some(feb)) => count(&feb.wrong_valid_words),
            (fade10g::Error::Length(_) | fade10g::Error::ValidWords(_), None) => count(&self.link.unknown_feb),
            (fade10g::Error::Truncated { .. }, _) => count(&self.link.truncated),
            (fade10g::Error::EtherType(_), _) => count(&self.link.wrong_ethertype),
            (fade10g::Error::Version(_), _) => count(&self.link.wrong_version),
            (fade10g::Error::Type(_) | fade10g::Error::Code(_), _) => count(&self.link.wrong_type),
        }
    }

    /// A frame of FADE v1.
    fn fade1_frame(&mut self, frame: &[u8], now: Duration, actions: &mut impl Actions) {
        let Some((header, _)) = fadelink_wire::ethernet::Header::split(frame) else { return };
        let data = fade1::parse_feb(frame).map(|(_, data)| data);
        match data {
            Err(fade1::Error::Truncated { .. }) => count(&self.link.truncated),
            Err(fade1::Error::EtherType(_)) => count(&self.link.wrong_ethertype),
            Err(fade1::Error::Version(_)) => count(&self.link.wrong_version),
            Err(fade1::Error::Type(_)) => count(&self.link.wrong_type),
            _ if header.dst != self.local => count(&self.link.other_destination),
            Ok(_) | Err(fade1::Error::Length(_) | fade1::Error::Packet(_)) => match self.febs.get_mut(&header.src) {
                Some(feb) => feb.fade1_frame(data, self.local, now, actions),
                None => {
                    let reset = data.is_ok().then(|| fade1::Request::Reset.to_frame(header.src, self.local));
                    self.stranger(header.src, reset, now, actions);
                }
            },
        }
    }

    /// A frame from a FEB that nobody opened: for data the `reset`, rate-limited. A response harms nobody:
    /// another program may have asked for it.
    fn stranger(
        &mut self,
        mac: MacAddr,
        reset: Option<[u8; fade10g::REQUEST_LEN]>,
        now: Duration,
        actions: &mut impl Actions,
    ) {
        let at = self.strangers.iter().position(|s| s.mac == mac).unwrap_or_else(|| {
            if self.strangers.len() == STRANGERS {
                self.strangers.pop_front();
            }
            self.strangers.push_back(Stranger { mac, next_reset: now, opened_elsewhere: false });
            self.strangers.len() - 1
        });
        let stranger = &mut self.strangers[at];
        let due = now >= stranger.next_reset;
        if due {
            stranger.next_reset = now + RESET_INTERVAL;
            stranger.opened_elsewhere = actions.opened_elsewhere(mac);
        }
        if stranger.opened_elsewhere {
            count(&self.link.other_program);
            return;
        }
        count(&self.link.unknown_feb);
        if let Some(reset) = reset.filter(|_| due && !self.passive && !mac.is_multicast()) {
            count(&self.link.resets);
            actions.send(&reset);
        }
    }
}

const RESET: Request = Request::Command { code: fade10g::CMD_RESET, csn: 0, argument: 0 };

impl Feb {
    fn speaks_fade1(&self) -> bool {
        self.config.protocol == Some(Protocol::Fade1) || matches!(self.transmission, Transmission::Fade1(_))
    }

    fn next_deadline(&self) -> Option<Duration> {
        let stop = match &self.transmission {
            Transmission::Fade1(fade1) => fade1.next_deadline(),
            _ => None,
        };
        self.pending.as_ref().map(|pending| pending.next_attempt).into_iter().chain(stop).min()
    }

    fn frame(&mut self, body: FebFrame<'_>, local: MacAddr, now: Duration, actions: &mut impl Actions) {
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
        if !matches!(self.transmission, Transmission::Fade10g(_)) {
            self.stray_data(Protocol::Fade10g, local, now, actions);
        }
        let counters = &self.shared.counters;
        let Transmission::Fade10g(window) = &mut self.transmission else { return };
        counters.delay.store(data.delay.into(), std::sync::atomic::Ordering::Relaxed);
        let expected = self.next_sequence.unwrap_or(data.sequence);
        let skipped = data.sequence.wrapping_sub(expected);
        if skipped < 1 << 15 {
            add(&counters.missing_frames, skipped.into());
            self.next_sequence = Some(data.sequence.wrapping_add(1));
        } else if counters.missing_frames.load(std::sync::atomic::Ordering::Relaxed) > 0 {
            // Late, not lost.
            add(&counters.missing_frames, u64::MAX);
        }

        let released = self.shared.head() / fade10g::PACKET_BYTES as u64;
        match window.judge(data.packet, data.last, released) {
            Verdict::Store { index } => {
                // SAFETY: the window gives a place only when the reader has released it.
                unsafe { self.shared.ring.write(window.slot(index), data.payload) };
                window.stored(index, data.last);
                count(&counters.packets);
                self.shared.set_tail(window.bytes());
                if window.complete() {
                    self.shared.set_phase(Phase::Complete);
                }
            }
            Verdict::ConfirmAgain => count(&counters.duplicates),
            Verdict::NoSpace => {
                count(&counters.no_space);
                return;
            }
            Verdict::ProtocolError => {
                count(&counters.protocol_errors);
                return;
            }
        }
        let ack = Request::Ack { negative: false, sequence: data.sequence, packet: data.packet, delay: data.delay };
        actions.send(&ack.to_frame(self.mac, local));
        count(&self.shared.counters.acks);
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
                self.transmission = Transmission::Fade10g(window);
                self.next_sequence = None;
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

    fn poll(&mut self, local: MacAddr, now: Duration, actions: &mut impl Actions) {
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
            pending.next_attempt = now + fade1_start(self.mac, &mut pending.fade1, timeout, local, actions);
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

    fn reset(&mut self, local: MacAddr, actions: &mut impl Actions) {
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

    fn fail(&mut self, error: CommandError) {
        for command in self.pending.take().map(|p| p.command).into_iter().chain(self.queue.drain(..)) {
            (command.reply)(Err(error.clone()));
        }
    }
}

//! The receiver's side of FADE-10G and FADE v1 (docs/protocol): input is a frame or a time, output are frames to
//! send. No clock, no socket, no thread: time is a parameter.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use fadelink_wire::fade10g::{self, FebFrame};
use fadelink_wire::{fade1, MacAddr, Protocol};

use crate::counters::{count, LinkCounters};
use crate::numbers::Numbers;
use crate::shared::{Phase, Shared};

mod command;
mod commands;
mod current;
mod fade10g_transmission;
mod fade1_transmission;
mod feb;
mod first;
mod held;
mod known;
mod outbox;
mod peer;
mod start;
mod transmission;

pub use command::{Actions, Command, CommandError, Confirm, FebConfig, Reply, Resumed, WrongField};
use command::{RESET, RESETS, RESET_INTERVAL};
use feb::EngineFeb;
use outbox::Outbox;

/// FEBs that nobody opened, of which the time of the last RESET is kept.
const STRANGERS: usize = 64;

struct Stranger {
    mac: MacAddr,
    next_reset: Duration,
    opened_elsewhere: bool,
    /// Its data was answered by RESET.
    was_reset: bool,
}

/// The protocol for all FEBs behind one interface.
pub struct Engine {
    local: MacAddr,
    /// Never sends a RESET on its own: for programs that only observe.
    passive: bool,
    febs: HashMap<MacAddr, EngineFeb>,
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
    /// has; else for commands alone. `numbers`: of its commands. False if it is open already.
    pub fn open(
        &mut self,
        mac: MacAddr,
        config: FebConfig,
        owned: bool,
        shared: Arc<Shared>,
        numbers: Numbers,
    ) -> bool {
        if self.is_open(mac) {
            return false;
        }
        let was_reset = self.forget(mac);
        self.febs.insert(mac, EngineFeb::new(config, owned, was_reset, shared, numbers));
        true
    }

    /// Forgets what is known of `mac`, which is not open: true if its data was answered by RESET.
    pub fn forget(&mut self, mac: MacAddr) -> bool {
        let stranger = self.strangers.iter().position(|stranger| stranger.mac == mac);
        stranger.and_then(|at| self.strangers.remove(at)).is_some_and(|stranger| stranger.was_reset)
    }

    /// The engine that saw the frames of `mac`, which is open here now, has answered its data by RESET.
    pub fn was_reset(&mut self, mac: MacAddr) {
        if let Some(feb) = self.febs.get_mut(&mac) {
            feb.was_reset();
        }
    }

    /// True if `mac` is open.
    pub fn is_open(&self, mac: MacAddr) -> bool {
        self.febs.contains_key(&mac)
    }

    /// Closes `mac`; if a transmission was started, with RESET.
    pub fn close(&mut self, mac: MacAddr, actions: &mut impl Actions) {
        if let Some(mut feb) = self.febs.remove(&mac) {
            if feb.has_begun() {
                // It is not confirmed, and from now on nobody here would repeat it.
                for _ in 0..RESETS {
                    feb.reset(&mut Outbox::untimed(mac, self.local, actions));
                }
            }
            feb.fail(CommandError::Closed);
            if feb.shared().phase() == Phase::Running {
                feb.shared().set_phase(Phase::Aborted);
            }
        }
    }

    /// Closes `mac` without a word to it: it keeps what is not confirmed, for a program that goes on. Nor is its data answered
    /// by RESET from now on.
    pub fn leave(&mut self, mac: MacAddr) {
        if let Some(mut feb) = self.febs.remove(&mac) {
            feb.fail(CommandError::Closed);
            if feb.shared().phase() == Phase::Running {
                feb.shared().set_phase(Phase::Aborted);
            }
        }
        self.forget(mac);
        self.strangers.push_back(Stranger { mac, next_reset: Duration::MAX, opened_elsewhere: true, was_reset: false });
    }

    /// Closes every FEB without a word to it: the interface has failed.
    pub fn abort(&mut self) {
        for (_, mut feb) in self.febs.drain() {
            feb.fail(CommandError::Closed);
            if feb.shared().phase() != Phase::Complete {
                feb.shared().set_phase(Phase::Aborted);
            }
        }
    }

    /// Sends RESET: the FEB forgets its transmission, and so does the receiver.
    pub fn reset(&mut self, mac: MacAddr, actions: &mut impl Actions) {
        if let Some(feb) = self.febs.get_mut(&mac) {
            feb.reset(&mut Outbox::untimed(mac, self.local, actions));
            feb.forget();
        }
    }

    /// Sends a command to `mac`; a second one waits for the first. START only for the owner of the
    /// ring's [`crate::shared::Reader`], with no slice of it alive.
    pub fn command(&mut self, mac: MacAddr, command: Command, now: Duration, actions: &mut impl Actions) {
        let is_command = matches!(
            command.code,
            fade10g::CMD_START
                | fade10g::CMD_STOP
                | fade10g::CMD_IDENTIFY
                | fade10g::CMD_RESET_BY
                | fade10g::CMD_USER_FIRST..=u16::MAX
        );
        match self.febs.get_mut(&mac) {
            _ if !is_command => (command.reply)(Err(CommandError::BadCode(command.code))),
            None => (command.reply)(Err(CommandError::Closed)),
            Some(feb) => {
                feb.command(command, &mut Outbox::new(mac, self.local, now, actions));
            }
        }
    }

    /// Goes on with a transmission that still runs; as [`Self::command`] with START. An error if it does not run any more.
    pub fn resume(
        &mut self,
        mac: MacAddr,
        transmission: Resumed,
        command: Command,
        now: Duration,
        actions: &mut impl Actions,
    ) {
        match self.febs.get_mut(&mac) {
            None => (command.reply)(Err(CommandError::Closed)),
            Some(feb) => feb.resume(transmission, command, &mut Outbox::new(mac, self.local, now, actions)),
        }
    }

    /// The next time at which [`Self::poll`] has something to do.
    pub fn next_deadline(&self) -> Option<Duration> {
        self.febs.values().filter_map(EngineFeb::next_deadline).min()
    }

    /// Repeats commands whose response is overdue.
    pub fn poll(&mut self, now: Duration, actions: &mut impl Actions) {
        for (mac, feb) in &mut self.febs {
            feb.poll(&mut Outbox::new(*mac, self.local, now, actions));
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
                    Some(feb) => feb.frame(body, &mut Outbox::new(header.src, self.local, now, actions)),
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
        let feb = source.and_then(|source| self.febs.get(&source)).map(|feb| &feb.shared().counters);
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

    /// All frames that waited were taken: confirms what is not confirmed yet. FEBs that take block ACKs are told what was
    /// stored of them by one frame, others at once.
    pub fn confirm(&mut self, actions: &mut impl Actions) {
        for (mac, feb) in &mut self.febs {
            feb.confirm(&mut Outbox::untimed(*mac, self.local, actions));
        }
    }

    /// Packets of the smallest window of the FEBs whose data comes; 0 if one of them wants each frame confirmed at once,
    /// or if no data comes.
    pub fn window(&self) -> u32 {
        self.febs.values().filter_map(EngineFeb::window).min().unwrap_or(0)
    }

    /// A frame of FADE v1.
    fn fade1_frame(&mut self, frame: &[u8], now: Duration, actions: &mut impl Actions) {
        let Some((header, _)) = fadelink_wire::ethernet::Header::split(frame) else { return };
        let body = fade1::parse_feb(frame).map(|(_, body)| body);
        match body {
            Err(fade1::Error::Truncated { .. }) => count(&self.link.truncated),
            Err(fade1::Error::EtherType(_)) => count(&self.link.wrong_ethertype),
            Err(fade1::Error::Version(_)) => count(&self.link.wrong_version),
            Err(fade1::Error::Type(_) | fade1::Error::State(_)) => count(&self.link.wrong_type),
            _ if header.dst != self.local => count(&self.link.other_destination),
            Ok(_) | Err(fade1::Error::Length(_) | fade1::Error::Packet(_)) => match self.febs.get_mut(&header.src) {
                Some(feb) => feb.fade1_frame(body, &mut Outbox::new(header.src, self.local, now, actions)),
                None => {
                    let is_data = matches!(body, Ok(fade1::FebFrame::Data(_)));
                    let reset = is_data.then(|| fade1::Request::Reset.to_frame(header.src, self.local));
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
            self.strangers.push_back(Stranger { mac, next_reset: now, opened_elsewhere: false, was_reset: false });
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
            if actions.refuse(mac, &reset) {
                stranger.was_reset = true;
                count(&self.link.resets);
            }
        }
    }
}

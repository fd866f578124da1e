//! START, as states and steps: finds out the kind of a FEB, sends RESET if START alone proves nothing, and sends START; or
//! finds out whether a transmission goes on. It sends nothing itself: a step has an event and gives its result.
//!
//! ```text
//!                                  ┌──┐ a permit: START again, with it
//!            IDENTIFY is answered  v  │   START is answered
//! Identify ──────────────────────> Start ──────────────────> begun
//!   │  │   (Fadelink's FADE-10G)    ^ │
//!   │  │ all others                 │ │ an earlier transmission runs
//!   │  └──────────────────> Reset ──┘ │ (or IDENTIFY again, if it was not answered)
//!   │                        ^ │ └────┼── FADE v1 ─────────> begun
//!   │                        └─┴──────┘
//!   │ a transmission that goes on
//!   ├────────────────────────────────────── it runs ───────> resumed
//!   └──────────────> Listen ─────────────── data of it ────> resumed
//! ```

use std::time::Duration;

use fadelink_wire::fade10g::{self, Identity};
use fadelink_wire::{fade1, Firmware, Permit, Protocol};

use super::command::{
    Command, CommandError, Resumed, IDENTIFY_ATTEMPTS, IDENTIFY_SHARE, RESET_PATIENCE, RESET_ROUNDS, RESUME_PATIENCE,
    SETTLE, START_ATTEMPTS, START_INTERVAL,
};
use crate::shared::Ending;

/// Answer to START: the transmission has begun.
pub(super) const STATUS_DONE: u64 = 0;

/// What is being done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// IDENTIFY was sent so many times.
    Identify { sent: u32 },
    /// Data of the transmission that is to go on is waited for.
    Listen,
    /// RESET was sent, first at `since`: frames under way come in, then there must be silence. `rounds`: RESETs that met with
    /// it, or are about to; `heard`: data came since the last one.
    Reset { since: Duration, rounds: u32, heard: bool },
    /// START was sent so many times.
    Start { sent: u32 },
    /// The transmission has begun again, and STOP was sent again.
    Stop { sent: u32 },
}

/// What is wanted.
pub(super) enum Goal {
    /// A new transmission.
    Begin(Command),
    /// One goes on.
    Resume(Resumed, Command),
    /// The transmission begins again, or is stopped again; nobody asked for it.
    Again,
}

/// What is known of the FEB.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    pub(super) protocol: Option<Protocol>,
    pub(super) firmware: Option<Firmware>,
}

impl Known {
    /// A Fadelink FEB answers START by telling whether it still runs.
    fn tells(self) -> bool {
        (self.firmware, self.protocol) == (Some(Firmware::Fadelink), Some(Protocol::Fade10g))
    }
}

/// What happens.
#[derive(Debug, Clone, Copy)]
pub(super) enum Event {
    /// The time has come.
    Due,
    /// FADE-10G has answered IDENTIFY; `None`: it is not Fadelink's.
    Identified(Option<Identity>),
    /// FADE-10G has answered START, or STOP.
    Answered(u64),
    /// FADE v1 has told the state of its transmission.
    Told(fade1::State),
    /// Data came, which is not of a transmission.
    Data(Protocol),
    /// It is of the transmission that is to go on.
    Found(Protocol),
}

/// What is to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Send {
    /// RESET, repeated at once.
    Reset,
    /// A command of FADE-10G.
    Command { code: u16, csn: u16 },
    /// START, which a FEB that gives permits obeys with this one alone.
    Start { csn: u16, permit: Permit },
}

/// What a step leads to.
pub(super) enum Step {
    /// It goes on.
    On(Start, Option<Send>),
    /// It has ended.
    End(Start, Outcome),
}

/// How a START ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// A transmission is received from now on.
    Begun(Protocol, Which),
    /// There is nothing more to do.
    Over,
    Failed(CommandError),
}

/// Which transmission begins here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    /// A new one, of this number. `next_start`: when START of FADE v1 is sent, where no data has come.
    New { number: u16, next_start: Option<Duration> },
    /// One goes on.
    Resumed(Resumed),
}

/// A START under way.
pub(super) struct Start {
    state: State,
    goal: Goal,
    /// Number of IDENTIFY, then of START.
    csn: u16,
    /// Time from each attempt to the next, and attempts after the first.
    patience: (Duration, u32),
    /// When there is something to do.
    pub(super) next: Duration,
    /// STARTs that were answered by "an earlier transmission runs".
    refusals: u32,
    /// Number of a START that was obeyed, by a FEB that has not told what it is.
    obeyed: Option<u16>,
    /// What START shows.
    permit: Permit,
    /// An earlier transmission ran.
    pub(super) interrupted: bool,
    /// STARTs that may have been obeyed, and that are not any more: the FEB was reset or switched off behind them.
    pub(super) begun_again: u32,
}

impl Start {
    /// At `now`, with a first number; `is_told`: the FEB has just told that it is Fadelink's, and the number that it executed last.
    pub(super) fn new(
        goal: Goal,
        csn: u16,
        (known, is_told): (Known, bool),
        patience: (Duration, u32),
        now: Duration,
    ) -> Start {
        let by_reset = State::Reset { since: now, rounds: 0, heard: false };
        let published = matches!(known.firmware, Some(Firmware::Published10g | Firmware::PublishedV1));
        let state = match goal {
            Goal::Resume(..) if published => State::Listen,
            Goal::Begin(_) if is_told && known.tells() => State::Start { sent: 0 },
            Goal::Begin(_) if published || known.protocol == Some(Protocol::Fade1) => by_reset,
            Goal::Again => by_reset,
            Goal::Begin(_) | Goal::Resume(..) => State::Identify { sent: 0 },
        };
        let next = if state == State::Listen { now + RESUME_PATIENCE } else { now };
        Start { next, ..Start::of(goal, state, csn, patience, now) }
    }

    fn of(goal: Goal, state: State, csn: u16, patience: (Duration, u32), now: Duration) -> Start {
        let permit = Permit::NONE;
        let (obeyed, interrupted) = (None, false);
        Start { state, goal, csn, patience, next: now, refusals: 0, obeyed, permit, interrupted, begun_again: 0 }
    }

    /// STOP, of a transmission that has begun again.
    pub(super) fn stop_again(csn: u16, patience: (Duration, u32), now: Duration) -> Start {
        Start::of(Goal::Again, State::Stop { sent: 0 }, csn, patience, now)
    }

    /// A response of FADE-10G with this code and number is for it.
    pub(super) fn is_answered(&self, code: u16, number: u16) -> bool {
        let (expected, sent) = match self.state {
            State::Identify { sent } => (fade10g::CMD_IDENTIFY, sent),
            State::Start { sent } => (fade10g::CMD_START, sent),
            State::Stop { sent } => (fade10g::CMD_STOP, sent),
            State::Listen | State::Reset { .. } => return false,
        };
        sent > 0 && (expected, self.csn) == (code, number)
    }

    /// A state of FADE v1 is for it.
    pub(super) fn asks(&self, state: &fade1::State, known: Known) -> bool {
        let is_open = match self.goal {
            Goal::Resume(resumed, _) => resumed.protocol.or(known.protocol) != Some(Protocol::Fade10g),
            _ => known.protocol.is_none(),
        };
        // A board that gives permits has not obeyed the START that was sent without one.
        let is_asked = matches!(self.state, State::Start { sent: 1.. }) && state.permit.is_some();
        is_open && (is_asked || matches!(self.state, State::Identify { .. }))
    }

    /// The transmission whose data is waited for.
    pub(super) fn listens(&self) -> Option<Resumed> {
        self.resumed().filter(|_| self.state == State::Listen)
    }

    fn resumed(&self) -> Option<Resumed> {
        match self.goal {
            Goal::Resume(resumed, _) => Some(resumed),
            _ => None,
        }
    }

    /// Somebody waits for the outcome.
    pub(super) fn has_asker(&self) -> bool {
        !matches!(self.goal, Goal::Again)
    }

    /// Who does.
    pub(super) fn asker(self) -> Option<Command> {
        match self.goal {
            Goal::Begin(command) | Goal::Resume(_, command) => Some(command),
            Goal::Again => None,
        }
    }

    /// What an event leads to. `draw`: gives numbers for commands.
    pub(super) fn step(self, event: Event, known: Known, now: Duration, draw: impl FnMut() -> u16) -> Step {
        match event {
            Event::Due => self.due(known, now, draw),
            Event::Identified(identity) => self.identified(identity, known, now, draw),
            Event::Answered(value) if self.is_unknown(known) => {
                let obeyed = Some(self.csn).filter(|_| value == STATUS_DONE);
                Start { obeyed, ..self }.identify_again(now, draw)
            }
            Event::Answered(value) => self.answered(value, now, draw),
            Event::Told(state) => self.told(state, now),
            Event::Data(protocol) => self.data(protocol, known, now),
            Event::Found(protocol) if !self.resumed().is_none_or(|resumed| resumed.may_be(protocol)) => {
                Step::On(self, None)
            }
            Event::Found(Protocol::Fade10g) if self.is_unknown(known) => self.identify_again(now, draw),
            Event::Found(protocol) => self.found(protocol),
        }
    }

    /// FADE-10G speaks, and has not told what it is. Every core answers IDENTIFY, so the cable was out when it was asked: which
    /// core it is decides the order of its words.
    fn is_unknown(&self, known: Known) -> bool {
        known.firmware.is_none() && matches!(self.state, State::Start { .. } | State::Listen)
    }

    fn identify_again(mut self, now: Duration, mut draw: impl FnMut() -> u16) -> Step {
        if self.refusals == START_ATTEMPTS {
            return self.fail(CommandError::Timeout { code: fade10g::CMD_IDENTIFY, attempts: IDENTIFY_ATTEMPTS });
        }
        self.refusals += 1;
        self.csn = draw();
        self.permit = Permit::NONE;
        let next = now + self.patience.0 / IDENTIFY_SHARE;
        self.send(fade10g::CMD_IDENTIFY, State::Identify { sent: 1 }, next)
    }

    fn due(self, known: Known, now: Duration, mut draw: impl FnMut() -> u16) -> Step {
        let (timeout, retries) = self.patience;
        match self.state {
            State::Identify { sent } if sent < IDENTIFY_ATTEMPTS => {
                self.send(fade10g::CMD_IDENTIFY, State::Identify { sent: sent + 1 }, now + timeout / IDENTIFY_SHARE)
            }
            State::Identify { sent } => match self.goal {
                // Each of Fadelink's answers, whatever it runs: it is away, and may have kept all that it has.
                Goal::Resume(..) if known.firmware == Some(Firmware::Fadelink) => {
                    self.fail(CommandError::Timeout { code: fade10g::CMD_IDENTIFY, attempts: sent })
                }
                Goal::Resume(..) => self.listen(now),
                // RESET would end the transmission that has begun.
                _ if self.obeyed.is_some() => self.identify_again(now, draw),
                _ => self.reset(now),
            },
            State::Listen => self.found_nothing(known),
            State::Reset { heard: true, since, .. } if now >= since + RESET_PATIENCE => {
                self.fail(CommandError::SendsOn)
            }
            State::Reset { heard: true, since, .. } => self.reset_again(since, 1, now),
            State::Reset { since, rounds, .. } if rounds < if known.tells() { 1 } else { RESET_ROUNDS } => {
                self.reset_again(since, rounds + 1, now)
            }
            State::Reset { .. } if known.protocol == Some(Protocol::Fade1) => {
                let number = self.csn;
                self.begun(Protocol::Fade1, number, Some(now))
            }
            State::Reset { .. } => self.start(draw(), now),
            State::Start { sent, .. } if sent > retries => {
                self.fail(CommandError::Timeout { code: fade10g::CMD_START, attempts: sent })
            }
            State::Start { sent } => self.send_start(sent + 1, now),
            State::Stop { sent, .. } if sent > retries => Step::End(self, Outcome::Over),
            State::Stop { sent } => self.send(fade10g::CMD_STOP, State::Stop { sent: sent + 1 }, now + timeout),
        }
    }

    fn identified(
        self,
        identity: Option<Identity>,
        known: Known,
        now: Duration,
        mut draw: impl FnMut() -> u16,
    ) -> Step {
        let Some(resumed) = self.resumed() else {
            // The first packet proves that of a published core.
            let is_ours = |number: u16| identity.is_none_or(|told| told.running && told.transmission == number);
            return match (self.obeyed.filter(|number| is_ours(*number)), known.firmware) {
                (Some(number), _) => self.begun(Protocol::Fade10g, number, None),
                (None, Some(Firmware::Fadelink)) => self.start(draw(), now),
                (None, _) => self.reset(now),
            };
        };
        let Some(identity) = identity.filter(|_| resumed.may_be(Protocol::Fade10g)) else { return self.listen(now) };
        let number = Some(identity.transmission);
        match Ending::of_fade10g(&identity, resumed.number) {
            _ if resumed.has_last() => self.fail(CommandError::AtItsEnd),
            Ending::Unknown if identity.running => self.resume(Protocol::Fade10g, Resumed { number, ..resumed }),
            ending => self.fail(CommandError::NotRunning(ending)),
        }
    }

    fn told(self, state: fade1::State, now: Duration) -> Step {
        let Some(resumed) = self.resumed() else { return self.reset(now) };
        let number = Some(state.transmission);
        let packets = (resumed.bytes / fade1::PACKET_BYTES as u64) as u32;
        let is_another = resumed.number.is_some_and(|expected| expected != state.transmission);
        let ending = match state.phase {
            fade1::Phase::None => Ending::SwitchedOff,
            _ if is_another => Ending::OtherTransmission,
            fade1::Phase::Running | fade1::Phase::Stopping => {
                return self.resume(Protocol::Fade1, Resumed { number, ..resumed });
            }
            fade1::Phase::Reset => Ending::Reset,
            // Nothing tells one that ended from another one.
            fade1::Phase::Ended if resumed.number.is_none() => Ending::Unknown,
            fade1::Phase::Ended if state.packets == packets => return self.fail(CommandError::AtItsEnd),
            fade1::Phase::Ended => Ending::OtherNumber,
        };
        self.fail(CommandError::NotRunning(ending))
    }

    fn answered(mut self, value: u64, now: Duration, mut draw: impl FnMut() -> u16) -> Step {
        // With a permit it may have been obeyed before: that permit was used up then, and this is the answer to a repetition.
        let may_have_begun =
            matches!(self.state, State::Start { .. }) && !self.permit.is_none() && value != STATUS_DONE;
        self.begun_again += u32::from(may_have_begun);
        match self.state {
            State::Start { .. } if value == STATUS_DONE => {
                let number = self.csn;
                self.begun(Protocol::Fade10g, number, None)
            }
            State::Start { .. } if self.refusals == START_ATTEMPTS => self.fail(CommandError::StillRunning(value)),
            State::Start { .. } => {
                self.refusals += 1;
                if let Some(permit) = Permit::from_answer(value) {
                    return Start { permit, ..self }.start(draw(), now);
                }
                // An earlier transmission still runs, perhaps of a reader that was killed.
                self.interrupted = true;
                self.reset(now)
            }
            _ => Step::End(self, Outcome::Over),
        }
    }

    fn data(mut self, protocol: Protocol, known: Known, now: Duration) -> Step {
        match &mut self.state {
            // It answers START of FADE v1, which is sent where the FEB did not say what it speaks.
            State::Start { sent } if *sent > 0 && (protocol, known.protocol) == (Protocol::Fade1, None) => {
                let number = self.csn;
                return self.begun(Protocol::Fade1, number, Some(now + START_INTERVAL));
            }
            State::Reset { heard, .. } => (*heard, self.interrupted) = (true, true),
            // Of the transmission that has begun.
            State::Identify { .. } if self.obeyed.is_some() => {}
            State::Identify { .. } => self.interrupted = true,
            // After START it may be the new transmission's already.
            State::Listen | State::Start { .. } | State::Stop { .. } => {}
        }
        Step::On(self, None)
    }

    fn found(self, protocol: Protocol) -> Step {
        match self.resumed() {
            Some(resumed) if resumed.has_last() => self.fail(CommandError::AtItsEnd),
            Some(resumed) => self.resume(protocol, resumed),
            None => Step::On(self, None),
        }
    }

    /// No data came.
    fn found_nothing(self, known: Known) -> Step {
        let is_10g = |resumed: &Resumed| resumed.protocol.or(known.protocol) == Some(Protocol::Fade10g);
        match self.resumed() {
            Some(resumed) if resumed.has_last() => self.fail(CommandError::AtItsEnd),
            // If it still runs, it sends its last packet at the next STOP.
            Some(resumed) if resumed.stopped && !is_10g(&resumed) => self.resume(Protocol::Fade1, resumed),
            _ => self.fail(CommandError::NotRunning(Ending::Unknown)),
        }
    }

    fn listen(mut self, now: Duration) -> Step {
        (self.state, self.next) = (State::Listen, now + RESUME_PATIENCE);
        Step::On(self, None)
    }

    fn reset(self, now: Duration) -> Step {
        self.reset_again(now, 1, now)
    }

    fn reset_again(mut self, since: Duration, rounds: u32, now: Duration) -> Step {
        self.permit = Permit::NONE;
        // What comes next is decided when frames under way have come.
        (self.state, self.next) = (State::Reset { since, rounds, heard: false }, now + SETTLE);
        Step::On(self, Some(Send::Reset))
    }

    fn start(mut self, csn: u16, now: Duration) -> Step {
        self.csn = csn;
        self.send_start(1, now)
    }

    fn send_start(mut self, sent: u32, now: Duration) -> Step {
        (self.state, self.next) = (State::Start { sent }, now + self.patience.0);
        let Start { csn, permit, .. } = self;
        Step::On(self, Some(Send::Start { csn, permit }))
    }

    fn send(mut self, code: u16, state: State, next: Duration) -> Step {
        (self.state, self.next) = (state, next);
        let csn = self.csn;
        Step::On(self, Some(Send::Command { code, csn }))
    }

    fn begun(self, protocol: Protocol, number: u16, next_start: Option<Duration>) -> Step {
        Step::End(self, Outcome::Begun(protocol, Which::New { number, next_start }))
    }

    fn resume(self, protocol: Protocol, resumed: Resumed) -> Step {
        Step::End(self, Outcome::Begun(protocol, Which::Resumed(resumed)))
    }

    fn fail(self, error: CommandError) -> Step {
        Step::End(self, Outcome::Failed(error))
    }
}

#[cfg(test)]
mod tests;

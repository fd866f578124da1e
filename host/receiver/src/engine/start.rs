//! START: finds out the kind of a FEB, sends RESET if START alone proves nothing, and sends START.

use std::time::Duration;

use super::command::{Command, CommandError, Resumed, SETTLE};

/// What is being done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// IDENTIFY was sent.
    Identify,
    /// Data of the transmission that is to go on is waited for.
    Listen,
    /// RESET was sent: frames under way come in, then there must be silence.
    Reset,
    /// START was sent.
    Start,
    /// The transmission has begun again, and STOP was sent again.
    Stop,
}

/// A START under way.
pub(super) struct Start {
    pub(super) stage: Stage,
    /// Of IDENTIFY, then of START.
    pub(super) csn: u16,
    /// Frames sent of the stage.
    pub(super) attempts: u32,
    /// STARTs that were answered by "an earlier transmission runs".
    pub(super) refusals: u32,
    /// RESETs that met with silence, or are about to.
    pub(super) rounds: u32,
    /// When RESET was sent first.
    pub(super) reset_since: Option<Duration>,
    /// Data came since RESET.
    pub(super) heard: bool,
    /// An earlier transmission ran.
    pub(super) interrupted: bool,
    /// When there is something to do.
    pub(super) next: Duration,
    /// Time from each attempt to the next, and attempts after the first.
    pub(super) patience: (Duration, u32),
    /// The transmission that is to go on; `None`: a new one begins.
    pub(super) resume: Option<Resumed>,
    /// Who asked for it; nobody, where a transmission had to begin again.
    pub(super) asker: Option<Command>,
}

impl Start {
    pub(super) fn new(stage: Stage, csn: u16, patience: (Duration, u32), now: Duration) -> Start {
        Start {
            stage,
            csn,
            attempts: 0,
            refusals: 0,
            rounds: 0,
            reset_since: None,
            heard: false,
            interrupted: false,
            next: now,
            patience,
            resume: None,
            asker: None,
        }
    }

    /// RESET is sent now; what comes next is decided when frames under way have come.
    pub(super) fn has_reset(&mut self, now: Duration) {
        self.stage = Stage::Reset;
        self.rounds = if self.heard { 1 } else { self.rounds + 1 };
        self.reset_since.get_or_insert(now);
        self.heard = false;
        self.next = now + SETTLE;
    }

    /// START, or STOP, is sent next.
    pub(super) fn enter(&mut self, stage: Stage, csn: u16, now: Duration) {
        (self.stage, self.csn, self.attempts, self.next) = (stage, csn, 0, now);
    }

    /// Data came.
    pub(super) fn data(&mut self) {
        // After START it may be the new transmission's already.
        self.interrupted |= matches!(self.stage, Stage::Identify | Stage::Reset);
        self.heard = true;
    }

    /// Tells who asked for it the outcome.
    pub(super) fn tell(self, outcome: Result<u64, CommandError>) {
        if let Some(command) = self.asker {
            (command.reply)(outcome);
        }
    }
}

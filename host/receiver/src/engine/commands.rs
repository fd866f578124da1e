//! Commands of FADE-10G, one after another, each with a number of its own (docs/protocol/fade10g.md, "Exactly once").

use std::collections::VecDeque;
use std::time::Duration;

use fadelink_wire::fade10g::{self, Identity, Response};

use super::command::{Command, CommandError, IDENTIFY_SHARE};
use crate::numbers::Numbers;

/// A command under way.
pub(super) struct Pending {
    pub(super) command: Command,
    /// IDENTIFY is sent first, for the number after which this command's comes.
    pub(super) asks: bool,
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

    /// No response came to any attempt.
    fn timed_out(&self) -> CommandError {
        let (code, attempts) = (self.command.code, self.attempts);
        match self.asks {
            true => CommandError::NotSent { code, attempts },
            false => CommandError::Timeout { code, attempts },
        }
    }
}

/// What a command that is overdue leads to.
pub(super) enum Overdue {
    /// It is sent, again.
    Send {
        code: u16,
        csn: u16,
        argument: u32,
    },
    Failed(Command, CommandError),
}

/// Commands to one FEB.
pub(super) struct Commands {
    numbers: Numbers,
    /// The FEB has told which number it executed last, and none was used since.
    told: bool,
    pending: Option<Pending>,
    /// Those that wait for it.
    pub(super) queue: VecDeque<Command>,
    /// The response that came last.
    last_response: Option<Response>,
}

impl Commands {
    pub(super) fn new(numbers: Numbers) -> Commands {
        Commands { numbers, told: false, pending: None, queue: VecDeque::new(), last_response: None }
    }

    /// A number for a command, or for IDENTIFY.
    pub(super) fn draw(&mut self) -> u16 {
        // Those who count elsewhere, as the kernel driver, may send something before the next one.
        self.told = false;
        self.numbers.draw()
    }

    /// The FEB has told which number it executed last, and none was used since.
    pub(super) fn is_told(&self) -> bool {
        self.told
    }

    /// One is under way.
    pub(super) fn is_busy(&self) -> bool {
        self.pending.is_some()
    }

    /// Begins a command. `asks`: after the answer to IDENTIFY.
    pub(super) fn begin(&mut self, command: Command, asks: bool, now: Duration) {
        self.pending = Some(Pending { command, asks, csn: self.draw(), attempts: 0, next_attempt: now });
    }

    /// A response has come: true if it is the same as the last one. Notes the number that the FEB has executed last: the
    /// answer to IDENTIFY of Fadelink's cores tells it; any other response has it.
    pub(super) fn came(&mut self, response: Response) -> bool {
        let executed = match response.code {
            fade10g::CMD_IDENTIFY => {
                Identity::from_value(response.value).map_or(Some(response.csn), |identity| identity.csn)
            }
            // It is not executed, and has a number of its own.
            fade10g::CMD_RESET_BY => None,
            _ => Some(response.csn),
        };
        if let Some(csn) = executed {
            self.numbers.saw(csn);
        }
        self.last_response.replace(response) == Some(response)
    }

    /// An IDENTIFY that was sent elsewhere, with a number of [`Self::draw`], is answered.
    pub(super) fn has_told(&mut self) {
        self.told = true;
    }

    /// The command that a response answers.
    pub(super) fn answered(&mut self, response: Response) -> Option<Pending> {
        let answers = |p: &mut Pending| p.attempts > 0 && (p.code(), p.csn) == (response.code, response.csn);
        let pending = self.pending.take_if(answers)?;
        self.told |= response.code == fade10g::CMD_IDENTIFY;
        Some(pending)
    }

    /// The command whose IDENTIFY is sent and not answered, or which is one: no response will come. STOP goes on: it is one of
    /// FADE v1 too.
    pub(super) fn identifies(&mut self) -> Option<Command> {
        let is_asked = |p: &Pending| p.attempts > 0 && p.code() == fade10g::CMD_IDENTIFY;
        let pending = self.pending.take_if(|p| is_asked(p) && p.command.code != fade10g::CMD_STOP)?;
        Some(pending.command)
    }

    /// When one is to be sent again.
    pub(super) fn next_deadline(&self) -> Option<Duration> {
        self.pending.as_ref().map(|pending| pending.next_attempt)
    }

    /// What is to be done with a command whose response is overdue.
    pub(super) fn overdue(&mut self, now: Duration) -> Option<Overdue> {
        let pending = self.pending.as_mut().filter(|pending| now >= pending.next_attempt)?;
        let Command { argument, timeout, retries, .. } = pending.command;
        let share = if pending.asks { IDENTIFY_SHARE } else { 1 };
        if pending.attempts < retries.saturating_add(1).saturating_mul(share) {
            pending.next_attempt = now + timeout / share;
            pending.attempts += 1;
            let argument = if pending.asks { 0 } else { argument };
            return Some(Overdue::Send { code: pending.code(), csn: pending.csn, argument });
        }
        let error = pending.timed_out();
        self.pending.take().map(|pending| Overdue::Failed(pending.command, error))
    }

    /// All that are not answered.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Command> + '_ {
        self.pending.take().map(|pending| pending.command).into_iter().chain(self.queue.drain(..))
    }
}

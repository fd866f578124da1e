//! What a FEB says of its transmission when it is asked: how that has ended, where nobody here knows, and who has sent RESET.

use std::time::Duration;

use fadelink_wire::fade10g::{self, Identity, ResetBy};
use fadelink_wire::{Firmware, Protocol, Resets};

use crate::engine::CommandError;
use crate::kind::Kind;
use crate::receiver::FebHandle;
use crate::shared::{Ending, Phase};
use crate::source::{Commander, Error};

/// Time from each attempt to the next, and attempts after the first: that all are lost on a link that loses a fifth of its frames
/// happens once in 80,000 times.
const PATIENCE: (Duration, u32) = (Duration::from_millis(50), 10);

/// What it says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Inquiry {
    /// How its transmission has ended: [`Ending::Unknown`] if it goes on, or has ended as it should, or the FEB does not tell.
    pub ending: Ending,
    /// RESETs that it has obeyed since START; `None`: it does not tell.
    pub resets: Option<Resets>,
    /// It was asked just now, and has answered.
    pub has_answered: bool,
}

impl FebHandle {
    /// Asks the FEB how its transmission has ended. FADE v1 tells by itself how, once it is asked to stop. Published cores are not
    /// asked, for they tell nothing.
    ///
    /// # Errors
    /// No answer, or a failed interface.
    pub fn inquire(&self) -> Result<Inquiry, Error> {
        self.question().ask()
    }

    /// As [`Self::inquire`], for another thread than the one that reads: an answer may take long.
    pub fn question(&self) -> Question {
        let (number, resets) = self.told();
        let told = Inquiry { ending: self.ending(), resets, has_answered: false };
        match (self.phase(), self.kind()) {
            // What it tells then is of an earlier one.
            (Phase::Idle, _) => Question(How::Not(Inquiry::default())),
            (_, Some(Kind { protocol: Protocol::Fade10g, firmware: Some(Firmware::Fadelink), .. })) => {
                Question(How::Fade10g(self.commander(), number))
            }
            (Phase::Running, Some(Kind { protocol: Protocol::Fade1, firmware: Some(Firmware::Fadelink), .. })) => {
                Question(How::Fade1(self.commander(), told))
            }
            _ => Question(How::Not(told)),
        }
    }
}

/// What a FEB is to be asked.
pub struct Question(How);

enum How {
    /// It is not asked: this is known.
    Not(Inquiry),
    /// Of the transmission with this number.
    Fade10g(Commander, Option<u16>),
    /// This is known before.
    Fade1(Commander, Inquiry),
}

impl Question {
    /// Asks it.
    ///
    /// # Errors
    /// As of [`FebHandle::inquire`].
    pub fn ask(self) -> Result<Inquiry, Error> {
        match self.0 {
            How::Not(told) => Ok(told),
            How::Fade10g(commander, number) => fade10g(&commander, number),
            How::Fade1(commander, told) => match ask(&commander, fade10g::CMD_IDENTIFY) {
                // The kernel driver does not ask it.
                Err(Error::Command { error: CommandError::NoCommands(_), .. }) => Ok(told),
                answer => Ok(Inquiry { ending: Ending::of(answer? as u8), has_answered: true, ..told }),
            },
        }
    }
}

fn ask(commander: &Commander, code: u16) -> Result<u64, Error> {
    commander.command_with(code, 0, PATIENCE.0, PATIENCE.1)
}

/// `number`: of the transmission, if it is known.
fn fade10g(commander: &Commander, number: Option<u16>) -> Result<Inquiry, Error> {
    let answer = Inquiry { has_answered: true, ..Inquiry::default() };
    let Some(identity) = Identity::from_value(ask(commander, fade10g::CMD_IDENTIFY)?) else { return Ok(answer) };
    let answer = Inquiry { ending: Ending::of_fade10g(&identity, number), ..answer };
    if answer.ending == Ending::OtherTransmission || answer.ending == Ending::SwitchedOff {
        // What it counts is not of this one.
        return Ok(answer);
    }
    let Some(count) = identity.resets else { return Ok(answer) };
    let mut resets = Resets { count, by: None };
    if count > 0 {
        // Earlier kernel drivers refuse this one.
        let told = ask(commander, fade10g::CMD_RESET_BY).ok().map(ResetBy::from_value);
        resets.by = told.filter(|told| told.transmission == identity.transmission).and_then(|told| told.by);
    }
    Ok(Inquiry { resets: Some(resets), ..answer })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A number is never 0, and one that is not known proves nothing.
    #[test]
    fn the_end_is_that_of_this_transmission() {
        let idle = Identity {
            window: 32,
            running: false,
            stopping: false,
            block_acks: true,
            csn: None,
            transmission: 7,
            resets: Some(0),
            checksum: false,
            same_words: true,
        };
        let cases = [
            (idle, Some(7), Ending::Unknown),
            (Identity { resets: Some(1), ..idle }, Some(7), Ending::Reset),
            (Identity { resets: Some(1), ..idle }, None, Ending::Reset),
            (Identity { resets: None, ..idle }, Some(7), Ending::Unknown),
            (Identity { running: true, resets: Some(1), ..idle }, Some(7), Ending::Unknown),
            (Identity { running: true, ..idle }, Some(8), Ending::OtherTransmission),
            (Identity { resets: Some(1), ..idle }, Some(8), Ending::OtherTransmission),
            (Identity { transmission: 0, ..idle }, Some(8), Ending::SwitchedOff),
            (Identity { transmission: 0, ..idle }, None, Ending::Unknown),
        ];
        for (identity, number, expected) in cases {
            assert_eq!(Ending::of_fade10g(&identity, number), expected, "{identity:?} {number:?}");
        }
    }
}

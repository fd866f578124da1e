//! What a board is asked when its transmission has ended, or seems to have: a RESET comes from any computer, and is not heard
//! here. FADE v1 tells it by itself.

use std::time::{Duration, Instant};

use fadelink_receiver::{CommandError, Ending, Error, FebHandle, Inquiry};
use fadelink_wire::Resets;

use crate::exit;

/// What a board that sends nothing says when it is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Its transmission runs.
    Runs,
    /// It cannot be asked: published firmware, or FADE v1 through the kernel driver.
    CannotTell,
    /// It was not asked: another program has a command to it under way.
    Busy,
    /// None comes.
    None,
}

impl Answer {
    /// In words, of a board of which nothing comes.
    pub fn in_words(self) -> &'static str {
        match self {
            Answer::Runs => "it answers, and its transmission runs: its source gives no words",
            Answer::CannotTell => "it cannot be asked why",
            Answer::Busy => "it is not asked why, for another program keeps sending commands to it",
            Answer::None => "it does not answer: check its power and the cable",
        }
    }
}

/// Looks after a board that sends nothing, though its transmission runs.
pub struct Inquirer {
    /// Silence, and time from one question to the next, before it is asked.
    interval: Duration,
    asked: Option<Instant>,
    /// The latest answer since data came, and when that was.
    answer: Option<(Answer, Instant)>,
    /// That it sends nothing, and is well, is told once: a source may be slow.
    is_told: bool,
    /// By the latest answer nothing more will come.
    ending: Ending,
}

impl Inquirer {
    pub fn new(interval: Duration) -> Inquirer {
        Inquirer { interval, asked: None, answer: None, is_told: false, ending: Ending::Unknown }
    }

    /// Of a board that has sent nothing since `last_data`, and should have since `awaited`: why nothing more will come, in words. Tells the user when it does not answer,
    /// and when it does again. Before its end was asked for (`is_stopped`) it must say so twice: START may be under way again.
    pub fn why_silent(
        &mut self,
        feb: &FebHandle,
        (last_data, awaited): (Instant, Instant),
        is_stopped: bool,
    ) -> Option<String> {
        if self.answer.is_some_and(|(_, since)| since != last_data) {
            self.tell(feb, None, last_data);
        }
        let last = self.asked.into_iter().fold(last_data.max(awaited), Instant::max);
        if last.elapsed() < self.interval {
            return None;
        }
        let inquiry = feb.inquire();
        self.asked = Some(Instant::now());
        let ending = inquiry.as_ref().map_or(Ending::Unknown, |inquiry| inquiry.ending);
        let was_said = std::mem::replace(&mut self.ending, ending) == ending;
        let answer = match &inquiry {
            Ok(inquiry) if ending != Ending::Unknown => {
                return broken_off(feb, inquiry).filter(|_| was_said || is_stopped)
            }
            Ok(Inquiry { has_answered: true, .. }) => Answer::Runs,
            Ok(_) => Answer::CannotTell,
            Err(Error::Command { error: CommandError::Busy(_), .. }) => Answer::Busy,
            Err(_) => Answer::None,
        };
        self.tell(feb, Some(answer), last_data);
        None
    }

    /// Tells what has changed. `answer`: `None` if data has come.
    fn tell(&mut self, feb: &FebHandle, answer: Option<Answer>, last_data: Instant) {
        let before = self.answer;
        self.answer = answer.map(|answer| (answer, before.map_or(last_data, |(_, since)| since)));
        let (mac, silence) = (feb.mac(), |since: Instant| since.elapsed().as_secs_f64());
        match (before, answer) {
            (Some((Answer::None, _)), Some(Answer::None)) => {}
            (_, Some(Answer::None)) => {
                tracing::warn!("FEB {mac}: no data for {:.1} s; {}", silence(last_data), Answer::None.in_words());
            }
            (Some((Answer::None, since)), None) => {
                tracing::warn!("FEB {mac}: it sends again, after {:.1} s", silence(since));
            }
            (Some((Answer::None, since)), Some(_)) => {
                tracing::warn!("FEB {mac}: it answers again, after {:.1} s without data", silence(since));
            }
            (_, Some(answer)) if !std::mem::replace(&mut self.is_told, true) => {
                tracing::warn!("FEB {mac}: no data for {:.1} s; {}", silence(last_data), answer.in_words());
            }
            _ => {}
        }
    }

    /// What it has said, if it sends nothing.
    pub fn answer(&self) -> Option<Answer> {
        self.answer.map(|(answer, _)| answer)
    }
}

/// Why the transmission has ended before its end, in words.
fn broken_off(feb: &FebHandle, inquiry: &Inquiry) -> Option<String> {
    if inquiry.ending == Ending::Confirmed {
        return Some(format!("FEB {}: another program has asked for the end of its transmission", feb.mac()));
    }
    let by = inquiry.resets.and_then(|resets| resets.by);
    let error = Error::Aborted(feb.mac(), inquiry.ending, by);
    (inquiry.ending != Ending::Unknown).then(|| exit::in_words(&error.into()))
}

/// Of a transmission of which nothing more comes: what speaks against it in words, and the RESETs that the board has counted.
/// `is_whole`: its end has come.
pub fn against(feb: &FebHandle, is_whole: bool) -> (Option<String>, Option<Resets>) {
    let Ok(inquiry) = feb.inquire() else { return (None, None) };
    let board = match inquiry {
        Inquiry { resets: Some(Resets { count: 1.., by }), .. } if is_whole => {
            let by = by.map_or("another program".into(), |by| by.to_string());
            Some(format!(
                "FEB {}: RESET was sent to the board by {by} while its transmission ran, or at its end",
                feb.mac()
            ))
        }
        // It has its end behind it, and may be switched off.
        Inquiry { ending: Ending::Unknown | Ending::Confirmed | Ending::Silence, .. } => None,
        Inquiry { ending: Ending::SwitchedOff, .. } if is_whole => None,
        inquiry => broken_off(feb, &inquiry),
    };
    (board, inquiry.resets)
}

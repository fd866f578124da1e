//! What a board is asked when its transmission has ended, or seems to have: a RESET comes from any computer, and is not heard
//! here. FADE v1 tells it by itself.

use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use fadelink_receiver::{CommandError, Ending, Error, FebHandle, Holder, Inquiry};
use fadelink_wire::Resets;

use crate::exit;

/// What a board that sends nothing says when it is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Its transmission runs.
    Runs,
    /// It cannot be asked: published firmware, or FADE v1 through the kernel driver.
    CannotTell,
    /// It was not asked: this program has a command to it under way.
    Busy(Holder),
    /// None comes.
    None,
}

impl Answer {
    /// In words, of a board of which nothing comes.
    pub fn in_words(&self) -> String {
        match self {
            Answer::Runs => "it answers, and its transmission runs: its source gives no words".into(),
            Answer::CannotTell => "it cannot be asked why".into(),
            Answer::Busy(holder) => format!("it is not asked why, for {holder} keeps sending commands to it"),
            Answer::None => "it does not answer: check its power and the cable".into(),
        }
    }
}

/// Looks after a board that sends nothing, though its transmission runs. It is asked by a thread of its own: data may come meanwhile.
pub struct Inquirer {
    /// Silence, and time from one question to the next, before it is asked.
    interval: Duration,
    /// The question under way, and when data had come last.
    question: Option<(JoinHandle<Result<Inquiry, Error>>, Instant)>,
    asked: Option<Instant>,
    /// The latest answer since data came, and when that was.
    answer: Option<(Answer, Instant)>,
    /// That it sends nothing, and is well, is told once: a source may be slow.
    is_told: bool,
    /// By the latest answer nothing more will come; when data had come last.
    ended: Option<(Ending, Instant)>,
}

impl Inquirer {
    pub fn new(interval: Duration) -> Inquirer {
        Inquirer { interval, question: None, asked: None, answer: None, is_told: false, ended: None }
    }

    /// Of a board that has sent nothing since `last_data`, and should have since `awaited`: why nothing more will come, in words. Tells
    /// the user when it does not answer, and when it does again. Before its end was asked for (`is_stopped`) it must say twice that
    /// nothing more will come, and no data may come in between: START may be under way again.
    pub fn why_silent(
        &mut self,
        feb: &FebHandle,
        (last_data, awaited): (Instant, Instant),
        is_stopped: bool,
    ) -> Option<String> {
        if self.answer.as_ref().is_some_and(|(_, since)| *since != last_data) {
            self.tell(feb, None, last_data);
        }
        if let Some((question, since)) = self.question.take_if(|(question, _)| question.is_finished()) {
            self.asked = Some(Instant::now());
            let answer = question.join().ok().filter(|_| since == last_data);
            return self.came(feb, answer?, last_data, is_stopped);
        }
        let last = self.asked.into_iter().fold(last_data.max(awaited), Instant::max);
        if self.question.is_none() && last.elapsed() >= self.interval {
            let question = feb.question();
            let asking = Builder::new().name("inquiry".into()).spawn(|| question.ask());
            // Without a thread it is tried again.
            self.question = asking.ok().map(|asking| (asking, last_data));
        }
        None
    }

    /// An answer has come, and no data since the question.
    fn came(
        &mut self,
        feb: &FebHandle,
        inquiry: Result<Inquiry, Error>,
        last_data: Instant,
        is_stopped: bool,
    ) -> Option<String> {
        let ending = inquiry.as_ref().map_or(Ending::Unknown, |inquiry| inquiry.ending);
        let was_said = self.was_said(ending, last_data);
        let answer = match &inquiry {
            Ok(inquiry) if ending != Ending::Unknown => {
                return broken_off(feb, inquiry).filter(|_| was_said || is_stopped);
            }
            Ok(Inquiry { has_answered: true, .. }) => Answer::Runs,
            Ok(_) => Answer::CannotTell,
            Err(Error::Command { error: CommandError::Busy(holder), .. }) => Answer::Busy(holder.clone()),
            Err(_) => Answer::None,
        };
        self.tell(feb, Some(answer), last_data);
        None
    }

    /// Notes what the board has said; true if it has said the same before, and no data has come since.
    fn was_said(&mut self, ending: Ending, last_data: Instant) -> bool {
        self.ended.replace((ending, last_data)) == Some((ending, last_data))
    }

    /// Tells what has changed. `answer`: `None` if data has come.
    fn tell(&mut self, feb: &FebHandle, answer: Option<Answer>, last_data: Instant) {
        let (mac, silence) = (feb.mac(), |since: Instant| since.elapsed().as_secs_f64());
        let (before, since) = self.answer.take().map_or((None, last_data), |(before, since)| (Some(before), since));
        match (&before, &answer) {
            (Some(Answer::None), Some(Answer::None)) => {}
            (_, Some(Answer::None)) => {
                tracing::warn!("FEB {mac}: no data for {:.1} s; {}", silence(last_data), Answer::None.in_words());
            }
            (Some(Answer::None), None) => {
                tracing::warn!("FEB {mac}: it sends again, after {:.1} s", silence(since));
            }
            (Some(Answer::None), Some(_)) => {
                tracing::warn!("FEB {mac}: it answers again, after {:.1} s without data", silence(since));
            }
            (_, Some(answer)) if !std::mem::replace(&mut self.is_told, true) => {
                tracing::warn!("FEB {mac}: no data for {:.1} s; {}", silence(last_data), answer.in_words());
            }
            _ => {}
        }
        self.answer = answer.map(|answer| (answer, since));
    }

    /// What it has said, if it sends nothing.
    pub fn answer(&self) -> Option<Answer> {
        self.answer.as_ref().map(|(answer, _)| answer.clone())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_end_is_said_twice_without_data_in_between() {
        let mut inquirer = Inquirer::new(Duration::from_secs(1));
        let (first, later) = (Instant::now(), Instant::now() + Duration::from_secs(1));
        let said = [
            (Ending::Reset, first, false),
            (Ending::Reset, first, true),
            (Ending::Reset, later, false),
            (Ending::SwitchedOff, later, false),
            (Ending::Unknown, later, false),
            (Ending::SwitchedOff, later, false),
            (Ending::SwitchedOff, later, true),
        ];
        for (i, (ending, last_data, expected)) in said.into_iter().enumerate() {
            assert_eq!(inquirer.was_said(ending, last_data), expected, "{i}: {ending:?}");
        }
    }
}

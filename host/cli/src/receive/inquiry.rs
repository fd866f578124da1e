//! What a board is asked when its transmission has ended, or seems to have: a RESET comes from any computer, and is not heard
//! here. FADE v1 tells it by itself.

use std::time::{Duration, Instant};

use fadelink_receiver::{Ending, Error, FebHandle, Inquiry};
use fadelink_wire::Resets;

use crate::exit;

/// When a board was asked.
pub struct Inquirer {
    /// Silence, and time from one question to the next, before it is asked.
    interval: Duration,
    asked: Option<Instant>,
}

impl Inquirer {
    pub fn new(interval: Duration) -> Inquirer {
        Inquirer { interval, asked: None }
    }

    /// Of a board that has answered STOP, and has sent nothing since `last_data`: why nothing more will come, in words.
    pub fn why_silent(&mut self, feb: &FebHandle, last_data: Instant) -> Option<String> {
        let last = self.asked.map_or(last_data, |asked| asked.max(last_data));
        if last.elapsed() < self.interval {
            return None;
        }
        let answer = feb.inquire();
        self.asked = Some(Instant::now());
        broken_off(feb, &answer.ok()?)
    }
}

/// Why the transmission has ended before its end, in words.
fn broken_off(feb: &FebHandle, inquiry: &Inquiry) -> Option<String> {
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

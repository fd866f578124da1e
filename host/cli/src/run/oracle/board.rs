//! A board in software whose source keeps a record of each word that was taken from it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fadelink_feb::{Fade10gFeb, Fade1Feb, Quirks, Settings, Status, User};
use fadelink_wire::{MacAddr, Protocol};

use super::case::Case;

/// Words of one run of the source.
#[derive(Debug, Default, Clone)]
pub struct Run {
    pub words: Vec<u64>,
    /// Our computer has begun it.
    pub is_ours: bool,
}

/// All runs. A board that has lost its power goes on with the same one.
#[derive(Debug, Default, Clone)]
pub struct Record(Arc<Mutex<Vec<Run>>>);

impl Record {
    pub fn runs(&self) -> MutexGuard<'_, Vec<Run>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gives words that no other run has, and no other place.
pub struct Source {
    record: Record,
    words: u64,
    burst: u64,
}

impl User for Source {
    fn begin(&mut self) {
        self.record.runs().push(Run::default());
    }

    fn fill(&mut self, out: &mut [u8]) -> usize {
        let mut runs = self.record.runs();
        let number = runs.len() as u64;
        let Some(run) = runs.last_mut() else { return 0 };
        let left = self.words.saturating_sub(run.words.len() as u64).min(self.burst);
        let places = out.chunks_exact_mut(8).take(left as usize);
        places.fold(0, |bytes, place| {
            let word = (number << 40 | run.words.len() as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            place.copy_from_slice(&word.to_le_bytes());
            run.words.push(word);
            bytes + 8
        })
    }

    fn command(&mut self, _: u16, _: u32, _: &Status) -> u64 {
        0
    }
}

/// Either protocol.
pub enum Board {
    Fade10g(Box<Fade10gFeb<Source>>),
    Fade1(Box<Fade1Feb<Source>>),
}

impl Board {
    /// One that was switched on now.
    pub fn new(mac: MacAddr, case: &Case, record: Record) -> Board {
        let source = Source { record, words: case.words, burst: case.burst };
        let settings = Settings { window: case.window, quirks: Quirks::of(case.firmware), ..Settings::default() };
        match case.protocol {
            Protocol::Fade10g => Board::Fade10g(Box::new(Fade10gFeb::new(mac, settings, source))),
            Protocol::Fade1 => Board::Fade1(Box::new(Fade1Feb::new(mac, settings, source))),
        }
    }

    pub fn take(&mut self, frame: &[u8], now: Duration) {
        match self {
            Board::Fade10g(board) => board.take(frame, now),
            Board::Fade1(board) => board.take(frame, now),
        }
    }

    pub fn give(&mut self, now: Duration) -> Option<Vec<u8>> {
        match self {
            Board::Fade10g(board) => board.give(now),
            Board::Fade1(board) => board.give(now),
        }
        .map(<[u8]>::to_vec)
    }
}

//! The source of a board, which keeps a record of each word that was taken from it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fadelink_feb::{Status, User};

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

impl Run {
    /// As in a file.
    pub fn bytes(&self) -> Vec<u8> {
        self.words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }
}

/// A word of run `number`, which counts from 1.
pub fn word(number: u64, index: u64) -> u64 {
    (number << 40 | index).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

impl Record {
    pub fn runs(&self) -> MutexGuard<'_, Vec<Run>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gives words that no other run has, and no other place.
#[derive(Debug)]
pub struct Source {
    record: Record,
    words: u64,
    burst: u64,
}

impl Source {
    /// Of runs of so many words, of which `burst` come at once.
    pub fn new(record: Record, words: u64, burst: u64) -> Source {
        Source { record, words, burst }
    }

    /// True if the present run gives no more.
    pub fn has_ended(&self) -> bool {
        self.record.runs().last().is_some_and(|run| run.words.len() as u64 >= self.words)
    }
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
            let word = word(number, run.words.len() as u64);
            place.copy_from_slice(&word.to_le_bytes());
            run.words.push(word);
            bytes + 8
        })
    }

    fn command(&mut self, _: u16, _: u32, _: &Status) -> u64 {
        0
    }
}

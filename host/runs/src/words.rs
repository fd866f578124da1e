//! Compares the words of a board with the hashes of its manifest.

use std::io::Read;
use std::path::PathBuf;

use fadelink_sinks::hashes::{Blocks, Record, HASHED_BYTES};
use serde_json::Value;

use crate::scope::Scope;

/// Bytes that are read at a time.
const PIECE: usize = 1 << 20;

/// What a manifest says of the words of a board.
#[derive(Debug, Clone)]
pub struct Expected {
    /// Of each block.
    hashes: Vec<String>,
    /// Bytes of all of them.
    pub bytes: u64,
    /// CRC of all of them; `None`: the board has none, or they are not of one transmission.
    crc: Option<String>,
}

impl Expected {
    /// Of the report of a board; `None`: it has no words.
    pub fn of(board: &Value) -> Option<Expected> {
        let hashes = &board["hashes"];
        Some(Expected {
            hashes: hashes["blake3"]
                .as_array()?
                .iter()
                .map(|hash| hash.as_str().unwrap_or_default().to_owned())
                .collect(),
            bytes: hashes["bytes"].as_u64()?,
            crc: board["crc32"]["received"].as_str().filter(|_| board["restarted"].is_null()).map(str::to_owned),
        })
    }
}

/// Compares words as they come.
#[derive(Debug)]
pub struct Comparison {
    blocks: Blocks,
    expected: Expected,
    wrong: Vec<u64>,
}

impl Comparison {
    /// Of no words yet.
    pub fn new(expected: Expected) -> Comparison {
        Comparison { blocks: Blocks::default(), expected, wrong: Vec::new() }
    }

    fn judge(&mut self, record: Record) {
        let hash = self.expected.hashes.get(record.block() as usize);
        if hash.is_none_or(|hash| **hash != *record.hash.to_hex()) {
            self.wrong.push(record.block());
        }
    }

    /// Takes the next words.
    pub fn update(&mut self, data: &[u8]) {
        let mut whole = Vec::new();
        let Ok(()) = self.blocks.update(data, |record| {
            whole.push(record);
            Ok::<_, std::convert::Infallible>(())
        });
        whole.into_iter().for_each(|record| self.judge(record));
    }

    /// Bytes to the end of the block of which some words have come; 0: none has.
    pub fn left_of_block(&self) -> u64 {
        self.blocks.end().next_multiple_of(HASHED_BYTES) - self.blocks.end()
    }

    /// The blocks so far that are not as they were received, in words: `place` tells where the words between two bytes are.
    pub fn wrong(&self, place: impl Fn(u64, u64) -> String) -> Vec<String> {
        let in_words = |block: &u64| {
            let (begin, end) = (block * HASHED_BYTES, ((block + 1) * HASHED_BYTES).min(self.expected.bytes));
            let place = place(begin, end);
            format!("{place}: bytes {begin} to {end} of the board's words are not those that were received")
        };
        self.wrong.iter().map(in_words).collect()
    }

    /// All words have come: what is wrong, in words, as of [`Self::wrong`].
    pub fn finish(mut self, place: impl Fn(u64, u64) -> String) -> Vec<String> {
        if let Some(rest) = self.blocks.rest() {
            self.judge(rest);
        }
        let (end, expected) = (self.blocks.end(), self.expected.bytes);
        let mut found = Vec::new();
        if end != expected {
            let last = place(end.saturating_sub(1), end);
            found.push(format!("{last}: the words end at byte {end}, expected {expected}"));
        } else if let (Some(crc), [], Some(got)) = (&self.expected.crc, &*self.wrong, self.blocks.crc()) {
            let got = format!("{got:08x}");
            if got != *crc {
                found.push(format!("{}: the CRC of all words is {got}, expected {crc}", place(0, end)));
            }
        }
        found.extend(self.wrong(place));
        found
    }
}

/// Compares the words in files, or with `sizes` only how many there are: bytes that were read; else why they could not be.
pub fn check_files(
    scope: &Scope,
    paths: &[PathBuf],
    expected: &Expected,
    (sizes, findings): (bool, &mut Vec<String>),
) -> Result<u64, String> {
    let (mut comparison, mut piece, mut ends, mut end) =
        (Comparison::new(expected.clone()), vec![0; PIECE], Vec::new(), 0);
    for path in paths {
        let named = scope.named(path);
        let in_words = |error: std::io::Error| format!("{named}: it cannot be read: {error}");
        let mut file = scope.open(path)?;
        if sizes {
            end += file.metadata().map_err(in_words)?.len();
        } else {
            loop {
                match file.read(&mut piece).map_err(in_words)? {
                    0 => break,
                    got => comparison.update(&piece[..got]),
                }
            }
            end = comparison.blocks.end();
        }
        ends.push((named, end));
    }
    let place = |begin: u64, end: u64| {
        let begins = [0].into_iter().chain(ends.iter().map(|(_, end)| *end));
        let touched = ends.iter().zip(begins).filter(|((_, last), first)| *first < end && *last > begin);
        let names: Vec<_> = touched.map(|((name, _), _)| &**name).collect();
        if names.is_empty() {
            return ends.last().map_or("no file", |(name, _)| name).to_owned();
        }
        names.join(", ")
    };
    if !sizes {
        findings.extend(comparison.finish(place));
    } else if end != expected.bytes {
        let last = place(end.saturating_sub(1), end);
        findings.push(format!("{last}: the words end at byte {end}, expected {}", expected.bytes));
    }
    Ok(end)
}

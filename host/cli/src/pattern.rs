//! The patterns that the example source sends, to verify data against.

use std::str::FromStr;

use fadelink_feb::random::{first_random, next_random};
use fadelink_wire::{fade1, Protocol};

/// A sequence of 64-bit words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    /// 0, 1, 2 and so on, from a first value.
    Counter(u64),
    /// The pseudo-random one ([`next_random`]) from a seed.
    Random(u64),
}

impl FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text.split_once(':').map_or((text, None), |(name, value)| (name, Some(value)));
        match (name, value) {
            ("counter", None) => Ok(Pattern::Counter(0)),
            ("counter", Some(first)) => Ok(Pattern::Counter(crate::number::u64(first)?)),
            ("random", Some(seed)) => Ok(Pattern::Random(crate::number::u64(seed)?)),
            _ => Err("expected counter, counter:FIRST or random:SEED".into()),
        }
    }
}

/// Compares words as they come with the pattern.
#[derive(Debug, Clone)]
pub struct Verifier {
    pattern: Pattern,
    next: u64,
    /// Words compared.
    pub words: u64,
    /// Words that differ.
    pub wrong: u64,
    /// The first that differs: its index, what came, what was expected.
    pub first_wrong: Option<(u64, u64, u64)>,
    /// Words of filler at the end, so far.
    pub filler: u64,
    first_filler: Option<(u64, u64)>,
}

/// What fills up the last packet of FADE v1.
const FILLER: u64 = u64::from_ne_bytes([fade1::FILLER; 8]);

impl Verifier {
    /// At the first word of `pattern`.
    pub fn new(pattern: Pattern) -> Verifier {
        let next = match pattern {
            Pattern::Counter(first) => first,
            Pattern::Random(seed) => first_random(seed),
        };
        Verifier { pattern, next, words: 0, wrong: 0, first_wrong: None, filler: 0, first_filler: None }
    }

    /// All words have come. Filler at the end is right where a packet of FADE v1 was filled up, else wrong.
    pub fn finish(&mut self, protocol: Option<Protocol>) {
        if protocol == Some(Protocol::Fade1) && self.filler < fade1::PACKET_BYTES as u64 / 8 {
            self.words -= self.filler;
        } else {
            self.filler_was_data();
        }
    }

    fn filler_was_data(&mut self) {
        if let Some((index, expected)) = self.first_filler.take() {
            self.first_wrong.get_or_insert((index, FILLER, expected));
            self.wrong += std::mem::take(&mut self.filler);
        }
    }

    /// Leaves out words that are missing.
    pub fn skip(&mut self, words: u64) {
        self.next = match self.pattern {
            Pattern::Counter(_) => self.next.wrapping_add(words),
            Pattern::Random(_) => (0..words).fold(self.next, |next, _| next_random(next)),
        };
    }

    /// Compares the next words, little-endian.
    pub fn check(&mut self, data: &[u8]) {
        let (words, rest) = data.as_chunks::<8>();
        debug_assert!(rest.is_empty());
        if matches!(self.pattern, Pattern::Counter(_)) {
            // All at once, without a branch a word: this is what holds a fast receiver up.
            let wrong = words
                .iter()
                .zip(0u64..)
                .fold(0, |wrong, (word, i)| wrong | (u64::from_le_bytes(*word) ^ self.next.wrapping_add(i)));
            if wrong == 0 && self.filler == 0 {
                self.next = self.next.wrapping_add(words.len() as u64);
                self.words += words.len() as u64;
                return;
            }
        }
        for word in words {
            let word = u64::from_le_bytes(*word);
            if word != self.next && word == FILLER {
                self.filler += 1;
                self.first_filler.get_or_insert((self.words, self.next));
            } else {
                self.filler_was_data();
                if word != self.next {
                    self.wrong += 1;
                    self.first_wrong.get_or_insert((self.words, word, self.next));
                }
            }
            self.words += 1;
            self.next = match self.pattern {
                Pattern::Counter(_) => self.next.wrapping_add(1),
                Pattern::Random(_) => next_random(self.next),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_word_is_found_and_does_not_hide_the_next() {
        let mut verifier = Verifier::new(Pattern::Counter(5));
        let data: Vec<u8> = [5u64, 6, 0, 8].iter().flat_map(|w| w.to_le_bytes()).collect();
        verifier.check(&data);
        assert_eq!((verifier.words, verifier.wrong, verifier.first_wrong), (4, 1, Some((2, 0, 7))));
    }

    #[test]
    fn filler_is_right_at_the_end_of_fade_v1_alone() {
        let words = |list: &[u64]| list.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<u8>>();
        let check = |data: &[u64], protocol| {
            let mut verifier = Verifier::new(Pattern::Counter(0));
            data.chunks(2).for_each(|part| verifier.check(&words(part)));
            verifier.finish(Some(protocol));
            (verifier.words, verifier.wrong, verifier.filler, verifier.first_wrong.map(|first| first.0))
        };
        assert_eq!(check(&[0, 1, 2, FILLER, FILLER], Protocol::Fade1), (3, 0, 2, None));
        assert_eq!(check(&[0, 1, 2, FILLER, FILLER], Protocol::Fade10g), (5, 2, 0, Some(3)));
        assert_eq!(check(&[0, FILLER, FILLER, 3, FILLER], Protocol::Fade1), (4, 2, 1, Some(1)));
        assert_eq!(check(&[FILLER; 128], Protocol::Fade1), (128, 128, 0, Some(0)));
    }

    #[test]
    fn patterns_by_name() {
        assert_eq!("counter".parse(), Ok(Pattern::Counter(0)));
        assert_eq!("random:0x10".parse(), Ok(Pattern::Random(16)));
        for bad in ["", "random", "random:", "counter:x", "prbs"] {
            assert!(bad.parse::<Pattern>().is_err(), "{bad}");
        }
    }
}

//! The patterns of the example source, to verify data.

use std::str::FromStr;

use fadelink_feb::random::{first_random, next_random};
use fadelink_wire::{fade1, Protocol};

/// A sequence of 64-bit words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    /// A first value, and each time a step more.
    Counter(u64, u64),
    /// The same of 32-bit words, two in each word of 64 bits.
    Counter32(u32, u32),
    /// The pseudo-random one ([`next_random`]) from a seed.
    Random(u64),
}

impl FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let values: Vec<_> = text.split(':').collect();
        let (u64, u32) = (crate::number::u64, crate::number::u32);
        match values[..] {
            ["counter"] => Ok(Pattern::Counter(0, 1)),
            ["counter", first] => Ok(Pattern::Counter(u64(first)?, 1)),
            ["counter", first, step] => Ok(Pattern::Counter(u64(first)?, u64(step)?)),
            ["counter32"] => Ok(Pattern::Counter32(0, 1)),
            ["counter32", first] => Ok(Pattern::Counter32(u32(first)?, 1)),
            ["counter32", first, step] => Ok(Pattern::Counter32(u32(first)?, u32(step)?)),
            ["random", seed] => Ok(Pattern::Random(u64(seed)?)),
            _ => Err("expected counter[:FIRST[:STEP]], counter32[:FIRST[:STEP]] or random:SEED".into()),
        }
    }
}

/// Two words of 32 bits as they lie in one of 64.
fn pair(first: u32, second: u32) -> u64 {
    let both = if cfg!(target_endian = "little") { (second, first) } else { (first, second) };
    u64::from(both.0) << 32 | u64::from(both.1)
}

impl Pattern {
    fn first(self) -> u64 {
        match self {
            Pattern::Counter(first, _) => first,
            Pattern::Counter32(first, step) => pair(first, first.wrapping_add(step)),
            Pattern::Random(seed) => first_random(seed),
        }
    }

    /// The word that comes `words` behind `word`.
    fn after(self, word: u64, words: u64) -> u64 {
        match self {
            Pattern::Counter(_, step) => word.wrapping_add(step.wrapping_mul(words)),
            Pattern::Counter32(_, step) => {
                let step = step.wrapping_mul(2).wrapping_mul(words as u32);
                let half = |word: u64| u64::from((word as u32).wrapping_add(step));
                half(word >> 32) << 32 | half(word)
            }
            Pattern::Random(_) => (0..words).fold(word, |next, _| next_random(next)),
        }
    }
}

/// The bits in which words differ from a counter: of all at once, without a branch a word, for this is what holds a fast
/// receiver up.
#[multiversion::multiversion(targets("x86_64+avx2", "aarch64+neon"))]
fn differences(words: &[[u8; 8]], first: u64, step: u64) -> u64 {
    // A closure would not be compiled for the same target.
    let (mut wrong, mut next) = (0, first);
    for word in words {
        wrong |= u64::from_ne_bytes(*word) ^ next;
        next = next.wrapping_add(step);
    }
    wrong
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
        let next = pattern.first();
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

    /// Begins anew.
    pub fn restart(&mut self) {
        self.next = self.pattern.first();
    }

    /// Leaves out words that are missing.
    pub fn skip(&mut self, words: u64) {
        self.next = self.pattern.after(self.next, words);
    }

    /// Compares the next words, in this computer's order.
    pub fn check(&mut self, data: &[u8]) {
        let (words, rest) = data.as_chunks::<8>();
        debug_assert!(rest.is_empty());
        if let Pattern::Counter(_, step) = self.pattern {
            if differences(words, self.next, step) == 0 && self.filler == 0 {
                self.next = self.pattern.after(self.next, words.len() as u64);
                self.words += words.len() as u64;
                return;
            }
        }
        for word in words {
            let word = u64::from_ne_bytes(*word);
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
            self.next = self.pattern.after(self.next, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_word_is_found_and_does_not_hide_the_next() {
        let mut verifier = Verifier::new(Pattern::Counter(5, 1));
        let data: Vec<u8> = [5u64, 6, 0, 8].iter().flat_map(|w| w.to_ne_bytes()).collect();
        verifier.check(&data);
        assert_eq!((verifier.words, verifier.wrong, verifier.first_wrong), (4, 1, Some((2, 0, 7))));
    }

    #[test]
    fn counters_of_either_width_wrap() {
        for step in [1, 0x2345_6789u32] {
            let words = (0..3000u32).map(|i| u32::MAX.wrapping_sub(999).wrapping_add(step.wrapping_mul(i)));
            let data: Vec<u8> = words.flat_map(u32::to_ne_bytes).collect();
            let mut verifier = Verifier::new(Pattern::Counter32(u32::MAX - 999, step));
            data.chunks(808).for_each(|part| verifier.check(part));
            assert_eq!((verifier.words, verifier.wrong), (1500, 0));
        }
        let step = 0x1234_5678_09ab_cdef;
        let data: Vec<u8> = (0..1000u64).flat_map(|i| step_of(step, i).to_ne_bytes()).collect();
        let mut verifier = Verifier::new(Pattern::Counter(0, step));
        data.chunks(800).for_each(|part| verifier.check(part));
        verifier.skip(5);
        verifier.check(&step_of(step, 1005).to_ne_bytes());
        assert_eq!((verifier.words, verifier.wrong), (1001, 0));
    }

    fn step_of(step: u64, i: u64) -> u64 {
        step.wrapping_mul(i)
    }

    #[test]
    fn filler_is_right_at_the_end_of_fade_v1_alone() {
        let words = |list: &[u64]| list.iter().flat_map(|w| w.to_ne_bytes()).collect::<Vec<u8>>();
        let check = |data: &[u64], protocol| {
            let mut verifier = Verifier::new(Pattern::Counter(0, 1));
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
        assert_eq!("counter".parse(), Ok(Pattern::Counter(0, 1)));
        assert_eq!("counter:7:0x10".parse(), Ok(Pattern::Counter(7, 16)));
        assert_eq!("counter32:7".parse(), Ok(Pattern::Counter32(7, 1)));
        assert_eq!("random:0x10".parse(), Ok(Pattern::Random(16)));
        for bad in ["", "random", "random:", "counter:x", "counter:1:2:3", "counter32:0x100000000", "prbs"] {
            assert!(bad.parse::<Pattern>().is_err(), "{bad}");
        }
    }
}

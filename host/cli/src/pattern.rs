//! The patterns that the example source sends, to verify data against.

use std::str::FromStr;

use fadelink_feb::example::{first_random, next_random};

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
}

impl Verifier {
    /// At the first word of `pattern`.
    pub fn new(pattern: Pattern) -> Verifier {
        let next = match pattern {
            Pattern::Counter(first) => first,
            Pattern::Random(seed) => first_random(seed),
        };
        Verifier { pattern, next, words: 0, wrong: 0, first_wrong: None }
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
            if wrong == 0 {
                self.next = self.next.wrapping_add(words.len() as u64);
                self.words += words.len() as u64;
                return;
            }
        }
        for word in words {
            let word = u64::from_le_bytes(*word);
            if word != self.next {
                self.wrong += 1;
                self.first_wrong.get_or_insert((self.words, word, self.next));
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
    fn patterns_by_name() {
        assert_eq!("counter".parse(), Ok(Pattern::Counter(0)));
        assert_eq!("random:0x10".parse(), Ok(Pattern::Random(16)));
        for bad in ["", "random", "random:", "counter:x", "prbs"] {
            assert!(bad.parse::<Pattern>().is_err(), "{bad}");
        }
    }
}

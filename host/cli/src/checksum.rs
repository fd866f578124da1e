//! The CRC-32 of the words of a transmission: as the board says, and as they have come.

use crc32fast::Hasher;
use fadelink_receiver::told::WordsCrc;
use fadelink_wire::fade10g::FILLER;
use serde_json::{json, Value};

/// Of a transmission that has come to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checksum {
    /// What the board says; `None`: it was asked, and has not said it.
    pub told: Option<WordsCrc>,
    /// Of all words that were recorded, filler too.
    pub received: u32,
}

impl Checksum {
    /// What those words must have: the filler that follows the board's words is known.
    fn expected(&self) -> Option<u32> {
        let WordsCrc { crc, filler_words } = self.told?;
        let mut hasher = Hasher::new_with_initial(crc);
        (0..filler_words).for_each(|_| hasher.update(&[FILLER; 8]));
        Some(hasher.finalize())
    }

    /// The words are those that the board has sent.
    pub fn is_right(&self) -> bool {
        self.expected() == Some(self.received)
    }

    /// For a report.
    pub fn json(&self) -> Value {
        json!({
            "board": self.expected().map(in_words),
            "received": in_words(self.received),
            "filler_words": self.told.map(|told| told.filler_words),
        })
    }

    /// What is to be said of it.
    pub fn words(&self) -> String {
        let received = in_words(self.received);
        match self.expected() {
            None => format!(
                "the board has not told the CRC of its words, though it was asked; those received have {received}"
            ),
            Some(board) if board == self.received => format!("CRC-32 of the words: {received}, as the board says"),
            Some(board) => {
                format!("the words received have CRC {received}, those that the board sent {}", in_words(board))
            }
        }
    }
}

/// In hexadecimal digits, as the usual tools print it.
pub fn in_words(crc: u32) -> String {
    format!("{crc:08x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filler_is_not_of_the_board() {
        let words: Vec<u8> = (0..80).collect();
        let crc = crc32fast::hash(&words);
        for filler_words in [0, 1, 127] {
            let all = [&words[..], &vec![FILLER; 8 * usize::from(filler_words)]].concat();
            let told = Some(WordsCrc { crc, filler_words });
            assert!(Checksum { told, received: crc32fast::hash(&all) }.is_right());
            let mut wrong = all.clone();
            wrong[79] ^= 0x80;
            assert!(!Checksum { told, received: crc32fast::hash(&wrong) }.is_right());
            assert!(!Checksum { told, received: crc32fast::hash(&all[..all.len() - 8]) }.is_right());
        }
        assert!(!Checksum { told: None, received: 0 }.is_right());
    }

    #[test]
    fn the_digits_are_those_of_other_tools() {
        let checksum = Checksum { told: Some(WordsCrc { crc: 0xCBF43926, filler_words: 0 }), received: 0x12 };
        let expected = json!({ "board": "cbf43926", "received": "00000012", "filler_words": 0 });
        assert_eq!(checksum.json(), expected);
        assert_eq!(in_words(crc32fast::hash(b"123456789")), "cbf43926");
    }
}

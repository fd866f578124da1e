//! The firmware of a board, and its format of data words (docs/protocol/firmware.md).

use core::fmt;
use core::str::FromStr;

use crate::protocol::Protocol;

/// Whose core a board runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Firmware {
    /// Fadelink's, of FADE-10G or FADE v1.
    Fadelink,
    /// The FADE-10G core that the authors of FADE published, and what is derived from it.
    Published10g,
    /// The FADE v1 core that the authors of FADE published, and what is derived from it.
    PublishedV1,
}

impl Firmware {
    /// All of them.
    pub const ALL: [Firmware; 3] = [Firmware::Fadelink, Firmware::Published10g, Firmware::PublishedV1];

    /// What it speaks, where it speaks one protocol alone.
    pub fn protocol(self) -> Option<Protocol> {
        match self {
            Firmware::Fadelink => None,
            Firmware::Published10g => Some(Protocol::Fade10g),
            Firmware::PublishedV1 => Some(Protocol::Fade1),
        }
    }

    /// Byte order of its data words on the wire.
    pub fn word_order(self) -> WordOrder {
        match self {
            Firmware::Fadelink => WordOrder::Little,
            Firmware::Published10g | Firmware::PublishedV1 => WordOrder::Big,
        }
    }

    /// Bytes of a data word: the user side of the published FADE v1 core has 32 bits.
    pub fn word_bytes(self) -> usize {
        match self {
            Firmware::Fadelink | Firmware::Published10g => 8,
            Firmware::PublishedV1 => 4,
        }
    }
}

impl fmt::Display for Firmware {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Firmware::Fadelink => "fadelink",
            Firmware::Published10g => "published-10g",
            Firmware::PublishedV1 => "published-v1",
        })
    }
}

impl FromStr for Firmware {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Firmware::ALL.into_iter().find(|firmware| firmware.to_string() == text);
        found.ok_or_else(|| "expected fadelink, published-10g or published-v1".into())
    }
}

/// Byte order of data words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WordOrder {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

impl WordOrder {
    /// That of this computer.
    pub const NATIVE: WordOrder = if cfg!(target_endian = "little") { WordOrder::Little } else { WordOrder::Big };
}

impl fmt::Display for WordOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            WordOrder::Little => "little",
            WordOrder::Big => "big",
        })
    }
}

impl FromStr for WordOrder {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "little" => Ok(WordOrder::Little),
            "big" => Ok(WordOrder::Big),
            _ => Err("expected little or big".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for firmware in Firmware::ALL {
            assert_eq!(firmware.to_string().parse(), Ok(firmware));
        }
        assert!("published".parse::<Firmware>().is_err());
        for order in [WordOrder::Little, WordOrder::Big] {
            assert_eq!(order.to_string().parse(), Ok(order));
        }
        assert!("middle".parse::<WordOrder>().is_err());
    }
}

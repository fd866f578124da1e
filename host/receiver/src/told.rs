//! What is known of a FEB's transmission besides its data: the number that it has there, the RESETs that it has counted, and the
//! CRC of its words.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use fadelink_wire::{Checksum, MacAddr, Resets};

/// Above a value: there is one.
const KNOWN: u32 = 1 << 16;

/// Above a CRC and the filler: there is one.
const CRC_TOLD: u64 = 1 << 63;
/// Where the [`Expected`] of a CRC is.
const EXPECTED_SHIFT: u32 = 60;

/// The CRC-32 (IEEE 802.3) of all words of a transmission as the FEB has sent them, which it tells at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct WordsCrc {
    /// Of the FEB's words.
    pub crc: u32,
    /// Words of filler that have come behind those, which are not part of it: of FADE v1 alone.
    pub filler_words: u16,
}

impl From<Checksum> for WordsCrc {
    fn from(checksum: Checksum) -> WordsCrc {
        WordsCrc { crc: checksum.crc, filler_words: checksum.filler_words() }
    }
}

/// Whether a FEB will tell the CRC of its words.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Expected {
    /// It was not asked to, or has none, or the order of its words is changed here.
    #[default]
    No = 0,
    /// It is not known.
    Maybe = 1,
    /// It has said so, and was asked to.
    Yes = 2,
}

/// Written by the receiving side, read by the reader.
#[derive(Debug, Default)]
pub struct Told {
    /// The number, and [`KNOWN`].
    number: AtomicU32,
    /// From the top: 1 if they are told, count u8, address u48.
    resets: AtomicU64,
    /// [`CRC_TOLD`], [`Expected`], filler u16, CRC u32.
    crc: AtomicU64,
    /// Packets since the start that the FEB has confirmation of, though they have not come.
    confirmed: AtomicU64,
    /// Words of filler behind the last word, and [`KNOWN`].
    filler: AtomicU32,
}

impl Told {
    /// The number that the transmission has on the FEB.
    pub fn number(&self) -> Option<u16> {
        let number = self.number.load(Ordering::Relaxed);
        (number & KNOWN != 0).then_some(number as u16)
    }

    /// The RESETs that the FEB has counted since START; `None`: it has not told.
    pub fn resets(&self) -> Option<Resets> {
        let [known, count, address @ ..] = self.resets.load(Ordering::Relaxed).to_be_bytes();
        let by = (address != [0; 6]).then_some(MacAddr(address));
        (known != 0).then_some(Resets { count, by })
    }

    /// Whether the FEB will tell the CRC of its words.
    pub fn expected_crc(&self) -> Expected {
        match self.crc.load(Ordering::Relaxed) >> EXPECTED_SHIFT & 3 {
            1 => Expected::Maybe,
            2 => Expected::Yes,
            _ => Expected::No,
        }
    }

    /// That CRC; `None`: it has not told it.
    pub fn crc(&self) -> Option<WordsCrc> {
        let crc = self.crc.load(Ordering::Relaxed);
        (crc & CRC_TOLD != 0).then_some(WordsCrc { crc: crc as u32, filler_words: (crc >> 32) as u16 })
    }

    /// A transmission begins, or goes on.
    pub(crate) fn begin(&self, number: Option<u16>, crc: Expected) {
        self.number.store(number.map_or(0, |number| KNOWN | u32::from(number)), Ordering::Relaxed);
        self.resets.store(0, Ordering::Relaxed);
        self.confirmed.store(0, Ordering::Relaxed);
        self.filler.store(0, Ordering::Relaxed);
        self.crc.store((crc as u64) << EXPECTED_SHIFT, Ordering::Relaxed);
    }

    /// Words of filler that have come behind the last word, as the FEB has told; `None`: it has not.
    pub(crate) fn filler_words(&self) -> Option<u16> {
        let filler = self.filler.load(Ordering::Relaxed);
        (filler & KNOWN != 0).then_some(filler as u16)
    }

    /// The FEB has told how many words of filler have come.
    pub(crate) fn set_filler_words(&self, words: u16) {
        self.filler.store(KNOWN | u32::from(words), Ordering::Relaxed);
    }

    /// The FEB has told the CRC of its words, where one was expected.
    pub(crate) fn set_crc(&self, crc: WordsCrc) {
        let expected = self.expected_crc();
        if expected != Expected::No {
            let told = CRC_TOLD | u64::from(crc.filler_words) << 32 | u64::from(crc.crc);
            self.crc.store(told | (expected as u64) << EXPECTED_SHIFT, Ordering::Relaxed);
        }
    }

    /// Packets since the start that the FEB has confirmation of, as what it sends shows, though they have not come; 0: nothing shows it.
    pub fn confirmed(&self) -> u64 {
        self.confirmed.load(Ordering::Relaxed)
    }

    /// What it sends shows that.
    pub(crate) fn set_confirmed(&self, packets: u64) {
        self.confirmed.fetch_max(packets, Ordering::Relaxed);
    }

    /// The FEB has told the RESETs.
    pub(crate) fn set_resets(&self, resets: Option<Resets>) {
        let Some(Resets { count, by }) = resets else { return };
        let [a, b, c, d, e, f] = by.map_or([0; 6], |by| by.0);
        self.resets.store(u64::from_be_bytes([1, count, a, b, c, d, e, f]), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_told_is_read_until_the_next_transmission() {
        let told = Told::default();
        assert_eq!((told.number(), told.resets()), (None, None));
        for (number, count, by) in [(0, 0, None), (0xFFFF, 255, Some(MacAddr([0xFF; 6]))), (7, 3, None)] {
            told.begin(Some(number), Expected::No);
            assert_eq!((told.number(), told.resets()), (Some(number), None));
            told.set_resets(Some(Resets { count, by }));
            told.set_resets(None);
            assert_eq!(told.resets(), Some(Resets { count, by }));
        }
        told.begin(None, Expected::No);
        assert_eq!((told.number(), told.resets()), (None, None));
    }

    #[test]
    fn a_crc_that_is_not_expected_is_not_taken() {
        let (told, crc) = (Told::default(), WordsCrc { crc: u32::MAX, filler_words: u16::MAX });
        assert_eq!((told.expected_crc(), told.crc()), (Expected::No, None));
        for expected in [Expected::No, Expected::Maybe, Expected::Yes] {
            told.begin(None, expected);
            assert_eq!((told.expected_crc(), told.crc()), (expected, None));
            told.set_crc(crc);
            let taken = (expected != Expected::No).then_some(crc);
            assert_eq!((told.expected_crc(), told.crc()), (expected, taken));
        }
        told.set_crc(WordsCrc { crc: 0, filler_words: 0 });
        assert_eq!(told.crc(), Some(WordsCrc { crc: 0, filler_words: 0 }));
    }
}

//! What is known of a FEB's transmission besides its data: the number that it has there, and the RESETs that it has counted.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use fadelink_wire::{MacAddr, Resets};

/// Above a value: there is one.
const KNOWN: u32 = 1 << 16;

/// Written by the receiving side, read by the reader.
#[derive(Debug, Default)]
pub struct Told {
    /// The number, and [`KNOWN`].
    number: AtomicU32,
    /// From the top: 1 if they are told, count u8, address u48.
    resets: AtomicU64,
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

    /// A transmission begins, or goes on.
    pub(crate) fn begin(&self, number: Option<u16>) {
        self.number.store(number.map_or(0, |number| KNOWN | u32::from(number)), Ordering::Relaxed);
        self.resets.store(0, Ordering::Relaxed);
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
            told.begin(Some(number));
            assert_eq!((told.number(), told.resets()), (Some(number), None));
            told.set_resets(Some(Resets { count, by }));
            told.set_resets(None);
            assert_eq!(told.resets(), Some(Resets { count, by }));
        }
        told.begin(None);
        assert_eq!((told.number(), told.resets()), (None, None));
    }
}

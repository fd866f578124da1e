//! The kind of a FEB, and the format of its data words.

use fadelink_wire::{Firmware, Protocol, WordOrder};

/// What a FEB is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    /// What it speaks.
    pub protocol: Protocol,
    /// Whose core it runs; `None`: not known yet. Of FADE v1 the first data frame tells.
    pub firmware: Option<Firmware>,
    /// Byte order of its data words on the wire; here they are native. `None`: not known yet.
    pub word_order: Option<WordOrder>,
}

impl Kind {
    /// As a number, for an atomic; never 0.
    pub(crate) fn pack(self) -> u8 {
        let protocol = match self.protocol {
            Protocol::Fade10g => 1,
            Protocol::Fade1 => 2,
        };
        let firmware = self.firmware.map_or(0, |f| 1 + Firmware::ALL.iter().position(|all| *all == f).unwrap_or(0));
        let order = match self.word_order {
            None => 0,
            Some(WordOrder::Little) => 1,
            Some(WordOrder::Big) => 2,
        };
        protocol | (firmware as u8) << 2 | order << 4
    }

    /// From [`Self::pack`]; `None` for 0.
    pub(crate) fn unpack(number: u8) -> Option<Kind> {
        let protocol = match number & 3 {
            0 => return None,
            1 => Protocol::Fade10g,
            _ => Protocol::Fade1,
        };
        let firmware = Firmware::ALL.get((number as usize >> 2 & 3).wrapping_sub(1)).copied();
        let word_order = match number >> 4 & 3 {
            0 => None,
            1 => Some(WordOrder::Little),
            _ => Some(WordOrder::Big),
        };
        Some(Kind { protocol, firmware, word_order })
    }
}

/// What makes the words of a packet native, while it is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Swap {
    /// They are.
    #[default]
    None,
    /// 32-bit words are turned round.
    Words32,
    /// 64-bit words are turned round.
    Words64,
}

impl Swap {
    /// For words in `order` of a firmware; unknown ones have 64 bits.
    pub fn of(order: WordOrder, firmware: Option<Firmware>) -> Swap {
        match firmware.map_or(8, Firmware::word_bytes) {
            _ if order == WordOrder::NATIVE => Swap::None,
            4 => Swap::Words32,
            _ => Swap::Words64,
        }
    }

    /// Copies a packet, whole words, to a place of the same length.
    pub(crate) fn copy(self, packet: &[u8], place: &mut [u8]) {
        match self {
            Swap::None => place.copy_from_slice(packet),
            Swap::Words32 => {
                let places = place.as_chunks_mut::<4>().0;
                places.iter_mut().zip(packet.as_chunks::<4>().0).for_each(|(place, word)| {
                    *place = u32::from_le_bytes(*word).to_be_bytes();
                });
            }
            Swap::Words64 => {
                let places = place.as_chunks_mut::<8>().0;
                places.iter_mut().zip(packet.as_chunks::<8>().0).for_each(|(place, word)| {
                    *place = u64::from_le_bytes(*word).to_be_bytes();
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_packed_and_unpacked() {
        let firmware = Firmware::ALL.map(Some).into_iter().chain([None]);
        for firmware in firmware {
            for protocol in [Protocol::Fade10g, Protocol::Fade1] {
                for word_order in [None, Some(WordOrder::Little), Some(WordOrder::Big)] {
                    let kind = Kind { protocol, firmware, word_order };
                    assert_eq!(Kind::unpack(kind.pack()), Some(kind));
                }
            }
        }
        assert_eq!(Kind::unpack(0), None);
    }

    #[test]
    fn words_are_turned_round() {
        let packet: Vec<u8> = (0..16).collect();
        let mut place = [0; 16];
        Swap::Words64.copy(&packet, &mut place);
        assert_eq!(place, [7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8]);
        Swap::Words32.copy(&packet, &mut place);
        assert_eq!(place, [3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12]);
        Swap::None.copy(&packet, &mut place);
        assert_eq!(place[..], packet[..]);
    }
}

//! The CRC of all words of a transmission, which a Fadelink board that has this option tells at the end: CRC-32 of IEEE 802.3, of
//! the bytes of the words as they are on the wire.

/// Before the CRC, and in FADE v1 the number of words: they are told.
pub const CHECKSUM_MARK: u16 = 0xC4EC;

/// Words of a packet of FADE v1.
const PACKET_WORDS: u16 = 128;

/// The CRC, as a state frame of FADE v1 tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checksum {
    /// Valid words of the last packet; 0: all are.
    pub last_words: u16,
    /// Of the valid words alone.
    pub crc: u32,
}

impl Checksum {
    /// Words of filler behind the valid ones of the last packet.
    pub fn filler_words(self) -> u16 {
        match self.last_words {
            0 => 0,
            words => PACKET_WORDS.saturating_sub(words),
        }
    }

    /// Bytes in a state frame.
    pub(crate) const LEN: usize = 8;

    /// `None`: the board does not tell it.
    pub(crate) fn from_bytes(bytes: [u8; Self::LEN]) -> Option<Checksum> {
        let [m0, m1, w0, w1, crc @ ..] = bytes;
        let is_told = u16::from_be_bytes([m0, m1]) == CHECKSUM_MARK;
        is_told.then(|| Checksum { last_words: u16::from_be_bytes([w0, w1]), crc: u32::from_be_bytes(crc) })
    }

    pub(crate) fn to_bytes(self) -> [u8; Self::LEN] {
        let ([m0, m1], [w0, w1]) = (CHECKSUM_MARK.to_be_bytes(), self.last_words.to_be_bytes());
        let [a, b, c, d] = self.crc.to_be_bytes();
        [m0, m1, w0, w1, a, b, c, d]
    }
}

/// The final word of a last packet of FADE-10G: the number of valid words, and the CRC if it is told.
pub(crate) fn split_final(bytes: [u8; 8]) -> Option<(u16, u32)> {
    let [w0, w1, m0, m1, crc @ ..] = bytes;
    let is_told = u16::from_le_bytes([m0, m1]) == CHECKSUM_MARK;
    is_told.then(|| (u16::from_le_bytes([w0, w1]), u32::from_le_bytes(crc)))
}

/// As [`split_final`] reads it.
pub(crate) fn join_final(words: u16, crc: u32) -> [u8; 8] {
    let ([w0, w1], [m0, m1]) = (words.to_le_bytes(), CHECKSUM_MARK.to_le_bytes());
    let [a, b, c, d] = crc.to_le_bytes();
    [w0, w1, m0, m1, a, b, c, d]
}

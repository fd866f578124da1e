//! RESETs that a Fadelink board has obeyed since the START of its transmission, and who sent them. A RESET comes from any
//! computer and is not answered, so nothing else shows one that nobody should have sent.

use crate::ethernet::MacAddr;

/// Of FADE v1, before the RESETs in a state frame: they are counted. Earlier boards have filler there.
pub const STATE_RESETS: u8 = 1;

/// RESETs since START.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Resets {
    /// How many; 255: or more.
    pub count: u8,
    /// The computer that sent the last one; `None`: not known, or there was none.
    pub by: Option<MacAddr>,
}

impl Resets {
    /// Bytes in a state frame of FADE v1.
    pub(crate) const LEN: usize = 8;

    /// `None`: the board does not count them.
    pub(crate) fn from_bytes(bytes: [u8; Self::LEN]) -> Option<Resets> {
        let [mark, count, address @ ..] = bytes;
        (mark == STATE_RESETS).then(|| Resets { count, by: sender(address) })
    }

    pub(crate) fn to_bytes(self) -> [u8; Self::LEN] {
        let [a, b, c, d, e, f] = self.by.map_or([0; 6], |by| by.0);
        [STATE_RESETS, self.count, a, b, c, d, e, f]
    }
}

/// The answer of FADE-10G to RESET BY.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResetBy {
    /// Number of the transmission, or of the last one.
    pub transmission: u16,
    /// The computer that sent the last RESET since its START.
    pub by: Option<MacAddr>,
}

impl ResetBy {
    /// From the value of the response.
    pub fn from_value(value: u64) -> ResetBy {
        let [t0, t1, address @ ..] = value.to_be_bytes();
        ResetBy { transmission: u16::from_be_bytes([t0, t1]), by: sender(address) }
    }

    /// As [`Self::from_value`] reads it.
    pub fn to_value(self) -> u64 {
        let ([t0, t1], [a, b, c, d, e, f]) = (self.transmission.to_be_bytes(), self.by.map_or([0; 6], |by| by.0));
        u64::from_be_bytes([t0, t1, a, b, c, d, e, f])
    }
}

fn sender(address: [u8; 6]) -> Option<MacAddr> {
    (address != [0; 6]).then_some(MacAddr(address))
}

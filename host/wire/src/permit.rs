//! The permit to begin a transmission (docs/protocol/fade10g.md, "The permit"). A FEB gives it to who sends START without it, and
//! obeys START only with it. The transmission that begins uses it up; so does RESET, and the power switch.

use crate::fade10g::{PERMIT_SHIFT, START_PERMIT, STATUS_PERMIT};

/// Of FADE v1, before a permit: START is obeyed only with it. The FEB gives permits.
pub const PERMIT_MARK: u16 = 0x9E12;

/// A permit of 30 bits; 0: none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Permit(u32);

impl Permit {
    /// There is none. START with it asks for one.
    pub const NONE: Permit = Permit(0);
    /// Bytes in a frame of FADE v1.
    pub(crate) const START_LEN: usize = 6;
    /// The same in a state frame.
    pub(crate) const STATE_LEN: usize = 8;

    /// The lower 30 bits.
    pub fn new(bits: u32) -> Permit {
        Permit(bits & (u32::MAX >> PERMIT_SHIFT))
    }

    /// There is none.
    pub fn is_none(self) -> bool {
        self == Permit::NONE
    }

    /// The bits.
    pub fn bits(self) -> u32 {
        self.0
    }

    /// In the argument of START of FADE-10G.
    pub fn to_argument(self) -> u32 {
        self.0 << PERMIT_SHIFT | START_PERMIT
    }

    /// What a START of FADE-10G shows; `None`: it is to be obeyed without.
    pub fn from_argument(argument: u32) -> Option<Permit> {
        (argument & START_PERMIT != 0).then_some(Permit(argument >> PERMIT_SHIFT))
    }

    /// As the answer to START of FADE-10G has it.
    pub fn to_answer(self) -> u64 {
        u64::from(self.0) << PERMIT_SHIFT | STATUS_PERMIT
    }

    /// What the answer to START gives; `None`: no permit.
    pub fn from_answer(value: u64) -> Option<Permit> {
        let argument = u32::try_from(value).ok()?;
        (value & STATUS_PERMIT == STATUS_PERMIT).then_some(Permit(argument >> PERMIT_SHIFT))
    }

    /// Of START of FADE v1, behind its number; `None`: it is to be obeyed without.
    pub(crate) fn from_start(bytes: [u8; Self::START_LEN]) -> Option<Permit> {
        let [m0, m1, bits @ ..] = bytes;
        (u16::from_be_bytes([m0, m1]) == PERMIT_MARK).then(|| Permit::new(u32::from_be_bytes(bits)))
    }

    /// As [`Self::from_start`] reads it.
    pub(crate) fn to_start(self) -> [u8; Self::START_LEN] {
        let ([m0, m1], [a, b, c, d]) = (PERMIT_MARK.to_be_bytes(), self.0.to_be_bytes());
        [m0, m1, a, b, c, d]
    }

    /// Of a state frame of FADE v1; `None`: the board gives none.
    pub(crate) fn from_state(bytes: [u8; Self::STATE_LEN]) -> Option<Permit> {
        let [m0, m1, _, _, bits @ ..] = bytes;
        Self::from_start([m0, m1, bits[0], bits[1], bits[2], bits[3]])
    }

    /// As [`Self::from_state`] reads it.
    pub(crate) fn to_state(self) -> [u8; Self::STATE_LEN] {
        let [m0, m1, a, b, c, d] = self.to_start();
        [m0, m1, 0, 0, a, b, c, d]
    }
}

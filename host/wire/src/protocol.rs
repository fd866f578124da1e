//! Decides which protocol a frame of the shared ethertype belongs to.

use core::fmt;
use core::str::FromStr;

use crate::{fade1, fade10g};

/// The protocols that share ethertype 0xFADE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// [`fade10g`]
    Fade10g,
    /// [`fade1`]
    Fade1,
}

impl Protocol {
    /// Which one a frame is of, by the u16 after the ethertype: there FADE-10G has its version, FADE v1 its
    /// frame type. Of neither: FADE-10G, whose parser says what is wrong.
    pub fn of(frame: &[u8]) -> Protocol {
        let kind = frame.get(14..16).map_or(fade10g::VERSION, |b| u16::from_be_bytes([b[0], b[1]]));
        match kind {
            fade1::TYPE_DATA
            | fade1::TYPE_STATE
            | fade1::TYPE_START
            | fade1::TYPE_STOP
            | fade1::TYPE_ACK
            | fade1::TYPE_RESET => Protocol::Fade1,
            _ => Protocol::Fade10g,
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Protocol::Fade10g => "fade10g",
            Protocol::Fade1 => "fade1",
        })
    }
}

impl FromStr for Protocol {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "fade10g" => Ok(Protocol::Fade10g),
            "fade1" => Ok(Protocol::Fade1),
            _ => Err("expected fade10g or fade1".into()),
        }
    }
}

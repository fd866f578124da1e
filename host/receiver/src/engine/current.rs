//! The transmission that is being received, in either protocol.

use super::fade10g_transmission::Fade10g;
use super::fade1_transmission::Fade1;
use super::transmission::Transmission;

/// What is being received.
pub(super) enum Current {
    None,
    Fade10g(Fade10g),
    Fade1(Fade1),
}

impl Current {
    pub(super) fn get(&self) -> Option<&dyn Transmission> {
        match self {
            Current::None => None,
            Current::Fade10g(fade10g) => Some(fade10g),
            Current::Fade1(fade1) => Some(fade1),
        }
    }

    pub(super) fn get_mut(&mut self) -> Option<&mut dyn Transmission> {
        match self {
            Current::None => None,
            Current::Fade10g(fade10g) => Some(fade10g),
            Current::Fade1(fade1) => Some(fade1),
        }
    }
}

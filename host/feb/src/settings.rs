//! BoardSettings of a board.

use std::time::Duration;

use crate::congestion::Rule;
use crate::quirks::Quirks;

/// BoardSettings of a FEB.
#[derive(Debug, Clone, Copy)]
pub struct BoardSettings {
    /// Packets of the window, a power of two.
    pub window: u32,
    /// Number of the first packet of a transmission: 0 but in tests of the wrap.
    pub first_packet: u32,
    /// Time from one data frame to the next, at least: the rate of the line.
    pub pace: Duration,
    /// How the delay adapts to retransmissions.
    pub rule: Rule,
    /// What it does otherwise than Fadelink's cores.
    pub quirks: Quirks,
}

impl Default for BoardSettings {
    fn default() -> BoardSettings {
        BoardSettings {
            window: 32,
            first_packet: 0,
            pace: Duration::ZERO,
            rule: Rule::default(),
            quirks: Quirks::default(),
        }
    }
}

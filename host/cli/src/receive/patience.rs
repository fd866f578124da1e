//! How long a FADE board is waited for after STOP.

use std::time::Duration;

/// Times and attempts.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// Longest silence after STOP, if the user sets no other.
    pub silence: Duration,
    /// Attempts of STOP after the first.
    pub stop_retries: u32,
    /// Silence after STOP, and time from one question to the next, before the board is asked whether its transmission runs.
    pub inquiry: Duration,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience { silence: Duration::from_secs(30), stop_retries: 300, inquiry: Duration::from_secs(1) }
    }
}

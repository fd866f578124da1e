//! How long boards are waited for.

use std::time::Duration;

/// A FADE board after STOP: times and attempts.
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

/// A board with the UDP/IP stack: times and attempts.
#[derive(Debug, Clone, Copy)]
pub struct UdpPatience {
    /// From the end of a run to the moment in which what is missing is given up for.
    pub linger: Duration,
    /// Longest wait for a datagram while later ones are there: no network keeps one back for so long.
    pub hold: Duration,
    /// Silence after which a board is asked whether its run is over.
    pub silence: Duration,
    /// Longest wait for the ends of runs that were stopped; and for that of an earlier run.
    pub end: Duration,
    /// Longest wait for a board to say whether the end of its run is true.
    pub doubt: Duration,
    /// Of the slow control: wait of one attempt, attempts after the first.
    pub attempt: Duration,
    pub retries: u32,
}

impl Default for UdpPatience {
    fn default() -> UdpPatience {
        UdpPatience {
            linger: Duration::from_millis(200),
            hold: Duration::from_secs(5),
            silence: Duration::from_secs(1),
            end: Duration::from_secs(10),
            doubt: Duration::from_secs(2),
            attempt: Duration::from_millis(200),
            retries: 25,
        }
    }
}

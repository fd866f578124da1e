//! Notices that something waits and nothing is done.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What has not answered for so long is away.
pub const AWAY: Duration = Duration::from_secs(10);

/// See the module.
#[derive(Debug)]
pub struct Stall {
    /// How much was done, and when that was first seen.
    seen: Mutex<(u64, Instant)>,
}

impl Default for Stall {
    fn default() -> Stall {
        Stall { seen: Mutex::new((0, Instant::now())) }
    }
}

impl Stall {
    /// Looks at what was `done` until now, and whether something waits; true: that for [`AWAY`], and nothing was done.
    pub fn look(&self, done: u64, waits: bool) -> bool {
        self.look_at(Instant::now(), done, waits)
    }

    fn look_at(&self, now: Instant, done: u64, waits: bool) -> bool {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if !waits || done != seen.0 {
            *seen = (done, now);
        }
        now.saturating_duration_since(seen.1) > AWAY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_and_is_not_done_is_noticed() {
        let (stall, begin) = (Stall::default(), Instant::now());
        let at = |tenths: u32, done, waits| stall.look_at(begin + tenths * AWAY / 10, done, waits);
        assert!(!at(0, 5, true) && !at(9, 5, true) && at(11, 5, true));
        assert!(!at(12, 6, true), "it goes on");
        assert!(!at(30, 6, false), "nothing waits");
        assert!(!at(39, 6, true) && at(41, 6, true));
    }
}

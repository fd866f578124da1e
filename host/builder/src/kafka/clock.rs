//! The time for the detection of silent sources: how far a partition was read, not how long the reader was away.
//!
//! It follows the times that the broker gave to messages while they are read. When all messages were read and the
//! broker answers, it follows the clock of this computer. A step is limited, so that not all sources look silent
//! after the broker or the reader has stopped for a while: the messages of that time are read first.

use std::time::{Duration, Instant};

/// See the module.
#[derive(Debug)]
pub struct Clock {
    now: Instant,
    step_max: Duration,
    /// Time of the newest message, in ms since 1970.
    newest: Option<i64>,
    /// Time that went on since that message, which its follower's includes.
    idle: Duration,
    at_end: bool,
}

impl Clock {
    /// Steps are short beside `silence`.
    pub fn new(silence: Duration) -> Clock {
        let step_max = (silence / 8).clamp(Duration::from_millis(10), Duration::from_millis(250));
        Clock { now: Instant::now(), step_max, newest: None, idle: Duration::ZERO, at_end: false }
    }

    /// The time.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// A message was read, to which the broker gave the time `ms` since 1970, if any.
    pub fn on_message(&mut self, ms: Option<i64>) {
        self.at_end = false;
        let Some(ms) = ms else { return };
        let newest = *self.newest.get_or_insert(ms);
        let step = Duration::from_millis(u64::try_from(ms.saturating_sub(newest)).unwrap_or(0)).min(self.step_max);
        self.now += step.saturating_sub(self.idle);
        if ms > newest {
            self.newest = Some(ms);
            self.idle = Duration::ZERO;
        }
    }

    /// True if all messages were read.
    pub fn is_at_end(&self) -> bool {
        self.at_end
    }

    /// All messages were read.
    pub fn on_end(&mut self) {
        self.at_end = true;
    }

    /// `passed` went by; the broker answered in it.
    pub fn on_tick(&mut self, passed: Duration) {
        if self.at_end {
            let step = passed.min(self.step_max);
            self.now += step;
            self.idle += step;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn passed(clock: &Clock, since: Instant) -> u128 {
        (clock.now() - since).as_millis()
    }

    #[test]
    fn time_goes_on_by_what_is_read() {
        let mut clock = Clock::new(2 * SECOND);
        let begin = clock.now();
        // Unread messages: nothing goes on while the reader is away.
        clock.on_tick(60 * SECOND);
        assert_eq!(passed(&clock, begin), 0);
        for ms in [1000, 1100, 1050, 1200] {
            clock.on_message(Some(ms));
        }
        assert_eq!(passed(&clock, begin), 200);
        // The broker stood still for 10 s.
        clock.on_message(Some(11_200));
        assert_eq!(passed(&clock, begin), 450);
        clock.on_message(None);
        assert_eq!(passed(&clock, begin), 450);
    }

    #[test]
    fn time_goes_on_at_the_end_and_is_not_counted_twice() {
        let mut clock = Clock::new(2 * SECOND);
        let begin = clock.now();
        clock.on_message(Some(1000));
        clock.on_end();
        for _ in 0..10 {
            clock.on_tick(SECOND / 50);
        }
        assert_eq!(passed(&clock, begin), 200);
        clock.on_message(Some(1210));
        assert_eq!(passed(&clock, begin), 210);
        // A reader that was away at the end: one step.
        clock.on_end();
        clock.on_tick(60 * SECOND);
        assert_eq!(passed(&clock, begin), 460);
    }
}

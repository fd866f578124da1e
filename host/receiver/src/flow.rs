//! When the receiving thread naps instead of waiting for the next frame. A wake-up costs more than a frame does: while
//! data flows, frames gather during a nap, and are taken and confirmed together.

use std::cell::Cell;
use std::num::NonZeroU64;
use std::time::Duration;

/// Time over which it is judged whether data flows.
const SPAN: Duration = Duration::from_micros(500);
/// Longest mean time from frame to frame at which it does.
const SPACING: Duration = Duration::from_nanos(1_000_000 / 60);
/// Frames that came together, from which on there is no nap: they are worth their wake-up.
const BATCH: usize = 16;
/// The longest nap.
const NAP: Duration = Duration::from_micros(50);
/// The part of the time for which a FEB's window lasts that it may be kept waiting.
const SHARE: u32 = 8;

/// How fast frames come.
#[derive(Debug)]
pub(crate) struct Flow {
    begin: Duration,
    frames: u32,
    /// Mean time from frame to frame in the last span, if data flowed.
    spacing: Option<Duration>,
}

impl Flow {
    pub(crate) fn new() -> Flow {
        Flow { begin: Duration::ZERO, frames: 0, spacing: None }
    }

    /// `frames` came together until `now`.
    pub(crate) fn took(&mut self, frames: usize, now: Duration) {
        self.frames += frames as u32;
        let time = now - self.begin;
        if time >= SPAN {
            self.spacing = time.checked_div(self.frames).filter(|spacing| *spacing <= SPACING);
            (self.begin, self.frames) = (now, 0);
        }
    }

    /// As [`Self::took`]: the time to sleep before the next ones are taken, if FEBs have a window of `window` packets at
    /// least (0: they do not wait). `None`: the next frame is waited for.
    pub(crate) fn nap(&mut self, frames: usize, window: u32, now: Duration) -> Option<Duration> {
        self.took(frames, now);
        let nap = NAP.min(self.spacing? * window / SHARE);
        (frames < BATCH && !nap.is_zero()).then_some(nap)
    }
}

/// Sleeps for a nap.
pub(crate) fn sleep(nap: Duration) {
    thread_local!(static IS_EXACT: Cell<bool> = const { Cell::new(false) });
    if !IS_EXACT.replace(true) {
        // By default the kernel lets each timer of a thread be late by as much as a nap is long. It fails where that is
        // forbidden, and naps are longer then.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    }
    std::thread::sleep(nap);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames every `spacing`, `batch` at a time, for 2 ms: what is said at the end.
    fn nap(spacing: Duration, batch: usize, window: u32) -> Option<Duration> {
        let mut flow = Flow::new();
        let mut now = Duration::from_secs(1);
        let end = now + Duration::from_millis(2);
        let mut nap = None;
        while now < end {
            now += spacing * batch as u32;
            nap = flow.nap(batch, window, now);
        }
        nap
    }

    #[test]
    fn naps_while_data_flows_in_small_batches() {
        let micros = Duration::from_micros;
        assert_eq!(nap(micros(7), 3, 64), Some(NAP));
        assert_eq!(nap(micros(8), 1, 16), Some(micros(16)), "an eighth of the window");
        assert_eq!(nap(micros(7), 16, 64), None, "a batch that is worth its wake-up");
        assert_eq!(nap(micros(20), 1, 64), None, "too slow");
        assert_eq!(nap(micros(7), 1, 0), None, "a FEB that waits for each ACK");
    }

    #[test]
    fn ends_when_nothing_comes() {
        let mut flow = Flow::new();
        let mut now = Duration::ZERO;
        for _ in 0..1000 {
            now += Duration::from_micros(7);
            flow.nap(1, 64, now);
        }
        assert!(flow.nap(0, 64, now + Duration::from_micros(100)).is_some(), "frames may be on their way");
        assert!(flow.nap(0, 64, now + Duration::from_micros(600)).is_none_or(|nap| !nap.is_zero()));
        assert_eq!(flow.nap(0, 64, now + Duration::from_micros(1200)), None);
    }
}

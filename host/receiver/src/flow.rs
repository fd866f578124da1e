//! When the receiving thread naps instead of waiting for the next frame. A wake-up costs more than a frame. During
//! a nap frames gather, and they are then read and confirmed together.

use std::cell::Cell;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

/// Time over which it is judged whether data flows; as many times that as there are threads, for each gets its part in bursts.
const SPAN: Duration = Duration::from_micros(500);
/// Frames a second from which on it does.
const RATE: u64 = 60_000;
/// Frames that came together, from which on there is no nap: they are worth their wake-up.
const BATCH: usize = 16;
/// The longest nap, where one thread receives all frames; where each of several receives a part, so many times that: there
/// are as many wake-ups then.
const NAP: Duration = Duration::from_micros(50);
/// The part of the time for which a FEB's window lasts that it may be kept waiting.
const SHARE: u32 = 8;

/// How fast frames come to all the threads that receive from one interface.
#[derive(Debug, Default)]
pub(crate) struct Flows {
    /// Frames a second, of all threads.
    rate: AtomicU64,
    /// Threads that frames come to.
    threads: AtomicU64,
}

/// How fast frames come to one of them.
#[derive(Debug)]
pub(crate) struct Flow {
    flows: Arc<Flows>,
    begin: Duration,
    frames: u64,
    /// Frames a second in the last span.
    rate: u64,
}

impl Flow {
    pub(crate) fn new(flows: &Arc<Flows>) -> Flow {
        Flow { flows: flows.clone(), begin: Duration::ZERO, frames: 0, rate: 0 }
    }

    /// `frames` came together until `now`.
    pub(crate) fn took(&mut self, frames: usize, now: Duration) {
        self.frames += frames as u64;
        let time = now - self.begin;
        if time >= SPAN * self.threads().max(1) {
            self.tell((self.frames as f64 / time.as_secs_f64()) as u64);
            (self.begin, self.frames) = (now, 0);
        }
    }

    /// Threads that frames come to.
    fn threads(&self) -> u32 {
        self.flows.threads.load(Ordering::Relaxed) as u32
    }

    fn tell(&mut self, rate: u64) {
        let threads = u64::from(rate > 0).wrapping_sub(u64::from(self.rate > 0));
        self.flows.threads.fetch_add(threads, Ordering::Relaxed);
        self.flows.rate.fetch_add(rate.wrapping_sub(self.rate), Ordering::Relaxed);
        self.rate = rate;
    }

    /// As [`Self::took`]: the time to sleep before the next ones are taken, if FEBs have a window of `window` packets at
    /// least (0: they do not wait). `None`: the next frame is waited for.
    pub(crate) fn nap(&mut self, frames: usize, window: u32, now: Duration) -> Option<Duration> {
        self.took(frames, now);
        if frames >= BATCH || self.flows.rate.load(Ordering::Relaxed) < RATE {
            return None;
        }
        let window_lasts = Duration::from_secs(window.into()).checked_div(u32::try_from(self.rate).ok()?)?;
        Some((NAP * self.threads()).min(window_lasts / SHARE)).filter(|nap| !nap.is_zero())
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        self.tell(0);
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
        let mut flow = Flow::new(&Arc::default());
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

    /// Of threads that receive 20 frames a millisecond each.
    #[test]
    fn threads_that_share_the_frames_nap_for_longer() {
        let flows = Arc::default();
        let take = |flow: &mut Flow, begin: u64, window| {
            let times = (0..=100).map(|i| Duration::from_micros(5000 * begin + 50 * i));
            times.fold(None, |_, now| flow.nap(1, window, now))
        };
        let micros = Duration::from_micros;
        let mut all: Vec<_> = (0..4).map(|_| Flow::new(&flows)).collect();
        all.iter_mut().for_each(|flow| _ = take(flow, 0, 64));
        assert_eq!(take(&mut all[0], 1, 64), Some(4 * NAP), "80 frames a millisecond together");
        assert_eq!(take(&mut all[0], 2, 16), Some(micros(100)), "an eighth of the window");
        all.truncate(2);
        assert_eq!(take(&mut all[0], 3, 64), None, "40 frames a millisecond together");
    }

    #[test]
    fn ends_when_nothing_comes() {
        let mut flow = Flow::new(&Arc::default());
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

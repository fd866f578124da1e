//! Limits of a run.

use std::time::{Duration, Instant};

/// Limits of a run, or of one of its streams.
#[derive(Debug, Clone, Copy, Default)]
pub struct Limits {
    /// Longest wait for a board that does not answer at the begin; each board is asked once in any case.
    pub wait: Duration,
    /// Longest time.
    pub duration: Option<Duration>,
    /// Longest silence.
    pub idle: Option<Duration>,
    /// Bytes that are enough.
    pub bytes: Option<u64>,
}

/// Limits that run.
#[derive(Debug, Clone, Copy)]
pub struct Deadline {
    limits: Limits,
    begun: Instant,
    heard: Instant,
}

impl Deadline {
    /// From now on.
    pub fn new(limits: Limits) -> Deadline {
        let now = Instant::now();
        Deadline { limits, begun: now, heard: now }
    }

    /// Something came, or could not come because a sink holds it up.
    pub fn heard(&mut self) {
        self.heard = Instant::now();
    }

    /// Time since something came.
    pub fn silence(&self) -> Duration {
        self.heard.elapsed()
    }

    /// True if it was long enough, or what came is.
    pub fn is_reached(&self, bytes: u64) -> bool {
        self.limits.duration.is_some_and(|limit| self.begun.elapsed() >= limit)
            || self.limits.bytes.is_some_and(|limit| bytes >= limit)
    }

    /// The end was asked for: from now on a silence of `patience` is too long, if no other is set.
    pub fn stop(&mut self, patience: Duration) {
        self.limits.idle.get_or_insert(patience);
        self.heard();
    }

    /// The longest silence, if it was as long.
    pub fn too_silent(&self) -> Option<Duration> {
        self.limits.idle.filter(|limit| self.heard.elapsed() >= *limit)
    }
}

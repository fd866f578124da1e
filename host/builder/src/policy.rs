//! What to do with windows that are incomplete, late or duplicate.

use std::time::Duration;

use crate::key::Key;

/// What to do with windows that are incomplete, late or duplicate.
#[derive(Debug, Clone)]
pub struct Policy {
    /// What the number of a window is taken from.
    pub key: Key,
    /// Length of a window in nanoseconds.
    pub window_ns: u32,
    /// Sources that a window needs; empty: as many as `count` says.
    pub sources: Vec<u32>,
    /// That many sources, the first ones that are heard. Each owes all windows from the first of any of them on, as if they were named.
    pub count: usize,
    /// Give away windows in which a source is missing; else they are dropped.
    pub emit_incomplete: bool,
    /// Give away what comes too late as an event of its own; else it is dropped.
    pub emit_late: bool,
    /// Of two messages of one window and source, keep the last; else the first.
    pub keep_last: bool,
    /// A source that was silent for so long is not waited for.
    pub silence: Duration,
    /// Windows that may be open from the first that waits on.
    pub max_open: u64,
    /// Bytes of open windows, of all epochs, from which on a source waits that is ahead of the first one.
    pub max_bytes: u64,
    /// Windows that a source may pass over at once; a number further ahead is not joined to the windows of others.
    pub max_ahead: u64,
}

/// Windows that a crate may pass over, at most: its register `keepalive` has 24 bits.
pub const AHEAD_MAX: u64 = 1 << 24;

/// Bytes of open windows, unless something else is said.
pub const OPEN_BYTES: u64 = 256 << 20;

impl Default for Policy {
    fn default() -> Policy {
        Policy {
            key: Key::Counter,
            window_ns: 1000,
            sources: Vec::new(),
            count: 0,
            emit_incomplete: true,
            emit_late: false,
            keep_last: false,
            silence: Duration::from_secs(2),
            max_open: 4096,
            max_bytes: OPEN_BYTES,
            max_ahead: AHEAD_MAX,
        }
    }
}

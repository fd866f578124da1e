//! What is known of a source's windows before one of its messages.

use std::ops::Range;

use fadelink_wire::fadc::LOST_MAX;

/// See the module.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Before {
    /// The source sent all windows from this one on that are not empty.
    pub since: u64,
    /// Windows that were lost on the way to here (`start..end`; empty: none).
    pub lost: (u64, u64),
}

/// Windows right before window `key` that its crate has lost, of which it tells the number (see [`LOST_MAX`]). `passed`: the window
/// after the one that it sent before.
pub fn lost_before(lost: u16, key: u64, passed: u64) -> Range<u64> {
    let first = if lost >= LOST_MAX { passed } else { key.saturating_sub(lost.into()).max(passed) };
    first.min(key)..key
}

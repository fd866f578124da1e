//! A source of messages: where it sends, and when it was heard.

use std::time::{Duration, Instant};

use crate::before::Before;
use crate::counts::SourceCounts;
use crate::inspect::Inspected;

/// A message whose number waits for the next one.
#[derive(Debug)]
pub(crate) struct Pending {
    pub message: Inspected,
    pub key: u64,
    pub before: Option<Before>,
    /// If it is right, the source has passed over what is between; else the source counts anew.
    pub is_ahead: bool,
}

impl Pending {
    /// True if `next` goes on from here, so that both are right. `follows`: it goes on from where the source was, too.
    pub fn goes_on_with(&self, next: &Pending, follows: bool, max_ahead: u64) -> bool {
        let is_next = next.key >= self.key && next.key - self.key <= max_ahead.saturating_add(1);
        is_next && self.message.stream == next.message.stream && (self.is_ahead || !next.is_ahead && !follows)
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Source {
    /// The epoch that it sends in; and the place of its first message there, if it was in another one before.
    pub epoch: Option<u64>,
    pub since: Option<i64>,
    /// When something of it was taken.
    pub heard: Option<Instant>,
    pub is_absent: bool,
    /// Its next message follows one that was taken; else nothing is known of what it has sent before.
    pub goes_on: bool,
    pub pending: Option<Pending>,
    pub counts: SourceCounts,
}

impl Source {
    /// The time since something of it was taken.
    pub fn quiet(&self, now: Instant) -> Duration {
        self.heard.map_or(Duration::ZERO, |heard| now.saturating_duration_since(heard))
    }
}

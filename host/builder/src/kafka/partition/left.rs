//! Messages that are left in the topic for later: those of sources that are too far ahead of others.
//!
//! All sources of a window share a partition. So the reader does not stand still, as it would never come to what the others have
//! sent: it reads on without these sources, and goes back to their messages when there is room. Each message is taken once.

use std::collections::BTreeMap;

/// The messages of a source from this one on.
#[derive(Debug)]
struct Rest {
    from: i64,
    /// The window of the first one.
    key: u64,
    /// They are passed over for now; else they are taken again from there on.
    waits: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Left {
    rests: BTreeMap<u32, Rest>,
}

impl Left {
    /// The first message of each source that was left.
    pub fn first(&self) -> BTreeMap<u32, i64> {
        self.rests.iter().map(|(source, rest)| (*source, rest.from)).collect()
    }

    /// True if nothing is left.
    pub fn is_empty(&self) -> bool {
        self.rests.is_empty()
    }

    /// True if a message is to be taken now, or left again. `is_again`: it was read before.
    pub fn is_due(&mut self, source: u32, offset: i64, is_again: bool) -> bool {
        let Some(rest) = self.rests.get_mut(&source) else { return !is_again };
        let is_due = !rest.waits && offset >= rest.from;
        if is_due {
            rest.from = offset + 1;
        }
        is_due
    }

    /// Leaves what a source has sent from `offset` on, which is of window `key`.
    pub fn leave(&mut self, source: u32, offset: i64, key: u64) {
        self.rests.insert(source, Rest { from: offset, key, waits: true });
    }

    /// All that was read before was read again: who does not wait has nothing left.
    pub fn read_again(&mut self) {
        self.rests.retain(|_, rest| rest.waits);
    }

    /// True if one of those that wait may go on, by its number and the window of its next message.
    pub fn may_go_on(&self, may: impl Fn(u32, u64) -> bool) -> bool {
        self.rests.iter().any(|(source, rest)| rest.waits && may(*source, rest.key))
    }

    /// Nobody waits any more: what was left is read again.
    pub fn go_on(&mut self) {
        self.rests.values_mut().for_each(|rest| rest.waits = false);
    }

    /// The first message that was left.
    pub fn oldest(&self) -> Option<i64> {
        self.rests.values().map(|rest| rest.from).min()
    }
}

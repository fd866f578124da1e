//! What a partition brought, in numbers.

use crate::counts::Joined;

/// What a partition brought.
#[derive(Debug, Default, Clone)]
pub struct Totals {
    /// What was joined.
    pub joined: Joined,
    /// Messages of windows that an earlier builder has given away.
    pub replayed: u64,
    /// Messages that cannot be read.
    pub malformed: u64,
    /// Messages that the topic does not have any more.
    pub gone: u64,
    /// What was wrong with windows and messages that earlier builders have committed without a report.
    pub unreported: u64,
}

impl Totals {
    /// Windows and messages with which something is wrong.
    pub fn wrong(&self) -> u64 {
        self.joined.wrong() + self.malformed + self.gone + self.unreported
    }
}

impl std::ops::AddAssign<&Totals> for Totals {
    fn add_assign(&mut self, more: &Totals) {
        self.joined += &more.joined;
        self.replayed += more.replayed;
        self.malformed += more.malformed;
        self.gone += more.gone;
        self.unreported += more.unreported;
    }
}

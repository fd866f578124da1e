//! The report on the work of a builder.

use serde::Serialize;

use super::error::Error;
use crate::counts::Joined;
use crate::Event;

/// How the end of what came is known.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// Nothing came.
    #[default]
    NothingCame,
    /// There may be more: messages that were not read, windows that are open, or a source whose end has not come.
    Open,
    /// This builder was given nothing; others of its group have read and given away all, and the end of each source has come.
    ByOthers,
    /// All was read and given away, and the end of each source has come behind its messages.
    Told,
}

/// What a builder did.
#[derive(Debug, Default, Clone, Serialize)]
pub struct Report {
    /// Messages that were read; what was not committed is read again.
    pub messages: u64,
    /// Messages of windows that had been given away before this builder began.
    pub replayed: u64,
    /// Messages that are invalid, or have a note that cannot be read.
    pub malformed: u64,
    /// Messages that the topic had and does not have any more: they were deleted or compacted before they were read.
    pub gone: u64,
    /// Windows and messages with which something is wrong, and which a builder before has committed without a report: it was killed.
    pub unreported: u64,
    /// Transactions.
    pub commits: u64,
    /// Transactions that were given up, their work done again.
    pub aborts: u64,
    /// Windows whose events were committed.
    #[serde(flatten)]
    pub joined: Joined,
    /// How the end is known, when it has run.
    #[serde(skip)]
    pub end: End,
    /// Messages that were read, and of which nothing confirms that their events were written.
    pub unwritten: u64,
    /// Why not, at the last try.
    #[serde(skip)]
    pub failed: Option<String>,
    /// Why it has ended early.
    #[serde(skip)]
    pub error: Option<String>,
    /// Why it has done nothing, in words, where others of its group have done all.
    pub idle: Option<&'static str>,
    /// What was written and is not as it was, in words.
    pub changed: Vec<String>,
    /// What has not ended, in words.
    pub open: Vec<String>,
}

/// What looks at a builder.
pub trait Watcher {
    /// An event was committed.
    fn event(&mut self, event: &Event);
    /// Called again and again, with what was done, and what keeps the builder from its work.
    fn tick(&mut self, report: &Report, trouble: Option<&Error>);
}

/// Nobody looks.
impl Watcher for () {
    fn event(&mut self, _: &Event) {}

    fn tick(&mut self, _: &Report, _: Option<&Error>) {}
}

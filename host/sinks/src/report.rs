//! What a sink has done.

use std::sync::Arc;

use serde::{Serialize, Serializer};

use crate::made::Made;

/// What a sink has done with its items, in units of [`crate::Item::UNIT`].
#[derive(Debug, Clone, Default, Serialize)]
pub struct Report {
    /// The sink, as its user wrote it.
    pub sink: String,
    /// What it has taken.
    pub written: u64,
    /// The same of a sink of which nobody confirms that what it was given has arrived.
    pub handed_over: u64,
    /// What it lost: its queue was full, or it had failed.
    pub dropped: u64,
    /// It may lose what comes too fast: its user lets it, or it is made so.
    pub may_drop: bool,
    /// All others go on when it fails.
    pub optional: bool,
    /// What it has taken can be read later.
    pub keeps: bool,
    /// What of `written` can be read, whatever happens from now on.
    pub intact: u64,
    /// Memory of what waits for it, in bytes.
    pub queued_bytes: u64,
    /// Why it failed, if it has.
    pub error: Option<String>,
    /// What keeps it from its work, as long as it may pass.
    #[serde(skip)]
    pub trouble: Option<String>,
    /// The files that it has made, when it has ended.
    #[serde(rename = "files", serialize_with = "listed")]
    pub made: Arc<[Made]>,
}

fn listed<S: Serializer>(made: &Arc<[Made]>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(made.iter())
}

impl Report {
    /// Adds what the same sink has done for another board.
    pub fn add(&mut self, other: Report) {
        self.written += other.written;
        self.handed_over += other.handed_over;
        self.dropped += other.dropped;
        self.intact += other.intact;
        self.queued_bytes += other.queued_bytes;
        self.error = self.error.take().or(other.error);
        self.trouble = self.trouble.take().or(other.trouble);
    }

    /// It has all that it was given, and keeps it.
    pub fn is_kept(&self) -> bool {
        self.keeps && self.dropped == 0 && self.error.is_none()
    }

    /// It ends the run: it has failed, and is to do its work.
    pub fn is_fatal(&self) -> bool {
        self.error.is_some() && !self.optional
    }

    /// Looks whether its files are there as it has made them: what they are now counts, and not what they were when it ended.
    pub fn look_again(&mut self) {
        if let (None, Err(error)) = (&self.error, self.made.iter().try_for_each(Made::check)) {
            (self.error, self.intact) = (Some(error.to_string()), 0);
        }
    }
}

//! What is known of the end of a partition.

use super::{Partition, Session, ANYBODYS};

impl Partition {
    /// The offset behind its last message is `end`, now that the end is asked for.
    pub fn ends_at(&mut self, end: i64) {
        self.is_shorter = end < self.expected;
        self.end = Some(end);
    }

    /// True if it is known where it ends.
    pub fn knows_its_end(&self) -> bool {
        self.end.is_some()
    }

    /// True if all was read up to there.
    pub fn has_read_all(&self) -> bool {
        self.end.is_some_and(|end| self.expected >= end) && self.left.is_empty()
    }

    /// What has not ended of all that was read, in words.
    pub fn open(&self) -> Vec<String> {
        let window = self.joiner.oldest().map(|window| format!("window {window} waits for a source"));
        let more =
            self.before.has_more_open.then(|| "more sources had no end than an earlier builder could note".into());
        let feeds = self.feeds.iter().map(|epoch| format!("feed {epoch} has begun and not ended"));
        let unbegun = self.unbegun.iter().map(|epoch| format!("the begin of feed {epoch} has not come"));
        let shorter = self.is_shorter.then(|| "the topic ends before what was read: it was made again".into());
        let sources = self.open_sources().map(|(source, session)| match session {
            &ANYBODYS => format!("source {source:#010x}, which no feed has sent, has no end"),
            (epoch, _) => format!("source {source:#010x} of feed {epoch} has not ended"),
        });
        window.into_iter().chain(more).chain(shorter).chain(feeds).chain(unbegun).chain(sources).collect()
    }

    pub(super) fn open_sources(&self) -> impl Iterator<Item = (&u32, &Session)> {
        let open = self.sources.iter().filter(|(_, (_, has_ended))| !has_ended);
        open.map(|(source, (session, _))| (source, session))
    }
}

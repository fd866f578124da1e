//! What was joined, in numbers: of all windows, and of each source.

use std::collections::BTreeMap;
use std::ops::{AddAssign, SubAssign};

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// Counts of one source.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
pub struct SourceCounts {
    /// Messages that were joined.
    pub messages: u64,
    /// Of windows that had been given away.
    pub late: u64,
    /// Of windows that had a message of this source.
    pub duplicate: u64,
    /// Windows given away, or dropped, without this source.
    pub missing: u64,
    /// Windows that no source sent, and of which nobody knows whether this source had something to send.
    pub unknown: u64,
    /// Windows that the crate tells it has lost; 1023 in a row are at least so many.
    pub windows_lost: u64,
    /// Hits that the crate tells it has lost; 1023 of a module in a window are at least so many.
    pub hits_lost: u64,
    /// Times that a module did not end a window in time: it may have had more hits.
    pub timeouts: u64,
    /// Messages whose timestamp is not that of their window's other messages, or does not fit to that of the message before.
    pub wrong_time: u64,
    /// Messages whose window cannot follow the one before: it is older, too far ahead, or has no number.
    pub wrong_number: u64,
    /// Of them those that were not joined.
    pub set_aside: u64,
    /// Times that it counted windows anew.
    pub anew: u64,
    /// Messages with an invalid word.
    pub wrong_messages: u64,
    /// Messages of it, if the source is not one of those that were expected.
    pub unlisted: u64,
    /// Times that two senders had its number: one began while a connection of it was open, or from another address, or two feeds had it
    /// by turns.
    pub two_senders: u64,
    /// Times that it was silent for too long.
    pub absences: u64,
    /// Times that it began anew: was connected again.
    pub sessions: u64,
}

impl SourceCounts {
    fn change(&mut self, by: &SourceCounts, change: fn(&mut u64, u64)) {
        let SourceCounts {
            messages,
            late,
            duplicate,
            missing,
            unknown,
            windows_lost,
            hits_lost,
            timeouts,
            wrong_time,
            wrong_number,
            set_aside,
            anew,
            wrong_messages,
            unlisted,
            two_senders,
            absences,
            sessions,
        } = by;
        change(&mut self.messages, *messages);
        change(&mut self.late, *late);
        change(&mut self.duplicate, *duplicate);
        change(&mut self.missing, *missing);
        change(&mut self.unknown, *unknown);
        change(&mut self.windows_lost, *windows_lost);
        change(&mut self.hits_lost, *hits_lost);
        change(&mut self.timeouts, *timeouts);
        change(&mut self.wrong_time, *wrong_time);
        change(&mut self.wrong_number, *wrong_number);
        change(&mut self.set_aside, *set_aside);
        change(&mut self.anew, *anew);
        change(&mut self.wrong_messages, *wrong_messages);
        change(&mut self.unlisted, *unlisted);
        change(&mut self.two_senders, *two_senders);
        change(&mut self.absences, *absences);
        change(&mut self.sessions, *sessions);
    }
}

impl AddAssign<&SourceCounts> for SourceCounts {
    fn add_assign(&mut self, more: &SourceCounts) {
        self.change(more, |own, more| *own += more);
    }
}

impl SubAssign<&SourceCounts> for SourceCounts {
    fn sub_assign(&mut self, less: &SourceCounts) {
        self.change(less, |own, less| *own -= less);
    }
}

/// Counts of all windows.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Windows of which all sources are known.
    pub complete: u64,
    /// Windows given away although a source is missing.
    pub incomplete: u64,
    /// Windows dropped because a source is missing.
    pub dropped: u64,
    /// Events given away for what came late.
    pub late: u64,
}

impl AddAssign<&Counts> for Counts {
    fn add_assign(&mut self, more: &Counts) {
        self.complete += more.complete;
        self.incomplete += more.incomplete;
        self.dropped += more.dropped;
        self.late += more.late;
    }
}

/// Counts of all windows, and of each source.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Joined {
    /// Of all.
    pub windows: Counts,
    /// By source.
    pub sources: BTreeMap<u32, SourceCounts>,
    /// Of all other sources together, which are not joined.
    pub others: SourceCounts,
    /// The first message with an invalid word, and what is wrong with it.
    pub first_wrong: Option<String>,
}

/// What all other sources are called.
pub const OTHERS: &str = "others";

/// As `windows`, `sources` by name, and `first_wrong`.
impl Serialize for Joined {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(3))?;
        map.serialize_entry("windows", &self.windows)?;
        map.serialize_entry("sources", &self.by_name().collect::<BTreeMap<_, _>>())?;
        map.serialize_entry("first_wrong", &self.first_wrong)?;
        map.end()
    }
}

impl Joined {
    /// The counts of each source by its name, and those of all others if there were any.
    pub fn by_name(&self) -> impl Iterator<Item = (String, &SourceCounts)> {
        let others = (self.others != SourceCounts::default()).then(|| (OTHERS.to_owned(), &self.others));
        self.sources.iter().map(|(source, counts)| (format!("{source:#010x}"), counts)).chain(others)
    }

    /// The counts of all sources together.
    pub fn of_all_sources(&self) -> SourceCounts {
        let mut all = self.others.clone();
        self.sources.values().for_each(|source| all += source);
        all
    }

    /// Windows and messages with which something is wrong.
    pub fn wrong(&self) -> u64 {
        let Counts { complete: _, incomplete, dropped, late: _ } = self.windows;
        // Missing messages make windows incomplete; what else sessions and absences cost is `unknown`.
        let SourceCounts {
            messages: _,
            late,
            duplicate,
            missing: _,
            unknown,
            windows_lost,
            hits_lost,
            timeouts,
            wrong_time,
            wrong_number,
            set_aside: _,
            anew: _,
            wrong_messages,
            unlisted,
            two_senders,
            absences: _,
            sessions: _,
        } = self.of_all_sources();
        let of_messages = late + duplicate + wrong_time + wrong_number + wrong_messages + unlisted + two_senders;
        incomplete + dropped + unknown + windows_lost + hits_lost + timeouts + of_messages
    }
}

impl AddAssign<&Joined> for Joined {
    fn add_assign(&mut self, more: &Joined) {
        self.windows += &more.windows;
        for (source, counts) in &more.sources {
            *self.sources.entry(*source).or_default() += counts;
        }
        self.others += &more.others;
        self.first_wrong = self.first_wrong.take().or_else(|| more.first_wrong.clone());
    }
}

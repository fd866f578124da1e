//! A partition of messages, and the place of a builder in it.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;
use std::time::Duration;

use fadelink_wire::fadc::Message as Fadc;
use rdkafka::message::Message;

use super::clock::Clock;
use super::error::Result;
use super::note::{Note, Session};
use super::rule::Rule;
use crate::join::{Before, Joined, Joiner, Policy};
use crate::Event;

/// The place of a builder in a partition, as it stands in the metadata of a committed offset.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The first window that was not given away.
    pub next: u64,
    /// The first message that was not read.
    pub read: i64,
}

impl FromStr for Place {
    type Err = ();

    fn from_str(text: &str) -> std::result::Result<Place, ()> {
        let (next, read) = text.split_once(' ').ok_or(())?;
        let next = next.strip_prefix("next=").and_then(|n| n.parse().ok()).ok_or(())?;
        let read = read.strip_prefix("read=").and_then(|n| n.parse().ok()).ok_or(())?;
        Ok(Place { next, read })
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "next={} read={}", self.next, self.read)
    }
}

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
}

impl std::ops::AddAssign<&Totals> for Totals {
    fn add_assign(&mut self, more: &Totals) {
        self.joined += &more.joined;
        self.replayed += more.replayed;
        self.malformed += more.malformed;
        self.gone += more.gone;
    }
}

/// Where a builder begins in a partition.
#[derive(Debug, Clone, Copy)]
pub struct Begin {
    /// The place of an earlier builder, and the message where it begins.
    pub before: Option<(Place, i64)>,
    /// The oldest message that the partition has.
    pub oldest: i64,
    /// That it has no older ones is no loss, where no earlier builder was.
    pub may_begin_later: bool,
}

/// See the module.
pub struct Partition {
    joiner: Joiner,
    clock: Clock,
    before: Place,
    read: i64,
    /// First message of each open window.
    open: BTreeMap<u64, i64>,
    replayed: u64,
    malformed: u64,
    gone: u64,
    /// Offset of the next message, if none has gone; and sources that have sent since some have.
    expected: i64,
    since_gone: Option<BTreeSet<u32>>,
    /// Offset behind its last message, when the end was asked for.
    end: Option<i64>,
    /// Of each source the newest session, and whether its end has come.
    sources: BTreeMap<u32, (Session, bool)>,
    committed: Totals,
}

impl Partition {
    /// Nothing was read yet.
    pub fn new(policy: &Policy, rule: Rule, number: i32, begin: Begin) -> Partition {
        let Begin { before, oldest, may_begin_later } = begin;
        let (place, first) = before.unwrap_or_default();
        let mut joiner = Joiner::new(policy.clone()).of_share(number as u64, rule.partitions);
        // Where nothing was given away yet, the first builder's begin is this one's, too.
        let begins_later = may_begin_later && place.next == 0 && first.max(oldest) > 0;
        if begins_later {
            joiner = joiner.from_the_middle();
        } else if before.is_some() {
            joiner.resume(place.next);
        }
        let mut partition = Partition {
            joiner,
            clock: Clock::new(policy.silence),
            before: place,
            read: 0,
            open: BTreeMap::new(),
            replayed: 0,
            malformed: 0,
            gone: 0,
            expected: if before.is_none() && begins_later { oldest } else { first },
            since_gone: begins_later.then(BTreeSet::new),
            end: None,
            sources: BTreeMap::new(),
            committed: Totals::default(),
        };
        partition.begins_at(oldest);
        partition
    }

    /// The partition has no messages before `oldest` any more; true: some of them were not read.
    pub fn begins_at(&mut self, oldest: i64) -> bool {
        let is_gone = oldest > self.expected;
        if is_gone {
            self.note_gone((oldest - self.expected) as u64);
            // What is gone is told once, by who commits this place.
            (self.expected, self.read) = (oldest, oldest);
        }
        is_gone
    }

    fn note_gone(&mut self, count: u64) {
        self.gone += count;
        self.since_gone = Some(BTreeSet::new());
    }

    /// Notes that messages are missing before the one at `offset`. Numbers of messages have gaps by themselves where a producer
    /// uses transactions, which Fadelink's does not (`by_us`).
    fn look_for_gone(&mut self, offset: i64, by_us: bool) {
        let is_first = self.expected == 0;
        let gone = if by_us || is_first { (offset - self.expected).max(0) as u64 } else { 0 };
        self.expected = offset + 1;
        if gone > 0 {
            self.note_gone(gone);
        }
    }

    /// A source has sent something, or the end of a session.
    fn hear(&mut self, source: u32, session: Session, is_end: bool) {
        let newest = self.sources.entry(source).or_default();
        if session >= newest.0 {
            *newest = (session, is_end);
        }
    }

    /// True if a source has sent something.
    pub fn was_heard(&self) -> bool {
        !self.sources.is_empty()
    }

    /// The offset behind its last message is `end`, now that the end is asked for.
    pub fn ends_at(&mut self, end: i64) {
        self.end = Some(end);
    }

    /// True if it is known where it ends.
    pub fn knows_its_end(&self) -> bool {
        self.end.is_some()
    }

    /// True if all was read up to there.
    pub fn has_read_all(&self) -> bool {
        self.end.is_some_and(|end| self.expected >= end)
    }

    /// True if all that was read was given away, and each source that has sent has ended.
    pub fn has_ended(&self) -> bool {
        self.joiner.oldest().is_none() && self.sources.values().all(|(_, has_ended)| *has_ended)
    }

    /// All messages were read.
    pub fn on_end(&mut self) {
        self.clock.on_end();
    }

    /// Time went by, in which the broker answered.
    pub fn on_tick(&mut self, passed: Duration) {
        self.clock.on_tick(passed);
    }

    /// What is committed of it.
    pub fn committed(&self) -> &Totals {
        &self.committed
    }

    /// True if there is a place to commit.
    pub fn has_place(&self) -> bool {
        self.read > 0
    }

    /// Where to begin after a restart.
    pub fn place(&mut self) -> (i64, Place) {
        let next = self.joiner.next().unwrap_or(0);
        self.open = self.open.split_off(&next);
        let first = self.open.values().copied().min().unwrap_or(self.read);
        (first, Place { next, read: self.read.max(self.before.read) })
    }

    /// Takes the next message; the session of its source, where that is told.
    pub fn take(&mut self, message: &impl Message, rule: Rule) -> Result<Option<(u32, Session)>> {
        let offset = message.offset();
        self.read = offset + 1;
        self.clock.on_message(message.timestamp().to_millis());
        let is_new = offset >= self.before.read;
        let note = Note::of(message);
        if let Ok(Some(note @ Note { end: Some(source), .. })) = &note {
            rule.check(message, None, Some(note))?;
            self.look_for_gone(offset, true);
            self.hear(*source, note.session, true);
            return Ok(Some((*source, note.session)));
        }
        let data = message.payload().unwrap_or_default();
        let Ok(parsed) = Fadc::parse(data) else {
            self.malformed += u64::from(is_new);
            self.look_for_gone(offset, false);
            return Ok(None);
        };
        let header = parsed.header();
        let key = self.joiner.key(header);
        let (note, before) = match note {
            Ok(Some(note)) => {
                let before = note.before;
                (Some(note), Some(before))
            }
            Ok(None) => (None, None),
            Err(()) => {
                self.malformed += u64::from(is_new);
                (None, Some(Before { since: key, lost: (0, 0) }))
            }
        };
        rule.check(message, Some(header), note.as_ref())?;
        self.look_for_gone(offset, note.is_some());
        // Nobody writes an end for who writes no note.
        let session = note.map(|note| (header.source_id, note.session));
        self.hear(header.source_id, session.map_or((u64::MAX, u64::MAX), |(_, session)| session), false);
        // What a source has sent before is not known.
        let is_unknown = self.since_gone.as_mut().is_some_and(|heard| heard.insert(header.source_id));
        let before = if is_unknown { Some(Before { since: key, lost: (0, 0) }) } else { before };
        if !is_new && key < self.before.next {
            self.replayed += 1;
            return Ok(None);
        }
        if self.joiner.next().is_none_or(|next| key >= next) {
            self.open.entry(key).or_insert(offset);
        }
        self.joiner.push(parsed.bytes().into(), before, self.clock.now());
        Ok(session)
    }

    /// The next event of windows that wait for nothing.
    pub fn pop(&mut self) -> Option<Event> {
        self.joiner.tick(self.clock.now());
        self.joiner.pop(self.clock.now(), false)
    }

    /// What there is has been committed.
    pub fn commit(&mut self) {
        let joined = self.joiner.settled();
        self.committed = Totals { joined, replayed: self.replayed, malformed: self.malformed, gone: self.gone };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_as_it_was_written() {
        let place = Place { next: u64::MAX, read: 17 };
        assert_eq!(place.to_string().parse(), Ok(place));
        for wrong in ["", "next=1", "next=x read=1", "read=1 next=1"] {
            assert_eq!(wrong.parse::<Place>(), Err(()), "{wrong}");
        }
    }
}

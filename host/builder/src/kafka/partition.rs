//! A partition of messages.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fadelink_wire::fadc::Message as Fadc;
use rdkafka::message::Message;

use super::clock::Clock;
use super::error::Result;
use super::note::{Note, Session};
use super::place::Place;
use super::rule::Rule;
use crate::join::{Before, Counts, Joined, Joiner, Policy};
use crate::Event;

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
    fn wrong(&self) -> u64 {
        let Counts { complete: _, incomplete, dropped, late: _ } = self.joined.windows;
        let all = self.joined.of_all_sources();
        let of_sources = all.late + all.duplicate + all.unknown + all.windows_lost + all.wrong_time;
        incomplete + dropped + of_sources + self.malformed + self.gone + self.unreported
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

/// Where a builder begins in a partition.
#[derive(Debug, Clone)]
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
    /// There is a place to commit.
    is_placed: bool,
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
        let is_first = before.is_none();
        let (place, first) = before.unwrap_or_default();
        let mut joiner = Joiner::new(policy.clone()).of_share(number as u64, rule.partitions);
        // Where nothing was given away yet, the first builder's begin is this one's, too.
        let begins_later = may_begin_later && place.next == 0 && first.max(oldest) > 0;
        if begins_later {
            joiner = joiner.from_the_middle();
        } else if !is_first {
            joiner.resume(place.next);
        }
        let mut partition = Partition {
            joiner,
            clock: Clock::new(policy.silence),
            sources: place.open.iter().map(|(source, session)| (*source, (*session, false))).collect(),
            is_placed: !is_first,
            before: place,
            read: first,
            open: BTreeMap::new(),
            replayed: 0,
            malformed: 0,
            gone: 0,
            expected: if is_first && begins_later { oldest } else { first },
            since_gone: begins_later.then(BTreeSet::new),
            end: None,
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
            self.is_placed = true;
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
        let knows_all = !self.before.has_more_open;
        self.joiner.oldest().is_none() && knows_all && self.sources.values().all(|(_, has_ended)| *has_ended)
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
        self.is_placed
    }

    /// True if its builder has something to report of it: messages are gone, or an earlier builder has not reported.
    pub fn has_news(&self) -> bool {
        self.gone > 0 || self.before.unreported > 0
    }

    /// What was brought until now, without open windows.
    fn totals(&self) -> Totals {
        Totals {
            joined: self.joiner.settled(),
            replayed: self.replayed,
            malformed: self.malformed,
            gone: self.gone,
            unreported: self.before.unreported,
        }
    }

    /// True if something is wrong with what was brought until now.
    pub fn is_wrong(&self) -> bool {
        self.totals().wrong() > 0
    }

    /// Where to begin after a restart. `is_reported`: its builder ends now, and reports what was wrong.
    pub fn place(&mut self, is_reported: bool) -> (i64, Place) {
        let next = self.joiner.next().unwrap_or(0);
        self.open = self.open.split_off(&next);
        let first = self.open.values().copied().min().unwrap_or(self.read);
        let read = self.read.max(self.before.read);
        let unreported = if is_reported { 0 } else { self.totals().wrong() };
        let open = self.sources.iter().filter(|(_, (_, has_ended))| !has_ended);
        let open = open.map(|(source, (session, _))| (*source, *session)).collect();
        (first, Place { next, read, unreported, open, has_more_open: self.before.has_more_open })
    }

    /// Takes the next message; the session of its source, where that is told.
    pub fn take(&mut self, message: &impl Message, rule: Rule) -> Result<Option<(u32, Session)>> {
        let offset = message.offset();
        self.read = offset + 1;
        self.is_placed = true;
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
        self.committed = self.totals();
    }
}

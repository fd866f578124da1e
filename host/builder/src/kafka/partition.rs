//! A partition of messages.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::time::{Duration, Instant};

use rdkafka::message::Message;

use super::clock::Clock;
use super::error::{Error, Result};
use super::known::Known;
use super::note::{Note, Of, Session};
use super::place::Place;
use super::rule::Rule;
use left::Left;
pub use totals::Totals;
use whole::whole;

mod back;
mod end;
mod left;
mod malformed;
mod totals;
mod whole;

use crate::inspect::{Inspected, Inspector};
use crate::join::{Before, Joiner, Standing};
use crate::policy::Policy;
use crate::Event;

/// The session of those that write no note.
const ANYBODYS: Session = (u64::MAX, u64::MAX);

/// Sessions of a source whose messages may still come: the newest, and those that it has left.
const SESSIONS: usize = 4;

/// Where a builder begins in a partition.
#[derive(Debug, Clone)]
pub struct Begin {
    /// The place of an earlier builder, and the message where it begins.
    pub before: Option<(Place, i64)>,
    /// The oldest message that the partition has.
    pub oldest: i64,
    /// Where no earlier builder was, it is no loss that older ones were deleted.
    pub may_begin_later: bool,
    /// Events that earlier builders have not reported are not as they were.
    pub has_changed: bool,
}

/// A session of a source.
struct Heard {
    session: Session,
    inspector: Inspector,
    /// The window behind the last one of which a message came.
    passed: u64,
}

/// See the module.
pub struct Partition {
    joiner: Joiner,
    max_open: u64,
    silence: Duration,
    /// When a window left.
    moved: Instant,
    left: Left,
    /// What is still to be read again.
    again: Option<Range<i64>>,
    /// Nothing of it was read yet.
    is_back: bool,
    clock: Clock,
    before: Place,
    /// There is a place to commit.
    is_placed: bool,
    read: i64,
    /// What was read before this message is committed.
    written: i64,
    pub has_changed: bool,
    /// The last message that was read, by an earlier builder too; and the offset of this one's.
    last: Option<Known>,
    newest: Option<i64>,
    replayed: u64,
    malformed: u64,
    gone: u64,
    /// Offset of the next message, if none has gone; and sources that have sent since some have.
    expected: i64,
    since_gone: Option<BTreeSet<u32>>,
    /// Offset behind its last message, when the end was asked for.
    end: Option<i64>,
    /// It ends before what was read.
    is_shorter: bool,
    /// Of each source the newest session, and whether its end has come.
    sources: BTreeMap<u32, (Session, bool)>,
    /// Feeds that have begun and not ended.
    feeds: BTreeSet<u64>,
    /// Feeds whose begin has not come: others of their messages may not have come, either.
    unbegun: BTreeSet<u64>,
    /// The group has begun behind messages that were deleted, which is no loss: begins of feeds may be among them.
    begins_later: bool,
    /// Of each source the sessions of its last messages, the last one last.
    heard: BTreeMap<u32, VecDeque<Heard>>,
    committed: Totals,
    /// What the place tells the next builder, as it was committed.
    told: Option<u64>,
}

impl Partition {
    /// Nothing was read yet.
    pub fn new(policy: &Policy, rule: Rule, number: i32, begin: Begin) -> Partition {
        let Begin { before, oldest, may_begin_later, has_changed } = begin;
        let is_first = before.is_none();
        let (place, first) = before.unwrap_or_default();
        // What waits is bounded by windows alone: by their numbers it is known what has to be read again.
        let policy = &Policy { max_bytes: u64::MAX, ..policy.clone() };
        let mut joiner = Joiner::new(policy.clone()).of_share(number as u64, rule.partitions);
        // Only the group's first builder begins there, and only where messages were deleted: those behind it go on, wherever it was.
        let begins_later = if is_first { may_begin_later && oldest > 0 } else { place.begins_later };
        if begins_later {
            joiner = joiner.from_the_middle();
        }
        let gave_nothing = place.next() == 0;
        let clock = Clock::new(policy.silence);
        if !is_first {
            joiner.resume(&place.epochs, clock.now());
        }
        let mut partition = Partition {
            joiner,
            max_open: policy.max_open,
            silence: policy.silence,
            moved: clock.now(),
            left: Left::default(),
            again: None,
            is_back: false,
            clock,
            sources: place.open.iter().map(|(source, session)| (*source, (*session, false))).collect(),
            feeds: place.feeds.clone(),
            unbegun: place.unbegun.clone(),
            begins_later,
            heard: BTreeMap::new(),
            is_placed: !is_first,
            last: place.last,
            newest: None,
            written: first.max(place.read),
            has_changed,
            before: place,
            read: first,
            replayed: 0,
            malformed: 0,
            gone: 0,
            expected: if is_first && begins_later { oldest } else { first },
            since_gone: (begins_later && gave_nothing).then(BTreeSet::new),
            end: None,
            is_shorter: false,
            committed: Totals::default(),
            told: None,
        };
        partition.begins_at(oldest);
        partition.enter_epochs();
        partition
    }

    /// Sources are in the epoch that they were in when the place was committed; what they have sent before in another is read again
    /// first.
    fn enter_epochs(&mut self) {
        for (epoch, Standing { since, .. }) in self.before.epochs.iter().enumerate() {
            for (source, since) in since.iter().filter(|(_, since)| **since < self.read) {
                self.joiner.enter(*source, epoch, Some(*since));
            }
        }
        for (source, session) in &self.before.open {
            let inspector = self.joiner.inspector();
            let is_behind = self.before.behind.contains(source);
            self.joiner.knows(*source, self.before.epoch_of(*source, i64::MAX).unwrap_or(0), &inspector, is_behind);
            if let Some(epoch) = self.before.epoch_of(*source, self.read) {
                self.joiner.enter(*source, epoch, None);
            }
            let heard = Heard { session: *session, inspector, passed: 0 };
            self.heard.entry(*source).or_default().push_back(heard);
        }
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

    /// A feed has sent something, and so it has begun before.
    fn look_for_begin(&mut self, epoch: u64) {
        if !self.feeds.contains(&epoch) && !self.begins_later && epoch != ANYBODYS.0 {
            self.unbegun.insert(epoch);
        }
    }

    /// A source has sent something, or the end of a session. What was read before has its part in the place.
    fn hear(&mut self, source: u32, session: Session, is_end: bool) {
        let newest = self.sources.entry(source).or_default();
        if session > newest.0 && !is_end {
            self.joiner.begin_session(source);
        }
        if session >= newest.0 {
            *newest = (session, is_end);
        }
    }

    /// True if a source has sent something.
    pub fn was_heard(&self) -> bool {
        !self.sources.is_empty()
    }

    /// All messages were read.
    pub fn on_end(&mut self) {
        self.left.read_again();
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

    /// What is wrong with what this builder has committed of it, and that it has not reported.
    pub fn told(&self) -> Option<u64> {
        self.told
    }

    /// True if there is a place to commit.
    pub fn has_place(&self) -> bool {
        self.is_placed
    }

    /// True if its builder has something to report of it: messages are gone, or an earlier builder has not reported.
    pub fn has_news(&self) -> bool {
        self.gone > 0 || self.before.unreported > 0 || self.has_changed
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

    /// What is wrong with what was brought until now.
    fn wrong(&self) -> u64 {
        self.totals().wrong() + u64::from(self.has_changed)
    }

    /// True if the place tells the next builder something that this one reports.
    pub fn has_unreported(&self, events: Option<&Range<i64>>) -> bool {
        self.wrong() > 0 || events.or(self.before.events.as_ref()).is_some_and(|events| !events.is_empty())
    }

    /// Messages that were read and are not committed.
    pub fn uncommitted(&self) -> Range<i64> {
        self.written..self.read.max(self.written)
    }

    /// Where to begin after a restart. `events`: those that were written and not reported. `is_reported`: its builder ends now, and
    /// reports these, and what was wrong.
    pub fn place(&mut self, events: Option<Range<i64>>, is_reported: bool) -> (i64, Place) {
        let first = self.joiner.first().into_iter().chain(self.left.oldest()).min().unwrap_or(self.read);
        let mut epochs = self.joiner.standing();
        // Nothing of these that was sent before is read again.
        if let Some(oldest) = epochs.first_mut() {
            oldest.since.retain(|_, since| *since >= first);
        }
        let read = self.read.max(self.before.read);
        let unreported = if is_reported { 0 } else { self.wrong() };
        let events = events.or_else(|| self.before.events.clone());
        let events = events.map(|Range { start, end }| if is_reported { end..end } else { start..end });
        let open = self.open_sources().map(|(source, session)| (*source, *session)).collect();
        let (feeds, unbegun) = (self.feeds.clone(), self.unbegun.clone());
        let (last, behind, has_more_open) = (self.last, self.joiner.behind(), self.before.has_more_open);
        let mut left = self.left.first();
        // What an earlier builder has left and is not read yet.
        for (source, from) in self.before.left.iter().filter(|_| self.read < self.before.read) {
            left.entry(*source).or_insert(self.read.max(*from));
        }
        let begins_later = self.begins_later;
        let place = Place {
            epochs,
            read,
            left,
            last,
            events,
            tail: None,
            begins_later,
            unreported,
            open,
            behind,
            feeds,
            unbegun,
            has_more_open,
        };
        (first, place)
    }

    /// Notes the next message; one that is not behind the one before is of another topic.
    fn follow(&mut self, message: &impl Message) -> Result<()> {
        let offset = message.offset();
        if let Some(newest) = self.newest.replace(offset).filter(|newest| offset <= *newest) {
            return Err(Error::Anew {
                topic: message.topic().to_owned(),
                partition: message.partition(),
                what: format!("message {offset} came behind message {newest}"),
            });
        }
        if self.last.is_none_or(|last| offset > last.offset) {
            self.last = Some(Known::of(message));
        }
        self.read = offset + 1;
        self.is_placed = true;
        self.clock.on_message(message.timestamp().to_millis());
        Ok(())
    }

    /// Takes the next message; the session of its source, where that is told.
    pub fn take(&mut self, message: &impl Message, rule: Rule) -> Result<Option<(u32, Session)>> {
        let offset = message.offset();
        let is_again = self.is_again(offset);
        if !is_again {
            self.left.read_again();
            self.follow(message)?;
        }
        // Feeds are looked at once: what they have sent may be left, and taken behind their ends.
        let is_first = !is_again && self.is_new(None, offset);
        let note = Note::of(message);
        let mark = note.as_ref().ok().and_then(Option::as_ref).filter(|note| !matches!(note.of, Of::Message(..)));
        if let Some(note) = mark {
            if !is_again {
                rule.check(message, None, Some(note))?;
                self.look_for_gone(offset, true);
            }
            let of = if let Of::End(session, _, source) = note.of { Some((session, source)) } else { None };
            let (session, source) = of.unzip();
            if let Some((epoch, _)) = session.filter(|_| is_first) {
                self.look_for_begin(epoch);
            }
            let is_due = source.map_or(!is_again, |source| self.left.is_due(source, offset, is_again));
            let is_new = self.is_new(source, offset);
            return Ok(is_due.then(|| self.take_mark(note.of, is_new)).flatten());
        }
        let parsed = match whole(message.payload().unwrap_or_default()) {
            Ok(parsed) => parsed,
            Err(why) => {
                if !is_again {
                    self.refuse(message, note.ok().flatten().as_ref(), &why, rule)?;
                }
                return Ok(None);
            }
        };
        let header = parsed.header();
        let key = rule.key.of(header);
        let (note, is_readable) = note.map_or((None, false), |note| (note, true));
        if !is_again {
            if is_first && !is_readable {
                self.note_malformed(message, "its header fadelink cannot be read");
            }
            rule.check(message, Some(header), note.as_ref())?;
            self.look_for_gone(offset, note.is_some());
        }
        let told = note.and_then(|note| match note.of {
            Of::Message(session, before) => Some((session, before)),
            _ => None,
        });
        // Nobody writes an end for who writes no note.
        let (session, before) = told.unzip();
        let (source, its) = (header.source_id, session.unwrap_or(ANYBODYS));
        if is_first {
            self.look_for_begin(its.0);
        }
        if !self.left.is_due(source, offset, is_again) {
            self.joiner.hear(source, self.clock.now());
            return Ok(None);
        }
        if let Some(key) = key.filter(|key| self.must_wait(&parsed, Some(*key), its)) {
            self.left.leave(source, offset, key);
            return Ok(None);
        }
        let is_new = self.is_new(Some(source), offset);
        self.hear(source, its, false);
        // A note tells what is known of the windows before; without one nothing is.
        let mut is_first_since = || self.since_gone.as_mut().is_some_and(|heard| heard.insert(source));
        let is_unknown = !is_readable || session.is_none() && is_first_since();
        let nothing_before = Before { since: key.unwrap_or(0), lost: (0, 0) };
        let before = if is_unknown { Some(nothing_before) } else { before };
        if !is_new {
            let epoch = self.before.epoch_of(source, offset);
            let was_given = |epoch: usize| key.is_some_and(|key| key < self.before.epochs[epoch].next);
            if epoch.is_none_or(was_given) {
                self.replayed += 1;
                return Ok(None);
            }
            let begins = |epoch: usize| self.before.epochs[epoch].since.get(&source) == Some(&offset);
            if let Some(epoch) = epoch.filter(|epoch| begins(*epoch)) {
                self.joiner.enter(source, epoch, Some(offset));
            }
        }
        let heard = self.heard(source, its);
        heard.passed = heard.passed.max(key.map_or(0, |key| key + 1));
        if let Some(inspected) = heard.inspector.inspect(parsed.bytes().into()) {
            self.joiner.push(Inspected { place: offset, ..inspected }, before, self.clock.now());
        }
        Ok(session.map(|session| (source, session)))
    }

    /// For the next message of a source.
    fn heard(&mut self, source: u32, session: Session) -> &mut Heard {
        let its = self.heard.entry(source).or_default();
        let last = its.back().map(|heard| heard.session);
        let place = its.iter().position(|heard| heard.session == session);
        // A feed reports its own connections; that of a crate which goes on over the next one may still be read.
        if place.is_some() && last.is_some_and(|last| last != session && last.0 != session.0) {
            self.joiner.note_two_senders(source);
        }
        let found = place.and_then(|place| its.remove(place));
        if its.len() == SESSIONS {
            its.pop_front();
        }
        let inspector = || self.joiner.inspector();
        its.push_back(found.unwrap_or_else(|| Heard { session, inspector: inspector(), passed: 0 }));
        let last = its.len() - 1;
        &mut its[last]
    }

    /// Takes a message without data. One that was read before has its part in the place.
    fn take_mark(&mut self, of: Of, is_new: bool) -> Option<(u32, Session)> {
        match of {
            Of::Message(..) => {}
            Of::End(session, before, source) => {
                self.hear(source, session, true);
                let its = self.heard.get(&source).and_then(|its| its.iter().find(|heard| heard.session == session));
                let came = its.map_or(0, |heard| heard.passed);
                self.joiner.end_session(source, is_new.then_some(before), came, self.clock.now());
                return Some((source, session));
            }
            Of::FeedBegins(epoch) if is_new => {
                self.feeds.insert(epoch);
            }
            Of::FeedEnds(epoch) if is_new => {
                self.look_for_begin(epoch);
                self.feeds.remove(&epoch);
            }
            Of::FeedBegins(_) | Of::FeedEnds(_) => {}
        }
        None
    }

    /// The next event of windows that wait for nothing.
    pub fn pop(&mut self) -> Option<Event> {
        let now = self.clock.now();
        self.joiner.tick(now);
        let event = self.joiner.pop(now, false)?;
        self.moved = now;
        Some(event)
    }

    /// What there is has been committed.
    pub fn commit(&mut self) {
        self.committed = self.totals();
        self.told = Some(self.wrong());
        self.written = self.uncommitted().end;
    }
}

#[cfg(test)]
mod tests;

//! The windows of one epoch: of sources that count them from one begin, and can be joined by their numbers.
//!
//! A source sends its windows in order, over one connection after another. So the number of a message fits to those before it, or
//! it is wrong, or the source counts anew, in another epoch.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::time::{Duration, Instant};

use fadelink_wire::fadc::LOST_MAX;

use crate::before::{lost_before, Before};
use crate::counts::SourceCounts;
use crate::event::{Bytes, Event};
use crate::inspect::Inspected;
use crate::policy::Policy;
use crate::source::Source;

/// Connections of a source whose messages may still come: the newest one, and those that it has left.
const STREAMS: usize = 4;

/// How the number of a message stands to those of the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fit {
    /// It is not one of this epoch.
    Not,
    /// Nothing but the number itself tells that so many windows were empty.
    Ahead,
    /// It is the next one, or as far ahead as time and other sources allow.
    Follows,
}

/// What a source sends over one connection.
#[derive(Debug)]
struct Stream {
    id: u64,
    /// Number of its last message, and of the one before.
    last: u64,
    before: Option<u64>,
}

#[derive(Debug, Default)]
struct Member {
    /// All windows before are known, but for `gaps`.
    passed: u64,
    gaps: VecDeque<Range<u64>>,
    /// An earlier builder has had the window before this one of it, over a connection whose number is not known.
    resumed: u64,
    /// The newest last.
    streams: VecDeque<Stream>,
    /// An older one than the newest has sent: what one of them passes over may still come over another.
    is_mixed: bool,
}

impl Member {
    fn knows(&self, window: u64) -> bool {
        window < self.passed && !self.gaps.iter().any(|gap| gap.contains(&window))
    }

    fn stream(&mut self, id: u64) -> Option<&mut Stream> {
        self.streams.iter_mut().find(|stream| stream.id == id)
    }

    /// Its windows until `key`, of which `lost` are not known.
    fn pass(&mut self, key: u64, lost: &[Range<u64>]) {
        for gap in lost {
            let gap = gap.start.max(self.passed)..gap.end.min(key);
            if !gap.is_empty() {
                self.gaps.push_back(gap);
            }
        }
        self.passed = self.passed.max(key + 1);
    }

    /// That its windows from `key` on were passed was wrong.
    fn forget_from(&mut self, key: u64) {
        self.passed = self.passed.min(key);
        self.gaps.iter_mut().for_each(|gap| gap.end = gap.end.min(key));
        self.gaps.retain(|gap| !gap.is_empty());
    }

    /// Windows that the next message of this stream passes over were empty: it is the only one over which they could come.
    fn goes_on_over(&self, id: u64) -> bool {
        !self.is_mixed && self.streams.back().is_some_and(|stream| stream.id == id)
    }

    /// `key` is the number of the stream's last message. True: the one before was wrong.
    fn note(&mut self, id: u64, key: u64) -> bool {
        let is_newest = self.streams.back().is_none_or(|stream| stream.id == id);
        self.is_mixed |= !is_newest;
        let Some(stream) = self.stream(id) else {
            if self.streams.len() == STREAMS {
                self.streams.pop_front();
            }
            self.is_mixed = false;
            self.streams.push_back(Stream { id, last: key, before: None });
            return false;
        };
        let was_wrong = key < stream.last;
        if !was_wrong {
            stream.before = Some(stream.last);
        }
        stream.last = key;
        was_wrong
    }
}

/// A message of a window, and what was counted of it.
#[derive(Debug)]
pub(crate) struct Part {
    pub data: Bytes,
    pub counts: SourceCounts,
}

/// The messages of a window.
#[derive(Debug)]
pub(crate) struct Window {
    /// Place of its first message.
    first: i64,
    /// Its number: what its messages were joined by.
    pub number: u64,
    pub time: (i64, u32),
    pub parts: BTreeMap<u32, Part>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Epoch {
    pub id: u64,
    /// None before it is known: sources may come that have counted for long.
    is_first: bool,
    begun: Instant,
    /// Nanoseconds from 1970 to window 0, as its last message tells.
    origin: Option<i128>,
    windows: BTreeMap<u64, Window>,
    /// Of the messages in them.
    bytes: u64,
    members: BTreeMap<u32, Member>,
    /// Windows before this one have been given away.
    pub next: Option<u64>,
    /// Windows before the first one that all sources may have are left out.
    pub from_the_middle: bool,
}

impl Epoch {
    pub fn new(id: u64, is_first: bool, begun: Instant) -> Epoch {
        Epoch {
            id,
            is_first,
            begun,
            origin: None,
            windows: BTreeMap::new(),
            bytes: 0,
            members: BTreeMap::new(),
            next: None,
            from_the_middle: false,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.windows.is_empty()
    }

    pub fn oldest(&self) -> Option<u64> {
        self.windows.keys().next().copied()
    }

    /// Of all messages that wait.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// True if the source has sent the oldest window, or one behind it: what it sends next is not what that waits for.
    pub fn is_ahead(&self, source: u32) -> bool {
        let passed = self.members.get(&source).map_or(0, |member| member.passed);
        self.oldest().is_some_and(|oldest| passed > oldest)
    }

    /// The place of its first message that waits.
    pub fn first(&self) -> Option<i64> {
        self.windows.values().map(|window| window.first).min()
    }

    /// A connection of the source has sent windows before `next`; all of them, if the source is not behind.
    pub fn knows(&mut self, source: u32, stream: u64, is_behind: bool) {
        let passed = self.next.unwrap_or(0);
        let resumed = if is_behind { 0 } else { passed };
        let member = self.members.entry(source).or_insert_with(|| Member { passed, resumed, ..Member::default() });
        member.note(stream, 0);
    }

    /// Windows of the source that were given away did not wait for it.
    pub fn is_behind(&self, source: u32) -> bool {
        self.members.get(&source).is_none_or(|member| member.passed < self.next.unwrap_or(0))
    }

    /// Windows of `range` that the source has sent or lost, that did not come, and that nobody else has sent.
    pub fn unknown_in(&self, source: u32, range: Range<u64>, share: (u64, u64)) -> u64 {
        let Some(member) = self.members.get(&source) else { return 0 };
        let start = range.start.max(member.passed).max(self.next.unwrap_or(0));
        let range = start..range.end.max(start);
        count_in(&range, share) - self.windows.range(range).count() as u64
    }

    pub fn parts(&self) -> impl Iterator<Item = (&u32, &Part)> {
        self.windows.values().flat_map(|window| &window.parts)
    }

    /// True if nothing of this connection was taken.
    pub fn is_new(&self, message: &Inspected) -> bool {
        let member = self.members.get(&message.header.source_id);
        !member.is_some_and(|member| member.streams.iter().any(|stream| stream.id == message.stream))
    }

    /// Of the last message of a source, over whatever connection.
    pub fn last(&self, source: u32) -> Option<u64> {
        let member = self.members.get(&source)?;
        member.streams.iter().map(|stream| stream.last).chain(member.resumed.checked_sub(1)).max()
    }

    /// True if a message of this window has to wait until older ones have left.
    pub fn is_full_for(&self, key: u64, max_open: u64) -> bool {
        self.oldest().is_some_and(|oldest| key >= oldest.saturating_add(max_open))
    }

    /// `quiet`: the time since something of the source was taken.
    pub fn fit(&self, message: &Inspected, key: u64, quiet: Duration, policy: &Policy) -> Fit {
        let source = message.header.source_id;
        let passed = |(id, member): (&u32, &Member)| (*id != source).then_some(member.passed);
        let others = || self.members.iter().filter_map(passed).chain(self.next).max();
        // The clock of a source may be wrong, and so may the length of windows.
        let by_clock = quiet.as_nanos() * 2 / u128::from(policy.window_ns.max(1));
        let reach = policy.max_open.saturating_add(u64::try_from(by_clock).unwrap_or(u64::MAX));
        let ahead_of = |last: u64| match key - last {
            ahead if ahead <= reach || others().is_some_and(|others| key <= others.saturating_add(reach)) => {
                Fit::Follows
            }
            ahead if ahead - 1 <= policy.max_ahead || message.lost >= LOST_MAX => Fit::Ahead,
            _ => Fit::Not,
        };
        let floor = self.next.unwrap_or(0);
        let of_others = || self.members.iter().filter_map(passed).max();
        let is_among = |key: u64| of_others().is_some_and(|others| key.abs_diff(others) <= reach);
        if let Some(last) = self.last(source) {
            let streams = &self.members[&source].streams;
            let own = streams.iter().find(|stream| stream.id == message.stream);
            return match own {
                Some(own) if key >= own.last => ahead_of(own.last),
                // The last number was wrong, where this one follows the one before, or the others. Windows may have been given away
                // by the wrong one: what is before these is late, unless the source is alone.
                Some(Stream { before: Some(before), .. }) if key > *before && (key >= floor || is_among(key)) => {
                    Fit::Follows
                }
                Some(Stream { before: None, .. }) if key >= floor && is_among(key) => Fit::Follows,
                None if key >= last => ahead_of(last),
                _ => Fit::Not,
            };
        }
        let Some(low) = self.next.or_else(|| self.oldest()) else { return Fit::Follows };
        let high = others().unwrap_or(low).max(low);
        let has_same_origin = self.origin.is_some_and(|origin| {
            origin.abs_diff(message.origin(key, policy.window_ns)) <= u128::from(policy.window_ns / 2)
        });
        if key < low.saturating_sub(policy.max_open) {
            // Its first windows may have waited in the crate.
            let is_old = self.is_first && has_same_origin && low - key <= policy.max_ahead;
            return if is_old { Fit::Follows } else { Fit::Not };
        }
        if key <= high.saturating_add(reach) {
            return Fit::Follows;
        }
        match self.is_first && key - high <= policy.max_ahead {
            true if has_same_origin => Fit::Follows,
            true => Fit::Ahead,
            false => Fit::Not,
        }
    }

    /// True if a source that counts anew may do so with the others here: it goes on where it was in this epoch, or the epoch has
    /// just begun.
    pub fn begins_with(&self, message: &Inspected, key: u64, now: Instant, policy: &Policy) -> bool {
        let is_young = self.is_young(now, policy.silence) && key >= self.next.unwrap_or(0);
        let is_here = self.members.contains_key(&message.header.source_id);
        (is_here || is_young) && self.fit(message, key, Duration::ZERO, policy) == Fit::Follows
    }

    /// What begins with it may still come.
    fn is_young(&self, now: Instant, silence: Duration) -> bool {
        now.saturating_duration_since(self.begun) < silence
    }

    /// Takes a message that fits. `is_new`: what its source sent before is not known. What is counted of it; and the event that it is
    /// by itself, if it comes late and that is asked for.
    pub fn take(
        &mut self,
        message: Inspected,
        key: u64,
        before: Option<Before>,
        is_new: bool,
        policy: &Policy,
    ) -> (SourceCounts, Option<Event>) {
        let floor = self.next.unwrap_or(0);
        let origin = message.origin(key, policy.window_ns);
        let Inspected { data, header, lost, stream, place, mut told, .. } = message;
        let time = (header.seconds, header.nanoseconds);
        // In whatever order they are heard, each source owes each window that was not given away.
        let new = || Member { passed: floor, ..Member::default() };
        let member = self.members.entry(header.source_id).or_insert_with(new);
        let goes_on = !is_new && member.goes_on_over(stream);
        if member.note(stream, key) {
            told.wrong_number = 1;
            member.forget_from(key);
        }
        if key < floor {
            told.late = 1;
            return (told, policy.emit_late.then(|| Event::late(key, &header, data)));
        }
        let passed = member.passed;
        match before {
            Some(Before { since, lost: (start, end) }) => member.pass(key, &[passed..since, start.max(since)..end]),
            None if goes_on => member.pass(key, &[lost_before(lost, key, passed)]),
            None => member.pass(key, std::slice::from_ref(&(passed..key))),
        }
        // A crate that is connected again goes on.
        told.wrong_number |= u64::from(is_new && key < passed);
        self.origin = Some(origin);
        let new = || Window { first: place, number: key, time, parts: BTreeMap::new() };
        let window = self.windows.entry(key).or_insert_with(new);
        told.wrong_time |= u64::from(window.time != time);
        match window.parts.entry(header.source_id) {
            Entry::Vacant(place) => {
                told.messages = 1;
                self.bytes += data.len() as u64;
                place.insert(Part { data, counts: told.clone() });
            }
            Entry::Occupied(mut place) => {
                told.duplicate = 1;
                let part = place.get_mut();
                part.counts += &told;
                if policy.keep_last {
                    self.bytes = self.bytes + data.len() as u64 - part.data.len() as u64;
                    part.data = data;
                }
            }
        }
        (told, None)
    }

    /// True if the oldest window waits for none of `sources`.
    fn is_ready(&self, key: u64, sources: &BTreeMap<u32, Source>, silence: Duration, now: Instant) -> bool {
        let parts = &self.windows[&key].parts;
        let is_young = self.is_young(now, silence);
        sources.iter().all(|(id, source)| {
            let is_awaited = if source.epoch == Some(self.id) { !source.is_absent } else { is_young };
            !is_awaited || parts.contains_key(id) || self.members.get(id).is_some_and(|member| member.passed > key)
        })
    }

    /// Gives away the oldest window if it waits for nothing, with the sources that are missing. Counts these, and the windows before
    /// that nobody has sent and that may not have been empty.
    pub fn pop(
        &mut self,
        sources: &mut BTreeMap<u32, Source>,
        silence: Duration,
        all: bool,
        now: Instant,
        share: (u64, u64),
    ) -> Option<(Window, Vec<u32>)> {
        loop {
            let key = self.oldest()?;
            if !all && !self.is_ready(key, sources, silence, now) {
                return None;
            }
            let window = self.windows.remove(&key)?;
            self.bytes -= window.parts.values().map(|part| part.data.len() as u64).sum::<u64>();
            let begins_later = |(id, member): (&u32, &Member)| {
                !window.parts.contains_key(id) && member.passed > key && !member.knows(key)
            };
            if self.from_the_middle && self.next.is_none() && self.members.iter().any(begins_later) {
                continue;
            }
            let passed_over = self.next.unwrap_or(key)..key;
            let within = |gap: &Range<u64>| gap.start.max(passed_over.start)..gap.end.min(passed_over.end);
            let mut missing = Vec::new();
            for (id, source) in sources {
                let member = self.members.get_mut(id);
                if !window.parts.contains_key(id) && !member.as_ref().is_some_and(|member| member.knows(key)) {
                    missing.push(*id);
                    source.counts.missing += 1;
                }
                let Some(member) = member else { continue };
                source.counts.unknown += member.gaps.iter().map(|gap| count_in(&within(gap), share)).sum::<u64>();
                while member.gaps.front().is_some_and(|gap| gap.end <= key) {
                    member.gaps.pop_front();
                }
            }
            self.next = Some(key + 1);
            return Some((window, missing));
        }
    }
}

/// Numbers of `range` that are `remainder` modulo `of`.
fn count_in(range: &Range<u64>, (remainder, of): (u64, u64)) -> u64 {
    let below = |end: u64| end / of + u64::from(end % of > remainder);
    below(range.end.max(range.start)) - below(range.start)
}

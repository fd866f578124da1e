//! Joins messages by time window: no threads, no clock of its own.
//!
//! A source sends its windows in order, so what it has not sent when it sends a later one was empty (or is told lost by
//! that message). A window is given away when each source has sent it or a later one, or is absent: has been silent for
//! a time. Windows leave in order, each once.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::ops::{AddAssign, Range};
use std::time::{Duration, Instant};

use fadelink_wire::fadc::{Header, Item, Message, LOST_MAX, WINDOW_TICKS_MAX};
use serde::Serialize;

use crate::event::{Bytes, Event};

/// What the number of a window is taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// The record counter: all crates have begun to count at the same time.
    Counter,
    /// The timestamp, divided by the window's length in nanoseconds.
    Time(u32),
}

/// What becomes of windows that are not as they should be.
#[derive(Debug, Clone)]
pub struct Policy {
    /// What the number of a window is taken from.
    pub key: Key,
    /// Sources that a window needs; empty: as many as `count` says.
    pub sources: Vec<u32>,
    /// Sources to wait for before the first window is given away.
    pub count: usize,
    /// Give away windows in which a source is missing; else they are dropped.
    pub emit_incomplete: bool,
    /// Give away what comes too late as an event of its own; else it is dropped.
    pub emit_late: bool,
    /// Of two messages of one window and source, keep the last; else the first.
    pub keep_last: bool,
    /// A source that was silent for so long is not waited for.
    pub silence: Duration,
    /// Windows that may be open from the first that waits on.
    pub max_open: u64,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy {
            key: Key::Counter,
            sources: Vec::new(),
            count: 0,
            emit_incomplete: true,
            emit_late: false,
            keep_last: false,
            silence: Duration::from_secs(2),
            max_open: 4096,
        }
    }
}

/// What came of one source.
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
    /// Windows that the crate tells it has lost; 1023 in a row are at least so many.
    pub windows_lost: u64,
    /// Messages whose timestamp is not that of their window's other messages.
    pub wrong_time: u64,
    /// Times that it was silent for too long.
    pub absences: u64,
    /// Times that it began anew: was connected again.
    pub sessions: u64,
}

impl AddAssign<&SourceCounts> for SourceCounts {
    fn add_assign(&mut self, more: &SourceCounts) {
        self.messages += more.messages;
        self.late += more.late;
        self.duplicate += more.duplicate;
        self.missing += more.missing;
        self.windows_lost += more.windows_lost;
        self.wrong_time += more.wrong_time;
        self.absences += more.absences;
        self.sessions += more.sessions;
    }
}

/// What came of all.
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

#[derive(Debug, Default)]
struct Source {
    /// All windows before are known, but for `gaps`.
    passed: u64,
    gaps: VecDeque<Range<u64>>,
    heard: Option<Instant>,
    absent: bool,
    new_session: bool,
    counts: SourceCounts,
}

impl Source {
    fn knows(&self, window: u64) -> bool {
        window < self.passed && !self.gaps.iter().any(|gap| gap.contains(&window))
    }
}

#[derive(Debug)]
struct Window {
    record: u64,
    time: (i64, u32),
    parts: BTreeMap<u32, Bytes>,
}

/// See the module.
#[derive(Debug)]
pub struct Joiner {
    policy: Policy,
    sources: BTreeMap<u32, Source>,
    windows: BTreeMap<u64, Window>,
    /// Windows before this one have been given away.
    next: Option<u64>,
    begun: Option<Instant>,
    late: VecDeque<Event>,
    counts: Counts,
}

impl Joiner {
    /// Joins by `policy`.
    pub fn new(policy: Policy) -> Joiner {
        let sources = policy.sources.iter().map(|source| (*source, Source::default())).collect();
        Joiner {
            policy,
            sources,
            windows: BTreeMap::new(),
            next: None,
            begun: None,
            late: VecDeque::new(),
            counts: Counts::default(),
        }
    }

    /// Goes on behind windows that were given away before; what comes of those is late.
    pub fn resume(&mut self, next: u64) {
        self.next = Some(next);
        for source in self.sources.values_mut() {
            source.passed = next;
        }
    }

    /// The number by which a message is joined.
    pub fn key(&self, header: &Header) -> u64 {
        match self.policy.key {
            Key::Counter => header.record_counter,
            Key::Time(window_ns) => u64::try_from(header.time_ns() / i128::from(window_ns)).unwrap_or(0),
        }
    }

    /// The first window that was not given away, where that is known.
    pub fn next(&self) -> Option<u64> {
        self.next
    }

    /// The first window that waits.
    pub fn oldest(&self) -> Option<u64> {
        self.windows.keys().next().copied()
    }

    /// True if a message of this window has to wait until older ones have left.
    pub fn is_full_for(&self, key: u64) -> bool {
        self.oldest().is_some_and(|oldest| key >= oldest.saturating_add(self.policy.max_open))
    }

    /// What came.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// What came of each source.
    pub fn sources(&self) -> impl Iterator<Item = (u32, &SourceCounts)> {
        self.sources.iter().map(|(id, source)| (*id, &source.counts))
    }

    /// The source is connected again: what was sent in between is not known.
    pub fn begin_session(&mut self, source: u32) {
        let source = self.sources.entry(source).or_default();
        source.new_session = true;
        source.counts.sessions += 1;
    }

    /// Takes a message.
    pub fn push(&mut self, data: Bytes, now: Instant) {
        let Ok(message) = Message::parse(&data) else { return };
        let header = *message.header();
        let key = self.key(&header);
        // A loss is told in the first word.
        let lost = match message.items(WINDOW_TICKS_MAX).next() {
            Some(Ok(Item::WindowsLost { count })) => u64::from(count),
            _ => 0,
        };
        self.begun.get_or_insert(now);
        let floor = self.next.unwrap_or(0);
        let oldest = self.oldest();
        let source = self.sources.entry(header.source_id).or_insert_with(|| Source {
            // A source that was not expected owes no window that is older than its first.
            passed: oldest.map_or(key, |oldest| oldest.min(key)).max(floor),
            new_session: true,
            ..Source::default()
        });
        source.heard = Some(now);
        source.absent = false;
        source.counts.windows_lost += lost;
        if key < floor {
            source.counts.late += 1;
            if self.policy.emit_late {
                self.counts.late += 1;
                let time = (header.seconds, header.nanoseconds);
                let record = header.record_counter;
                self.late.push_back(Event { record, time, parts: vec![data], missing: Vec::new(), is_late: true });
            }
            return;
        }
        let unknown = match (source.new_session, lost) {
            (true, _) => source.passed..key,
            (false, 0) => key..key,
            (false, lost) if lost >= u64::from(LOST_MAX) => source.passed..key,
            (false, lost) => key.saturating_sub(lost).max(source.passed)..key,
        };
        if !unknown.is_empty() && key >= source.passed {
            source.gaps.push_back(unknown);
        }
        source.new_session = false;
        source.passed = source.passed.max(key + 1);

        let time = (header.seconds, header.nanoseconds);
        let record = header.record_counter;
        let window = self.windows.entry(key).or_insert_with(|| Window { record, time, parts: BTreeMap::new() });
        if window.time != time {
            source.counts.wrong_time += 1;
        }
        match window.parts.entry(header.source_id) {
            Entry::Vacant(place) => {
                source.counts.messages += 1;
                place.insert(data);
            }
            Entry::Occupied(mut place) => {
                source.counts.duplicate += 1;
                if self.policy.keep_last {
                    place.insert(data);
                }
            }
        }
    }

    /// Looks which sources have been silent for too long.
    pub fn tick(&mut self, now: Instant) {
        let Some(begun) = self.begun else { return };
        for source in self.sources.values_mut() {
            let since = now.saturating_duration_since(source.heard.unwrap_or(begun));
            if !source.absent && since >= self.policy.silence {
                source.absent = true;
                source.counts.absences += 1;
            }
        }
    }

    fn begun_long_ago(&self, now: Instant) -> bool {
        self.begun.is_some_and(|begun| now.saturating_duration_since(begun) >= self.policy.silence)
    }

    /// The next event. `all`: no more comes, so nothing is waited for.
    pub fn pop(&mut self, now: Instant, all: bool) -> Option<Event> {
        loop {
            if let Some(event) = self.late.pop_front() {
                return Some(event);
            }
            if self.sources.len() < self.policy.count && !all && !self.begun_long_ago(now) {
                return None;
            }
            let key = self.oldest()?;
            let window = &self.windows[&key];
            let waits =
                |id: &u32, source: &Source| !window.parts.contains_key(id) && source.passed <= key && !source.absent;
            if !all && self.sources.iter().any(|(id, source)| waits(id, source)) {
                return None;
            }
            let window = self.windows.remove(&key)?;
            let mut missing = Vec::new();
            for (id, source) in &mut self.sources {
                if !window.parts.contains_key(id) && !source.knows(key) {
                    missing.push(*id);
                    source.counts.missing += 1;
                }
                while source.gaps.front().is_some_and(|gap| gap.end <= key) {
                    source.gaps.pop_front();
                }
            }
            self.next = Some(key + 1);
            if missing.is_empty() {
                self.counts.complete += 1;
            } else if self.policy.emit_incomplete {
                self.counts.incomplete += 1;
            } else {
                self.counts.dropped += 1;
                continue;
            }
            let parts = window.parts.into_values().collect();
            return Some(Event { record: window.record, time: window.time, parts, missing, is_late: false });
        }
    }
}

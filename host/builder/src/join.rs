//! Joins messages by time window. Has no threads and no clock.
//!
//! A source sends its windows in order. A window that it skips was empty, or the next message reports it as lost. A
//! window is emitted when each source has sent it or a later one, or has been silent for a time. Windows are
//! emitted in order, each once.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::time::{Duration, Instant};

use fadelink_wire::fadc::LOST_MAX;

use crate::counts::{Counts, Joined, SourceCounts};
use crate::event::{Bytes, Event};
use crate::inspect::{Inspected, Inspector};
use crate::key::Key;

/// What is known of a source's windows before one of its messages.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Before {
    /// The source sent all windows from this one on that are not empty.
    pub since: u64,
    /// Windows that were lost on the way to here (`start..end`; empty: none).
    pub lost: (u64, u64),
}

/// Windows right before window `key` that its crate has lost, of which it tells the number (see [`LOST_MAX`]). `passed`: the window
/// after the one that it sent before.
pub fn lost_before(lost: u16, key: u64, passed: u64) -> Range<u64> {
    let first = if lost >= LOST_MAX { passed } else { key.saturating_sub(lost.into()).max(passed) };
    first.min(key)..key
}

/// What to do with windows that are incomplete, late or duplicate.
#[derive(Debug, Clone)]
pub struct Policy {
    /// What the number of a window is taken from.
    pub key: Key,
    /// Length of a window in nanoseconds.
    pub window_ns: u32,
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
            window_ns: 1000,
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

#[derive(Debug, Default)]
struct Source {
    /// All windows before are known, but for `gaps`.
    passed: u64,
    gaps: VecDeque<Range<u64>>,
    heard: Option<Instant>,
    absent: bool,
    new_session: bool,
    /// Nobody expects it.
    is_unlisted: bool,
    counts: SourceCounts,
}

impl Source {
    fn knows(&self, window: u64) -> bool {
        window < self.passed && !self.gaps.iter().any(|gap| gap.contains(&window))
    }
}

/// What a source sent for a window, and what was counted of it.
#[derive(Debug)]
struct Part {
    data: Bytes,
    counts: SourceCounts,
}

#[derive(Debug)]
struct Window {
    record: u64,
    time: (i64, u32),
    parts: BTreeMap<u32, Part>,
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
    /// The first message that cannot be, and why.
    first_wrong: Option<String>,
    /// Of so many windows only those with this remainder come here.
    share: (u64, u64),
    /// Windows before the first one that all sources may have are left out.
    from_the_middle: bool,
}

/// Numbers of `range` that are `remainder` modulo `of`.
fn count_in(range: &Range<u64>, (remainder, of): (u64, u64)) -> u64 {
    let below = |end: u64| end / of + u64::from(end % of > remainder);
    below(range.end.max(range.start)) - below(range.start)
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
            first_wrong: None,
            share: (0, 1),
            from_the_middle: false,
        }
    }

    /// Only every `of`th window comes here: those whose number is `remainder` modulo `of`.
    pub fn of_share(mut self, remainder: u64, of: u64) -> Joiner {
        self.share = (remainder, of);
        self
    }

    /// The data begins anywhere, with other windows of each source: those before the first message of a source that sends
    /// are left out until a window was given away.
    pub fn from_the_middle(mut self) -> Joiner {
        self.from_the_middle = true;
        self
    }

    /// Continues after windows that were emitted earlier; messages of those are late.
    pub fn resume(&mut self, next: u64) {
        self.next = Some(next);
        for source in self.sources.values_mut() {
            source.passed = next;
        }
    }

    /// For the messages of one source, from the begin of a session on.
    pub fn inspector(&self) -> Inspector {
        Inspector::new(self.policy.key, self.policy.window_ns)
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

    /// What came until now.
    pub fn joined(&self) -> Joined {
        let sources = self.sources.iter().map(|(id, source)| (*id, source.counts.clone())).collect();
        Joined { windows: self.counts.clone(), sources, first_wrong: self.first_wrong.clone() }
    }

    /// Counts of the windows that were emitted or dropped, not of open ones.
    pub fn settled(&self) -> Joined {
        let mut joined = self.joined();
        for (id, part) in self.windows.values().flat_map(|window| &window.parts) {
            let Some(counts) = joined.sources.get_mut(id) else { continue };
            *counts -= &part.counts;
        }
        joined
    }

    /// True of a source that comes now, and that no window needs.
    fn is_unlisted(&self, source: u32) -> bool {
        let Policy { sources, count, .. } = &self.policy;
        let is_one_more = *count > 0 && self.sources.len() >= *count;
        !self.sources.contains_key(&source) && (!sources.is_empty() || is_one_more)
    }

    /// The source is connected again: what was sent in between is not known.
    pub fn begin_session(&mut self, source: u32) {
        let is_unlisted = self.is_unlisted(source);
        let source = self.sources.entry(source).or_insert_with(|| Source { is_unlisted, ..Source::default() });
        source.new_session = true;
        source.counts.sessions += 1;
    }

    /// Two senders have the number of this source.
    pub fn note_two_senders(&mut self, source: u32) {
        self.sources.entry(source).or_default().counts.two_senders += 1;
    }

    /// Takes a message. `before`: what is known of the windows before it, where somebody tells; else it follows from
    /// the source's sessions and messages.
    pub fn push(&mut self, message: Inspected, before: Option<Before>, now: Instant) {
        let Inspected { data, header, key, lost, mut told, wrong } = message;
        self.begun.get_or_insert(now);
        self.first_wrong = self.first_wrong.take().or(wrong);
        let floor = self.next.unwrap_or(0);
        let oldest = self.oldest();
        let is_unlisted = self.is_unlisted(header.source_id);
        let source = self.sources.entry(header.source_id).or_insert_with(|| Source {
            // A source that was not expected owes no window that is older than its first.
            passed: key.map_or(floor, |key| oldest.map_or(key, |oldest| oldest.min(key)).max(floor)),
            new_session: true,
            is_unlisted,
            ..Source::default()
        });
        source.heard = Some(now);
        source.absent = false;
        told.unlisted = source.is_unlisted.into();
        let time = (header.seconds, header.nanoseconds);
        let record = header.record_counter;
        let Some(key) = key else {
            source.counts += &told;
            return;
        };
        if key < floor {
            told.late = 1;
            source.counts += &told;
            if self.policy.emit_late {
                self.counts.late += 1;
                self.late.push_back(Event { record, time, parts: vec![data], missing: Vec::new(), is_late: true });
            }
            return;
        }
        let passed = source.passed;
        let mut add_gap = |gap: Range<u64>| {
            let gap = gap.start.max(passed)..gap.end.min(key);
            if !gap.is_empty() {
                source.gaps.push_back(gap);
            }
        };
        match before {
            Some(Before { since, lost: (start, end) }) => {
                add_gap(passed..since);
                add_gap(start.max(since)..end);
            }
            None if source.new_session => add_gap(passed..key),
            None => add_gap(lost_before(lost, key, passed)),
        }
        // A crate that is connected again goes on; this one has begun anew.
        told.wrong_number |= u64::from(source.new_session && key < passed);
        source.new_session = false;
        source.passed = passed.max(key + 1);

        let window = self.windows.entry(key).or_insert_with(|| Window { record, time, parts: BTreeMap::new() });
        told.wrong_time |= u64::from(window.time != time);
        match window.parts.entry(header.source_id) {
            Entry::Vacant(place) => {
                told.messages = 1;
                source.counts += &told;
                place.insert(Part { data, counts: told });
            }
            Entry::Occupied(mut place) => {
                told.duplicate = 1;
                source.counts += &told;
                let part = place.get_mut();
                part.counts += &told;
                if self.policy.keep_last {
                    part.data = data;
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
            let begins_later =
                |id: &u32, source: &Source| !window.parts.contains_key(id) && source.passed > key && !source.knows(key);
            let is_first = self.from_the_middle && self.next.is_none();
            if is_first && self.sources.iter().any(|(id, source)| begins_later(id, source)) {
                continue;
            }
            let mut missing = Vec::new();
            let passed_over = self.next.unwrap_or(key)..key;
            for (id, source) in &mut self.sources {
                let unknown = source
                    .gaps
                    .iter()
                    .map(|gap| count_in(&(gap.start.max(passed_over.start)..gap.end.min(passed_over.end)), self.share));
                source.counts.unknown += unknown.sum::<u64>();
                if !window.parts.contains_key(id) && !source.knows(key) {
                    missing.push(*id);
                    source.counts.missing += 1;
                }
                while source.gaps.front().is_some_and(|gap| gap.end <= key) {
                    source.gaps.pop_front();
                }
            }
            self.next = Some(key + 1);
            if missing.is_empty() && self.sources.len() >= self.policy.count {
                self.counts.complete += 1;
            } else if self.policy.emit_incomplete {
                self.counts.incomplete += 1;
            } else {
                self.counts.dropped += 1;
                continue;
            }
            let parts = window.parts.into_values().map(|part| part.data).collect();
            return Some(Event { record: window.record, time: window.time, parts, missing, is_late: false });
        }
    }
}

//! Joins messages by time window. Has no threads and no clock.
//!
//! A source sends its windows in order. A window that it skips was empty, or the next message reports it as lost. A
//! window is emitted when each source has sent it or a later one, or has been silent for a time. Windows are
//! emitted in order, each once.
//!
//! A message whose number does not follow those of its source waits for the next one. If that goes on where the source was, the
//! number was wrong, and its message is set aside. If it goes on from that number, the source counts anew: in an epoch of its own, or
//! in that of others which have begun with it. Each epoch has its own windows. So what a source sends that counts anew is never
//! joined with what others send that go on, and none of them waits for the other.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Instant;

pub use crate::before::{lost_before, Before};
use crate::counts::{Counts, Joined, SourceCounts};
use crate::epoch::{Epoch, Fit, Window};
use crate::event::Event;
use crate::inspect::{in_words, Inspected, Inspector};
use crate::policy::Policy;
use crate::source::{Pending, Source};

/// Refused sources that are counted each by itself: anybody can send any number.
const UNLISTED: usize = 64;

/// How far an epoch was given away.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Standing {
    /// The first window that was not.
    pub next: u64,
    /// Sources that have counted anew, in it: the place of the first message.
    pub since: BTreeMap<u32, i64>,
}

/// See the module.
#[derive(Debug)]
pub struct Joiner {
    policy: Policy,
    sources: BTreeMap<u32, Source>,
    /// Of sources that are refused: of the first ones, and of all others.
    unlisted: BTreeMap<u32, SourceCounts>,
    others: SourceCounts,
    /// The oldest first.
    epochs: VecDeque<Epoch>,
    /// Epochs that have begun.
    began: u64,
    begun: Option<Instant>,
    from_the_middle: bool,
    late: VecDeque<Event>,
    counts: Counts,
    /// The first message that cannot be, and why.
    first_wrong: Option<String>,
    /// Of so many windows only those with this remainder come here.
    share: (u64, u64),
}

impl Joiner {
    /// Joins by `policy`.
    pub fn new(policy: Policy) -> Joiner {
        let sources = policy.sources.iter().map(|source| (*source, Source::default())).collect();
        Joiner {
            policy,
            sources,
            unlisted: BTreeMap::new(),
            others: SourceCounts::default(),
            epochs: VecDeque::new(),
            began: 0,
            begun: None,
            from_the_middle: false,
            late: VecDeque::new(),
            counts: Counts::default(),
            first_wrong: None,
            share: (0, 1),
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

    /// Continues after windows that were emitted earlier; messages of those are late. Data that begins anywhere still does so if
    /// none was emitted.
    pub fn resume(&mut self, epochs: &[Standing], now: Instant) {
        let mut begins_anywhere = self.from_the_middle;
        for Standing { next, .. } in epochs {
            let begins_here = std::mem::take(&mut begins_anywhere) && *next == 0;
            let epoch = self.open_epoch(true, now);
            epoch.from_the_middle = begins_here;
            epoch.next = (!begins_here).then_some(*next);
        }
    }

    /// What the source sends from now on is in the epoch that was the given one of those where this began.
    pub fn enter(&mut self, id: u32, resumed: usize, place: Option<i64>) {
        if let Ok(source) = self.source(id) {
            source.epoch = Some(resumed as u64);
            source.since = place.or(source.since);
        }
    }

    /// The source has sent over this connection before, in one of the epochs where this began. `is_behind`: as of
    /// [`Self::behind`] then.
    pub fn knows(&mut self, id: u32, resumed: usize, stream: &Inspector, is_behind: bool) {
        // Where the epoch still begins, so does the source.
        if let Some(epoch) = self.epochs.get_mut(resumed).filter(|epoch| epoch.next.is_some()) {
            epoch.knows(id, stream.stream, is_behind);
        }
        if let Ok(source) = self.source(id) {
            source.goes_on = true;
        }
    }

    /// Sources for which windows that were given away did not wait.
    pub fn behind(&self) -> BTreeSet<u32> {
        let epoch = |source: &Source| self.epochs.iter().find(|epoch| source.epoch == Some(epoch.id));
        let is_behind = |(id, source): &(&u32, &Source)| epoch(source).is_none_or(|epoch| epoch.is_behind(**id));
        self.sources.iter().filter(is_behind).map(|(id, _)| *id).collect()
    }

    fn open_epoch(&mut self, is_first: bool, now: Instant) -> &mut Epoch {
        self.epochs.push_back(Epoch::new(self.began, is_first, now));
        self.began += 1;
        let last = self.epochs.len() - 1;
        &mut self.epochs[last]
    }

    /// How far each epoch was given away.
    pub fn standing(&self) -> Vec<Standing> {
        let standing = |epoch: &Epoch| {
            let its = self.sources.iter().filter(|(_, source)| source.epoch == Some(epoch.id));
            let since = its.filter_map(|(id, source)| Some((*id, source.since?))).collect();
            Standing { next: epoch.next.unwrap_or(0), since }
        };
        self.epochs.iter().map(standing).collect()
    }

    /// Place of the first message that has not left.
    pub fn first(&self) -> Option<i64> {
        let pending = self.sources.values().filter_map(|source| Some(source.pending.as_ref()?.message.place));
        self.epochs.iter().filter_map(Epoch::first).chain(pending).min()
    }

    /// For the messages of one source, from the begin of a session on.
    pub fn inspector(&self) -> Inspector {
        Inspector::new(self.policy.key, self.policy.window_ns)
    }

    /// The first window that waits, or a message whose number does.
    pub fn oldest(&self) -> Option<u64> {
        let pending = self.sources.values().filter_map(|source| Some(source.pending.as_ref()?.key));
        self.epochs.iter().find_map(Epoch::oldest).or(pending.min())
    }

    /// True if a message has to wait until older ones have left. One that says what its source has of the oldest window never waits:
    /// that window waits for it.
    pub fn is_full_for(&self, message: &Inspected, now: Instant) -> bool {
        let id = message.header.source_id;
        let Some((key, source)) = message.key.zip(self.sources.get(&id)) else { return false };
        let (place, fit) = self.fit(message, key, source, now);
        let Some(epoch) = place.map(|place| &self.epochs[place]) else { return false };
        let has_no_room = || self.epochs.iter().map(Epoch::bytes).sum::<u64>() >= self.policy.max_bytes;
        fit == Fit::Follows && epoch.is_ahead(id) && (epoch.is_full_for(key, self.policy.max_open) || has_no_room())
    }

    /// True if a window has room in the epoch of its source, of `span` windows, or needs none because the oldest one waits for it.
    pub fn has_room_for(&self, id: u32, key: u64, span: u64) -> bool {
        let epoch = self.sources.get(&id).and_then(|source| source.epoch);
        let mut its = self.epochs.iter().filter(|one| epoch.is_none_or(|id| one.id == id));
        its.all(|one| !one.is_ahead(id) || !one.is_full_for(key, span))
    }

    /// Something came of a source that has to wait: it is not silent.
    pub fn hear(&mut self, id: u32, now: Instant) {
        if let Some(source) = self.sources.get_mut(&id) {
            source.heard = Some(now);
        }
    }

    /// What came until now.
    pub fn joined(&self) -> Joined {
        let sources = self.sources.iter().map(|(id, source)| (*id, source.counts.clone()));
        let sources = sources.chain(self.unlisted.clone()).collect();
        let (windows, others) = (self.counts.clone(), self.others.clone());
        Joined { windows, sources, others, first_wrong: self.first_wrong.clone() }
    }

    /// Counts of the windows that were emitted or dropped, not of open ones.
    pub fn settled(&self) -> Joined {
        let mut joined = self.joined();
        for (id, part) in self.epochs.iter().flat_map(Epoch::parts) {
            let Some(counts) = joined.sources.get_mut(id) else { continue };
            *counts -= &part.counts;
        }
        joined
    }

    /// Counts of a source, and whether it is refused.
    fn source(&mut self, id: u32) -> Result<&mut Source, &mut SourceCounts> {
        let Policy { sources, count, .. } = &self.policy;
        let is_one_more = *count > 0 && self.sources.len() >= *count;
        if !self.sources.contains_key(&id) && (!sources.is_empty() || is_one_more) {
            let is_kept = self.unlisted.contains_key(&id) || self.unlisted.len() < UNLISTED;
            return Err(if is_kept { self.unlisted.entry(id).or_default() } else { &mut self.others });
        }
        Ok(self.sources.entry(id).or_default())
    }

    /// The source is connected again: what was sent in between is not known. False: it is refused.
    pub fn begin_session(&mut self, id: u32) -> bool {
        match self.source(id) {
            Ok(source) => {
                source.goes_on = false;
                source.counts.sessions += 1;
                true
            }
            Err(counts) => {
                counts.sessions += 1;
                false
            }
        }
    }

    /// A session of the source has ended, so that no next message shows whether a number was right. `before`: what its
    /// feed says about the windows before; those from `came` on did not come.
    pub fn end_session(&mut self, id: u32, before: Option<Before>, came: u64, now: Instant) {
        self.settle(id, true, now);
        let Joiner { epochs, sources, policy, share, .. } = self;
        let Some((source, Before { since, lost })) = sources.get_mut(&id).zip(before) else { return };
        let Some(epoch) = epochs.iter().find(|epoch| source.epoch == Some(epoch.id)) else { return };
        // A wrong number shows no more windows than a source may pass over.
        let most = came.saturating_add(policy.max_ahead);
        for range in [came..since.min(most), came.max(since).max(lost.0)..lost.1] {
            source.counts.unknown += epoch.unknown_in(id, range, *share);
        }
    }

    /// Two senders have the number of this source.
    pub fn note_two_senders(&mut self, id: u32) {
        self.source(id).map_or_else(|counts| counts, |source| &mut source.counts).two_senders += 1;
    }

    /// The epoch in which a message fits best, and how: that of its source, or of one that has not sent yet, any.
    fn fit(&self, message: &Inspected, key: u64, source: &Source, now: Instant) -> (Option<usize>, Fit) {
        let its = |(_, epoch): &(usize, &Epoch)| source.epoch.is_none_or(|id| epoch.id == id);
        let fit =
            |(place, epoch): (usize, &Epoch)| (Some(place), epoch.fit(message, key, source.quiet(now), &self.policy));
        let best =
            self.epochs.iter().enumerate().filter(its).map(fit).max_by_key(|(place, fit)| (*fit, Reverse(*place)));
        best.unwrap_or((None, Fit::Follows))
    }

    /// Takes a message. `before`: what is known of the windows before it, where somebody tells; else it follows from
    /// the source's sessions and messages.
    pub fn push(&mut self, mut message: Inspected, before: Option<Before>, now: Instant) {
        self.begun.get_or_insert(now);
        if let Some(wrong) = message.wrong.take() {
            self.first_wrong.get_or_insert(wrong);
        }
        let id = message.header.source_id;
        let (pending, key) = match (self.source(id), message.key) {
            (Ok(source), Some(key)) => (source.pending.take(), key),
            (Ok(source), None) => return source.counts += &message.told,
            (Err(counts), _) => {
                message.told.unlisted = 1;
                return *counts += &message.told;
            }
        };
        let (place, fit) = self.fit(&message, key, &self.sources[&id], now);
        let new = Pending { message, key, before, is_ahead: fit == Fit::Ahead };
        let follows = fit == Fit::Follows;
        // Over a connection behind one that was further.
        let begins = |place| self.sources[&id].epoch.is_some() && self.epochs[place].is_new(&new.message);
        let begins_anew = fit == Fit::Not && place.is_some_and(begins);
        match pending {
            Some(first) if first.goes_on_with(&new, follows, self.policy.max_ahead) => {
                let place = if first.is_ahead { place } else { self.begin_anew(&first, now) };
                self.take(place, first, now);
                return self.take(place, new, now);
            }
            Some(first) => self.set_aside(first),
            None => {}
        }
        if follows {
            self.take(place, new, now);
        } else if begins_anew {
            let place = self.begin_anew(&new, now);
            self.take(place, new, now);
        } else if let Some(source) = self.sources.get_mut(&id) {
            source.pending = Some(new);
        }
    }

    /// Takes a message into the epoch at `place`; `None`: it begins the first one.
    fn take(&mut self, place: Option<usize>, pending: Pending, now: Instant) {
        let Pending { message, key, before, .. } = pending;
        if self.epochs.is_empty() {
            self.open_epoch(true, now).from_the_middle = self.from_the_middle;
        }
        let Some(source) = self.sources.get_mut(&message.header.source_id) else { return };
        let epoch = &mut self.epochs[place.unwrap_or(0)];
        match source.epoch.replace(epoch.id) {
            Some(id) if id != epoch.id => source.since = Some(message.place),
            _ => {}
        }
        source.heard = Some(now);
        source.is_absent = false;
        let is_new = !std::mem::replace(&mut source.goes_on, true);
        let (told, late) = epoch.take(message, key, before, is_new, &self.policy);
        source.counts += &told;
        self.counts.late += u64::from(late.is_some());
        self.late.extend(late);
    }

    /// The source of a message counts anew from it on: in an epoch that begins with it, or has begun with others. Its place.
    fn begin_anew(&mut self, first: &Pending, now: Instant) -> Option<usize> {
        let Pending { message, key, .. } = first;
        let id = message.header.source_id;
        let other = self.epochs.iter().position(|epoch| epoch.begins_with(message, *key, now, &self.policy));
        if other.is_none() {
            self.open_epoch(false, now);
        }
        if let Some(source) = self.sources.get_mut(&id) {
            source.counts.anew += 1;
            source.counts.wrong_number += 1;
            source.goes_on = false;
        }
        self.first_wrong.get_or_insert_with(|| in_words(*key, &message.header, "its source counts anew from there"));
        other.or(Some(self.epochs.len() - 1))
    }

    /// A number was wrong, as the next one has shown.
    fn set_aside(&mut self, pending: Pending) {
        let Pending { key, message: Inspected { data, header, mut told, .. }, .. } = pending;
        told.wrong_number = 1;
        told.set_aside = 1;
        if let Some(source) = self.sources.get_mut(&header.source_id) {
            source.counts += &told;
        }
        self.first_wrong.get_or_insert_with(|| in_words(key, &header, "no window that can follow those of its source"));
        if self.policy.emit_late {
            self.counts.late += 1;
            self.late.push_back(Event::late(key, &header, data));
        }
    }

    /// Nothing shows any more whether a number was right: one that is ahead is taken, with `all` others are set aside.
    fn settle(&mut self, id: u32, all: bool, now: Instant) {
        let Some(source) = self.sources.get_mut(&id) else { return };
        let Some(pending) = source.pending.take_if(|pending| all || pending.is_ahead) else { return };
        if pending.is_ahead {
            let place = source.epoch.and_then(|id| self.epochs.iter().position(|epoch| epoch.id == id));
            self.take(place, pending, now);
        } else {
            self.set_aside(pending);
        }
    }

    /// Looks which sources have been silent for too long.
    pub fn tick(&mut self, now: Instant) {
        let Some(begun) = self.begun else { return };
        let mut settled = Vec::new();
        for (id, source) in &mut self.sources {
            let since = now.saturating_duration_since(source.heard.unwrap_or(begun));
            if !source.is_absent && since >= self.policy.silence {
                source.is_absent = true;
                source.counts.absences += 1;
                settled.push(*id);
            }
        }
        settled.into_iter().for_each(|id| self.settle(id, false, now));
    }

    fn begun_long_ago(&self, now: Instant) -> bool {
        self.begun.is_some_and(|begun| now.saturating_duration_since(begun) >= self.policy.silence)
    }

    /// The next event. `all`: no more comes, so nothing is waited for.
    pub fn pop(&mut self, now: Instant, all: bool) -> Option<Event> {
        if all {
            let ids: Vec<_> = self.sources.keys().copied().collect();
            ids.into_iter().for_each(|id| self.settle(id, true, now));
        }
        loop {
            if let Some(event) = self.late.pop_front() {
                return Some(event);
            }
            if self.sources.len() < self.policy.count && !all && !self.begun_long_ago(now) {
                return None;
            }
            let Joiner { epochs, sources, share, policy, .. } = self;
            let pop = |epoch: &mut Epoch| epoch.pop(sources, policy.silence, all, now, *share);
            let Some((window, missing)) = epochs.iter_mut().find_map(pop) else {
                self.close_epochs();
                return None;
            };
            if missing.is_empty() && self.sources.len() >= self.policy.count {
                self.counts.complete += 1;
            } else if self.policy.emit_incomplete {
                self.counts.incomplete += 1;
            } else {
                self.counts.dropped += 1;
                continue;
            }
            let Window { number, time, parts, .. } = window;
            let parts = parts.into_values().map(|part| part.data).collect();
            return Some(Event { record: number, time, parts, missing, is_late: false });
        }
    }

    /// Forgets epochs that no source is in any more.
    fn close_epochs(&mut self) {
        let Joiner { epochs, sources, .. } = self;
        if epochs.len() > 1 {
            epochs.retain(|epoch| !epoch.is_empty() || sources.values().any(|source| source.epoch == Some(epoch.id)));
        }
    }
}

//! Where a builder begins in the partitions that it is given, and goes back to after a transaction that failed.

use std::sync::atomic::{AtomicBool, Ordering};

use fadelink_sinks::kafka::{during, Error as Failure, STEP};
use rdkafka::consumer::Consumer;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

use super::super::alone::Tail;
use super::super::error::{Error, Result};
use super::super::known::Known;
use super::super::partition::{Begin, Partition};
use super::super::place::Place;
use super::super::report::Watcher;
use super::super::watch::Change;
use super::{Builder, Plan, TICK};

impl Builder {
    /// Forgets what was taken away, and finds its place in what was given.
    pub(super) fn rebalance(&mut self, stop: &AtomicBool, watcher: &mut impl Watcher) -> Result<()> {
        for change in self.consumer.context().changes() {
            self.forget();
            self.output.forget();
            self.astray = false;
            let Change::Assigned(list) = change else { continue };
            // Of others it is their builder's now.
            self.unwritten.retain(|number, _| list.elements().iter().any(|given| given.partition() == *number));
            let places = self.committed_places(&list, stop, watcher)?;
            self.begin(&places, stop, watcher)?;
        }
        Ok(())
    }

    fn begin(&mut self, places: &TopicPartitionList, stop: &AtomicBool, watcher: &mut impl Watcher) -> Result<()> {
        for element in places.elements() {
            let number = element.partition();
            let topic = &self.plan.messages;
            let asked = || during("asking for its messages", self.consumer.fetch_watermarks(topic, number, STEP));
            let (oldest, end) = self.ask(stop, watcher, asked)?;
            // Some clients end the text with a zero byte.
            let place = element.metadata().trim_end_matches('\0').parse::<Place>();
            let mut before = match (place, element.offset()) {
                (Ok(place), Offset::Offset(at)) => Some((place, at)),
                (Err(()), Offset::Offset(at)) if at > end => Some((Place::default(), at)),
                _ => None,
            };
            if let Some((place, at)) = &before {
                let read = place.read.max(*at);
                if read > end {
                    let what = format!("it ends at offset {end}, and the group has read up to {read}");
                    return Err(Error::Anew { topic: topic.clone(), partition: number, what });
                }
                if let Some(last) = place.last.filter(|last| last.offset >= oldest) {
                    self.look_for(last, number, stop, watcher)?;
                }
            }
            // Who may append to a topic may have others that write to it.
            let tail = match &before {
                _ if self.plan.may_append => None,
                Some((place, _)) => place.tail,
                None => Some(self.look_for_events(number, stop, watcher)?),
            };
            self.output.begin(number, tail);
            let mut has_changed = false;
            if let Some((place, _)) = &mut before {
                has_changed = self.go_on(place, number, stop, watcher)?;
            }
            let begin = Begin { before, oldest, may_begin_later: self.plan.may_begin_later, has_changed };
            let partition = Partition::new(&self.plan.policy, self.rule, number, begin);
            self.changed |= partition.has_news();
            self.partitions.insert(number, partition);
        }
        // After a transaction that failed they stand still.
        Ok(during("going on", self.consumer.resume(places))?)
    }

    /// Looks whether the last message that the group has read is still the one that it was.
    fn look_for(&self, last: Known, partition: i32, stop: &AtomicBool, watcher: &mut impl Watcher) -> Result<()> {
        let found = self.ask(stop, watcher, || self.look.message(partition, last.offset))?;
        if found.is_some_and(|found| Known::of(&found) == last) {
            return Ok(());
        }
        let what = format!("message {} is not the one that the group has read there", last.offset);
        Err(Error::Anew { topic: self.plan.messages.clone(), partition, what })
    }

    /// A group that lost its place would write again windows that it has written before. Returns where its events begin.
    fn look_for_events(&self, partition: i32, stop: &AtomicBool, watcher: &mut impl Watcher) -> Result<Tail> {
        let look = &self.look_at_events;
        let (first, end) = self.ask(stop, watcher, || during("looking for events", look.offsets(partition)))?;
        // Marks of transactions have numbers, too.
        let has_events = first < end && self.ask(stop, watcher, || look.message(partition, first))?.is_some();
        let Plan { events, group, messages, .. } = self.plan.clone();
        if has_events {
            Err(Error::Twice { events, partition, group, messages })
        } else {
            Ok(Tail::of_none(end))
        }
    }

    /// Goes on behind the events of the builders before; true: those that were not reported are not there.
    fn go_on(
        &mut self,
        place: &mut Place,
        partition: i32,
        stop: &AtomicBool,
        watcher: &mut impl Watcher,
    ) -> Result<bool> {
        let Some(events) = place.events.clone() else { return Ok(false) };
        let gone = match self.ask(stop, watcher, || match self.output.go_on(partition, &events) {
            Err(gone @ Failure::Gone { .. }) => Ok(Some(gone.to_string())),
            result => result.map(|()| None),
        })? {
            None => return Ok(false),
            Some(gone) => gone,
        };
        // What comes is behind others.
        place.events = None;
        if !self.report.changed.contains(&gone) {
            self.report.changed.push(gone);
        }
        Ok(true)
    }

    /// Asks the brokers, again while they are away and nobody wants the end.
    fn ask<T>(
        &self,
        stop: &AtomicBool,
        watcher: &mut impl Watcher,
        action: impl Fn() -> std::result::Result<T, Failure>,
    ) -> Result<T> {
        loop {
            match action() {
                Err(error) if error.is_passing() && !stop.load(Ordering::Relaxed) => {
                    self.tell(watcher, error);
                    std::thread::sleep(TICK);
                }
                result => return Ok(result?),
            }
        }
    }

    /// Reads its partitions again from where the last commit left them. Until it can, their messages are left alone.
    pub(super) fn rewind(&mut self, stop: &AtomicBool, watcher: &mut impl Watcher) -> Result<()> {
        let assigned = during("asking for its partitions", self.consumer.assignment())?;
        if assigned.count() == 0 {
            // What it is given next begins at its place.
            self.astray = false;
            return Ok(());
        }
        let places = self.committed_places(&assigned, stop, watcher)?;
        let mut offsets = TopicPartitionList::new();
        for place in places.elements() {
            let offset = match place.offset() {
                Offset::Invalid => Offset::Beginning,
                offset => offset,
            };
            during("going back", offsets.add_partition_offset(place.topic(), place.partition(), offset))?;
        }
        let sought = self.consumer.seek_partitions(offsets, STEP);
        // A partition that is about to be taken away, or whose brokers are away, cannot be sought in.
        if sought.is_ok_and(|found| found.elements().iter().all(|element| element.error().is_ok())) {
            self.begin(&places, stop, watcher)?;
            self.astray = false;
        }
        Ok(())
    }

    /// Reads again what was left, where there is room for it.
    pub(super) fn go_back(&mut self) -> Result<()> {
        for (number, partition) in &mut self.partitions {
            let Some(from) = partition.goes_back() else { continue };
            let mut place = TopicPartitionList::new();
            let topic = &self.plan.messages;
            during("going back", place.add_partition_offset(topic, *number, Offset::Offset(from)))?;
            let sought = self.consumer.seek_partitions(place, STEP);
            // Else it is tried again.
            if sought.is_ok_and(|found| found.elements().iter().all(|element| element.error().is_ok())) {
                partition.went_back(from);
            }
        }
        Ok(())
    }

    /// The places that were committed last.
    pub(super) fn committed_places(
        &self,
        list: &TopicPartitionList,
        stop: &AtomicBool,
        watcher: &mut impl Watcher,
    ) -> Result<TopicPartitionList> {
        // Also while a builder that was killed has a transaction open, which the broker ends in time.
        let asked = || during("asking for its place", self.consumer.committed_offsets(list.clone(), STEP));
        self.ask(stop, watcher, asked)
    }
}

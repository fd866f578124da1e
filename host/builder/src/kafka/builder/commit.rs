//! The transactions of a builder: events, and the place in the messages that they are of.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use fadelink_sinks::kafka::{during, Error as Failure, STEP, TRANSACTION};
use rdkafka::consumer::Consumer;
use rdkafka::error::KafkaError;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList, TopicPartitionListElem};

use super::super::error::Result;
use super::super::failing::Failing;
use super::super::partition::Partition;
use super::super::report::Watcher;
use super::Builder;

impl Builder {
    /// Its user has the report: the next builder need not tell again what was wrong. One that is killed before leaves that to it.
    ///
    /// # Errors
    /// The brokers'; then the next builder tells it again.
    pub fn reported(&mut self, stop: &AtomicBool) -> Result<()> {
        if self.astray || self.report.error.is_some() {
            return Ok(());
        }
        self.is_reported = true;
        let has_unreported =
            |(number, partition): (&i32, &Partition)| partition.has_unreported(self.output.events(*number).as_ref());
        self.changed |= self.partitions.iter().any(has_unreported);
        self.commit(stop, &mut ()).map(drop)
    }

    /// The places that the next transaction commits, in the metadata of the offsets.
    fn places(&mut self) -> std::result::Result<TopicPartitionList, KafkaError> {
        let mut list = TopicPartitionList::new();
        for (number, partition) in &mut self.partitions {
            if partition.has_place() {
                let (offset, mut place) = partition.place(self.output.events(*number), self.is_reported);
                place.tail = self.output.tail(*number);
                let mut element = list.add_partition(&self.plan.messages, *number);
                element.set_offset(Offset::Offset(offset))?;
                element.set_metadata(place.to_string());
            }
        }
        Ok(list)
    }

    /// True if these places were committed, by a transaction whose answer did not come.
    fn are_committed(
        &self,
        places: &TopicPartitionList,
        stop: &AtomicBool,
        watcher: &mut impl Watcher,
    ) -> Result<bool> {
        let committed = self.committed_places(places, stop, watcher)?;
        let is_there = |place: &TopicPartitionListElem<'_>| {
            let found = committed.find_partition(place.topic(), place.partition());
            found.is_some_and(|found| found.metadata() == place.metadata())
        };
        Ok(places.count() > 0 && places.elements().iter().all(is_there))
    }

    /// What was joined, but not committed, is done again, by this builder or another.
    pub(super) fn forget(&mut self) {
        self.waiting.clear();
        self.changed = false;
        for (number, partition) in std::mem::take(&mut self.partitions) {
            self.done += &self.counted(number, &partition);
            if let Some(told) = partition.told() {
                self.told.insert(number, told);
            }
        }
    }

    /// Writes the events that wait and the place in the messages, both or neither.
    pub(super) fn commit(&mut self, stop: &AtomicBool, watcher: &mut impl Watcher) -> Result<u64> {
        if !self.changed && self.waiting.is_empty() {
            return Ok(0);
        }
        let begin = Instant::now();
        let deadline = begin + TRANSACTION - 2 * STEP;
        let sent = self.output.send(&self.waiting, deadline);
        let places = during("committing", self.places())?;
        let result = sent.and_then(|()| self.output.commit(&places, self.consumer.group_metadata(), deadline));
        self.committed = Instant::now();
        match result {
            Ok(()) => {
                let events = self.note_commit(watcher);
                self.look_at_suspects();
                Ok(events)
            }
            Err(error) => self.fail(error, &places, begin, stop, watcher),
        }
    }

    /// A transaction has failed: it is given up, and its work is done again, if that may help.
    fn fail(
        &mut self,
        error: KafkaError,
        places: &TopicPartitionList,
        begin: Instant,
        stop: &AtomicBool,
        watcher: &mut impl Watcher,
    ) -> Result<u64> {
        let is_fatal = matches!(&error, KafkaError::Transaction(error) if error.is_fatal());
        let why = self.output.why(error.clone());
        tracing::warn!("Kafka: a transaction was aborted: {why}");
        self.note_failure(&why);
        self.tell(watcher, Failure::Kafka { what: "committing", error: why.clone() });
        let mut events = 0;
        if is_fatal || !self.output.abort(begin + TRANSACTION) {
            // The broker gave it up, for it took too long. Else it is another builder of this name that did.
            if begin.elapsed() < TRANSACTION {
                return Ok(during("committing", Err(error))?);
            }
            loop {
                match self.output.reconnect() {
                    Err(error) if !stop.load(Ordering::Relaxed) => {
                        tracing::warn!("{error}; tried again");
                        self.tell(watcher, error);
                    }
                    result => break result?,
                }
            }
            // By now the transaction is over; it may be that only the answer was missing.
            if self.are_committed(places, stop, watcher)? {
                events = self.note_commit(watcher);
            }
        }
        self.report.aborts += u64::from(self.changed);
        self.forget();
        self.astray = true;
        // What is read until the next try is of no use.
        if let Ok(assigned) = self.consumer.assignment() {
            let _ = self.consumer.pause(&assigned);
        }
        match &self.failing {
            Some(failing) if failing.is_for_good(&why) => {
                Err(Failure::Refused { topic: self.plan.events.clone(), error: why }.into())
            }
            _ => Ok(events),
        }
    }

    /// What was read for a transaction that failed is still to be written.
    fn note_failure(&mut self, why: &KafkaError) {
        for (number, partition) in &self.partitions {
            let read = partition.uncommitted();
            let unwritten = self.unwritten.entry(*number).or_insert(read.clone());
            *unwritten = unwritten.start.min(read.start)..unwritten.end.max(read.end);
        }
        self.report.failed = Some(why.to_string());
        self.failing = Some(Failing::again(self.failing.take()));
    }

    /// The transaction was committed: what it holds counts; the number of its events.
    fn note_commit(&mut self, watcher: &mut impl Watcher) -> u64 {
        self.report.commits += 1;
        self.output.note_commit();
        self.changed = false;
        self.failing = None;
        for (number, partition) in &mut self.partitions {
            partition.commit();
            self.unwritten.entry(*number).and_modify(|unwritten| unwritten.start = partition.uncommitted().start);
        }
        self.unwritten.retain(|_, unwritten| !unwritten.is_empty());
        let events = std::mem::take(&mut self.waiting);
        events.iter().for_each(|(_, event)| watcher.event(event));
        events.len() as u64
    }
}

//! The topic of events: they are written in transactions, with the place in the messages.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fadelink_sinks::kafka::{
    commit, compare, deliver, during, transactional, until, Error as Failure, Writer, Written, STEP,
};
use rdkafka::consumer::ConsumerGroupMetadata;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::{BaseRecord, Producer};
use rdkafka::topic_partition_list::TopicPartitionList;

use super::alone::{Alone, Surplus, Tail};
use super::note;
use crate::Event;

/// Where events go.
#[derive(Debug, Clone)]
pub struct To {
    /// Brokers to begin with.
    pub brokers: String,
    pub topic: String,
    /// Of the builder among all that write to the brokers.
    pub name: String,
    /// Source of the events.
    pub builder_id: u32,
}

/// See the module.
pub struct Output {
    to: To,
    producer: Writer,
    written: Arc<Written>,
    alone: Alone,
}

impl Output {
    /// Shuts out another builder of its name.
    ///
    /// # Errors
    /// The brokers cannot be reached, or refuse.
    pub fn connect(to: To) -> Result<Output, Failure> {
        let written = Arc::default();
        let producer = transactional(&to.brokers, &to.name, &written)?;
        Ok(Output { producer, to, written, alone: Alone::default() })
    }

    /// The same again, when a transaction has failed for good.
    ///
    /// # Errors
    /// As [`Self::connect`].
    pub fn reconnect(&mut self) -> Result<(), Failure> {
        self.producer = transactional(&self.to.brokers, &self.to.name, &self.written)?;
        Ok(())
    }

    /// Begins a transaction with events, each in its partition, and waits until they are delivered.
    ///
    /// # Errors
    /// They were not sent.
    pub fn send(&mut self, events: &[(i32, Event)], deadline: Instant) -> Result<(), KafkaError> {
        self.written.take_refusal();
        self.alone.begin_transaction();
        let mut begun = BTreeMap::new();
        for (partition, _) in events {
            begun.entry(*partition).or_insert_with(|| (0, self.written.numbered(*partition))).0 += 1;
        }
        self.producer.begin_transaction()?;
        for (partition, event) in events {
            let key = event.record.to_be_bytes();
            let data = event.emit(self.to.builder_id);
            let record = BaseRecord::to(&self.to.topic).partition(*partition).key(&key[..]).payload(&data[..]);
            let mut record = record.headers(note::of_event(event));
            while let Err((error, again)) = self.producer.send(record) {
                if error != KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull) || Instant::now() >= deadline {
                    return Err(error);
                }
                record = again;
                self.producer.poll(Duration::from_millis(10));
            }
        }
        deliver(&self.producer, deadline);
        for (partition, (events, before)) in begun {
            let has_all = self.written.numbered(partition) - before == events;
            let end = self.written.span(partition).map(|span| span.end).filter(|_| has_all);
            self.alone.sent(partition, events, end);
        }
        Ok(())
    }

    /// Commits what was sent, with the places of the group, all or nothing.
    ///
    /// # Errors
    /// It was not committed, or the answer did not come.
    pub fn commit(
        &self,
        places: &TopicPartitionList,
        group: Option<ConsumerGroupMetadata>,
        deadline: Instant,
    ) -> Result<(), KafkaError> {
        let group = group.ok_or(KafkaError::Canceled)?;
        until(|| Instant::now() < deadline, || self.producer.send_offsets_to_transaction(places, &group, STEP))?;
        commit(&self.producer, deadline)
    }

    /// The transaction was committed.
    pub fn note_commit(&mut self) {
        self.alone.commit();
    }

    /// Its partitions may be another builder's.
    pub fn forget(&mut self) {
        self.alone.forget();
    }

    /// It goes on in a partition, with what the group has written there, where that is known.
    pub fn begin(&mut self, partition: i32, tail: Option<Tail>) {
        self.alone.begin(partition, tail);
    }

    /// What the group has written to a partition when this transaction is committed.
    pub fn tail(&self, partition: i32) -> Option<Tail> {
        self.alone.tail(partition)
    }

    /// Places where others may have written, to be looked at now.
    pub fn suspects(&mut self) -> Vec<Surplus> {
        self.alone.suspects()
    }

    /// It was looked at what is there.
    pub fn looked_at(&mut self, surplus: &Surplus) {
        self.alone.looked_at(surplus);
    }

    /// Places where others may have written, in the end.
    ///
    /// # Errors
    /// The brokers do not tell.
    pub fn suspects_at_end(&self) -> Result<Vec<Surplus>, Failure> {
        self.alone.at_end(|partition| {
            during("looking for the end of the events", self.offsets(partition)).map(|(_, end)| end)
        })
    }

    /// Why a transaction failed: because a message was refused, if one was.
    pub fn why(&self, error: KafkaError) -> KafkaError {
        self.written.take_refusal().unwrap_or(error)
    }

    /// Offsets of the events in a partition that no builder has reported, as far as it is known here.
    pub fn events(&self, partition: i32) -> Option<Range<i64>> {
        self.written.span(partition)
    }

    /// Goes on behind the events that the group has written into a partition.
    ///
    /// # Errors
    /// They are not there, or the brokers do not tell.
    pub fn go_on(&self, partition: i32, events: &Range<i64>) -> Result<(), Failure> {
        let (low, high) = during("looking for events", self.offsets(partition))?;
        // Those that were reported may be gone by now, with the marks of their transactions behind them, which have numbers, too.
        let first = if events.is_empty() { low } else { events.start };
        compare(&self.to.topic, partition, &(first..events.end), (low, high)).map_err(|error| match error {
            Failure::Short { topic, partition, what } => Failure::Gone { topic, partition, what },
            error => error,
        })?;
        if !events.is_empty() {
            self.written.begins_with(partition, events.clone());
        }
        Ok(())
    }

    fn offsets(&self, partition: i32) -> Result<(i64, i64), KafkaError> {
        self.producer.client().fetch_watermarks(&self.to.topic, partition, STEP)
    }

    /// Gives a transaction up; false: it cannot be before `deadline`.
    pub fn abort(&self, deadline: Instant) -> bool {
        until(|| Instant::now() < deadline, || self.producer.abort_transaction(STEP)).is_ok()
    }

    /// Looks whether the topic has all that was written to it.
    ///
    /// # Errors
    /// It has not, or the brokers do not tell it.
    pub fn look(&self) -> Result<(), Failure> {
        self.written.look_at_end(&self.to.topic, || false, |partition| self.offsets(partition))
    }
}

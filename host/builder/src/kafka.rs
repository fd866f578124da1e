//! Apache Kafka between receivers and builders, for setups beyond one machine.
//!
//! Receivers put each message into the partition of its window (window modulo partitions), so builders that share a
//! group each join whole windows. A builder writes events and its place in the messages in one transaction: an event is
//! there exactly once for whoever reads committed data, however often builders are killed. Its place is the first
//! message of the windows that are open, with the window that is next; after a restart the messages from there on are
//! read again, and windows before that one are left alone.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use fadelink_wire::fadc::{Header, Message as Fadc};
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::{ClientContext, DefaultClientContext};
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext, Rebalance};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::Message;
use rdkafka::producer::{
    BaseProducer, BaseRecord, DeliveryResult, NoCustomPartitioner, Producer, ProducerContext, ThreadedProducer,
};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use serde::Serialize;

use crate::join::{Counts, Joiner, Policy, SourceCounts};
use crate::Event;

/// Longest wait for the brokers.
const PATIENCE: Duration = Duration::from_secs(30);
/// Longest wait for the first of them.
const CONNECT: Duration = Duration::from_secs(10);
/// Longest time between commits while events come.
const COMMIT_EVERY: Duration = Duration::from_millis(200);
/// Events of a transaction.
const COMMIT_EVENTS: usize = 1000;
/// Largest message.
const MESSAGE_BYTES: &str = "67108864";

/// Why Kafka could not be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The library's or a broker's.
    #[error("Kafka, {what}: {source}")]
    Kafka {
        /// What was tried.
        what: &'static str,
        /// What went wrong.
        source: KafkaError,
    },
    /// The topics do not fit together.
    #[error("topic {topic} has {found} partitions: expected {expected}")]
    Partitions {
        /// Its name.
        topic: String,
        /// As it is.
        found: usize,
        /// As it should be.
        expected: usize,
    },
    /// A message could not be delivered.
    #[error("Kafka, delivering a message: {0}")]
    Delivery(String),
}

type Result<T> = std::result::Result<T, Error>;

fn during<T>(what: &'static str, result: std::result::Result<T, KafkaError>) -> Result<T> {
    result.map_err(|source| Error::Kafka { what, source })
}

fn config(brokers: &str) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", brokers).set("message.max.bytes", MESSAGE_BYTES);
    config
}

/// Partitions of a topic, which is created with `partitions` where it does not exist.
fn topic(brokers: &str, name: &str, partitions: usize) -> Result<usize> {
    let admin: AdminClient<DefaultClientContext> = during("connecting", config(brokers).create())?;
    during("connecting", admin.inner().fetch_metadata(None, CONNECT))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let Ok(runtime) = runtime else { return Err(Error::Delivery("no runtime".into())) };
    let new =
        NewTopic::new(name, partitions as i32, TopicReplication::Fixed(-1)).set("max.message.bytes", MESSAGE_BYTES);
    let options = AdminOptions::new().operation_timeout(Some(PATIENCE));
    let made = during("creating a topic", runtime.block_on(admin.create_topics([&new], &options)))?;
    match made.into_iter().next() {
        Some(Err((_, code))) if code != RDKafkaErrorCode::TopicAlreadyExists => {
            return during("creating a topic", Err(KafkaError::AdminOp(code)))
        }
        _ => {}
    }
    let deadline = Instant::now() + PATIENCE;
    loop {
        let metadata = during("asking for a topic", admin.inner().fetch_metadata(Some(name), PATIENCE))?;
        let found = metadata.topics().first().map_or(0, |topic| topic.partitions().len());
        // A new topic takes a moment to be known to all brokers.
        if found > 0 || Instant::now() >= deadline {
            return Ok(found);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[derive(Default)]
struct Deliveries {
    done: AtomicU64,
    error: Mutex<Option<String>>,
}

impl ClientContext for Deliveries {}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        match result {
            Ok(_) => {
                self.done.fetch_add(1, Ordering::Relaxed);
            }
            Err((error, _)) => {
                self.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error.to_string());
            }
        }
    }
}

/// Puts messages into their partitions, each once in a session.
pub struct Feeder {
    producer: ThreadedProducer<Deliveries, NoCustomPartitioner>,
    topic: String,
    partitions: u64,
}

impl Feeder {
    /// Connects; the topic is created with `partitions` where it does not exist.
    ///
    /// # Errors
    /// The brokers cannot be reached, or refuse.
    pub fn connect(brokers: &str, name: &str, partitions: usize) -> Result<Feeder> {
        let partitions = topic(brokers, name, partitions)? as u64;
        let mut config = config(brokers);
        config.set("enable.idempotence", "true").set("linger.ms", "5").set("compression.type", "none");
        let producer = during("connecting", config.create_with_context(Deliveries::default()))?;
        Ok(Feeder { producer, topic: name.to_owned(), partitions })
    }

    /// Gives a message; waits while too many are under way.
    ///
    /// # Errors
    /// This one, or one before it, cannot be delivered.
    pub fn put(&self, message: &[u8]) -> Result<()> {
        let Ok(header) = Header::parse(message) else { return Ok(()) };
        let key = header.source_id.to_be_bytes();
        let partition = (header.record_counter % self.partitions) as i32;
        let mut record = BaseRecord::to(&self.topic).partition(partition).key(&key[..]).payload(message);
        loop {
            self.failed()?;
            match self.producer.send(record) {
                Ok(()) => return Ok(()),
                Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), again)) => {
                    record = again;
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err((error, _)) => return during("sending a message", Err(error)),
            }
        }
    }

    /// Messages that the brokers have.
    pub fn delivered(&self) -> u64 {
        self.producer.context().done.load(Ordering::Relaxed)
    }

    fn failed(&self) -> Result<()> {
        let error = self.producer.context().error.lock().unwrap_or_else(PoisonError::into_inner).clone();
        error.map_or(Ok(()), |error| Err(Error::Delivery(error)))
    }

    /// Waits until all has been delivered.
    ///
    /// # Errors
    /// Something could not be.
    pub fn finish(&self) -> Result<()> {
        during("waiting for deliveries", self.producer.flush(PATIENCE))?;
        self.failed()
    }
}

/// What the builder is to do.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Brokers to begin with, as `host:port,...`.
    pub brokers: String,
    /// Topic of messages.
    pub messages: String,
    /// Topic of events; its partitions are those of the messages.
    pub events: String,
    /// Builders that share the work.
    pub group: String,
    /// Name of this builder: another of the same name is shut out.
    pub name: String,
    /// Source of the events.
    pub builder_id: u32,
    /// How to join.
    pub policy: Policy,
}

/// What a builder did.
#[derive(Debug, Default, Clone, Serialize)]
pub struct Report {
    /// Messages that were read.
    pub messages: u64,
    /// Messages of windows that had been given away before this builder began.
    pub replayed: u64,
    /// What was no message.
    pub malformed: u64,
    /// Transactions.
    pub commits: u64,
    /// Transactions that were given up, their work done again.
    pub aborts: u64,
    /// Windows, of all partitions.
    pub windows: Counts,
    /// By source, of all partitions that this builder has now.
    pub sources: BTreeMap<String, SourceCounts>,
}

#[derive(Default)]
struct Watch {
    assigned: Mutex<Vec<Change>>,
}

enum Change {
    Assigned(TopicPartitionList),
    Revoked,
}

impl ClientContext for Watch {}

impl ConsumerContext for Watch {
    fn pre_rebalance(&self, _: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        if let Rebalance::Revoke(_) = rebalance {
            self.assigned.lock().unwrap_or_else(PoisonError::into_inner).push(Change::Revoked);
        }
    }

    fn post_rebalance(&self, _: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        if let Rebalance::Assign(list) = rebalance {
            self.assigned.lock().unwrap_or_else(PoisonError::into_inner).push(Change::Assigned((*list).clone()));
        }
    }
}

/// The place of a builder in a partition, as it stands in the metadata of a committed offset.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Place {
    /// The first window that was not given away.
    next: u64,
    /// The first message that was not read.
    read: i64,
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

struct Partition {
    joiner: Joiner,
    before: Place,
    read: i64,
    /// First message of each open window.
    open: BTreeMap<u64, i64>,
}

impl Partition {
    fn new(policy: &Policy, before: Option<Place>) -> Partition {
        let mut joiner = Joiner::new(policy.clone());
        if let Some(place) = before {
            joiner.resume(place.next);
        }
        Partition { joiner, before: before.unwrap_or_default(), read: 0, open: BTreeMap::new() }
    }

    /// Where to begin after a restart.
    fn place(&mut self) -> (i64, Place) {
        let next = self.joiner.next().unwrap_or(0);
        self.open = self.open.split_off(&next);
        let first = self.open.values().copied().min().unwrap_or(self.read);
        (first, Place { next, read: self.read.max(self.before.read) })
    }
}

/// Joins the messages of Kafka until it is stopped.
pub struct Builder {
    plan: Plan,
    consumer: BaseConsumer<Watch>,
    producer: BaseProducer,
    partitions: BTreeMap<i32, Partition>,
    waiting: Vec<(i32, Event)>,
    changed: bool,
    committed: Instant,
    done: Counts,
    report: Report,
}

impl Builder {
    /// Connects; topics are created with `partitions` where they do not exist.
    ///
    /// # Errors
    /// The brokers cannot be reached, or refuse; the topics differ in their partitions.
    pub fn connect(plan: Plan, partitions: usize) -> Result<Builder> {
        let expected = topic(&plan.brokers, &plan.messages, partitions)?;
        let found = topic(&plan.brokers, &plan.events, expected)?;
        if found != expected {
            return Err(Error::Partitions { topic: plan.events, found, expected });
        }
        let mut reading = config(&plan.brokers);
        reading
            .set("group.id", &plan.group)
            .set("client.id", &plan.name)
            .set("enable.auto.commit", "false")
            .set("auto.offset.reset", "earliest")
            .set("isolation.level", "read_committed")
            .set("fetch.message.max.bytes", MESSAGE_BYTES)
            .set("session.timeout.ms", "6000")
            .set("partition.assignment.strategy", "range");
        let consumer: BaseConsumer<Watch> = during("connecting", reading.create_with_context(Watch::default()))?;
        let mut writing = config(&plan.brokers);
        writing.set("transactional.id", format!("{}.{}", plan.group, plan.name)).set("transaction.timeout.ms", "10000");
        let producer: BaseProducer = during("connecting", writing.create())?;
        during("beginning transactions", producer.init_transactions(PATIENCE))?;
        during("subscribing", consumer.subscribe(&[&plan.messages]))?;
        Ok(Builder {
            plan,
            consumer,
            producer,
            partitions: BTreeMap::new(),
            waiting: Vec::new(),
            changed: false,
            committed: Instant::now(),
            done: Counts::default(),
            report: Report::default(),
        })
    }

    /// What was done.
    pub fn report(&self) -> Report {
        let mut report = self.report.clone();
        report.windows = self.done.clone();
        for partition in self.partitions.values() {
            report.windows += partition.joiner.counts();
            for (source, counts) in partition.joiner.sources() {
                *report.sources.entry(format!("{source:#010x}")).or_default() += counts;
            }
        }
        report
    }

    /// Joins until `stop` is set or `events` events were committed. Windows that are open then stay in Kafka.
    ///
    /// # Errors
    /// The brokers', where trying again does not help.
    pub fn run(&mut self, stop: &AtomicBool, events: Option<u64>, mut seen: impl FnMut(&Event)) -> Result<()> {
        let mut given = 0;
        while !stop.load(Ordering::Relaxed) && events.is_none_or(|events| given < events) {
            let polled = self.consumer.poll(Duration::from_millis(50)).map(|message| message.map(|m| m.detach()));
            self.rebalance()?;
            match polled {
                Some(Ok(message)) => self.take(&message),
                Some(Err(KafkaError::MessageConsumption(RDKafkaErrorCode::UnknownMemberId))) | None => {}
                Some(Err(error)) => during("reading messages", Err(error))?,
            }
            let now = Instant::now();
            for (number, partition) in &mut self.partitions {
                partition.joiner.tick(now);
                while let Some(event) = partition.joiner.pop(now, false) {
                    self.waiting.push((*number, event));
                }
            }
            let due = now.saturating_duration_since(self.committed) >= COMMIT_EVERY && self.changed;
            if self.waiting.len() >= COMMIT_EVENTS || due {
                given += self.commit(&mut seen)?;
            }
        }
        self.commit(&mut seen)?;
        Ok(())
    }

    /// Forgets what was taken away, and finds its place in what was given.
    fn rebalance(&mut self) -> Result<()> {
        let changes =
            std::mem::take(&mut *self.consumer.context().assigned.lock().unwrap_or_else(PoisonError::into_inner));
        for change in changes {
            // What was joined, but not committed, is another's now.
            self.waiting.clear();
            for (_, partition) in std::mem::take(&mut self.partitions) {
                self.done += partition.joiner.counts();
            }
            let Change::Assigned(list) = change else { continue };
            let committed = during("asking for its place", self.consumer.committed_offsets(list, PATIENCE))?;
            for element in committed.elements() {
                let place = element.metadata().parse().ok();
                self.partitions.insert(element.partition(), Partition::new(&self.plan.policy, place));
            }
        }
        Ok(())
    }

    fn take(&mut self, message: &impl Message) {
        self.report.messages += 1;
        let Some(partition) = self.partitions.get_mut(&message.partition()) else { return };
        let offset = message.offset();
        partition.read = offset + 1;
        self.changed = true;
        let data = message.payload().unwrap_or_default();
        let Ok(parsed) = Fadc::parse(data) else {
            self.report.malformed += 1;
            return;
        };
        let key = partition.joiner.key(parsed.header());
        if offset < partition.before.read && key < partition.before.next {
            self.report.replayed += 1;
            return;
        }
        if partition.joiner.next().is_none_or(|next| key >= next) {
            partition.open.entry(key).or_insert(offset);
        }
        partition.joiner.push(parsed.bytes().into(), Instant::now());
    }

    /// Writes the events that wait and the place in the messages, both or neither.
    fn commit(&mut self, seen: &mut impl FnMut(&Event)) -> Result<u64> {
        self.committed = Instant::now();
        if !self.changed && self.waiting.is_empty() {
            return Ok(0);
        }
        match self.try_commit() {
            Ok(()) => {
                self.report.commits += 1;
                self.changed = false;
                let events = std::mem::take(&mut self.waiting);
                events.iter().for_each(|(_, event)| seen(event));
                Ok(events.len() as u64)
            }
            Err(KafkaError::Transaction(error)) if error.is_fatal() => {
                during("committing", Err(KafkaError::Transaction(error)))
            }
            Err(error) => {
                // As after a restart: the place is where the last commit left it.
                self.report.aborts += 1;
                during("giving a transaction up", self.producer.abort_transaction(PATIENCE))?;
                eprintln!("fadelink: Kafka: a transaction was given up and is done again: {error}");
                self.consumer.unsubscribe();
                self.waiting.clear();
                self.partitions.clear();
                self.changed = false;
                during("subscribing", self.consumer.subscribe(&[&self.plan.messages]))?;
                Ok(0)
            }
        }
    }

    fn try_commit(&mut self) -> std::result::Result<(), KafkaError> {
        self.producer.begin_transaction()?;
        for (partition, event) in &self.waiting {
            let key = event.record.to_be_bytes();
            let data = event.emit(self.plan.builder_id);
            let mut record = BaseRecord::to(&self.plan.events).partition(*partition).key(&key[..]).payload(&data[..]);
            while let Err((error, again)) = self.producer.send(record) {
                if error != KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull) {
                    return Err(error);
                }
                record = again;
                self.producer.poll(Duration::from_millis(10));
            }
        }
        let mut list = TopicPartitionList::new();
        for (number, partition) in &mut self.partitions {
            if partition.read > 0 {
                let (offset, place) = partition.place();
                let mut element = list.add_partition(&self.plan.messages, *number);
                element.set_offset(Offset::Offset(offset))?;
                element.set_metadata(place.to_string());
            }
        }
        let group = self.consumer.group_metadata().ok_or(KafkaError::Canceled)?;
        self.producer.send_offsets_to_transaction(&list, &group, PATIENCE)?;
        self.producer.commit_transaction(PATIENCE)
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

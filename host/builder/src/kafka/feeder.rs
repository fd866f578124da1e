//! Writes the messages of crates to their partitions.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use fadelink_sinks::kafka::{config, during, patiently, topic, Error as Failure, Reach, Written, STEP};
use fadelink_sinks::Stall;
use fadelink_wire::fadc::{Header, Message as Fadc};
use rdkafka::client::ClientContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::Message;
use rdkafka::producer::{BaseRecord, DeliveryResult, NoCustomPartitioner, Producer, ProducerContext, ThreadedProducer};

use super::error::Result;
use super::look::Look;
use super::note::{Note, Of, Session};
use super::rule::{Rule, BY_BROKER};
use crate::event::Bytes;
use crate::inspect::windows_lost;
use crate::join::{lost_before, Before};
use crate::key::Key;
use crate::tcp::{MessageHandler, Messages, INTERRUPTED};

#[derive(Default)]
struct Deliveries {
    done: AtomicU64,
    written: Written,
    error: Mutex<Option<String>>,
}

impl ClientContext for Deliveries {}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        match result {
            // An end has no data.
            Ok(message) => {
                self.written.note(message.partition(), message.offset());
                self.done.fetch_add(u64::from(message.payload_len() > 0), Ordering::Relaxed);
            }
            Err((error, _)) => {
                self.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error.to_string());
            }
        }
    }
}

/// Puts messages into their partitions, each once.
pub struct Feeder {
    producer: ThreadedProducer<Deliveries, NoCustomPartitioner>,
    topic: String,
    rule: Rule,
    /// When it began, in ns since 1970: sessions of later feeders are later.
    epoch: u64,
    sessions: AtomicU64,
    reach: Reach,
    stall: Stall,
}

/// From a message of what is still to be delivered to the next one.
const TOLD: Duration = Duration::from_secs(10);
/// How often is looked meanwhile whether that is given up.
const LOOK: Duration = Duration::from_millis(100);

impl Feeder {
    /// Connects, and marks its begin; the topic is created with `partitions` where it does not exist. `key`: by what messages will
    /// be joined.
    ///
    /// # Errors
    /// The brokers cannot be reached, or refuse; the topic has messages that were put there by another rule.
    pub fn connect(brokers: &str, name: &str, partitions: usize, key: Key) -> Result<Feeder> {
        let rule = Rule { key, partitions: topic(brokers, name, partitions, BY_BROKER)? as u64 };
        check_topic(brokers, name, rule)?;
        let mut config = config(brokers);
        config.set("enable.idempotence", "true").set("linger.ms", "5").set("compression.type", "none");
        // After a cut of the network TCP may wait as long as the cut was before it tries again.
        config.set("request.timeout.ms", "5000");
        let producer = during("connecting", config.create_with_context(Deliveries::default()))?;
        let epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
        let feeder = Feeder {
            producer,
            topic: name.to_owned(),
            rule,
            epoch,
            sessions: AtomicU64::new(0),
            reach: Reach::watch(brokers, name)?,
            stall: Stall::default(),
        };
        // Of one that is killed from now on builders know that it may have taken something.
        feeder.mark(Of::FeedBegins(epoch))?;
        feeder.finish(|| false)?;
        Ok(feeder)
    }

    /// Marks its end: all that came is delivered, and nothing speaks against it.
    ///
    /// # Errors
    /// As of [`Self::finish`].
    pub fn end(&self, must_abort: impl Fn() -> bool) -> Result<()> {
        self.mark(Of::FeedEnds(self.epoch))?;
        self.finish(must_abort)
    }

    /// Into all partitions, for each may be another builder's.
    fn mark(&self, of: Of) -> Result<()> {
        let note = self.note(of);
        (0..self.rule.partitions as i32).try_for_each(|partition| self.put(&[], &[], partition, &note))
    }

    fn note(&self, of: Of) -> Note {
        Note { rule: self.rule.to_string(), of }
    }

    /// Gives a message; waits while too many are under way.
    fn put(&self, message: &[u8], key: &[u8], partition: i32, note: &Note) -> Result<()> {
        let record = BaseRecord::to(&self.topic).partition(partition).key(key).payload(message);
        let mut record = record.headers(note.headers());
        loop {
            self.failed()?;
            match self.producer.send(record) {
                Ok(()) => return Ok(()),
                Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), again)) => {
                    record = again;
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err((error, _)) => return Ok(during("sending a message", Err(error))?),
            }
        }
    }

    /// Messages of crates that the brokers have.
    pub fn delivered(&self) -> u64 {
        self.producer.context().done.load(Ordering::Relaxed)
    }

    /// What keeps it from its work: the brokers are away, or take nothing of what waits for them.
    pub fn trouble(&self) -> Option<String> {
        let waiting = self.producer.in_flight_count();
        let is_stalled = self.stall.look(self.delivered(), waiting > 0);
        let stalled =
            || is_stalled.then(|| format!("Kafka: the brokers take none of the {} messages that wait", waiting));
        let lost = self.producer.context().written.check(&self.topic).err();
        lost.or_else(|| self.reach.trouble()).map(|error| error.to_string()).or_else(stalled)
    }

    /// Looks whether the topic has all that was delivered, from the mark of its begin on.
    ///
    /// # Errors
    /// It has not, or the brokers do not tell it.
    pub fn look(&self, must_abort: impl Fn() -> bool) -> std::result::Result<(), Failure> {
        let offsets = |partition| self.producer.client().fetch_watermarks(&self.topic, partition, STEP);
        self.producer.context().written.look_at_end(&self.topic, || !must_abort(), offsets)
    }

    fn failed(&self) -> Result<()> {
        let error = self.producer.context().error.lock().unwrap_or_else(PoisonError::into_inner).clone();
        error.map_or(Ok(()), |error| Err(Failure::Delivery(error).into()))
    }

    /// Waits for nothing any more: what is not delivered now is not.
    pub fn give_up(&self) {
        let mut error = self.producer.context().error.lock().unwrap_or_else(PoisonError::into_inner);
        error.get_or_insert_with(|| INTERRUPTED.into());
    }

    /// Waits until all has been delivered, or until the user does not want to wait any more.
    ///
    /// # Errors
    /// Something could not be within librdkafka's `message.timeout.ms`, 5 minutes; or it was given up.
    pub fn finish(&self, must_abort: impl Fn() -> bool) -> Result<()> {
        let mut told = Instant::now();
        loop {
            match self.producer.flush(LOOK) {
                Err(KafkaError::Flush(RDKafkaErrorCode::OperationTimedOut)) => {
                    if must_abort() {
                        self.give_up();
                    }
                    self.failed()?;
                    if told.elapsed() >= TOLD {
                        told = Instant::now();
                        tracing::warn!("Kafka: {} messages are still to be delivered", self.producer.in_flight_count());
                    }
                }
                result => during("waiting for deliveries", result)?,
            }
            if self.producer.in_flight_count() == 0 {
                return self.failed();
            }
        }
    }
}

/// Looks whether the newest message of each partition was put there by `rule`.
fn check_topic(brokers: &str, name: &str, rule: Rule) -> Result<()> {
    let look = Look::at(brokers, name)?;
    for partition in 0..rule.partitions as i32 {
        // A new topic has no leader for a moment.
        let (low, high) = patiently("looking for messages", || look.offsets(partition))?;
        let newest = if high > low { look.message(partition, high - 1)? } else { None };
        if let Some(message) = newest {
            let header = Header::parse(message.payload().unwrap_or_default()).ok();
            rule.check(&message, header.as_ref(), Note::of(&message).ok().flatten().as_ref())?;
        }
    }
    Ok(())
}

impl MessageHandler for Feeder {
    fn open(self: Arc<Self>) -> Box<dyn Messages> {
        let number = self.sessions.fetch_add(1, Ordering::Relaxed);
        let session = (self.epoch, number);
        Box::new(Connection { feeder: self, session, sources: BTreeMap::new() })
    }
}

/// What a connection has sent of a source.
struct Sent {
    /// The window after the newest.
    passed: u64,
    /// Of each partition, from where on its windows are known, and those that the crate has lost since.
    partitions: Vec<Before>,
}

struct Connection {
    feeder: Arc<Feeder>,
    session: Session,
    sources: BTreeMap<u32, Sent>,
}

impl Sent {
    fn begin(first: u64, partitions: u64) -> Sent {
        let before = Before { since: first, lost: (0, 0) };
        Sent { passed: first, partitions: vec![before; partitions as usize] }
    }

    /// What is known before the message of window `key`, which goes into `partition`.
    fn next(&mut self, message: &Fadc<'_>, key: u64, partition: i32) -> Before {
        let lost = lost_before(windows_lost(message), key, self.passed);
        if !lost.is_empty() {
            for Before { lost: (start, end), .. } in &mut self.partitions {
                *start = if start == end { lost.start } else { lost.start.min(*start) };
                *end = lost.end.max(*end);
            }
        }
        self.passed = self.passed.max(key + 1);
        let own = &mut self.partitions[partition as usize];
        std::mem::replace(own, Before { since: own.since.max(key + 1), lost: (0, 0) })
    }
}

impl Messages for Connection {
    fn begin(&mut self, source: u32) {
        // Its next message begins anew.
        self.sources.remove(&source);
    }

    fn take(&mut self, messages: &mut Vec<Bytes>) -> io::Result<()> {
        let rule = self.feeder.rule;
        for data in messages.drain(..) {
            // The reader gives whole messages only.
            let Ok(message) = Fadc::parse(&data) else { continue };
            let header = message.header();
            let (key, partition) = (rule.key.of(header), rule.partition(header));
            let first = || Sent::begin(key.unwrap_or(0), rule.partitions);
            let sent = self.sources.entry(header.source_id).or_insert_with(first);
            // Of a message without a window nothing follows for windows.
            let before = key.map_or(Before::default(), |key| sent.next(&message, key, partition));
            let note = self.feeder.note(Of::Message(self.session, before));
            let key = header.source_id.to_be_bytes();
            self.feeder.put(&data, &key, partition, &note).map_err(io::Error::other)?;
        }
        Ok(())
    }

    /// As [`Feeder::mark`].
    fn end(&mut self) -> io::Result<()> {
        for (source, sent) in &self.sources {
            for (partition, before) in (0..).zip(&sent.partitions) {
                let note = self.feeder.note(Of::End(self.session, *before, *source));
                self.feeder.put(&[], &source.to_be_bytes(), partition, &note).map_err(io::Error::other)?;
            }
        }
        Ok(())
    }
}

//! Joins the messages in Kafka.
//!
//! The position of a builder is the first message of the open windows, with the number of the next window. After a
//! restart messages are read again from there, and windows before that number are skipped.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use fadelink_sinks::kafka::{
    commit, config, during, is_passing, topic, transactional, until, Error as Failure, MESSAGE_BYTES, STEP, TRANSACTION,
};
use fadelink_wire::fadc::Message as Fadc;
use rdkafka::client::ClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext, Rebalance};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{Header, Message, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use rdkafka::statistics::Statistics;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList, TopicPartitionListElem};
use serde::Serialize;

use super::clock::Clock;
use super::error::{Error, Result};
use super::note::{self, Note, Session};
use super::rule::{Rule, BY_BROKER};
use crate::join::{Before, Joined, Joiner, Policy};
use crate::Event;

/// Longest time between commits while events come.
const COMMIT_EVERY: Duration = Duration::from_millis(200);
/// Events of a transaction.
const COMMIT_EVENTS: usize = 1000;
/// How often silence and the brokers are looked at.
const TICK: Duration = Duration::from_millis(20);
/// A broker that answers does so at least so often, and tells how it is.
const HEARTBEAT: Duration = Duration::from_millis(100);
/// Silence of all brokers after which they are away. The group has its heartbeats also where nothing is to be read.
const AWAY: Duration = Duration::from_secs(10);

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

impl Plan {
    /// Name of the builder among all that write to the brokers.
    fn producer(&self) -> String {
        format!("{}.{}", self.group, self.name)
    }
}

/// What a builder did.
#[derive(Debug, Default, Clone, Serialize)]
pub struct Report {
    /// Messages that were read; what was not committed is read again.
    pub messages: u64,
    /// Messages of windows that had been given away before this builder began.
    pub replayed: u64,
    /// Messages that are invalid, or have a note that cannot be read.
    pub malformed: u64,
    /// Messages that the topic had and does not have any more: they were deleted or compacted before they were read.
    pub gone: u64,
    /// Transactions.
    pub commits: u64,
    /// Transactions that were given up, their work done again.
    pub aborts: u64,
    /// Windows whose events were committed.
    #[serde(flatten)]
    pub joined: Joined,
}

#[derive(Default)]
struct Watch {
    assigned: Mutex<Vec<Change>>,
    /// When the leaders of its partitions were last seen to answer.
    answered: Mutex<Option<Instant>>,
    /// When one of the brokers was.
    heard: Mutex<Option<Instant>>,
}

enum Change {
    Assigned(TopicPartitionList),
    Revoked,
}

impl ClientContext for Watch {
    fn stats(&self, statistics: Statistics) {
        // A fetch is answered at least every HEARTBEAT, if only with nothing. All leaders have to answer, as silence
        // in one partition is another's, too.
        let leads = |node| {
            let partitions = statistics.topics.values().flat_map(|topic| topic.partitions.values());
            partitions.into_iter().any(|partition| partition.leader == node && partition.fetch_state == "active")
        };
        let mut leaders = statistics.brokers.values().filter(|broker| leads(broker.nodeid)).peekable();
        let silence_max = 3 * HEARTBEAT.as_micros() as i64;
        if leaders.peek().is_some() && leaders.all(|broker| (0..silence_max).contains(&broker.rxidle)) {
            *self.answered.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        }
        let idle_max = AWAY.as_micros() as i64;
        if statistics.brokers.values().any(|broker| broker.state == "UP" && (0..idle_max).contains(&broker.rxidle)) {
            *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        }
    }
}

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

/// What looks at a builder.
pub trait Watcher {
    /// An event was committed.
    fn event(&mut self, event: &Event);
    /// Called again and again, with what was done, and what keeps the builder from its work.
    fn tick(&mut self, report: &Report, trouble: Option<&Error>);
}

/// What a partition brought.
#[derive(Debug, Default, Clone)]
struct Totals {
    joined: Joined,
    replayed: u64,
    malformed: u64,
    gone: u64,
}

impl std::ops::AddAssign<&Totals> for Totals {
    fn add_assign(&mut self, more: &Totals) {
        self.joined += &more.joined;
        self.replayed += more.replayed;
        self.malformed += more.malformed;
        self.gone += more.gone;
    }
}

struct Partition {
    joiner: Joiner,
    clock: Clock,
    before: Place,
    read: i64,
    /// First message of each open window.
    open: BTreeMap<u64, i64>,
    replayed: u64,
    malformed: u64,
    gone: u64,
    /// Offset of the next message, if none has gone; and sources that have sent since some have.
    expected: i64,
    since_gone: Option<BTreeSet<u32>>,
    committed: Totals,
}

impl Partition {
    /// `before`: the place of an earlier builder, and the message where it begins.
    fn new(policy: &Policy, rule: Rule, number: i32, before: Option<(Place, i64)>) -> Partition {
        let mut joiner = Joiner::new(policy.clone()).of_share(number as u64, rule.partitions);
        if let Some((place, _)) = before {
            joiner.resume(place.next);
        }
        let (before, expected) = before.unwrap_or_default();
        Partition {
            joiner,
            clock: Clock::new(policy.silence),
            before,
            read: 0,
            open: BTreeMap::new(),
            replayed: 0,
            malformed: 0,
            gone: 0,
            expected,
            since_gone: None,
            committed: Totals::default(),
        }
    }

    /// Notes that messages are missing before the one at `offset`. Numbers of messages have gaps by themselves where a producer
    /// uses transactions, which Fadelink's does not (`by_us`).
    fn look_for_gone(&mut self, offset: i64, by_us: bool) {
        let is_first = self.expected == 0;
        let gone = if by_us || is_first { (offset - self.expected).max(0) as u64 } else { 0 };
        self.expected = offset + 1;
        if gone > 0 {
            self.gone += gone;
            self.since_gone = Some(BTreeSet::new());
        }
    }

    /// Where to begin after a restart.
    fn place(&mut self) -> (i64, Place) {
        let next = self.joiner.next().unwrap_or(0);
        self.open = self.open.split_off(&next);
        let first = self.open.values().copied().min().unwrap_or(self.read);
        (first, Place { next, read: self.read.max(self.before.read) })
    }

    fn take(&mut self, message: &impl Message, rule: Rule) -> Result<Option<(u32, Session)>> {
        let offset = message.offset();
        self.read = offset + 1;
        self.clock.on_message(message.timestamp().to_millis());
        let is_new = offset >= self.before.read;
        let data = message.payload().unwrap_or_default();
        let Ok(parsed) = Fadc::parse(data) else {
            self.malformed += u64::from(is_new);
            self.look_for_gone(offset, false);
            return Ok(None);
        };
        let header = parsed.header();
        let key = self.joiner.key(header);
        let (note, before) = match Note::of(message) {
            Ok(Some(note)) => {
                let before = note.before;
                (Some(note), Some(before))
            }
            Ok(None) => (None, None),
            Err(()) => {
                self.malformed += u64::from(is_new);
                (None, Some(Before { since: key, lost: (0, 0) }))
            }
        };
        rule.check(message, header, note.as_ref())?;
        self.look_for_gone(offset, note.is_some());
        // What a source has sent before is not known.
        let is_unknown = self.since_gone.as_mut().is_some_and(|heard| heard.insert(header.source_id));
        let before = if is_unknown { Some(Before { since: key, lost: (0, 0) }) } else { before };
        if !is_new && key < self.before.next {
            self.replayed += 1;
            return Ok(None);
        }
        if self.joiner.next().is_none_or(|next| key >= next) {
            self.open.entry(key).or_insert(offset);
        }
        let session = note.map(|note| (header.source_id, note.session));
        self.joiner.push(parsed.bytes().into(), before, self.clock.now());
        Ok(session)
    }

    /// The next event of windows that wait for nothing.
    fn pop(&mut self) -> Option<Event> {
        self.joiner.tick(self.clock.now());
        self.joiner.pop(self.clock.now(), false)
    }

    /// What there is has been committed.
    fn commit(&mut self) {
        let joined = self.joiner.settled();
        self.committed = Totals { joined, replayed: self.replayed, malformed: self.malformed, gone: self.gone };
    }
}

/// Joins the messages of Kafka until it is stopped.
pub struct Builder {
    plan: Plan,
    rule: Rule,
    consumer: BaseConsumer<Watch>,
    producer: BaseProducer,
    partitions: BTreeMap<i32, Partition>,
    /// Of each source, the newest session.
    sessions: BTreeMap<u32, (Session, u64)>,
    waiting: Vec<(i32, Event)>,
    changed: bool,
    /// It reads at another place than that of the last commit.
    astray: bool,
    committed: Instant,
    /// Of partitions that are another's now.
    done: Totals,
    report: Report,
}

impl Builder {
    /// Connects; topics are created with `partitions` where they do not exist.
    ///
    /// # Errors
    /// The brokers cannot be reached, or refuse; the topics differ in their partitions.
    pub fn connect(plan: Plan, partitions: usize) -> Result<Builder> {
        let expected = topic(&plan.brokers, &plan.messages, partitions, BY_BROKER)?;
        let found = topic(&plan.brokers, &plan.events, expected, BY_BROKER)?;
        if found != expected {
            return Err(Failure::Partitions { topic: plan.events, found, expected }.into());
        }
        let mut reading = config(&plan.brokers);
        reading
            .set("group.id", &plan.group)
            .set("client.id", &plan.name)
            .set("enable.auto.commit", "false")
            .set("enable.partition.eof", "true")
            .set("auto.offset.reset", "earliest")
            .set("isolation.level", "read_committed")
            .set("fetch.message.max.bytes", MESSAGE_BYTES)
            .set("fetch.wait.max.ms", HEARTBEAT.as_millis().to_string())
            .set("statistics.interval.ms", HEARTBEAT.as_millis().to_string())
            .set("session.timeout.ms", "6000")
            .set("partition.assignment.strategy", "range");
        let consumer: BaseConsumer<Watch> = during("connecting", reading.create_with_context(Watch::default()))?;
        let producer = transactional(&plan.brokers, &plan.producer())?;
        during("subscribing", consumer.subscribe(&[&plan.messages]))?;
        Ok(Builder {
            rule: Rule { key: plan.policy.key, partitions: expected as u64 },
            plan,
            consumer,
            producer,
            partitions: BTreeMap::new(),
            sessions: BTreeMap::new(),
            waiting: Vec::new(),
            changed: false,
            astray: false,
            committed: Instant::now(),
            done: Totals::default(),
            report: Report::default(),
        })
    }

    /// What was done, and is committed.
    pub fn report(&self) -> Report {
        let mut totals = self.done.clone();
        self.partitions.values().for_each(|partition| totals += &partition.committed);
        for (source, (_, sessions)) in &self.sessions {
            totals.joined.sources.entry(*source).or_default().sessions = *sessions;
        }
        let Totals { joined, replayed, malformed, gone } = totals;
        Report { joined, replayed, malformed, gone, ..self.report.clone() }
    }

    /// Joins until `stop` is set or `events` events were committed. Windows that are open then stay in Kafka.
    ///
    /// # Errors
    /// The brokers', where trying again does not help; a message that was put into its partition by another rule.
    pub fn run(&mut self, stop: &AtomicBool, events: Option<u64>, watcher: &mut impl Watcher) -> Result<()> {
        let mut given = 0;
        let mut ticked = Instant::now();
        let mut looked = Instant::now();
        let begun = Instant::now();
        watcher.tick(&self.report(), None);
        while !stop.load(Ordering::Relaxed) && events.is_none_or(|events| given < events) {
            let polled = self.consumer.poll(TICK).map(|message| message.map(|m| m.detach()));
            self.rebalance(stop, watcher)?;
            if self.astray {
                self.rewind(stop, watcher)?;
                ticked = Instant::now();
                continue;
            }
            match polled {
                Some(Ok(message)) => self.take(&message)?,
                Some(Err(KafkaError::PartitionEOF(number))) => {
                    self.partitions.entry(number).and_modify(|partition| partition.clock.on_end());
                }
                Some(Err(KafkaError::MessageConsumption(code))) if is_passing(code) => {}
                Some(Err(error)) => during("reading messages", Err(error))?,
                None => {}
            }
            if ticked.elapsed() >= TICK {
                self.tick(ticked.elapsed());
                ticked = Instant::now();
            }
            if looked.elapsed() >= COMMIT_EVERY {
                watcher.tick(&self.report(), self.trouble(begun).as_ref());
                looked = Instant::now();
            }
            let due = self.committed.elapsed() >= COMMIT_EVERY && self.changed;
            if self.waiting.len() >= COMMIT_EVENTS || due {
                given += self.commit(stop, watcher)?;
            }
        }
        self.commit(stop, watcher)?;
        Ok(())
    }

    /// The brokers are away, as far as is known since `begun`.
    fn trouble(&self, begun: Instant) -> Option<Error> {
        let heard = *self.consumer.context().heard.lock().unwrap_or_else(PoisonError::into_inner);
        let error = KafkaError::Global(RDKafkaErrorCode::AllBrokersDown);
        let away = || Failure::Unreachable { brokers: self.plan.brokers.clone(), error };
        (heard.unwrap_or(begun).elapsed() > AWAY).then(|| away().into())
    }

    /// Lets the clocks of partitions go on.
    fn tick(&mut self, passed: Duration) {
        let answered = *self.consumer.context().answered.lock().unwrap_or_else(PoisonError::into_inner);
        let answers = answered.is_some_and(|last| last.elapsed() < 3 * HEARTBEAT);
        for (number, partition) in &mut self.partitions {
            if answers {
                partition.clock.on_tick(passed);
            }
            self.waiting.extend(std::iter::from_fn(|| partition.pop()).map(|event| (*number, event)));
        }
    }

    /// Forgets what was taken away, and finds its place in what was given.
    fn rebalance(&mut self, stop: &AtomicBool, watcher: &mut impl Watcher) -> Result<()> {
        let changes =
            std::mem::take(&mut *self.consumer.context().assigned.lock().unwrap_or_else(PoisonError::into_inner));
        for change in changes {
            self.forget();
            self.astray = false;
            let Change::Assigned(list) = change else { continue };
            let places = self.committed_places(&list, stop, watcher)?;
            self.begin(&places);
        }
        Ok(())
    }

    fn begin(&mut self, places: &TopicPartitionList) {
        for element in places.elements() {
            let place = match (element.metadata().parse(), element.offset()) {
                (Ok(place), Offset::Offset(at)) => Some((place, at)),
                _ => None,
            };
            let number = element.partition();
            self.partitions.insert(number, Partition::new(&self.plan.policy, self.rule, number, place));
        }
    }

    /// Reads its partitions again from where the last commit left them. Until it can, their messages are left alone.
    fn rewind(&mut self, stop: &AtomicBool, watcher: &mut impl Watcher) -> Result<()> {
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
            self.begin(&places);
            self.astray = false;
        }
        Ok(())
    }

    /// The places that were committed last.
    fn committed_places(
        &self,
        list: &TopicPartitionList,
        stop: &AtomicBool,
        watcher: &mut impl Watcher,
    ) -> Result<TopicPartitionList> {
        loop {
            match during("asking for its place", self.consumer.committed_offsets(list.clone(), STEP)) {
                // Also while a builder that was killed has a transaction open, which the broker ends in time.
                Err(error) if error.is_passing() && !stop.load(Ordering::Relaxed) => {
                    watcher.tick(&self.report(), Some(&error.into()));
                }
                result => return Ok(result?),
            }
        }
    }

    /// The places that the next transaction commits, in the metadata of the offsets.
    fn places(&mut self) -> std::result::Result<TopicPartitionList, KafkaError> {
        let mut list = TopicPartitionList::new();
        for (number, partition) in &mut self.partitions {
            if partition.read > 0 {
                let (offset, place) = partition.place();
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
    fn forget(&mut self) {
        self.waiting.clear();
        self.changed = false;
        for (_, partition) in std::mem::take(&mut self.partitions) {
            self.done += &partition.committed;
        }
    }

    fn take(&mut self, message: &impl Message) -> Result<()> {
        self.report.messages += 1;
        let number = message.partition();
        let Some(partition) = self.partitions.get_mut(&number) else { return Ok(()) };
        self.changed = true;
        if let Some((source, session)) = partition.take(message, self.rule)? {
            let (newest, count) = self.sessions.entry(source).or_default();
            if session > *newest {
                *newest = session;
                *count += 1;
            }
        }
        self.waiting.extend(std::iter::from_fn(|| partition.pop()).map(|event| (number, event)));
        Ok(())
    }

    /// Writes the events that wait and the place in the messages, both or neither.
    fn commit(&mut self, stop: &AtomicBool, watcher: &mut impl Watcher) -> Result<u64> {
        if !self.changed && self.waiting.is_empty() {
            return Ok(0);
        }
        let begin = Instant::now();
        let places = during("committing", self.places())?;
        let result = self.try_commit(&places, begin + TRANSACTION - 2 * STEP);
        self.committed = Instant::now();
        let Err(error) = result else { return Ok(self.note_commit(watcher)) };
        tracing::warn!("Kafka: a transaction was aborted and is repeated: {error}");
        watcher.tick(&self.report(), Some(&Failure::Kafka { what: "committing", error: error.clone() }.into()));
        let mut events = 0;
        let is_fatal = matches!(&error, KafkaError::Transaction(error) if error.is_fatal());
        let deadline = begin + TRANSACTION;
        if is_fatal || until(|| Instant::now() < deadline, || self.producer.abort_transaction(STEP)).is_err() {
            // The broker gave it up, for it took too long. Else it is another builder of this name that did.
            if begin.elapsed() < TRANSACTION {
                return Ok(during("committing", Err(error))?);
            }
            self.producer = loop {
                match transactional(&self.plan.brokers, &self.plan.producer()) {
                    Err(error) if !stop.load(Ordering::Relaxed) => {
                        tracing::warn!("{error}; tried again");
                        watcher.tick(&self.report(), Some(&error.into()));
                    }
                    result => break result?,
                }
            };
            // By now the transaction is over; it may be that only the answer was missing.
            if self.are_committed(&places, stop, watcher)? {
                events = self.note_commit(watcher);
            }
        }
        self.report.aborts += u64::from(self.changed);
        self.forget();
        self.astray = true;
        Ok(events)
    }

    /// The transaction was committed: what it holds counts; the number of its events.
    fn note_commit(&mut self, watcher: &mut impl Watcher) -> u64 {
        self.report.commits += 1;
        self.changed = false;
        self.partitions.values_mut().for_each(Partition::commit);
        let events = std::mem::take(&mut self.waiting);
        events.iter().for_each(|(_, event)| watcher.event(event));
        events.len() as u64
    }

    fn try_commit(&self, places: &TopicPartitionList, deadline: Instant) -> std::result::Result<(), KafkaError> {
        self.producer.begin_transaction()?;
        for (partition, event) in &self.waiting {
            let key = event.record.to_be_bytes();
            let data = event.emit(self.plan.builder_id);
            let record = BaseRecord::to(&self.plan.events).partition(*partition).key(&key[..]).payload(&data[..]);
            let mut record = record.headers(headers(event));
            while let Err((error, again)) = self.producer.send(record) {
                if error != KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull) || Instant::now() >= deadline {
                    return Err(error);
                }
                record = again;
                self.producer.poll(Duration::from_millis(10));
            }
        }
        let group = self.consumer.group_metadata().ok_or(KafkaError::Canceled)?;
        until(|| Instant::now() < deadline, || self.producer.send_offsets_to_transaction(places, &group, STEP))?;
        commit(&self.producer, deadline)
    }
}

/// Tells with an event which sources are missing, and whether it came late.
fn headers(event: &Event) -> OwnedHeaders {
    let missing: Vec<_> = event.missing.iter().map(|source| format!("{source:#010x}")).collect();
    let text = format!("missing={} late={}", missing.join(","), u8::from(event.is_late));
    OwnedHeaders::new().insert(Header { key: note::NAME, value: Some(&text) })
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

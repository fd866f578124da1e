//! Joins the messages in Kafka.
//!
//! The position of a builder is the first message of the open windows, with the number of the next window. After a
//! restart messages are read again from there, and windows before that number are skipped.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fadelink_sinks::kafka::{config, during, is_passing, topic, Error as Failure, Reach, MESSAGE_BYTES, STEP};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::Message;

use super::error::{Error, Result};
use super::failing::Failing;
use super::look::Look;
use super::note::Session;
use super::output::{Output, To};
use super::partition::{Partition, Totals};
use super::report::{End, Report, Watcher};
use super::rule::{Rule, BY_BROKER};
use super::watch::{Watch, HEARTBEAT};
use crate::policy::Policy;
use crate::Event;

mod begin;
mod commit;
mod end;

/// Longest time between commits while events come.
const COMMIT_EVERY: Duration = Duration::from_millis(200);
/// Events of a transaction.
const COMMIT_EVENTS: usize = 1000;
/// How often silence and the brokers are looked at.
const TICK: Duration = Duration::from_millis(20);
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
    /// A new group begins at the oldest messages that are left: that older ones were deleted is no loss.
    pub may_begin_later: bool,
    /// A new group may write behind events that are there.
    pub may_append: bool,
}

impl Plan {
    /// Its events, under the name that the builder has among all that write to the brokers.
    fn output(&self) -> To {
        let Plan { brokers, events: topic, builder_id, .. } = self.clone();
        To { brokers, topic, name: format!("{}.{}", self.group, self.name), builder_id }
    }
}

/// Joins the messages of Kafka until it is stopped.
pub struct Builder {
    plan: Plan,
    rule: Rule,
    consumer: BaseConsumer<Watch>,
    output: Output,
    look: Look,
    look_at_events: Look,
    partitions: BTreeMap<i32, Partition>,
    /// Of each source, the newest session.
    sessions: BTreeMap<u32, (Session, u64)>,
    waiting: Vec<(i32, Event)>,
    changed: bool,
    /// It reads at another place than that of the last commit.
    astray: bool,
    /// The last transactions have failed.
    failing: Option<Failing>,
    /// By partition, messages that were read for a transaction that failed, and are not committed since.
    unwritten: BTreeMap<i32, Range<i64>>,
    /// Its report was given to who reads it.
    is_reported: bool,
    committed: Instant,
    /// Of each partition the first message that its group had not read when this builder began, where that is known.
    begun: Option<Vec<i64>>,
    /// Of partitions that are another's now.
    done: Totals,
    /// What is wrong with it, by partition: should one of them be given back, its place tells the same again.
    told: BTreeMap<i32, u64>,
    report: Report,
    reach: Reach,
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
        let output = Output::connect(plan.output())?;
        during("subscribing", consumer.subscribe(&[&plan.messages]))?;
        let mut builder = Builder {
            reach: Reach::watch(&plan.brokers, &plan.messages)?,
            look: Look::at(&plan.brokers, &plan.messages)?,
            look_at_events: Look::at(&plan.brokers, &plan.events)?,
            rule: Rule { key: plan.policy.key, partitions: expected as u64 },
            plan,
            consumer,
            output,
            partitions: BTreeMap::new(),
            sessions: BTreeMap::new(),
            waiting: Vec::new(),
            changed: false,
            astray: false,
            failing: None,
            unwritten: BTreeMap::new(),
            is_reported: false,
            committed: Instant::now(),
            begun: None,
            done: Totals::default(),
            told: BTreeMap::new(),
            report: Report::default(),
        };
        builder.note_group();
        Ok(builder)
    }

    /// What was done, and is committed.
    pub fn report(&self) -> Report {
        let mut totals = self.done.clone();
        self.partitions.iter().for_each(|(number, partition)| totals += &self.counted(*number, partition));
        for (source, counts) in &mut totals.joined.sources {
            counts.sessions = self.sessions.get(source).map_or(0, |(_, sessions)| *sessions);
        }
        let Totals { joined, replayed, malformed, gone, unreported } = totals;
        let unwritten = self.unwritten.values().map(|offsets| (offsets.end - offsets.start) as u64).sum();
        Report { joined, replayed, malformed, gone, unreported, unwritten, ..self.report.clone() }
    }

    /// What was committed of a partition, without what counts already.
    fn counted(&self, number: i32, partition: &Partition) -> Totals {
        let mut counted = partition.committed().clone();
        counted.unreported = counted.unreported.saturating_sub(self.told.get(&number).copied().unwrap_or(0));
        counted
    }

    /// Joins until `events` events were committed; or until `stop` is set and all was read that was there then, at most a [`STEP`]
    /// longer. Windows that are open then stay in Kafka. An error ends it early, and is in the report: the brokers', where trying
    /// again does not help; a message that was put into its partition by another rule.
    pub fn run(&mut self, stop: &AtomicBool, events: Option<u64>, watcher: &mut impl Watcher) {
        if let Err(error) = self.join(stop, events, watcher) {
            tracing::error!("{error}");
            self.report.error = Some(error.to_string());
        }
        self.look_at_events();
    }

    fn join(&mut self, stop: &AtomicBool, events: Option<u64>, watcher: &mut impl Watcher) -> Result<()> {
        let mut given = 0;
        let mut ticked = Instant::now();
        let mut looked = Instant::now();
        let mut asked = None;
        watcher.tick(&self.report(), None);
        while events.is_none_or(|events| given < events) {
            if stop.load(Ordering::Relaxed) {
                let asked = *asked.get_or_insert_with(Instant::now);
                if !self.astray && self.has_read_all() || asked.elapsed() >= STEP {
                    break;
                }
            }
            let polled = self.consumer.poll(TICK).map(|message| message.map(|m| m.detach()));
            self.rebalance(stop, watcher)?;
            if self.astray {
                if let Some(trouble) = self.trouble().filter(|_| looked.elapsed() >= COMMIT_EVERY) {
                    watcher.tick(&self.report(), Some(&trouble));
                    looked = Instant::now();
                }
                let waits = |failing: &Failing| Instant::now() < failing.next && !stop.load(Ordering::Relaxed);
                if !self.failing.as_ref().is_some_and(waits) {
                    self.rewind(stop, watcher)?;
                }
                ticked = Instant::now();
                continue;
            }
            match polled {
                Some(Ok(message)) => self.take(&message)?,
                Some(Err(KafkaError::PartitionEOF(number))) => {
                    self.partitions.entry(number).and_modify(|partition| partition.on_end());
                }
                Some(Err(KafkaError::MessageConsumption(code))) if is_passing(code) => {}
                Some(Err(error)) => during("reading messages", Err(error))?,
                None => {}
            }
            if ticked.elapsed() >= TICK {
                self.tick(ticked.elapsed());
                self.go_back()?;
                ticked = Instant::now();
            }
            if looked.elapsed() >= COMMIT_EVERY {
                watcher.tick(&self.report(), self.trouble().as_ref());
                looked = Instant::now();
            }
            // Windows that waited for a source that is silent leave without a message.
            let due = self.committed.elapsed() >= COMMIT_EVERY && (self.changed || !self.waiting.is_empty());
            if self.waiting.len() >= COMMIT_EVENTS || due {
                given += self.commit(stop, watcher)?;
            }
        }
        let end = self.look_for_end();
        self.report.idle =
            (end == End::ByOthers).then_some("it was given no messages: other builders of its group have read all");
        self.commit(stop, watcher)?;
        // A transaction that failed leaves its windows to the next builder.
        self.report.end = if self.astray { end.min(End::Open) } else { end };
        Ok(())
    }

    /// The brokers are away.
    fn trouble(&self) -> Option<Error> {
        self.reach.trouble().map(Error::from)
    }

    /// Reports a step that has failed; where the brokers are away, that.
    fn tell(&self, watcher: &mut impl Watcher, error: impl Into<Error>) {
        watcher.tick(&self.report(), Some(&self.trouble().unwrap_or(error.into())));
    }

    /// Lets the clocks of partitions go on.
    fn tick(&mut self, passed: Duration) {
        let answers = self.consumer.context().answers();
        for (number, partition) in &mut self.partitions {
            if answers {
                partition.on_tick(passed);
            }
            self.waiting.extend(std::iter::from_fn(|| partition.pop()).map(|event| (*number, event)));
        }
    }

    fn take(&mut self, message: &impl Message) -> Result<()> {
        // An end has no data.
        self.report.messages += u64::from(message.payload().is_some_and(|data| !data.is_empty()));
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
}

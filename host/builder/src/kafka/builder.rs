//! Joins the messages in Kafka.
//!
//! The position of a builder is the first message of the open windows, with the number of the next window. After a
//! restart messages are read again from there, and windows before that number are skipped.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fadelink_sinks::kafka::{
    config, during, is_passing, topic, Error as Failure, Reach, MESSAGE_BYTES, STEP, TRANSACTION,
};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::Message;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList, TopicPartitionListElem};

use super::error::{Error, Result};
use super::known::Known;
use super::look::Look;
use super::note::Session;
use super::output::{Output, To};
use super::partition::{Begin, Partition, Totals};
use super::place::Place;
use super::report::{End, Report, Watcher};
use super::rule::{Rule, BY_BROKER};
use super::watch::{Change, Watch, HEARTBEAT};
use crate::policy::Policy;
use crate::Event;

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
    partitions: BTreeMap<i32, Partition>,
    /// Of each source, the newest session.
    sessions: BTreeMap<u32, (Session, u64)>,
    waiting: Vec<(i32, Event)>,
    changed: bool,
    /// It reads at another place than that of the last commit.
    astray: bool,
    /// Its report was given to who reads it.
    is_reported: bool,
    committed: Instant,
    /// Of partitions that are another's now.
    done: Totals,
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
        Ok(Builder {
            reach: Reach::watch(&plan.brokers, &plan.messages)?,
            look: Look::at(&plan.brokers, &plan.messages)?,
            rule: Rule { key: plan.policy.key, partitions: expected as u64 },
            plan,
            consumer,
            output,
            partitions: BTreeMap::new(),
            sessions: BTreeMap::new(),
            waiting: Vec::new(),
            changed: false,
            astray: false,
            is_reported: false,
            committed: Instant::now(),
            done: Totals::default(),
            report: Report::default(),
        })
    }

    /// What was done, and is committed.
    pub fn report(&self) -> Report {
        let mut totals = self.done.clone();
        self.partitions.values().for_each(|partition| totals += partition.committed());
        for (source, counts) in &mut totals.joined.sources {
            counts.sessions = self.sessions.get(source).map_or(0, |(_, sessions)| *sessions);
        }
        let Totals { joined, replayed, malformed, gone, unreported } = totals;
        Report { joined, replayed, malformed, gone, unreported, ..self.report.clone() }
    }

    /// Joins until `events` events were committed; or until `stop` is set and all was read that was there then, at most a [`STEP`]
    /// longer. Windows that are open then stay in Kafka.
    ///
    /// # Errors
    /// The brokers', where trying again does not help; a message that was put into its partition by another rule.
    pub fn run(&mut self, stop: &AtomicBool, events: Option<u64>, watcher: &mut impl Watcher) -> Result<()> {
        let mut given = 0;
        let mut ticked = Instant::now();
        let mut looked = Instant::now();
        let mut asked = None;
        watcher.tick(&self.report(), None);
        while events.is_none_or(|events| given < events) {
            if stop.load(Ordering::Relaxed) {
                let asked = *asked.get_or_insert_with(Instant::now);
                if self.has_read_all() || asked.elapsed() >= STEP {
                    break;
                }
            }
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
                    self.partitions.entry(number).and_modify(|partition| partition.on_end());
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
        self.commit(stop, watcher)?;
        // A transaction that failed leaves its windows to the next builder.
        self.report.end = if self.astray { end.min(End::Open) } else { end };
        self.look_at_events();
        Ok(())
    }

    /// Its user has the report: the next builder need not tell again what was wrong. One that is killed before leaves that to it.
    ///
    /// # Errors
    /// As of [`Self::run`]; then the next builder tells it again.
    pub fn reported(&mut self, stop: &AtomicBool) -> Result<()> {
        self.is_reported = true;
        self.changed |= self.partitions.values().any(Partition::is_wrong);
        self.commit(stop, &mut ()).map(drop)
    }

    /// True if each partition was read up to where it ended when this was asked first. That no message comes does not prove it: the
    /// brokers, or this program, may be slow.
    fn has_read_all(&mut self) -> bool {
        self.partitions.iter_mut().all(|(number, partition)| {
            if !partition.knows_its_end() {
                let Ok((oldest, end)) = self.consumer.fetch_watermarks(&self.plan.messages, *number, STEP) else {
                    return false;
                };
                // What nobody can read any more did not come, and is not the end.
                self.changed |= partition.begins_at(oldest);
                partition.ends_at(end);
            }
            partition.has_read_all()
        })
    }

    /// Looks at the end how much is known of it.
    fn look_for_end(&mut self) -> End {
        let has_read_all = !self.partitions.is_empty() && self.has_read_all();
        let was_heard = self.report.messages > 0 || self.partitions.values().any(Partition::was_heard);
        let unread = (!has_read_all).then(|| "not all messages were read".to_owned());
        let open: BTreeSet<_> = self.partitions.values().flat_map(Partition::open).chain(unread).collect();
        let has_ended = open.is_empty();
        self.report.open = open.into_iter().collect();
        match (was_heard, has_ended) {
            (false, _) => End::NothingCame,
            (true, false) => End::Open,
            (true, true) => End::Told,
        }
    }

    /// Looks at the end whether the events are where they were written.
    fn look_at_events(&mut self) {
        match self.output.look() {
            Ok(()) => {}
            Err(error @ Failure::Gone { .. }) => self.report.changed.push(error.to_string()),
            Err(error) => {
                self.report
                    .open
                    .push(format!("whether topic {} has all events is not known: {error}", self.plan.events));
                self.report.end = self.report.end.min(End::Open);
            }
        }
    }

    /// The brokers are away.
    fn trouble(&self) -> Option<Error> {
        self.reach.trouble().map(Error::from)
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

    /// Forgets what was taken away, and finds its place in what was given.
    fn rebalance(&mut self, stop: &AtomicBool, watcher: &mut impl Watcher) -> Result<()> {
        for change in self.consumer.context().changes() {
            self.forget();
            self.astray = false;
            let Change::Assigned(list) = change else { continue };
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
            let before = match (place, element.offset()) {
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
            let begin = Begin { before, oldest, may_begin_later: self.plan.may_begin_later };
            let partition = Partition::new(&self.plan.policy, self.rule, number, begin);
            self.changed |= partition.has_news();
            self.partitions.insert(number, partition);
        }
        Ok(())
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
                    watcher.tick(&self.report(), Some(&error.into()));
                    std::thread::sleep(TICK);
                }
                result => return Ok(result?),
            }
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
            self.begin(&places, stop, watcher)?;
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
        // Also while a builder that was killed has a transaction open, which the broker ends in time.
        let asked = || during("asking for its place", self.consumer.committed_offsets(list.clone(), STEP));
        self.ask(stop, watcher, asked)
    }

    /// The places that the next transaction commits, in the metadata of the offsets.
    fn places(&mut self) -> std::result::Result<TopicPartitionList, KafkaError> {
        let mut list = TopicPartitionList::new();
        for (number, partition) in &mut self.partitions {
            if partition.has_place() {
                let (offset, place) = partition.place(self.is_reported);
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
            self.done += partition.committed();
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

    /// Writes the events that wait and the place in the messages, both or neither.
    fn commit(&mut self, stop: &AtomicBool, watcher: &mut impl Watcher) -> Result<u64> {
        if !self.changed && self.waiting.is_empty() {
            return Ok(0);
        }
        let begin = Instant::now();
        let places = during("committing", self.places())?;
        let group = self.consumer.group_metadata();
        let result = self.output.write(&self.waiting, &places, group, begin + TRANSACTION - 2 * STEP);
        self.committed = Instant::now();
        let Err(error) = result else { return Ok(self.note_commit(watcher)) };
        tracing::warn!("Kafka: a transaction was aborted and is repeated: {error}");
        watcher.tick(&self.report(), Some(&Failure::Kafka { what: "committing", error: error.clone() }.into()));
        let mut events = 0;
        let is_fatal = matches!(&error, KafkaError::Transaction(error) if error.is_fatal());
        if is_fatal || !self.output.abort(begin + TRANSACTION) {
            // The broker gave it up, for it took too long. Else it is another builder of this name that did.
            if begin.elapsed() < TRANSACTION {
                return Ok(during("committing", Err(error))?);
            }
            loop {
                match self.output.reconnect() {
                    Err(error) if !stop.load(Ordering::Relaxed) => {
                        tracing::warn!("{error}; tried again");
                        watcher.tick(&self.report(), Some(&error.into()));
                    }
                    result => break result?,
                }
            }
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
}

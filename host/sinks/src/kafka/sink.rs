//! Writes the words of a board into a topic, each once.

use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseRecord, Producer};
use serde_json::json;

use super::client::{code_of, during, is_absent, is_permanent, Error, PATIENCE, POLL, STEP, TRANSACTION};
use super::reach::Reach;
use super::words::{Topic, Words, MESSAGE};
use super::writer::{commit, transactional, Writer};
use super::written::Written;
use crate::block::Block;
use crate::origin::Origin;
use crate::parts::Parts;
use crate::sink::{End, Peer, Result, Sink, Stopping};

/// Bytes of a transaction.
const COMMIT: u64 = 16 << 20;
/// Less than a transaction takes, and long enough for a board's window.
const GATHERS: Duration = Duration::from_millis(1);
/// From one attempt to reach the brokers to the next.
const RETRY: Duration = Duration::from_millis(200);

/// What is to be written of a block: its bytes behind `from`.
struct Waiting {
    block: Block,
    from: usize,
}

/// See the module.
pub struct KafkaSink {
    place: Topic,
    run: String,
    stopping: Stopping,
    words: Words,
    /// `None`: the last transaction failed.
    producer: Option<Writer>,
    written: Arc<Written>,
    /// Offset of the next message, if nobody else writes; `None`: it is not known.
    next: Option<i64>,
    /// The topic does not have what was written to it, or has more.
    is_spoilt: bool,
    /// Bytes of the board's data that the topic has.
    committed: u64,
    /// What comes behind them.
    waiting: Vec<Waiting>,
    waiting_bytes: u64,
    /// What the topic has behind `committed`: by a program that was ended, or a transaction whose answer did not come.
    known: Vec<u8>,
    origin: Option<Origin>,
    reach: Arc<Reach>,
}

/// What a transaction writes.
struct Transaction<'a> {
    producer: &'a Writer,
    topic: &'a str,
    run: &'a str,
    /// Messages that were sent.
    sent: i64,
    /// The brokers give it up soon after this.
    deadline: Instant,
}

impl<'a> Transaction<'a> {
    fn begin(producer: &'a Writer, topic: &'a str, run: &'a str) -> std::result::Result<Self, KafkaError> {
        let deadline = Instant::now() + TRANSACTION - STEP;
        producer.begin_transaction()?;
        Ok(Transaction { producer, topic, run, sent: 0, deadline })
    }

    /// The number of its messages.
    fn commit(self) -> std::result::Result<i64, KafkaError> {
        commit(self.producer, self.deadline)?;
        Ok(self.sent)
    }

    /// Sends a message: words, of which the first is byte `first` of the data, or the end.
    fn send(
        &mut self,
        first: u64,
        data: &[u8],
        origin: Option<Origin>,
        end: Option<&str>,
    ) -> std::result::Result<(), KafkaError> {
        let (first, origin) = (first.to_string(), origin.map(|origin| origin.manifest().to_string()));
        let entries =
            [("run", Some(self.run)), ("first_byte", Some(&first)), ("origin", origin.as_deref()), ("end", end)];
        let mut headers = OwnedHeaders::new();
        for (key, value) in entries.into_iter().filter(|(_, value)| value.is_some()) {
            headers = headers.insert(Header { key, value });
        }
        let mut record = BaseRecord::<(), [u8]>::to(self.topic).partition(0).payload(data).headers(headers);
        while let Err((error, again)) = self.producer.send(record) {
            if error != KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull) || Instant::now() >= self.deadline {
                return Err(error);
            }
            record = again;
            self.producer.poll(POLL);
        }
        self.sent += 1;
        Ok(())
    }
}

impl KafkaSink {
    /// Of the run of this name; another program that writes into the topic is shut out. `resumed`: goes on behind so many bytes.
    ///
    /// # Errors
    /// The brokers cannot be reached, or refuse; the topic has several partitions, or has lost data.
    pub fn open(place: Topic, run: &str, stopping: Stopping, resumed: Option<u64>) -> Result<KafkaSink> {
        let mut sink = KafkaSink {
            words: Words::connect(place.clone(), run)?,
            reach: Arc::new(Reach::watch(&place.brokers, &place.topic)?),
            place,
            run: run.to_owned(),
            stopping,
            producer: None,
            written: Arc::default(),
            next: None,
            is_spoilt: false,
            committed: resumed.unwrap_or(0),
            waiting: Vec::new(),
            waiting_bytes: 0,
            known: Vec::new(),
            origin: None,
        };
        if sink.committed > 0 {
            let first = sink.words.offsets()?.0;
            sink.written.begins_with(0, first..first);
        }
        let deadline = Instant::now() + PATIENCE;
        loop {
            let producer = transactional(&sink.place.brokers, &name(&sink.place), &sink.written)?;
            if resumed.is_some() {
                sink.known = sink.words.data(sink.committed, u64::MAX)?;
            }
            match sink.take_over(&producer) {
                // The writer that was shut out may come back before the topic says whose it is.
                Err(error) if Instant::now() < deadline => tracing::warn!("{error}; tried again"),
                result => {
                    let sent = during("taking a topic over", result)?;
                    sink.look_back(sent)?;
                    sink.producer = Some(producer);
                    return Ok(sink);
                }
            }
            std::thread::sleep(RETRY);
        }
    }

    /// Writes a message without words, by which the writers that were shut out find that the topic is of this run now.
    fn take_over(&self, producer: &Writer) -> std::result::Result<i64, KafkaError> {
        let mut transaction = Transaction::begin(producer, &self.place.topic, &self.run)?;
        transaction.send(self.committed + self.known.len() as u64, &[], None, None)?;
        transaction.commit()
    }

    /// Takes the data of a block behind its first bytes, and leaves out what the topic has already.
    fn take(&mut self, block: Block, mut from: usize) {
        let data = &block.data[from..];
        let same = data.iter().zip(&self.known).take_while(|(new, known)| new == known).count();
        // Other data replaces all that is there: a board that was reset has begun anew.
        let is_other = same < data.len();
        self.known.drain(..if is_other { self.known.len() } else { same });
        self.committed += same as u64;
        from += same;
        if is_other {
            self.waiting_bytes += (block.data.len() - from) as u64;
            self.waiting.push(Waiting { block, from });
        }
    }

    /// Begins transactions again, if no other program has taken the topic over.
    fn reconnect(&mut self) -> std::result::Result<(), Error> {
        self.next = None;
        let producer = transactional(&self.place.brokers, &name(&self.place), &self.written)?;
        match self.words.newest_run()? {
            Some(run) if run == self.run => {}
            Some(run) => return Err(Error::TakenOver { place: self.place.to_string(), run }),
            None => {
                let what = "it has no message of a run, and this one has written to it".into();
                return Err(Error::Gone { topic: self.place.topic.clone(), partition: 0, what });
            }
        }
        self.look()?;
        self.producer = Some(producer);
        self.known = self.words.data(self.committed, u64::MAX)?;
        self.waiting_bytes = 0;
        for Waiting { block, from } in std::mem::take(&mut self.waiting) {
            self.take(block, from);
        }
        Ok(())
    }

    /// Looks whether the topic has what was written to it, from the first message on; its end is told later.
    fn look(&self) -> std::result::Result<(), Error> {
        match self.written.look(&self.place.topic, |_| self.words.ask_offsets()) {
            Err(Error::Short { .. }) => Ok(()),
            result => result,
        }
    }

    /// Looks where a transaction of so many messages was written: behind the one before, whose end takes one number.
    fn look_back(&mut self, sent: i64) -> std::result::Result<(), Error> {
        self.written.check(&self.place.topic)?;
        let Some(last) = self.written.span(0).map(|span| span.end - 1).filter(|_| sent > 0) else { return Ok(()) };
        let (first, expected) = (last + 1 - sent, self.next.replace(last + 2));
        match expected {
            Some(expected) if first > expected => {
                let what = format!("messages {expected} to {} are not this one's", first - 1);
                Err(Error::Foreign { topic: self.place.topic.clone(), what })
            }
            _ => Ok(()),
        }
    }

    /// Looks at the end: nothing is missing, and nothing is behind it.
    fn look_at_end(&self) -> std::result::Result<(), Error> {
        self.written.look_at_end(&self.place.topic, || true, |_| self.words.ask_offsets())?;
        let end = self.words.offsets()?.1;
        match self.next.filter(|next| end > *next) {
            Some(next) => {
                let what = format!("messages {next} to {} are not this one's", end - 1);
                Err(Error::Foreign { topic: self.place.topic.clone(), what })
            }
            None => Ok(()),
        }
    }

    /// What is not as it was written is not intact.
    fn judge(&mut self, result: std::result::Result<(), Error>) -> Result {
        self.is_spoilt |= matches!(result, Err(Error::Gone { .. } | Error::Foreign { .. }));
        Ok(result?)
    }

    /// Writes what waits, and `end` as the last message: all of it, or nothing. The number of messages.
    fn try_commit(&self, end: Option<&str>) -> std::result::Result<i64, KafkaError> {
        let Some(producer) = self.producer.as_ref().filter(|_| end.is_some() || !self.waiting.is_empty()) else {
            return Ok(0);
        };
        self.written.take_refusal();
        let mut transaction = Transaction::begin(producer, &self.place.topic, &self.run)?;
        let mut first = self.committed;
        for Waiting { block, from } in &self.waiting {
            for data in block.data[*from..].chunks(MESSAGE) {
                transaction.send(first, data, Some(block.origin), None)?;
                first += data.len() as u64;
            }
        }
        if end.is_some() {
            transaction.send(first, &[], self.origin, end)?;
        }
        transaction.commit()
    }

    /// Why the topic never takes what was sent: the library says only that the transaction failed, or that its time is over.
    fn refusal(&self, failure: &Error) -> Option<KafkaError> {
        let of_transaction = match failure {
            Error::Kafka { error, .. } => Some(error.clone()),
            _ => None,
        };
        // Brokers that come back may not know the topic for a moment.
        let is_for_good = |code| is_permanent(code) && !is_absent(code);
        let is_refusal = |error: &KafkaError| code_of(error).is_some_and(is_for_good);
        self.written.take_refusal().into_iter().chain(of_transaction).find(is_refusal)
    }

    /// The same. Waits for brokers that do not answer, as long as the run goes on.
    fn commit(&mut self, end: Option<&str>) -> std::result::Result<(), Error> {
        let mut failing = None;
        loop {
            let begun = Instant::now();
            let connected = if self.producer.is_none() { self.reconnect() } else { Ok(()) };
            let result = connected.and_then(|()| during("committing words", self.try_commit(end)));
            let failure = match result {
                Ok(sent) => break self.look_back(sent)?,
                Err(failure) => failure,
            };
            if matches!(failure, Error::TakenOver { .. } | Error::Gone { .. }) {
                return Err(failure);
            }
            if let Some(error) = self.refusal(&failure) {
                return Err(Error::Refused { topic: self.place.topic.clone(), error });
            }
            self.producer = None;
            if failure.is_passing() && !self.stopping.load(Ordering::Relaxed) {
                failing = None;
            } else if failing.get_or_insert(begun).elapsed() >= PATIENCE {
                return Err(failure);
            }
            tracing::warn!("{failure}; tried again");
            std::thread::sleep(RETRY);
        }
        self.committed += self.waiting_bytes;
        self.waiting_bytes = 0;
        self.waiting.clear();
        Ok(())
    }
}

/// Name of the writer of a topic.
fn name(place: &Topic) -> String {
    format!("fadelink.words.{}", place.topic)
}

impl Sink<Block> for KafkaSink {
    fn write(&mut self, block: &Block) -> Result {
        self.origin = Some(block.origin);
        self.take(block.clone(), 0);
        if self.waiting_bytes >= COMMIT {
            let written = self.commit(None);
            self.judge(written)?;
        }
        Ok(())
    }

    fn tick(&mut self) -> Result {
        match self.look() {
            // Brokers that are away tell nothing.
            Err(error) if !matches!(error, Error::Gone { .. }) => Ok(()),
            result => self.judge(result),
        }
    }

    fn sync(&mut self) -> Result {
        let written = self.commit(None);
        self.judge(written)
    }

    fn gathers(&self) -> Duration {
        GATHERS
    }

    fn finish(&mut self, end: End) -> Result {
        if self.is_spoilt {
            return Ok(());
        }
        let end = json!({ "complete": end.complete, "dropped_bytes": end.dropped }).to_string();
        let written = match self.commit(Some(&end)) {
            Err(error) if error.is_passing() => Err(error),
            written => self.look_at_end().and(written),
        };
        self.judge(written)
    }

    fn intact(&self) -> u64 {
        if self.is_spoilt {
            0
        } else {
            self.committed
        }
    }

    fn files(&self) -> Option<&Parts> {
        None
    }

    fn peer(&self) -> Option<Peer> {
        let reach = self.reach.clone();
        Some(Box::new(move || reach.trouble().map(|error| error.to_string())))
    }
}

//! The words of a run that are in a topic.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use std::time::Instant;

use rdkafka::consumer::{BaseConsumer, Consumer, DefaultConsumerContext};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{BorrowedMessage, Headers, Message};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

use super::client::{config, during, is_passing, patiently, Error, PATIENCE, STEP};
use super::topic::topic;
use crate::sink;
use crate::stored::Stored;

/// Bytes of words of a message: topics with the default limit of 1 MiB take them.
pub const MESSAGE: usize = 256 << 10;
/// Messages that are looked at first, from the end of a topic.
const LOOK: i64 = 64;
/// A setting of topics that are created: their words are kept.
const FOR_EVER: (&str, &str) = ("retention.ms", "-1");

/// Where a topic is: `HOST:PORT[+HOST:PORT...]/TOPIC`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topic {
    /// Brokers to begin with, as `host:port,...`.
    pub brokers: String,
    /// Name of the topic.
    pub topic: String,
}

impl FromStr for Topic {
    type Err = String;

    fn from_str(text: &str) -> Result<Topic, String> {
        let wrong = || format!("`{text}`: expected HOST:PORT/TOPIC");
        let (brokers, topic) = text.split_once('/').ok_or_else(wrong)?;
        let is_broker = |broker: &str| {
            broker.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
        };
        // The braces are those of a board's name, which is filled in later.
        let is_name = |c: char| c.is_ascii_alphanumeric() || "._-{}".contains(c);
        if !brokers.split('+').all(is_broker) || topic.is_empty() || topic.len() > 249 || !topic.chars().all(is_name) {
            return Err(wrong());
        }
        Ok(Topic { brokers: brokers.replace('+', ","), topic: topic.to_owned() })
    }
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "topic {} of {}", self.topic, self.brokers)
    }
}

/// Words of the run that a message has.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Piece {
    offset: i64,
    /// Bytes of the board's data; the message may have more behind it, which was replaced.
    bytes: Range<u64>,
}

/// Puts the next message behind others, of which it may replace some.
fn add(pieces: &mut Vec<Piece>, next: Piece) {
    while pieces.last().is_some_and(|piece| piece.bytes.start >= next.bytes.start) {
        pieces.pop();
    }
    if let Some(last) = pieces.last_mut() {
        last.bytes.end = last.bytes.end.min(next.bytes.start);
    }
    if !next.bytes.is_empty() {
        pieces.push(next);
    }
}

/// What a topic has of a run.
pub struct Words {
    consumer: BaseConsumer<DefaultConsumerContext>,
    place: Topic,
    run: String,
}

/// The run and the place of a message, by its headers; `None`: it has no words of this form.
fn headers<'a>(message: &'a BorrowedMessage<'_>) -> Option<(&'a str, u64)> {
    let headers = message.headers()?;
    let find = |name| {
        headers.iter().find(|header| header.key == name).and_then(|header| std::str::from_utf8(header.value?).ok())
    };
    Some((find("run")?, find("first_byte")?.parse().ok()?))
}

impl Words {
    /// Of the run of this name. The topic is created where it does not exist.
    ///
    /// # Errors
    /// The brokers cannot be reached, or refuse; the topic has several partitions.
    pub fn connect(place: Topic, run: &str) -> Result<Words, Error> {
        let found = topic(&place.brokers, &place.topic, 1, FOR_EVER)?;
        if found != 1 {
            return Err(Error::Partitions { topic: place.topic, found, expected: 1 });
        }
        let mut config = config(&place.brokers);
        config
            .set("group.id", "fadelink-words")
            .set("enable.auto.commit", "false")
            .set("enable.partition.eof", "true")
            .set("isolation.level", "read_committed")
            .set("fetch.wait.max.ms", "10");
        Ok(Words { consumer: during("connecting", config.create())?, place, run: run.to_owned() })
    }

    /// Gives all messages from `offset` on to `take`, until it gives false.
    fn read_from(&self, offset: i64, mut take: impl FnMut(&BorrowedMessage<'_>) -> bool) -> Result<(), Error> {
        let mut list = TopicPartitionList::new();
        during("reading words", list.add_partition_offset(&self.place.topic, 0, Offset::Offset(offset)))?;
        during("reading words", self.consumer.assign(&list))?;
        let mut deadline = Instant::now() + PATIENCE;
        loop {
            match self.consumer.poll(PATIENCE) {
                Some(Ok(message)) => {
                    if !take(&message) {
                        return Ok(());
                    }
                    deadline = Instant::now() + PATIENCE;
                }
                Some(Err(KafkaError::PartitionEOF(_))) => return Ok(()),
                Some(Err(KafkaError::MessageConsumption(code))) if is_passing(code) && Instant::now() < deadline => {}
                Some(Err(error)) => return during("reading words", Err(error)),
                None => {
                    let error = KafkaError::MessageConsumption(RDKafkaErrorCode::OperationTimedOut);
                    return during("reading words", Err(error));
                }
            }
        }
    }

    /// Offsets of the first message of the topic, and behind its last.
    pub(super) fn offsets(&self) -> Result<(i64, i64), Error> {
        patiently("looking for words", || self.consumer.fetch_watermarks(&self.place.topic, 0, PATIENCE))
    }

    /// The same, asked once.
    pub(super) fn ask_offsets(&self) -> Result<(i64, i64), KafkaError> {
        self.consumer.fetch_watermarks(&self.place.topic, 0, STEP)
    }

    /// The run that the newest message is of.
    ///
    /// # Errors
    /// The brokers'.
    pub fn newest_run(&self) -> Result<Option<String>, Error> {
        let (low, high) = self.offsets()?;
        let mut count = LOOK;
        loop {
            let first = low.max(high - count);
            let mut run = None;
            self.read_from(first, |message| {
                run = headers(message).map(|(run, _)| run.to_owned()).or(run.take());
                true
            })?;
            // The last offsets may be of transactions that were aborted.
            if run.is_some() || first == low {
                return Ok(run);
            }
            count *= 4;
        }
    }

    /// The messages that have the words from byte `from` on; those before it may be missing.
    fn pieces(&self, from: u64) -> Result<Vec<Piece>, Error> {
        let (low, high) = self.offsets()?;
        let mut count = LOOK;
        loop {
            let first = low.max(high - count);
            let (mut pieces, mut begin, mut before) = (Vec::new(), None, false);
            self.read_from(first, |message| {
                match headers(message) {
                    Some((run, start)) if run == self.run => {
                        begin = Some(begin.map_or(start, |begin: u64| begin.min(start)));
                        let bytes = start..start + message.payload_len() as u64;
                        add(&mut pieces, Piece { offset: message.offset(), bytes });
                    }
                    // Those of a run are in a row.
                    _ => before |= begin.is_none(),
                }
                true
            })?;
            if first == low && low > 0 && begin.is_none_or(|begin| begin > from) {
                return Err(Error::Lost { topic: self.place.topic.clone(), from, begin });
            }
            if first == low || begin.is_some_and(|begin| begin <= from || before) {
                return Ok(pieces);
            }
            count *= 4;
        }
    }

    /// Gives the data from byte `from` on to `take`, in pieces; true: there is more to be taken.
    ///
    /// # Errors
    /// The brokers', or the topic has lost some of the data.
    pub fn each(&self, from: u64, mut take: impl FnMut(&[u8]) -> bool) -> Result<(), Error> {
        let pieces = self.pieces(from)?;
        let mut left = pieces.iter().filter(|piece| piece.bytes.end > from).peekable();
        let (Some(first), mut at) = (left.peek().map(|piece| piece.offset), from) else { return Ok(()) };
        let mut lost = None;
        self.read_from(first, |message| {
            let Some(piece) = left.next_if(|piece| piece.offset == message.offset()) else {
                return left.peek().is_some();
            };
            if piece.bytes.start > at {
                lost = Some(Error::Lost { topic: self.place.topic.clone(), from: at, begin: Some(piece.bytes.start) });
                return false;
            }
            let data = message.payload().unwrap_or_default();
            let part = (at - piece.bytes.start) as usize..(piece.bytes.end - piece.bytes.start) as usize;
            at = piece.bytes.end;
            take(&data[part]) && left.peek().is_some()
        })?;
        lost.map_or(Ok(()), Err)
    }

    /// The data from byte `from` on, `bytes` of it at most.
    ///
    /// # Errors
    /// As [`Self::each`].
    pub fn data(&self, from: u64, bytes: u64) -> Result<Vec<u8>, Error> {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let mut all = Vec::with_capacity(bytes.min(MESSAGE));
        self.each(from, |data| {
            all.extend_from_slice(&data[..data.len().min(bytes - all.len())]);
            all.len() < bytes
        })?;
        Ok(all)
    }
}

impl Stored for Words {
    fn end(&self) -> sink::Result<u64> {
        Ok(self.pieces(u64::MAX)?.last().map_or(0, |piece| piece.bytes.end))
    }

    fn each(&self, from: u64, to: u64, take: &mut dyn FnMut(&[u8]) -> bool) -> sink::Result {
        let mut left = usize::try_from(to - from).unwrap_or(usize::MAX);
        if left == 0 {
            return Ok(());
        }
        self.each(from, |data| {
            let data = &data[..data.len().min(left)];
            left -= data.len();
            take(data) && left > 0
        })?;
        Ok(())
    }

    fn cut(&self, _end: u64) -> sink::Result {
        Ok(())
    }

    fn place(&self, _byte: u64) -> String {
        self.place.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places() {
        let place: Topic = "one:9092+10.0.0.2:9093/words-{feb}".parse().unwrap();
        assert_eq!(place, Topic { brokers: "one:9092,10.0.0.2:9093".into(), topic: "words-{feb}".into() });
        for wrong in
            ["", "x", "one/x", "one:9092", "one:9092/", "one:99999/x", ":1/x", "one:1+/x", "one:1/a b", "one:1/a/b"]
        {
            assert!(wrong.parse::<Topic>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_message_replaces_what_it_begins_before() {
        let piece = |offset, bytes| Piece { offset, bytes };
        let mut pieces = Vec::new();
        for (offset, bytes) in [0..10, 10..20, 20..30, 15..25, 25..40].into_iter().enumerate() {
            add(&mut pieces, piece(offset as i64, bytes));
        }
        assert_eq!(pieces, [piece(0, 0..10), piece(1, 10..15), piece(3, 15..25), piece(4, 25..40)]);
        add(&mut pieces, piece(5, 12..12));
        assert_eq!(pieces, [piece(0, 0..10), piece(1, 10..12)]);
        add(&mut pieces, piece(9, 0..8));
        assert_eq!(pieces, [piece(9, 0..8)]);
    }
}

//! Why a stream is not complete: names, words, amounts (docs/reliability.md has a row for each).

use std::collections::BTreeMap;
use std::fmt;

use fadelink_builder::counts::OTHERS;
use serde::{Serialize, Serializer};
use serde_json::{json, Value};
use strum::{IntoStaticStr, VariantNames};

use crate::checksum::Checksum;

/// Streams that were expected and did not come.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Absent {
    /// How many.
    pub streams: u64,
    /// The names of their boards, where they are known.
    pub boards: Vec<String>,
}

/// Amounts by the source of crates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BySource {
    /// Of each source.
    pub each: BTreeMap<u32, u64>,
    /// Of all others together.
    pub others: u64,
}

impl BySource {
    /// Of all sources.
    pub fn total(&self) -> u64 {
        self.each.values().sum::<u64>() + self.others
    }
}

/// Sources that a text names; all are in the JSON.
const NAMED: usize = 8;

impl fmt::Display for BySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named: Vec<_> =
            self.each.iter().take(NAMED).map(|(source, count)| format!("{source:#010x}: {count}")).collect();
        let more = self.each.len().saturating_sub(NAMED);
        let more = (more > 0).then(|| format!("{more} more"));
        let others = (self.others > 0).then(|| format!("{OTHERS}: {}", self.others));
        let parts: Vec<_> = named.into_iter().chain(more).chain(others).collect();
        write!(f, "({})", parts.join(", "))
    }
}

impl Serialize for BySource {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let others = (self.others > 0).then(|| (OTHERS.to_owned(), &self.others));
        to.collect_map(self.each.iter().map(|(source, count)| (format!("{source:#010x}"), count)).chain(others))
    }
}

/// Why a stream is not complete. Its names are in the metrics, too, of each that there is.
#[derive(Debug, Clone, PartialEq, Eq, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum Reason {
    /// Receiving ended early.
    Error(String),
    /// The board says otherwise.
    Board(String),
    /// Its end has not come.
    NoEnd,
    /// Streams did not come.
    Absent(Absent),
    /// Datagrams were not recorded.
    Missing(u64),
    /// Bytes for which no sink had room.
    GivenUp(u64),
    /// Parts that came again with other content.
    Contradictions(u64),
    /// Parts that cannot be of this stream.
    Foreign(u64),
    /// Times that a transmission was begun again, of which the board may have taken words.
    BegunAgain(u64),
    /// Another transmission was recorded behind this byte.
    Restarted(u64),
    /// What an earlier program has recorded is not as it was.
    Changed(String),
    /// The CRC of the words is not that of the board.
    Checksum(Checksum),
    /// Words that differ from the pattern.
    WrongWords(u64),
    /// Windows without one of their sources, given away or dropped.
    Windows(u64),
    /// Messages of windows that had been given away.
    Late(BySource),
    /// Messages of a window and a source that had one.
    Duplicate(BySource),
    /// Windows that no source sent, and of which nobody knows whether they were empty.
    Unknown(BySource),
    /// Windows that crates tell they have lost.
    WindowsLost(BySource),
    /// Hits that crates tell they have lost.
    HitsLost(BySource),
    /// Times that modules did not end a window in time.
    Timeouts(BySource),
    /// Messages whose time is not that of their window.
    WrongTime(BySource),
    /// Messages whose window cannot follow.
    WrongNumber(BySource),
    /// Times that a source counted its windows anew.
    Anew(BySource),
    /// Messages with an invalid word.
    WrongMessages(BySource),
    /// Messages of sources that nobody expects.
    Unlisted(BySource),
    /// Times that two senders had the number of a source.
    TwoSenders(BySource),
    /// Bytes that belong to no whole message.
    Skipped(u64),
    /// Messages of a topic that cannot be read.
    Malformed(u64),
    /// Messages that a topic does not have any more.
    Gone(u64),
    /// What is wrong with windows and messages of builders that did not report.
    Unreported(u64),
    /// Messages that could not be delivered to the brokers.
    Undelivered(u64),
    /// Messages that a builder has read, and of which nothing confirms that their events were written: how many, and why.
    Unwritten(u64, String),
    /// A sink has failed: its name, and why.
    SinkFailed(String, String),
    /// A sink that may not drop anything has lost so much: its name, amount.
    SinkLost(String, u64),
    /// A sink has handed over so much, and nobody confirms that it has arrived: its name, amount.
    Unconfirmed(String, u64),
}

impl Reason {
    /// Why, where more is known than the summary says.
    fn detail(&self) -> Option<&str> {
        match self {
            Reason::Error(error) => Some(error),
            Reason::SinkFailed(_, why) | Reason::Unwritten(_, why) => Some(why),
            _ => None,
        }
    }

    /// How much, in the unit that its text names.
    pub fn amount(&self) -> Option<u64> {
        match *self {
            Reason::Absent(ref absent) => Some(absent.streams),
            Reason::Error(_)
            | Reason::Board(_)
            | Reason::NoEnd
            | Reason::Restarted(_)
            | Reason::Changed(_)
            | Reason::Checksum(_)
            | Reason::SinkFailed(..) => None,
            Reason::Missing(amount)
            | Reason::GivenUp(amount)
            | Reason::Contradictions(amount)
            | Reason::BegunAgain(amount)
            | Reason::Foreign(amount)
            | Reason::WrongWords(amount)
            | Reason::Windows(amount)
            | Reason::Skipped(amount)
            | Reason::Malformed(amount)
            | Reason::Gone(amount)
            | Reason::Undelivered(amount)
            | Reason::Unreported(amount)
            | Reason::Unwritten(amount, _)
            | Reason::SinkLost(_, amount)
            | Reason::Unconfirmed(_, amount) => Some(amount),
            Reason::Late(_)
            | Reason::Duplicate(_)
            | Reason::Unknown(_)
            | Reason::WindowsLost(_)
            | Reason::HitsLost(_)
            | Reason::Timeouts(_)
            | Reason::WrongTime(_)
            | Reason::WrongNumber(_)
            | Reason::Anew(_)
            | Reason::WrongMessages(_)
            | Reason::Unlisted(_)
            | Reason::TwoSenders(_) => self.by_source().map(BySource::total),
        }
    }

    /// As in reports.
    pub fn json(&self) -> Value {
        let text = self.to_string();
        let text = self.detail().map_or(text.clone(), |why| format!("{text}: {why}"));
        let mut told = json!({ "reason": self.name(), "text": text });
        if let Some(amount) = self.amount() {
            told["amount"] = amount.into();
        }
        if let Some(by_source) = self.by_source() {
            told["sources"] = json!(by_source);
        }
        told
    }

    /// The same by source, where it is of crates.
    fn by_source(&self) -> Option<&BySource> {
        match self {
            Reason::Late(by_source)
            | Reason::Duplicate(by_source)
            | Reason::Unknown(by_source)
            | Reason::WindowsLost(by_source)
            | Reason::HitsLost(by_source)
            | Reason::Timeouts(by_source)
            | Reason::WrongTime(by_source)
            | Reason::WrongNumber(by_source)
            | Reason::Anew(by_source)
            | Reason::WrongMessages(by_source)
            | Reason::Unlisted(by_source)
            | Reason::TwoSenders(by_source) => Some(by_source),
            _ => None,
        }
    }

    /// Its name in reports and metrics.
    pub fn name(&self) -> &'static str {
        self.into()
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Error(_) => f.write_str("receiving ended early"),
            Reason::Board(what) => f.write_str(what),
            Reason::NoEnd => f.write_str("its end has not come"),
            Reason::Absent(Absent { streams, boards }) => {
                let what = if *streams == 1 { "stream that was" } else { "streams that were" };
                write!(f, "{streams} {what} expected did not come")?;
                if boards.is_empty() {
                    return Ok(());
                }
                write!(f, ", of {}", boards.join(", "))
            }
            Reason::Missing(count) => write!(f, "{count} datagrams are missing"),
            Reason::GivenUp(bytes) => write!(f, "no sink had room for {bytes} bytes"),
            Reason::Contradictions(count) => write!(f, "{count} parts came again with other content"),
            Reason::Foreign(count) => write!(f, "{count} parts of another sender or another transmission came"),
            Reason::BegunAgain(count) => {
                write!(
                    f,
                    "the transmission was begun again {count} times; words that the board took before may be lost"
                )
            }
            Reason::Restarted(byte) => write!(f, "another transmission was recorded behind byte {byte}"),
            Reason::Changed(what) => f.write_str(what),
            Reason::Checksum(checksum) => f.write_str(&checksum.words()),
            Reason::WrongWords(count) => write!(f, "{count} words are wrong"),
            Reason::Windows(count) => write!(f, "{count} windows miss a source"),
            Reason::Late(of) => write!(f, "{} messages came after their windows were given away {of}", of.total()),
            Reason::Duplicate(of) => {
                write!(f, "{} messages came for a window that their source had sent {of}", of.total())
            }
            Reason::Unknown(of) => {
                write!(f, "of {} windows nobody knows whether they were empty {of}", of.total())
            }
            Reason::WindowsLost(of) => write!(f, "crates have lost {} windows {of}", of.total()),
            Reason::HitsLost(of) => write!(f, "crates have lost {} hits {of}", of.total()),
            Reason::Timeouts(of) => {
                write!(f, "{} times a module did not end its window in time {of}", of.total())
            }
            Reason::WrongTime(of) => {
                write!(f, "{} messages have a time that cannot be that of their windows {of}", of.total())
            }
            Reason::WrongNumber(of) => {
                write!(f, "{} messages are of windows that cannot follow those before {of}", of.total())
            }
            Reason::WrongMessages(of) => write!(f, "{} messages have an invalid word {of}", of.total()),
            Reason::Unlisted(of) => write!(f, "{} messages are of sources that were not expected {of}", of.total()),
            Reason::Anew(of) => write!(f, "{} times sources counted their windows anew {of}", of.total()),
            Reason::TwoSenders(of) => write!(f, "{} times two senders had the number of one source {of}", of.total()),
            Reason::Skipped(bytes) => write!(f, "{bytes} bytes belong to no whole message"),
            Reason::Malformed(count) => write!(f, "{count} messages of the topic cannot be read"),
            Reason::Gone(count) => write!(f, "{count} messages were deleted or compacted before they were read"),
            Reason::Unreported(count) => {
                write!(f, "builders before have not reported {count} windows and messages that are missing or wrong")
            }
            Reason::Undelivered(count) => write!(f, "{count} messages could not be delivered"),
            Reason::Unwritten(count, _) => {
                write!(f, "nothing confirms that the events of {count} messages were written")
            }
            Reason::SinkFailed(sink, _) => write!(f, "{sink} has failed"),
            Reason::SinkLost(sink, amount) => write!(f, "{sink} has lost {amount}"),
            Reason::Unconfirmed(sink, amount) => {
                write!(f, "{sink} has handed over {amount}, and nobody confirms that they have arrived")
            }
        }
    }
}

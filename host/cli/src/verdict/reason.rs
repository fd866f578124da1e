//! Why a stream is not complete: names, words, amounts (docs/reliability.md has a row for each).

use std::fmt;

use serde_json::{json, Value};

use crate::checksum::Checksum;

/// Why a stream is not complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// Receiving ended early.
    Error(String),
    /// The board says otherwise.
    Board(String),
    /// Its end has not come.
    NoEnd,
    /// Datagrams were not recorded.
    Missing(u64),
    /// Bytes for which no sink had room.
    GivenUp(u64),
    /// Parts that came again with other content.
    Contradictions(u64),
    /// Parts that cannot be of this stream.
    Foreign(u64),
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
    Late(u64),
    /// Messages of a window and a source that had one.
    Duplicate(u64),
    /// Windows that no source sent, and of which nobody knows whether they were empty.
    Unknown(u64),
    /// Windows that crates tell they have lost.
    WindowsLost(u64),
    /// Messages whose time is not that of their window.
    WrongTime(u64),
    /// Bytes that belong to no whole message.
    Skipped(u64),
    /// Messages of a topic that cannot be read.
    Malformed(u64),
    /// Messages that a topic does not have any more.
    Gone(u64),
    /// What is wrong with windows and messages of builders that did not report.
    Unreported(u64),
    /// Messages that the brokers do not have.
    Undelivered(u64),
    /// A sink has failed: its name, and why.
    SinkFailed(String, String),
    /// A sink that may not drop anything has lost so much: its name, amount.
    SinkLost(String, u64),
    /// A sink has met so many messages with an invalid word: its name, amount.
    WrongMessages(String, u64),
}

impl Reason {
    /// Why, where more is known than the summary says.
    fn detail(&self) -> Option<&str> {
        match self {
            Reason::Error(error) => Some(error),
            Reason::SinkFailed(_, why) => Some(why),
            _ => None,
        }
    }

    /// How much, in the unit that its text names.
    fn amount(&self) -> Option<u64> {
        match *self {
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
            | Reason::Foreign(amount)
            | Reason::WrongWords(amount)
            | Reason::Windows(amount)
            | Reason::Late(amount)
            | Reason::Duplicate(amount)
            | Reason::Unknown(amount)
            | Reason::WindowsLost(amount)
            | Reason::WrongTime(amount)
            | Reason::Skipped(amount)
            | Reason::Malformed(amount)
            | Reason::Gone(amount)
            | Reason::Undelivered(amount)
            | Reason::Unreported(amount)
            | Reason::SinkLost(_, amount)
            | Reason::WrongMessages(_, amount) => Some(amount),
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
        told
    }

    /// Its name in reports.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Reason::Error(_) => "error",
            Reason::Board(_) => "board",
            Reason::NoEnd => "no_end",
            Reason::Missing(_) => "missing",
            Reason::GivenUp(_) => "given_up",
            Reason::Contradictions(_) => "contradictions",
            Reason::Foreign(_) => "foreign",
            Reason::Restarted(_) => "restarted",
            Reason::Changed(_) => "changed",
            Reason::Checksum(_) => "checksum",
            Reason::WrongWords(_) => "wrong_words",
            Reason::Windows(_) => "windows",
            Reason::Late(_) => "late",
            Reason::Duplicate(_) => "duplicate",
            Reason::Unknown(_) => "unknown",
            Reason::WindowsLost(_) => "windows_lost",
            Reason::WrongTime(_) => "wrong_time",
            Reason::Skipped(_) => "skipped",
            Reason::Malformed(_) => "malformed",
            Reason::Gone(_) => "gone",
            Reason::Unreported(_) => "unreported",
            Reason::Undelivered(_) => "undelivered",
            Reason::SinkFailed(..) => "sink_failed",
            Reason::SinkLost(..) => "sink_lost",
            Reason::WrongMessages(..) => "wrong_messages",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Error(_) => f.write_str("receiving ended early"),
            Reason::Board(what) => f.write_str(what),
            Reason::NoEnd => f.write_str("its end has not come"),
            Reason::Missing(count) => write!(f, "{count} datagrams are missing"),
            Reason::GivenUp(bytes) => write!(f, "no sink had room for {bytes} bytes"),
            Reason::Contradictions(count) => write!(f, "{count} parts came again with other content"),
            Reason::Foreign(count) => write!(f, "{count} parts of another sender or another transmission came"),
            Reason::Restarted(byte) => write!(f, "another transmission was recorded behind byte {byte}"),
            Reason::Changed(what) => f.write_str(what),
            Reason::Checksum(checksum) => f.write_str(&checksum.words()),
            Reason::WrongWords(count) => write!(f, "{count} words are wrong"),
            Reason::Windows(count) => write!(f, "{count} windows miss a source"),
            Reason::Late(count) => write!(f, "{count} messages came after their windows were given away"),
            Reason::Duplicate(count) => write!(f, "{count} messages came for a window that their source had sent"),
            Reason::Unknown(count) => write!(f, "of {count} windows nobody knows whether they were empty"),
            Reason::WindowsLost(count) => write!(f, "crates have lost {count} windows"),
            Reason::WrongTime(count) => write!(f, "{count} messages have another time than their windows"),
            Reason::Skipped(bytes) => write!(f, "{bytes} bytes belong to no whole message"),
            Reason::Malformed(count) => write!(f, "{count} messages of the topic cannot be read"),
            Reason::Gone(count) => write!(f, "{count} messages were deleted or compacted before they were read"),
            Reason::Unreported(count) => {
                write!(f, "builders before have not reported {count} windows and messages that are missing or wrong")
            }
            Reason::Undelivered(count) => write!(f, "the brokers do not have {count} messages"),
            Reason::SinkFailed(sink, _) => write!(f, "{sink} has failed"),
            Reason::SinkLost(sink, amount) => write!(f, "{sink} has lost {amount}"),
            Reason::WrongMessages(sink, count) => write!(f, "{sink} met {count} messages with an invalid word"),
        }
    }
}

//! The partition of a message.

use std::fmt;

use fadelink_wire::fadc::Header;
use rdkafka::message::Message;

use super::error::Error;
use super::note::Note;
use crate::key::Key;

/// The setting of topics: a partition's messages have one clock, the broker's. Silence is judged by it.
pub(super) const BY_BROKER: (&str, &str) = ("message.timestamp.type", "LogAppendTime");

/// The window modulo the partitions, so that a window's messages are in one partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// What a window's number is taken from.
    pub key: Key,
    /// Of the topic.
    pub partitions: u64,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.key, self.partitions)
    }
}

impl Rule {
    /// Partition of a message.
    pub fn partition(&self, header: &Header) -> i32 {
        self.key.of(header).map_or(0, |key| (key % self.partitions) as i32)
    }

    /// Looks whether `message`, whose header this is where it has one, was put where it is by this rule.
    pub(super) fn check(
        &self,
        message: &impl Message,
        header: Option<&Header>,
        note: Option<&Note>,
    ) -> Result<(), Error> {
        let found = match (note, header) {
            (Some(note), _) if note.rule != self.to_string() => format!("the rule {}", note.rule),
            (_, Some(header)) if self.partition(header) != message.partition() => {
                let window = self.key.of(header).map_or("without a number".into(), |key| key.to_string());
                format!("another rule (its window {window} belongs into {})", self.partition(header))
            }
            _ => return Ok(()),
        };
        Err(Error::Rule {
            topic: message.topic().to_owned(),
            partition: message.partition(),
            offset: message.offset(),
            found,
            expected: self.to_string(),
        })
    }
}

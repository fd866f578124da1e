//! Why messages could not be joined over Kafka.

use fadelink_sinks::kafka;

/// Why messages could not be put into Kafka, or joined there.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The brokers, or the way to them.
    #[error(transparent)]
    Kafka(#[from] kafka::Error),
    /// Messages were put into partitions by another rule than they are to be joined by.
    #[error(
        "topic {topic}, partition {partition}, offset {offset}: the message was put there by {found}, expected \
         {expected}: feed and build need the same --join, --window-ns and number of partitions"
    )]
    Rule {
        /// Its name.
        topic: String,
        /// Of the message.
        partition: i32,
        /// Of the message.
        offset: i64,
        /// How it came to its partition.
        found: String,
        /// By which rule it should have.
        expected: String,
    },
    /// A topic has lost what a group has read: what comes now would be treated as that.
    #[error(
        "topic {topic}, partition {partition}: {what}: the topic was made again, or its brokers have lost messages; choose another \
         --group and --events-topic, which begin anew"
    )]
    Anew {
        /// Its name.
        topic: String,
        /// Of the topic.
        partition: i32,
        /// What shows it.
        what: String,
    },
    /// A group that begins would write windows again.
    #[error(
        "topic {events}, partition {partition} has events, and group {group} has no place in topic {messages}: its place was reset or \
         deleted, or the events are of another group; choose another --events-topic, or --append if windows may be there twice"
    )]
    Twice {
        /// Topic of the events.
        events: String,
        /// Of it.
        partition: i32,
        /// Of the builders.
        group: String,
        /// Topic of the messages.
        messages: String,
    },
}

pub(super) type Result<T> = std::result::Result<T, Error>;

//! Apache Kafka: requests to the brokers, and a board's words in a topic.
//!
//! A topic of words has one partition and one writer at a time. Each message has whole words that came in a row, at most
//! [`MESSAGE`] bytes, and the headers `run` (name of the run), `first_byte` (place of the first one in the board's data) and
//! `origin` (JSON: sender and format, as in the manifest of a file). Where `first_byte` is before the end of the
//! messages so far, the data from there on is replaced. The last message of a transmission has no words and the header `end`
//! (JSON). Messages are written in transactions: who reads committed data reads each word once.

mod client;
mod connect;
mod reach;
mod settings;
mod sink;
mod topic;
mod words;
mod writer;
mod written;

pub use client::{
    code_of, config, during, is_absent, is_passing, is_permanent, patiently, until, Error, MESSAGE_BYTES, PATIENCE,
    STEP, TRANSACTION,
};
pub use reach::Reach;
pub use settings::ClientSettings;
pub use sink::KafkaSink;
pub use topic::topic;
pub use words::{Topic, Words, MESSAGE};
pub use writer::{commit, deliver, transactional, Writer};
pub use written::{compare, Written};

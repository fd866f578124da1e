//! Apache Kafka between receivers and builders, for setups with several computers.
//!
//! Feeders write each message to the partition of its window (window modulo partitions), so each builder of a group
//! joins whole windows. Each message carries what is known about the windows before it (`note`). A builder writes
//! events, and its position in the messages, in one transaction: a program that reads committed data sees each
//! event exactly once, also if builders are killed.

mod alone;
mod builder;
mod clock;
mod error;
mod failing;
mod feeder;
mod known;
mod look;
mod note;
mod output;
mod partition;
mod place;
mod report;
mod rule;
mod watch;

pub use builder::{Builder, Plan};
pub use error::Error;
pub use fadelink_sinks::kafka::Error as Failure;
pub use feeder::Feeder;
pub use report::{End, Report, Watcher};
pub use rule::Rule;

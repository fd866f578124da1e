//! Apache Kafka between receivers and builders, for setups beyond one machine.
//!
//! Feeders put each message into the partition of its window (window modulo partitions), so builders that share a
//! group each join whole windows. With each message goes what is known of the windows before it ([`note`]). A builder
//! writes events and its place in the messages in one transaction: an event is there exactly once for a program that reads
//! committed data, however often builders are killed.

mod builder;
mod client;
mod clock;
mod feeder;
mod note;
mod rule;

pub use builder::{Builder, Plan, Report};
pub use client::Error;
pub use feeder::Feeder;
pub use rule::Rule;

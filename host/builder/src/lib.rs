//! Event builder of FADC streaming (docs/fadc.md): reads the messages of many crates, joins them by time window,
//! and passes the events to sinks, to Apache Kafka and to a web page.

mod before;
pub mod counts;
mod epoch;
pub mod event;
pub mod inspect;
pub mod intake;
pub mod join;
#[cfg(feature = "kafka")]
pub mod kafka;
pub mod key;
pub mod live;
mod policy;
pub mod reader;
pub mod sink;
mod source;
pub mod tcp;
pub mod web;

pub use event::Event;
pub use join::Joiner;
pub use policy::{Policy, AHEAD_MAX, OPEN_BYTES};

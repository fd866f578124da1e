//! Sinks: destinations of data. Each runs in its own thread behind a queue ([`Outlet`]). A slow sink makes the
//! source wait, or drops and counts, as the user chooses. [`Block`]s of words go to files, HDF5, Kafka and other programs
//! ([`BlockKind`]); other crates add their own items and sinks.

mod block;
mod claim;
mod compare;
pub mod durable;
pub mod file;
pub mod hashes;
#[cfg(feature = "hdf5")]
pub mod hdf5;
#[cfg(feature = "kafka")]
pub mod kafka;
mod kinds;
mod made;
mod options;
mod origin;
mod outlet;
mod output;
mod parts;
mod pipe;
mod places;
mod recover;
mod report;
pub mod settings;
pub mod share;
mod sink;
mod spec;
mod stall;
mod stored;
mod streams;
mod terms;
pub mod unix_path;

pub use block::{Block, BLOCK_BYTES};
pub use compare::differences;
pub use kinds::{BlockKind, Opening};
pub use made::Made;
pub use options::{size, Options};
pub use origin::{Origin, Sender};
pub use outlet::{describe, Error, Onlooker, Outlet, Outlets};
pub use output::{check_name, place, Output, Writer, DESCRIPTION, WINDOWS_END};
pub use parts::{FileOptions, Parts};
pub use places::Places;
pub use recover::{recover, Recovered, UNCONFIRMED};
pub use report::Report;
pub use sink::{Delivery, End, Failure, Item, Peer, Result, Sink, Stopping};
pub use spec::{check_distinct, check_optional, Kind, Spec};
pub use stall::{Stall, AWAY};
pub use stored::{description, Files, Stored};
pub use streams::is_standard_output;
pub use terms::{Policy, Terms};

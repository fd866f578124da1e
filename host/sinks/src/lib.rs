//! Sinks: where data goes. Each runs in a thread of its own behind a queue ([`Outlet`]); one that is slow holds the source
//! up, or drops and counts, as its user chose. [`Block`]s of a board's words go to files, HDF5 and other programs
//! ([`BlockKind`]); other crates bring items and sinks of their own.

mod block;
pub mod durable;
pub mod file;
#[cfg(feature = "hdf5")]
pub mod hdf5;
mod kinds;
mod options;
mod origin;
mod outlet;
mod parts;
pub mod share;
mod sink;
mod spec;

pub use block::{Block, BLOCK_BYTES};
pub use kinds::BlockKind;
pub use options::Options;
pub use origin::{Board, Origin};
pub use outlet::{Error, Outlet, Outlets, Policy, Report};
pub use parts::{FileOptions, Parts};
pub use sink::{End, Failure, Item, Result, Sink, Stopping, WrongMessages};
pub use spec::{Kind, Spec};

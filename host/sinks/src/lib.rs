//! Sinks: where the data of one FEB goes. A sink that is slow holds its caller up; then the ring fills, the
//! receiver stops confirming, and the board waits. So nothing is lost.

pub mod file;
pub mod hdf5;
pub mod origin;
pub mod share;
mod sink;
mod spec;

pub use origin::Origin;
pub use sink::{Block, RingPart, Sink};
pub use spec::{Error, OpenSink, Spec};

//! Wire formats of Fadelink.
//!
//! One module for each protocol. It has zero-copy views, which parse a byte slice without copying, allocating or
//! panicking, and builders, which write a frame into a buffer of the caller.

mod block;
mod checksum;
pub mod ethernet;
pub mod fadc;
pub mod fade1;
pub mod fade10g;
pub mod firmware;
mod permit;
mod protocol;
pub mod registers;
mod resets;
pub mod serial;
pub mod udp;

pub use checksum::{Checksum, CHECKSUM_MARK};
pub use ethernet::MacAddr;
pub use firmware::{Firmware, WordOrder};
pub use permit::{Permit, PERMIT_MARK};
pub use protocol::Protocol;
pub use resets::Resets;

//! Wire formats of Fadelink.
//!
//! One module a protocol. Each offers zero-copy views that parse a byte slice without
//! copying, allocating or panicking, and builders that write a frame into a caller's buffer.

mod block;
pub mod ethernet;
pub mod fadc;
pub mod fade1;
pub mod fade10g;
pub mod firmware;
mod protocol;
pub mod serial;
pub mod udp;

pub use ethernet::MacAddr;
pub use firmware::{Firmware, WordOrder};
pub use protocol::Protocol;

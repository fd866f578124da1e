//! Wire formats of Fadelink.
//!
//! One module a protocol. Each offers zero-copy views that parse a byte slice without
//! copying, allocating or panicking, and builders that write a frame into a caller's buffer.

pub mod ethernet;
pub mod fade10g;
pub mod serial;

pub use ethernet::MacAddr;

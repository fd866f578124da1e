//! What a sink is, and what it is given.

use std::io;
use std::os::fd::BorrowedFd;

use crate::origin::Origin;

/// The part of the data ring in which a block lies, for sinks that let others read it in place.
#[derive(Debug, Clone, Copy)]
pub struct RingPart<'a> {
    /// The ring's memory file; mapped twice in a row, every block is contiguous.
    pub fd: BorrowedFd<'a>,
    /// Size of the ring.
    pub bytes: u64,
    /// Where in the ring the block begins.
    pub offset: u64,
}

/// Data that came in a row, whole words as this computer has them.
#[derive(Debug, Clone, Copy)]
pub struct Block<'a> {
    /// The data, in the ring.
    pub data: &'a [u8],
    /// Where it lies.
    pub ring: RingPart<'a>,
    /// Where it came from.
    pub origin: Origin,
}

/// Takes the data of one FEB.
pub trait Sink: Send {
    /// Takes the next block; it is given back to the ring when this returns.
    ///
    /// # Errors
    /// The data could not be written; nothing more is to be tried.
    fn write(&mut self, block: &Block<'_>) -> io::Result<()>;
    /// No more data comes. `complete`: the transmission has ended, and all of it was written.
    ///
    /// # Errors
    /// What was written may not be safe.
    fn finish(&mut self, complete: bool) -> io::Result<()>;
}

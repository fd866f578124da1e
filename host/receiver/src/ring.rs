//! The data ring: 2^N packets in a memory file, mapped twice in a row so that each part of it is contiguous.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use fadelink_wire::fade10g::PACKET_BYTES;
use rustix::fs::{fcntl_add_seals, ftruncate, memfd_create, MemfdFlags, SealFlags};

use crate::mapping::Mapping;

/// A ring of packets of 8192 bytes. Plain memory: who may touch which part is for
/// [`crate::shared::Shared`] to say.
#[derive(Debug)]
pub struct Ring {
    mapping: Arc<Mapping>,
    file: OwnedFd,
}

impl Ring {
    /// Allocates a ring of `packets`, a power of two.
    ///
    /// # Errors
    /// The operating system's, of memfd_create or mmap.
    pub fn new(packets: u64) -> io::Result<Ring> {
        assert!(packets.is_power_of_two());
        let bytes = usize::try_from(packets)
            .ok()
            .and_then(|packets| packets.checked_mul(PACKET_BYTES))
            .filter(|bytes| *bytes <= isize::MAX as usize / 2)
            .ok_or(io::ErrorKind::OutOfMemory)?;
        let file = memfd_create("fadelink-ring", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        // RLIMIT_FSIZE is for files in memory, too.
        ftruncate(&file, bytes as u64).map_err(|error| {
            let error = io::Error::from(error);
            io::Error::new(error.kind(), format!("a ring of {bytes} bytes: {error}"))
        })?;
        let mapping = Arc::new(Mapping::twice(file.as_fd(), bytes)?);
        // From here on it keeps its size, and a program that gets it can map it only for reading.
        let size = SealFlags::SHRINK | SealFlags::GROW;
        fcntl_add_seals(&file, size | SealFlags::FUTURE_WRITE | SealFlags::SEAL)?;
        Ok(Ring { mapping, file })
    }

    /// Size in bytes.
    pub fn bytes(&self) -> u64 {
        self.mapping.bytes() as u64 / 2
    }

    /// The memory file; sealed: others can map it for reading alone, and nobody changes its size.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Behind the last byte it begins anew.
    pub(crate) fn memory(&self) -> &Arc<Mapping> {
        &self.mapping
    }

    /// `len` bytes from byte `at`, across the end of the ring if need be.
    ///
    /// # Safety
    /// The bytes must not be written while the slice is alive.
    pub(crate) unsafe fn slice(&self, at: u64, len: usize) -> &[u8] {
        assert!(at < self.bytes() && len as u64 <= self.bytes());
        // SAFETY: the caller vouches for it.
        unsafe { self.mapping.slice(at as usize, len) }
    }

    /// As [`Self::slice`], to be written.
    ///
    /// # Safety
    /// No other slice of these bytes may be alive.
    #[allow(clippy::mut_from_ref)]
    pub(crate) unsafe fn slice_mut(&self, at: u64, len: usize) -> &mut [u8] {
        assert!(at < self.bytes() && len as u64 <= self.bytes());
        // SAFETY: the caller vouches for it.
        unsafe { self.mapping.slice_mut(at as usize, len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_can_read_it_only() {
        let ring = Ring::new(1).unwrap();
        assert!(Mapping::shared(ring.file(), 0, 4096, true).is_err());
        let readable = Mapping::shared(ring.file(), 0, 4096, false).unwrap();
        let protection = rustix::mm::MprotectFlags::READ | rustix::mm::MprotectFlags::WRITE;
        // SAFETY: a mapping that nothing refers to.
        assert!(unsafe { rustix::mm::mprotect(readable.base().as_ptr().cast(), 4096, protection) }.is_err());
        assert!(ftruncate(ring.file(), 0).is_err());
    }

    #[test]
    fn a_slice_runs_across_the_end() {
        let ring = Ring::new(4).unwrap();
        // SAFETY: the slice is taken after the writes.
        unsafe {
            ring.slice_mut(3 * PACKET_BYTES as u64, PACKET_BYTES).fill(3);
            ring.slice_mut(0, PACKET_BYTES).fill(7);
            let slice = ring.slice(3 * PACKET_BYTES as u64 + 1, PACKET_BYTES);
            assert!(slice[..PACKET_BYTES - 1].iter().all(|b| *b == 3));
            assert_eq!(slice[PACKET_BYTES - 1], 7);
        }
    }
}

//! The data ring: 2^N packets in a memory file, mapped twice in a row so that any part of it is
//! contiguous.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;

use fadelink_wire::fade10g::PACKET_BYTES;

use crate::kind::Swap;

/// A ring of packets of 8192 bytes. Plain memory: who may touch which part is for
/// [`crate::shared::Shared`] to say.
#[derive(Debug)]
pub struct Ring {
    base: NonNull<u8>,
    bytes: usize,
    file: OwnedFd,
}

// SAFETY: the mapping belongs to this value and is not tied to a thread; access to its bytes is
// through unsafe functions whose callers keep reader and writer apart.
unsafe impl Send for Ring {}
unsafe impl Sync for Ring {}

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
        // SAFETY: plain system calls; results are checked, and the two fixed mappings lie inside the
        // address range that the first mapping reserved.
        unsafe {
            let fd = libc::memfd_create(c"fadelink-ring".as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            let file = OwnedFd::from_raw_fd(fd);
            if libc::ftruncate(file.as_raw_fd(), bytes as libc::off_t) < 0 {
                return Err(io::Error::last_os_error());
            }
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            let base = libc::mmap(std::ptr::null_mut(), 2 * bytes, libc::PROT_NONE, flags, -1, 0);
            if base == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            let ring = Ring { base: NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?, bytes, file };
            for half in 0..2 {
                let at = ring.base.as_ptr().add(half * bytes).cast();
                let protection = libc::PROT_READ | libc::PROT_WRITE;
                let flags = libc::MAP_SHARED | libc::MAP_FIXED;
                if libc::mmap(at, bytes, protection, flags, ring.file.as_raw_fd(), 0) == libc::MAP_FAILED {
                    return Err(io::Error::last_os_error());
                }
            }
            // From here on it keeps its size, and whoever is given it can map it for reading alone.
            let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_FUTURE_WRITE | libc::F_SEAL_SEAL;
            if libc::fcntl(ring.file.as_raw_fd(), libc::F_ADD_SEALS, seals) < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(ring)
        }
    }

    /// Size in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes as u64
    }

    /// The memory file; sealed: others can map it for reading alone, and nobody changes its size.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// First byte; behind the last one the memory begins anew.
    pub(crate) fn base(&self) -> *const u8 {
        self.base.as_ptr()
    }

    /// Copies a packet to place `slot`, its words as `swap` says; all packets of a transmission have the same length.
    ///
    /// # Safety
    /// No slice of that place may be alive.
    pub(crate) unsafe fn write(&self, slot: u64, payload: &[u8], swap: Swap) {
        let at = slot as usize * payload.len();
        assert!(at + payload.len() <= self.bytes);
        // SAFETY: the packet lies inside the first mapping, and nobody else looks at that place.
        let place = unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr().add(at), payload.len()) };
        swap.copy(payload, place);
    }

    /// `len` bytes from byte `at`, across the end of the ring if need be.
    ///
    /// # Safety
    /// The bytes must not be written while the slice is alive.
    pub(crate) unsafe fn slice(&self, at: u64, len: usize) -> &[u8] {
        assert!(at < self.bytes() && len <= self.bytes);
        // SAFETY: at < bytes and len <= bytes, so the slice lies inside the two mappings.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(at as usize), len) }
    }

    /// As [`Self::slice`], to be written.
    ///
    /// # Safety
    /// No other slice of these bytes may be alive.
    #[allow(clippy::mut_from_ref)]
    pub(crate) unsafe fn slice_mut(&self, at: u64, len: usize) -> &mut [u8] {
        assert!(at < self.bytes() && len <= self.bytes);
        // SAFETY: at < bytes and len <= bytes, so the slice lies inside the two mappings.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr().add(at as usize), len) }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `new` and no slice outlives the ring.
        unsafe { libc::munmap(self.base.as_ptr().cast(), 2 * self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_can_read_it_only() {
        let ring = Ring::new(1).unwrap();
        let fd = ring.file().as_raw_fd();
        // SAFETY: plain system calls; mappings are not used.
        unsafe {
            let map = |protection| libc::mmap(std::ptr::null_mut(), 4096, protection, libc::MAP_SHARED, fd, 0);
            assert_eq!(map(libc::PROT_READ | libc::PROT_WRITE), libc::MAP_FAILED);
            let readable = map(libc::PROT_READ);
            assert_ne!(readable, libc::MAP_FAILED);
            assert_eq!(libc::mprotect(readable, 4096, libc::PROT_READ | libc::PROT_WRITE), -1);
            assert_eq!(libc::ftruncate(fd, 0), -1);
            assert_eq!(libc::munmap(readable, 4096), 0);
        }
    }

    #[test]
    fn a_slice_runs_across_the_end() {
        let ring = Ring::new(4).unwrap();
        // SAFETY: the slice is taken after the writes.
        unsafe {
            ring.write(3, &[3; PACKET_BYTES], Swap::None);
            ring.write(0, &[7; PACKET_BYTES], Swap::None);
            let slice = ring.slice(3 * PACKET_BYTES as u64 + 1, PACKET_BYTES);
            assert!(slice[..PACKET_BYTES - 1].iter().all(|b| *b == 3));
            assert_eq!(slice[PACKET_BYTES - 1], 7);
        }
    }
}

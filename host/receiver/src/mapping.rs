//! Memory mappings, and their ends.

use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::{null_mut, NonNull};

use rustix::mm::{mmap, mmap_anonymous, munmap, MapFlags, ProtFlags};

/// Memory that is mapped, until this is dropped. Plain bytes: who may touch which part is for its owner to say.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a mapping is not tied to a thread, and access to its bytes is through unsafe functions.
unsafe impl Send for Mapping {}
unsafe impl Sync for Mapping {}

/// To be read and written.
const READ_WRITE: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);

impl Mapping {
    fn of(base: *mut std::ffi::c_void, bytes: usize) -> io::Result<Mapping> {
        Ok(Mapping { base: NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?, bytes })
    }

    /// `bytes` of a file or a socket from `offset` on, shared with it; for reading alone, or also for writing.
    pub(crate) fn shared(file: BorrowedFd<'_>, offset: u64, bytes: usize, write: bool) -> io::Result<Mapping> {
        let protection = if write { READ_WRITE } else { ProtFlags::READ };
        // SAFETY: a new mapping, wherever the kernel has room.
        Mapping::of(unsafe { mmap(null_mut(), bytes, protection, MapFlags::SHARED, file, offset)? }, bytes)
    }

    /// The `bytes` of a file twice in a row.
    pub(crate) fn twice(file: BorrowedFd<'_>, bytes: usize) -> io::Result<Mapping> {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new mapping; the two fixed ones lie inside its range.
        unsafe {
            let whole = Mapping::of(mmap_anonymous(null_mut(), 2 * bytes, ProtFlags::empty(), flags)?, 2 * bytes)?;
            for half in 0..2 {
                let at = whole.base.as_ptr().add(half * bytes).cast();
                mmap(at, bytes, READ_WRITE, MapFlags::SHARED | MapFlags::FIXED, file, 0)?;
            }
            Ok(whole)
        }
    }

    /// `bytes` of memory that is there.
    #[cfg(feature = "xdp")]
    pub(crate) fn anonymous(bytes: usize) -> io::Result<Mapping> {
        let flags = MapFlags::PRIVATE | MapFlags::POPULATE;
        // SAFETY: a new mapping, wherever the kernel has room.
        Mapping::of(unsafe { mmap_anonymous(null_mut(), bytes, READ_WRITE, flags)? }, bytes)
    }

    /// Its first byte.
    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Its size.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// `len` bytes from byte `at`.
    ///
    /// # Safety
    /// They must not be written while the slice is alive.
    ///
    /// # Panics
    /// They lie outside.
    pub(crate) unsafe fn slice(&self, at: usize, len: usize) -> &[u8] {
        assert!(at <= self.bytes && len <= self.bytes - at, "{len} bytes at {at} of {}", self.bytes);
        // SAFETY: inside the mapping; the caller vouches for the rest.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(at), len) }
    }

    /// As [`Self::slice`], to be written.
    ///
    /// # Safety
    /// No other slice of them may be alive.
    ///
    /// # Panics
    /// As there.
    #[allow(clippy::mut_from_ref)]
    pub(crate) unsafe fn slice_mut(&self, at: usize, len: usize) -> &mut [u8] {
        assert!(at <= self.bytes && len <= self.bytes - at, "{len} bytes at {at} of {}", self.bytes);
        // SAFETY: inside the mapping; the caller vouches for the rest.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr().add(at), len) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped above, and no slice outlives this.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

//! Memory mappings, and their ends.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::ptr::{null_mut, NonNull};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use rustix::fs::{ftruncate, memfd_create, MemfdFlags};
use rustix::mm::{madvise, mmap, mmap_anonymous, mremap_fixed, munmap, Advice, MapFlags, MremapFlags, ProtFlags};

use crate::fork::{self, InChild, Process};

/// Memory that is mapped, until this is dropped. Plain bytes: who may touch which part is for its owner to say.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: NonNull<u8>,
    bytes: usize,
    /// Others that show its bytes.
    views: Arc<AtomicUsize>,
    children: Children,
}

/// What is at its place in a child of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Children {
    /// The same memory.
    Share,
    /// Nothing, or something else: of all processes but that one.
    Lack(Process),
    /// A copy.
    Copy,
}

/// Memory of a device, twice in a row, which keeps the device open.
struct DeviceMemory {
    base: usize,
    bytes: usize,
    views: Arc<AtomicUsize>,
}

impl InChild for DeviceMemory {
    fn give_up(&self) {
        self.detach();
    }
}

impl DeviceMemory {
    /// Puts other memory into its place, with the same bytes if somebody shows them: the device is not kept by it any more. It stays as it
    /// is if there is no memory for that.
    fn detach(&self) {
        let half = self.bytes / 2;
        let copy = || -> io::Result<()> {
            let file = memfd_create("fadelink-kept", MemfdFlags::CLOEXEC)?;
            ftruncate(&file, half as u64)?;
            let copy = Mapping::twice(file.as_fd(), half)?;
            let base = self.base as *mut u8;
            // SAFETY: both places are as large; those that show this read it, and find the same bytes behind each step.
            unsafe {
                if self.views.load(Ordering::Acquire) > 0 {
                    copy.base.as_ptr().copy_from_nonoverlapping(base, half);
                }
                for at in [0, half] {
                    let from = copy.base.as_ptr().add(at).cast();
                    mremap_fixed(from, half, half, MremapFlags::MAYMOVE, base.add(at).cast())?;
                }
            }
            // Both halves have moved.
            std::mem::forget(copy);
            Ok(())
        };
        let _ = copy();
    }
}

// SAFETY: a mapping is not tied to a thread, and access to its bytes is through unsafe functions.
unsafe impl Send for Mapping {}
unsafe impl Sync for Mapping {}

/// To be read and written.
const READ_WRITE: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);

impl Mapping {
    fn of(base: *mut std::ffi::c_void, bytes: usize) -> io::Result<Mapping> {
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Mapping { base, bytes, views: Arc::default(), children: Children::Share })
    }

    /// A child of this process has none of it, so it does not keep what it is mapped from.
    pub(crate) fn alone(mut self) -> io::Result<Mapping> {
        // SAFETY: nothing in a child looks at it.
        unsafe { madvise(self.base.as_ptr().cast(), self.bytes, Advice::LinuxDontFork)? };
        self.children = Children::Lack(Process::this());
        Ok(self)
    }

    /// As memory of a device, that is mapped twice in a row.
    fn device(&self) -> DeviceMemory {
        DeviceMemory { base: self.base.as_ptr() as usize, bytes: self.bytes, views: self.views.clone() }
    }

    /// Memory of a device: a child of this process has a copy of it.
    pub(crate) fn copied_in_children(mut self) -> Mapping {
        let address = self.base.as_ptr() as usize;
        fork::open().devices.push((address, Box::new(self.device())));
        self.children = Children::Copy;
        self
    }

    /// It is not that of a device any more.
    fn forget_device(&self) {
        let address = self.base.as_ptr() as usize;
        fork::open().devices.retain(|(known, _)| *known != address);
    }

    /// The device is to be closed: those who show its bytes have a copy from now on.
    pub(crate) fn leave_device(&self) {
        self.forget_device();
        if self.views.load(Ordering::Acquire) > 0 {
            self.device().detach();
        }
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

    /// Bytes of it from the address `at` on, until that is dropped.
    pub(crate) fn view(self: &Arc<Self>, at: *const u8, bytes: usize) -> View {
        self.views.fetch_add(1, Ordering::AcqRel);
        View { mapping: self.clone(), at: at as usize, bytes }
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

/// Bytes of a ring that stay readable until this is dropped, though the FEB is closed. What they show is another matter: they are
/// written again when they were given back.
#[derive(Debug)]
pub struct View {
    mapping: Arc<Mapping>,
    at: usize,
    bytes: usize,
}

impl View {
    /// Address of the first one.
    pub fn address(&self) -> usize {
        self.at
    }

    /// How many there are.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for View {
    fn drop(&mut self) {
        self.mapping.views.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        match self.children {
            Children::Lack(process) if !process.is_this() => return,
            Children::Copy => self.forget_device(),
            Children::Lack(_) | Children::Share => {}
        }
        // SAFETY: mapped above, and no slice outlives this.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

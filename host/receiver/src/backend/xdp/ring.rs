//! A ring that is shared with the kernel.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::interface::explained;
use crate::mapping::Mapping;

/// A ring shared with the kernel: descriptors and two indices that run freely.
pub(super) struct Ring<T> {
    producer: NonNull<AtomicU32>,
    consumer: NonNull<AtomicU32>,
    flags: NonNull<AtomicU32>,
    descriptors: NonNull<T>,
    mask: u32,
    #[allow(dead_code)]
    mapping: Mapping,
}

impl<T: Copy> Ring<T> {
    pub(super) fn map(
        socket: &OwnedFd,
        offset: &libc::xdp_ring_offset,
        size: usize,
        page: libc::off_t,
    ) -> io::Result<Ring<T>> {
        let bytes = offset.desc as usize + size * size_of::<T>();
        let mapping = Mapping::shared(socket.as_fd(), page as u64, bytes, true)
            .and_then(Mapping::alone)
            .map_err(|error| explained(error, "mapping an AF_XDP ring"))?;
        let base = mapping.base();
        // SAFETY: the offsets are the kernel's own, inside the mapping.
        unsafe {
            Ok(Ring {
                producer: base.add(offset.producer as usize).cast(),
                consumer: base.add(offset.consumer as usize).cast(),
                flags: base.add(offset.flags as usize).cast(),
                descriptors: base.add(offset.desc as usize).cast(),
                mask: size as u32 - 1,
                mapping,
            })
        }
    }

    fn producer(&self) -> &AtomicU32 {
        // SAFETY: lies in the mapping, which lives as long as this.
        unsafe { self.producer.as_ref() }
    }

    fn consumer(&self) -> &AtomicU32 {
        // SAFETY: as above.
        unsafe { self.consumer.as_ref() }
    }

    /// The kernel sleeps and wants a call.
    pub(super) fn needs_wakeup(&self) -> bool {
        // SAFETY: as above.
        unsafe { self.flags.as_ref() }.load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }

    /// Next entry that the kernel has written, if there is one. It is given back by [`Self::consumed`].
    pub(super) fn peek(&self, ahead: u32) -> Option<T> {
        let at = self.consumer().load(Ordering::Relaxed).wrapping_add(ahead);
        if at == self.producer().load(Ordering::Acquire) {
            return None;
        }
        // SAFETY: the index is masked, and the kernel does not write this entry until it is consumed.
        Some(unsafe { self.descriptors.add((at & self.mask) as usize).read() })
    }

    pub(super) fn consumed(&self, count: u32) {
        let at = self.consumer().load(Ordering::Relaxed);
        self.consumer().store(at.wrapping_add(count), Ordering::Release);
    }

    /// Writes an entry for the kernel. The caller knows that there is room.
    pub(super) fn push(&self, entry: T) {
        let at = self.producer().load(Ordering::Relaxed);
        // SAFETY: the index is masked, and the kernel does not read this entry before the store below.
        unsafe { self.descriptors.add((at & self.mask) as usize).write(entry) };
        self.producer().store(at.wrapping_add(1), Ordering::Release);
    }
}

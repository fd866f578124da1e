//! Parts of a ring that are lent: a holder reads its part in place, at its own speed. Bytes return to the ring in
//! order, when there is no holder of them or of earlier ones. So a slow reader makes the writer wait, and nothing
//! is overwritten.

use std::collections::VecDeque;
use std::io;
use std::ops::Deref;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::mapping::Mapping;
use crate::ring::Ring;

/// The reader's side of a ring.
pub(crate) trait ReadSide: Send + Sync {
    /// The memory file.
    fn file(&self) -> BorrowedFd<'_>;
    /// Size in bytes.
    fn bytes(&self) -> u64;
    /// The memory, mapped twice in a row.
    fn memory(&self) -> &Arc<Mapping>;
    /// Its first byte.
    fn base(&self) -> *const u8 {
        self.memory().base().as_ptr()
    }
    /// Byte of the ring behind the last one that was given back.
    fn begin(&self) -> u64;
    /// Gives the next `bytes` back: they may be overwritten.
    fn give_back(&self, bytes: u64);
}

/// What is lent of the ring, from [`ReadSide::begin`] on.
#[derive(Default)]
struct Lent {
    /// Of each part its bytes, and whether it is back.
    parts: VecDeque<(u64, bool)>,
    /// Number of the first part.
    first: u64,
    bytes: u64,
}

/// Who has what of a ring.
pub(crate) struct Ledger {
    ring: Arc<dyn ReadSide>,
    lent: Mutex<Lent>,
}

/// A part of a ring, as bytes. It may be cloned and read from any thread; its place is free when the last clone is gone.
#[derive(Clone)]
pub struct Loan(Arc<Part>);

struct Part {
    ledger: Arc<Ledger>,
    number: u64,
    at: u64,
    bytes: usize,
}

impl Ledger {
    pub(crate) fn new(ring: Arc<dyn ReadSide>) -> Arc<Ledger> {
        Arc::new(Ledger { ring, lent: Mutex::default() })
    }

    pub(crate) fn ring(&self) -> &dyn ReadSide {
        &*self.ring
    }

    fn lock(&self) -> MutexGuard<'_, Lent> {
        self.lent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `look` with the number of bytes that are lent, while nothing is given back.
    pub(crate) fn with_lent<T>(&self, look: impl FnOnce(u64) -> T) -> T {
        look(self.lock().bytes)
    }

    /// Byte of the ring behind all that is lent.
    pub(crate) fn offset(&self) -> u64 {
        self.with_lent(|lent| (self.ring.begin() + lent) % self.ring.bytes())
    }

    /// `bytes` behind all that is lent.
    ///
    /// # Safety
    /// They hold data, and are neither lent nor given back while the slice is alive.
    pub(crate) unsafe fn slice(&self, bytes: u64) -> &[u8] {
        // SAFETY: at < size and bytes <= size, so it lies inside the two mappings; the caller vouches for the rest.
        unsafe { std::slice::from_raw_parts(self.ring.base().add(self.offset() as usize), bytes as usize) }
    }

    /// Lends the next `bytes`, which the caller knows to hold data.
    pub(crate) fn lend(self: &Arc<Self>, bytes: u64) -> Loan {
        let at = self.offset();
        let mut lent = self.lock();
        let number = lent.first + lent.parts.len() as u64;
        lent.parts.push_back((bytes, false));
        lent.bytes += bytes;
        drop(lent);
        Loan(Arc::new(Part { ledger: self.clone(), number, at, bytes: bytes as usize }))
    }

    /// Gives the next `bytes` back without having lent them.
    pub(crate) fn pass(&self, bytes: u64) {
        let mut lent = self.lock();
        if lent.parts.is_empty() {
            self.ring.give_back(bytes);
        } else {
            lent.parts.push_back((bytes, true));
            lent.bytes += bytes;
        }
    }

    fn returned(&self, number: u64) {
        let mut lent = self.lock();
        let index = (number - lent.first) as usize;
        lent.parts[index].1 = true;
        let mut bytes = 0;
        while let Some((part, true)) = lent.parts.front() {
            bytes += part;
            lent.parts.pop_front();
            lent.first += 1;
        }
        lent.bytes -= bytes;
        if bytes > 0 {
            self.ring.give_back(bytes);
        }
    }
}

impl Loan {
    /// The memory file and its size: mapped for reading twice in a row, every part is contiguous.
    pub fn memory(&self) -> (BorrowedFd<'_>, u64) {
        let ring = &self.0.ledger.ring;
        (ring.file(), ring.bytes())
    }

    /// Byte of the memory file where this begins.
    pub fn offset(&self) -> u64 {
        self.0.at
    }
}

impl Deref for Loan {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let Part { ledger, at, bytes, .. } = &*self.0;
        // SAFETY: at < size and bytes <= size, so it lies inside the two mappings, which the ledger keeps; the writer keeps
        // off what is not given back.
        unsafe { std::slice::from_raw_parts(ledger.ring.base().add(*at as usize), *bytes) }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.ledger.returned(self.number);
    }
}

/// A ring that this program fills itself, as from a socket.
pub struct Pool {
    side: Arc<PoolSide>,
    ledger: Arc<Ledger>,
    /// Byte of the ring behind all that was lent.
    end: u64,
    /// Bytes there that are not whole yet.
    kept: usize,
}

struct PoolSide {
    ring: Ring,
    place: Mutex<Used>,
    returned: Condvar,
}

/// What of the ring is lent.
#[derive(Default)]
struct Used {
    begin: u64,
    used: u64,
}

impl PoolSide {
    fn lock(&self) -> MutexGuard<'_, Used> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReadSide for PoolSide {
    fn file(&self) -> BorrowedFd<'_> {
        self.ring.file()
    }

    fn bytes(&self) -> u64 {
        self.ring.bytes()
    }

    fn memory(&self) -> &Arc<Mapping> {
        self.ring.memory()
    }

    fn begin(&self) -> u64 {
        self.lock().begin
    }

    fn give_back(&self, bytes: u64) {
        let mut place = self.lock();
        place.used -= bytes;
        place.begin = (place.begin + bytes) % self.ring.bytes();
        drop(place);
        self.returned.notify_one();
    }
}

impl Pool {
    /// Of `packets` of 8192 bytes, a power of two.
    ///
    /// # Errors
    /// As of [`Ring::new`].
    pub fn new(packets: u64) -> io::Result<Pool> {
        let ring = Ring::new(packets)?;
        let side = Arc::new(PoolSide { ring, place: Mutex::default(), returned: Condvar::default() });
        Ok(Pool { ledger: Ledger::new(side.clone()), side, end: 0, kept: 0 })
    }

    /// Bytes that are lent, and the size.
    pub fn fill(&self) -> (u64, u64) {
        (self.side.lock().used, self.side.ring.bytes())
    }

    /// Waits until there is room for `least` bytes (or all of it, if it is smaller), `patience` at most; false: there is not.
    pub fn wait(&self, least: usize, patience: Duration) -> bool {
        let size = self.side.ring.bytes();
        let least = (least as u64 + self.kept as u64).min(size);
        let end = Instant::now() + patience;
        let mut place = self.side.lock();
        while size - place.used < least {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            place = self.side.returned.wait_timeout(place, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// All room for the next bytes, contiguous. In it are the bytes already that [`Self::lend`] or [`Self::keep`] kept: the
    /// second value.
    pub fn room(&mut self) -> (&mut [u8], usize) {
        let mut place = self.side.lock();
        if place.used == 0 && self.kept == 0 {
            // What comes next goes where the processor's cache has it still.
            self.end = 0;
            place.begin = 0;
        }
        let free = self.side.ring.bytes() - place.used;
        drop(place);
        // SAFETY: it is free, and only this, which is taken mutably, gives places away.
        (unsafe { self.side.ring.slice_mut(self.end, free as usize) }, self.kept)
    }

    /// The first `bytes` of what [`Self::room`] gave are not whole yet: they are in the next room.
    pub fn keep(&mut self, bytes: usize) {
        self.kept = bytes;
    }

    /// Lends the first `bytes` of what [`Self::room`] gave; the `kept` bytes behind them are not whole yet.
    ///
    /// # Panics
    /// If there was no such room.
    pub fn lend(&mut self, bytes: usize, kept: usize) -> Loan {
        let mut place = self.side.lock();
        assert!(place.used + (bytes + kept) as u64 <= self.side.ring.bytes(), "more than there was room for");
        place.used += bytes as u64;
        drop(place);
        self.end = (self.end + bytes as u64) % self.side.ring.bytes();
        self.kept = kept;
        self.ledger.lend(bytes as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(pool: &mut Pool, data: &[u8]) -> Loan {
        assert!(pool.wait(data.len(), Duration::ZERO));
        pool.room().0[..data.len()].copy_from_slice(data);
        pool.lend(data.len(), 0)
    }

    #[test]
    fn places_come_back_in_order_whoever_is_done_first() {
        let mut pool = Pool::new(1).unwrap();
        let loans: Vec<Loan> = (1..=4).map(|i| put(&mut pool, &[i; 2048])).collect();
        assert!(!pool.wait(1, Duration::ZERO));
        let mut loans = loans.into_iter();
        let (first, second, third, fourth) =
            (loans.next().unwrap(), loans.next().unwrap(), loans.next().unwrap(), loans.next().unwrap());
        assert_eq!([first.offset(), second.offset(), fourth.offset()], [0, 2048, 6144]);
        drop(second);
        let clone = third.clone();
        drop(third);
        assert_eq!(pool.fill(), (8192, 8192), "the first is out");
        drop(first);
        assert_eq!(pool.fill().0, 4096, "and the clone");
        // Across the end of the ring, contiguous.
        let next = put(&mut pool, &[5; 4096]);
        assert!(next.iter().all(|byte| *byte == 5) && clone.iter().all(|byte| *byte == 3));
        assert!(!pool.wait(1, Duration::from_millis(1)));
        drop(next);
        drop(clone);
        assert!(fourth.iter().all(|byte| *byte == 4));
        assert_eq!(pool.fill().0, 6144);
        drop(fourth);
        assert_eq!(pool.room().0.len(), 8192);
    }

    #[test]
    fn bytes_that_are_kept_come_first() {
        let mut pool = Pool::new(1).unwrap();
        pool.room().0[..12].copy_from_slice(b"0123456789ab");
        assert_eq!(&*pool.lend(8, 4), b"01234567");
        let (room, kept) = pool.room();
        assert_eq!((&room[..kept], kept), (&b"89ab"[..], 4));
        room[4..8].copy_from_slice(b"cdef");
        assert_eq!(&*pool.lend(8, 0), b"89abcdef");
    }

    #[test]
    fn who_waits_for_room_is_woken() {
        let mut pool = Pool::new(1).unwrap();
        let loan = put(&mut pool, &[1; 8192]);
        let thread = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(20));
            drop(loan);
        });
        assert!(pool.wait(1, Duration::from_secs(60)));
        thread.join().unwrap();
    }
}

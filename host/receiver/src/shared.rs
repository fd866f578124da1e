//! State that the receiving thread and the reader of a FEB share: the ring, its head and tail, wake-ups.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};

use fadelink_wire::fade10g::Identity;
use fadelink_wire::MacAddr;

use crate::counters::FebCounters;
use crate::kind::{Kind, Swap};
use crate::loan::ReadSide;
use crate::mapping::Mapping;
use crate::ring::Ring;
use crate::told::{Expected, Told};
use crate::wake::Wake;

/// State of a FEB's transmission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    /// Not started.
    Idle = 0,
    /// Data comes in.
    Running = 1,
    /// The last packet and all before it are in.
    Complete = 2,
    /// Ended before its end: RESET, or the receiver failed.
    Aborted = 3,
}

/// How the end of a transmission is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Ending {
    /// It has not ended, or the receiver has ended it.
    #[default]
    Unknown = 0,
    /// The FEB told it: by its last packet (FADE-10G), or as many packets as have come (FADE v1).
    Confirmed = 1,
    /// The FEB is silent after STOP. Published FEBs of FADE v1 tell no more.
    Silence = 2,
    /// The FEB told that RESET has ended it.
    Reset = 3,
    /// The FEB has sent nothing since it was switched on: it has lost its power meanwhile.
    SwitchedOff = 4,
    /// The FEB told that it has sent another number of packets than have come.
    OtherNumber = 5,
    /// The FEB told that it has begun another transmission.
    OtherTransmission = 6,
}

impl Ending {
    /// By its number.
    pub(crate) fn of(number: u8) -> Ending {
        match number {
            1 => Ending::Confirmed,
            2 => Ending::Silence,
            3 => Ending::Reset,
            4 => Ending::SwitchedOff,
            5 => Ending::OtherNumber,
            6 => Ending::OtherTransmission,
            _ => Ending::Unknown,
        }
    }

    /// What a FEB of FADE-10G tells about the end of its transmission of this `number`, if it is known: [`Ending::Unknown`] if that
    /// goes on, or has ended as it should, or the FEB does not tell.
    pub(crate) fn of_fade10g(identity: &Identity, number: Option<u16>) -> Ending {
        match number {
            Some(number) if identity.transmission != number => match identity.transmission {
                0 => Ending::SwitchedOff,
                _ => Ending::OtherTransmission,
            },
            _ if !identity.running && identity.resets.is_some_and(|resets| resets > 0) => Ending::Reset,
            _ => Ending::Unknown,
        }
    }

    /// In a word; `None` before the end.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Ending::Unknown => None,
            Ending::Confirmed => Some("confirmed"),
            Ending::Silence => Some("silence"),
            Ending::Reset => Some("reset"),
            Ending::SwitchedOff => Some("switched-off"),
            Ending::OtherNumber => Some("other-number"),
            Ending::OtherTransmission => Some("other-transmission"),
        }
    }

    /// Why a transmission was aborted, or does not go on, for those who read; empty where nothing more is known. `by`: the computer that sent RESET.
    pub(crate) fn why(self, by: Option<MacAddr>) -> String {
        let why = match self {
            Ending::Unknown | Ending::Confirmed | Ending::Silence => return String::new(),
            Ending::Reset => match by {
                Some(by) => return format!(": RESET was sent to the board by {by}"),
                None => "another program has sent RESET to the board",
            },
            Ending::SwitchedOff => "the board was switched off, or restarted",
            Ending::OtherTransmission => "another program has begun another transmission of the board",
            Ending::OtherNumber => "the board says that it has sent another number of packets than have come",
        };
        format!(": {why}")
    }
}

/// Head and tail count bytes since the start of the transmission; the ring holds what lies between.
#[derive(Debug)]
pub struct Shared {
    /// The ring.
    pub ring: Ring,
    /// Counters of the FEB.
    pub counters: FebCounters,
    /// What the FEB has told about its transmission.
    pub told: Told,
    /// Notified when the reader should look: threshold reached, end, or error.
    pub wake: Wake,
    /// Notified when the reader has given something back, where that is to be confirmed.
    released: Option<Arc<Wake>>,
    /// Byte of the ring for the first byte of the transmission, as of the packets that are there.
    origin: AtomicU64,
    head: AtomicU64,
    tail: AtomicU64,
    /// Tail at which the reader wants to be woken.
    wake_at: AtomicU64,
    phase: AtomicU8,
    /// How the end is known, by number.
    ending: AtomicU8,
    /// What the FEB was found to be, by number.
    kind: AtomicU8,
    /// Why frames come by a slower way.
    slower: OnceLock<String>,
    /// The reader sleeps, or is about to.
    armed: AtomicBool,
}

impl Shared {
    /// With a ring of `packets`, and its one reader.
    ///
    /// # Errors
    /// The operating system's, of the ring or the event descriptor.
    pub fn new(packets: u64) -> io::Result<(Arc<Shared>, Reader)> {
        Shared::with_release(packets, None)
    }

    /// The same; `released` is notified when the reader has given something back.
    ///
    /// # Errors
    /// As of [`Self::new`].
    pub(crate) fn with_release(packets: u64, released: Option<Arc<Wake>>) -> io::Result<(Arc<Shared>, Reader)> {
        let shared = Arc::new(Shared {
            ring: Ring::new(packets)?,
            counters: FebCounters::default(),
            told: Told::default(),
            wake: Wake::new()?,
            released,
            origin: AtomicU64::new(0),
            head: AtomicU64::new(0),
            tail: AtomicU64::new(0),
            wake_at: AtomicU64::new(1),
            phase: AtomicU8::new(Phase::Idle as u8),
            ending: AtomicU8::new(Ending::Unknown as u8),
            kind: AtomicU8::new(0),
            slower: OnceLock::new(),
            armed: AtomicBool::new(false),
        });
        Ok((shared.clone(), Reader(shared)))
    }

    /// State of the transmission.
    pub fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Acquire) {
            0 => Phase::Idle,
            1 => Phase::Running,
            2 => Phase::Complete,
            _ => Phase::Aborted,
        }
    }

    /// How the end of the transmission is known.
    pub fn ending(&self) -> Ending {
        Ending::of(self.ending.load(Ordering::Acquire))
    }

    /// What the FEB was found to be; `None` before the first START.
    pub fn kind(&self) -> Option<Kind> {
        Kind::unpack(self.kind.load(Ordering::Relaxed))
    }

    /// Receiving side: what the FEB was found to be.
    pub(crate) fn set_kind(&self, kind: Kind) {
        self.kind.store(kind.pack(), Ordering::Relaxed);
    }

    /// Why the backend's frames come by a slower way than it has.
    pub fn slower(&self) -> Option<&str> {
        self.slower.get().map(String::as_str)
    }

    /// Receiving side: frames come by a slower way, and why.
    pub(crate) fn set_slower(&self, why: String) {
        // It is told once, as the FEB is opened.
        let _ = self.slower.set(why);
    }

    /// Bytes that the reader has released since the start.
    pub fn head(&self) -> u64 {
        self.head.load(Ordering::Acquire)
    }

    /// Bytes that are in without a gap since the start.
    pub fn tail(&self) -> u64 {
        self.tail.load(Ordering::Acquire)
    }

    /// Receiving side: a transmission begins, of which so many bytes have come before. `number`: what the FEB calls it, if that
    /// is known. `crc`: whether it will tell the CRC of its words.
    pub(crate) fn begin(&self, bytes: u64, number: Option<u16>, crc: Expected) {
        self.origin.store(0, Ordering::Relaxed);
        self.head.store(bytes, Ordering::Relaxed);
        self.tail.store(bytes, Ordering::Relaxed);
        self.ending.store(Ending::Unknown as u8, Ordering::Relaxed);
        self.told.begin(number, crc);
        self.set_phase(Phase::Running);
    }

    /// Receiving side: the transmission has ended, and how that is known; wakes the reader.
    pub(crate) fn end(&self, phase: Phase, ending: Ending) {
        self.ending.store(ending as u8, Ordering::Release);
        self.set_phase(phase);
    }

    /// Receiving side: copies a packet to where byte `at` since the start belongs, its words as `swap` says. `gap_free`: no
    /// packet is stored behind one that is missing. If the reader has given back all then, what comes next goes to the begin
    /// of the ring, where the processor's cache has it still: a fast reader uses a small part of the ring.
    ///
    /// # Safety
    /// The reader has given back the place: `at` is less than a ring before the head.
    pub(crate) unsafe fn store(&self, at: u64, packet: &[u8], swap: Swap, gap_free: bool) {
        let size = self.ring.bytes();
        if gap_free && self.head() == self.tail.load(Ordering::Relaxed) {
            // The reader looks at the tail before it looks here, and moves on only behind a new tail.
            self.origin.store(size - self.head() % size, Ordering::Relaxed);
        }
        let place = (self.origin.load(Ordering::Relaxed) + at) % size;
        // SAFETY: the caller vouches for it.
        swap.copy(packet, unsafe { self.ring.slice_mut(place, packet.len()) });
    }

    /// Receiving side: the state changed; wakes the reader.
    pub(crate) fn set_phase(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::SeqCst);
        self.wake.notify();
    }

    /// Receiving side: `tail` bytes are in; wakes the reader at its threshold.
    pub(crate) fn set_tail(&self, tail: u64) {
        self.tail.store(tail, Ordering::SeqCst);
        // SeqCst pairs with `arm`: either the reader sees the new tail or this sees it armed.
        if self.armed.load(Ordering::SeqCst) && tail >= self.wake_at.load(Ordering::Relaxed) {
            self.armed.store(false, Ordering::Relaxed);
            self.wake.notify();
        }
    }
}

/// The reader's end: there is one, so that no slice is alive when its place is given back.
#[derive(Debug)]
pub struct Reader(Arc<Shared>);

impl std::ops::Deref for Reader {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl Reader {
    /// Asks to be woken when `threshold` bytes are there that are not given back. Check again before sleeping.
    pub fn arm(&self, threshold: u64) {
        self.wake.clear();
        self.wake_at.store(self.head.load(Ordering::Relaxed) + threshold, Ordering::Relaxed);
        self.armed.store(true, Ordering::SeqCst);
    }

    /// Byte of the ring where [`Self::available`] begins.
    pub fn offset(&self) -> u64 {
        let head = self.head.load(Ordering::Relaxed);
        self.origin.load(Ordering::Relaxed).wrapping_add(head) % self.ring.bytes()
    }

    /// All bytes that are there, contiguous. The writer keeps off them until they are released.
    pub fn available(&self) -> &[u8] {
        let head = self.head.load(Ordering::Relaxed);
        let len = self.tail.load(Ordering::SeqCst) - head;
        // SAFETY: bytes between head and tail are not written: the engine refuses a packet whose
        // place is not released, and moving the head takes this reader mutably. A new transmission
        // moves it too, but is begun only by the owner of the reader.
        unsafe { self.ring.slice(self.offset(), len as usize) }
    }

    /// Gives the first `bytes` back.
    ///
    /// # Panics
    /// If so many were not there.
    pub fn release(&mut self, bytes: usize) {
        self.give_back(bytes as u64);
    }
}

impl ReadSide for Reader {
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
        self.offset()
    }

    fn give_back(&self, bytes: u64) {
        let head = self.head.load(Ordering::Relaxed) + bytes;
        assert!(head <= self.tail.load(Ordering::Relaxed), "released more than was available");
        self.head.store(head, Ordering::Release);
        if let Some(released) = &self.released {
            released.notify();
        }
    }
}

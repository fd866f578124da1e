//! Receivers and FEBs as they are without Python: opened, used by several threads, and closed by one of them.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use fadelink_receiver::fork::{Kept, Process};
use fadelink_receiver::wake::Wake;
use fadelink_receiver::{Commander, Error, FebConfig, FebHandle, Inquiry, Receiver, Valid, View};
use fadelink_wire::MacAddr;
use rustix::event::epoll;

use crate::failure::{Failure, Outcome};

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A receiver that is open, or was. It ends when it is closed, or nobody has it or a FEB of it.
pub(crate) struct Link {
    process: Process,
    receiver: Mutex<Option<Receiver>>,
    boards: Mutex<Vec<Weak<SharedFeb>>>,
}

/// What is to be closed when Python ends.
static LINKS: Mutex<Vec<Weak<Link>>> = Mutex::new(Vec::new());

/// The list. A forked process may find it locked for ever.
fn links() -> Option<MutexGuard<'static, Vec<Weak<Link>>>> {
    (0..1000).find_map(|_| LINKS.try_lock().inspect_err(|_| std::thread::sleep(Duration::from_millis(1))).ok())
}

/// Closes all that is open.
pub(crate) fn close_all() {
    let links = links().map(|mut links| std::mem::take(&mut *links)).unwrap_or_default();
    links.iter().filter_map(Weak::upgrade).for_each(|link| link.close());
}

impl Link {
    pub(crate) fn new(receiver: Receiver) -> Arc<Link> {
        let (process, receiver) = (Process::this(), Mutex::new(Some(receiver)));
        let link = Arc::new(Link { process, receiver, boards: Mutex::default() });
        if let Some(mut links) = links() {
            links.retain(|link| link.strong_count() > 0);
            links.push(Arc::downgrade(&link));
        }
        link
    }

    pub(crate) fn is_here(&self) -> bool {
        self.process.is_this()
    }

    /// Does something with the receiver, which is not closed meanwhile.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&Receiver) -> Outcome<T>) -> Outcome<T> {
        if !self.is_here() {
            return Err(Failure::Forked("receiver"));
        }
        work(lock(&self.receiver).as_ref().ok_or(Failure::Closed("receiver"))?)
    }

    pub(crate) fn open(self: &Arc<Self>, mac: MacAddr, config: FebConfig) -> Outcome<Arc<SharedFeb>> {
        self.with(|receiver| {
            let board = Arc::new(SharedFeb::new(receiver.open(mac, config)?, self.clone())?);
            let mut boards = lock(&self.boards);
            boards.retain(|board| board.strong_count() > 0);
            boards.push(Arc::downgrade(&board));
            Ok(board)
        })
    }

    /// Closes it, its FEBs first. A child of its process does nothing.
    pub(crate) fn close(&self) {
        if !self.is_here() {
            return;
        }
        // No FEB is opened from here on.
        let mut receiver = lock(&self.receiver);
        let boards: Vec<_> = lock(&self.boards).drain(..).collect();
        boards.iter().filter_map(Weak::upgrade).for_each(|board| board.close());
        *receiver = None;
    }

    pub(crate) fn is_closed(&self) -> bool {
        !self.is_here() || lock(&self.receiver).is_none()
    }
}

/// What those who wait for data wait for: a descriptor that is readable when they are to look. It does not keep a device open.
pub(crate) struct Waits {
    epoll: Kept<OwnedFd>,
    closing: Wake,
}

impl Waits {
    fn new(handle: &FebHandle) -> Outcome<Waits> {
        let epoll = Kept::open(|| epoll::create(epoll::CreateFlags::CLOEXEC)).map_err(std::io::Error::from)?;
        let closing = Wake::new()?;
        for fd in [handle.as_fd(), closing.as_fd()] {
            epoll::add(&*epoll, fd, epoll::EventData::new_u64(0), epoll::EventFlags::IN)
                .map_err(std::io::Error::from)?;
        }
        Ok(Waits { epoll, closing })
    }
}

impl AsFd for Waits {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

/// A FEB while it is open.
pub(crate) struct State {
    pub(crate) handle: FebHandle,
    /// Bytes of the block that is out; they are given back when it is released.
    pub(crate) lent: usize,
    /// What is known of the filler at the end of the transmission.
    pub(crate) end: Option<Valid>,
    /// It lives as long as its FEBs are open.
    #[allow(dead_code)]
    link: Arc<Link>,
}

impl State {
    /// No block is out; else what cannot be done.
    pub(crate) fn is_free(&self, what: &'static str) -> Outcome<()> {
        match self.lent {
            0 => Ok(()),
            _ => Err(Failure::Held(what)),
        }
    }

    fn arm(&self, threshold: usize) -> bool {
        loop {
            let valid = self.handle.valid();
            if self.handle.has_valid(threshold, &valid) {
                return true;
            }
            if !self.handle.arm_valid(threshold, &valid) {
                return false;
            }
            // More has come meanwhile.
        }
    }
}

/// A FEB that is open, or was.
pub(crate) struct SharedFeb {
    process: Process,
    /// `None`: it is closed.
    state: Mutex<Option<State>>,
    commander: Mutex<Option<Commander>>,
    waits: Mutex<Option<Arc<Waits>>>,
    /// It is closed, or is about to be.
    closed: AtomicBool,
}

/// What there is to read.
pub(crate) enum Available {
    /// Bytes in the ring.
    Block(View),
    Later,
    End,
}

impl SharedFeb {
    fn new(handle: FebHandle, link: Arc<Link>) -> Outcome<SharedFeb> {
        let (commander, waits) = (handle.commander(), Waits::new(&handle)?);
        let state = State { handle, lent: 0, end: None, link };
        Ok(SharedFeb {
            process: Process::this(),
            state: Mutex::new(Some(state)),
            commander: Mutex::new(Some(commander)),
            waits: Mutex::new(Some(Arc::new(waits))),
            closed: AtomicBool::new(false),
        })
    }

    pub(crate) fn is_here(&self) -> bool {
        self.process.is_this()
    }

    pub(crate) fn is_closed(&self) -> bool {
        !self.is_here() || self.closed.load(Ordering::Acquire)
    }

    /// It is open, and was opened by this process: asked before any lock is taken, which another thread may have had at a fork.
    pub(crate) fn check(&self) -> Outcome<()> {
        match (self.is_here(), self.is_closed()) {
            (false, _) => Err(Failure::Forked("FEB")),
            (true, true) => Err(Failure::Closed("FEB")),
            (true, false) => Ok(()),
        }
    }

    /// What went wrong because it was closed meanwhile is told so.
    fn because<T>(&self, result: Result<T, Error>) -> Outcome<T> {
        result.map_err(|error| if self.is_closed() { Failure::Closed("FEB") } else { error.into() })
    }

    /// Does something with the FEB, which is not closed meanwhile.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut State) -> Outcome<T>) -> Outcome<T> {
        self.check()?;
        let mut state = lock(&self.state);
        work(state.as_mut().ok_or(Failure::Closed("FEB"))?)
    }

    /// The same for what the receiver may refuse.
    pub(crate) fn attempt<T>(&self, work: impl FnOnce(&mut State) -> Result<T, Error>) -> Outcome<T> {
        self.with(|state| self.because(work(state)))
    }

    /// The same, if no block is out; else `what` cannot be done.
    pub(crate) fn attempt_free<T>(
        &self,
        what: &'static str,
        work: impl FnOnce(&mut State) -> Result<T, Error>,
    ) -> Outcome<T> {
        self.with(|state| {
            state.is_free(what)?;
            self.because(work(state))
        })
    }

    /// Asks the FEB what it says; it may be closed meanwhile.
    pub(crate) fn inquire(&self) -> Outcome<Inquiry> {
        let question = self.with(|state| Ok(state.handle.question()))?;
        self.because(question.ask())
    }

    /// Sends a command; the FEB may be closed meanwhile, which ends it.
    pub(crate) fn command<T>(&self, work: impl FnOnce(&Commander) -> Result<T, Error>) -> Outcome<T> {
        self.check()?;
        let commander = lock(&self.commander).clone().ok_or(Failure::Closed("FEB"))?;
        self.because(work(&commander))
    }

    /// What is to be waited for, while no lock is held.
    pub(crate) fn waits(&self) -> Outcome<Arc<Waits>> {
        self.check()?;
        lock(&self.waits).clone().ok_or(Failure::Closed("FEB"))
    }

    /// Closes it: RESET if its transmission runs. What waits for it in other threads fails. A child of its process does nothing.
    pub(crate) fn close(&self) {
        if !self.is_here() {
            return;
        }
        self.closed.store(true, Ordering::Release);
        if let Some(waits) = lock(&self.waits).take() {
            waits.closing.notify();
        }
        if let Some(commander) = lock(&self.commander).take() {
            commander.end_waits();
        }
        // One that closes it at the same time waits until it is.
        *lock(&self.state) = None;
    }

    /// Asks the descriptor to become readable; true if so many bytes are there, or the transmission has ended.
    pub(crate) fn arm(&self, threshold: usize) -> Outcome<bool> {
        self.with(|state| Ok(state.arm(threshold)))
    }

    /// A block, if so many bytes are there, the transmission has ended, or it is the `last` time to look.
    pub(crate) fn take(&self, threshold: usize, last: bool) -> Outcome<Available> {
        self.with(|state| {
            state.is_free("read: the previous block is still held")?;
            if !state.arm(threshold) && !last {
                return Ok(Available::Later);
            }
            let valid = state.handle.valid();
            if valid.has_ended && (state.end.is_none() || valid.bytes + valid.withheld > 0) {
                state.end = Some(valid);
            }
            if valid.has_ended && valid.bytes == 0 {
                state.handle.release(valid.withheld);
                // It tells why the transmission was aborted.
                self.because(state.handle.wait(1, Some(std::time::Duration::ZERO)))?;
                return Ok(Available::End);
            }
            state.lent = valid.bytes;
            Ok(Available::Block(state.handle.view(valid.bytes)))
        })
    }

    /// Gives the block that is out back to the ring.
    pub(crate) fn give_back(&self) {
        // One of a FEB that was closed is nobody's.
        let _ = self.with(|state| {
            let lent = std::mem::take(&mut state.lent);
            state.handle.release(lent);
            Ok(())
        });
    }
}

//! What a forked process has of its parent's receivers and FEBs: nothing. Their threads are not there, and what other threads had
//! locked stays locked. So the child neither uses nor drops them. It gives up their descriptors at once, before `fork`
//! returns: a socket, a lock or a device that only the parent has ends with the parent's close.

use std::cell::RefCell;
use std::ffi::c_int;
use std::ops::{Deref, DerefMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use rustix::fs::{Mode, OFlags};

/// Forks that led to this process, since the first of its ancestors that counted.
static FORKS: AtomicU32 = AtomicU32::new(0);
static OPEN: Mutex<Open> = Mutex::new(Open { descriptors: Vec::new(), devices: Vec::new(), commands: Vec::new() });
static WATCH: Once = Once::new();

thread_local! {
    /// Held from before a fork until behind it, so that the child finds the list whole and unlocked.
    static FORKING: RefCell<Option<MutexGuard<'static, Open>>> = const { RefCell::new(None) };
}

/// What a child does with something that its parent has.
pub(crate) trait InChild: Send {
    /// It gives it up. Called before anything else runs in the child.
    fn give_up(&self);
}

/// What this process has open.
pub(crate) struct Open {
    descriptors: Vec<RawFd>,
    /// Memory of devices, which keeps them open, by its address.
    pub(crate) devices: Vec<(usize, Box<dyn InChild>)>,
    /// Claims of commands that are under way here, by name.
    pub(crate) commands: Vec<String>,
}

extern "C" {
    fn pthread_atfork(
        before: Option<extern "C" fn()>,
        in_parent: Option<extern "C" fn()>,
        in_child: Option<extern "C" fn()>,
    ) -> c_int;
}

extern "C" fn before() {
    let open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    FORKING.with(|held| *held.borrow_mut() = Some(open));
}

extern "C" fn in_parent() {
    drop(FORKING.with(|held| held.borrow_mut().take()));
}

extern "C" fn in_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
    if let Some(mut open) = FORKING.with(|held| held.borrow_mut().take()) {
        open.give_up();
    }
}

impl Open {
    /// In the child. The numbers of the descriptors stay in use, by what does nothing: whoever still has one closes no other file.
    fn give_up(&mut self) {
        let nothing = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty());
        for fd in self.descriptors.drain(..) {
            // SAFETY: the numbers are those of descriptors that were open at the fork, and nothing else is done with them here.
            match &nothing {
                Ok(nothing) => _ = unsafe { libc::dup3(nothing.as_raw_fd(), fd, libc::O_CLOEXEC) },
                Err(_) => _ = unsafe { libc::close(fd) },
            }
        }
        for (_, device) in &self.devices {
            device.give_up();
        }
        self.devices.clear();
        self.commands.clear();
    }
}

/// What this process has open; no fork happens while it is held.
pub(crate) fn open() -> MutexGuard<'static, Open> {
    WATCH.call_once(|| {
        // SAFETY: functions that live as long as the program. It fails without memory alone.
        let _ = unsafe { pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
    });
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A process, as the one in which something was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process(u32);

impl Process {
    /// This one.
    pub fn this() -> Process {
        Process(FORKS.load(Ordering::Relaxed))
    }

    /// One that this was forked from, or is a child of it.
    #[cfg(test)]
    pub(crate) fn another() -> Process {
        Process(u32::MAX)
    }

    /// False in a process that was forked from that one.
    pub fn is_this(self) -> bool {
        self == Process::this()
    }
}

/// What has descriptors, and closes them when it is dropped.
pub trait Descriptors {
    /// All of them.
    fn descriptors(&self) -> Vec<RawFd>;
}

impl<T: AsFd> Descriptors for T {
    fn descriptors(&self) -> Vec<RawFd> {
        vec![self.as_fd().as_raw_fd()]
    }
}

/// Something whose descriptors a forked process gives up.
#[derive(Debug)]
pub struct Kept<T>(Option<T>, Vec<RawFd>);

impl<T: Descriptors> Kept<T> {
    /// Opens it. Nothing else that is opened or closed here may be so within `make`.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn open<E>(make: impl FnOnce() -> Result<T, E>) -> Result<Kept<T>, E> {
        let mut open = open();
        let made = make()?;
        let descriptors = made.descriptors();
        open.descriptors.extend(&descriptors);
        Ok(Kept(Some(made), descriptors))
    }
}

impl<T> Drop for Kept<T> {
    fn drop(&mut self) {
        let mut open = open();
        for fd in &self.1 {
            if let Some(at) = open.descriptors.iter().position(|known| known == fd) {
                open.descriptors.swap_remove(at);
            }
        }
        // Under the lock: a child that is forked meanwhile has all of it, or nothing.
        drop(self.0.take());
    }
}

impl<T> Deref for Kept<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().expect("until it is dropped")
    }
}

impl<T> DerefMut for Kept<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_mut().expect("until it is dropped")
    }
}

impl<T: AsFd> AsFd for Kept<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        (**self).as_fd()
    }
}

/// Something that is dropped by the process that has made it; a child leaves it as it is.
#[derive(Debug)]
pub(crate) struct Own<T>(Option<T>, Process);

impl<T> Own<T> {
    pub(crate) fn new(value: T) -> Own<T> {
        Own(Some(value), Process::this())
    }
}

impl<T> Drop for Own<T> {
    fn drop(&mut self) {
        if !self.1.is_this() {
            std::mem::forget(self.0.take());
        }
    }
}

impl<T> Deref for Own<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().expect("until it is dropped")
    }
}

impl<T> DerefMut for Own<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_mut().expect("until it is dropped")
    }
}

//! What a forked process has of its parent's receivers and FEBs: nothing. Their threads are not there, and what other threads had
//! locked stays locked. So the child neither uses nor drops them. It gives up their descriptors at once, before `fork`
//! returns: a socket, a lock or a device that only the parent has ends with the parent's close.

use std::cell::RefCell;
use std::ffi::c_int;
use std::io::Read;
use std::ops::{Deref, DerefMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};

/// Forks that led to this process, since the first of its ancestors that counted.
static FORKS: AtomicU32 = AtomicU32::new(0);
static OPEN: Mutex<Open> = Mutex::new(Open { descriptors: Vec::new(), devices: Vec::new(), commands: Vec::new() });
static WATCH: Once = Once::new();

thread_local! {
    /// Held from before a fork until behind it, so that the child finds the list whole and unlocked.
    static FORKING: RefCell<Option<Forking>> = const { RefCell::new(None) };
}

/// How long a parent waits for its child to give up what it has open; longer than that only a child that is stopped takes.
const PATIENCE: Duration = Duration::from_secs(1);

/// What is there from before a fork until behind it.
struct Forking {
    open: MutexGuard<'static, Open>,
    /// The second one is closed when the child has given up what its parent has open.
    ready: Option<(UnixStream, UnixStream)>,
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
    let ready = if open.is_empty() { None } else { UnixStream::pair().ok() };
    FORKING.with(|forking| *forking.borrow_mut() = Some(Forking { open, ready }));
}

extern "C" fn in_parent() {
    let Some(Forking { open, ready }) = FORKING.with(|forking| forking.borrow_mut().take()) else { return };
    if let Some((ready, childs)) = ready {
        drop(childs);
        // So that what is closed from here on is closed.
        let _ = ready.set_read_timeout(Some(PATIENCE));
        let _ = (&ready).read_exact(&mut [0]);
    }
    drop(open);
}

extern "C" fn in_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
    if let Some(Forking { mut open, ready }) = FORKING.with(|forking| forking.borrow_mut().take()) {
        open.give_up();
        drop(ready);
    }
}

impl Open {
    fn is_empty(&self) -> bool {
        self.descriptors.is_empty() && self.devices.is_empty()
    }

    /// In the child. The numbers of the descriptors stay in use, by what does nothing: a program that still has one closes no other file.
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

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::Arc;

    use rustix::fs::{ftruncate, memfd_create, MemfdFlags};

    use super::*;
    use crate::mapping::Mapping;

    /// Runs `child` in a forked process, which ends with its outcome, and with the thread that waits for it.
    fn forked(child: impl FnOnce() -> bool) -> libc::pid_t {
        // SAFETY: the child ends here, and does nothing that needs another thread.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            // SAFETY: it has no pointers.
            unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
            let is_right = std::panic::catch_unwind(std::panic::AssertUnwindSafe(child)).unwrap_or(false);
            // SAFETY: it ends this process, and nothing else.
            unsafe { libc::_exit(i32::from(!is_right)) }
        }
        assert!(pid > 0);
        pid
    }

    /// Waits for the end of such a process: its outcome.
    fn outcome(pid: libc::pid_t) -> bool {
        let mut status = 0;
        // SAFETY: a child of this process, and a place for its outcome.
        let waited = unsafe { libc::waitpid(pid, &raw mut status, 0) };
        waited == pid && status == 0
    }

    #[test]
    fn a_child_gives_descriptors_up_and_what_is_dropped_there_does_nothing() {
        // In a process of its own: the threads of other tests open and close descriptors, whose numbers this one looks at.
        assert!(outcome(forked(|| {
            gives_up();
            true
        })));
    }

    fn gives_up() {
        struct Tells(UnixStream);
        impl Drop for Tells {
            fn drop(&mut self) {
                let _ = self.0.write_all(b"dropped");
            }
        }
        let (mut told, tells) = UnixStream::pair().unwrap();
        let (mut far, near) = UnixStream::pair().unwrap();
        let (mut lives, mut waits) = UnixStream::pair().unwrap();
        let mut near = Kept::open(|| Ok::<_, std::io::Error>(near)).ok();
        let number = near.as_ref().unwrap().as_fd().as_raw_fd();
        let (mut own, process) = (Some(Own::new(Tells(tells))), Process::this());
        let child = forked(|| {
            let is_other = !process.is_this() && !open().descriptors.contains(&number);
            drop(own.take());
            drop(near.take());
            // The lock is free, and the number is not that of another file.
            let mine = Kept::open(|| UnixStream::pair().map(|(mine, _)| mine)).unwrap();
            let is_known = open().descriptors.contains(&mine.as_fd().as_raw_fd());
            waits.read_exact(&mut [0]).is_ok() && is_other && is_known
        });
        assert!(process.is_this() && open().descriptors.contains(&number));
        near.take().unwrap().write_all(b"x").unwrap();
        let mut read = Vec::new();
        far.read_to_end(&mut read).unwrap();
        assert_eq!(read, b"x", "the child lives, and does not keep it");
        assert!(!open().descriptors.contains(&number));
        lives.write_all(b"y").unwrap();
        assert!(outcome(child));
        drop(own);
        told.read_exact(&mut [0; 7]).unwrap();
        assert_eq!(told.read(&mut [0]).unwrap(), 0, "it was dropped once");
    }

    #[test]
    fn memory_of_a_device_is_a_copy_where_the_device_is_left() {
        // A memory file is the device.
        let (file, bytes) = (memfd_create("device", MemfdFlags::CLOEXEC).unwrap(), 8192);
        ftruncate(&file, bytes as u64).unwrap();
        let device = Mapping::twice(file.as_fd(), bytes).unwrap();
        let map = || Arc::new(Mapping::twice(file.as_fd(), bytes).unwrap().copied_in_children());
        let write = |value: u8| {
            // SAFETY: no slice of it is alive.
            unsafe { device.slice_mut(0, bytes) }.fill(value);
        };
        for leaves in [false, true] {
            let mapping = map();
            write(1);
            // Across the end of the ring.
            // SAFETY: an address within the mapping.
            let at = unsafe { mapping.base().as_ptr().add(bytes - 8) };
            let view = mapping.view(at, 16);
            let shows = || {
                // SAFETY: it is mapped while the view is there.
                unsafe { std::slice::from_raw_parts(view.address() as *const u8, view.bytes()) }.to_vec()
            };
            if leaves {
                mapping.leave_device();
                drop(mapping);
                write(2);
                assert_eq!(shows(), [1; 16]);
            } else {
                let (mut go, mut gone) = UnixStream::pair().unwrap();
                let child = forked(|| {
                    gone.write_all(b"x").unwrap();
                    gone.read_exact(&mut [0]).is_ok() && shows() == [1; 16]
                });
                go.read_exact(&mut [0]).unwrap();
                write(2);
                go.write_all(b"x").unwrap();
                assert!(outcome(child));
                assert_eq!(shows(), [2; 16], "here it is the device");
            }
        }
    }
}

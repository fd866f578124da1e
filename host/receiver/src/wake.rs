//! An event file descriptor: wakes a thread, or an async runtime, that waits for it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{eventfd, EventfdFlags, PollFd, PollFlags, Timespec};

use crate::fork::Kept;

/// A Linux eventfd. Readable after [`Wake::notify`] until [`Wake::clear`].
#[derive(Debug)]
pub struct Wake(Kept<OwnedFd>);

impl Wake {
    /// A new one, not notified.
    ///
    /// # Errors
    /// The operating system's, of eventfd.
    pub fn new() -> io::Result<Wake> {
        Ok(Wake(Kept::open(|| eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK))?))
    }

    /// Makes the descriptor readable.
    pub fn notify(&self) {
        // It fails when its counter is full alone, and then it is readable already.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    /// Makes the descriptor unreadable.
    pub fn clear(&self) {
        // It fails where nothing was notified alone.
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}

impl AsFd for Wake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Sleeps until one of the descriptors is readable or in error, the time is over, or a signal came;
/// tells which are ready.
pub fn poll<const N: usize>(fds: &mut [(BorrowedFd<'_>, bool); N], timeout: Option<Duration>) {
    let mut polls = fds.map(|(fd, _)| PollFd::from_borrowed_fd(fd, PollFlags::IN));
    // One that is too long for the kernel has no end.
    let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
    let ready = rustix::event::poll(&mut polls, timeout.as_ref()).unwrap_or(0);
    for (fd, poll) in fds.iter_mut().zip(&polls) {
        fd.1 = ready > 0 && !poll.revents().is_empty();
    }
}

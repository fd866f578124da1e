//! An event file descriptor: wakes a thread, or an async runtime, that waits for it.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// A Linux eventfd. Readable after [`Wake::notify`] until [`Wake::clear`].
#[derive(Debug)]
pub struct Wake(OwnedFd);

impl Wake {
    /// A new one, not notified.
    ///
    /// # Errors
    /// The operating system's, of eventfd.
    pub fn new() -> io::Result<Wake> {
        // SAFETY: a plain system call; the descriptor is checked and owned from here on.
        unsafe {
            let fd = libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(Wake(OwnedFd::from_raw_fd(fd)))
        }
    }

    /// Makes the descriptor readable.
    pub fn notify(&self) {
        let one = 1u64.to_ne_bytes();
        // SAFETY: writes 8 bytes from a live buffer. The only failure is a full counter, and then the
        // descriptor is readable already.
        unsafe { libc::write(self.0.as_raw_fd(), one.as_ptr().cast(), one.len()) };
    }

    /// Makes the descriptor unreadable.
    pub fn clear(&self) {
        let mut count = [0u8; 8];
        // SAFETY: reads at most 8 bytes into a live buffer. It fails only where nothing was notified.
        unsafe { libc::read(self.0.as_raw_fd(), count.as_mut_ptr().cast(), count.len()) };
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
    let mut polls = fds.map(|(fd, _)| libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 });
    let timeout = timeout.map(|timeout| libc::timespec {
        tv_sec: libc::time_t::try_from(timeout.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: timeout.subsec_nanos().into(),
    });
    let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the array is live and its length is given; the time is live or null, the signal mask null.
    let ready = unsafe { libc::ppoll(polls.as_mut_ptr(), polls.len() as libc::nfds_t, timeout, std::ptr::null()) };
    for (fd, poll) in fds.iter_mut().zip(&polls) {
        fd.1 = ready > 0 && poll.revents != 0;
    }
}

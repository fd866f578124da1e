//! Writing to a pipe, a socket or a terminal, without a limit of time until the end is asked for, and with one from then on.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::fs::OFlags;

use crate::sink::Stopping;

/// How often is looked whether the end was asked for.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// A reader that takes nothing for so long after the end was asked for is not waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// Bytes that a pipe has room for when it has some (`PIPE_BUF`).
const SOME: usize = 4096;

/// See the module.
pub(crate) struct Pipe {
    file: File,
    /// Bytes of one write, so that it does not wait.
    most: usize,
    stopping: Stopping,
}

impl Pipe {
    /// `None`: this is not a pipe, a socket or a device such as a terminal.
    ///
    /// # Errors
    /// There are no file descriptors.
    pub fn of(file: &File, stopping: &Stopping) -> io::Result<Option<Pipe>> {
        let kind = file.metadata()?.file_type();
        if !kind.is_fifo() && !kind.is_socket() && !kind.is_char_device() {
            return Ok(None);
        }
        // Opened again: who else has this one, as standard output, does not expect writes that do not wait. Sockets cannot be opened, nor
        // pipes of other users.
        let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits() as i32;
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let (file, most) = match OpenOptions::new().write(true).custom_flags(flags).open(path) {
            Ok(file) => (file, usize::MAX),
            Err(_) => (file.try_clone()?, SOME),
        };
        Ok(Some(Pipe { file, most, stopping: stopping.clone() }))
    }

    /// Waits a moment until it has room, or is broken, which a write tells.
    fn has_room(&self) -> bool {
        poll(&mut [PollFd::new(&self.file, PollFlags::OUT)], Some(&LOOK)).is_ok_and(|ready| ready > 0)
    }

    /// Writes all of it.
    ///
    /// # Errors
    /// The operating system's; the reader takes nothing after the end was asked for.
    pub fn write_all(&self, mut data: &[u8]) -> io::Result<()> {
        let mut since = None;
        while !data.is_empty() {
            if self.has_room() {
                match (&self.file).write(&data[..data.len().min(self.most)]) {
                    Ok(written) => {
                        data = &data[written..];
                        since = None;
                    }
                    Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                    Err(error) => return Err(error),
                }
            } else if self.stopping.load(Ordering::Relaxed)
                && since.get_or_insert_with(Instant::now).elapsed() >= PATIENCE
            {
                let seconds = PATIENCE.as_secs();
                let what = format!("its reader has taken nothing for {seconds} s since the end was asked for");
                return Err(io::Error::other(what));
            }
        }
        Ok(())
    }
}

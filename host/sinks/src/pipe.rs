//! Writing to a pipe, without a limit of time until the end is asked for, and with one from then on.

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

/// See the module.
pub(crate) struct Pipe {
    file: File,
    stopping: Stopping,
}

impl Pipe {
    /// `None`: this is not a pipe, or it has no reader any more, which a write tells.
    pub fn of(file: &File, stopping: &Stopping) -> Option<Pipe> {
        if !file.metadata().is_ok_and(|found| found.file_type().is_fifo()) {
            return None;
        }
        // Opened again: who else has this one, as standard output, does not expect writes that do not wait.
        let flags = OFlags::NONBLOCK.bits() as i32;
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let file = OpenOptions::new().write(true).custom_flags(flags).open(path).ok()?;
        Some(Pipe { file, stopping: stopping.clone() })
    }

    /// Writes all of it.
    ///
    /// # Errors
    /// The operating system's; the reader takes nothing after the end was asked for.
    pub fn write_all(&self, mut data: &[u8]) -> io::Result<()> {
        let mut since = None;
        while !data.is_empty() {
            match (&self.file).write(data) {
                Ok(written) => {
                    data = &data[written..];
                    since = None;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let stops = self.stopping.load(Ordering::Relaxed);
                    if stops && since.get_or_insert_with(Instant::now).elapsed() >= PATIENCE {
                        let seconds = PATIENCE.as_secs();
                        let what = format!("its reader has taken nothing for {seconds} s since the end was asked for");
                        return Err(io::Error::other(what));
                    }
                    // An error is that of the next write.
                    let _ = poll(&mut [PollFd::new(&self.file, PollFlags::OUT)], Some(&LOOK));
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

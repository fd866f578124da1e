//! Standard error that keeps no program waiting: a terminal may be stopped (Ctrl-S), and a pipe may have a reader that reads nothing.
//! What is not taken waits in memory, up to a limit.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

use rustix::event::{poll, PollFd, PollFlags, Timespec};

/// Bytes that may wait.
const MOST: usize = 1 << 20;
/// Bytes that are written at once to what may wait: a pipe that takes any takes so many.
const TOGETHER: usize = 4096;
/// How long the end of a program waits for somebody who takes nothing.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often is looked whether more is taken.
const TICK: Duration = Duration::from_millis(50);

/// What was not taken yet.
struct Waiting {
    text: Vec<u8>,
    /// Messages for which there was no room.
    lost: u64,
    /// A thread looks after it.
    is_watched: bool,
}

static WAITING: Mutex<Waiting> = Mutex::new(Waiting { text: Vec::new(), lost: 0, is_watched: false });

fn waiting() -> MutexGuard<'static, Waiting> {
    WAITING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The same terminal or pipe, which never waits: other programs that have it do not see that. None: it is something else.
fn own() -> Option<&'static File> {
    static OWN: OnceLock<Option<File>> = OnceLock::new();
    let open = || {
        let kind = File::from(io::stderr().as_fd().try_clone_to_owned().ok()?).metadata().ok()?.file_type();
        let may_wait = kind.is_fifo() || kind.is_char_device();
        let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
        may_wait.then(|| OpenOptions::new().write(true).custom_flags(flags).open("/proc/self/fd/2").ok()).flatten()
    };
    OWN.get_or_init(open).as_ref()
}

/// True if it takes something now.
pub fn is_ready() -> bool {
    let stderr = io::stderr();
    let mut fds = [PollFd::new(&stderr, PollFlags::OUT)];
    // An error is one of who writes.
    !matches!(poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })), Ok(0))
}

/// Writes a part; 0: nothing is taken now.
fn write(text: &[u8]) -> io::Result<usize> {
    match own() {
        Some(own) => match (&*own).write(text) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(0),
            written => written,
        },
        None if is_ready() => io::stderr().write(&text[..text.len().min(TOGETHER)]),
        None => Ok(0),
    }
}

impl Waiting {
    /// Writes what is taken now; true if it was something.
    fn flush(&mut self) -> bool {
        let before = self.text.len();
        while !self.text.is_empty() {
            match write(&self.text) {
                Ok(0) => break,
                Ok(taken) => drop(self.text.drain(..taken)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // What cannot be told cannot be told anywhere else.
                Err(_) => self.text.clear(),
            }
        }
        if self.text.is_empty() && self.lost > 0 {
            let lost = std::mem::take(&mut self.lost);
            self.text = format!("fadelink: {lost} messages were left out, for standard error took none\n").into_bytes();
        }
        self.text.len() < before
    }
}

/// Writes what waits, whenever it is taken.
fn watch() {
    loop {
        std::thread::sleep(TICK);
        let mut waiting = waiting();
        waiting.flush();
        if waiting.text.is_empty() {
            waiting.is_watched = false;
            return;
        }
    }
}

/// Writes whole lines, now or when they are taken.
pub fn tell(lines: &[u8]) {
    let mut waiting = waiting();
    if waiting.text.len() + lines.len() <= MOST {
        waiting.text.extend(lines);
    } else {
        waiting.lost += 1;
    }
    waiting.flush();
    if !waiting.text.is_empty() && !waiting.is_watched {
        // Without a thread the next message writes it.
        waiting.is_watched = Builder::new().name("stderr".into()).spawn(watch).is_ok();
    }
}

/// True if lines wait: those that come now are behind them.
pub fn has_waiting() -> bool {
    !waiting().text.is_empty()
}

/// The program ends: writes what waits, as long as any of it is taken.
pub fn end() {
    let mut taken = Instant::now();
    while has_waiting() && taken.elapsed() < PATIENCE {
        if waiting().flush() {
            taken = Instant::now();
        } else {
            std::thread::sleep(TICK);
        }
    }
}

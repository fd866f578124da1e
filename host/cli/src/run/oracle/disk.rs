//! A disk that fails from a random byte on. This program's own `write`, `fsync` and `fdatasync` stand before those of the C
//! library, as a library in LD_PRELOAD does, so that the sinks are those of the product. Other files are written as ever.

use std::ffi::c_void;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// How it fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Each write and sync; the first write is short.
    All,
    /// Each write; the first one is short.
    Full,
    /// One write.
    OneWrite,
    /// Each sync.
    Syncs,
    /// One sync.
    OneSync,
    /// It is well, but another program removes the file that is written.
    Removed,
    /// Another program puts a copy in its place.
    Replaced,
}

impl Way {
    fn fails_writes(self) -> bool {
        matches!(self, Way::All | Way::Full | Way::OneWrite)
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Fault {
    pub way: Way,
    /// Bytes of all files before it fails.
    pub from: u64,
    /// The end of the names of files that it concerns.
    pub suffix: &'static str,
}

impl Fault {
    pub fn any(random: &mut fastrand::Rng, bytes: u64) -> Fault {
        let ways = [Way::All, Way::Full, Way::OneWrite, Way::Syncs, Way::OneSync, Way::Removed, Way::Replaced];
        let way = *random.choice(&ways).unwrap_or(&Way::All);
        let suffix = *random.choice(&[".dat", ".dat", ".hashes", ""]).unwrap_or(&"");
        Fault { way, from: random.u64(0..=bytes), suffix }
    }
}

#[derive(Debug, Default)]
struct State {
    fault: Option<Fault>,
    written: u64,
    /// Faults so far.
    failed: u64,
    /// Folders of programs that were killed: nothing is written there any more.
    frozen: Vec<PathBuf>,
}

impl State {
    fn is_frozen(&self, path: &Path) -> bool {
        self.frozen.iter().any(|folder| path.starts_with(folder))
    }
}

/// A folder on such a disk, until this is dropped.
pub struct Disk {
    folder: PathBuf,
    state: Arc<Mutex<State>>,
}

type Folders = Vec<(PathBuf, Arc<Mutex<State>>)>;

static FOLDERS: RwLock<Folders> = RwLock::new(Vec::new());
/// Folders: without any, files are not looked at.
static COUNT: AtomicUsize = AtomicUsize::new(0);

impl Disk {
    pub fn new(folder: &Path, fault: Option<Fault>) -> Disk {
        let state = Arc::new(Mutex::new(State { fault, ..State::default() }));
        FOLDERS.write().unwrap_or_else(PoisonError::into_inner).push((folder.to_owned(), state.clone()));
        COUNT.fetch_add(1, Ordering::SeqCst);
        Disk { folder: folder.to_owned(), state }
    }

    /// Faults so far.
    pub fn failed(&self) -> u64 {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).failed
    }

    /// The program that writes to `folder` is killed.
    pub fn freeze(&self, folder: &Path) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).frozen.push(folder.to_owned());
    }

    /// It is mended: what was written stays. False: it was well.
    pub fn mend(&self) -> bool {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).fault.take().is_some()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        COUNT.fetch_sub(1, Ordering::SeqCst);
        FOLDERS.write().unwrap_or_else(PoisonError::into_inner).retain(|(folder, _)| *folder != self.folder);
    }
}

/// The file behind a descriptor, if it is on such a disk.
fn found(fd: i32) -> Option<(PathBuf, Arc<Mutex<State>>)> {
    if COUNT.load(Ordering::Relaxed) == 0 {
        return None;
    }
    let path = std::fs::read_link(format!("/proc/self/fd/{fd}")).ok()?;
    let folders = FOLDERS.read().unwrap_or_else(PoisonError::into_inner);
    let state = folders.iter().find(|(folder, _)| path.starts_with(folder)).map(|(_, state)| state.clone())?;
    Some((path, state))
}

/// How many of `count` bytes can be written.
fn room(fd: i32, count: usize) -> io::Result<usize> {
    let Some((path, state)) = found(fd) else { return Ok(count) };
    let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
    if state.is_frozen(&path) {
        return Err(rustix::io::Errno::IO.into());
    }
    let before = state.written;
    let fault = state.fault.filter(|fault| path.to_string_lossy().ends_with(fault.suffix));
    if let Some(fault) =
        fault.filter(|fault| matches!(fault.way, Way::Removed | Way::Replaced) && before + count as u64 > fault.from)
    {
        state.written += count as u64;
        state.failed += 1;
        state.fault = None;
        drop(state);
        harm(&path, fault.way)?;
        return Ok(count);
    }
    let left = fault.filter(|fault| fault.way.fails_writes());
    let Some(Fault { way, from, .. }) = left.filter(|fault| before + count as u64 > fault.from) else {
        state.written += count as u64;
        return Ok(count);
    };
    let rest = from.saturating_sub(before) as usize;
    if rest > 0 {
        state.written += rest as u64;
        return Ok(rest);
    }
    state.failed += 1;
    if way == Way::OneWrite {
        state.fault = None;
    }
    Err(if way == Way::Full { rustix::io::Errno::NOSPC } else { rustix::io::Errno::IO }.into())
}

/// What another program does to a file.
fn harm(path: &Path, way: Way) -> io::Result<()> {
    if way == Way::Removed {
        return std::fs::remove_file(path);
    }
    let mut copy = path.as_os_str().to_owned();
    copy.push(".copy");
    std::fs::copy(path, &copy)?;
    std::fs::rename(copy, path)
}

/// What was not synced is lost when a sync has failed: here the last word is.
fn lose(path: &Path) -> io::Result<()> {
    let mut file = std::fs::OpenOptions::new().read(true).write(true).open(path)?;
    let mut word = [0; 8];
    file.seek(SeekFrom::End(-8))?;
    file.read_exact(&mut word)?;
    file.seek(SeekFrom::End(-8))?;
    file.write_all(&word.map(|byte| !byte))
}

/// Whether a file can be synced. No disk is waited for: a power cut of the computer is not tried.
fn synced(fd: i32) -> Option<io::Result<()>> {
    let (path, state) = found(fd)?;
    let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
    if state.is_frozen(&path) {
        return Some(Err(rustix::io::Errno::IO.into()));
    }
    let written = state.written;
    let fault = state.fault.filter(|fault| path.to_string_lossy().ends_with(fault.suffix) && written >= fault.from);
    let Some(Fault { way, .. }) = fault.filter(|fault| matches!(fault.way, Way::All | Way::Syncs | Way::OneSync))
    else {
        return Some(Ok(()));
    };
    state.failed += 1;
    if way == Way::OneSync {
        state.fault = None;
    }
    drop(state);
    if path.extension().is_some_and(|extension| extension == "dat") {
        let _ = lose(&path);
    }
    Some(Err(rustix::io::Errno::IO.into()))
}

fn as_c(error: &io::Error) -> libc::c_int {
    // SAFETY: the place of this thread's errno.
    unsafe { *libc::__errno_location() = error.raw_os_error().unwrap_or(libc::EIO) };
    -1
}

/// # Safety
/// As of write(2).
#[no_mangle]
unsafe extern "C" fn write(fd: i32, data: *const c_void, count: usize) -> isize {
    match room(fd, count) {
        // SAFETY: the caller's.
        Ok(count) => unsafe { libc::syscall(libc::SYS_write, fd, data, count) as isize },
        Err(error) => as_c(&error) as isize,
    }
}

#[no_mangle]
extern "C" fn fdatasync(fd: i32) -> i32 {
    match synced(fd) {
        // SAFETY: a descriptor is all that it takes.
        None => unsafe { libc::syscall(libc::SYS_fdatasync, fd) as i32 },
        Some(Ok(())) => 0,
        Some(Err(error)) => as_c(&error),
    }
}

#[no_mangle]
extern "C" fn fsync(fd: i32) -> i32 {
    match synced(fd) {
        // SAFETY: a descriptor is all that it takes.
        None => unsafe { libc::syscall(libc::SYS_fsync, fd) as i32 },
        Some(Ok(())) => 0,
        Some(Err(error)) => as_c(&error),
    }
}

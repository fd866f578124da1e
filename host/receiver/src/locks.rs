//! Lock files. A lock ends with its program, however that ends; a file that is left behind holds nothing.
//!
//! The locks are of open file descriptions (fcntl(2)): they are not those of a process, so two threads exclude each other,
//! and one can ask for a lock without taking it.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::commons::{self, named};
use crate::fork::{Kept, Process};
use crate::holder::{self, Holder};

/// How often a waiting program looks.
pub(crate) const INTERVAL: Duration = Duration::from_micros(200);
/// Nobody outside the group reads it: who can read a file can lock it.
const PERMISSIONS: u32 = 0o660;
/// How often a file that was removed meanwhile is opened again, and one that its maker has not given to the group yet.
const ATTEMPTS: u32 = 1000;
const UNREADABLE: u32 = 10;

/// The bytes of a file that are locked: by the one who has it, and by the next one.
const HELD: i64 = 0;
const TURN: i64 = 1;
const BOTH: (i64, i64) = (HELD, 2);

/// A file that is locked; unlocked when dropped, and removed if it was not taken in turn.
#[derive(Debug)]
pub(crate) struct Lock {
    file: Kept<File>,
    identity: Identity,
    path: PathBuf,
    /// The file stays.
    keeps: bool,
    /// A forked process that drops its copy does not unlock it.
    process: Process,
}

/// An operation on the locks of `length` bytes from `first` on. True if another description has one of them.
fn control(file: &File, command: libc::c_int, kind: libc::c_int, (first, length): (i64, i64)) -> io::Result<bool> {
    // SAFETY: an all-zero structure is valid, and the call fills no more than it.
    let (result, lock) = unsafe {
        let mut lock: libc::flock = std::mem::zeroed();
        lock.l_type = kind as libc::c_short;
        lock.l_whence = libc::SEEK_SET as libc::c_short;
        (lock.l_start, lock.l_len) = (first, length);
        (libc::fcntl(file.as_raw_fd(), command, &raw mut lock), lock)
    };
    let is_asked = command == libc::F_OFD_GETLK;
    match result {
        0.. => Ok(is_asked && i32::from(lock.l_type) != libc::F_UNLCK),
        _ => match io::Error::last_os_error() {
            error if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) && !is_asked => Ok(true),
            error => Err(error),
        },
    }
}

fn take_byte(file: &File, byte: i64) -> io::Result<bool> {
    Ok(!control(file, libc::F_OFD_SETLK, libc::F_WRLCK, (byte, 1))?)
}

fn give_back(file: &File, bytes: (i64, i64)) -> io::Result<()> {
    control(file, libc::F_OFD_SETLK, libc::F_UNLCK, bytes).map(drop)
}

/// True if another description has a byte, though it may read the file alone.
fn is_taken(file: &File, byte: i64) -> io::Result<bool> {
    control(file, libc::F_OFD_GETLK, libc::F_WRLCK, (byte, 1))
}

/// Which file it is.
type Identity = (u64, u64);

fn identity(found: &Metadata) -> Identity {
    (found.dev(), found.ino())
}

/// True if the path leads to this file: its last holder has not removed it.
fn leads_to(path: &Path, file: Identity) -> io::Result<bool> {
    match std::fs::symlink_metadata(path) {
        Ok(found) => Ok(identity(&found) == file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Opens the file. `None`: its permissions say that another user's program has just made it, and has it.
fn open(path: &Path) -> io::Result<Option<(Kept<File>, Metadata)>> {
    for _ in 0..UNREADABLE {
        let mut found = None;
        let opened = Kept::open(|| {
            let (file, metadata) = commons::open(path, PERMISSIONS)?;
            found = Some(metadata);
            io::Result::Ok(file)
        });
        match opened.map(|file| (file, found.expect("with the file"))) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => std::thread::sleep(INTERVAL),
            opened => return opened.map(Some).map_err(|error| named(error, path)),
        }
    }
    Ok(None)
}

/// Locks the file `path`; who has it, if that is another one.
///
/// # Errors
/// The operating system's, or something else is there than an ordinary file.
pub(crate) fn take(path: &Path) -> io::Result<Result<Lock, Holder>> {
    take_with(path, false, |file| take_byte(file, HELD))
}

/// As [`take`], when those before are done, until `end`. One who takes it again at once lets the next one have it first. The
/// file stays: to make and to remove it takes longer than all else.
///
/// # Errors
/// As [`take`].
pub(crate) fn take_in_turn(path: &Path, end: Instant) -> io::Result<Result<Lock, Holder>> {
    loop {
        let taken = take_with(path, true, |file| Ok(until(end, file, TURN)? && until(end, file, HELD)?))?;
        if let Ok(lock) = &taken {
            give_back(&lock.file, (TURN, 1))?;
        } else if Instant::now() < end {
            std::thread::sleep(INTERVAL);
            continue;
        }
        return Ok(taken);
    }
}

fn until(end: Instant, file: &File, byte: i64) -> io::Result<bool> {
    while !take_byte(file, byte)? {
        if Instant::now() >= end {
            return Ok(false);
        }
        std::thread::sleep(INTERVAL);
    }
    Ok(true)
}

fn take_with(path: &Path, keeps: bool, lock: impl Fn(&File) -> io::Result<bool>) -> io::Result<Result<Lock, Holder>> {
    for _ in 0..ATTEMPTS {
        let Some((file, found)) = open(path)? else { break };
        let is_taken = lock(&file);
        if matches!(is_taken, Ok(true)) && leads_to(path, identity(&found))? {
            sign(&file);
            let (path, process) = (path.to_owned(), Process::this());
            return Ok(Ok(Lock { file, identity: identity(&found), path, keeps, process }));
        }
        give_back(&file, BOTH)?;
        if !is_taken.map_err(|error| named(error, path))? {
            return Ok(Err(holder_in(&file)));
        }
    }
    Ok(Err(Holder::Unknown))
}

/// Writes who has it. A holder that cannot tell has it all the same.
fn sign(file: &File) {
    // What was there before is behind its line feed.
    let _ = file.write_at(&Holder::own(), 0);
}

fn holder_in(file: &File) -> Holder {
    let mut text = [0; holder::BYTES];
    let length = file.read_at(&mut text, 0).unwrap_or(0);
    Holder::parse(&text[..length])
}

/// True if somebody has locked the file, as far as this program may know.
pub(crate) fn is_locked(path: &Path) -> bool {
    match OpenOptions::new().read(true).custom_flags(commons::FLAGS).open(path) {
        Ok(file) => is_taken(&file, HELD).unwrap_or(false),
        // It is there, and of a group that this program is not in.
        Err(error) => error.kind() == io::ErrorKind::PermissionDenied,
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if !self.process.is_this() {
            return;
        }
        // One that waits for it would have to begin anew.
        let is_wanted = || is_taken(&self.file, TURN).unwrap_or(true);
        if !self.keeps && !is_wanted() && leads_to(&self.path, self.identity).unwrap_or(false) {
            let _ = std::fs::remove_file(&self.path);
        }
        // A child of this process may have the description still.
        let _ = give_back(&self.file, BOTH);
    }
}

#[cfg(test)]
mod tests;

//! The claim of the names of a sink: locks on bytes of its first file, far behind its data, as long as its run goes on. They are of open
//! file descriptions (fcntl(2)), so that two sinks of one program exclude each other too, and readers are not kept out as by
//! the lock of a file that is written.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use rustix::io::Errno;

/// Of the file itself.
const NAME: i64 = i64::MAX - 2;
/// Of the files with numbers that may follow it.
const NUMBERS: i64 = i64::MAX - 1;

/// True if somebody else has the byte, which is locked otherwise, or only asked for.
fn control(file: &File, command: libc::c_int, byte: i64) -> io::Result<bool> {
    // SAFETY: an all-zero structure is valid, and the call fills no more than it.
    let (result, lock) = unsafe {
        let mut lock: libc::flock = std::mem::zeroed();
        (lock.l_type, lock.l_whence) = (libc::F_WRLCK as libc::c_short, libc::SEEK_SET as libc::c_short);
        (lock.l_start, lock.l_len) = (byte, 1);
        (libc::fcntl(file.as_raw_fd(), command, &raw mut lock), lock)
    };
    if result >= 0 {
        return Ok(command == libc::F_OFD_GETLK && i32::from(lock.l_type) != libc::F_UNLCK);
    }
    match Errno::from_io_error(&io::Error::last_os_error()) {
        Some(Errno::AGAIN | Errno::ACCESS) => Ok(true),
        // A file system without locks: what another writer does is found at the end.
        Some(Errno::NOSYS | Errno::NOTSUP | Errno::NOLCK | Errno::INVAL) => Ok(false),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Claims the names of a sink by its first file, which is open for writing: with `numbers` also those that follow. False: another sink
/// has it.
///
/// # Errors
/// The operating system's.
pub fn take(first: &File, numbers: bool) -> io::Result<bool> {
    let is_taken = control(first, libc::F_OFD_SETLK, NAME)? || (numbers && control(first, libc::F_OFD_SETLK, NUMBERS)?);
    Ok(!is_taken)
}

/// True if a sink has claimed the name of this file.
///
/// # Errors
/// The operating system's.
pub fn is_name_taken(file: &File) -> io::Result<bool> {
    control(file, libc::F_OFD_GETLK, NAME)
}

/// True if a sink whose first file this is has claimed those with numbers.
///
/// # Errors
/// The operating system's.
pub fn are_numbers_taken(first: &File) -> io::Result<bool> {
    control(first, libc::F_OFD_GETLK, NUMBERS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_that_of_one_and_ends_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let open = || File::options().append(true).create(true).open(&path).unwrap();
        let (first, other, reader) = (open(), open(), || File::open(&path).unwrap());
        assert!(!is_name_taken(&reader()).unwrap() && !are_numbers_taken(&reader()).unwrap());
        assert!(take(&first, false).unwrap() && take(&first, false).unwrap(), "it has its own");
        assert!(!take(&other, true).unwrap() && is_name_taken(&reader()).unwrap());
        assert!(!are_numbers_taken(&reader()).unwrap());
        assert!(take(&first, true).unwrap() && are_numbers_taken(&reader()).unwrap());
        let copy = first.try_clone().unwrap();
        drop(first);
        assert!(is_name_taken(&reader()).unwrap(), "it is held");
        drop(copy);
        assert!(take(&other, true).unwrap());
    }
}

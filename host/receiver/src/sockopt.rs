//! Options of sockets whose value is a plain structure.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd};

use crate::interface::explain;

/// Sets an option; an error says `what` was wanted.
pub(crate) fn set<T>(
    socket: &impl AsFd,
    level: libc::c_int,
    option: libc::c_int,
    value: &T,
    what: &str,
) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the value is live and its size is given.
    let result =
        unsafe { libc::setsockopt(socket.as_fd().as_raw_fd(), level, option, (value as *const T).cast(), length) };
    if result < 0 {
        return Err(explain(what));
    }
    Ok(())
}

/// Asks for an option; an error says `what` was asked.
pub(crate) fn get<T>(
    socket: &impl AsFd,
    level: libc::c_int,
    option: libc::c_int,
    value: &mut T,
    what: &str,
) -> io::Result<()> {
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the value is live and its size is given.
    let result = unsafe {
        libc::getsockopt(socket.as_fd().as_raw_fd(), level, option, (value as *mut T).cast(), &raw mut length)
    };
    if result < 0 {
        return Err(explain(what));
    }
    Ok(())
}

//! Paths of UNIX sockets of any length. The kernel takes 107 bytes: longer ones are reached by way of a folder that is open, and
//! longer names by way of a shorter one.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{open, renameat_with, Mode, OFlags, RenameFlags, CWD};
use rustix::io::Errno;
use rustix::net::SocketAddrUnix;

/// Longest path of a socket.
pub const LONGEST: usize = 107;

/// A short path to what has a long one.
struct Short {
    path: PathBuf,
    /// What it begins at.
    _opened: Option<OwnedFd>,
}

fn by_descriptor(path: &Path, flags: OFlags, name: Option<&OsStr>) -> io::Result<Short> {
    let opened = open(path, flags | OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let mut short = PathBuf::from(format!("/proc/self/fd/{}", opened.as_raw_fd()));
    short.extend(name);
    Ok(Short { path: short, _opened: Some(opened) })
}

fn is_short(path: &Path) -> bool {
    path.as_os_str().len() <= LONGEST
}

/// The folder of a path, and its name there.
fn parts(path: &Path) -> io::Result<(&Path, &OsStr)> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "expected a name"))?;
    Ok((folder, name))
}

/// Binds a socket.
///
/// # Errors
/// The operating system's: [`io::ErrorKind::AddrInUse`] if something is there.
pub fn bind(socket: impl AsFd, path: &Path) -> io::Result<()> {
    if is_short(path) {
        return Ok(rustix::net::bind(socket, &SocketAddrUnix::new(path)?)?);
    }
    let (folder, name) = parts(path)?;
    let short = by_descriptor(folder, OFlags::DIRECTORY, Some(name))?;
    if is_short(&short.path) {
        return Ok(rustix::net::bind(socket, &SocketAddrUnix::new(&short.path)?)?);
    }
    let other = short.path.with_file_name(format!(".socket-{}", std::process::id()));
    bind_by(socket.as_fd(), &other, &short.path)
}

/// Binds a socket by another name in the same folder, which it has for a moment.
fn bind_by(socket: BorrowedFd, other: &Path, path: &Path) -> io::Result<()> {
    rustix::net::bind(socket, &SocketAddrUnix::new(other)?)?;
    renameat_with(CWD, other, CWD, path, RenameFlags::NOREPLACE).map_err(|error| {
        let _ = std::fs::remove_file(other);
        if error == Errno::EXIST { Errno::ADDRINUSE } else { error }.into()
    })
}

/// Connects a socket.
///
/// # Errors
/// The operating system's.
pub fn connect(socket: impl AsFd, path: &Path) -> io::Result<()> {
    if is_short(path) {
        return Ok(rustix::net::connect(socket, &SocketAddrUnix::new(path)?)?);
    }
    let short = by_descriptor(path, OFlags::empty(), None)?;
    Ok(rustix::net::connect(socket, &SocketAddrUnix::new(&short.path)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::net::{UnixListener, UnixStream};

    fn stream() -> OwnedFd {
        use rustix::net::{socket_with, AddressFamily, SocketFlags, SocketType};
        socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap()
    }

    /// A listener at the path, and one that connects to it.
    fn both_ways(path: &Path) {
        let socket = stream();
        assert!(connect(stream(), path).is_err());
        bind(&socket, path).unwrap();
        rustix::net::listen(&socket, 1).unwrap();
        let listener = UnixListener::from(socket);
        let client = stream();
        connect(&client, path).unwrap();
        listener.accept().unwrap();
        drop((UnixStream::from(client), listener));
        let error = bind(stream(), path).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse, "{error}");
        assert_eq!(connect(stream(), path).unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
        let folder = path.parent().unwrap();
        assert_eq!(folder.read_dir().unwrap().count(), 1);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn paths_and_names_of_any_length() {
        let base = tempfile::tempdir().unwrap();
        let mut folder = base.path().to_owned();
        for part in [10, 200, 200, 200, 200, 200] {
            folder.push("x".repeat(part));
            std::fs::create_dir(&folder).unwrap();
            for name in ["s".to_owned(), "n".repeat(80), "n".repeat(100), "n".repeat(255)] {
                both_ways(&folder.join(name));
            }
        }
        folder.push(OsStr::from_bytes(b"\xff"));
        std::fs::create_dir(&folder).unwrap();
        both_ways(&folder.join(OsStr::from_bytes(b"a\xff")));
        let error = bind(stream(), &folder.join("none/s")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}

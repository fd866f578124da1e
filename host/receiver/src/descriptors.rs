//! File descriptors of the process. Others may open connections, and so take descriptors that files need: the last ones are kept, and
//! those that a connection will need for its files are promised to it before it is accepted.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::event::EventfdFlags;
use rustix::net::{getsockname, shutdown, AddressFamily, Shutdown, SocketAddrAny, SocketAddrUnix};
use rustix::process::{getrlimit, Resource};

use crate::tcp_info::Info;

/// Descriptors that connections leave for files, and for what else is opened.
const RESERVE: u64 = 128;

/// Those that are promised and not opened yet.
static PROMISED: Mutex<u64> = Mutex::new(0);

fn promised() -> MutexGuard<'static, u64> {
    PROMISED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Descriptors that are kept for their owner, until this is dropped: they are open then, or not wanted any more.
#[derive(Debug, Default)]
pub struct Promise(u64);

impl Promise {
    /// So many of them, or all.
    pub fn split(&mut self, count: u64) -> Promise {
        let count = count.min(self.0);
        self.0 -= count;
        Promise(count)
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        *promised() -= self.0;
    }
}

/// The limit of the process, and how many of that are kept.
fn limit() -> Option<(u64, u64)> {
    let limit = getrlimit(Resource::Nofile).current?;
    Some((limit, RESERVE.min(limit / 4)))
}

/// Descriptors that are open. Without /proc, the lowest number that is free: there are as many below it.
fn open() -> io::Result<u64> {
    match fs::read_dir("/proc/self/fd") {
        // Without that for looking.
        Ok(all) => Ok(all.count().saturating_sub(1) as u64),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Ok(rustix::event::eventfd(0, EventfdFlags::CLOEXEC)?.as_raw_fd() as u64)
        }
        Err(error) => Err(error),
    }
}

/// Promises so many descriptors beside one for the connection itself.
///
/// # Errors
/// The last ones of the process are not for connections.
pub fn promise(count: u64) -> io::Result<Promise> {
    let mut promised = promised();
    if let Some((limit, reserve)) = limit() {
        let open = open()?;
        if open + *promised + count + reserve >= limit {
            return Err(io::Error::other(format!(
                "{open} file descriptors are open, {} are promised to connections, and the last {reserve} of {limit} are kept for files \
                 (ulimit -n)",
                *promised
            )));
        }
    }
    *promised += count;
    Ok(Promise(count))
}

/// True if connections of clients, which are not needed for the data, have to leave: this descriptor of one of them is among the last, and as many as
/// are kept for files stay for connections of boards. A descriptor has the lowest number that is free, so its number tells how many
/// there are.
pub fn is_among_last(descriptor: RawFd) -> bool {
    limit().is_some_and(|(limit, reserve)| descriptor as u64 + 2 * reserve >= limit)
}

/// Where connections are at this side.
#[derive(Debug, PartialEq, Eq)]
pub enum Local {
    /// A TCP port.
    Port(u16),
    /// A UNIX socket; of one without a file its name, behind `@`.
    Path(PathBuf),
}

/// The address of a socket.
fn local(address: SocketAddrAny) -> Option<Local> {
    if address.address_family() == AddressFamily::UNIX {
        let address = SocketAddrUnix::try_from(address).ok()?;
        let in_abstract = || Some([b"@", address.abstract_name()?].concat());
        let path = address.path_bytes().map(<[u8]>::to_vec).or_else(in_abstract)?;
        return Some(Local::Path(OsStr::from_bytes(&path).into()));
    }
    SocketAddr::try_from(address).ok().map(|address| Local::Port(address.port()))
}

/// A connection of a library, if it is still there.
fn of_library(descriptor: RawFd, expected: &Local) -> Option<BorrowedFd<'static>> {
    // SAFETY: a descriptor may be closed by its owner while this looks at it, which the calls of this module tell as an error. If it is
    // another socket by then, it is left alone, unless it is one of the same place.
    let socket = unsafe { BorrowedFd::borrow_raw(descriptor) };
    let found = getsockname(socket).ok().and_then(local);
    (found.as_ref() == Some(expected)).then_some(socket)
}

/// Ends a connection of a library, which closes its descriptor then; false: the library has closed it already, and it is another socket.
pub fn turn_away(descriptor: RawFd, expected: &Local) -> bool {
    of_library(descriptor, expected).is_some_and(|socket| shutdown(socket, Shutdown::Both).is_ok())
}

/// Bytes that have come over a connection of a library; of a UNIX socket that is not known. `None`: the library has closed it.
pub fn came(descriptor: RawFd, expected: &Local) -> Option<u64> {
    let socket = of_library(descriptor, expected)?;
    Some(Info::of(&socket).map_or(0, |info| info.bytes_received))
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

    use super::*;

    #[test]
    fn connections_of_one_place_are_turned_away() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let [unix, tcp] = [Local::Path(path.clone()), Local::Port(0)];
        let listener = UnixListener::bind(&path).unwrap();
        let mut client = UnixStream::connect(&path).unwrap();
        let accepted = listener.accept().unwrap().0;
        assert!(!turn_away(accepted.as_raw_fd(), &tcp) && turn_away(accepted.as_raw_fd(), &unix));
        assert_eq!(client.read(&mut [0]).unwrap(), 0);

        let name = format!("fadelink-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let listener = UnixListener::bind_addr(&address).unwrap();
        let _client = UnixStream::connect_addr(&address).unwrap();
        let accepted = listener.accept().unwrap().0;
        assert!(turn_away(accepted.as_raw_fd(), &Local::Path(format!("@{name}").into())));

        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mut client = TcpStream::connect(address).unwrap();
        let accepted = listener.accept().unwrap().0;
        assert!(!turn_away(accepted.as_raw_fd(), &tcp) && !turn_away(accepted.as_raw_fd(), &unix));
        io::Write::write_all(&mut client, &[0; 7]).unwrap();
        assert_eq!((&accepted).read(&mut [0; 9]).unwrap(), 7);
        let of_port = Local::Port(address.port());
        assert_eq!((came(accepted.as_raw_fd(), &of_port), came(accepted.as_raw_fd(), &tcp)), (Some(7), None));
        assert!(turn_away(accepted.as_raw_fd(), &Local::Port(address.port())));
        assert_eq!(client.read(&mut [0]).unwrap(), 0);
        assert!(!turn_away(fs::File::open(folder.path()).unwrap().as_raw_fd(), &unix), "it is not a socket");
    }

    #[test]
    fn what_is_promised_counts_until_it_is_opened() {
        let (limit, reserve) = limit().unwrap();
        let most = limit - reserve;
        assert!(promise(most).is_err());
        let half = promise(most / 2).unwrap();
        assert!(promise(most / 2).unwrap_err().to_string().contains("are promised to connections"));
        drop(half);
        promise(most / 2).unwrap();
        assert!(is_among_last((limit - 2 * reserve) as i32) && !is_among_last(3));
    }
}

//! Connections of senders in software.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::net::sockopt::set_socket_linger;
use rustix::net::{bind, connect, recv, socket, AddressFamily, RecvFlags, SocketType};

/// Addresses and ports that nobody has had.
static NEXT: AtomicU32 = AtomicU32::new(1);

/// An address of the loopback interface, and a port of a receiver, that no other seed has.
pub fn places() -> (Ipv4Addr, u16) {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let process = 1 + std::process::id() % 200;
    let [a, b, c] = [process + number / 250 / 250, number / 250 % 250, 1 + number % 250].map(|part| part as u8);
    (Ipv4Addr::new(127, a, b, c), 15_000 + (number % 15_000) as u16)
}

/// Connects from an address.
pub fn from(address: Ipv4Addr, to: SocketAddrV4) -> io::Result<TcpStream> {
    let socket: OwnedFd = socket(AddressFamily::INET, SocketType::STREAM, None)?;
    bind(&socket, &SocketAddrV4::new(address, 0))?;
    connect(&socket, &to)?;
    let stream = TcpStream::from(socket);
    stream.set_nodelay(true)?;
    stream.set_nonblocking(true)?;
    Ok(stream)
}

/// What the other end has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Other {
    Listens,
    /// It has closed its direction.
    Closed,
    /// The connection is broken.
    Broken,
}

/// Looks what the other end has done.
pub fn other_end(stream: &TcpStream) -> Other {
    match recv(stream, &mut [0; 64][..], RecvFlags::DONTWAIT).map_err(io::Error::from) {
        Ok((_, 0)) => Other::Closed,
        Ok(_) => Other::Listens,
        Err(error) if error.kind() == ErrorKind::WouldBlock => Other::Listens,
        Err(_) => Other::Broken,
    }
}

/// The state of a connection whose end has come to the other end, which has not closed (include/net/tcp_states.h of Linux).
const FIN_WAIT2: u8 = 5;

/// True if our end of the connection has come to the kernel of the other end, and that has not closed.
pub fn end_has_come(stream: &TcpStream) -> bool {
    let (mut state, mut length) = (0u8, 1);
    // SAFETY: one byte is there, and its size is given.
    let result = unsafe {
        let (level, option) = (libc::IPPROTO_TCP, libc::TCP_INFO);
        libc::getsockopt(stream.as_raw_fd(), level, option, (&raw mut state).cast(), &raw mut length)
    };
    result == 0 && state == FIN_WAIT2
}

/// Ends a connection by RST.
pub fn reset(stream: TcpStream) {
    let _ = set_socket_linger(&stream, Some(Duration::ZERO));
    drop(stream);
}

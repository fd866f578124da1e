//! Claims a FEB for one program on this computer.
//!
//! A claim is an abstract UNIX socket name: bound by one program at a time, gone when it ends however
//! it ends, and local to the network namespace, as the FEB is.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use fadelink_wire::MacAddr;

/// What of a FEB is claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// Its data: one receiver.
    Data,
    /// Its commands: the exactly-once rule needs one sender at a time.
    Commands,
}

/// A FEB claimed; released when dropped.
#[derive(Debug)]
pub struct Claim(#[allow(dead_code)] UnixListener);

fn address(interface: u32, feb: MacAddr, what: Use) -> io::Result<SocketAddr> {
    let what = match what {
        Use::Data => "data",
        Use::Commands => "commands",
    };
    SocketAddr::from_abstract_name(format!("fadelink/{interface}/{feb}/{what}"))
}

/// Claims `feb` behind the interface with index `interface`. `None` if another has it.
///
/// # Errors
/// The operating system's, of a UNIX socket.
pub fn claim(interface: u32, feb: MacAddr, what: Use) -> io::Result<Option<Claim>> {
    match UnixListener::bind_addr(&address(interface, feb, what)?) {
        Ok(listener) => Ok(Some(Claim(listener))),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => Ok(None),
        Err(error) => Err(error),
    }
}

/// True if some program on this computer has claimed the data of `feb`.
pub fn is_claimed(interface: u32, feb: MacAddr) -> bool {
    matches!(claim(interface, feb, Use::Data), Ok(None))
}

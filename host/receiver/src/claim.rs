//! Claims a board for one program on this computer.
//!
//! A claim is an abstract UNIX socket name. One program at a time can bind it, it ends with that program, and it is
//! local to the network namespace, like the FEB.

use std::io;
use std::net::Ipv4Addr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::{Duration, Instant};

use fadelink_wire::MacAddr;

/// What of a FEB is claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// Its data: one receiver.
    Data,
    /// Its commands: the exactly-once rule needs one sender at a time.
    Commands,
}

/// A board claimed; released when dropped.
#[derive(Debug)]
pub struct Claim(#[allow(dead_code)] UnixDatagram);

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
    bind(&address(interface, feb, what)?)
}

/// Claims the slow control of a UDP/IP board: no other request may come between one and its repetition. `None` if another
/// has it.
///
/// # Errors
/// As [`claim`].
pub fn claim_control(board: Ipv4Addr) -> io::Result<Option<Claim>> {
    bind(&SocketAddr::from_abstract_name(format!("fadelink/control/{board}"))?)
}

/// Claims when the one who has it is done, in `patience`.
///
/// # Errors
/// As [`claim`].
pub fn wait(patience: Duration, claim: impl Fn() -> io::Result<Option<Claim>>) -> io::Result<Option<Claim>> {
    let end = Instant::now() + patience;
    loop {
        match claim()? {
            None if Instant::now() < end => std::thread::sleep(Duration::from_micros(200)),
            claim => return Ok(claim),
        }
    }
}

fn bind(address: &SocketAddr) -> io::Result<Option<Claim>> {
    match UnixDatagram::bind_addr(address) {
        Ok(socket) => Ok(Some(Claim(socket))),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => Ok(None),
        Err(error) => Err(error),
    }
}

/// True if some program on this computer has claimed the data of `feb`.
pub fn is_claimed(interface: u32, feb: MacAddr) -> bool {
    // Connects, because binding to check would claim the FEB for a moment.
    let connect = || UnixDatagram::unbound()?.connect_addr(&address(interface, feb, Use::Data)?);
    connect().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_claim_at_a_time_for_each_use() {
        let feb = MacAddr([2, 0xfa, 0xde, 1, 2, 3]);
        let interface = std::process::id() | 1 << 31; // of no real interface
        assert!(!is_claimed(interface, feb));
        let data = claim(interface, feb, Use::Data).unwrap().unwrap();
        assert!(is_claimed(interface, feb) && is_claimed(interface, feb));
        assert!(claim(interface, feb, Use::Data).unwrap().is_none());
        assert!(claim(interface, feb, Use::Commands).unwrap().is_some());
        assert!(claim(interface, MacAddr([2; 6]), Use::Data).unwrap().is_some());
        drop(data);
        assert!(!is_claimed(interface, feb));
        assert!(claim(interface, feb, Use::Data).unwrap().is_some());
    }
}

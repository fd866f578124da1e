//! Claims a board for one program on this computer.
//!
//! A claim is an abstract UNIX socket name. One program at a time can bind it, it ends with that program, and it is
//! local to the network namespace, like the FEB.

use std::io;
use std::net::Ipv4Addr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fadelink_wire::MacAddr;

/// How long those before it may take until a command fails.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often a waiting program looks.
const INTERVAL: Duration = Duration::from_micros(200);

/// A board claimed; released when dropped.
#[derive(Debug)]
pub struct Claim(#[allow(dead_code)] UnixDatagram);

/// FEBs to which this process has a command under way.
static OWN: Mutex<Vec<(u32, MacAddr)>> = Mutex::new(Vec::new());

fn own() -> MutexGuard<'static, Vec<(u32, MacAddr)>> {
    OWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The commands of a FEB claimed; released when dropped.
#[derive(Debug)]
pub struct CommandClaim {
    feb: (u32, MacAddr),
    #[allow(dead_code)]
    claim: Claim,
}

impl CommandClaim {
    fn new(feb: (u32, MacAddr), claim: Claim) -> CommandClaim {
        own().push(feb);
        CommandClaim { feb, claim }
    }
}

impl Drop for CommandClaim {
    fn drop(&mut self) {
        own().retain(|feb| *feb != self.feb);
    }
}

fn data_name(interface: u32, feb: MacAddr) -> String {
    format!("fadelink/{interface}/{feb}/data")
}

/// Claims the data of `feb` behind the interface with index `interface`. `None` if another has it.
///
/// # Errors
/// The operating system's, of a UNIX socket.
pub fn data(interface: u32, feb: MacAddr) -> io::Result<Option<Claim>> {
    bind(&data_name(interface, feb))
}

/// Claims the commands of `feb`, when those before it are done: no other command may come between one and its repetition.
/// `None` if they take too long.
///
/// # Errors
/// As [`data`].
pub fn commands(interface: u32, feb: MacAddr) -> io::Result<Option<CommandClaim>> {
    let claim = in_turn(&commands_name(interface, feb))?;
    Ok(claim.map(|claim| CommandClaim::new((interface, feb), claim)))
}

fn commands_name(interface: u32, feb: MacAddr) -> String {
    format!("fadelink/{interface}/{feb}/commands")
}

/// Before a RESET, which makes the FEB forget the command that it executed last: waits for one of another program that is under way,
/// for its repetition would be executed again. It does not wait for one of this process, which ends with what is reset, nor
/// for ever. Hold the claim until the RESET is sent.
pub fn before_reset(interface: u32, feb: MacAddr) -> Option<CommandClaim> {
    let end = Instant::now() + PATIENCE;
    while interface != 0 && !own().contains(&(interface, feb)) && Instant::now() < end {
        match reset_now(interface, feb) {
            None => std::thread::sleep(INTERVAL),
            claim => return claim,
        }
    }
    None
}

/// As [`before_reset`], without waiting. `None`: a command is under way.
pub fn reset_now(interface: u32, feb: MacAddr) -> Option<CommandClaim> {
    let claim = bind(&commands_name(interface, feb)).ok().flatten()?;
    Some(CommandClaim::new((interface, feb), claim))
}

/// As [`commands`], of the slow control of a UDP/IP board.
///
/// # Errors
/// As [`data`].
pub fn control(board: Ipv4Addr) -> io::Result<Option<Claim>> {
    in_turn(&format!("fadelink/control/{board}"))
}

/// Who has the name lets another have it before it takes it again: the one who holds the turn.
fn in_turn(name: &str) -> io::Result<Option<Claim>> {
    let end = Instant::now() + PATIENCE;
    let turn = until(end, &format!("{name}/turn"))?;
    if turn.is_none() {
        return Ok(None);
    }
    until(end, name)
}

fn until(end: Instant, name: &str) -> io::Result<Option<Claim>> {
    loop {
        match bind(name)? {
            None if Instant::now() < end => std::thread::sleep(INTERVAL),
            claim => return Ok(claim),
        }
    }
}

fn bind(name: &str) -> io::Result<Option<Claim>> {
    match UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(name)?) {
        Ok(socket) => Ok(Some(Claim(socket))),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => Ok(None),
        Err(error) => Err(error),
    }
}

/// True if some program on this computer has claimed the data of `feb`.
pub fn is_claimed(interface: u32, feb: MacAddr) -> bool {
    // Connects, because binding to check would claim the FEB for a moment.
    let connect = || UnixDatagram::unbound()?.connect_addr(&SocketAddr::from_abstract_name(data_name(interface, feb))?);
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
        let claim = data(interface, feb).unwrap().unwrap();
        assert!(is_claimed(interface, feb) && is_claimed(interface, feb));
        assert!(data(interface, feb).unwrap().is_none());
        assert!(commands(interface, feb).unwrap().is_some());
        assert!(data(interface, MacAddr([2; 6])).unwrap().is_some());
        drop(claim);
        assert!(!is_claimed(interface, feb));
        assert!(data(interface, feb).unwrap().is_some());
    }

    #[test]
    fn a_reset_waits_for_a_command_of_another_program() {
        let feb = MacAddr([2, 0xfa, 0xde, 3, 2, 1]);
        let interface = std::process::id() | 1 << 31;
        drop(before_reset(interface, feb).unwrap());
        let command = commands(interface, feb).unwrap().unwrap();
        assert!(reset_now(interface, feb).is_none());
        assert!(before_reset(interface, feb).is_none(), "it does not wait for its own");
        drop(command);
        // The name is all that another program has.
        let other = bind(&commands_name(interface, feb)).unwrap().unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| before_reset(interface, feb).is_some());
            assert!(!waiting.is_finished() && reset_now(interface, feb).is_none());
            drop(other);
            assert!(waiting.join().unwrap());
        });
        assert!(own().iter().all(|own| *own != (interface, feb)));
    }

    #[test]
    fn nobody_starves() {
        // One that claims again at once, and others that want it once.
        let board = Ipv4Addr::new(192, 0, 2, (std::process::id() % 256) as u8);
        let ending = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !ending.load(std::sync::atomic::Ordering::Relaxed) {
                    let _claim = control(board).unwrap().unwrap();
                    std::thread::sleep(INTERVAL * 5);
                }
            });
            for _ in 0..8 {
                let others: Vec<_> = (0..4).map(|_| scope.spawn(|| control(board).unwrap().is_some())).collect();
                assert!(others.into_iter().all(|other| other.join().unwrap()));
            }
            ending.store(true, std::sync::atomic::Ordering::Relaxed);
        });
    }
}

//! The wait for what boards are reached by: an interface that is not there yet or is down, an address of this computer, a way to a
//! board.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use anyhow::Context;

/// How often it is looked for.
const TICK: Duration = Duration::from_millis(20);
/// Any port: nothing is sent to it.
const DISCARD: u16 = 9;

/// The wait of a program, from its begin on.
pub struct Waiting<'a> {
    begun: Instant,
    look: Look<'a>,
}

/// Is told again and again what is waited for; true: the user gives up.
pub type Look<'a> = &'a dyn Fn(&str) -> bool;

/// True of what may come later: not of what is wrong.
fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound
            | io::ErrorKind::NetworkDown
            | io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::AddrNotAvailable
    )
}

/// Whether this computer has an address, and ways from it to others.
///
/// # Errors
/// It has not; which one.
pub fn find_address(own: IpAddr, others: &[Ipv4Addr]) -> io::Result<()> {
    let named =
        |address: IpAddr| move |error: io::Error| io::Error::new(error.kind(), format!("address {address}: {error}"));
    let socket = UdpSocket::bind(SocketAddr::new(own, 0)).map_err(named(own))?;
    others.iter().try_for_each(|other| {
        let other = IpAddr::V4(*other);
        socket.connect(SocketAddr::new(other, DISCARD)).map_err(named(other))
    })
}

impl Waiting<'_> {
    /// From now on.
    pub fn new(look: Look<'_>) -> Waiting<'_> {
        Waiting { begun: Instant::now(), look }
    }

    /// Waits for so long at most until what boards are reached by is there; what is left of that time. What is not there then is an error
    /// of who uses it.
    ///
    /// # Errors
    /// The user has given up.
    pub fn until(&self, wait: Duration, find: impl Fn() -> io::Result<()>) -> anyhow::Result<Duration> {
        let left = || wait.saturating_sub(self.begun.elapsed());
        let mut is_told = false;
        while !left().is_zero() {
            let error = match find() {
                Err(error) if is_absent(&error) => error,
                _ => break,
            };
            if (self.look)(&error.to_string()) {
                return Err(error).context("stopped while it was waited for");
            }
            if !std::mem::replace(&mut is_told, true) {
                tracing::warn!("{error}; it is looked for again for {} s", left().as_secs());
            }
            std::thread::sleep(TICK);
        }
        Ok(left())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    const LONG: Duration = Duration::from_secs(3600);

    #[test]
    fn what_is_absent_is_waited_for_and_what_is_wrong_is_not() {
        let looks = Cell::new(0);
        let find = |kind: io::ErrorKind, until: u32| {
            looks.set(0);
            let looks = &looks;
            move || {
                looks.set(looks.get() + 1);
                if looks.get() < until {
                    Err(io::Error::new(kind, "it is not there"))
                } else {
                    Ok(())
                }
            }
        };
        let waiting = Waiting::new(&|what| what != "it is not there");
        for kind in [io::ErrorKind::NotFound, io::ErrorKind::NetworkDown, io::ErrorKind::AddrNotAvailable] {
            let left = waiting.until(LONG, find(kind, 4)).unwrap();
            assert!(looks.get() == 4 && left > Duration::ZERO && left < LONG);
        }
        assert!(waiting.until(LONG, find(io::ErrorKind::InvalidInput, 4)).is_ok() && looks.get() == 1);
        assert_eq!(waiting.until(Duration::ZERO, find(io::ErrorKind::NotFound, 4)).unwrap(), Duration::ZERO);
        assert_eq!(looks.get(), 0, "without a wait its user finds it");
        let error = Waiting::new(&|_| true).until(LONG, find(io::ErrorKind::NotFound, 4)).unwrap_err();
        assert!(looks.get() == 1 && format!("{error:#}").contains("stopped while it was waited for: it is not there"));
    }

    #[test]
    fn an_address_of_another_computer_is_absent() {
        assert!(find_address(Ipv4Addr::LOCALHOST.into(), &[Ipv4Addr::LOCALHOST]).is_ok());
        // TEST-NET-1, which no computer has.
        let error = find_address(Ipv4Addr::new(192, 0, 2, 1).into(), &[]).unwrap_err();
        assert!(is_absent(&error) && error.to_string().contains("address 192.0.2.1: "), "{error}");
    }
}

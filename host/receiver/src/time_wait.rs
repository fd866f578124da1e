//! Whether a connection that both ends have closed was closed by the other end before this one: who has closed first waits for what is
//! late, in the state TIME-WAIT (RFC 9293, 3.6.1), which Linux keeps apart from the socket and lists in `/proc/net/tcp` (proc(5)). Both
//! wait if both have closed before they knew of the other.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpStream};

/// The states of a connection that this end has closed, while FIN is on its way, and when the other end has it.
pub(crate) const FIN_WAIT1: u8 = 4;
pub(crate) const FIN_WAIT2: u8 = 5;

/// The states of a connection whose other end has closed first, of one whose other end has closed before it had our FIN, and of one that
/// both have closed (include/net/tcp_states.h of Linux).
const LAST_ACK: u8 = 9;
pub(crate) const CLOSING: u8 = 11;
const CLOSE: u8 = 7;

/// Whether FIN of the other end has come before ours: it was seen, or has come between the look and ours, so that TCP is in this
/// `state` behind it. Where both were confirmed by then, who has closed first `waits` for what is late (RFC 9293, 3.6.1).
pub(crate) fn came_first(was_seen: bool, state: u8, waits: impl FnOnce() -> bool) -> bool {
    was_seen || matches!(state, LAST_ACK | CLOSING) || (state == CLOSE && !waits())
}

/// The state in that list (include/net/tcp_states.h of Linux).
const TIME_WAIT: &str = "06";

/// The ends of a connection, as that list has them.
#[derive(Debug)]
pub(crate) struct Ends {
    local: String,
    remote: String,
    list: &'static str,
}

/// An address as it is listed: each four bytes of it as a number of this computer, and the port.
fn listed(address: SocketAddr) -> String {
    let octets = match address {
        SocketAddr::V4(address) => address.ip().octets().to_vec(),
        SocketAddr::V6(address) => address.ip().octets().to_vec(),
    };
    let word = |octets: &[u8]| octets.try_into().map_or(0, u32::from_ne_bytes);
    let words: String = octets.chunks(4).map(|octets| format!("{:08X}", word(octets))).collect();
    format!("{words}:{:04X}", address.port())
}

impl Ends {
    /// Of a connection that is not closed.
    ///
    /// # Errors
    /// It is.
    pub(crate) fn of(socket: &TcpStream) -> io::Result<Ends> {
        let (local, remote) = (socket.local_addr()?, socket.peer_addr()?);
        let list = if local.is_ipv4() { "/proc/thread-self/net/tcp" } else { "/proc/thread-self/net/tcp6" };
        Ok(Ends { local: listed(local), remote: listed(remote), list })
    }

    /// True if it waits; false also where that cannot be found out.
    pub(crate) fn wait(&self) -> bool {
        let expected = [&*self.local, &*self.remote, TIME_WAIT];
        let is_it = |line: &str| line.split_whitespace().skip(1).take(expected.len()).eq(expected);
        fs::read_to_string(self.list).is_ok_and(|list| list.lines().any(is_it))
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Shutdown, TcpListener};
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn who_has_closed_first_waits() {
        for address in ["127.0.0.1:0", "[::]:0"] {
            for board_first in [true, false] {
                let listener = TcpListener::bind(address).unwrap();
                let port = listener.local_addr().unwrap().port();
                let board = TcpStream::connect(("127.0.0.1", port)).unwrap();
                let (server, _) = listener.accept().unwrap();
                let [first, second] = if board_first { [board, server] } else { [server, board] };
                let [first_ends, second_ends] = [&first, &second].map(|socket| Ends::of(socket).unwrap());
                assert!(!first_ends.wait());
                first.shutdown(Shutdown::Write).unwrap();
                second.shutdown(Shutdown::Write).unwrap();
                let deadline = Instant::now() + Duration::from_secs(60);
                while !first_ends.wait() {
                    assert!(Instant::now() < deadline, "{address} {board_first}: {first_ends:?} is not listed");
                    std::thread::yield_now();
                }
                assert!(!second_ends.wait(), "{address} {board_first}");
            }
        }
    }

    #[test]
    fn an_end_between_the_look_and_the_question_came_first() {
        for waits in [true, false] {
            let came_first = |was_seen, state| came_first(was_seen, state, || waits);
            assert!(came_first(false, LAST_ACK) && came_first(true, LAST_ACK) && !came_first(false, FIN_WAIT1));
            assert!(came_first(false, CLOSING), "they have crossed");
            assert!(came_first(true, CLOSE) && came_first(false, CLOSE) != waits);
        }
    }
}

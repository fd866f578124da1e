//! Boards with the UDP/IP stack.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use fadelink_feb::UdpBoard;
use fadelink_wire::udp::{self, Request, REGISTER_LAST};

use super::recording::Recording;

/// Datagrams before the slow control is looked at.
const BURST: u32 = 16;
/// Longest wait for a request.
const NAP: Duration = Duration::from_millis(1);
/// From the answer that tells the receiver what was sent to the end: it may ask again.
const LINGER: Duration = Duration::from_secs(2);
/// Longest wait for that question, behind the last datagram or request.
const PATIENCE: Duration = Duration::from_secs(20);
/// Bytes of a datagram on the wire beside its payload: headers, FCS, preamble and gap.
const OVERHEAD: u32 = 66;
/// Nanoseconds of a byte at 1 Gb/s: a faster board would lose what the receiver has no room for.
const BYTE_NS: u64 = 8;

/// A board, before it is there.
pub struct PlayedBoard {
    pub recording: Recording,
    pub address: Ipv4Addr,
    /// Port that its datagrams come from.
    pub port: u16,
    /// Bytes of a payload.
    pub payload: u32,
}

fn bind(address: SocketAddrV4, name: &str) -> anyhow::Result<UdpSocket> {
    UdpSocket::bind(address).map_err(|error| {
        let ip = address.ip();
        let advice = match error.kind() {
            io::ErrorKind::AddrNotAvailable => {
                format!("; add the address to an interface (ip address add {ip}/24 dev NAME), or choose another: --address {name}=IP")
            }
            _ => String::new(),
        };
        anyhow::anyhow!("board `{name}`: {address}: {error}{advice}")
    })
}

impl PlayedBoard {
    /// Opens its ports.
    ///
    /// # Errors
    /// Its address is not this computer's.
    pub fn bind(self) -> anyhow::Result<Served> {
        let name = &self.recording.name;
        let control = bind(SocketAddrV4::new(self.address, udp::CONTROL_PORT), name)?;
        let stream = bind(SocketAddrV4::new(self.address, self.port), name)?;
        control.set_read_timeout(Some(NAP))?;
        let pace = Duration::from_nanos(u64::from(self.payload + OVERHEAD) * BYTE_NS);
        Ok(Served { control, stream, board: UdpBoard::new(self.payload, pace, self.recording) })
    }
}

/// A board that is there.
pub struct Served {
    control: UdpSocket,
    stream: UdpSocket,
    board: UdpBoard<Recording>,
}

impl Served {
    /// Answers requests, for one [`NAP`] at most: how many, and whether the receiver knows now what was sent.
    fn answer(&mut self) -> anyhow::Result<(u32, bool)> {
        let (mut count, mut is_told, mut request) = (0, false, [0; 64]);
        loop {
            match self.control.recv_from(&mut request) {
                Ok((length, SocketAddr::V4(client))) => {
                    count += 1;
                    is_told |= Request::parse(&request[..length]).is_ok_and(|asked| asked.address == REGISTER_LAST);
                    if let Some(answer) = self.board.control(client, &request[..length]) {
                        let _ = self.control.send_to(&answer, client);
                    }
                }
                Ok(_) => {}
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => break,
                // The client has gone.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                Err(error) => return Err(error).context("slow control"),
            }
            self.control.set_nonblocking(true)?;
        }
        self.control.set_nonblocking(false)?;
        Ok((count, is_told && self.has_ended()))
    }

    /// There was a run, and all of it is sent.
    fn has_ended(&self) -> bool {
        self.board.is_idle() && self.board.run() > 0
    }

    /// Runs until all was sent, or the receiver has stopped it and needs it no more.
    ///
    /// # Errors
    /// A socket fails.
    pub fn serve(mut self, stop: &AtomicBool) -> anyhow::Result<()> {
        let begin = Instant::now();
        let (mut busy, mut is_told) = (Instant::now(), false);
        while !stop.load(Ordering::Relaxed) {
            let (asked, told) = self.answer()?;
            is_told |= told;
            let mut sent = 0;
            while sent < BURST {
                if self.board.user.has_ended() {
                    self.board.end();
                }
                let Some((datagram, peer)) = self.board.give(begin.elapsed()) else { break };
                // One that cannot be sent is lost on the way.
                let _ = self.stream.send_to(datagram, peer);
                sent += 1;
            }
            if asked + sent > 0 {
                busy = Instant::now();
            }
            if self.has_ended() && busy.elapsed() > if is_told { LINGER } else { PATIENCE } {
                break;
            }
        }
        if !self.has_ended() {
            self.board.user.source.interrupted(&self.board.user.name);
        }
        self.board.user.end();
        Ok(())
    }
}

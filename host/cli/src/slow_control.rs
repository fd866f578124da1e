//! Client for the slow control of a UDP/IP board (docs/protocol/udp.md).

use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::time::{Duration, Instant};

use anyhow::Context;
use fadelink_receiver::claim::{self, Network, Refused};
use fadelink_wire::udp::{self, Reply, Request};

/// A board, by its slow control.
pub struct SlowControl {
    socket: UdpSocket,
    network: Network,
    board: Ipv4Addr,
    /// Of the last request; `None`: there was none.
    sequence: Option<u32>,
    timeout: Duration,
    retries: u32,
}

impl SlowControl {
    /// Talks to a board: each attempt waits for `timeout`, `retries` attempts follow the first.
    ///
    /// # Errors
    /// There is no way to the board.
    pub fn new(board: Ipv4Addr, timeout: Duration, retries: u32) -> anyhow::Result<SlowControl> {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        socket.connect(SocketAddrV4::new(board, udp::CONTROL_PORT)).with_context(|| format!("board {board}"))?;
        let network = Network::here();
        Ok(SlowControl { socket, network, board, sequence: None, timeout, retries })
    }

    /// The board's address.
    pub fn board(&self) -> Ipv4Addr {
        self.board
    }

    /// This computer's address towards the board.
    ///
    /// # Errors
    /// The socket has none.
    pub fn own_address(&self) -> anyhow::Result<Ipv4Addr> {
        match self.socket.local_addr()?.ip() {
            std::net::IpAddr::V4(address) => Ok(address),
            std::net::IpAddr::V6(address) => anyhow::bail!("own address {address}: expected IPv4"),
        }
    }

    /// Reads a register.
    ///
    /// # Errors
    /// No answer, or no such register.
    pub fn read(&mut self, address: u32) -> anyhow::Result<u32> {
        self.ask(address, None)
    }

    /// Writes a register, once whatever is lost on the way; gives its answer.
    ///
    /// # Errors
    /// No answer, or the register cannot be written.
    pub fn write(&mut self, address: u32, value: u32) -> anyhow::Result<u32> {
        self.ask(address, Some(value))
    }

    fn ask(&mut self, address: u32, write: Option<u32>) -> anyhow::Result<u32> {
        let board = self.board;
        let _claim = claim::control(self.network, board).map_err(|refused| match refused {
            Refused::Held(holder) => {
                anyhow::anyhow!("board {board}: {holder} keeps using its slow control; end that one first")
            }
            Refused::Io(error) => error.into(),
        })?;
        let sequence = match self.sequence {
            Some(sequence) => sequence,
            None => {
                // The board takes a request with the number, address and port of the last one for its repetition. It may be
                // that of another client, so the first one is a read, which does no harm.
                let sequence = fastrand::u32(..);
                self.exchange(Request { sequence, address: udp::REGISTER_IDENTITY, write: None })?;
                sequence
            }
        };
        let sequence = sequence.wrapping_add(1);
        self.sequence = Some(sequence);
        self.exchange(Request { sequence, address, write })
    }

    fn exchange(&self, request: Request) -> anyhow::Result<u32> {
        let (board, Request { address, write, .. }) = (self.board, request);
        for _ in 0..=self.retries {
            let end = Instant::now() + self.timeout;
            // Nobody there (ICMP) is told by the next call; it may be there at the next attempt.
            let _ = self.socket.send(&request.to_bytes());
            loop {
                let left = end.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    break;
                }
                self.socket.set_read_timeout(Some(left))?;
                let mut payload = [0; 64];
                let Ok(length) = self.socket.recv(&mut payload) else { continue };
                match Reply::parse(&payload[..length]) {
                    Ok(reply) if reply.sequence == request.sequence && reply.address == address => {
                        let done = reply.status == udp::STATUS_DONE;
                        anyhow::ensure!(
                            done,
                            "board {board}: register {address:#010x}: {}",
                            explain(reply.status, write)
                        );
                        return Ok(reply.value);
                    }
                    _ => {}
                }
            }
        }
        anyhow::bail!(
            "board {board}: no answer from its slow control in {} attempts; is it on, and is this its address?",
            self.retries + 1
        )
    }
}

impl Drop for SlowControl {
    fn drop(&mut self) {
        claim::forget_control(self.network, self.board);
    }
}

fn explain(status: u8, write: Option<u32>) -> String {
    match (status, write) {
        (udp::STATUS_ADDRESS, None) => "there is no such register".into(),
        (udp::STATUS_ADDRESS, Some(value)) => {
            format!("{value:#x} cannot be written: no such register, read-only, out of range, or the stream is running")
        }
        (udp::STATUS_OPERATION, _) => "the board does not support this operation".into(),
        (other, _) => format!("status {other:#04x}"),
    }
}

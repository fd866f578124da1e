//! Boards with the UDP/IP stack.

use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};

use fadelink_receiver::WrongField;
use schemars::JsonSchema;
use serde::Deserialize;

use super::fields::{any_address, check_address, check_port, check_stream, ring, RING_MAX};
use super::group::Common;
use crate::pattern::Pattern;
use crate::receive::{udp, Senders, UdpPatience, RING_MIN, UDP_BUFFER};
use crate::text::Text;

/// A board with the UDP/IP stack.
#[derive(Debug, Clone, clap::Args, Deserialize, JsonSchema)]
#[group(skip)]
#[serde(deny_unknown_fields)]
pub struct Udp {
    /// Its name
    #[arg(skip)]
    pub name: String,
    /// IP address of the board
    #[arg(skip = Ipv4Addr::UNSPECIFIED)]
    pub address: Ipv4Addr,
    /// Port of this computer that it sends to
    #[arg(skip)]
    #[schemars(range(min = 1))]
    pub port: u16,
    /// IPv4 address of this computer to listen on
    #[arg(long, value_name = "IP", default_value_t = any_address())]
    #[serde(default = "any_address")]
    pub listen: IpAddr,
    /// Packets of 8192 bytes of the ring, a power of two; the same for all boards of a port
    #[arg(long, value_name = "N", default_value_t = ring(), value_parser = crate::number::u64)]
    #[serde(default = "ring")]
    #[schemars(range(min = RING_MIN, max = RING_MAX))]
    pub ring: u64,
    /// Receive buffer of the socket in bytes, the same for all boards of a port; without it, 32 MiB
    #[arg(long, value_name = "BYTES", value_parser = crate::number::u32)]
    #[schemars(range(min = 1, max = 2_147_483_647))]
    pub receive_buffer: Option<u32>,
    /// Pattern that its words are compared with, as --verify of `fadelink receive`; without it, they are not compared
    #[arg(skip)]
    pub verify: Option<Text<Pattern>>,
    /// Its sinks; without it, those of the experiment
    #[arg(skip)]
    pub sinks: Option<Vec<String>>,
}

impl Udp {
    /// Where it is listened for.
    ///
    /// # Errors
    /// Not an IPv4 address.
    pub fn place(&self) -> Result<SocketAddrV4, WrongField> {
        match self.listen {
            IpAddr::V4(address) => Ok(SocketAddrV4::new(address, self.port)),
            IpAddr::V6(address) => Err(WrongField::new("listen", address, "expected an IPv4 address")),
        }
    }

    /// What all boards of a port have together, as the first has it. `boards`: those that are started, and stopped at the end.
    /// `streams`: how many are enough.
    ///
    /// # Errors
    /// A field that does not fit.
    pub fn group(
        &self,
        (senders, boards, streams): (Senders, Vec<Ipv4Addr>, Option<u32>),
        common: &Common,
    ) -> Result<udp::UdpSettings, WrongField> {
        common.not_durable("nothing confirms the data of UDP")?;
        self.check()?;
        if let Some((_, twice)) = boards.iter().enumerate().find(|(i, board)| boards[..*i].contains(board)) {
            return Err(WrongField::new("board", twice, "expected each board once"));
        }
        Ok(udp::UdpSettings {
            address: self.place()?,
            senders,
            boards,
            streams,
            limits: common.limits,
            ring: self.ring,
            receive_buffer: self.buffer(),
            accept: common.accept,
            patience: UdpPatience::default(),
        })
    }

    /// Bytes of the receive buffer.
    pub fn buffer(&self) -> u32 {
        self.receive_buffer.unwrap_or(UDP_BUFFER)
    }

    /// Whether its datagrams are heard where it is listened for.
    ///
    /// # Errors
    /// They are not.
    pub fn check_address(&self) -> Result<(), WrongField> {
        check_address(self.address.into(), self.listen)
    }

    /// Whether its own fields fit.
    ///
    /// # Errors
    /// The first that does not.
    pub fn check(&self) -> Result<(), WrongField> {
        check_port(self.port)?;
        check_stream(self.ring, self.receive_buffer)
    }
}

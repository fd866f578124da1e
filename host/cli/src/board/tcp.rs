//! Boards with the TCP sender.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use fadelink_receiver::WrongField;
use schemars::JsonSchema;
use serde::Deserialize;

use super::fields::{any_address, check_address, check_port, check_stream, in_range, ring, RING_MAX};
use super::group::Common;
use crate::pattern::Pattern;
use crate::receive::{tcp, Senders, RING_MIN};
use crate::text::Text;

/// A board with the TCP sender.
#[derive(Debug, Clone, clap::Args, Deserialize, JsonSchema)]
#[group(skip)]
#[serde(deny_unknown_fields)]
pub struct Tcp {
    /// Its name
    #[arg(skip)]
    pub name: String,
    /// IP address of the board
    #[arg(skip = IpAddr::V4(Ipv4Addr::UNSPECIFIED))]
    pub address: IpAddr,
    /// Port of this computer that it connects to
    #[arg(skip)]
    #[schemars(range(min = 1))]
    pub port: u16,
    /// Address of this computer to listen on
    #[arg(long, value_name = "IP", default_value_t = any_address())]
    #[serde(default = "any_address")]
    pub listen: IpAddr,
    /// Streams that it has
    #[arg(skip = one())]
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 16))]
    pub streams: u16,
    /// Packets of 8192 bytes of the ring of each stream, a power of two; the same for all boards of a port
    #[arg(long, value_name = "N", default_value_t = ring(), value_parser = crate::number::u64)]
    #[serde(default = "ring")]
    #[schemars(range(min = RING_MIN, max = RING_MAX))]
    pub ring: u64,
    /// Receive buffer of each socket in bytes, the same for all boards of a port; without it, that of the kernel
    #[arg(long, value_name = "BYTES", value_parser = crate::number::u32)]
    #[schemars(range(min = 1, max = 2_147_483_647))]
    pub receive_buffer: Option<u32>,
    /// Pattern that its words are compared with, as --verify of `fadelink receive`; without it, they are not compared
    #[arg(skip)]
    pub verify: Option<Text<Pattern>>,
    /// Its sinks; without it, those of the experiment. With several streams, {stream} is in their paths
    #[arg(skip)]
    pub sinks: Option<Vec<String>>,
}

fn one() -> u16 {
    1
}

impl Tcp {
    /// Where it is listened for.
    pub fn place(&self) -> SocketAddr {
        SocketAddr::new(self.listen, self.port)
    }

    /// What all boards of a port have together, as the first has it. `streams`: how many are enough.
    ///
    /// # Errors
    /// A field that does not fit.
    pub fn group(
        &self,
        (senders, streams): (Senders, Option<u32>),
        common: &Common,
    ) -> Result<tcp::TcpSettings, WrongField> {
        common.not_durable("the kernel confirms the data of TCP")?;
        self.check()?;
        Ok(tcp::TcpSettings {
            address: self.place(),
            senders,
            streams,
            limits: common.limits,
            ring: self.ring,
            receive_buffer: self.receive_buffer,
            accept: common.accept,
            patience: tcp::PATIENCE,
        })
    }

    /// Whether its connections are heard where it is listened for.
    ///
    /// # Errors
    /// They are not.
    pub fn check_address(&self) -> Result<(), WrongField> {
        check_address(self.address, self.listen)
    }

    /// Whether its own fields fit.
    ///
    /// # Errors
    /// The first that does not.
    pub fn check(&self) -> Result<(), WrongField> {
        check_port(self.port)?;
        in_range("streams", self.streams, (1, 16))?;
        check_stream(self.ring, self.receive_buffer)
    }
}

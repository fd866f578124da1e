//! Fields that several kinds of boards have, and their errors.

use std::fmt::Display;
use std::net::{IpAddr, Ipv4Addr};

use clap::ValueEnum;
use fadelink_receiver::{Confirm, FebConfig, WrongField};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::exit::Usage;
use crate::receive::RING_MIN;

/// When packets are confirmed to a board.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ConfirmAt {
    /// They are in memory
    #[default]
    Memory,
    /// They are safe on the disk
    Durable,
}

impl From<ConfirmAt> for Confirm {
    fn from(at: ConfirmAt) -> Confirm {
        match at {
            ConfirmAt::Memory => Confirm::Received,
            ConfirmAt::Durable => Confirm::Released,
        }
    }
}

/// The error of the option that stands for a field.
impl From<WrongField> for Usage {
    fn from(wrong: WrongField) -> Usage {
        let name = match wrong.field {
            "interface" => "iface".into(),
            "mac" => "feb".into(),
            field => field.replace('_', "-"),
        };
        Usage(format!("--{name} {}: {}", wrong.value, wrong.expected))
    }
}

/// A field that has to be in a range, where nobody else has looked.
pub(super) fn in_range<T: PartialOrd + Display>(
    field: &'static str,
    value: T,
    (least, most): (T, T),
) -> Result<(), WrongField> {
    if value < least || value > most {
        return Err(WrongField::new(field, value, format!("expected {least} to {most}")));
    }
    Ok(())
}

/// Packets of the largest ring, as of a FEB.
pub(super) const RING_MAX: u64 = 1 << 24;

/// A port that others reach.
pub(super) fn check_port(port: u16) -> Result<(), WrongField> {
    in_range("port", port, (1, u16::MAX))
}

/// The address of one board, which a socket that listens at `listen` hears.
pub(super) fn check_address(address: IpAddr, listen: IpAddr) -> Result<(), WrongField> {
    let is_one = match address {
        IpAddr::V4(address) => !address.is_broadcast(),
        IpAddr::V6(_) => true,
    };
    if !is_one || address.is_unspecified() || address.is_multicast() {
        return Err(WrongField::new("address", address, "expected the address of one board"));
    }
    // Of all addresses that are IPv6, a socket listens for IPv4, too.
    let is_heard = address.is_ipv6() == listen.is_ipv6() || (listen.is_ipv6() && listen.is_unspecified());
    if !is_heard {
        return Err(WrongField::new("address", address, format!("expected one of the kind of {listen}, listen")));
    }
    Ok(())
}

/// Whether a ring has place for the data of a stream.
pub(super) fn check_stream(ring: u64, receive_buffer: Option<u32>) -> Result<(), WrongField> {
    if !ring.is_power_of_two() || !(RING_MIN..=RING_MAX).contains(&ring) {
        return Err(WrongField::new("ring", ring, format!("expected a power of two from {RING_MIN} to {RING_MAX}")));
    }
    receive_buffer.map_or(Ok(()), |bytes| in_range("receive_buffer", bytes, (1, i32::MAX as u32)))
}

/// Packets of the ring of a board or a stream that says no other number.
pub(super) fn ring() -> u64 {
    FebConfig::default().ring_packets
}

/// To listen on all addresses of this computer.
pub fn any_address() -> IpAddr {
    Ipv4Addr::UNSPECIFIED.into()
}

//! What a user says of boards: with the options of `fadelink receive` and `fadelink build`, and in the tables of an experiment
//! file. Each kind of board has one description for both.

mod crates;
mod fade;
mod group;
mod kinds;
mod tcp;
mod threads;
mod udp;
mod waiting;

use std::fmt::Display;

use clap::ValueEnum;
use fadelink_receiver::{Confirm, WrongField};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[cfg(feature = "kafka")]
pub use crates::check_window;
pub use crates::{Crates, JoinBy};
pub use fade::Fade;
pub use group::{Common, GroupSettings};
pub use kinds::Kind;
pub use tcp::Tcp;
pub use threads::Threads;
pub use udp::Udp;
pub use waiting::{Look, Waiting};

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
            "mac" => "feb".into(),
            field => field.replace('_', "-"),
        };
        Usage(format!("--{name} {}: {}", wrong.value, wrong.expected))
    }
}

/// A field that has to be in a range, where nobody else has looked.
fn in_range<T: PartialOrd + Display>(field: &'static str, value: T, (least, most): (T, T)) -> Result<(), WrongField> {
    if value < least || value > most {
        return Err(WrongField::new(field, value, format!("expected {least} to {most}")));
    }
    Ok(())
}

/// Whether a ring has place for the data of a stream.
fn check_stream(ring: u64, receive_buffer: Option<u32>) -> Result<(), WrongField> {
    if !ring.is_power_of_two() || ring < RING_MIN {
        return Err(WrongField::new("ring", ring, format!("expected a power of two, {RING_MIN} or more")));
    }
    receive_buffer.map_or(Ok(()), |bytes| in_range("receive_buffer", bytes, (1, i32::MAX as u32)))
}

/// Packets of the ring of a board or a stream that says no other number.
fn ring() -> u64 {
    fadelink_receiver::FebConfig::default().ring_packets
}

/// To listen on all addresses of this computer.
pub fn any_address() -> std::net::IpAddr {
    std::net::Ipv4Addr::UNSPECIFIED.into()
}

//! Passes data of boards to files and other sinks, and verifies it. One file for each protocol; the others have the common parts, and
//! `command` is `fadelink receive`.

use std::time::Duration;

mod before;
pub mod command;
pub mod fade;
mod group;
mod inquiry;
mod patience;
mod plan;
mod recorder;
pub mod tcp;
mod transmissions;
pub mod udp;

pub use before::{Before, ADVICE};
pub use group::{drive, measure, Group, Line, Outcome};
pub use patience::{Patience, UdpPatience};
pub use plan::{Plan, Senders, RING_MIN};
pub use recorder::{not_kept, NOT_KEPT};
pub use transmissions::Transmissions;
pub use udp::RECEIVE_BUFFER as UDP_BUFFER;

/// How often metrics and health are looked at.
pub const LOOK: Duration = Duration::from_millis(100);

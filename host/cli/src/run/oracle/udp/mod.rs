//! Boards with the UDP/IP stack, over the loopback interface. The world of a seed is a thread: the board, the network, and who
//! disturbs both.

mod case;
mod judge;
mod network;
mod play;
mod world;

use std::path::Path;

use super::{Kind, Played};
use case::Case;

pub const KIND: Kind = Kind { name: "udp", together: 64, one };

/// Plays a seed.
fn one(seed: u64, folder: &Path) -> Result<Played, String> {
    let case = Case::new(seed);
    super::judged(&case, play::play(&case, folder), judge::judge, judge::describe, |ended| &ended.report["streams"])
}

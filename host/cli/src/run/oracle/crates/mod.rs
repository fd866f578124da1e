//! Crates whose messages are joined to events, over the loopback interface: each in a thread of its own.

mod case;
mod judge;
mod play;
mod sender;

use std::path::Path;

use super::{Kind, Played};
use case::Case;

pub const KIND: Kind = Kind { name: "crates", together: 64, one };

/// Plays a seed.
fn one(seed: u64, folder: &Path) -> Result<Played, String> {
    let case = Case::new(seed);
    super::judged(&case, play::play(&case, folder), judge::judge, judge::describe, |ended| &ended.report["crates"])
}

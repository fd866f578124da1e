//! TCP senders, over the loopback interface: boards in software, each in a thread of its own, and others that connect.

mod case;
mod judge;
mod play;
mod sender;

use std::path::Path;

use super::{Kind, Played};
use case::Case;

pub const KIND: Kind = Kind { name: "tcp", together: 64, one };

/// Plays a seed.
fn one(seed: u64, folder: &Path) -> Result<Played, String> {
    let case = Case::new(seed);
    super::judged(&case, play::play(&case, folder), judge::judge, judge::describe, |ended| &ended.report["streams"])
}

//! Boards with FADE, over a cable in memory.

mod board;
mod cable;
mod case;
mod forge;
mod judge;
mod play;
mod world;

use std::path::Path;

use super::{Kind, Played};
use case::Case;

pub const KIND: Kind = Kind { name: "fade", together: 32, one };

/// Plays a seed.
fn one(seed: u64, folder: &Path) -> Result<Played, String> {
    let case = Case::new(seed);
    super::judged(&case, play::play(&case, folder), judge::judge, judge::describe, |ended| &ended.report["febs"])
}

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

const FADE: Kind = Kind { name: "fade", together: 32, complete: 0.15, one };

/// Plays a seed.
fn one(seed: u64, folder: &Path) -> Result<Played, String> {
    let case = Case::new(seed);
    let ended = play::play(&case, folder).map_err(|error| format!("{error:#}\n{case:?}"))?;
    let is_complete =
        judge::judge(&case, &ended).map_err(|what| format!("{what}\n{}", judge::describe(&case, &ended)))?;
    Ok(Played { is_complete, reasons: super::reasons(&ended.report["febs"][0]) })
}

#[test]
fn what_is_called_complete_is_the_record() {
    FADE.seeds(1, 500);
}

#[test]
#[ignore = "minutes: part of make test-long"]
fn what_is_called_complete_is_the_record_of_thousands() {
    FADE.seeds(1001, 5000);
}

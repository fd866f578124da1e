//! Crates whose messages are joined to events, over the loopback interface: each in a thread of its own.

mod case;
mod judge;
mod play;
mod sender;

use std::path::Path;

use super::{Kind, Played};
use case::Case;

const CRATES: Kind = Kind { name: "crates", together: 64, complete: 0.15, one };

/// Plays a seed.
fn one(seed: u64, folder: &Path) -> Result<Played, String> {
    let case = Case::new(seed);
    let ended = play::play(&case, folder).map_err(|error| format!("{error:#}\n{case:?}"))?;
    let is_complete =
        judge::judge(&case, &ended).map_err(|what| format!("{what}\n{}", judge::describe(&case, &ended)))?;
    Ok(Played { is_complete, reasons: super::reasons(&ended.report["crates"][0]) })
}

#[test]
fn what_is_called_complete_is_the_record() {
    CRATES.seeds(1, 300);
}

#[test]
#[ignore = "minutes: part of make test-long"]
fn what_is_called_complete_is_the_record_of_thousands() {
    CRATES.seeds(1001, 5000);
}

//! TCP senders, over the loopback interface: boards in software, each in a thread of its own, and others that connect.

mod case;
mod judge;
mod play;
mod sender;

use std::path::Path;

use super::{Kind, Played};
use case::Case;

const TCP: Kind = Kind { name: "tcp", together: 64, complete: 0.15, one };

/// Plays a seed.
fn one(seed: u64, folder: &Path) -> Result<Played, String> {
    let case = Case::new(seed);
    let ended = play::play(&case, folder).map_err(|error| format!("{error:#}\n{case:?}"))?;
    let is_complete =
        judge::judge(&case, &ended).map_err(|what| format!("{what}\n{}", judge::describe(&case, &ended)))?;
    let streams = ended.report["streams"].as_array().into_iter().flatten();
    Ok(Played { is_complete, reasons: streams.flat_map(super::reasons).collect() })
}

#[test]
fn what_is_called_complete_is_the_record() {
    TCP.seeds(1, 300);
}

#[test]
#[ignore = "minutes: part of make test-long"]
fn what_is_called_complete_is_the_record_of_thousands() {
    TCP.seeds(1001, 5000);
}

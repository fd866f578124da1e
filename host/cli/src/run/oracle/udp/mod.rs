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

const UDP: Kind = Kind { name: "udp", together: 64, complete: 0.15, one };

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
    UDP.seeds(1, 300);
}

#[test]
#[ignore = "minutes: part of make test-long"]
fn what_is_called_complete_is_the_record_of_thousands() {
    UDP.seeds(1001, 5000);
}

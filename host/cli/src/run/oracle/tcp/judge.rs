//! The rule, which knows nothing of the others: what is called complete is all that a board took for its connection, and of a
//! board that was there nothing is left out. What is not has a reason.

use serde_json::Value;

use super::super::streams::{self, Claimed};
use super::case::Case;
use super::play::Ended;
use super::sender::Connection;
use crate::verdict::State;

/// What a board took from its source for a connection.
fn content(ended: &Ended, connection: &Connection) -> Vec<u8> {
    ended.world.records[connection.board].runs()[connection.run].bytes()
}

/// True if it is complete.
///
/// # Errors
/// What is wrong.
pub fn judge(case: &Case, ended: &Ended) -> Result<bool, String> {
    let path = |stream: &Value| {
        let name = match (case.named, stream["peer"].as_str()) {
            (true, _) => stream["name"].as_str().unwrap_or_default().to_owned(),
            (false, peer) => peer.unwrap_or_default().replace(':', "-"),
        };
        ended.folder.join(format!("{name}.dat"))
    };
    let claimed = streams::claimed((ended.state, "streams"), &ended.report, path)?;
    let connections = ended.world.connections().clone();
    // Of a port that was used before, the last one.
    let of = |claimed: &Claimed| connections.iter().rfind(|connection| connection.peer.to_string() == claimed.peer);
    for one in &claimed {
        // A connection that is not of a board has nothing to tell.
        let mut expected = vec![of(one).map_or(Vec::new(), |connection| content(ended, connection))];
        // An end that the board did not mean counts if the user lets it, or if it cannot be told from an answer.
        let early = of(one).and_then(|connection| connection.ended).filter(|(_, was_asked)| case.told || *was_asked);
        if let Some((bytes, _)) = early {
            expected.push(expected[0][..bytes].to_vec());
        }
        streams::compare(one, &expected)?;
    }
    let is_complete = ended.state == State::Complete;
    if is_complete {
        let program = ended.world.program.load(std::sync::atomic::Ordering::Relaxed);
        // Where boards have no names, any of them may take the places.
        let boards = if case.named || case.boards.len() == 1 { case.boards.len() } else { 0 };
        for board in 0..boards {
            // A board that loses its power before anything was sent begins anew, and nobody can tell that.
            let mut of_board = connections.iter().filter(|one| one.board == board && one.program == program);
            let Some(first) = of_board.find(|one| one.has_sent) else { continue };
            if !claimed.iter().any(|one| one.peer == first.peer.to_string()) {
                let words = content(ended, first).len() / 8;
                return Err(format!("complete, without {words} words that board {board} has sent from {}", first.peer));
            }
        }
    }
    Ok(is_complete)
}

/// What there is to see of a failure.
pub fn describe(case: &Case, ended: &Ended) -> String {
    let runs: Vec<Vec<_>> =
        ended.world.records.iter().map(|record| record.runs().iter().map(|run| run.words.len()).collect()).collect();
    format!(
        "{case:?}\nconnections: {:?}\nruns of the sources (words): {runs:?}\ndisk failed {} times\nfiles: {:?}\n{}",
        ended.world.connections(),
        ended.disk.failed(),
        streams::files(&ended.folder),
        ended.report
    )
}

//! The rule, which knows nothing of the others: what is called complete is the record of the source. What is not has a reason.

use fadelink_wire::{fade1, fade10g, Firmware, Protocol};
use serde_json::Value;

use super::super::record::Run;
use super::super::streams;
use super::case::Case;
use super::play::Ended;
use super::world;
use crate::verdict::State;

/// What may be in a file: all words of the last run that our computer has begun, or of a whole run that another program has
/// begun in its place before anything had come. Words behind the last packet that our STOP has brought are of another program, which
/// has made a published core go on.
fn expected(case: &Case, ended: &Ended) -> Vec<Vec<u8>> {
    let world = world::lock(&ended.world);
    let runs = world.record.runs();
    let begin = runs.iter().rposition(|run| run.is_ours).unwrap_or(0);
    let content = |run: &Run| {
        let mut bytes = run.bytes();
        if case.protocol == Protocol::Fade1 {
            // Its last packet is filled up, and the report says that it is FADE v1.
            bytes.resize(bytes.len().next_multiple_of(fade1::PACKET_BYTES), fade1::FILLER);
        }
        bytes
    };
    let parts = world.lasts.iter().filter(|(run, ..)| *run >= begin);
    let parts = parts.filter_map(|(run, _, words)| Some(runs.get(*run)?.bytes()[..words * 8].to_vec()));
    runs[begin..].iter().map(content).chain(parts).collect()
}

/// Nothing of a published core tells its transmissions from one another: if another program begins the next one, our confirmations
/// of the packets before count as those of its packets, and what follows is its own.
fn is_spliced(case: &Case, ended: &Ended, found: &[u8]) -> bool {
    let world = world::lock(&ended.world);
    let runs = world.record.runs();
    let begin = runs.iter().rposition(|run| run.is_ours).unwrap_or(0);
    let packet = if case.protocol == Protocol::Fade10g { fade10g::PACKET_BYTES } else { fade1::PACKET_BYTES };
    let follows = |run: &Run| {
        let (ours, next) = (runs[begin].bytes(), run.bytes());
        let end = streams::same(found, &ours) / packet * packet;
        next.get(end..).is_some_and(|next| found[end..] == *next)
    };
    case.firmware != Firmware::Fadelink && runs.iter().skip(begin + 1).any(follows)
}

/// What says that all is there.
fn claims(ended: &Ended) -> Result<Vec<&'static str>, String> {
    let report = &ended.report;
    let board = &report["febs"][0];
    let manifest = std::fs::read_to_string(ended.folder.join("a.dat.json")).unwrap_or_default();
    let manifest: Value = serde_json::from_str(&manifest).unwrap_or_default();
    let all = [
        ("the exit status", ended.state == State::Complete),
        ("the report", report["complete"] == true),
        ("the report's verdict", report["verdict"] == "complete"),
        ("the board's report", board["complete"] == true),
        ("the board's verdict", board["verdict"] == "complete"),
        ("the file's description", manifest["complete"] == true),
    ];
    let claims: Vec<_> = all.iter().filter(|(_, claims)| *claims).map(|(name, _)| *name).collect();
    let of_report = &all[..5];
    if of_report.iter().any(|(_, claims)| *claims != of_report[0].1) {
        return Err(format!("the outputs do not agree: {claims:?} say complete"));
    }
    Ok(claims)
}

/// True if it is complete.
///
/// # Errors
/// What is wrong.
pub fn judge(case: &Case, ended: &Ended) -> Result<bool, String> {
    let claims = claims(ended)?;
    let reasons = &ended.report["febs"][0]["reasons"];
    if !claims.is_empty() {
        let found = std::fs::read(ended.folder.join("a.dat")).map_err(|error| format!("the file: {error}"))?;
        let expected = expected(case, ended);
        if !expected.contains(&found) && !is_spliced(case, ended, &found) {
            let nearest = expected
                .iter()
                .max_by_key(|expected| streams::same(&found, expected))
                .map_or(&[][..], |nearest| nearest);
            return Err(format!(
                "{claims:?} say complete, and the file differs from the record at byte {}: {} bytes, the source gave {}; \
                 reasons: {reasons}",
                streams::same(&found, nearest),
                found.len(),
                nearest.len()
            ));
        }
    }
    let is_complete = ended.state == State::Complete;
    streams::agree(is_complete, reasons)?;
    Ok(is_complete)
}

/// What there is to see of a failure.
pub fn describe(case: &Case, ended: &Ended) -> String {
    let world = world::lock(&ended.world);
    let runs: Vec<_> = world.record.runs().iter().map(|run| (run.words.len(), run.is_ours)).collect();
    format!(
        "{case:?}\nhappened: {:?}\nruns of the source (words, ours): {runs:?}\nprograms: {}, disk failed {} times\n\
         files: {:?}\n{}",
        world.happened,
        ended.programs,
        ended.disk.failed(),
        streams::files(&ended.folder),
        ended.report
    )
}

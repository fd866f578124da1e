//! The rule, which knows nothing of the others: what is called complete is a whole run of the source. What is not has a reason.

use serde_json::Value;

use super::super::record::Run;
use super::super::streams;
use super::case::Case;
use super::play::Ended;
use super::world;
use crate::verdict::State;

/// What may be in a file: all words of a run of the source that our program has begun, or of one that another program has
/// begun behind it.
fn expected(ended: &Ended) -> Vec<Vec<u8>> {
    let world = world::lock(&ended.world);
    let runs = world.record.runs();
    runs[runs.iter().position(|run| run.is_ours).unwrap_or(0)..].iter().map(Run::bytes).collect()
}

/// True if it is complete.
///
/// # Errors
/// What is wrong.
pub fn judge(case: &Case, ended: &Ended) -> Result<bool, String> {
    let path = |stream: &Value| {
        let name = if case.named { "a" } else { stream["stream"].as_str().unwrap_or_default() };
        ended.folder.join(format!("{name}.dat"))
    };
    let claimed = streams::claimed((ended.state, "streams"), &ended.report, path)?;
    let expected = expected(ended);
    claimed.iter().try_for_each(|claimed| streams::compare(claimed, &expected))?;
    let is_complete = ended.state == State::Complete;
    if is_complete && !case.starts {
        return Err("complete, and anybody may have sent the end".into());
    }
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
        world.program + 1,
        ended.disk.failed(),
        streams::files(&ended.folder),
        ended.report
    )
}

//! The rule, which knows nothing of the others: what is called complete has each message that a crate has made, once, by window
//! and source. What is not has a reason.

use super::super::streams;
use super::case::Case;
use super::play::Ended;
use crate::verdict::State;

/// True if it is complete.
///
/// # Errors
/// What is wrong.
pub fn judge(_: &Case, ended: &Ended) -> Result<bool, String> {
    let claimed = streams::claimed((ended.state, "crates"), &ended.report, |_| ended.folder.join("c.dat"))?;
    let mut made = ended.world.made().clone();
    made.sort();
    let expected: Vec<u8> = made.into_iter().flat_map(|made| made.bytes).collect();
    let all = [expected];
    claimed.iter().try_for_each(|claimed| streams::compare(claimed, &all))?;
    Ok(ended.state == State::Complete)
}

/// What there is to see of a failure.
pub fn describe(case: &Case, ended: &Ended) -> String {
    let made: Vec<_> = ended.world.made().iter().map(|made| (made.source & 0xFFF, made.window)).collect();
    format!(
        "{case:?}\nmade (source, window): {made:?}\ndisk failed {} times\nfiles: {:?}\n{}",
        ended.disk.failed(),
        streams::files(&ended.folder),
        ended.report
    )
}

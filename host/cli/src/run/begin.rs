//! The begin of the groups of a run, and the removal of a run of which none begins.

use std::cell::RefCell;

use anyhow::anyhow;
use serde_json::Value;

use super::folder::{RunFolder, Runs};
use crate::board::{GroupSettings, Look, Waiting};
use crate::interrupts::Interrupts;
use crate::log;
use crate::receive::{Group, Outcome};
use crate::verdict::Reason;

/// Begins groups, until one cannot: first those that only listen, so that nothing was asked of a board when a port is taken.
/// `look`: is told what is waited for.
///
/// # Errors
/// That of the group.
pub fn begin(
    settings: Vec<GroupSettings>,
    interrupts: &Interrupts,
    look: Look<'_>,
    begun: &RefCell<Vec<Box<dyn Group>>>,
) -> anyhow::Result<()> {
    let waiting = Waiting::new(look);
    let mut settings: Vec<_> = settings.into_iter().enumerate().collect();
    settings.sort_by_key(|(_, settings)| !settings.only_listens());
    let mut places = Vec::new();
    let begin = || {
        for (place, settings) in settings {
            // Those before it are looked after meanwhile.
            let group = settings.begin(interrupts, &waiting)?;
            begun.borrow_mut().push(group);
            places.push(place);
        }
        Ok(())
    };
    let result = begin();
    // They are reported in the order of the file.
    let mut begun = begun.borrow_mut();
    let mut placed: Vec<_> = places.into_iter().zip(begun.drain(..)).collect();
    placed.sort_by_key(|(place, _)| *place);
    begun.extend(placed.into_iter().map(|(_, group)| group));
    result
}

/// What speaks against a run, in words.
fn against(outcomes: &[Outcome]) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
    let mut all: Vec<_> = outcomes.iter().flat_map(|outcome| &outcome.reasons).map(Reason::to_string).collect();
    for board in outcomes.iter().flat_map(|outcome| &outcome.boards) {
        let reasons = board["reasons"].as_array().into_iter().flatten();
        all.extend(reasons.map(|reason| format!("{}: {}", text(&board["name"]), text(&reason["text"]))));
    }
    all
}

/// Why a run has not begun, though nobody has asked for its end, or behind a failure.
pub fn why(number: u64, outcomes: &[Outcome], result: anyhow::Result<()>) -> anyhow::Error {
    match result {
        Err(error) => error.context(format!("run {number} has not begun")),
        Ok(()) => anyhow!("run {number} has not begun: {}", against(outcomes).join("; ")),
    }
}

/// Removes a run of which no group has begun, and gives its number back. False: there is something in its folder that none of its
/// begin is, so it stays.
pub fn withdraw(runs: &Runs, folder: &RunFolder) -> bool {
    if let Err(error) = folder.abandon() {
        tracing::warn!("{}: it could not be removed: {error}", folder.path.display());
        return false;
    }
    log::only_to_the_user();
    if let Err(error) = runs.give_back(folder) {
        tracing::warn!("run {}: its number is not given again: {error}", folder.number);
    }
    true
}

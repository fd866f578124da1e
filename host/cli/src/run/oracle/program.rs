//! Programs that receive as `fadelink run` and `fadelink receive` do.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::board::GroupSettings;
use crate::interrupts::Interrupts;
use crate::receive::Group;
use crate::run::experiment::File;
use crate::run::groups;

/// Longest time of one program: an end comes before.
const LONGEST: Duration = Duration::from_secs(60);
/// How often the progress is looked at.
const LOOK: Duration = Duration::from_millis(1);

/// How a program ended.
pub enum End {
    /// By itself.
    Over,
    Killed,
    Failed(anyhow::Error),
}

/// The group of an experiment's file with this text, which writes into `folder`.
pub fn settings((top, folder): (&Path, &Path), text: &str) -> anyhow::Result<GroupSettings> {
    let path = top.join("experiment.toml");
    std::fs::write(&path, text)?;
    let all = groups::of(&File::read(&path)?, (folder, "a run"), None)?;
    all.into_iter().next().ok_or_else(|| anyhow::anyhow!("no group"))
}

/// Receives until a program has ended, or `is_killed`. In each turn `wants_end` may ask for the end, by the bytes that have come.
///
/// # Errors
/// It does not end.
pub fn receive(
    group: &mut dyn Group,
    interrupts: &Interrupts,
    mut is_killed: impl FnMut() -> bool,
    mut wants_end: impl FnMut(u64) -> bool,
) -> anyhow::Result<End> {
    let begun = Instant::now();
    loop {
        if is_killed() {
            return Ok(End::Killed);
        }
        match group.poll() {
            Ok(true) => return Ok(End::Over),
            Ok(false) => {}
            Err(error) => return Ok(End::Failed(error)),
        }
        anyhow::ensure!(begun.elapsed() < LONGEST, "it does not end");
        if wants_end(group.lines().iter().map(|line| line.bytes).sum()) {
            interrupts.stop();
        }
        std::thread::sleep(LOOK);
    }
}

//! The run that is next: one that goes on after its program was ended by force, or a new one.

use std::collections::BTreeSet;

use anyhow::Context;
use fadelink_runs::files::{EXPERIMENT, LOG};
use fadelink_sinks::durable;

use super::experiment::{Disk, File, Full};
use super::folder::{free_space, RunFolder, Runs};
use super::groups::{self, Resumed};
use super::manifest::Manifest;
use super::{crash, files, Run};
use crate::board::{ConfirmAt, GroupSettings};
use crate::log;

/// A run ends where its disk is full, so none begins there.
fn check_disk(file: &File, runs: &Runs) -> anyhow::Result<()> {
    let Disk { reserve, full } = &file.experiment.disk;
    let in_folder = || format!("folder {}", runs.path().display());
    let free = free_space(runs.path())?;
    let reserve = reserve.0 .0;
    anyhow::ensure!(
        *full == Full::Hold || free >= reserve,
        "{}: {free} bytes are free on its disk, less than disk.reserve ({reserve}); make space, or reserve less",
        in_folder()
    );
    Ok(())
}

/// A new run.
///
/// # Errors
/// It cannot begin: nothing of it is left.
pub(super) fn next<'a>(file: &'a File, runs: &Runs) -> anyhow::Result<Run<'a>> {
    check_disk(file, runs)?;
    let folder = runs.next()?;
    match begin_in(file, &folder).and_then(|manifest| runs.has_begun(&folder).map(|()| manifest)) {
        Ok(manifest) => Ok(Run { file, folder, manifest, resumed: None }),
        Err(error) => {
            log::only_to_the_user();
            if let Err(error) = folder.abandon() {
                tracing::warn!("{}: it could not be removed: {error}", folder.path.display());
            }
            Err(error)
        }
    }
}

/// Writes what a run has before its data.
fn begin_in(file: &File, folder: &RunFolder) -> anyhow::Result<Manifest> {
    let in_folder = |what: &str| format!("{}: {what}", folder.path.display());
    folder.begins().with_context(|| in_folder("its mark"))?;
    let copy = folder.path.join(EXPERIMENT);
    durable::replace(&copy, file.text.as_bytes()).with_context(|| in_folder("the experiment"))?;
    log::also_to(&folder.path.join(LOG)).with_context(|| in_folder("the log"))?;
    Manifest::begin(folder, file)
}

/// True if a run is of the same experiment.
fn is_same(file: &File, folder: &RunFolder) -> bool {
    std::fs::read_to_string(folder.path.join(EXPERIMENT)).is_ok_and(|copy| copy == file.text)
}

/// Goes on with an unfinished run if it `may`, or closes it.
///
/// # Errors
/// Neither is possible.
fn take_up<'a>(file: &'a File, folder: RunFolder, may: bool) -> anyhow::Result<Option<Run<'a>>> {
    let in_folder = |what: &str| format!("{}: {what}", folder.path.display());
    let mut manifest = match Manifest::open(&folder) {
        Ok(manifest) => manifest,
        // Its program was ended before it had one, and so before it had data.
        Err(_) if !folder.has_manifest() && folder.abandon().is_ok() => return Ok(None),
        Err(error) => {
            return Err(anyhow::Error::from(error)
                .context("a run that has not ended: put its manifest back, or move its folder away"));
        }
    };
    if !manifest.is_unfinished() {
        // The last that was to be done.
        manifest.drop_notes()?;
        return Ok(None);
    }
    let own = File::read(&folder.path.join(EXPERIMENT))?;
    let settings = groups::of_begun(&own, (&folder.path, &manifest.name()))?;
    let plans: Vec<_> = settings.iter().flat_map(GroupSettings::plans).collect();
    if may {
        let boards = crash::of_boards(&plans).with_context(|| in_folder("its data"))?;
        let was_stopped = manifest.was_stopped();
        log::also_to(&folder.path.join(LOG)).with_context(|| in_folder("the log"))?;
        let gone_on = folder.gone_on();
        manifest.resume(file, &boards, gone_on)?;
        let resumed = Some(Resumed { boards, was_stopped, gone_on });
        return Ok(Some(Run { file, folder, manifest, resumed }));
    }
    let mut certain = Vec::new();
    for plan in plans {
        certain.extend(crash::close(plan).with_context(|| in_folder("its data"))?);
    }
    let others = crash::of_events(&settings).with_context(|| in_folder("its files"))?;
    manifest.crashed(certain, others)?;
    tracing::warn!("run {} was ended by force: {}", folder.number, folder.path.display());
    Ok(None)
}

/// A run whose program was ended by force goes on, if its data was confirmed when it was safe and the experiment is the
/// same. Others are closed. One that can't be closed is left as it is.
///
/// `close`: all are closed. `left`: the numbers of those that were left, which keep none from beginning any more.
///
/// # Errors
/// One that should go on cannot.
pub(super) fn unfinished<'a>(
    file: &'a File,
    runs: &Runs,
    close: bool,
    left: &mut BTreeSet<u64>,
) -> anyhow::Result<Option<Run<'a>>> {
    let mut goes_on = None;
    for folder in runs.all()? {
        let (number, path) = (folder.number, folder.path.clone());
        // Its data was confirmed when it was safe, unless its experiment is another one.
        let mut may =
            !close && !left.contains(&number) && goes_on.is_none() && file.experiment.confirm == ConfirmAt::Durable;
        let found = || {
            if !files::has_notes(&path).with_context(|| path.display().to_string())? {
                return Ok(None);
            }
            files::check_own(&path)?;
            may = may && is_same(file, &folder);
            take_up(file, folder, may)
        };
        match found() {
            Ok(run) => goes_on = goes_on.or(run),
            // Its boards keep what is not confirmed: another run would have them throw it away.
            Err(error) if may => {
                log::only_to_the_user();
                return Err(error);
            }
            Err(error) => {
                left.insert(number);
                tracing::warn!(
                    "run {number} was ended by force, and cannot be closed: {error:#}; it is left as it is: {}",
                    path.display()
                );
            }
        }
    }
    Ok(goes_on)
}

//! A program that joins as `fadelink run` does; what came out of it.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::super::disk::Disk;
use super::super::program::{self, End};
use super::super::streams;
use super::case::Case;
use super::sender::{World, WINDOW_NS};
use crate::board::GroupSettings;
use crate::build;
use crate::interrupts::Interrupts;
use crate::metrics::Meter;
use crate::receive::Group;
use crate::verdict::{Accept, State};

/// As the documented one, but shorter.
const PATIENCE: Duration = Duration::from_millis(500);

/// What came out.
pub struct Ended {
    pub state: State,
    pub report: Value,
    pub folder: PathBuf,
    pub world: Arc<World>,
    pub disk: Arc<Disk>,
}

fn settings(case: &Case, (top, folder): (&Path, &Path), world: &World) -> anyhow::Result<build::CratesSettings> {
    let sources: Vec<_> = case.crates.iter().map(|one| one.source.to_string()).collect();
    let expected = match case.named {
        true => format!("sources = [{}]", sources.join(", ")),
        false => format!("expect = {}", sources.len()),
    };
    let either = |is_first: bool, (first, second): (&'static str, &'static str)| if is_first { first } else { second };
    let text = format!(
        "[[crates]]\nname = \"c\"\nport = {}\nlisten = \"{}\"\nwindow_ns = {WINDOW_NS}\n{expected}\njoin = \"{}\"\n\
         missing = \"{}\"\nlate = \"{}\"\nduplicate = \"{}\"\nsilence = 0.1\nmax_open = {}\nsinks = [\"file:{{board}}.dat\"]\n",
        world.receiver.port(),
        world.receiver.ip(),
        either(case.by_time, ("time", "counter")),
        either(case.drops_incomplete, ("drop", "emit")),
        either(case.emits_late, ("emit", "drop")),
        either(case.keeps_last, ("last", "first")),
        case.max_open
    );
    let GroupSettings::Crates(mut settings) = program::settings((top, folder), &text)? else {
        anyhow::bail!("no group")
    };
    settings.crates.patience = PATIENCE;
    settings.accept = if case.told { Accept::Told } else { Accept::Confirmed };
    Ok(settings)
}

fn program(case: &Case, top: &Path, world: &Arc<World>, disk: &Arc<Disk>) -> anyhow::Result<Ended> {
    let folder = top.join("disk");
    std::fs::create_dir(&folder)?;
    let interrupts = Interrupts::default();
    let settings = settings(case, (top, &folder), world)?;
    let ended =
        |state, report| Ended { state, report, folder: folder.clone(), world: world.clone(), disk: disk.clone() };
    let mut group = match build::Crates::begin(settings, &interrupts) {
        Ok(crates) => Box::new(crates),
        // A file cannot be opened: the command fails and says why.
        Err(error) if disk.failed() > 0 => {
            let (state, mut report) = streams::failed(&error);
            report["crates"] = report["streams"].take();
            return Ok(ended(state, report));
        }
        Err(error) => return Err(error),
    };
    let begun = Instant::now();
    let wants_end = |_| begun.elapsed() > Duration::from_millis(case.stop);
    if let End::Failed(error) = program::receive(&mut *group, &interrupts, || false, wants_end)? {
        return Err(error);
    }
    let outcome = group.finish(true, &mut Meter::default())?;
    Ok(ended(outcome.state, outcome.json()))
}

/// Plays a seed.
///
/// # Errors
/// What should not happen in any case.
pub fn play(case: &Case, top: &Path) -> anyhow::Result<Ended> {
    let world = Arc::new(World::new());
    let disk = Arc::new(Disk::new(&top.join("disk"), case.disk));
    std::thread::scope(|scope| {
        for one in &case.crates {
            let world = &world;
            scope.spawn(move || world.serve(case, one));
        }
        for scan in &case.scans {
            scope.spawn(|| world.scan(*scan));
        }
        let ended = program(case, top, &world, &disk);
        world.over.store(true, Ordering::Relaxed);
        ended
    })
}

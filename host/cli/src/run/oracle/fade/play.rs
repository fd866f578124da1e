//! A program that receives as `fadelink run` does, in the world of a seed; what came out of it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use fadelink_receiver::Receiver;
use serde_json::{json, Value};

use super::super::disk::Disk;
use super::super::program;
use super::case::Case;
use super::world::{self, End, Shared, World, BOARD};
use crate::board::GroupSettings;
use crate::exit;
use crate::interrupts::Interrupts;
use crate::metrics::Meter;
use crate::receive::{fade, Group, Outcome, Patience};
use crate::run::experiment::File;
use crate::run::groups::{self, Kept, Resumed};
use crate::run::{crash, experiment};
use crate::verdict::State;

/// As the documented ones, but shorter.
const PATIENCE: Patience =
    Patience { silence: Duration::from_millis(1500), stop_retries: 15, inquiry: Duration::from_millis(150) };
/// Programs that go on, at most.
const PROGRAMS: usize = 6;

/// What came out.
pub struct Ended {
    pub state: State,
    pub report: Value,
    /// The last program's.
    pub folder: PathBuf,
    /// Programs that there were.
    pub programs: usize,
    pub world: Shared,
    pub disk: Arc<Disk>,
}

/// The report of a command that cannot begin, as a board's.
fn failed(error: &anyhow::Error) -> Value {
    let reasons = json!([{ "reason": "error", "text": exit::in_words(error) }]);
    json!({ "complete": false, "verdict": "incomplete", "febs": [{ "complete": false, "reasons": reasons }] })
}

fn experiment(case: &Case, folder: &Path) -> anyhow::Result<File> {
    let confirm = if case.durable { "durable" } else { "memory" };
    let told = match case.told {
        true => format!("protocol = \"{}\"\nfirmware = \"{}\"\n", case.protocol, case.firmware),
        false => String::new(),
    };
    let text = format!(
        "confirm = \"{confirm}\"\nsinks = [\"file:{{board}}.dat\"]\n[[fade]]\nname = \"a\"\ninterface = \"cable\"\n\
         mac = \"{BOARD}\"\nwindow = {}\nring = 64\n{told}",
        case.window
    );
    let path = folder.join("experiment.toml");
    std::fs::write(&path, text)?;
    experiment::File::read(&path)
}

/// Copies the files as they are at this moment, while the program still writes: it confirms nothing any more.
fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    std::fs::create_dir(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        // One that is renamed meanwhile is there by its other name.
        let copied = std::fs::copy(entry.path(), to.join(entry.file_name()));
        if copied.as_ref().is_err_and(|error| error.kind() != std::io::ErrorKind::NotFound) {
            copied?;
        }
    }
    Ok(())
}

/// A program.
struct Program {
    group: Box<dyn Group>,
    interrupts: Interrupts,
    gone: Arc<AtomicBool>,
}

impl Program {
    fn begin(file: &File, folder: &Path, resumed: Option<&Resumed>, world: &Shared) -> anyhow::Result<Program> {
        let mut settings = groups::of(file, (folder, "a run"), resumed)?;
        let Some(GroupSettings::Fade(fade)) = settings.pop() else { anyhow::bail!("no board") };
        let settings = fade::FadeSettings { patience: PATIENCE, ..fade };
        let (interrupts, gone) = (Interrupts::default(), Arc::default());
        let end = End::new(world, &gone)?;
        let receiver = if resumed.is_some() { Receiver::spawn_passive(end)? } else { Receiver::spawn(end)? };
        let group = Box::new(fade::Febs::over(receiver, settings, &interrupts)?);
        Ok(Program { group, interrupts, gone })
    }
}

/// Plays a seed.
///
/// # Errors
/// What should not happen in any case.
pub fn play(case: &Case, top: &Path) -> anyhow::Result<Ended> {
    let world = World::new(case.clone());
    let file = experiment(case, top)?;
    let disk = Arc::new(Disk::new(top, case.disk));
    let mut folder = top.join("0");
    std::fs::create_dir(&folder)?;
    let (mut resumed, mut was_stopped, mut programs) = (None::<Resumed>, false, 0);
    let begun = Instant::now();
    // The command ends with an error, which has a cause.
    let ends = |error: &anyhow::Error, folder, programs| {
        anyhow::ensure!(disk.failed() > 0, "{error:#}");
        let (world, disk) = (world.clone(), disk.clone());
        Ok(Ended { state: State::Incomplete, report: failed(error), folder, programs, world, disk })
    };
    loop {
        programs += 1;
        let number = {
            let mut world = world::lock(&world);
            world.folder = Some((disk.clone(), folder.clone()));
            world.program
        };
        let is_killed = || world::lock(&world).program != number;
        let next = top.join(programs.to_string());
        let program = match Program::begin(&file, &folder, resumed.as_ref(), &world) {
            Err(_) if is_killed() => None,
            // The command fails and says why; its user mends the disk.
            Err(_) if disk.mend() && programs < PROGRAMS && case.durable => continue,
            Err(error) => return ends(&error, folder, programs),
            Ok(begun) => Some(begun),
        };
        let Some(mut program) = program else {
            copy(&folder, &next).context("copy")?;
            folder = next;
            match found(&file, &folder, &disk) {
                Ok(boards) => resumed = Some(Resumed { boards, was_stopped, ..Resumed::default() }),
                Err(error) => return ends(&error, folder, programs),
            }
            continue;
        };
        if was_stopped {
            program.interrupts.stop();
        }
        let (enough, time) = case.stop;
        let interrupts = program.interrupts.clone();
        let wants_end = |bytes| {
            let is_enough = bytes >= enough || begun.elapsed() > Duration::from_millis(time);
            // As `fadelink run` notes that its end was asked for.
            let is_asked = interrupts.must_stop() || is_enough;
            was_stopped |= is_asked && !(case.durable && interrupts.have_failed());
            is_enough
        };
        let was_killed = match program::receive(&mut *program.group, &program.interrupts, is_killed, wants_end)? {
            program::End::Over => false,
            program::End::Killed => true,
            program::End::Failed(error) => return Err(error),
        };
        if was_killed {
            copy(&folder, &next).context("copy")?;
            program.gone.store(true, Ordering::Relaxed);
        }
        let outcome: Outcome = program.group.finish(true, &mut Meter::default())?;
        if !was_killed {
            if !outcome.may_go_on || programs >= PROGRAMS {
                let state = outcome.state;
                return Ok(Ended { state, report: outcome.json(), folder, programs, world, disk });
            }
            disk.mend();
        } else {
            folder = next;
        }
        match found(&file, &folder, &disk) {
            Ok(boards) => resumed = Some(Resumed { boards, was_stopped, ..Resumed::default() }),
            Err(error) => return ends(&error, folder, programs),
        }
    }
}

/// What is certain of the data, as `fadelink run` finds it when it is started again.
fn found(file: &File, folder: &Path, disk: &Disk) -> anyhow::Result<HashMap<String, Kept>> {
    let settings = groups::of(file, (folder, "a run"), None)?;
    let plans: Vec<_> = settings.iter().flat_map(GroupSettings::plans).collect();
    match crash::of_boards(&plans) {
        Err(_) if disk.mend() || disk.failed() > 0 => crash::of_boards(&plans),
        boards => boards,
    }
}

//! `fadelink run`: receives as the file of an experiment says, into a folder for each run (docs/runs.md).

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use fadelink_runs::files::EXPERIMENT;
use jiff::Timestamp;
use serde_json::Value;

use crate::board::GroupSettings;
use crate::exit::{self, Usage};
use crate::interrupts::Interrupts;
use crate::progress::{Goal, Progress, Unit};
use crate::receive::{drive, Outcome, NOT_KEPT};
use crate::text::{Seconds, Start};
use crate::verdict::{Reason, State};
use crate::{health, http, log, metrics};

mod ask;
mod begin;
mod check;
mod control;
mod crash;
mod experiment;
mod files;
mod folder;
mod groups;
mod life;
mod manifest;
mod moment;
mod next;
#[cfg(test)]
mod oracle;
mod own;
mod places;
mod replay;
mod schema;
mod values;
mod watch;

pub use ask::{run as ask, Args as AskArgs, Wish};
pub use check::{run as check, Args as CheckArgs};
use control::Controlled;
use experiment::File;
use folder::{RunFolder, Runs};
use groups::Resumed;
use life::Event;
use manifest::Manifest;
use next::{next, unfinished};
pub use replay::{run as replay, Args as ReplayArgs};
use watch::Watch;

/// How often is looked for what begins a run.
const TICK: Duration = Duration::from_millis(20);

#[derive(clap::Args)]
pub struct Args {
    /// File of the experiment, in TOML
    #[arg(value_name = "FILE", required_unless_present = "schema")]
    file: Option<PathBuf>,
    /// Print the JSON schema of the file, and do nothing else
    #[arg(long)]
    schema: bool,
    /// Check the file, and do nothing else
    #[arg(long)]
    check: bool,
    /// Close runs that were ended by force, as they are, and let none go on
    #[arg(long)]
    close: bool,
    /// Stop each run after this time, whatever the file says
    #[arg(long, value_name = "SECONDS", value_parser = crate::number::seconds)]
    duration: Option<Duration>,
    /// Ask boards that do not answer at the begin again for this time, and look for an interface that is not there or is down,
    /// whatever the file says
    #[arg(long, value_name = "SECONDS", value_parser = crate::number::seconds)]
    wait: Option<Duration>,
    /// Show no progress
    #[arg(long)]
    quiet: bool,
}

/// Waits for the begin of the next run; false: there is none.
fn wait(start: Start, control: &Controlled, interrupts: &Interrupts) -> bool {
    match start {
        Start::Now => control.step(Event::Start),
        Start::At(time) => tracing::info!("waiting until {time}"),
        Start::OnCommand => tracing::info!("waiting for the command to start"),
    }
    while !control.is_wanted() {
        if interrupts.must_stop() {
            return false;
        }
        if matches!(start, Start::At(time) if Timestamp::now() >= time) {
            control.step(Event::Start);
            break;
        }
        health::beat(control.trouble().into_iter().collect());
        std::thread::sleep(TICK);
    }
    true
}

/// What receiving has led to.
struct Received {
    outcomes: Vec<Outcome>,
    ended_by: String,
    /// Boards keep what is not confirmed, for a program that goes on.
    may_go_on: bool,
    /// A board has begun, now or before.
    has_begun: bool,
    /// What a board sends could not be kept, before it had begun.
    could_not_begin: bool,
    result: anyhow::Result<()>,
}

/// How a run has ended.
enum Became {
    /// It has ended: all of the data is there, or not.
    Ended { complete: bool },
    /// No board has begun, and nothing of it is left; `None`: its end was asked for before.
    Withdrawn(Option<anyhow::Error>),
}

/// A run that begins, or goes on.
struct Run<'a> {
    file: &'a File,
    folder: RunFolder,
    manifest: Manifest,
    resumed: Option<Resumed>,
}

impl Run<'_> {
    /// Receives until the end.
    fn receive(&mut self, (interrupts, control): (&Interrupts, &Controlled), quiet: bool) -> Received {
        let Run { file, folder, manifest, resumed } = self;
        let part = interrupts.of_part();
        let groups = RefCell::new(Vec::new());
        // The arguments are right: they were checked before.
        let settings = groups::of(file, (&folder.path, &manifest.name()), resumed.as_ref())
            .map_err(|error| anyhow::anyhow!("{error}"));
        let stop = &file.experiment.stop;
        let before = resumed.as_ref().map_or(Duration::ZERO, |resumed| resumed.gone_on);
        let watch = Watch::new(file, (interrupts, &part, control), folder, manifest, before);
        let watch = RefCell::new(watch);
        let failed = RefCell::new(None);
        // While one is waited for, others may send already. A run that goes on waits for all of its boards.
        let look = |missing: &str| {
            let is_left = interrupts.must_stop() || control.must_stop();
            let mut failed = failed.borrow_mut();
            if failed.is_none() && (resumed.is_none() || !is_left) {
                *failed = watch.borrow_mut().wait(&mut groups.borrow_mut(), missing, is_left).err();
            } else {
                health::beat(vec![missing.to_owned()]);
            }
            is_left || part.must_stop() || failed.is_some()
        };
        // Boards that connect or send by themselves may do so at any time.
        let must_obey = settings.as_ref().is_ok_and(|all| all.iter().any(GroupSettings::obeys));
        let opened = settings.and_then(|settings| begin::begin(settings, &part, &look, &groups));
        let (mut groups, mut watch) = (groups.into_inner(), watch.into_inner());
        watch.missing = None;
        let failed = failed.into_inner();
        let is_over = resumed.is_none() && failed.is_none() && watch.ended_by.is_some();
        let opened = failed.map_or(opened, Err);
        if opened.is_ok() && (resumed.is_some() || !must_obey) {
            control.step(Event::Receives);
        }
        // Its boards keep what is not confirmed, those that were not reached too.
        let may_go_on = opened.is_err() && resumed.is_some();
        // The end came while one was waited for, which the others have not failed for.
        let absent = opened.as_ref().err().filter(|_| is_over);
        let absent = absent.map(|error| Reason::Error(format!("{error:#}")));
        let opened = if absent.is_some() { Ok(()) } else { opened };
        if may_go_on {
            part.fail();
        } else if opened.is_err() || resumed.as_ref().is_some_and(|resumed| resumed.was_stopped) {
            part.stop();
        }
        let left = |limit| Duration::from(limit).saturating_sub(before);
        let goal = Goal { duration: stop.duration.map(left), amount: stop.size.map(|size| size.0 .0) };
        let mut progress = Progress::new(Unit::Bytes, goal, quiet);
        let mut result = opened.and_then(|()| drive(&mut groups, &mut progress, |groups| watch.look(groups)));
        part.stop();
        let ended_by = watch.manifest.ended_by().unwrap_or_else(|| "boards".into());
        let mut outcomes = Vec::new();
        for group in groups {
            match health::while_busy(|| group.finish(quiet, &mut watch.meter)) {
                Ok(outcome) => outcomes.push(outcome),
                Err(error) => result = result.and(Err(error)),
            }
        }
        outcomes.extend(absent.map(Outcome::of_what_is_absent));
        let may_go_on = may_go_on || outcomes.iter().any(|outcome| outcome.may_go_on);
        let has_begun = resumed.is_some() || may_go_on || part.has_begun();
        let ended_by = if result.is_err() { "error".into() } else { ended_by };
        let could_not_begin = part.has_failed_to_begin();
        Received { outcomes, ended_by, may_go_on, has_begun, could_not_begin, result }
    }

    /// Receives until the end, and finishes the manifest. A run of which no board begins is removed.
    fn run(mut self, runs: &Runs, both: (&Interrupts, &Controlled), quiet: bool) -> anyhow::Result<Became> {
        let (number, path) = (self.folder.number, self.folder.path.clone());
        let in_folder = |what: &str| format!("{}: {what}", path.display());
        metrics::set_of_program("fadelink_run_number", number as f64);
        metrics::set_of_program("fadelink_run_active", 1.0);
        metrics::begin_verdicts();
        metrics::set_of_program("fadelink_run_start_time_seconds", Timestamp::now().as_nanosecond() as f64 / 1e9);
        both.1.step(Event::Begun { run: number, folder: path.to_string_lossy().into_owned() });
        let verb = if self.resumed.is_some() { "goes on" } else { "begins" };
        tracing::info!("run {number} {verb}: {}", path.display());
        let Received { outcomes, ended_by, may_go_on, has_begun, could_not_begin, result } = self.receive(both, quiet);
        for reason in outcomes.iter().flat_map(|outcome| &outcome.reasons) {
            tracing::warn!("{reason}");
        }
        for board in outcomes.iter().flat_map(|outcome| &outcome.boards) {
            for reason in board["reasons"].as_array().into_iter().flatten() {
                tracing::warn!("{}: {}", text_of(&board["name"]), text_of(&reason["text"]));
            }
        }
        if !has_begun && begin::withdraw(runs, &self.folder) {
            let was_stopped = both.0.must_stop() || both.1.must_stop();
            // What was waited for until the end was asked for is not what has failed.
            let result = if was_stopped { Ok(()) } else { result };
            let error = (!was_stopped || could_not_begin).then(|| begin::why(number, &outcomes, result));
            let failed = error.as_ref().map(|error| Reason::Error(format!("{error:#}")));
            metrics::set_whole(State::Incomplete, outcomes.iter().flat_map(|outcome| &outcome.reasons).chain(&failed));
            metrics::set_of_program("fadelink_run_active", 0.0);
            metrics::set_of_program("fadelink_run_number", (number - 1) as f64);
            tracing::info!("run {number} has not begun, and nothing of it is left");
            return Ok(Became::Withdrawn(error));
        }
        let result = result.and(log::check().with_context(|| in_folder("the log")));
        let result = result.and(check_copy(self.file, &path).with_context(|| in_folder("the experiment")));
        let error = result.as_ref().err().map(|error| format!("{error:#}"));
        let failed = error.clone().map(Reason::Error);
        let state = State::worst(
            outcomes.iter().map(|outcome| outcome.state).chain(failed.as_ref().map(|_| State::Incomplete)),
        );
        metrics::set_whole(state, outcomes.iter().flat_map(|outcome| &outcome.reasons).chain(&failed));
        if may_go_on {
            tracing::warn!("run {number} goes on when this is started again: its boards keep what is not confirmed");
        }
        let is_kept = outcomes.iter().flat_map(|outcome| &outcome.boards).all(|board| board["kept"] == true);
        metrics::set_of_program("fadelink_run_active", 0.0);
        let logged = log::only_to_the_user();
        let written = if may_go_on {
            self.manifest.interrupted(outcomes, error)
        } else {
            // Who gives up waits for no answer.
            self.manifest.finish(self.file, outcomes, (&ended_by, error), (state, logged), !both.0.must_abort())
        };
        let result = result.and(written);
        if result.is_ok() {
            metrics::count_run(Some(state.name()));
        }
        // Not before the manifest says so, which has the numbers and hashes of the log.
        let good = result.is_ok() && state == State::Complete;
        let verdict = match state {
            State::Complete if good && is_kept => "complete",
            State::Complete if good => &format!("complete{NOT_KEPT}"),
            State::EndNotConfirmed if result.is_ok() => "END NOT CONFIRMED",
            _ => "NOT COMPLETE",
        };
        tracing::info!("run {number} has ended ({ended_by}): {verdict}: {}", path.display());
        result.map(|()| Became::Ended { complete: good })
    }
}

/// Whether the copy of the experiment is as it was written.
fn check_copy(file: &File, folder: &Path) -> std::io::Result<()> {
    if std::fs::read(folder.join(EXPERIMENT))? == file.text.as_bytes() {
        return Ok(());
    }
    Err(std::io::Error::other("another program has changed it: expected what the run was begun with"))
}

/// A value of a report as it is shown.
fn text_of(value: &Value) -> &str {
    value.as_str().unwrap_or("?")
}

/// Runs as the file says.
///
/// # Errors
/// A wrong file, a folder that is in use, boards or sinks that cannot be opened.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if args.schema {
        out!("{}", serde_json::to_string_pretty(&schema::schema())?);
        return Ok(ExitCode::SUCCESS);
    }
    let path = args.file.as_ref().ok_or_else(|| Usage("run: expected FILE".into()))?;
    let mut file = File::read(path)?;
    if let Some(duration) = args.duration {
        file.experiment.stop.duration = Some(Seconds(duration.as_secs_f64()));
    }
    if let Some(wait) = args.wait {
        file.experiment.wait = Some(Seconds(wait.as_secs_f64()));
    }
    let file = Arc::new(file);
    #[cfg(feature = "kafka")]
    if let Some(path) = &file.experiment.kafka_config_file {
        crate::kafka_client::begin(path)
            .map_err(|error| file.error_of("kafka_config_file", &path.to_string_lossy(), &error))?;
    }
    groups::check(&file)?;
    if args.check {
        return Ok(ExitCode::SUCCESS);
    }
    let interrupts = Interrupts::watch(false)?;
    let runs = Runs::open(&file.experiment.folder)?;
    metrics::record("run")?;
    metrics::set_of_program("fadelink_run_active", 0.0);
    let control = Arc::new(Controlled::new(file.clone()));
    let start = file.experiment.start;
    if start == Start::Now {
        control.step(Event::Start);
    }
    let _socket = control::serve(&runs, http::routes(control.clone()))?;
    if let Some(address) = file.experiment.http {
        http::serve(address, http::routes(control.clone())).with_context(|| format!("http {address}"))?;
    }
    let mut left = BTreeSet::new();
    let (mut good, mut first) = (true, unfinished(&file, &runs, args.close, &mut left)?);
    if first.is_some() {
        control.step(Event::Start);
    }
    while first.is_some() || wait(start, &control, &interrupts) {
        // The one before may not have ended.
        let goes_on = if first.is_some() { Ok(first.take()) } else { unfinished(&file, &runs, false, &mut left) };
        let run = goes_on.and_then(|run| run.map_or_else(|| next(&file, &runs), Ok));
        let result = run.and_then(|run| run.run(&runs, (&interrupts, &control), args.quiet));
        let (result, is_withdrawn) = match result {
            Ok(Became::Withdrawn(Some(error))) => (Err(error), true),
            other => (other, false),
        };
        match result {
            Ok(Became::Ended { complete }) => {
                control.step(Event::Ended { complete });
                good &= complete;
            }
            Ok(Became::Withdrawn(_)) => {
                metrics::count_run(Some("stopped"));
                control.step(Event::Withdrawn(None));
                good = false;
            }
            Err(error) => {
                metrics::count_run(Some("failed"));
                let text = exit::in_words(&error);
                control.step(if is_withdrawn { Event::Withdrawn(Some(text)) } else { Event::Failed(text) });
                // The next one may have what this one missed.
                if start != Start::OnCommand {
                    return Err(error);
                }
                tracing::error!("{}", exit::in_words(&error));
                good = false;
            }
        }
        if start != Start::OnCommand || interrupts.must_stop() {
            break;
        }
    }
    Ok(exit::of_data(good))
}

//! Messages of the command: on standard error, or to the journal.

use std::fs::File;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{fmt, io};

use blake3::{Hash, Hasher};
use clap::ValueEnum;
use fadelink_sinks::Output;
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{fmt as lines, Layer};

use crate::print;

/// How messages are written.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// The message alone
    Plain,
    /// Time, level and message
    Text,
    /// A JSON object a message, with time and level
    Json,
    /// To the journal of systemd
    Journald,
}

/// Which messages are written.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Level {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

#[derive(clap::Args)]
pub struct Args {
    /// Format of messages on standard error, or journald
    #[arg(long, global = true, value_enum, default_value_t = Format::Plain, value_name = "FORMAT")]
    log_format: Format,
    /// Lowest level of messages
    #[arg(long, global = true, value_enum, default_value_t = Level::Info, value_name = "LEVEL")]
    log_level: Level,
}

/// The log of a run.
struct Log {
    output: Output,
    bytes: u64,
    /// Of what it has.
    hasher: Hasher,
    /// Why a message is not in it.
    error: Option<String>,
}

static OF_RUN: Mutex<Option<Log>> = Mutex::new(None);

fn log() -> MutexGuard<'static, Option<Log>> {
    OF_RUN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes messages to the log of a run, too, as JSON objects.
///
/// # Errors
/// It cannot be created.
pub fn also_to(path: &Path) -> io::Result<()> {
    let output = Output::resume(path)?;
    let mut hasher = Hasher::new();
    hasher.update_reader(File::open(path)?)?;
    let bytes = hasher.count();
    *log() = Some(Log { output, bytes, hasher, error: None });
    Ok(())
}

/// Whether the log of the run has all messages so far, and keeps them.
///
/// # Errors
/// One could not be written, or another program has changed the log.
pub fn check() -> io::Result<()> {
    match &*log() {
        Some(Log { error: Some(error), .. }) => Err(io::Error::other(error.clone())),
        Some(Log { output, bytes, hasher, .. }) => {
            output.check(*bytes)?;
            output.file().sync_data()?;
            let Some(path) = output.path() else { return Ok(()) };
            let mut found = Hasher::new();
            found.update_reader(File::open(path)?)?;
            if found.finalize() == hasher.finalize() {
                return Ok(());
            }
            Err(io::Error::other("its content is not what was written: another program has changed it"))
        }
        None => Ok(()),
    }
}

/// The run has ended: its log is complete. Returns its bytes and the hash of what was written; `None`: there was none.
pub fn only_to_the_user() -> Option<(u64, Hash)> {
    log().take().map(|log| (log.bytes, log.hasher.finalize()))
}

/// Writes to the log of the run, if there is one.
struct ToRun;

impl io::Write for ToRun {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        let mut log = log();
        let Some(Log { output, bytes, hasher, error }) = &mut *log else { return Ok(text.len()) };
        let written = output.file().write(text);
        match &written {
            Ok(count) => {
                *bytes += *count as u64;
                hasher.update(&text[..*count]);
            }
            Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
            Err(why) => _ = error.get_or_insert_with(|| why.to_string()),
        }
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Standard error, above the lines of a progress display.
struct AboveProgress;

impl io::Write for AboveProgress {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        print::above_progress(text);
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Tells an error of the program, also before messages are written as the user wants them.
pub fn error(text: &str) {
    if tracing::dispatcher::has_been_set() {
        tracing::error!("{text}");
    } else {
        tell!("fadelink: {text}");
    }
}

/// A line that begins with the command's name.
struct Plain;

impl<S, N> FormatEvent<S, N> for Plain
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut line: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        write!(line, "fadelink: ")?;
        context.field_format().format_fields(line.by_ref(), event)?;
        writeln!(line)
    }
}

impl Args {
    /// Messages are written so from now on.
    ///
    /// # Errors
    /// There is no journal.
    pub fn begin(&self) -> anyhow::Result<()> {
        let level = match self.log_level {
            Level::Error => LevelFilter::ERROR,
            Level::Warn => LevelFilter::WARN,
            Level::Info => LevelFilter::INFO,
            Level::Debug => LevelFilter::DEBUG,
            Level::Trace => LevelFilter::TRACE,
        };
        let filter = Targets::new().with_default(level);
        // What cannot be written is not told on standard error, which may be what fails: the library panics then.
        let lines = || lines::layer().log_internal_errors(false).with_ansi(false).with_target(false);
        let (lines, of_run) = (lines().with_writer(|| AboveProgress), lines().with_writer(|| ToRun));
        let layer = match self.log_format {
            Format::Plain => lines.event_format(Plain).boxed(),
            Format::Text => lines.boxed(),
            Format::Json => lines.json().flatten_event(true).boxed(),
            Format::Journald => tracing_journald::layer()
                .map_err(|error| anyhow::anyhow!("--log-format journald: {error}; is systemd-journald there?"))?
                .boxed(),
        };
        let of_run = of_run.json().flatten_event(true).with_filter(filter.clone());
        let layers = layer.with_filter(filter).and_then(of_run);
        tracing_subscriber::registry().with(layers).init();
        Ok(())
    }
}

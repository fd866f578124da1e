//! `fadelink build`: joins the messages of FADC crates by time window.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Command;

use fadelink_builder::sink;
#[cfg(feature = "kafka")]
use fadelink_builder::{kafka, Event};

use super::group::{Crates, Report};
#[cfg(feature = "kafka")]
use super::group::{From, Viewers};
use crate::board;
use crate::exit::{self, Usage};
use crate::fadc_crates;
use crate::interrupts::Interrupts;
#[cfg(feature = "kafka")]
use crate::metrics;
use crate::metrics::Meter;
use crate::placeholders;
#[cfg(feature = "kafka")]
use crate::print;
use crate::progress::{Goal, Progress, Unit};
use crate::receive::{Group, LOOK};
use crate::time_in_names;
#[cfg(feature = "kafka")]
use crate::verdict::{Evidence, Verdict};
use crate::{health, http};

/// Apache Kafka.
#[derive(clap::Args)]
pub struct Kafka {
    /// Brokers of Apache Kafka, as in HOST:PORT,...
    #[arg(long, value_name = "BROKERS")]
    pub kafka: Option<String>,
    /// With --kafka: topic of the crates' messages
    #[arg(long, value_name = "TOPIC", default_value = "fadc-messages")]
    pub messages: String,
    /// With --kafka: partitions of topics that are created
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = partitions)]
    pub partitions: usize,
}

fn partitions(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|n| (1..=10_000).contains(n)).ok_or_else(|| "expected 1 to 10000".into())
}

/// Options of the other source.
const OF_TCP: [&str; 3] = ["listen", "addresses", "streams"];
const OF_KAFKA: [&str; 9] = [
    "messages",
    "partitions",
    "kafka_config",
    "kafka_config_file",
    "events_topic",
    "group",
    "name",
    "from_oldest",
    "append",
];

/// Each option of one source is refused beside the other one.
pub fn exclude(command: Command) -> Command {
    let command =
        OF_TCP.into_iter().fold(command, |command, id| command.mut_arg(id, |arg| arg.conflicts_with("kafka")));
    let is_there = |command: &Command, id: &str| command.get_arguments().any(|arg| arg.get_id() == id);
    OF_KAFKA.into_iter().fold(command, |command, id| match is_there(&command, id) {
        true => command.mut_arg(id, |arg| arg.conflicts_with("tcp")),
        // Built without Kafka.
        false => command,
    })
}

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    from: fadc_crates::Args,
    #[command(flatten)]
    kafka: Kafka,
    #[cfg(feature = "kafka")]
    #[command(flatten)]
    pub kafka_client: crate::kafka_client::Args,
    /// With --kafka: topic of the events
    #[arg(long, value_name = "TOPIC", default_value = "fadc-events")]
    events_topic: String,
    /// With --kafka: group of builders that share the windows
    #[arg(long, value_name = "NAME", default_value = "fadelink")]
    group: String,
    /// With --kafka: name of this builder; a second builder with the same name is excluded
    #[arg(long, value_name = "NAME", default_value = "builder")]
    name: String,
    /// With --kafka: a new group begins at the oldest messages that are left; without it, those that were deleted count as
    /// lost
    #[arg(long)]
    from_oldest: bool,
    /// With --kafka: a new group may write into a topic that has events already; without it, that is an error, for each window could be
    /// there twice
    #[arg(long)]
    append: bool,
    #[command(flatten)]
    join: board::Crates,
    /// End after this number of events
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    events: Option<u64>,
    /// Destinations of events: file:PATH (the messages as they came), hdf5:PATH, parquet:PATH (all three [,roll=SIZE][,every=SECONDS][,overwrite]),
    /// zmq-pub:ENDPOINT or zmq-push:ENDPOINT; all [,policy=drop][,queue=SIZE][,optional]; repeat for several. {time} is replaced by
    /// the time of the start in UTC, as 20261128T143000Z
    #[arg(long = "sink", value_name = "KIND:PLACE", value_parser = time_in_names::sink::<sink::Spec>)]
    sinks: Vec<sink::Spec>,
}

fn from_tcp(args: &Args, port: u16, interrupts: &Interrupts) -> anyhow::Result<Report> {
    let (crates, outputs) = (args.from.settings(port), (args.sinks.clone(), args.events));
    let settings = args.join.group(crates, outputs, args.from.end).map_err(Usage::from)?;
    let crates = Crates::begin(settings, interrupts)?;
    if !args.from.quiet {
        tracing::info!("waiting for crates on port {port}");
    }
    let goal = Goal { duration: args.from.duration, amount: args.events };
    let mut progress = Progress::new(Unit::Events, goal, args.from.quiet);
    let (mut meter, mut looked) = (Meter::default(), None);
    while !crates.is_finished() {
        std::thread::sleep(Duration::from_millis(20));
        if looked.is_none_or(|looked: Instant| looked.elapsed() >= LOOK) {
            looked = Some(Instant::now());
            crates.measure(&mut meter);
            health::beat(meter.take_troubles());
        }
        if progress.is_due() {
            let (events, incomplete) = crates.events();
            progress.show([("events", events, format!("{incomplete} incomplete"))].into_iter());
        }
    }
    progress.finish();
    let report = health::while_busy(|| crates.report())?;
    report.measure(&mut meter);
    show(args, &report)?;
    Ok(report)
}

/// What looks at a builder that reads from Kafka.
#[cfg(feature = "kafka")]
struct Watcher<'a> {
    name: &'a str,
    viewers: Viewers,
    progress: Progress,
    meter: Meter,
}

#[cfg(feature = "kafka")]
impl kafka::Watcher for Watcher<'_> {
    fn event(&mut self, event: &Event) {
        self.viewers.show(event);
        self.viewers.tick();
        if self.progress.is_due() {
            self.progress.show([("events", self.viewers.events, String::new())].into_iter());
        }
    }

    fn tick(&mut self, report: &kafka::Report, trouble: Option<&kafka::Error>) {
        self.meter.builder(self.name, self.viewers.events, &report.joined);
        let kafka::Report { malformed, gone, unreported, .. } = *report;
        let known = Evidence { joined: report.joined.clone(), malformed, gone, unreported, ..Evidence::default() };
        metrics::set_verdict(self.name, &Verdict::so_far(known), false);
        let labels = [("builder", self.name)];
        self.meter.count("fadelink_builder_aborted_transactions_total", &labels, report.aborts);
        for (reason, value) in [("gone", report.gone), ("malformed", report.malformed)] {
            let labels = [("builder", self.name), ("reason", reason)];
            self.meter.count("fadelink_builder_unread_messages_total", &labels, value);
        }
        health::beat(trouble.iter().map(ToString::to_string).collect());
    }
}

#[cfg(feature = "kafka")]
fn from_kafka(args: &Args, brokers: &str, interrupts: &Interrupts) -> anyhow::Result<Report> {
    let viewers = Viewers::open(&args.join.views(Vec::new()), interrupts)?;
    let plan = kafka::Plan {
        brokers: brokers.to_owned(),
        messages: args.kafka.messages.clone(),
        events: args.events_topic.clone(),
        group: args.group.clone(),
        name: args.name.clone(),
        builder_id: args.join.builder_id,
        policy: args.join.policy().map_err(Usage::from)?,
        may_begin_later: args.from_oldest,
        may_append: args.append,
    };
    if let Some(duration) = args.from.duration {
        let interrupts = interrupts.clone();
        std::thread::spawn(move || {
            std::thread::sleep(duration);
            interrupts.stop();
        });
    }
    let mut builder = kafka::Builder::connect(plan, args.kafka.partitions)?;
    if !args.from.quiet {
        tracing::info!("joining {} of {brokers}", args.kafka.messages);
    }
    let goal = Goal { duration: args.from.duration, amount: args.events };
    let progress = Progress::new(Unit::Events, goal, args.from.quiet);
    let mut watcher = Watcher { name: &args.name, viewers, progress, meter: Meter::default() };
    builder.run(interrupts.stopping(), args.events, &mut watcher);
    let Watcher { viewers, progress, .. } = watcher;
    progress.finish();
    let report = Report::end(&args.name, viewers, From::Kafka(builder.report()), args.from.end);
    show(args, &report)?;
    // Else the next builder tells it again.
    let has_told = print::check().map_err(anyhow::Error::from);
    if let Err(error) = has_told.and_then(|()| Ok(builder.reported(interrupts.stopping())?)) {
        tracing::warn!("what was reported is told by the next builder, too: {error}");
    }
    Ok(report)
}

/// Gives the report to the user.
fn show(args: &Args, report: &Report) -> anyhow::Result<()> {
    report.tell();
    if args.from.json {
        out!("{}", serde_json::to_string(report)?);
    } else {
        report.print();
    }
    Ok(())
}

/// Builds until the end is asked for.
///
/// # Errors
/// Wrong arguments, a port or a sink that cannot be opened, Kafka's errors.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let usage = |text: &str| Err(Usage(text.into()).into());
    fadelink_sinks::check_optional(&args.sinks).map_err(|what| Usage(format!("--sink: {what}")))?;
    let check = |sink: &sink::Spec| placeholders::check(&sink.place, &["time"]);
    args.sinks.iter().try_for_each(|sink| check(sink).map_err(|what| Usage(format!("--sink {sink}: {what}"))))?;
    fadelink_sinks::check_distinct(args.sinks.iter()).map_err(|what| Usage(format!("--sink {what}")))?;
    match (&args.from.tcp, &args.kafka.kafka) {
        (Some(_), Some(_)) | (None, None) => return usage("build: expected either --tcp PORT or --kafka BROKERS"),
        (None, Some(_)) if !args.sinks.is_empty() => {
            return usage("--sink: not with --kafka, whose events go to --events-topic, each exactly once")
        }
        _ => {}
    }
    let interrupts = Interrupts::watch(args.from.json)?;
    http::serve_metrics(args.from.metrics, "build")?;
    let report = match (args.from.tcp, &args.kafka.kafka) {
        (Some(port), _) => from_tcp(args, port, &interrupts)?,
        #[cfg(feature = "kafka")]
        (None, brokers) => from_kafka(args, brokers.as_deref().unwrap_or_default(), &interrupts)?,
        #[cfg(not(feature = "kafka"))]
        (None, _) => return usage("--kafka: this program was built without it (cargo feature kafka)"),
    };
    Ok(exit::of_data(report.verdict.is_complete()))
}

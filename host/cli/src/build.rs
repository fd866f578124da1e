//! `fadelink build`: joins the messages of FADC crates by time window.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::ValueEnum;
use fadelink_builder::intake::Intake;
use fadelink_builder::join::{Counts, Joined};
#[cfg(feature = "kafka")]
use fadelink_builder::kafka;
use fadelink_builder::live::Live;
use fadelink_builder::sink::{self, SharedEvent};
use fadelink_builder::{web, Event, Joiner, Policy};
use fadelink_sinks::Outlets;
use fadelink_wire::fadc::TICK_NS;
use serde::Serialize;
use serde_json::json;

use crate::exit::{self, Usage};
use crate::fadc_crates::{self, Connections, JoinBy};
use crate::interrupts::Interrupts;
use crate::progress::{Goal, Progress, Unit};

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Keep {
    /// Emit it
    Emit,
    /// Only count it
    Drop,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DuplicatePolicy {
    /// The first
    First,
    /// The last
    Last,
}

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

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    crates: fadc_crates::Args,
    #[command(flatten)]
    kafka: Kafka,
    /// With --kafka: topic of the events
    #[arg(long, value_name = "TOPIC", default_value = "fadc-events")]
    events_topic: String,
    /// With --kafka: group of builders that share the windows
    #[arg(long, value_name = "NAME", default_value = "fadelink")]
    group: String,
    /// With --kafka: name of this builder; a second builder with the same name is excluded
    #[arg(long, value_name = "NAME", default_value = "builder")]
    name: String,
    /// Length of a window in ns
    #[arg(long, value_name = "NS", value_parser = fadc_crates::window)]
    window_ns: u32,
    /// Sources of each window, as in 0xC0DA0001,0xC0DA0101
    #[arg(long, value_name = "ID,...", value_delimiter = ',', value_parser = crate::number::u32)]
    sources: Vec<u32>,
    /// Number of sources of each window, instead of --sources
    #[arg(long, value_name = "N", conflicts_with = "sources")]
    expect: Option<usize>,
    /// What identifies the window of a message
    #[arg(long, value_enum, default_value_t = JoinBy::Counter)]
    join: JoinBy,
    /// What to do with windows in which a source is missing
    #[arg(long, value_enum, default_value_t = Keep::Emit)]
    missing: Keep,
    /// What to do with messages of windows that were emitted before
    #[arg(long, value_enum, default_value_t = Keep::Drop)]
    late: Keep,
    /// Which of two messages with the same window and source is kept
    #[arg(long, value_enum, default_value_t = DuplicatePolicy::First)]
    duplicate: DuplicatePolicy,
    /// Do not wait for a source that was silent for this time
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = crate::number::seconds)]
    silence: Duration,
    /// Maximum number of open windows; sources that are further ahead must wait
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = clap::value_parser!(u64).range(1..))]
    max_open: u64,
    /// End after this number of events
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    events: Option<u64>,
    /// Destinations of events: hdf5:PATH, parquet:PATH (both [,roll=SIZE][,every=SECONDS][,overwrite]), zmq-pub:ENDPOINT or zmq-push:ENDPOINT; all
    /// [,policy=drop][,queue=SIZE]; repeat for several
    #[arg(long = "sink", value_name = "KIND:PLACE")]
    sinks: Vec<sink::Spec>,
    /// Source identifier of the events
    #[arg(long, value_name = "ID", default_value = "0xFADE0001", value_parser = crate::number::u32)]
    builder_id: u32,
    /// Serve a page with live plots at this address, as in 127.0.0.1:8080
    #[arg(long, value_name = "ADDRESS")]
    web: Option<SocketAddr>,
}

impl Args {
    fn policy(&self) -> Policy {
        Policy {
            key: self.join.key(self.window_ns),
            sources: self.sources.clone(),
            count: self.expect.unwrap_or(0),
            emit_incomplete: self.missing == Keep::Emit,
            emit_late: self.late == Keep::Emit,
            keep_last: self.duplicate == DuplicatePolicy::Last,
            silence: self.silence,
            max_open: self.max_open,
        }
    }
}

/// The consumers of events.
struct Viewers {
    sinks: Outlets<SharedEvent>,
    live: web::SharedLive,
    has_page: bool,
    events: u64,
}

impl Viewers {
    fn open(args: &Args, interrupts: &Interrupts) -> anyhow::Result<Viewers> {
        let window_ticks = args.window_ns / TICK_NS;
        let run = sink::Run { builder_id: args.builder_id, window_ticks, stopping: interrupts.stopping().clone() };
        let sinks = args.sinks.iter().map(|spec| sink::open(spec, &run)).collect::<Result<_, _>>()?;
        let live = Arc::new(Mutex::new(Live::new(window_ticks)));
        if let Some(address) = args.web {
            let address = web::serve(address, live.clone()).with_context(|| format!("--web {address}"))?;
            tracing::info!("page at http://{address}/");
        }
        Ok(Viewers { sinks: Outlets::new(sinks), live, has_page: args.web.is_some(), events: 0 })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Live> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts an event and adds it to the page.
    fn show(&mut self, event: &Event) {
        self.events += 1;
        if self.has_page {
            self.lock().add(event);
        }
    }

    /// Passes an event to all; false: a sink has failed.
    fn give(&mut self, event: Event) -> bool {
        self.show(&event);
        self.sinks.offer(&SharedEvent(Arc::new(event)))
    }

    /// Updates the rates.
    fn tick(&self) {
        if self.has_page {
            self.lock().tick(Instant::now());
        }
    }
}

/// The result of a run.
#[derive(Serialize)]
struct Report {
    events: u64,
    #[serde(flatten)]
    from: From,
    sinks: Vec<fadelink_sinks::Report>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum From {
    Tcp {
        #[serde(flatten)]
        joined: Joined,
        #[serde(flatten)]
        came: Connections,
    },
    #[cfg(feature = "kafka")]
    Kafka(kafka::Report),
}

impl Report {
    fn joined(&self) -> &Joined {
        match &self.from {
            From::Tcp { joined, .. } => joined,
            #[cfg(feature = "kafka")]
            From::Kafka(report) => &report.joined,
        }
    }

    /// True if there are events, nothing is missing, late, double or cut, and no sink failed or met a wrong message.
    fn is_good(&self) -> bool {
        let came_well = match &self.from {
            From::Tcp { came, .. } => came.are_whole() && came.skipped_bytes() == 0,
            #[cfg(feature = "kafka")]
            From::Kafka(report) => report.malformed == 0,
        };
        let written_well = self.sinks.iter().all(|sink| sink.error.is_none() && sink.wrong.count == 0);
        self.events > 0 && self.joined().is_good() && came_well && written_well
    }

    fn print(&self) {
        let Joined { windows, sources } = self.joined();
        let Counts { complete, incomplete, dropped, .. } = windows;
        println!("{} events: {complete} complete, {incomplete} incomplete; {dropped} dropped", self.events);
        for (source, counts) in sources {
            println!(
                "{source:#010x}: {} messages, {} missing, {} unknown, {} late, {} duplicate, {} windows lost, {} with a \
                 wrong time",
                counts.messages,
                counts.missing,
                counts.unknown,
                counts.late,
                counts.duplicate,
                counts.windows_lost,
                counts.wrong_time
            );
        }
        match &self.from {
            From::Tcp { came, .. } if came.skipped_bytes() > 0 => {
                println!("{} bytes belonged to no whole message", came.skipped_bytes());
            }
            #[cfg(feature = "kafka")]
            From::Kafka(report) if report.malformed > 0 => println!("{} malformed messages", report.malformed),
            _ => {}
        }
        for sink in &self.sinks {
            println!("{}: {} events written, {} dropped", sink.sink, sink.written, sink.dropped);
        }
    }
}

fn from_tcp(args: &Args, port: u16, viewers: &mut Viewers, interrupts: &Interrupts) -> anyhow::Result<From> {
    let intake = Arc::new(Intake::new(Joiner::new(args.policy())));
    let mut run = fadc_crates::Run::begin(&args.crates, port, intake.clone(), interrupts)?;
    let goal = Goal { duration: args.crates.duration, amount: args.events };
    let mut progress = Progress::new(Unit::Events, goal, args.crates.quiet);
    let mut looked = Instant::now();
    let tick = Duration::from_millis(20);
    let mut events = Vec::new();
    loop {
        let now = Instant::now();
        if now >= looked + tick {
            looked = now;
            if viewers.has_page {
                viewers.lock().set_joiner(intake.with_joiner(|joiner| json!(joiner.joined())));
            }
            viewers.tick();
            if progress.is_due() {
                let incomplete = intake.with_joiner(|joiner| joiner.joined().windows.incomplete);
                progress.show([("events", viewers.events, format!("{incomplete} incomplete"))].into_iter());
            }
            if args.events.is_some_and(|events| viewers.events >= events) || !viewers.sinks.are_well() {
                interrupts.stop();
            }
            if run.poll() {
                intake.finish();
            }
            anyhow::ensure!(!interrupts.must_abort(), "interrupted before the end");
        }
        if intake.next_events(now + tick, &mut events).is_err() {
            break;
        }
        events.drain(..).for_each(|event| {
            viewers.give(event);
        });
    }
    progress.finish();
    let came = run.finish();
    Ok(From::Tcp { joined: intake.with_joiner(Joiner::joined), came })
}

#[cfg(feature = "kafka")]
fn from_kafka(args: &Args, brokers: &str, viewers: &mut Viewers, interrupts: &Interrupts) -> anyhow::Result<From> {
    let plan = kafka::Plan {
        brokers: brokers.to_owned(),
        messages: args.kafka.messages.clone(),
        events: args.events_topic.clone(),
        group: args.group.clone(),
        name: args.name.clone(),
        builder_id: args.builder_id,
        policy: args.policy(),
    };
    if let Some(duration) = args.crates.duration {
        let interrupts = interrupts.clone();
        std::thread::spawn(move || {
            std::thread::sleep(duration);
            interrupts.stop();
        });
    }
    let mut builder = kafka::Builder::connect(plan, args.kafka.partitions)?;
    if !args.crates.quiet {
        tracing::info!("joining {} of {brokers}", args.kafka.messages);
    }
    let goal = Goal { duration: args.crates.duration, amount: args.events };
    let mut progress = Progress::new(Unit::Events, goal, args.crates.quiet);
    builder.run(interrupts.stopping(), args.events, |event| {
        viewers.show(event);
        viewers.tick();
        if progress.is_due() {
            progress.show([("events", viewers.events, String::new())].into_iter());
        }
    })?;
    progress.finish();
    Ok(From::Kafka(builder.report()))
}

/// Builds until the end is asked for.
///
/// # Errors
/// Wrong arguments, a port or a sink that cannot be opened, Kafka's errors.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let usage = |text: &str| Err(Usage(text.into()).into());
    match (&args.crates.tcp, &args.kafka.kafka) {
        (Some(_), Some(_)) | (None, None) => return usage("build: expected either --tcp PORT or --kafka BROKERS"),
        (None, Some(_)) if !args.sinks.is_empty() => {
            return usage("--sink: not with --kafka, whose events go to --events-topic, each exactly once")
        }
        _ => {}
    }
    let interrupts = Interrupts::watch()?;
    let mut viewers = Viewers::open(args, &interrupts)?;
    let from = match (args.crates.tcp, &args.kafka.kafka) {
        (Some(port), _) => from_tcp(args, port, &mut viewers, &interrupts)?,
        #[cfg(feature = "kafka")]
        (None, brokers) => from_kafka(args, brokers.as_deref().unwrap_or_default(), &mut viewers, &interrupts)?,
        #[cfg(not(feature = "kafka"))]
        (None, _) => return usage("--kafka: this program was built without it (cargo feature kafka)"),
    };
    let finished = viewers.sinks.finish(true);
    let report = Report { events: viewers.events, from, sinks: viewers.sinks.reports() };
    if args.crates.json {
        println!("{}", serde_json::to_string(&report)?);
    } else {
        report.print();
    }
    match &report.from {
        From::Tcp { came, .. } => came.tell(),
        #[cfg(feature = "kafka")]
        From::Kafka(_) => {}
    }
    for fadelink_sinks::Report { sink, wrong, .. } in &report.sinks {
        if let Some(first) = &wrong.first {
            tracing::warn!("{sink}: {} messages with an invalid word, the first: {first}", wrong.count);
        }
    }
    if let Err(error) = finished {
        tracing::error!("{error}");
    }
    Ok(exit::of_data(report.is_good()))
}

//! `fadelink feed`: sends the messages of crates to Apache Kafka, for builders on many computers.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fadelink_builder::kafka::{Failure, Feeder};
use serde::Serialize;

use crate::board::{check_window, JoinBy};
use crate::fadc_crates::Connections;
use crate::interrupts::Interrupts;
use crate::metrics::Meter;
use crate::progress::{Goal, Progress, Unit};
use crate::receive::LOOK;
use crate::verdict::{End, Evidence, Verdict};
use crate::{exit, fadc_crates, health, http, metrics};

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    crates: fadc_crates::Args,
    #[command(flatten)]
    kafka: crate::build::command::Kafka,
    #[command(flatten)]
    pub kafka_client: crate::kafka_client::Args,
    /// What identifies the window of a message; use the value of the builders
    #[arg(long, value_enum, default_value_t)]
    join: JoinBy,
    /// With --join time: length of a window in ns
    #[arg(long, value_name = "NS")]
    window_ns: Option<u32>,
}

/// Feeds until the end is asked for.
///
/// # Errors
/// Kafka's, or a port that is not available.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let (Some(port), Some(brokers)) = (args.crates.tcp, &args.kafka.kafka) else {
        return Err(exit::Usage("feed: expected --tcp PORT and --kafka BROKERS".into()).into());
    };
    if args.join == JoinBy::Time && args.window_ns.is_none() {
        return Err(exit::Usage("feed: --join time: expected --window-ns NS beside it".into()).into());
    }
    args.window_ns.map_or(Ok(()), check_window).map_err(exit::Usage::from)?;
    let key = args.join.key(args.window_ns.unwrap_or_default());
    let interrupts = Interrupts::watch(args.crates.json)?;
    http::serve_metrics(args.crates.metrics, "feed")?;
    let feeder = Arc::new(Feeder::connect(brokers, &args.kafka.messages, args.kafka.partitions, key)?);
    let mut run = fadc_crates::Run::begin(&args.crates.settings(port), feeder.clone(), &interrupts)?;
    if !args.crates.quiet {
        tracing::info!("waiting for crates on port {port}");
    }
    let goal = Goal { duration: args.crates.duration, amount: None };
    let mut progress = Progress::new(Unit::Messages, goal, args.crates.quiet);
    let (mut meter, mut looked) = (Meter::default(), None);
    while !run.poll() || !(run.is_idle() || interrupts.must_abort()) {
        std::thread::sleep(Duration::from_millis(20));
        if looked.is_none_or(|looked: Instant| looked.elapsed() >= LOOK) {
            looked = Some(Instant::now());
            let came = run.came();
            meter.connections(&came);
            run.unused().measure(&mut meter);
            let known = Evidence { joined: fadc_crates::rivals(&came), ..fadc_crates::so_far(&came) };
            metrics::set_verdict("feed", &Verdict::so_far(known), false);
            meter.count("fadelink_feed_delivered_messages_total", &[], feeder.delivered());
            feeder.trouble().into_iter().chain(run.late()).for_each(|trouble| meter.trouble(trouble));
            health::beat(meter.take_troubles());
        }
        if progress.is_due() {
            let came = run.came();
            progress.show(came.connections.iter().map(|one| (one.peer, one.counts.messages, String::new())));
        }
    }
    progress.finish();
    let came = health::while_busy(|| run.finish(|| feeder.give_up()));
    came.unused.measure(&mut meter);
    let must_abort = || interrupts.must_abort();
    let delivering = health::while_busy(|| feeder.finish(must_abort)).err().map(|error| error.to_string());
    let look = || match health::while_busy(|| feeder.look(must_abort)) {
        Ok(()) => (None, Vec::new()),
        Err(lost @ Failure::Gone { .. }) => (None, vec![lost.to_string()]),
        Err(error) => (Some(error.to_string()), Vec::new()),
    };
    // What is delivered may be gone, whatever was not. Who gives up waits for no answer.
    let (unknown, changed) = if must_abort() { (None, Vec::new()) } else { look() };
    let messages = came.came.counts().messages;
    let delivered = feeder.delivered();
    let known = came.known();
    let error = delivering.or(unknown).or(known.error.clone());
    let accept = args.crates.end;
    let joined = fadc_crates::rivals(&came.came);
    let mut known =
        Evidence { error, accept, joined, changed, undelivered: messages.saturating_sub(delivered), ..known };
    // Also if no crate came: nothing is missing then.
    let so_far = if known.end == End::Missing { Verdict::so_far(known.clone()) } else { Verdict::of(&known) };
    if so_far.is_complete() {
        known.error = health::while_busy(|| feeder.end(must_abort)).err().map(|error| error.to_string());
        if known.error.is_none() {
            (known.error, known.changed) = look();
        }
    }
    let verdict = Verdict::of(&known);
    metrics::set_verdict("feed", &verdict, true);
    let report = Report { verdict, came, messages, delivered };
    if args.crates.json {
        out!("{}", serde_json::to_string(&report)?);
    } else {
        out!(
            "{}: {messages} messages from {} connections, {delivered} delivered",
            report.verdict,
            report.came.came.number(),
        );
    }
    report.came.tell();
    Ok(exit::of_data(report.verdict.is_complete()))
}

#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    verdict: Verdict,
    #[serde(flatten)]
    came: Connections,
    messages: u64,
    delivered: u64,
}

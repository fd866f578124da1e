//! `fadelink receive` for FADE-10G and FADE v1: passes data to sinks and verifies it.

use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context;
use fadelink_receiver::counters::FebCounts;
use fadelink_receiver::{FebConfig, FebHandle, Kind, Receiver, DEFAULT_TIMEOUT};
use fadelink_sinks::{Block, Board, Origin, Outlets, Report, BLOCK_BYTES};
use fadelink_wire::fade10g::{self, PACKET_BYTES};
use fadelink_wire::MacAddr;
use serde_json::{json, Value};

use super::args::Args;
use super::plan::{self, Plan};
use super::summary::Summary;
use crate::deadline::Deadline;
use crate::discover;
use crate::exit::{self, Usage};
use crate::interrupts::Interrupts;
use crate::link::Link;
use crate::pattern::Verifier;
use crate::progress::{Progress, Unit};

/// Bytes that are waited for before the sinks are called: fewer calls, yet far less than the ring.
const THRESHOLD: usize = 32 * PACKET_BYTES;
/// Longest wait for the threshold.
const READ_TIMEOUT: Duration = Duration::from_millis(50);
/// Attempts of STOP after the first.
const STOP_RETRIES: u32 = 300;
/// Longest silence after STOP.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time without a frame after which the FEB is taken to have all its confirmations.
const QUIET: Duration = Duration::from_millis(60);
/// Longest time that is waited for that.
const LINGER: Duration = Duration::from_secs(2);

/// The result of one FEB.
#[derive(Default)]
struct Outcome {
    bytes: u64,
    complete: bool,
    seconds: f64,
    kind: Option<Kind>,
    slower: Option<String>,
    verifier: Option<Verifier>,
    counters: FebCounts,
    sinks: Vec<Report>,
    error: Option<anyhow::Error>,
}

/// What the threads share.
#[derive(Default)]
struct Control {
    interrupts: Interrupts,
    live: Mutex<Vec<Live>>,
}

/// For the progress display.
#[derive(Default, Clone)]
struct Live {
    bytes: u64,
    counters: FebCounts,
    fill: (u64, u64),
    is_slower: bool,
    sinks: Vec<Report>,
}

fn check(args: &Args) -> Result<FebConfig, Usage> {
    let usage = |text: String| Err(Usage(text));
    for (i, mac) in args.feb.iter().enumerate() {
        if mac.is_multicast() {
            return usage(format!("--feb {mac}: expected a unicast address"));
        }
        if args.feb[..i].contains(mac) {
            return usage(format!("--feb {mac}: given twice"));
        }
    }
    let config = FebConfig {
        ring_packets: args.ring,
        window: args.window,
        first_packet: args.first_packet,
        protocol: args.protocol,
        firmware: args.firmware,
        word_order: args.word_order,
    };
    config.check().map_err(Usage)?;
    Ok(config)
}

/// Receives from FEBs until all have ended.
///
/// # Errors
/// Wrong arguments, an interface, a FEB or a sink that cannot be opened.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let link = Link { iface: args.iface.clone().unwrap_or_default(), backend_args: args.backend_args };
    let config = check(args)?;
    let plans = plan::of_febs(args)?;
    let control = Control { interrupts: Interrupts::watch()?, ..Control::default() };
    control.live.lock().unwrap_or_else(PoisonError::into_inner).resize(args.feb.len(), Live::default());

    args.metrics.map_or(Ok(()), crate::metrics::serve)?;
    let receiver = link.receiver()?;
    receiver.schedule(&args.threads.schedule())?;
    let febs: Vec<FebHandle> =
        args.feb.iter().map(|mac| receiver.open_alone(*mac, config)).collect::<Result<_, _>>()?;

    // Only now: the files may be those of a program that has the FEBs already.
    let stopping = control.interrupts.stopping();
    let open = |(mac, plan): (&MacAddr, &Plan)| plan.open(Board::Feb(*mac), stopping);
    let outlets: Vec<Outlets<Block>> = args.feb.iter().zip(&plans).map(open).collect::<Result<_, _>>()?;

    let outcomes: Vec<Outcome> = std::thread::scope(|scope| {
        let threads: Vec<_> = febs
            .into_iter()
            .zip(outlets.into_iter().zip(&plans))
            .enumerate()
            .map(|(i, (feb, (outlets, plan)))| {
                let control = &control;
                scope.spawn(move || {
                    let outcome = one_feb(args, feb, i, plan, outlets, control);
                    if outcome.error.is_some() {
                        // The others end too, so that the report comes now.
                        control.interrupts.stop();
                    }
                    outcome
                })
            })
            .collect();
        show_progress(args, &link.iface, &control, &receiver, || threads.iter().all(|thread| thread.is_finished()));
        threads.into_iter().map(|thread| thread.join().unwrap_or_default()).collect()
    });
    Ok(report(args, &receiver, &outcomes))
}

/// Receives from one FEB until the end.
fn one_feb(
    args: &Args,
    mut feb: FebHandle,
    index: usize,
    plan: &Plan,
    mut outlets: Outlets<Block>,
    control: &Control,
) -> Outcome {
    let begin = Instant::now();
    let mut outcome = Outcome { verifier: plan.verifier(), ..Outcome::default() };
    let mut result = receive(args, &mut feb, index, &mut outlets, control, &mut outcome);
    if let Err(error) = outlets.finish(result.is_ok()) {
        // It says more than what it led to.
        result = Err(error.into());
    }
    outcome.sinks = outlets.reports();
    outcome.kind = feb.kind();
    outcome.slower = feb.slower().map(str::to_owned);
    if let Some(verifier) = &mut outcome.verifier {
        verifier.finish(outcome.kind.map(|kind| kind.protocol));
    }
    if result.is_ok() {
        linger(&feb);
        outcome.complete = true;
    }
    outcome.seconds = begin.elapsed().as_secs_f64();
    outcome.counters = feb.counters();
    outcome.error = result.err();
    outcome
}

fn receive(
    args: &Args,
    feb: &mut FebHandle,
    index: usize,
    outlets: &mut Outlets<Block>,
    control: &Control,
    outcome: &mut Outcome,
) -> anyhow::Result<()> {
    args.threads.schedule().apply()?;
    if args.take_over {
        feb.reset()?;
        feb.serve(QUIET);
    }
    if let Some(why) = feb.slower() {
        tracing::warn!("{}: {why}; its frames come by the slower way, AF_PACKET", feb.mac());
    }
    feb.start().context("START (if the board sends to another computer: --take-over)")?;
    if feb.counters().interrupted > 0 && !args.take_over {
        tracing::warn!(
            "{}: an earlier transmission was still running (its reader was killed?); it was aborted, \
             what its reader wrote is intact, and a new one begins with word 0",
            feb.mac()
        );
    }
    let mut deadline = Deadline::new(plan::limits(args));
    let mut last_data = Instant::now();
    let mut stopped = false;
    let mut stopping = None;
    loop {
        if !stopped && (deadline.is_reached(outcome.bytes) || control.interrupts.must_stop()) {
            // Beside the data, which goes on meanwhile; a slow link may answer late.
            let commander = feb.commander();
            stopping = Some(std::thread::spawn(move || {
                commander.command_with(fade10g::CMD_STOP, 0, DEFAULT_TIMEOUT, STOP_RETRIES)
            }));
            stopped = true;
            deadline.stop(PATIENCE);
            last_data = Instant::now();
        }
        if let Some(Ok(Err(error))) = stopping.take_if(|thread| thread.is_finished()).map(|thread| thread.join()) {
            return Err(error).context("STOP");
        }
        if control.interrupts.must_abort() && stopped && last_data.elapsed() > LINGER {
            anyhow::bail!("interrupted before the end");
        }
        anyhow::ensure!(outlets.are_well(), "a sink has failed");
        let is_there = feb.wait(THRESHOLD, Some(READ_TIMEOUT)).with_context(|| match outcome.bytes {
            0 if stopped => {
                "no data came, not even after STOP; check the power of the board, the cable and its address"
            }
            _ => "receiving",
        })?;
        if !is_there {
            return Ok(());
        }
        let data = feb.lend(BLOCK_BYTES);
        if !data.is_empty() {
            last_data = Instant::now();
            deadline.heard();
            let block = Block { data, origin: origin(feb) };
            outlets.offer(&block);
            if let Some(verifier) = &mut outcome.verifier {
                verifier.check(&block.data);
            }
            outcome.bytes += block.data.len() as u64;
        } else if feb.fill().0 > 0 {
            // Nothing can come while a sink has the whole ring.
            deadline.heard();
        }
        if let Some(limit) = deadline.too_silent() {
            anyhow::bail!("FEB {}: no data for {} s", feb.mac(), limit.as_secs_f64());
        }
        let (counters, fill, sinks) = (feb.counters(), feb.fill(), outlets.reports());
        let live = Live { bytes: outcome.bytes, counters, fill, is_slower: feb.slower().is_some(), sinks };
        control.live.lock().unwrap_or_else(PoisonError::into_inner)[index] = live;
    }
}

/// Where the data came from.
fn origin(feb: &FebHandle) -> Origin {
    let board = Board::Feb(feb.mac());
    let Some(Kind { protocol, firmware, word_order }) = feb.kind() else { return Origin::of(board) };
    Origin { board, protocol: Some(protocol), firmware, wire_order: word_order }
}

/// Stays while the FEB repeats what it has no confirmation for: an ACK may have been lost.
fn linger(feb: &FebHandle) {
    let end = Instant::now() + LINGER;
    let mut acks = feb.counters().acks;
    let mut quiet_since = Instant::now();
    while quiet_since.elapsed() < QUIET && Instant::now() < end {
        feb.serve(Duration::from_millis(5));
        let now = feb.counters().acks;
        if now != acks {
            acks = now;
            quiet_since = Instant::now();
        }
    }
}

fn line(live: &Live) -> String {
    let c = &live.counters;
    let dropped = c.no_space + c.not_started + c.protocol_errors + c.wrong_length + c.wrong_valid_words;
    let mut text = format!("{} lost, {} repaired", c.missing_frames, c.repaired);
    if dropped > 0 {
        text += &format!(", {dropped} dropped");
    }
    let full = live.fill.0 * 100 / live.fill.1.max(1);
    if full >= 50 {
        text += &format!(", ring {full} % full");
    }
    if live.is_slower {
        text += ", by AF_PACKET";
    }
    text
}

/// Shows rates until `done`.
fn show_progress(args: &Args, iface: &str, control: &Control, receiver: &Receiver, done: impl Fn() -> bool) {
    let mut progress = Progress::new(Unit::Bytes, plan::goal(args, args.feb.len() as u32), args.quiet);
    while !done() {
        std::thread::sleep(Duration::from_millis(20));
        if args.metrics.is_none() && !progress.is_due() {
            continue;
        }
        let live = control.live.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if args.metrics.is_some() {
            crate::metrics::link(iface, &receiver.counters());
            for (mac, live) in args.feb.iter().zip(&live) {
                crate::metrics::feb(*mac, live.bytes, &live.counters, live.fill);
                crate::metrics::sinks(Board::Feb(*mac), &live.sinks);
            }
        }
        if progress.is_due() {
            progress.show(args.feb.iter().zip(&live).map(|(mac, live)| (mac, live.bytes, line(live))));
        }
    }
    progress.finish();
}

impl Outcome {
    fn summary(&self, feb: MacAddr) -> Summary<'_, MacAddr> {
        let Outcome { bytes, seconds, complete, verifier, sinks, .. } = self;
        let verifier = verifier.as_ref();
        Summary { name: feb, bytes: *bytes, seconds: *seconds, complete: *complete, verifier, sinks }
    }

    fn json(&self, feb: MacAddr) -> Value {
        let more = json!({
            "protocol": self.kind.map(|kind| kind.protocol.to_string()),
            "firmware": self.kind.and_then(|kind| kind.firmware).map(|firmware| firmware.to_string()),
            "word_order": self.kind.and_then(|kind| kind.word_order).map(|order| order.to_string()),
            "slower": self.slower,
            "filler_words": self.verifier.as_ref().map(|v| v.filler),
            "error": self.error.as_ref().map(|error| format!("{error:#}")),
            "counters": self.counters,
        });
        self.summary(feb).json("feb", more)
    }
}

/// The counters that are not zero.
fn in_words(counters: &[(&str, u64)]) -> String {
    let counted = counters.iter().filter(|(_, n)| *n > 0);
    counted.map(|(name, n)| format!("{name} {n}")).collect::<Vec<_>>().join(", ")
}

fn report(args: &Args, receiver: &Receiver, outcomes: &[Outcome]) -> ExitCode {
    let febs = || args.feb.iter().copied().zip(outcomes);
    let good = febs().all(|(mac, outcome)| outcome.summary(mac).is_good());
    let link = receiver.counters();
    if args.json {
        let febs: Vec<_> = febs().map(|(mac, outcome)| outcome.json(mac)).collect();
        println!("{}", json!({ "complete": good, "febs": febs, "link": link }));
    }
    let silent = args.quiet || args.json;
    for (mac, outcome) in febs() {
        if let Some(error) = &outcome.error {
            tracing::error!("{mac}: {}", exit::in_words(error));
        }
        outcome.summary(mac).tell(args, "", "");
        if let Some(kind) = outcome.kind.filter(|_| !silent) {
            eprintln!("  {}", discover::in_words(kind));
        }
        if !silent {
            eprintln!("  {}", in_words(&outcome.counters.entries()));
        }
    }
    let link = in_words(&link.entries());
    if !silent && !link.is_empty() {
        eprintln!("link: {link}");
    }
    exit::of_data(good)
}

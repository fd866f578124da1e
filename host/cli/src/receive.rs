//! `fadelink receive`: data of FEBs to files, verified on the way.

use std::io::{self, IsTerminal, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context;
use fadelink_receiver::counters::FebCounts;
use fadelink_receiver::receiver::DEFAULT_TIMEOUT;
use fadelink_receiver::{FebConfig, FebHandle, Receiver};
use fadelink_sinks::file::FileSink;
use fadelink_sinks::{Block, OpenSink, RingPart, Sink, Spec};
use fadelink_wire::fade10g::{self, PACKET_BYTES};
use fadelink_wire::{MacAddr, Protocol};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use serde_json::{json, Value};

use crate::pattern::{first_wrong, tell_first_wrong, verdict, Pattern, Verifier};
use crate::{network, number, receive_tcp, receive_udp, How, Link, Usage, INCOMPLETE};

#[derive(clap::Args)]
pub struct Args {
    /// Network interface of the FEBs
    #[arg(long, value_name = "NAME", required_unless_present = "by_ip")]
    iface: Option<String>,
    #[command(flatten)]
    how: How,
    /// FEB to receive from; repeat for several
    #[arg(long, value_name = "MAC", required_unless_present = "by_ip")]
    feb: Vec<MacAddr>,
    #[command(flatten)]
    pub network: network::Args,
    /// File for the data, 64-bit little-endian words; one for each --feb, in order ("-": standard output); with --tcp
    /// and --udp {stream} in it stands for the address and port of each board's stream
    #[arg(long, value_name = "FILE")]
    pub out: Vec<PathBuf>,
    /// Where else the data goes: file:PATH[,direct][,preallocate=SIZE], hdf5:PATH or share:PATH[,wait]; repeat for
    /// several; {feb} in PATH stands for the address of each FEB
    #[arg(long, value_name = "SINK")]
    pub sink: Vec<Spec>,
    /// Verify the data: counter, counter:FIRST or random:SEED; one for all FEBs or one for each
    #[arg(long, value_name = "PATTERN")]
    pub verify: Vec<Pattern>,
    /// STOP after so many packets of 8192 bytes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub packets: Option<u64>,
    /// STOP after so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = number::seconds)]
    pub duration: Option<Duration>,
    /// Give up when no data comes for so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = number::seconds)]
    pub idle_timeout: Option<Duration>,
    /// Packets of 8192 bytes in the ring of each FEB, a power of two
    #[arg(long, value_name = "N", default_value_t = FebConfig::default().ring_packets)]
    ring: u64,
    /// Packets of the FEB's window
    #[arg(long, value_name = "M", default_value_t = FebConfig::default().window)]
    window: u32,
    /// Number of the first packet (0 but in tests of its wrap)
    #[arg(long, value_name = "NUMBER", default_value = "0", value_parser = number::u32)]
    first_packet: u32,
    /// What the FEBs speak, fade10g or fade1; without it START finds out
    #[arg(long, value_name = "PROTOCOL")]
    protocol: Option<Protocol>,
    /// RESET the FEB first, even if another computer receives from it
    #[arg(long)]
    take_over: bool,
    /// Serve the counters for Prometheus at http://ADDRESS/metrics
    #[arg(long, value_name = "IP:PORT")]
    pub metrics: Option<SocketAddr>,
    /// No progress
    #[arg(long)]
    pub quiet: bool,
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
}

/// Bytes that are waited for before the sinks are called: fewer calls, yet far less than the ring.
const THRESHOLD: usize = 32 * PACKET_BYTES;
/// Longest wait for the threshold.
const READ_TIMEOUT: Duration = Duration::from_millis(50);
/// Attempts of STOP after the first.
const STOP_RETRIES: u32 = 300;
/// Time without a frame after which the FEB is taken to have all its confirmations.
const QUIET: Duration = Duration::from_millis(60);
/// Longest time that is waited for that.
const LINGER: Duration = Duration::from_secs(2);

enum Output {
    None,
    Stdout,
    File(PathBuf, FileSink),
}

impl Output {
    fn write(&mut self, block: &Block<'_>, written: u64) -> anyhow::Result<()> {
        let (name, result) = match self {
            Output::None => return Ok(()),
            Output::Stdout => ("standard output".into(), io::stdout().lock().write_all(block.data)),
            Output::File(path, file) => (path.display().to_string(), file.write(block)),
        };
        result.with_context(|| {
            format!("writing {name} (the {written} bytes before are intact; make space or choose another place)")
        })
    }

    fn finish(&mut self, complete: bool) -> anyhow::Result<()> {
        match self {
            Output::None => Ok(()),
            Output::Stdout => io::stdout().lock().flush().context("writing standard output"),
            Output::File(path, file) => file.finish(complete).with_context(|| format!("writing {}", path.display())),
        }
    }
}

/// Takes data that came, with the number of bytes before it.
type Take<'a> = dyn FnMut(&Block<'_>, u64) -> anyhow::Result<()> + 'a;

/// What became of one FEB.
#[derive(Default)]
struct Outcome {
    bytes: u64,
    complete: bool,
    seconds: f64,
    protocol: Option<Protocol>,
    verifier: Option<Verifier>,
    counters: FebCounts,
    error: Option<anyhow::Error>,
}

/// What the threads share.
#[derive(Default)]
struct Control {
    stop: Arc<AtomicBool>,
    interrupts: Arc<AtomicUsize>,
    live: Mutex<Vec<Live>>,
}

/// For the progress display.
#[derive(Default, Clone)]
struct Live {
    bytes: u64,
    counters: FebCounts,
    fill: (u64, u64),
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
    if !args.out.is_empty() && args.out.len() != args.feb.len() {
        return usage(format!("--out: expected one for each of {} --feb, not {}", args.feb.len(), args.out.len()));
    }
    if args.verify.len() > 1 && args.verify.len() != args.feb.len() {
        return usage(format!("--verify: expected one, or one for each --feb, not {}", args.verify.len()));
    }
    if let Some(sink) = args.sink.iter().find(|sink| args.feb.len() > 1 && !sink.is_per_feb()) {
        return usage(format!("--sink {sink}: expected {{feb}} in the path, for each of {} FEBs", args.feb.len()));
    }
    let stdouts = args.out.iter().filter(|out| out.as_os_str() == "-").count();
    if stdouts > 1 || (stdouts > 0 && args.json) {
        return usage("--out -: standard output has room for one stream, and not for --json beside it".into());
    }
    let config = FebConfig {
        ring_packets: args.ring,
        window: args.window,
        first_packet: args.first_packet,
        protocol: args.protocol,
    };
    config.check().map_err(Usage)?;
    Ok(config)
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if args.network.tcp.is_some() || args.network.udp.is_some() {
        let not_by_ip =
            [("--iface", args.iface.is_some()), ("--feb", !args.feb.is_empty()), ("--sink", !args.sink.is_empty())];
        if let Some((name, _)) = not_by_ip.iter().find(|(_, given)| *given) {
            return Err(
                Usage(format!("{name}: not with --tcp or --udp, which receive what is sent to their port")).into()
            );
        }
    }
    match (args.network.tcp, args.network.udp) {
        (Some(port), _) => return receive_tcp::run(args, port),
        (None, Some(port)) => return receive_udp::run(args, port),
        (None, None) => {}
    }
    let link = Link { iface: args.iface.clone().unwrap_or_default(), how: args.how };
    let config = check(args)?;
    let control = Control::default();
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, control.stop.clone())?;
        signal_hook::flag::register_usize(signal, control.interrupts.clone(), 1)?;
    }
    control.live.lock().unwrap_or_else(PoisonError::into_inner).resize(args.feb.len(), Live::default());

    args.metrics.map_or(Ok(()), crate::metrics::serve)?;
    let receiver = link.receiver()?;
    let febs: Vec<FebHandle> = args.feb.iter().map(|mac| receiver.open(*mac, config)).collect::<Result<_, _>>()?;

    // Only now: the files may be those of a program that has the FEBs already.
    let mut outputs = Vec::new();
    let mut sinks: Vec<Vec<OpenSink>> = Vec::new();
    for i in 0..args.feb.len() {
        sinks.push(args.sink.iter().map(|sink| sink.open(args.feb[i])).collect::<Result<_, _>>()?);
        outputs.push(match args.out.get(i) {
            None => Output::None,
            Some(path) if path.as_os_str() == "-" => Output::Stdout,
            Some(path) => {
                let file = FileSink::create(path, false, 0).with_context(|| format!("writing {}", path.display()))?;
                Output::File(path.clone(), file)
            }
        });
    }

    let begin = Instant::now();
    let outcomes: Vec<Outcome> = std::thread::scope(|scope| {
        let threads: Vec<_> = febs
            .into_iter()
            .zip(outputs.into_iter().zip(sinks))
            .enumerate()
            .map(|(i, (feb, outputs))| {
                let control = &control;
                scope.spawn(move || {
                    let outcome = one_feb(args, feb, i, outputs, control, begin);
                    if outcome.error.is_some() {
                        // The others end too, so that the report comes now.
                        control.stop.store(true, Ordering::Relaxed);
                    }
                    outcome
                })
            })
            .collect();
        show_progress(args, &link.iface, &control, &receiver, || threads.iter().all(|thread| thread.is_finished()));
        threads.into_iter().map(|thread| thread.join().unwrap_or_default()).collect()
    });
    report(args, &receiver, &outcomes)
}

/// Receives from one FEB until the end.
fn one_feb(
    args: &Args,
    mut feb: FebHandle,
    index: usize,
    (mut output, mut sinks): (Output, Vec<OpenSink>),
    control: &Control,
    begin: Instant,
) -> Outcome {
    let pattern = args.verify.get(index).or(args.verify.first());
    let mut outcome = Outcome { verifier: pattern.copied().map(Verifier::new), ..Outcome::default() };
    let mut take = |block: &Block<'_>, written: u64| -> anyhow::Result<()> {
        output.write(block, written)?;
        sinks.iter_mut().try_for_each(|sink| sink.write(block))?;
        Ok(())
    };
    let mut result = receive(args, &mut feb, index, &mut take, control, &mut outcome);
    // Every sink is closed well, whatever became of the others.
    let complete = result.is_ok();
    result = result.and(output.finish(complete));
    for sink in &mut sinks {
        result = result.and(sink.finish(complete).map_err(Into::into));
    }
    outcome.protocol = feb.protocol();
    if let Some(verifier) = &mut outcome.verifier {
        verifier.finish(outcome.protocol);
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
    take: &mut Take<'_>,
    control: &Control,
    outcome: &mut Outcome,
) -> anyhow::Result<()> {
    if args.take_over {
        feb.reset()?;
        std::thread::sleep(QUIET);
    }
    feb.start().context("START (is the FEB there, and not receiving for another computer? --take-over)")?;
    if feb.counters().resets > 0 && !args.take_over {
        eprintln!(
            "fadelink: {}: an earlier transmission was still running (its reader was killed?); it was broken off, \
             what its reader wrote is intact, and a new one begins with word 0",
            feb.mac()
        );
    }
    let started = Instant::now();
    let mut last_data = started;
    let mut stopped = false;
    let mut stopping = None;
    loop {
        let enough = args.packets.is_some_and(|packets| outcome.bytes >= packets * PACKET_BYTES as u64)
            || args.duration.is_some_and(|duration| started.elapsed() >= duration);
        if !stopped && (enough || control.stop.load(Ordering::Relaxed)) {
            // Beside the data, which goes on meanwhile; a slow link may answer late.
            let commander = feb.commander();
            stopping = Some(std::thread::spawn(move || {
                commander.command_with(fade10g::CMD_STOP, 0, DEFAULT_TIMEOUT, STOP_RETRIES)
            }));
            stopped = true;
            last_data = Instant::now();
        }
        if let Some(Ok(Err(error))) = stopping.take_if(|thread| thread.is_finished()).map(|thread| thread.join()) {
            return Err(error).context("STOP");
        }
        if control.interrupts.load(Ordering::Relaxed) > 1 && stopped && last_data.elapsed() > LINGER {
            anyhow::bail!("interrupted before the end");
        }
        let waited = feb.wait(THRESHOLD, Some(READ_TIMEOUT)).with_context(|| match outcome.bytes {
            0 if stopped => "no data came, not even after STOP (is the FEB there?)",
            _ => "receiving",
        })?;
        let Some(data) = waited.then(|| feb.data()) else { return Ok(()) };
        let bytes = data.len();
        if bytes > 0 {
            last_data = Instant::now();
            let (fd, ring_bytes, offset) = feb.place();
            let ring = RingPart { fd, bytes: ring_bytes, offset };
            take(&Block { data, ring }, outcome.bytes)?;
            if let Some(verifier) = &mut outcome.verifier {
                verifier.check(data);
            }
            outcome.bytes += bytes as u64;
            feb.release(bytes);
        }
        let silent =
            if stopped { Some(args.idle_timeout.unwrap_or(Duration::from_secs(30))) } else { args.idle_timeout };
        if let Some(limit) = silent.filter(|limit| last_data.elapsed() >= *limit) {
            anyhow::bail!("FEB {}: no data for {} s", feb.mac(), limit.as_secs_f64());
        }
        let live = Live { bytes: outcome.bytes, counters: feb.counters(), fill: feb.fill() };
        control.live.lock().unwrap_or_else(PoisonError::into_inner)[index] = live;
    }
}

/// Stays while the FEB repeats what it has no confirmation for: an ACK may have been lost.
fn linger(feb: &FebHandle) {
    let end = Instant::now() + LINGER;
    let mut acks = feb.counters().acks;
    let mut quiet_since = Instant::now();
    while quiet_since.elapsed() < QUIET && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(5));
        let now = feb.counters().acks;
        if now != acks {
            acks = now;
            quiet_since = Instant::now();
        }
    }
}

fn line(live: &Live, rate: f64) -> String {
    let c = &live.counters;
    format!(
        "{:8.2} MB/s  {} packets  {} again  {} lost  {} dropped  delay {}  ring {} %",
        rate / 1e6,
        c.packets,
        c.duplicates,
        c.missing_frames,
        c.no_space + c.not_started + c.protocol_errors + c.wrong_length + c.wrong_valid_words,
        c.delay,
        live.fill.0 * 100 / live.fill.1.max(1),
    )
}

/// Shows rates until `done`: live on a terminal, else a line now and then.
fn show_progress(args: &Args, iface: &str, control: &Control, receiver: &Receiver, done: impl Fn() -> bool) {
    let terminal = io::stderr().is_terminal();
    let interval = if terminal { Duration::from_millis(200) } else { Duration::from_secs(5) };
    let bars: Vec<ProgressBar> = if terminal && !args.quiet {
        let all = MultiProgress::new();
        let style =
            ProgressStyle::with_template("{spinner} {prefix} {msg}").unwrap_or(ProgressStyle::default_spinner());
        let bar =
            |mac: &MacAddr| all.add(ProgressBar::new_spinner()).with_style(style.clone()).with_prefix(mac.to_string());
        args.feb.iter().map(bar).collect()
    } else {
        Vec::new()
    };
    let mut before = vec![0; args.feb.len()];
    let mut shown = Instant::now();
    while !done() {
        std::thread::sleep(Duration::from_millis(20));
        if args.metrics.is_some() {
            crate::metrics::link(iface, &receiver.counters());
            let live = control.live.lock().unwrap_or_else(PoisonError::into_inner);
            for (mac, live) in args.feb.iter().zip(live.iter()) {
                crate::metrics::feb(*mac, live.bytes, &live.counters, live.fill);
            }
        }
        let elapsed = shown.elapsed();
        if args.quiet || elapsed < interval {
            continue;
        }
        shown = Instant::now();
        let live = control.live.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for (i, live) in live.iter().enumerate() {
            let text = line(live, (live.bytes - before[i]) as f64 / elapsed.as_secs_f64());
            before[i] = live.bytes;
            match bars.get(i) {
                Some(bar) => {
                    bar.set_message(text);
                    bar.tick();
                }
                None => eprintln!("{} {text}", args.feb[i]),
            }
        }
    }
    bars.iter().for_each(ProgressBar::finish_and_clear);
}

fn to_json(mac: MacAddr, outcome: &Outcome) -> Value {
    let verifier = outcome.verifier.as_ref();
    json!({
        "feb": mac.to_string(),
        "protocol": outcome.protocol.map(|protocol| protocol.to_string()),
        "complete": outcome.complete,
        "bytes": outcome.bytes,
        "words": outcome.bytes / 8,
        "verified": verifier.map(|v| v.wrong == 0 && outcome.complete),
        "filler_words": verifier.map(|v| v.filler),
        "wrong_words": verifier.map(|v| v.wrong),
        "first_wrong": first_wrong(verifier),
        "seconds": outcome.seconds,
        "error": outcome.error.as_ref().map(|error| format!("{error:#}")),
        "counters": outcome.counters,
    })
}

/// The counters that are not zero.
fn in_words(counters: &[(&str, u64)]) -> String {
    let counted = counters.iter().filter(|(_, n)| *n > 0);
    counted.map(|(name, n)| format!("{name} {n}")).collect::<Vec<_>>().join(", ")
}

fn report(args: &Args, receiver: &Receiver, outcomes: &[Outcome]) -> anyhow::Result<ExitCode> {
    let wrong = |outcome: &Outcome| outcome.verifier.as_ref().is_some_and(|v| v.wrong > 0);
    let good = outcomes.iter().all(|outcome| outcome.complete && !wrong(outcome));
    let link = receiver.counters();
    if args.json {
        let febs: Vec<_> = args.feb.iter().zip(outcomes).map(|(mac, outcome)| to_json(*mac, outcome)).collect();
        println!("{}", json!({ "complete": good, "febs": febs, "link": link }));
    }
    for (mac, outcome) in args.feb.iter().zip(outcomes) {
        if let Some(error) = &outcome.error {
            eprintln!("fadelink: {mac}: {error:#}");
        }
        tell_first_wrong(mac, outcome.verifier.as_ref());
        if args.quiet || args.json {
            continue;
        }
        let verdict = verdict(outcome.verifier.as_ref(), outcome.complete);
        let rate = outcome.bytes as f64 / outcome.seconds.max(1e-9) / 1e6;
        eprintln!("{mac}: {verdict}: {} words in {:.2} s, {rate:.2} MB/s", outcome.bytes / 8, outcome.seconds);
        eprintln!("  {}", in_words(&outcome.counters.entries()));
    }
    if !args.quiet && !args.json {
        eprintln!("link: {}", in_words(&link.entries()));
    }
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::from(INCOMPLETE) })
}

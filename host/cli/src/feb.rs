//! `fadelink feb`: front-end boards in software, to load receivers or to try them without a board.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use fadelink_feb::example::Example;
use fadelink_feb::{Board, BoardSettings, Quirk, Quirks, Rule, User};
use fadelink_receiver::backend::packet::Packet;
use fadelink_receiver::backend::{Backend, Losses};
use fadelink_receiver::interface::check_mtu;
use fadelink_receiver::wake::poll;
use fadelink_wire::ethernet::Header;
use fadelink_wire::fade10g::PACKET_BYTES;
use fadelink_wire::{fade1, Firmware, MacAddr, Protocol};
use serde_json::json;

use crate::exit::Usage;
use crate::number;

#[derive(clap::Args)]
pub struct Args {
    /// Network interface to the receiver
    #[arg(long, value_name = "NAME")]
    iface: String,
    /// MAC address of a board; repeat for several
    #[arg(long, value_name = "MAC", required = true)]
    feb: Vec<MacAddr>,
    /// Protocol, fade10g or fade1 [default: that of the firmware, or fade10g]
    #[arg(long, value_name = "PROTOCOL")]
    protocol: Option<Protocol>,
    /// Firmware, fadelink, published-10g or published-v1
    #[arg(long, value_name = "FIRMWARE", default_value_t = Firmware::Fadelink)]
    firmware: Firmware,
    /// A single behaviour of the published cores (docs/protocol/firmware.md); repeat for several
    #[arg(long, value_name = "QUIRK")]
    quirk: Vec<Quirk>,
    /// Use the paper's rule of congestion control instead of the fair one
    #[arg(long)]
    paper_rule: bool,
    /// Window in packets, a power of two up to 64 [default: 32; published-10g: 16]; fade1 always has 32
    #[arg(long, value_name = "M", value_parser = window)]
    window: Option<u32>,
    /// Number of the first packet of a transmission (always 0, except in tests)
    #[arg(long, value_name = "NUMBER", default_value = "0", value_parser = number::u32)]
    first_packet: u32,
    /// Highest rate of each board in MB/s (10^6 bytes per second)
    #[arg(long, value_name = "MB/S", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    rate: Option<u32>,
    /// Words of each transmission; 0: no limit
    #[arg(long, value_name = "N", default_value = "0", value_parser = number::u32)]
    words: u32,
    /// Share of frames that are lost in each direction, 0 to 1
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = share)]
    loss: f64,
    /// Seed of the losses
    #[arg(long, value_name = "SEED", default_value = "1")]
    seed: u64,
    /// End after this time [default: at Ctrl-C]
    #[arg(long, value_name = "SECONDS", value_parser = number::seconds)]
    duration: Option<Duration>,
    /// Print the counters as JSON at the end
    #[arg(long)]
    json: bool,
}

/// Frames that one FEB sends before the others have their turn and ACKs are looked at.
const BURST: usize = 16;
/// Longest sleep while a transmission runs: what waits for the clock is looked at again.
const NAP: Duration = Duration::from_micros(100);
/// The same when all FEBs are idle.
const IDLE: Duration = Duration::from_millis(50);

fn window(text: &str) -> Result<u32, String> {
    let window = text.parse().ok().filter(|w: &u32| w.is_power_of_two() && *w <= 64);
    window.ok_or_else(|| "expected a power of two from 1 to 64".into())
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "expected a share from 0 to 1".into())
}

/// Frames that are lost in both directions.
pub struct Loss {
    share: f64,
    random: fastrand::Rng,
}

impl Default for Loss {
    /// None.
    fn default() -> Loss {
        Loss { share: 0.0, random: fastrand::Rng::with_seed(1) }
    }
}

impl Loss {
    fn loses(&mut self) -> bool {
        self.random.f64() < self.share
    }
}

/// A flag that SIGINT and SIGTERM set.
///
/// # Errors
/// The operating system's.
pub fn stop_on_signals() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, stop.clone())?;
    }
    Ok(stop)
}

/// Runs FEBs on an interface until `stop` is set or `goes_on` says so; frames that the kernel lost.
///
/// # Errors
/// The interface cannot be opened, or fails.
pub fn serve<U: User>(
    iface: &str,
    febs: &mut [Board<U>],
    stop: &AtomicBool,
    mut loss: Loss,
    mut goes_on: impl FnMut(&[Board<U>]) -> bool,
) -> anyhow::Result<Losses> {
    let mut backend = Packet::open(iface)?;
    for feb in febs.iter() {
        check_mtu(backend.index(), backend.mtu(), Some(feb.protocol())).map_err(anyhow::Error::msg)?;
    }
    tracing::info!("{} FEB(s) in software on {iface}", febs.len());
    let begin = Instant::now();
    while !stop.load(Ordering::Relaxed) && goes_on(febs) {
        let taken = backend.receive(&mut |frame, _| {
            if loss.loses() {
                return;
            }
            let destination = Header::split(frame).map(|(header, _)| header.dst);
            let is_mine = |mac| destination.is_some_and(|dst| dst == mac || dst == MacAddr::BROADCAST);
            febs.iter_mut().filter(|feb| is_mine(feb.mac())).for_each(|feb| feb.take(frame, begin.elapsed()));
        })?;
        let mut sent = 0;
        for feb in febs.iter_mut() {
            for _ in 0..BURST {
                let Some(frame) = feb.give(begin.elapsed()) else { break };
                // A frame that cannot be sent is one lost on the way; the receiver's ACKs tell.
                if !loss.loses() {
                    let _ = backend.send(frame);
                }
                sent += 1;
            }
        }
        if taken + sent == 0 {
            let running = febs.iter().filter(|feb| feb.status().running);
            let due = running.map(|feb| feb.next_frame().saturating_sub(begin.elapsed())).min();
            // One that is due all the same waits for ACKs or data, or for the clock of its cyclic scan.
            let nap = due.map_or(IDLE, |due| if due.is_zero() { NAP } else { due.min(IDLE) });
            poll(&mut [(backend.fd(), false)], Some(nap));
        }
    }
    Ok(backend.losses())
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    for (i, mac) in args.feb.iter().enumerate() {
        if args.feb[..i].contains(mac) {
            return Err(Usage(format!("--feb {mac}: expected addresses, each once")).into());
        }
    }
    let stop = stop_on_signals()?;
    let protocol = args.firmware.protocol().or(args.protocol).unwrap_or(Protocol::Fade10g);
    if args.protocol.is_some_and(|given| given != protocol) {
        return Err(Usage(format!("--protocol: firmware {} speaks {protocol}", args.firmware)).into());
    }
    let packet_bytes = match protocol {
        Protocol::Fade10g => PACKET_BYTES,
        Protocol::Fade1 => fade1::PACKET_BYTES,
    };
    let pace = |rate| Duration::from_secs_f64(packet_bytes as f64 / f64::from(rate) / 1e6);
    let pace = args.rate.map_or(Duration::ZERO, pace);
    let rule = if args.paper_rule { Rule::Paper } else { Rule::Fair };
    let window = args.window.unwrap_or(if args.firmware == Firmware::Published10g { 16 } else { 32 });
    let quirks = args.quirk.iter().fold(Quirks::of(args.firmware), |all, quirk| all.with(*quirk));
    let settings = BoardSettings { window, first_packet: args.first_packet, pace, rule, quirks };
    let new = |mac: &MacAddr| Board::new(protocol, *mac, settings, Example::with_limit(args.words));
    let mut febs: Vec<_> = args.feb.iter().map(new).collect();
    let loss = Loss { share: args.loss, random: fastrand::Rng::with_seed(args.seed) };
    let begin = Instant::now();
    let losses =
        serve(&args.iface, &mut febs, &stop, loss, |_| args.duration.is_none_or(|limit| begin.elapsed() < limit))?;
    let seconds = begin.elapsed().as_secs_f64();
    for feb in &febs {
        let s = feb.status();
        if args.json {
            let line = json!({ "feb": feb.mac().to_string(), "seconds": seconds, "sent": s.sent,
                "retransmitted": s.retransmitted, "acknowledged": s.acknowledged, "early": s.early,
                "protocol_errors": s.protocol_errors, "stale_acks": s.stale_acks, "running": s.running,
                "kernel_drops": losses.received, "send_errors": losses.sent });
            out!("{}", serde_json::to_string(&line).context("printing the counters")?);
        } else {
            tell!("{}: {} sent, {} of them again, {} confirmed", feb.mac(), s.sent, s.retransmitted, s.acknowledged);
        }
    }
    Ok(ExitCode::SUCCESS)
}

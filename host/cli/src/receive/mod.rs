//! `fadelink receive`: passes data of boards to files and other sinks, and verifies it. One file for each protocol;
//! the others have the common parts.

use std::net::{IpAddr, SocketAddr, SocketAddrV4};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use fadelink_receiver::FebConfig;

use crate::exit::{self, Usage};
use crate::health;
use crate::interrupts::Interrupts;
use crate::link::Link;
use crate::metrics::{self, Meter};
use crate::progress::{Progress, Unit};
use crate::verdict::State;

mod args;
mod before;
mod board;
pub mod fade;
mod group;
mod inquiry;
mod patience;
mod plan;
mod recorder;
pub mod tcp;
mod transmissions;
pub mod udp;

pub use args::Args;
pub use before::{Before, ADVICE};
pub use group::{drive, measure, Group, Line, Outcome};
pub use patience::{Patience, UdpPatience};
pub use plan::{Plan, Senders, RING_MIN};
pub use recorder::{not_kept, NOT_KEPT};
pub use transmissions::Transmissions;
pub use udp::RECEIVE_BUFFER as UDP_BUFFER;

/// How often metrics and health are looked at.
pub const LOOK: Duration = Duration::from_millis(100);

/// The FEBs that --feb names.
fn febs(args: &Args) -> Result<fade::Settings, Usage> {
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
        confirm: args.confirm.into(),
        checksum: true,
    };
    config.check().map_err(Usage)?;
    let feb = |(mac, plan): (&_, _)| fade::Feb {
        mac: *mac,
        config,
        plan,
        take_over: args.take_over,
        was_stopped: fade::WasStopped(false),
    };
    Ok(fade::Settings {
        link: Link { iface: args.iface.clone().unwrap_or_default(), backend_args: args.backend_args },
        febs: args.feb.iter().zip(plan::of_febs(args)?).map(feb).collect(),
        schedule: args.threads.schedule(),
        limits: plan::limits(args),
        accept: args.end,
        patience: Patience::default(),
    })
}

/// The TCP senders of --tcp.
fn tcp_senders(args: &Args, port: u16) -> Result<tcp::Settings, Usage> {
    Ok(tcp::Settings {
        address: SocketAddr::new(args.network.listen, port),
        senders: Senders::Any(Box::new(plan::of_streams(args)?)),
        streams: args.network.streams,
        limits: plan::limits(args),
        ring: args.ring,
        receive_buffer: args.network.receive_buffer,
        accept: args.end,
        patience: tcp::PATIENCE,
    })
}

/// The UDP/IP stacks of --udp.
fn udp_senders(args: &Args, port: u16) -> Result<udp::Settings, Usage> {
    let plan = plan::of_streams(args)?;
    let IpAddr::V4(listen) = args.network.listen else {
        return Err(Usage(format!("--listen {}: expected an IPv4 address with --udp", args.network.listen)));
    };
    Ok(udp::Settings {
        address: SocketAddrV4::new(listen, port),
        senders: Senders::Any(Box::new(plan)),
        boards: args.network.board.clone(),
        streams: args.network.streams,
        limits: plan::limits(args),
        ring: args.ring,
        receive_buffer: args.network.receive_buffer.unwrap_or(UDP_BUFFER),
        accept: args.end,
        patience: UdpPatience::default(),
    })
}

/// Receives as the arguments say.
///
/// # Errors
/// Wrong arguments, an interface, port or sink that cannot be opened, a second interrupt.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let by_ip = args.network.tcp.is_some() || args.network.udp.is_some();
    let not_by_ip = [("--iface", args.iface.is_some()), ("--feb", !args.feb.is_empty())];
    if let Some((name, _)) = not_by_ip.iter().find(|(_, given)| by_ip && *given) {
        return Err(Usage(format!("{name}: not with --tcp or --udp, which receive what is sent to their port")).into());
    }
    // A TCP sender connects again when its stream has ended.
    if args.network.tcp.is_some() && args.packets.is_some() && args.network.streams.is_none() && args.duration.is_none()
    {
        let told = "it ends a stream, and the board begins another one; expected --streams N or --duration, too";
        return Err(Usage(format!("--packets with --tcp: {told}")).into());
    }
    let interrupts = Interrupts::watch(args.json)?;
    let serve = || crate::http::serve_metrics(args.metrics, "receive");
    let waiting = |what: &str, port: u16| {
        if !args.quiet {
            tracing::info!("waiting for {what} on port {port}");
        }
    };
    let (streams, group): (u32, Box<dyn Group>) = match (args.network.tcp, args.network.udp) {
        (Some(port), _) => {
            let settings = tcp_senders(args, port)?;
            serve()?;
            let group = tcp::Streams::begin(settings, &interrupts)?;
            waiting("TCP senders", port);
            (args.network.streams.unwrap_or(1), Box::new(group))
        }
        (None, Some(port)) => {
            let settings = udp_senders(args, port)?;
            serve()?;
            let group = udp::Streams::begin(settings, &interrupts)?;
            waiting("datagrams", port);
            (1, Box::new(group))
        }
        (None, None) => {
            let settings = febs(args)?;
            serve()?;
            (args.feb.len() as u32, Box::new(fade::Febs::begin(settings, &interrupts)?))
        }
    };
    let mut groups = [group];
    let mut progress = Progress::new(Unit::Bytes, plan::goal(args, streams), args.quiet);
    let (mut meter, mut looked) = (Meter::default(), None);
    drive(&mut groups, &mut progress, |groups| {
        if looked.is_none_or(|looked: Instant| looked.elapsed() >= LOOK) {
            looked = Some(Instant::now());
            measure(groups, &mut meter);
        }
        Ok(())
    })?;
    let [group] = groups;
    let outcome = health::while_busy(|| group.finish(args.quiet || args.json, &mut meter))?;
    metrics::set_whole(outcome.state, outcome.reasons.iter());
    let good = outcome.state == State::Complete;
    if args.json {
        out!("{}", outcome.json());
    }
    Ok(exit::of_data(good))
}

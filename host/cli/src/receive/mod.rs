//! `fadelink receive`: passes data of boards to files and other sinks, and verifies it. One file for each protocol;
//! the others have the common parts.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::board::{Common, Fade, GroupSettings, Kind, Waiting};
use crate::exit::{self, Usage};
use crate::health;
use crate::interrupts::Interrupts;
use crate::metrics::{self, Meter};
use crate::progress::{Progress, Unit};
use crate::text::Text;
use crate::verdict::State;

mod args;
mod before;
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
use args::Network;
pub use before::{Before, ADVICE};
pub use group::{drive, measure, Group, Line, Outcome};
pub use patience::{Patience, UdpPatience};
pub use plan::{Plan, Senders, RING_MIN};
pub use recorder::{not_kept, NOT_KEPT};
pub use transmissions::Transmissions;
pub use udp::RECEIVE_BUFFER as UDP_BUFFER;

/// How often metrics and health are looked at.
pub const LOOK: Duration = Duration::from_millis(100);

/// The boards that the arguments describe, and how many streams may come from them.
fn group(args: &Args) -> Result<(GroupSettings, u32), Usage> {
    let Network { streams, board } = &args.network;
    let schedule = args.threads.schedule()?;
    let common = Common { limits: plan::limits(args), accept: args.end, durable: args.is_durable(), schedule };
    let any = || plan::of_streams(args).map(|plan| Senders::Any(Box::new(plan)));
    match &args.kind {
        Kind::Fade(fade) => {
            let mut group = fade.group(&common);
            for (mac, plan) in args.feb.iter().zip(plan::of_febs(args)?) {
                let feb = Fade { mac: Text(*mac), ..fade.clone() };
                feb.add_to(&mut group, (plan, fade::WasStopped(false)), &common)?;
            }
            Ok((GroupSettings::Fade(group), args.feb.len() as u32))
        }
        Kind::Tcp(_) if !board.is_empty() => {
            Err(Usage("--board: not with --tcp, where the boards open the connections".into()))
        }
        Kind::Tcp(tcp) => {
            let group = tcp.group((any()?, *streams), &common)?;
            Ok((GroupSettings::Tcp(group), streams.unwrap_or(1)))
        }
        Kind::Udp(udp) => {
            let group = udp.group((any()?, board.clone(), *streams), &common)?;
            Ok((GroupSettings::Udp(group), 1))
        }
    }
}

/// Receives as the arguments say.
///
/// # Errors
/// Wrong arguments, an interface, port or sink that cannot be opened, a second interrupt.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    // A TCP sender connects again when its stream has ended.
    if matches!(args.kind, Kind::Tcp(_))
        && args.packets.is_some()
        && args.network.streams.is_none()
        && args.duration.is_none()
    {
        let told = "it ends a stream, and the board begins another one; expected --streams N or --duration, too";
        return Err(Usage(format!("--packets with --tcp: {told}")).into());
    }
    let interrupts = Interrupts::watch(args.json)?;
    let (settings, streams) = group(args)?;
    crate::http::serve_metrics(args.metrics, "receive")?;
    let look = |missing: &str| {
        health::beat(vec![missing.to_owned()]);
        interrupts.must_stop()
    };
    let group = settings.begin(&interrupts, &Waiting::new(&look))?;
    match &args.kind {
        Kind::Tcp(tcp) if !args.quiet => tracing::info!("waiting for TCP senders on port {}", tcp.port),
        Kind::Udp(udp) if !args.quiet => tracing::info!("waiting for datagrams on port {}", udp.port),
        _ => {}
    }
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

//! `fadelink receive`.

use std::process::ExitCode;
use std::time::Instant;

use crate::board::{Common, Fade, GroupSettings, Kind, Waiting};
use crate::exit::{self, Usage};
use crate::health;
use crate::interrupts::Interrupts;
use crate::metrics::{self, Meter};
use crate::progress::{Progress, Unit};
use crate::receive::{drive, fade, measure, Senders, LOOK};
use crate::text::Text;
use crate::verdict::State;

mod args;
mod plans;

pub use args::Args;
use args::Network;

/// The boards that the arguments describe, and how many streams may come from them.
fn group(args: &Args) -> Result<(GroupSettings, u32), Usage> {
    let Network { streams, board } = &args.network;
    let schedule = args.threads.schedule()?;
    let common = Common { limits: plans::limits(args), accept: args.end, durable: args.is_durable(), schedule };
    let any = || Ok::<_, Usage>(Senders::Any(Box::new(plans::of(args)?.remove(0))));
    match &args.kind {
        Kind::Fade(fade) => {
            let mut group = fade.group(&common);
            for (mac, plan) in args.feb.iter().zip(plans::of(args)?) {
                let feb = Fade { mac: Text(*mac), ..fade.clone() };
                feb.add_to(&mut group, (plan, fade::WasStopped(false)), &common)?;
            }
            Ok((GroupSettings::Fade(group), args.feb.len() as u32))
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
    let mut progress = Progress::new(Unit::Bytes, plans::goal(args, streams), args.quiet);
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

//! What `fadelink receive` does with the data of each board or stream.

use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use fadelink_sinks::{check_distinct, check_optional, is_standard_output, BlockKind, Kind, Spec};
use fadelink_wire::fade10g::PACKET_BYTES;

use super::super::plan::Plan;
use super::super::transmissions::Transmissions;
use super::args::Args;
use crate::deadline::Limits;
use crate::exit::Usage;
use crate::placeholders;
use crate::progress::Goal;
use crate::time_in_names;

/// A name for what the command receives: this computer and this moment.
pub fn run_name() -> String {
    format!("{} {}", rustix::system::uname().nodename().to_string_lossy(), jiff::Timestamp::now())
}

/// Standard output, under whatever name, has room for one stream; each of these sinks is of as many as `streams`.
fn check_stdout<'a>(
    args: &Args,
    sinks: impl Iterator<Item = &'a Spec<BlockKind>>,
    streams: usize,
) -> Result<(), Usage> {
    let is_stdout = |sink: &&Spec<BlockKind>| {
        sink.kind == BlockKind::Stdout || (sink.kind.is_path() && is_standard_output(sink.place.as_ref()))
    };
    let found: Vec<_> = sinks.filter(is_stdout).collect();
    match found.as_slice() {
        [.., last] if found.len() * streams > 1 || args.json => Err(Usage(format!(
            "{last}: this is standard output, which has room for one stream, and not for --json beside it"
        ))),
        _ => Ok(()),
    }
}

/// Each board needs a place of its own if there are `several`: `key` represents the board in the paths.
fn check_places(sinks: &[Spec<BlockKind>], key: &str, several: bool) -> Result<(), Usage> {
    match sinks.iter().find(|sink| several && !sink.is_per_board(key)) {
        Some(sink) => {
            Err(Usage(format!("{}: expected {{{key}}} in the path, for the data of each board", named(sink))))
        }
        None => Ok(()),
    }
}

/// The option that a sink was written as.
fn named(sink: &Spec<BlockKind>) -> String {
    match sink.text.split_once(' ') {
        Some(("--out", _)) => "--out".into(),
        _ => format!("--sink {sink}"),
    }
}

/// The sinks of each --out.
fn outs(args: &Args) -> Result<Vec<Spec<BlockKind>>, Usage> {
    let out = |path: &PathBuf| {
        let Some(text) = path.to_str() else {
            let expected = "expected a name in UTF-8, as reports name it";
            return Err(Usage(format!("--out: `{}`: {expected}", path.as_os_str().as_bytes().escape_ascii())));
        };
        let path = time_in_names::expand(text);
        Spec::file(format!("--out {path}"), &path, args.overwrite).map_err(|what| Usage(format!("--out: {what}")))
    };
    args.out.iter().map(out).collect()
}

/// One for each board that --feb names, or one for all streams that come over TCP or UDP.
///
/// # Errors
/// Arguments that do not fit together.
pub fn of(args: &Args) -> Result<Vec<Plan>, Usage> {
    let by_ip = args.feb.is_empty();
    let (count, key, several) = match by_ip {
        true => (1, "stream", args.network.streams != Some(1)),
        false => (args.feb.len(), "feb", args.feb.len() > 1),
    };
    let each = if by_ip { "for all streams" } else { "for each --feb" };
    if !args.out.is_empty() && args.out.len() != count {
        return Err(Usage(format!("--out: expected one {each}, not {} for {count}", args.out.len())));
    }
    if args.verify.len() > 1 && args.verify.len() != count {
        return Err(Usage(format!("--verify: expected one, or one {each}, not {}", args.verify.len())));
    }
    let (run, outs) = (run_name(), outs(args)?);
    let plan = |index| Plan {
        name: None,
        run: run.clone(),
        sinks: outs.get(index).into_iter().chain(&args.sink).cloned().collect(),
        verify: args.verify.get(index).or(args.verify.first()).copied(),
        streams: usize::MAX,
        durable: args.is_durable(),
        resumed: None,
        before: None,
        transmissions: Transmissions::default(),
    };
    let plans: Vec<Plan> = (0..count).map(plan).collect();
    if args.is_durable() && !by_ip {
        plans.iter().try_for_each(Plan::check_durable).map_err(|what| Usage(format!("--confirm durable: {what}")))?;
    }
    plans.iter().try_for_each(|plan| check_optional(&plan.sinks)).map_err(|what| Usage(format!("--sink: {what}")))?;
    let all = || outs.iter().chain(&args.sink);
    let check = |sink: &Spec<BlockKind>| placeholders::check(&sink.place, &[key]);
    all().try_for_each(|sink| check(sink).map_err(|what| Usage(format!("{}: {what}", named(sink)))))?;
    check_stdout(args, all(), if by_ip && several { 2 } else { 1 })?;
    // Each --feb has an --out of its own.
    check_places(if by_ip { &plans[0].sinks } else { &args.sink }, key, several)?;
    check_distinct(all()).map_err(|what| Usage(format!("--sink {what}")))?;
    Ok(plans)
}

/// When the run of this many boards or streams ends by itself.
pub fn goal(args: &Args, streams: u32) -> Goal {
    let bytes = limits(args).bytes.map(|bytes| bytes * u64::from(streams));
    Goal { duration: args.duration, amount: bytes }
}

/// The limits of a run of one board.
pub fn limits(args: &Args) -> Limits {
    let bytes = args.packets.map(|packets| packets * PACKET_BYTES as u64);
    Limits { wait: args.wait.unwrap_or_default(), duration: args.duration, idle: args.idle_timeout, bytes }
}

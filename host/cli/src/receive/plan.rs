//! What `fadelink receive` does with the data of a board, for all protocols.

use std::net::IpAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

use crc32fast::Hasher;
use fadelink_sinks::hashes::Blocks;
use fadelink_sinks::{
    check_distinct, check_optional, is_standard_output, Block, BlockKind, Board, Kind, Opening, Outlets, Spec, Stopping,
};
use fadelink_wire::fade10g::PACKET_BYTES;

use super::args::Args;
use super::before::Before;
use super::transmissions::Transmissions;
use crate::deadline::Limits;
use crate::exit::Usage;
use crate::pattern::{Pattern, Verifier};
use crate::progress::Goal;
use crate::time_in_names;

/// Packets of the smallest ring of a stream: some datagrams of any length.
pub const RING_MIN: u64 = 16;

/// What to do with the data of one board.
#[derive(Clone)]
pub struct Plan {
    /// Its name, if it has one beside its address.
    pub name: Option<String>,
    /// Name of the run, which no other one has.
    pub run: String,
    pub sinks: Vec<Spec<BlockKind>>,
    pub verify: Option<Pattern>,
    /// Streams that come from it, at most.
    pub streams: usize,
    /// Its data is confirmed when it is safe.
    pub durable: bool,
    /// The data that an earlier program has confirmed, behind which this goes on.
    pub resumed: Option<Blocks>,
    /// The comparison of that data with its hashes.
    pub before: Option<Arc<Before>>,
    /// The transmissions of a FADE board that this data is of.
    pub transmissions: Transmissions,
}

/// Whose streams are received, and what is done with them.
pub enum Senders {
    /// Of everybody.
    Any(Box<Plan>),
    /// Of boards that are known.
    Known(Vec<(IpAddr, Plan)>),
}

impl Senders {
    /// The plan for the streams of `address`; `None`: no stream of it is expected.
    pub fn plan(&self, address: IpAddr) -> Option<&Plan> {
        match self {
            Senders::Any(plan) => Some(plan),
            Senders::Known(plans) => plans.iter().find(|(known, _)| *known == address).map(|(_, plan)| plan),
        }
    }

    /// The names of boards of which fewer streams came than are expected, where that is known. `came`: the address of each stream.
    pub fn absent(&self, came: &[IpAddr]) -> Vec<String> {
        let Senders::Known(plans) = self else { return Vec::new() };
        let is_absent =
            |(known, plan): &&(IpAddr, Plan)| came.iter().filter(|address| *address == known).count() < plan.streams;
        plans.iter().filter(is_absent).filter_map(|(_, plan)| plan.name.clone()).collect()
    }
}

impl Plan {
    /// Opens the sinks for the data of `board`.
    ///
    /// # Errors
    /// One of them cannot be opened; the others are closed again.
    pub fn open(&self, board: Board, stopping: &Stopping) -> Result<Outlets<Block>, fadelink_sinks::Error> {
        let Plan { run, durable, resumed, .. } = self;
        let opening = Opening { board, run, stopping, durable: *durable, resumed: resumed.as_ref() };
        let outlets: Result<_, _> = self.sinks.iter().map(|spec| spec.open(&opening)).collect();
        Ok(Outlets::new(outlets?))
    }

    /// What verifies the data.
    pub fn verifier(&self) -> Option<Verifier> {
        let mut verifier = self.verify.map(Verifier::new);
        if let (Some(verifier), Some(resumed)) = (&mut verifier, &self.resumed) {
            let begin = self.transmissions.newest().map_or(0, |newest| newest.begin);
            verifier.skip((resumed.end() - begin) / 8);
        }
        verifier
    }

    /// The CRC of the words of the transmission that goes on, or of no words yet; `None`: it is not known.
    pub fn crc(&self) -> Option<Hasher> {
        let Some(resumed) = &self.resumed else { return Some(Hasher::new()) };
        match self.transmissions.newest().map_or(0, |newest| newest.begin) {
            0 => resumed.crc().map(Hasher::new_with_initial),
            begin => (begin == resumed.end()).then(Hasher::new),
        }
    }

    /// Whether its sinks can keep data until it is safe; else why not.
    ///
    /// # Errors
    /// What was expected.
    pub fn check_durable(&self) -> Result<(), String> {
        for sink in &self.sinks {
            sink.check_durable().map_err(|what| format!("`{sink}`: {what}"))?;
        }
        match self.sinks.iter().any(Spec::is_durable) {
            true => Ok(()),
            false => Err("expected a file or kafka with policy=wait".into()),
        }
    }
}

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

/// For boards that --feb names: one for each.
///
/// # Errors
/// Arguments that do not fit together.
pub fn of_febs(args: &Args) -> Result<Vec<Plan>, Usage> {
    let count = args.feb.len();
    if !args.out.is_empty() && args.out.len() != count {
        return Err(Usage(format!("--out: expected one for each of {count} --feb, not {}", args.out.len())));
    }
    if args.verify.len() > 1 && args.verify.len() != count {
        return Err(Usage(format!("--verify: expected one, or one for each --feb, not {}", args.verify.len())));
    }
    let run = run_name();
    let outs = outs(args)?;
    let plan = |index| {
        let sinks = outs.get(index).into_iter().chain(&args.sink).cloned().collect();
        Plan {
            name: None,
            run: run.clone(),
            sinks,
            verify: args.verify.get(index).or(args.verify.first()).copied(),
            streams: usize::MAX,
            durable: args.is_durable(),
            resumed: None,
            before: None,
            transmissions: Transmissions::default(),
        }
    };
    let plans: Vec<Plan> = (0..count).map(plan).collect();
    if args.is_durable() {
        plans.iter().try_for_each(Plan::check_durable).map_err(|what| Usage(format!("--confirm durable: {what}")))?;
    }
    plans.iter().try_for_each(|plan| check_optional(&plan.sinks)).map_err(|what| Usage(format!("--sink: {what}")))?;
    check_stdout(args, outs.iter().chain(&args.sink), 1)?;
    check_places(&args.sink, "feb", count > 1)?;
    check_distinct(outs.iter().chain(&args.sink)).map_err(|what| Usage(format!("--sink {what}")))?;
    Ok(plans)
}

/// For streams that come as they come, over TCP or UDP: one for all.
///
/// # Errors
/// Arguments that do not fit together.
pub fn of_streams(args: &Args) -> Result<Plan, Usage> {
    if args.verify.len() > 1 {
        let count = args.verify.len();
        return Err(Usage(format!("--verify: expected one for all streams with --tcp and --udp, not {count}")));
    }
    if args.out.len() > 1 {
        let count = args.out.len();
        return Err(Usage(format!("--out: expected one with {{stream}} in it with --tcp and --udp, not {count}")));
    }
    let sinks = outs(args)?.into_iter().chain(args.sink.iter().cloned()).collect();
    let plan = Plan {
        name: None,
        run: run_name(),
        sinks,
        verify: args.verify.first().copied(),
        streams: usize::MAX,
        durable: args.is_durable(),
        resumed: None,
        before: None,
        transmissions: Transmissions::default(),
    };
    check_optional(&plan.sinks).map_err(|what| Usage(format!("--sink: {what}")))?;
    let several = args.network.streams != Some(1);
    check_stdout(args, plan.sinks.iter(), if several { 2 } else { 1 })?;
    check_places(&plan.sinks, "stream", several)?;
    check_distinct(plan.sinks.iter()).map_err(|what| Usage(format!("--sink {what}")))?;
    Ok(plan)
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

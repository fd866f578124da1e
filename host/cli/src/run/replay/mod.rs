//! `fadelink replay`: plays a run back, as boards in software that send its words at their own speed.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{ensure, Context};
use fadelink_builder::sink::{self, EventKind};
use fadelink_feb::{Board, BoardSettings};
use fadelink_runs::Depth;
use fadelink_sinks::Parts;
use fadelink_wire::{MacAddr, Protocol};
use serde_json::Value;

use crate::exit::{self, Usage};
use crate::feb;

mod messages;
mod recording;
mod source;
mod tcp;
mod udp;

use messages::Crates;
use recording::Recording;
use source::Source;

/// Payload of the datagrams of a board whose registers were not read: that of MTU 1500.
const PAYLOAD: u32 = 1472;
/// How long boards with FADE still answer when all of them have ended: a receiver asks a board of FADE v1 how it did, ten times a
/// second.
const LINGER: Duration = Duration::from_secs(1);

#[derive(clap::Args)]
pub struct Args {
    /// Folder of the run
    #[arg(value_name = "RUN")]
    run: PathBuf,
    #[cfg(feature = "kafka")]
    #[command(flatten)]
    pub kafka_client: crate::kafka_client::Args,
    /// Network interface to the receiver, for boards with FADE
    #[arg(long, value_name = "NAME")]
    iface: Option<String>,
    /// Address of the receiver, for boards with the TCP sender and for crates
    #[arg(long, value_name = "IP", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    to: IpAddr,
    /// IPv4 address of a board with the UDP/IP stack, in place of that of the run; repeat for several
    #[arg(long, value_name = "NAME=IP", value_parser = address)]
    address: Vec<(String, Ipv4Addr)>,
    /// Times the speed of the run; max: as fast as the receiver takes it, over UDP 1 Gb/s
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = speed)]
    speed: f64,
    /// Read also files outside that folder, if the manifest names them, and follow links
    #[arg(long)]
    outside: bool,
    /// Only this board; repeat for several
    #[arg(long, value_name = "NAME")]
    board: Vec<String>,
}

fn speed(text: &str) -> Result<f64, String> {
    if text == "max" {
        return Ok(f64::INFINITY);
    }
    text.parse().ok().filter(|factor| *factor > 0.0).ok_or_else(|| "expected a number above 0, or max".into())
}

fn address(text: &str) -> Result<(String, Ipv4Addr), String> {
    let (name, address) = text.split_once('=').ok_or("expected NAME=IP")?;
    let address = address.parse().map_err(|_| format!("`{address}`: expected an IPv4 address"))?;
    Ok((name.to_owned(), address))
}

/// The boards of a run, by what they are.
#[derive(Default)]
struct Boards {
    fade: Vec<Board<Recording>>,
    tcp: Vec<(Recording, u16)>,
    udp: Vec<udp::PlayedBoard>,
    crates: Vec<(Crates, u16)>,
}

/// The files of messages of crates in the run.
fn message_files(source: &Source, board: &Value) -> anyhow::Result<Option<Vec<PathBuf>>> {
    for sink in board["sinks"].as_array().into_iter().flatten() {
        let text = sink["sink"].as_str().unwrap_or_default();
        let spec: sink::Spec = text.parse().map_err(|what| anyhow::anyhow!("sink `{text}`: {what}"))?;
        let is_whole = sink["dropped"].as_u64().unwrap_or(0) == 0;
        if let (EventKind::Messages(files), true) = (spec.kind, is_whole) {
            return Ok(Some(Parts::found(source.scope.folder.join(spec.place), files)));
        }
    }
    Ok(None)
}

/// The hashes of files, by name.
fn hashes_of(manifest: &Value) -> BTreeMap<String, String> {
    let files = manifest["files"].as_object().into_iter().flatten();
    files.filter_map(|(name, entry)| Some((name.clone(), entry["blake3"].as_str()?.to_owned()))).collect()
}

/// A board with the UDP/IP stack.
fn udp_board(args: &Args, source: &Arc<Source>, manifest: &Value, board: &Value) -> anyhow::Result<udp::PlayedBoard> {
    let name = board["settings"]["name"].as_str().unwrap_or_default();
    let recording = Recording::of(source, args.speed, manifest, board)?;
    let peer = board["peer"].as_str().and_then(|peer| peer.parse::<SocketAddr>().ok());
    let own = board["settings"]["address"].as_str().and_then(|address| address.parse().ok());
    let given = args.address.iter().find(|(given, _)| given == name).map(|(_, address)| *address);
    let address = given.or(own).with_context(|| format!("board `{name}`: address: expected an IPv4 address"))?;
    let payload = manifest["begin"]["boards"][name]["payload"].as_u64().and_then(|bytes| u32::try_from(bytes).ok());
    let port = peer.map_or(0, |peer| peer.port());
    Ok(udp::PlayedBoard { recording, address, port, payload: payload.unwrap_or(PAYLOAD) })
}

impl Boards {
    fn of(args: &Args, source: &Arc<Source>, manifest: &Value) -> anyhow::Result<Boards> {
        let mut boards = Boards::default();
        let all = manifest["boards"].as_array().context("boards: expected an array")?;
        let is_named = |board: &Value, name: &String| board["settings"]["name"] == **name;
        if let Some(name) = args.board.iter().find(|name| !all.iter().any(|board| is_named(board, name))) {
            let names: Vec<_> = all.iter().filter_map(|board| board["settings"]["name"].as_str()).collect();
            return Err(Usage(format!("--board {name}: expected a board of the run: {}", names.join(", "))).into());
        }
        let is_wanted = |board: &&Value| args.board.is_empty() || args.board.iter().any(|name| is_named(board, name));
        for board in all.iter().filter(is_wanted) {
            let settings = &board["settings"];
            let name = board["name"].as_str().unwrap_or_default();
            let port = || -> anyhow::Result<u16> {
                let port = settings["port"].as_u64().and_then(|port| u16::try_from(port).ok());
                port.with_context(|| format!("board `{name}`: port: expected a number"))
            };
            if let Some(mac) = settings["mac"].as_str() {
                let recording = Recording::of(source, args.speed, manifest, board)?;
                let mac: MacAddr = mac.parse().map_err(|error| anyhow::anyhow!("board `{name}`: mac: {error}"))?;
                let protocol = board["protocol"].as_str().and_then(|protocol| protocol.parse().ok());
                let protocol = protocol.unwrap_or(Protocol::Fade10g);
                boards.fade.push(Board::new(protocol, mac, BoardSettings::default(), recording));
            } else if settings["window_ns"].is_u64() {
                let files = message_files(source, board)?.with_context(|| {
                    format!("crates `{name}`: the run has not their messages: expected a sink file:PATH")
                })?;
                boards.crates.push((
                    Crates {
                        name: name.to_owned(),
                        files,
                        hashes: hashes_of(manifest),
                        source: source.clone(),
                        speed: args.speed,
                    },
                    port()?,
                ));
            } else if board["counts"].is_null() {
                boards.tcp.push((Recording::of(source, args.speed, manifest, board)?, port()?));
            } else if boards.udp.iter().any(|other| other.recording.name == name) {
                tracing::warn!("board `{name}`: only its first transmission is played back");
            } else {
                boards.udp.push(udp_board(args, source, manifest, board)?);
            }
        }
        ensure!(boards.count() > 0, "the run has no board");
        Ok(boards)
    }

    fn count(&self) -> usize {
        self.fade.len() + self.tcp.len() + self.udp.len() + self.crates.len()
    }
}

type Work = Box<dyn FnOnce(&AtomicBool) -> anyhow::Result<()> + Send>;

/// Plays a run back until all of it was received: exit status 0 if it is complete, and what was played is what was received.
///
/// # Errors
/// The folder is not that of a run, or a file, an interface or the receiver fails.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let checked = fadelink_runs::check(&args.run, args.outside, Depth::Sizes)?;
    let source = Arc::new(Source::new(&args.run, args.outside)?);
    checked.findings.iter().for_each(|finding| source.doubt(finding));
    let manifest = checked.manifest.content;
    let boards = Boards::of(args, &source, &manifest)?;
    let count = boards.count();
    let Boards { mut fade, tcp, udp, crates } = boards;
    let stop = feb::stop_on_signals()?;
    let mut all: Vec<Work> = Vec::new();
    for (recording, port) in tcp {
        let address = SocketAddr::new(args.to, port);
        all.push(Box::new(move |stop| tcp::send(recording, address, stop)));
    }
    for board in udp {
        let board = board.bind()?;
        all.push(Box::new(move |stop| board.serve(stop)));
    }
    for (crates, port) in crates {
        let address = SocketAddr::new(args.to, port);
        all.push(Box::new(move |stop| crates.send(address, stop)));
    }
    let start = |work: Work| -> std::io::Result<JoinHandle<anyhow::Result<()>>> {
        let stop = Arc::clone(&stop);
        std::thread::Builder::new().name("replay".into()).spawn(move || work(&stop))
    };
    let threads: Vec<_> = all.into_iter().map(start).collect::<Result<_, _>>()?;
    tracing::info!("run {}: {count} boards are played back", manifest["run"]);
    if !fade.is_empty() {
        let iface = args.iface.as_ref().ok_or_else(|| Usage("--iface: expected for boards with FADE".into()))?;
        // A RESET may be followed by another START: a board is done when it was stopped, or has sent all.
        let mut stopped = vec![false; fade.len()];
        let mut missed = Vec::new();
        let mut ended: Option<Instant> = None;
        feb::serve(iface, &mut fade, &stop, feb::Loss::default(), |boards| {
            missed.clear();
            for (board, stopped) in boards.iter().zip(&mut stopped) {
                let status = board.status();
                *stopped |= status.stopping || board.user().has_ended();
                if status.running || !*stopped {
                    missed.push(board.user().name.clone());
                }
            }
            ended = if missed.is_empty() { ended.or(Some(Instant::now())) } else { None };
            ended.is_none_or(|ended| ended.elapsed() < LINGER)
        })?;
        fade.iter_mut().for_each(|board| board.user_mut().end());
        missed.iter().for_each(|name| source.interrupted(name));
    }
    for thread in threads {
        thread.join().map_err(|_| anyhow::anyhow!("a thread that sends panicked"))??;
    }
    Ok(exit::of_data(source.is_good()))
}

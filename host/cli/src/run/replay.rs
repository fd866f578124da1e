//! `fadelink replay`: plays a run back, as boards in software that send its words at their own speed.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{ensure, Context};
use fadelink_feb::{Settings, Status, User};
use fadelink_wire::{MacAddr, Protocol};
use jiff::Timestamp;
use rustix::net::RecvFlags;
use serde_json::Value;

use super::{check, manifest};
use crate::exit::Usage;
use crate::feb::{self, Board};

/// Longest sleep of a stream that waits for its time.
const TICK: Duration = Duration::from_millis(5);
/// From one attempt to connect to the next.
const RETRY: Duration = Duration::from_millis(200);
/// Bytes that are sent at a time.
const PIECE: usize = 64 << 10;

#[derive(clap::Args)]
pub struct Args {
    /// Folder of the run
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// Network interface to the receiver, for boards with FADE
    #[arg(long, value_name = "NAME")]
    iface: Option<String>,
    /// Address of the receiver, for boards with the TCP sender
    #[arg(long, value_name = "IP", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    to: IpAddr,
    /// Times the speed of the run; max: as fast as the receiver takes it
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = speed)]
    speed: f64,
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

/// How many bytes had come at what time since the begin, in seconds.
#[derive(Clone)]
struct Timeline(Vec<(f64, u64)>);

impl Timeline {
    /// Of a board in a manifest.
    fn of(manifest: &Value, board: &Value) -> Option<Timeline> {
        let begin: Timestamp = manifest["begin"]["utc"].as_str()?.parse().ok()?;
        let mut times = vec![(0.0, 0)];
        for entry in board["timeline"].as_array()? {
            let (time, bytes) = (entry[0].as_i64()?, entry[1].as_u64()?);
            times.push(((i128::from(time) - begin.as_nanosecond()) as f64 / 1e9, bytes));
        }
        Some(Timeline(times))
    }

    /// Bytes that had come after so many seconds: between two entries they came evenly.
    fn bytes(&self, seconds: f64) -> u64 {
        let next = self.0.partition_point(|(time, _)| *time <= seconds);
        match (self.0.get(next.wrapping_sub(1)), self.0.get(next)) {
            (Some((_, bytes)), None) => *bytes,
            (Some((begin, from)), Some((end, to))) => {
                let share = (seconds - begin) / (end - begin);
                from + ((to - from) as f64 * share) as u64
            }
            (None, _) => 0,
        }
    }
}

/// The words of a stream, from the files of the run.
struct Recording {
    name: String,
    files: Vec<PathBuf>,
    /// Bytes of its words.
    bytes: u64,
    timeline: Timeline,
    speed: f64,
    begun: Instant,
    /// The file that is read, and the number of the next.
    file: Option<File>,
    next: usize,
    at: u64,
    failed: bool,
}

impl Recording {
    /// Of a board in a manifest.
    fn of(args: &Args, manifest: &Value, board: &Value) -> anyhow::Result<Recording> {
        let name = board["name"].as_str().unwrap_or_default().to_owned();
        let mut files = None;
        for sink in board["sinks"].as_array().into_iter().flatten() {
            let is_whole = sink["dropped"].as_u64().unwrap_or(0) == 0;
            files = files.or(check::word_files(&args.run, board, sink["sink"].as_str().unwrap_or_default())?);
            files = files.filter(|_| is_whole);
        }
        let files = files.with_context(|| format!("board `{name}`: the run has no plain file of its words"))?;
        let filler = board["filler_words"].as_u64().unwrap_or(0) * 8;
        let bytes = board["bytes"].as_u64().unwrap_or(0).saturating_sub(filler);
        let timeline = Timeline::of(manifest, board).with_context(|| format!("board `{name}`: it has no timeline"))?;
        let (speed, begun) = (args.speed, Instant::now());
        Ok(Recording { name, files, bytes, timeline, speed, begun, file: None, next: 0, at: 0, failed: false })
    }

    fn restart(&mut self) {
        (self.begun, self.file, self.next, self.at) = (Instant::now(), None, 0, 0);
    }

    fn has_ended(&self) -> bool {
        self.at >= self.bytes || self.failed
    }

    /// Bytes that it is time for, a multiple of 8.
    fn due(&self) -> u64 {
        let there = match self.speed {
            f64::INFINITY => self.bytes,
            speed => self.timeline.bytes(self.begun.elapsed().as_secs_f64() * speed).min(self.bytes),
        };
        there.saturating_sub(self.at) / 8 * 8
    }

    /// Reads the next words that it is time for; their bytes.
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let wanted = self.due().min(out.len() as u64) as usize;
        let mut got = 0;
        while got < wanted {
            let Some(file) = &mut self.file else {
                let Some(path) = self.files.get(self.next) else {
                    return Err(io::Error::new(
                        ErrorKind::UnexpectedEof,
                        "the files have fewer words than the manifest",
                    ));
                };
                self.file = Some(File::open(path)?);
                self.next += 1;
                continue;
            };
            match file.read(&mut out[got..wanted])? {
                0 => self.file = None,
                bytes => got += bytes,
            }
        }
        self.at += got as u64;
        Ok(got)
    }
}

impl User for Recording {
    fn begin(&mut self) {
        self.restart();
    }

    fn fill(&mut self, out: &mut [u8]) -> usize {
        if self.failed {
            return 0;
        }
        self.read(out).unwrap_or_else(|error| {
            tracing::error!("{}: {error}", self.name);
            self.failed = true;
            0
        })
    }

    fn command(&mut self, _code: u16, _argument: u32, _status: &Status) -> u64 {
        // It has no registers.
        u64::MAX
    }
}

/// Connects to the receiver when it is there; `None`: the end was asked for.
fn connect(address: SocketAddr, stop: &AtomicBool) -> Option<TcpStream> {
    while !stop.load(Ordering::Relaxed) {
        match TcpStream::connect(address) {
            Ok(stream) => return Some(stream),
            Err(_) => std::thread::sleep(RETRY),
        }
    }
    None
}

/// True when the receiver has closed its direction: it wants no more.
fn is_closed(stream: &TcpStream) -> bool {
    matches!(rustix::net::recv(stream, &mut [0; 64][..], RecvFlags::DONTWAIT), Ok((_, 0)))
}

/// Sends a stream as a TCP sender does.
fn send(mut recording: Recording, address: SocketAddr, stop: &AtomicBool) -> anyhow::Result<()> {
    let name = recording.name.clone();
    let Some(mut stream) = connect(address, stop) else { return Ok(()) };
    recording.restart();
    let mut piece = vec![0; PIECE];
    while !recording.has_ended() && !stop.load(Ordering::Relaxed) && !is_closed(&stream) {
        match recording.read(&mut piece).with_context(|| format!("board `{name}`"))? {
            0 => std::thread::sleep(TICK),
            bytes => stream.write_all(&piece[..bytes]).with_context(|| format!("board `{name}`: {address}"))?,
        }
    }
    stream.shutdown(Shutdown::Write)?;
    // The receiver closes when it has all.
    let _ = io::copy(&mut stream, &mut io::sink());
    Ok(())
}

/// The boards of a run, by what they are.
#[derive(Default)]
struct Boards {
    fade: Vec<Board<Recording>>,
    tcp: Vec<(Recording, u16)>,
}

impl Boards {
    fn of(args: &Args, manifest: &Value) -> anyhow::Result<Boards> {
        let mut boards = Boards::default();
        let all = manifest["boards"].as_array().context("boards: expected an array")?;
        let is_named = |board: &Value, name: &String| board["settings"]["name"] == **name;
        if let Some(name) = args.board.iter().find(|name| !all.iter().any(|board| is_named(board, name))) {
            let names: Vec<_> = all.iter().filter_map(|board| board["settings"]["name"].as_str()).collect();
            return Err(Usage(format!("--board {name}: expected a board of the run: {}", names.join(", "))).into());
        }
        for board in
            all.iter().filter(|board| args.board.is_empty() || args.board.iter().any(|name| is_named(board, name)))
        {
            let settings = &board["settings"];
            let name = board["name"].as_str().unwrap_or_default();
            if let Some(mac) = settings["mac"].as_str() {
                let recording = Recording::of(args, manifest, board)?;
                let mac: MacAddr = mac.parse().map_err(|error| anyhow::anyhow!("board `{name}`: mac: {error}"))?;
                let protocol = board["protocol"].as_str().and_then(|protocol| protocol.parse().ok());
                let protocol = protocol.unwrap_or(Protocol::Fade10g);
                boards.fade.push(Board::new(protocol, mac, Settings::default(), recording));
            } else if board["peer"].is_string() && board["counts"].is_null() {
                let port = settings["port"].as_u64().and_then(|port| u16::try_from(port).ok());
                let port = port.with_context(|| format!("board `{name}`: port: expected a number"))?;
                boards.tcp.push((Recording::of(args, manifest, board)?, port));
            } else {
                tracing::warn!("board `{name}` is left out: only boards with FADE and TCP senders are played back");
            }
        }
        ensure!(!boards.fade.is_empty() || !boards.tcp.is_empty(), "the run has no board that can be played back");
        Ok(boards)
    }
}

/// Plays a run back until all of it was received.
///
/// # Errors
/// The folder is not that of a run, or a file, an interface or the receiver fails.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let manifest = manifest::read(&args.run)?;
    let Boards { mut fade, tcp } = Boards::of(args, &manifest)?;
    let stop = feb::stop_on_signals()?;
    let start = |(recording, port): (Recording, u16)| -> io::Result<JoinHandle<anyhow::Result<()>>> {
        let (address, stop) = (SocketAddr::new(args.to, port), Arc::clone(&stop));
        std::thread::Builder::new().name("tcp".into()).spawn(move || send(recording, address, &stop))
    };
    let threads: Vec<_> = tcp.into_iter().map(start).collect::<Result<_, _>>()?;
    tracing::info!("run {}: {} boards are played back", manifest["run"], fade.len() + threads.len());
    if !fade.is_empty() {
        let iface = args.iface.as_ref().ok_or_else(|| Usage("--iface: expected for boards with FADE".into()))?;
        // A RESET may be followed by another START: a board is done when it was stopped, or has sent all.
        let mut stopped = vec![false; fade.len()];
        feb::serve(iface, &mut fade, &stop, feb::Loss::default(), |boards| {
            let mut goes_on = false;
            for (board, stopped) in boards.iter().zip(&mut stopped) {
                let status = board.status();
                *stopped |= status.stopping || board.user().has_ended();
                goes_on |= status.running || !*stopped;
            }
            goes_on
        })?;
    }
    for thread in threads {
        thread.join().map_err(|_| anyhow::anyhow!("a thread that sends panicked"))??;
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_evenly_between_the_entries() {
        let timeline = Timeline(vec![(0.0, 0), (1.0, 800), (3.0, 800), (4.0, 1000)]);
        for (seconds, bytes) in
            [(-1.0, 0), (0.0, 0), (0.5, 400), (1.0, 800), (2.0, 800), (3.5, 900), (4.0, 1000), (99.0, 1000)]
        {
            assert_eq!(timeline.bytes(seconds), bytes, "{seconds} s");
        }
    }

    #[test]
    fn a_recording_is_read_across_its_files_at_its_speed() {
        let folder = tempfile::tempdir().unwrap();
        let files: Vec<_> = (0..3).map(|i| folder.path().join(format!("{i}"))).collect();
        for (i, file) in files.iter().enumerate() {
            std::fs::write(file, vec![i as u8; 1000]).unwrap();
        }
        let mut recording = Recording {
            name: "a".into(),
            files,
            bytes: 3000,
            timeline: Timeline(vec![(0.0, 0), (1000.0, 3000)]),
            speed: f64::INFINITY,
            begun: Instant::now(),
            file: None,
            next: 0,
            at: 0,
            failed: false,
        };
        let mut out = [9; 4096];
        assert_eq!(recording.read(&mut out).unwrap(), 3000);
        assert!((0..3).all(|i| out[1000 * i..1000 * (i + 1)].iter().all(|byte| *byte == i as u8)));
        assert!(recording.has_ended() && recording.read(&mut out).unwrap() == 0);
        recording.restart();
        assert!(!recording.has_ended());
        recording.speed = 1.0;
        recording.begun = Instant::now().checked_sub(Duration::from_secs(100)).unwrap();
        let bytes = recording.read(&mut out).unwrap();
        assert!((296..400).contains(&bytes) && bytes.is_multiple_of(8), "{bytes}");
        recording.bytes = 5000;
        recording.speed = f64::INFINITY;
        assert!(recording.read(&mut out).is_err(), "the files end before");
    }
}

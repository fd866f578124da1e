//! `fadelink receive --udp`: the streams of UDP/IP stacks (rtl/udp). What is lost on the way stays lost; it is counted
//! and told (docs/protocol/udp.md).

use std::io::Write;
use std::net::{IpAddr, SocketAddrV4};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context;
use fadelink_receiver::udp::{Batches, Order, Step};
use fadelink_wire::fade10g::PACKET_BYTES;
use fadelink_wire::udp::{self, Datagram};
use serde_json::{json, Value};

use super::args::Args;
use super::interrupts::Interrupts;
use super::plan::{self, Plan};
use super::progress::Progress;
use super::summary::{self, Summary};
use crate::exit::{self, Usage};
use crate::pattern::Verifier;
use crate::slow_control::SlowControl;

/// Receive buffer that the kernel is asked for.
const RECEIVE_BUFFER: u32 = 32 << 20;
/// Longest wait for a datagram, before other things are looked at.
const TICK: Duration = Duration::from_millis(50);
/// How often progress and metrics are looked at.
const SHOW: Duration = Duration::from_millis(200);
/// From the end of a run to the moment in which what is missing is given up for.
const LINGER: Duration = Duration::from_millis(200);
/// Silence after which a board is asked whether its run is over.
const SILENCE: Duration = Duration::from_secs(1);
/// Longest wait for the ends of runs that were stopped.
const PATIENCE: Duration = Duration::from_secs(10);
/// Of the slow control: wait of one attempt, attempts.
const CONTROL_TIMEOUT: Duration = Duration::from_millis(200);
const CONTROL_RETRIES: u32 = 25;

/// One run of one board.
struct Stream {
    peer: SocketAddrV4,
    run: u8,
    begin: Instant,
    order: Order,
    bytes: u64,
    /// Words of a full datagram: of the largest that came.
    full: u64,
    verifier: Option<Verifier>,
    out: Option<Box<dyn Write + Send>>,
    /// Datagrams of the run, when its end has come, and when.
    end: Option<(u32, Instant)>,
    closed: bool,
    seconds: f64,
}

impl Stream {
    /// Takes a datagram; words go on in order.
    fn take(&mut self, datagram: &Datagram<'_>) -> anyhow::Result<()> {
        if datagram.end {
            self.end.get_or_insert((datagram.counter, Instant::now()));
            return Ok(());
        }
        self.full = self.full.max(datagram.words.len() as u64 / 8);
        let mut result = Ok(());
        let Stream { order, verifier, out, bytes, full, .. } = self;
        order.push(datagram.counter, datagram.words, |step| on_step(&step, verifier, out, bytes, *full, &mut result));
        result
    }

    /// Gives up for what has not come.
    fn close(&mut self) -> anyhow::Result<()> {
        self.closed = true;
        self.seconds = self.begin.elapsed().as_secs_f64();
        let mut result = Ok(());
        let Stream { order, verifier, out, bytes, full, end, .. } = self;
        order.finish(end.map(|(total, _)| total), |step| on_step(&step, verifier, out, bytes, *full, &mut result));
        if let Some(verifier) = verifier {
            verifier.finish(None);
        }
        if let Some(out) = out {
            out.flush().context("writing the data")?;
        }
        result
    }

    /// All that was to come has come, or has had time enough.
    fn is_due(&self) -> bool {
        self.end.is_some_and(|(total, since)| self.order.has_all(total) || since.elapsed() > LINGER)
    }

    fn is_complete(&self) -> bool {
        let counts = self.order.counts();
        self.closed && counts.lost == 0 && counts.late == 0
    }

    fn summary(&self) -> Summary<'_, SocketAddrV4> {
        let Stream { peer, bytes, seconds, verifier, .. } = self;
        let complete = self.is_complete();
        Summary { name: *peer, bytes: *bytes, seconds: *seconds, complete, verifier: verifier.as_ref() }
    }

    fn json(&self) -> Value {
        let more = json!({
            "run": self.run,
            "ended": self.end.is_some(),
            "datagrams": self.end.map(|(total, _)| total),
            "first": self.order.first(),
            "counts": self.order.counts(),
            "gaps": self.order.gaps(),
        });
        self.summary().json("peer", more)
    }

    /// Tells what was lost, and the rest.
    fn tell(&self, args: &Args) {
        let (peer, counts) = (self.peer, self.order.counts());
        if counts.lost + counts.late > 0 {
            let all = counts.received + counts.lost + counts.late;
            let percent = 100.0 * (counts.lost + counts.late) as f64 / all as f64;
            eprintln!(
                "fadelink: {peer}: {} of {all} datagrams LOST ({percent:.3} %), {} more came too late",
                counts.lost, counts.late
            );
        }
        let first = self.order.first();
        let from = if first > 0 { format!(" from datagram {first}") } else { String::new() };
        let end = if self.end.is_some() { "" } else { ", its end did not come" };
        self.summary().tell(args, &from, end);
    }
}

fn on_step(
    step: &Step<'_>,
    verifier: &mut Option<Verifier>,
    out: &mut Option<Box<dyn Write + Send>>,
    bytes: &mut u64,
    full: u64,
    result: &mut anyhow::Result<()>,
) {
    match step {
        Step::Words(words) => {
            *bytes += words.len() as u64;
            if let Some(verifier) = verifier {
                verifier.check(words);
            }
            if let (Some(out), Ok(())) = (out, &result) {
                *result = out.write_all(words).context("writing the data");
            }
        }
        // The pattern goes on behind the gap, if the datagrams there were full ones.
        Step::Missing(count) => {
            if let Some(verifier) = verifier {
                verifier.skip(count * full);
            }
        }
    }
}

/// Datagrams that are of no stream, by their reason.
#[derive(Default, serde::Serialize)]
struct Dropped {
    truncated: u64,
    words: u64,
    flags: u64,
    oversize: u64,
    /// The kernel had no room: the receive buffer was full.
    kernel: u64,
}

struct Session<'a> {
    args: &'a Args,
    plan: Plan,
    socket: Batches,
    boards: Vec<SlowControl>,
    streams: Vec<Stream>,
    dropped: Dropped,
}

impl Session<'_> {
    /// Directs the boards' streams here and starts them.
    fn start(&mut self, port: u16) -> anyhow::Result<()> {
        for board in &mut self.boards {
            let own = board.own_address()?;
            board.write(udp::REGISTER_ENABLE, 0)?;
            // The run that was stopped so may take a while to its end.
            let begin = Instant::now();
            while let Err(error) = board.write(udp::REGISTER_PEER_IP, own.into()) {
                if begin.elapsed() > PATIENCE {
                    return Err(error);
                }
                std::thread::sleep(TICK);
            }
            board.write(udp::REGISTER_PEER_PORT, port.into())?;
            board.write(udp::REGISTER_ENABLE, 1)?;
        }
        Ok(())
    }

    /// Asks the boards of streams that are silent whether their run is over: its end may have been lost.
    fn ask_for_ends(&mut self) {
        for stream in self.streams.iter_mut().filter(|stream| !stream.closed && stream.end.is_none()) {
            let board = self.boards.iter_mut().find(|board| board.board() == *stream.peer.ip());
            // A board that does not answer now is asked again.
            let Some(board) = board else { continue };
            match board.read(udp::REGISTER_RUN) {
                Ok(run) if run == u32::from(stream.run.wrapping_add(1)) => {
                    stream.end = board.read(udp::REGISTER_LAST).ok().map(|total| (total, Instant::now()));
                }
                _ => {}
            }
        }
    }

    /// Takes what has come, for one tick at most.
    fn receive(&mut self) -> anyhow::Result<()> {
        let Session { plan, socket, streams, dropped, boards, .. } = self;
        let mut result = Ok(());
        socket
            .receive(|peer, payload| {
                let datagram = match Datagram::parse(payload) {
                    _ if payload.len() > udp::PAYLOAD_MAX => {
                        dropped.oversize += 1;
                        return;
                    }
                    Ok(datagram) => datagram,
                    Err(error) => {
                        match error {
                            udp::Error::Truncated(..) => dropped.truncated += 1,
                            udp::Error::Words { .. } => dropped.words += 1,
                            udp::Error::Flags(_) | udp::Error::Operation(_) => dropped.flags += 1,
                        }
                        return;
                    }
                };
                let found = streams.iter_mut().rev().find(|s| s.peer == peer && s.run == datagram.run);
                let stream = match found {
                    Some(stream) => stream,
                    // Ends are repeated: this is of a run from before.
                    None if datagram.end && boards.is_empty() => return,
                    None => {
                        let order = if boards.is_empty() { Order::default() } else { Order::from_the_start() };
                        let out = match plan.out.as_deref().map(|path| plan::open(path, peer.into())).transpose() {
                            Ok(out) => out,
                            Err(error) => {
                                result = Err(error);
                                None
                            }
                        };
                        streams.push(Stream {
                            peer,
                            run: datagram.run,
                            begin: Instant::now(),
                            order,
                            bytes: 0,
                            full: 0,
                            verifier: plan.verify.map(Verifier::new),
                            out,
                            end: None,
                            closed: false,
                            seconds: 0.0,
                        });
                        let last = streams.len() - 1;
                        &mut streams[last]
                    }
                };
                if !stream.closed && result.is_ok() {
                    result = stream.take(&datagram);
                }
            })
            .context("receiving")?;
        for stream in streams.iter_mut().filter(|stream| !stream.closed && stream.is_due()) {
            stream.close()?;
        }
        result
    }

    /// What need not be told with every batch: progress, metrics.
    fn show(&self, progress: &mut Progress) {
        if progress.is_due() {
            progress.show(self.streams.iter().map(|s| (s.peer, s.bytes, format!("{} bytes", s.bytes))));
        }
        if self.args.metrics.is_some() {
            for stream in &self.streams {
                crate::metrics::datagrams(stream.peer.into(), stream.bytes, &stream.order.counts());
            }
        }
    }

    fn run(&mut self, interrupts: &Interrupts) -> anyhow::Result<()> {
        let mut progress = Progress::new(self.args.quiet);
        let begin = Instant::now();
        let (mut shown, mut heard, mut asked) = (begin, begin, begin);
        let wanted = self.args.network.streams.map_or(usize::MAX, |n| n as usize);
        let mut bytes_before = 0;
        let mut stopped: Option<Instant> = None;
        loop {
            self.receive()?;
            if shown.elapsed() >= SHOW {
                self.show(&mut progress);
                shown = Instant::now();
            }
            let bytes: u64 = self.streams.iter().map(|stream| stream.bytes).sum();
            if std::mem::replace(&mut bytes_before, bytes) != bytes {
                heard = Instant::now();
            }
            if heard.elapsed() > SILENCE && asked.elapsed() > SILENCE {
                self.ask_for_ends();
                asked = Instant::now();
            }
            let closed = self.streams.iter().filter(|stream| stream.closed).count();
            if closed >= wanted {
                break;
            }
            anyhow::ensure!(!interrupts.insisted(), "interrupted before the end");
            let enough = interrupts.asked()
                || self.args.duration.is_some_and(|duration| begin.elapsed() >= duration)
                || self.plan.idle_timeout.is_some_and(|limit| heard.elapsed() >= limit)
                || self.plan.packets.is_some_and(|packets| bytes >= packets * PACKET_BYTES as u64);
            match stopped {
                None if enough && self.boards.is_empty() => break,
                None if enough => {
                    for board in &mut self.boards {
                        board.write(udp::REGISTER_ENABLE, 0)?;
                    }
                    stopped = Some(Instant::now());
                }
                Some(since) if closed == self.streams.len() || since.elapsed() > PATIENCE => break,
                _ => {}
            }
        }
        progress.finish();
        self.dropped.kernel = u64::from(self.socket.kernel_drops().unwrap_or(0));
        for stream in self.streams.iter_mut().filter(|stream| !stream.closed) {
            stream.close()?;
        }
        Ok(())
    }

    fn report(&self) -> ExitCode {
        let missing = summary::missing(self.args, self.streams.len());
        // A board that was told to stop says how much there was.
        let ended = self.boards.is_empty() || self.streams.iter().all(|stream| stream.end.is_some());
        let good = missing == 0
            && ended
            && !self.streams.is_empty()
            && self.streams.iter().all(|stream| stream.summary().is_good());
        if self.args.json {
            let all: Vec<_> = self.streams.iter().map(Stream::json).collect();
            println!(
                "{}",
                json!({ "complete": good, "streams": all, "missing_streams": missing, "dropped": self.dropped })
            );
        }
        for stream in &self.streams {
            stream.tell(self.args);
        }
        let dropped = &self.dropped;
        for (count, reason) in [
            (dropped.truncated, "without a header"),
            (dropped.words, "shorter than their words"),
            (dropped.flags, "with unknown flags"),
            (dropped.oversize, "longer than any of the format"),
            (dropped.kernel, "dropped by the kernel for want of room (--receive-buffer)"),
        ] {
            if count > 0 {
                eprintln!("fadelink: {count} datagrams {reason}");
            }
        }
        exit::of_data(good)
    }
}

/// Receives UDP streams until all have ended.
///
/// # Errors
/// Wrong arguments, a port that is not to be had, a board that does not answer, a second interrupt.
pub fn run(args: &Args, port: u16) -> anyhow::Result<ExitCode> {
    let plan = Plan::of(args)?;
    let IpAddr::V4(listen) = args.network.listen else {
        return Err(Usage(format!("--listen {}: expected an IPv4 address with --udp", args.network.listen)).into());
    };
    args.metrics.map_or(Ok(()), crate::metrics::serve)?;
    let interrupts = Interrupts::watch()?;
    let address = SocketAddrV4::new(listen, port);
    let buffer = args.network.receive_buffer.unwrap_or(RECEIVE_BUFFER);
    let socket =
        Batches::open(address, buffer, TICK).with_context(|| format!("--udp {port}: listening on {address}"))?;
    let boards = args.network.board.iter().map(|board| SlowControl::new(*board, CONTROL_TIMEOUT, CONTROL_RETRIES));
    let boards = boards.collect::<anyhow::Result<Vec<_>>>()?;
    let mut session = Session { args, plan, socket, boards, streams: Vec::new(), dropped: Dropped::default() };
    if !args.quiet {
        eprintln!("fadelink: waiting for datagrams on port {port}");
    }
    session.start(port)?;
    session.run(&interrupts)?;
    Ok(session.report())
}

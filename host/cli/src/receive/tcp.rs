//! `fadelink receive --tcp`: the streams of TCP senders (rtl/tcp), received by the kernel.
//!
//! The boards open the connections. When the receiver closes its direction, a board sends what it has, then closes,
//! too (docs/protocol/tcp_sender.md).

use std::io::{self, Read};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context;
use fadelink_receiver::tcp::{Server, Settings};
use fadelink_receiver::Pool;
use fadelink_sinks::{Block, Board, Origin, Outlets, Report, BLOCK_BYTES};
use fadelink_wire::WordOrder;
use serde_json::{json, Value};

use super::args::Args;
use super::plan::{self, Plan};
use super::summary::{self, Summary};
use crate::deadline::{Deadline, Limits};
use crate::exit;
use crate::interrupts::Interrupts;
use crate::pattern::Verifier;
use crate::progress::{Progress, Unit};

/// Longest wait for data or for room, before other things are looked at.
const LOOK: Duration = Duration::from_millis(100);
/// Room that is waited for: fewer calls.
const ROOM: usize = 64 << 10;
/// How often progress and metrics are looked at.
const TICK: Duration = Duration::from_millis(50);
/// Longest silence after the end was asked for.
const PATIENCE: Duration = Duration::from_secs(30);

/// What has come over one connection.
struct Stream {
    peer: SocketAddr,
    bytes: u64,
    verifier: Option<Verifier>,
    sinks: Vec<Report>,
    /// How it ended; none: it has not.
    end: Option<Result<(), String>>,
    seconds: f64,
}

impl Stream {
    fn summary(&self) -> Summary<'_, SocketAddr> {
        let Stream { peer, bytes, seconds, verifier, sinks, .. } = self;
        let complete = matches!(self.end, Some(Ok(())));
        Summary { name: *peer, bytes: *bytes, seconds: *seconds, complete, verifier: verifier.as_ref(), sinks }
    }

    fn json(&self) -> Value {
        self.summary().json("peer", json!({ "error": self.end.as_ref().and_then(|end| end.as_ref().err()) }))
    }
}

/// What the connections' threads share.
struct Session {
    plan: Plan,
    limits: Limits,
    ring: u64,
    interrupts: Interrupts,
    streams: Mutex<Vec<Stream>>,
}

impl Session {
    fn lock(&self) -> MutexGuard<'_, Vec<Stream>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves a connection to its end.
    fn serve(&self, socket: &TcpStream, peer: SocketAddr, pool: Pool) {
        let index = {
            let mut streams = self.lock();
            streams.push(Stream { peer, bytes: 0, verifier: None, sinks: Vec::new(), end: None, seconds: 0.0 });
            streams.len() - 1
        };
        let mut verifier = self.plan.verifier();
        let mut deadline = Deadline::new(self.limits);
        let result = self.plan.open(Board::Tcp(peer), self.interrupts.stopping()).map_err(anyhow::Error::from);
        let result = result.and_then(|mut outlets| {
            let received = self.receive(socket, pool, index, &mut outlets, &mut verifier, &mut deadline);
            let finished = outlets.finish(received.is_ok());
            self.lock()[index].sinks = outlets.reports();
            // What a sink says tells more than what it led to.
            finished?;
            received
        });
        let mut streams = self.lock();
        let stream = &mut streams[index];
        stream.seconds = deadline.seconds();
        if let Some(verifier) = &mut verifier {
            verifier.finish(None);
        }
        stream.verifier = verifier;
        stream.end = Some(result.map_err(|error| format!("{error:#}")));
    }

    /// Receives until the board closes the connection.
    fn receive(
        &self,
        mut socket: &TcpStream,
        mut pool: Pool,
        index: usize,
        outlets: &mut Outlets<Block>,
        verifier: &mut Option<Verifier>,
        deadline: &mut Deadline,
    ) -> anyhow::Result<()> {
        let board = Board::Tcp(socket.peer_addr()?);
        let origin = Origin { wire_order: Some(WordOrder::Little), ..Origin::of(board) };
        socket.set_read_timeout(Some(LOOK))?;
        let (mut bytes, mut asked) = (0, false);
        loop {
            if !asked && (self.interrupts.must_stop() || deadline.is_reached(bytes)) {
                socket.shutdown(Shutdown::Write).context("asking for the end")?;
                deadline.stop(PATIENCE);
                asked = true;
            }
            anyhow::ensure!(!self.interrupts.must_abort(), "interrupted before the end");
            anyhow::ensure!(outlets.are_well(), "a sink has failed");
            if let Some(limit) = deadline.too_silent() {
                anyhow::bail!("no data for {} s", limit.as_secs_f64());
            }
            if !pool.wait(ROOM, LOOK) {
                // Nothing can come while a sink has the whole ring.
                deadline.heard();
                continue;
            }
            let (room, kept) = pool.room();
            let limit = room.len().min(BLOCK_BYTES);
            let got = match socket.read(&mut room[kept..limit]) {
                Ok(0) if kept > 0 => {
                    anyhow::bail!("the stream ended inside a word: {kept} bytes were left, expected 0")
                }
                Ok(0) => return Ok(()),
                Ok(got) => got,
                Err(error) if is_silence(&error) => continue,
                Err(error) => return Err(error).context("receiving"),
            };
            deadline.heard();
            let whole = (kept + got) / 8 * 8;
            let block = Block { data: pool.lend(whole, kept + got - whole), origin };
            if whole == 0 {
                continue;
            }
            outlets.offer(&block);
            if let Some(verifier) = verifier {
                verifier.check(&block.data);
            }
            bytes += whole as u64;
            let stream = &mut self.lock()[index];
            (stream.bytes, stream.sinks) = (bytes, outlets.reports());
        }
    }
}

fn is_silence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

/// Waits for the end of the run; times that a connection could not be accepted.
fn watch(args: &Args, session: &Session, mut server: Server) -> anyhow::Result<u64> {
    let interrupts = &session.interrupts;
    let run = Deadline::new(session.limits);
    let wanted = args.network.streams.map_or(usize::MAX, |n| n as usize);
    let mut progress = Progress::new(Unit::Bytes, plan::goal(args, args.network.streams.unwrap_or(1)), args.quiet);
    loop {
        std::thread::sleep(TICK);
        let streams = session.lock();
        if progress.is_due() {
            progress.show(streams.iter().map(|s| (s.peer, s.bytes, String::new())));
        }
        if args.metrics.is_some() {
            for stream in streams.iter() {
                crate::metrics::stream(stream.peer, stream.bytes);
                crate::metrics::sinks(Board::Tcp(stream.peer), &stream.sinks);
            }
        }
        let ended = streams.iter().filter(|stream| stream.end.is_some()).count();
        let came = streams.len();
        drop(streams);
        if ended >= wanted || (came >= wanted && server.is_idle()) {
            break;
        }
        if let Some(limit) = run.too_silent().filter(|_| came == 0) {
            anyhow::bail!(
                "no board has connected for {} s; check its address, and the address and port that it sends to",
                limit.as_secs_f64()
            );
        }
        if run.is_reached(0) {
            interrupts.stop();
        }
        if interrupts.must_stop() {
            server.stop();
            if server.is_idle() {
                break;
            }
        }
        anyhow::ensure!(!interrupts.must_abort(), "interrupted before the end");
    }
    progress.finish();
    let refused = server.refused();
    server.join();
    Ok(refused)
}

fn report(args: &Args, streams: &[Stream], refused: u64) -> ExitCode {
    let missing = summary::missing(args, streams.len());
    let good = missing == 0 && !streams.is_empty() && streams.iter().all(|stream| stream.summary().is_good());
    if args.json {
        let all: Vec<_> = streams.iter().map(Stream::json).collect();
        let report = json!({ "complete": good, "streams": all, "missing_streams": missing, "refused": refused });
        println!("{report}");
    }
    for stream in streams {
        if let Some(Err(error)) = &stream.end {
            tracing::error!("{}: {error}", stream.peer);
        }
        stream.summary().tell(args, "", "");
    }
    exit::of_data(good)
}

/// Receives TCP streams until all have ended.
///
/// # Errors
/// Wrong arguments, a port that is not available, a second interrupt.
pub fn run(args: &Args, port: u16) -> anyhow::Result<ExitCode> {
    let (plan, limits) = (plan::of_streams(args)?, plan::limits(args));
    args.metrics.map_or(Ok(()), crate::metrics::serve)?;
    let interrupts = Interrupts::watch()?;
    let session = Arc::new(Session { plan, limits, ring: args.ring, interrupts, streams: Mutex::default() });
    let address = SocketAddr::new(args.network.listen, port);
    let settings = Settings { receive_buffer: args.network.receive_buffer, limit: args.network.streams.map(u64::from) };
    let own = session.clone();
    let server = Server::listen(address, settings, move || {
        let (session, pool) = (own.clone(), Pool::new(own.ring)?);
        Ok(Box::new(move |peer| Box::new(move |socket| session.serve(socket, peer, pool))))
    });
    let server = server.with_context(|| format!("--tcp {port}: listening on {address}"))?;
    if !args.quiet {
        tracing::info!("waiting for TCP senders on port {port}");
    }
    let refused = watch(args, &session, server)?;
    let streams = std::mem::take(&mut *session.lock());
    Ok(report(args, &streams, refused))
}

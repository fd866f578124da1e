//! `fadelink receive --tcp`: the streams of TCP senders (rtl/tcp), received by the kernel.
//!
//! The boards open the connections. When the receiver closes its direction, a board sends what it has, then closes,
//! too (docs/protocol/tcp_sender.md).

use std::io::{self, Read};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context;
use fadelink_receiver::tcp::{self, Server};
use fadelink_receiver::Pool;
use fadelink_sinks::{Block, Board, Origin, Outlets, Report, BLOCK_BYTES};
use fadelink_wire::WordOrder;
use serde_json::{json, Map, Value};

use super::group::{Group, Line, Outcome};
use super::plan::{Plan, Senders};
use super::summary::{self, Summary};
use crate::deadline::{Deadline, Limits};
use crate::interrupts::Interrupts;
use crate::metrics::{self, Meter};
use crate::pattern::Verifier;

/// Longest wait for data or for room, before other things are looked at.
const LOOK: Duration = Duration::from_millis(100);
/// Room that is waited for: fewer calls.
const ROOM: usize = 64 << 10;
/// Longest silence after the end was asked for.
const PATIENCE: Duration = Duration::from_secs(30);

/// How TCP senders are received.
pub struct Settings {
    /// To listen on.
    pub address: SocketAddr,
    pub senders: Senders,
    /// Streams after which the end is reached.
    pub streams: Option<u32>,
    /// Of each stream.
    pub limits: Limits,
    /// Packets of the ring of each stream.
    pub ring: u64,
    /// Of each socket, in bytes.
    pub receive_buffer: Option<u32>,
}

/// What has come over one connection.
struct Stream {
    name: String,
    peer: SocketAddr,
    bytes: u64,
    verifier: Option<Verifier>,
    sinks: Vec<Report>,
    /// How it ended; none: it has not.
    end: Option<Result<(), String>>,
    seconds: f64,
}

impl Stream {
    fn summary(&self) -> Summary<'_, &str> {
        let Stream { name, bytes, seconds, verifier, sinks, .. } = self;
        let complete = matches!(self.end, Some(Ok(())));
        Summary { name, bytes: *bytes, seconds: *seconds, complete, verifier: verifier.as_ref(), sinks }
    }

    fn json(&self) -> Value {
        self.summary().json(
            "peer",
            &self.peer,
            json!({ "error": self.end.as_ref().and_then(|end| end.as_ref().err()) }),
        )
    }
}

/// What the connections' threads share.
struct Session {
    senders: Senders,
    limits: Limits,
    ring: u64,
    interrupts: Interrupts,
    streams: Mutex<Vec<Stream>>,
    /// Connections that belong to no board.
    others: AtomicU64,
}

impl Session {
    fn lock(&self) -> MutexGuard<'_, Vec<Stream>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The plan for a new connection and its index among the streams; `None`: no board may open it.
    fn enter(&self, peer: SocketAddr) -> Option<(&Plan, usize)> {
        let mut streams = self.lock();
        let earlier = streams.iter().filter(|stream| stream.peer.ip() == peer.ip()).count();
        let Some(plan) = self.senders.plan(peer.ip()).filter(|plan| earlier < plan.streams) else {
            if self.others.fetch_add(1, Ordering::Relaxed) == 0 {
                tracing::warn!("{peer}: a connection that was not expected was closed");
            }
            return None;
        };
        let name = match &plan.name {
            None => peer.to_string(),
            Some(name) if plan.streams == 1 => name.clone(),
            Some(name) => format!("{name}/{}", peer.port()),
        };
        streams.push(Stream { name, peer, bytes: 0, verifier: None, sinks: Vec::new(), end: None, seconds: 0.0 });
        Some((plan, streams.len() - 1))
    }

    /// Serves a connection to its end.
    fn serve(&self, socket: &TcpStream, peer: SocketAddr, pool: Pool) {
        let Some((plan, index)) = self.enter(peer) else { return };
        let mut verifier = plan.verifier();
        let mut deadline = Deadline::new(self.limits);
        let result = plan.open(Board::Tcp(peer), self.interrupts.stopping()).map_err(anyhow::Error::from);
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
            if waits(&self.interrupts) || !pool.wait(ROOM, LOOK) {
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

/// True after a wait, if the board must wait.
fn waits(interrupts: &Interrupts) -> bool {
    let must_hold = interrupts.must_hold();
    if must_hold {
        std::thread::sleep(LOOK);
    }
    must_hold
}

fn is_silence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

/// The TCP senders of a port.
pub struct Streams {
    session: Arc<Session>,
    server: Server,
    /// Of all of them.
    deadline: Deadline,
    wanted: Option<u32>,
}

impl Streams {
    /// Begins to listen.
    ///
    /// # Errors
    /// The address is not available.
    pub fn begin(settings: Settings, interrupts: &Interrupts) -> anyhow::Result<Streams> {
        let Settings { address, senders, streams, limits, ring, receive_buffer } = settings;
        // Of boards that are known, none is kept out by another.
        let limit = streams.map(u64::from).filter(|_| matches!(senders, Senders::Any(_)));
        let session = Arc::new(Session {
            senders,
            limits,
            ring,
            interrupts: interrupts.clone(),
            streams: Mutex::default(),
            others: AtomicU64::new(0),
        });
        let own = session.clone();
        let server = Server::listen(address, tcp::Settings { receive_buffer, limit }, move || {
            let (session, pool) = (own.clone(), Pool::new(own.ring)?);
            Ok(Box::new(move |peer| Box::new(move |socket| session.serve(socket, peer, pool))))
        });
        let server = server.with_context(|| format!("--tcp {}: listening on {address}", address.port()))?;
        Ok(Streams { session, server, deadline: Deadline::new(limits), wanted: streams })
    }
}

impl Group for Streams {
    fn lines(&self) -> Vec<Line> {
        let line = |stream: &Stream| Line { name: stream.name.clone(), bytes: stream.bytes, note: String::new() };
        self.session.lock().iter().map(line).collect()
    }

    fn measure(&self, meter: &mut Meter) {
        for Stream { name, bytes, verifier, sinks, end, .. } in self.session.lock().iter() {
            meter.board(name, *bytes, metrics::wrong_words(verifier.as_ref()));
            meter.sinks(name, sinks);
            if let Some(Err(error)) = end {
                meter.trouble(format!("{name}: {error}"));
            }
        }
    }

    fn poll(&mut self) -> anyhow::Result<bool> {
        let interrupts = &self.session.interrupts;
        let wanted = self.wanted.map_or(usize::MAX, |n| n as usize);
        let streams = self.session.lock();
        let ended = streams.iter().filter(|stream| stream.end.is_some()).count();
        let came = streams.len();
        drop(streams);
        if ended >= wanted || (came >= wanted && self.server.is_idle()) {
            return Ok(true);
        }
        if let Some(limit) = self.deadline.too_silent().filter(|_| came == 0) {
            anyhow::bail!(
                "no board has connected for {} s; check its address, and the address and port that it sends to",
                limit.as_secs_f64()
            );
        }
        if self.deadline.is_reached(0) {
            interrupts.stop();
        }
        if interrupts.must_stop() {
            self.server.stop();
            if self.server.is_idle() {
                return Ok(true);
            }
        }
        anyhow::ensure!(!interrupts.must_abort(), "interrupted before the end");
        Ok(false)
    }

    fn finish(self: Box<Self>, silent: bool) -> anyhow::Result<Outcome> {
        let refused = self.server.refused();
        self.server.join();
        let streams = std::mem::take(&mut *self.session.lock());
        for stream in &streams {
            if let Some(Err(error)) = &stream.end {
                tracing::error!("{}: {error}", stream.name);
            }
            stream.summary().tell(silent, "", "");
        }
        let missing = summary::missing(self.wanted, streams.len());
        let mut others = Map::new();
        others.insert("missing_streams".into(), missing.into());
        others.insert("refused".into(), refused.into());
        others.insert("other_connections".into(), self.session.others.load(Ordering::Relaxed).into());
        Ok(Outcome {
            good: missing == 0 && !streams.is_empty() && streams.iter().all(|stream| stream.summary().is_good()),
            key: "streams",
            boards: streams.iter().map(Stream::json).collect(),
            others,
        })
    }
}

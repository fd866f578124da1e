//! `fadelink receive --tcp`: the streams of TCP senders (rtl/tcp), received by the kernel.
//!
//! The boards open the connections. When the receiver closes its direction, a board sends what it has, then closes,
//! too (docs/protocol/tcp_sender.md).

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context;
use fadelink_receiver::tcp::{Connection, Server, UNSERVED};
use fadelink_receiver::Pool;
use fadelink_sinks::{Block, Origin, Sender, BLOCK_BYTES};
use fadelink_wire::WordOrder;
use rustix::net::{recv, RecvFlags};
use serde_json::{json, Map};

use super::group::{Group, Line, Outcome};
use super::plan::{Plan, Senders};
use super::recorder::{self, Ended, Recorder, Snapshot};
use crate::deadline::{Deadline, Limits};
use crate::exit;
use crate::interrupts::Interrupts;
use crate::metrics::Meter;
use crate::verdict::{Absent, Accept, End, Evidence, Verdict};

/// Longest wait for data or for room, before other things are looked at.
const LOOK: Duration = Duration::from_millis(100);
/// Room that is waited for: fewer calls.
const ROOM: usize = 64 << 10;
/// Longest wait for another connection to take its place, before it is looked at again.
const YIELD: Duration = Duration::from_millis(1);
/// Streams with metrics of their own: the first ones. Nobody knows how many come where the boards are not named.
pub const SHOWN: usize = 256;
/// Longest silence after the end was asked for, as it is documented.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// How TCP senders are received.
pub struct TcpSettings {
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
    /// What counts as the end of a stream.
    pub accept: Accept,
    /// Longest silence after the end was asked for.
    pub patience: Duration,
}

/// What has come over one connection.
struct Stream {
    peer: SocketAddr,
    recorded: Snapshot,
    /// What it was in the end; none: it has not ended.
    end: Option<Received>,
}

/// The result of one connection.
struct Received {
    recorded: Ended,
    /// How its end is known, or why it ended early.
    end: Result<End, String>,
}

/// What receiving knows: FIN has the number of all bytes before it, so none is missing before it.
fn known(end: Result<End, String>, accept: Accept) -> Evidence<'static> {
    Evidence { end: *end.as_ref().unwrap_or(&End::Missing), error: end.err(), accept, ..Evidence::default() }
}

impl Received {
    fn verdict(&mut self, accept: Accept, meter: &mut Meter) -> Verdict {
        self.recorded.verdict(known(self.end.clone(), accept), meter)
    }

    fn error(&self) -> Option<&String> {
        self.recorded.error.as_ref().or(self.end.as_ref().err())
    }
}

/// What the connections' threads share.
struct Session {
    senders: Senders,
    limits: Limits,
    accept: Accept,
    patience: Duration,
    ring: u64,
    interrupts: Interrupts,
    streams: Mutex<Vec<Stream>>,
    /// Connections by their order, over which nothing is known to have come yet.
    waiting: Mutex<BTreeMap<u64, (IpAddr, Arc<Connection>)>>,
    accepted: AtomicU64,
    /// Streams that are enough.
    limit: usize,
    /// Connections that belong to no board, or over which nothing came.
    others: AtomicU64,
    /// Connections over which data came that is not recorded: they are more than were expected.
    unrecorded: AtomicU64,
}

/// A connection in the list of those that wait, until this is dropped: also if it gets no thread.
struct Waits(Arc<Session>, u64);

impl Drop for Waits {
    fn drop(&mut self) {
        self.0.waiting().remove(&self.1);
    }
}

impl Session {
    fn lock(&self) -> MutexGuard<'_, Vec<Stream>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn waiting(&self) -> MutexGuard<'_, BTreeMap<u64, (IpAddr, Arc<Connection>)>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a connection, in the order in which they were opened.
    fn accept(self: &Arc<Session>, socket: &Arc<Connection>, peer: SocketAddr) -> Waits {
        let number = self.accepted.fetch_add(1, Ordering::Relaxed);
        self.waiting().insert(number, (peer.ip(), socket.clone()));
        Waits(self.clone(), number)
    }

    /// Waits until those of its board that were opened before it, and over which data has come too, have taken their places:
    /// a board whose connection was broken goes on over the next one.
    fn wait_for_earlier(&self, number: u64, peer: SocketAddr) {
        let is_due = |(ip, socket): &(IpAddr, Arc<Connection>)| *ip == peer.ip() && holds_data(socket);
        while self.waiting().range(..number).any(|(_, earlier)| is_due(earlier)) {
            std::thread::sleep(YIELD);
        }
    }

    fn is_full(&self) -> bool {
        self.lock().len() >= self.limit
    }

    /// The plan for a connection over which data comes, and its index among the streams; `None`: none is expected.
    fn enter(&self, peer: SocketAddr) -> Option<(&Plan, usize)> {
        let mut streams = self.lock();
        let earlier = streams.iter().filter(|stream| stream.peer.ip() == peer.ip()).count();
        let is_full = streams.len() >= self.limit;
        let plan = self.senders.plan(peer.ip()).filter(|plan| earlier < plan.streams && !is_full)?;
        let name = match &plan.name {
            None => peer.to_string(),
            Some(name) if plan.streams == 1 => name.clone(),
            Some(name) => format!("{name}/{}", peer.port()),
        };
        streams.push(Stream { peer, recorded: Snapshot { name, ..Snapshot::default() }, end: None });
        Some((plan, streams.len() - 1))
    }

    /// Waits for the first byte of a connection; false: the other end has closed it without any, or it is not wanted any more.
    /// Who connects is not always a board: it may be a scan of ports.
    fn has_data(&self, socket: &Connection, deadline: &mut Deadline) -> io::Result<bool> {
        socket.set_read_timeout(Some(LOOK))?;
        let mut asked = false;
        loop {
            if !asked && (self.interrupts.must_stop() || deadline.is_reached(0)) {
                // Of a connection that is broken, what has come before is still there.
                let _ = socket.ask();
                deadline.stop(self.patience);
                asked = true;
            }
            match socket.peek(&mut [0]) {
                Ok(0) => return Ok(false),
                Ok(_) => return Ok(true),
                Err(error) if is_silence(&error) => {}
                Err(error) => return Err(error),
            }
            if self.is_full() {
                return Ok(false);
            }
            // What is wrong is told by who receives.
            if deadline.too_silent().is_some() || self.interrupts.must_abort() {
                return Ok(true);
            }
        }
    }

    /// The place of a connection, when data comes over it.
    fn place(
        &self,
        socket: &Connection,
        (waits, peer): (Waits, SocketAddr),
        deadline: &mut Deadline,
    ) -> Option<(&Plan, usize)> {
        let is_known = self.senders.plan(peer.ip()).is_some();
        let has_data = is_known && self.has_data(socket, deadline).unwrap_or(false);
        let place = has_data.then(|| {
            self.wait_for_earlier(waits.1, peer);
            self.enter(peer)
        });
        drop(waits);
        let place = place.flatten();
        // It may be a board's, if boards of its address are received.
        if place.is_none() && is_known && holds_data(socket) {
            self.unrecorded.fetch_add(1, Ordering::Relaxed);
            tracing::warn!("{peer}: data of one more connection is not recorded; check the number of streams");
        }
        place
    }

    /// Serves a connection to its end.
    fn serve(&self, socket: &Connection, (waits, peer): (Waits, SocketAddr), pool: Pool) {
        let mut deadline = Deadline::new(self.limits);
        let Some((plan, index)) = self.place(socket, (waits, peer), &mut deadline) else {
            if self.others.fetch_add(1, Ordering::Relaxed) == 0 {
                tracing::warn!("{peer}: a connection that was not expected, or over which nothing came, was closed");
            }
            return;
        };
        let name = self.lock()[index].recorded.name.clone();
        let end = match Recorder::open(plan, name.clone(), Sender::Tcp(peer), &self.interrupts) {
            Ok(mut recorder) => {
                // It may have been entered for what is wrong with it.
                if holds_data(socket) {
                    recorder.begin();
                }
                let received = self.receive((socket, peer), pool, index, &mut recorder, &mut deadline);
                let end = received.and_then(|end| self.begins_whole(index, peer).map(|()| end));
                let end = end.map_err(|error| exit::in_words(&error));
                let recorded = recorder.end(&known(end.clone(), self.accept), None);
                // What a sink says tells more than what it led to.
                let end = if recorded.error.is_some() { Ok(end.unwrap_or(End::Confirmed)) } else { end };
                Received { recorded, end }
            }
            Err(error) => {
                let recorded = Ended { name, ..Ended::default() };
                Received { recorded, end: Err(error.to_string()) }
            }
        };
        let stream = &mut self.lock()[index];
        stream.recorded = end.recorded.look();
        stream.end = Some(end);
    }

    /// A board whose connection was broken may go on over the next one, in the middle of its data.
    ///
    /// # Errors
    /// An earlier stream of the board was broken.
    fn begins_whole(&self, index: usize, peer: SocketAddr) -> anyhow::Result<()> {
        let is_broken = |stream: &Stream| stream.end.as_ref().is_some_and(|end| end.error().is_some());
        let broken = self.lock()[..index].iter().any(|stream| stream.peer.ip() == peer.ip() && is_broken(stream));
        anyhow::ensure!(!broken, "an earlier connection of the board was broken: its data may begin in the middle");
        Ok(())
    }

    /// Receives until the board closes the connection. An end that was asked for alone is confirmed: anybody can send FIN.
    fn receive(
        &self,
        (socket, peer): (&Connection, SocketAddr),
        mut pool: Pool,
        index: usize,
        recorder: &mut Recorder,
        deadline: &mut Deadline,
    ) -> anyhow::Result<End> {
        let origin = Origin { wire_order: Some(WordOrder::Little), ..Origin::of(Sender::Tcp(peer)) };
        socket.set_read_timeout(Some(LOOK))?;
        let mut asked = false;
        loop {
            if !asked && (self.interrupts.must_stop() || deadline.is_reached(recorder.bytes())) {
                socket.ask().context("asking for the end")?;
                deadline.stop(self.patience);
                asked = true;
            }
            anyhow::ensure!(!self.interrupts.must_abort(), "interrupted before the end");
            anyhow::ensure!(recorder.is_well(), "a sink has failed");
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
            let got = match (&**socket).read(&mut room[kept..limit]) {
                Ok(0) if kept > 0 => {
                    anyhow::bail!("the stream ended inside a word: {kept} bytes were left, expected 0")
                }
                Ok(0) => return Ok(if socket.was_asked() { End::Confirmed } else { End::Told }),
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
            recorder.take(&block);
            self.lock()[index].recorded = recorder.look();
        }
    }
}

/// True if data waits to be read.
fn holds_data(socket: &TcpStream) -> bool {
    recv(socket, &mut [0; 1][..], RecvFlags::PEEK | RecvFlags::DONTWAIT).is_ok_and(|(_, got)| got > 0)
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
    port: u16,
    /// Of all of them.
    deadline: Deadline,
    wanted: Option<u32>,
}

impl Streams {
    /// Begins to listen.
    ///
    /// # Errors
    /// The address is not available.
    pub fn begin(settings: TcpSettings, interrupts: &Interrupts) -> anyhow::Result<Streams> {
        let TcpSettings { address, senders, streams, limits, ring, receive_buffer, accept, patience } = settings;
        // Of boards that are known, none is kept out by another.
        let limit = streams.filter(|_| matches!(senders, Senders::Any(_))).map_or(usize::MAX, |n| n as usize);
        let session = Arc::new(Session {
            senders,
            limits,
            accept,
            patience,
            ring,
            interrupts: interrupts.clone(),
            streams: Mutex::default(),
            waiting: Mutex::default(),
            accepted: AtomicU64::new(0),
            limit,
            others: AtomicU64::new(0),
            unrecorded: AtomicU64::new(0),
        });
        let own = session.clone();
        let server = Server::listen(address, receive_buffer, move || {
            let (session, pool) = (own.clone(), Pool::new(own.ring)?);
            Ok(Box::new(move |socket, peer| {
                let waits = session.accept(socket, peer);
                Box::new(move |socket| session.serve(socket, (waits, peer), pool))
            }))
        });
        let server = server.with_context(|| format!("--tcp {}: listening on {address}", address.port()))?;
        Ok(Streams { session, server, port: address.port(), deadline: Deadline::new(limits), wanted: streams })
    }
}

impl Streams {
    /// Connections that are not those of its streams.
    fn measure_port(&self, meter: &mut Meter) {
        let of_session = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let reasons = [
            ("refused", self.server.refused()),
            ("displaced", self.server.displaced()),
            ("other", of_session(&self.session.others)),
            ("unrecorded", of_session(&self.session.unrecorded)),
        ];
        meter.port(self.port, &reasons);
    }
}

impl Group for Streams {
    fn lines(&self) -> Vec<Line> {
        let line = |Stream { recorded: Snapshot { name, bytes, .. }, .. }: &Stream| Line {
            name: name.clone(),
            bytes: *bytes,
            note: String::new(),
        };
        self.session.lock().iter().map(line).collect()
    }

    fn measure(&self, meter: &mut Meter) {
        self.measure_port(meter);
        for (index, Stream { recorded, end, .. }) in self.session.lock().iter().enumerate() {
            let error = end.as_ref().and_then(|end| end.end.clone().err());
            if index < SHOWN {
                recorded.measure(meter, Evidence { error, ..Evidence::default() });
            }
            if let Some(error) = end.as_ref().and_then(Received::error) {
                meter.trouble(format!("{}: {error}", recorded.name));
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
        if came >= self.session.limit {
            self.server.close();
        }
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
        Ok(false)
    }

    fn finish(self: Box<Self>, silent: bool, meter: &mut Meter) -> anyhow::Result<Outcome> {
        let (refused, displaced) = (self.server.refused(), self.server.displaced());
        self.measure_port(meter);
        // Of streams whose number is known, those that did not come are missing.
        let is_served = self.server.join() || self.wanted.is_some();
        if !is_served {
            tracing::error!("{UNSERVED}");
        }
        let streams = std::mem::take(&mut *self.session.lock());
        let accept = self.session.accept;
        let mut ended = |Stream { peer, recorded, end }: Stream| {
            // Its thread has panicked.
            let lost = || Received {
                recorded: Ended { name: recorded.name, bytes: recorded.bytes, ..Ended::default() },
                end: Err("receiving it panicked".into()),
            };
            let mut result = end.unwrap_or_else(lost);
            let verdict = result.verdict(accept, meter);
            (peer, result, verdict)
        };
        let streams: Vec<_> = streams.into_iter().map(&mut ended).collect();
        for (_, result, verdict) in &streams {
            if let Some(error) = result.error() {
                tracing::error!("{}: {error}", result.recorded.name);
            }
            result.recorded.tell(verdict, silent, "");
        }
        let missing = recorder::missing(self.wanted, streams.len());
        let came: Vec<_> = streams.iter().map(|(peer, ..)| peer.ip()).collect();
        let known = Evidence {
            absent: Absent { streams: missing, boards: self.session.senders.absent(&came) },
            error: (!is_served).then(|| UNSERVED.into()),
            foreign: self.session.unrecorded.load(Ordering::Relaxed),
            ..Evidence::default()
        };
        let mut others = Map::new();
        others.insert("missing_streams".into(), missing.into());
        others.insert("refused".into(), refused.into());
        others.insert("displaced_connections".into(), displaced.into());
        others.insert("unserved".into(), (!is_served).into());
        others.insert("other_connections".into(), self.session.others.load(Ordering::Relaxed).into());
        others.insert("unrecorded_connections".into(), known.foreign.into());
        let board = |(peer, result, verdict): &(SocketAddr, Received, Verdict)| {
            (verdict.state(), result.recorded.json(verdict, "peer", peer, json!({ "error": result.error() })))
        };
        Ok(Outcome::of("streams", streams.iter().map(board), known, others))
    }
}

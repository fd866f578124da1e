//! The connections of TCP senders: which become streams, and what comes over them.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context;
use fadelink_receiver::tcp::Connection;
use fadelink_receiver::Pool;
use fadelink_sinks::{Block, Origin, Sender, BLOCK_BYTES};
use fadelink_wire::WordOrder;
use rustix::net::{recv, RecvFlags};

use super::super::plan::{Plan, Senders};
use super::super::recorder::{Ended, Recorder, Snapshot};
use crate::deadline::{Deadline, Limits};
use crate::exit;
use crate::interrupts::Interrupts;
use crate::metrics::Meter;
use crate::verdict::{Accept, End, Evidence, Verdict};

/// Longest wait for data or for room, before other things are looked at.
const LOOK: Duration = Duration::from_millis(100);
/// Room that is waited for: fewer calls.
const ROOM: usize = 64 << 10;
/// Longest wait for another connection to take its place, before it is looked at again.
const YIELD: Duration = Duration::from_millis(1);

/// What has come over one connection.
pub(super) struct Stream {
    pub(super) peer: SocketAddr,
    pub(super) recorded: Snapshot,
    /// What it was in the end; none: it has not ended.
    pub(super) end: Option<Received>,
}

/// The result of one connection.
pub(super) struct Received {
    pub(super) recorded: Ended,
    /// How its end is known, or why it ended early.
    pub(super) end: Result<End, String>,
}

/// What receiving knows: FIN has the number of all bytes before it, so none is missing before it.
pub(super) fn known(end: Result<End, String>, accept: Accept) -> Evidence<'static> {
    Evidence { end: *end.as_ref().unwrap_or(&End::Missing), error: end.err(), accept, ..Evidence::default() }
}

impl Received {
    pub(super) fn verdict(&mut self, accept: Accept, meter: &mut Meter) -> Verdict {
        self.recorded.verdict(known(self.end.clone(), accept), meter)
    }

    pub(super) fn error(&self) -> Option<&String> {
        self.recorded.error.as_ref().or(self.end.as_ref().err())
    }
}

/// Why no data is taken of a connection.
#[derive(Clone, Copy)]
enum LeftOut {
    /// No board has its address.
    Other,
    /// Nothing has come over it.
    Empty,
    /// The same, and it was asked to make room.
    Displaced,
    /// It is one more than were expected.
    Unrecorded,
}

/// What the connections' threads share.
pub(super) struct Session {
    pub(super) senders: Senders,
    pub(super) limits: Limits,
    pub(super) accept: Accept,
    pub(super) patience: Duration,
    pub(super) ring: u64,
    pub(super) interrupts: Interrupts,
    pub(super) streams: Mutex<Vec<Stream>>,
    /// Connections by their order, over which nothing is known to have come yet.
    pub(super) waiting: Mutex<BTreeMap<u64, (IpAddr, Arc<Connection>)>>,
    pub(super) accepted: AtomicU64,
    /// Streams that are enough.
    pub(super) limit: usize,
    /// Connections of addresses that no board has.
    pub(super) others: AtomicU64,
    /// Those of boards over which nothing came until they ended.
    pub(super) empty: AtomicU64,
    /// Connections over which data came that is not recorded: they are more than were expected.
    pub(super) unrecorded: AtomicU64,
}

/// A connection in the list of those that wait, until this is dropped: also if it gets no thread.
pub(super) struct Waits(Arc<Session>, u64);

impl Drop for Waits {
    fn drop(&mut self) {
        self.0.waiting().remove(&self.1);
    }
}

impl Session {
    pub(super) fn lock(&self) -> MutexGuard<'_, Vec<Stream>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn waiting(&self) -> MutexGuard<'_, BTreeMap<u64, (IpAddr, Arc<Connection>)>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a connection, in the order in which they were opened.
    pub(super) fn accept(self: &Arc<Session>, socket: &Arc<Connection>, peer: SocketAddr) -> Waits {
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
                Ok(0) if socket.given_up().is_some() => return Ok(true),
                Ok(0) => return Ok(false),
                Ok(_) => return Ok(true),
                Err(error) if is_silence(&error) => {}
                Err(error) => return Err(error),
            }
            if self.is_full() {
                return Ok(false);
            }
            // What is wrong is told by who receives.
            if deadline.too_silent().is_some() || socket.given_up().is_some() || self.interrupts.must_abort() {
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
    ) -> Result<(&Plan, usize), LeftOut> {
        if self.senders.plan(peer.ip()).is_none() {
            return Err(LeftOut::Other);
        }
        let has_data = self.has_data(socket, deadline).unwrap_or(false);
        let place = has_data.then(|| {
            self.wait_for_earlier(waits.1, peer);
            self.enter(peer)
        });
        drop(waits);
        place.flatten().ok_or_else(|| match (holds_data(socket), socket.has_left()) {
            (true, _) => LeftOut::Unrecorded,
            (false, true) => LeftOut::Displaced,
            (false, false) => LeftOut::Empty,
        })
    }

    /// Counts a connection that no data is taken of, and reports the first of its kind.
    fn leave_out(&self, unused: LeftOut, peer: SocketAddr) {
        let is_first = |counter: &AtomicU64| counter.fetch_add(1, Ordering::Relaxed) == 0;
        match unused {
            LeftOut::Other if is_first(&self.others) => {
                tracing::warn!("{peer}: a connection from an address that no board has was closed");
            }
            LeftOut::Empty if is_first(&self.empty) => {
                tracing::warn!("{peer}: a connection over which nothing came was closed");
            }
            LeftOut::Unrecorded if is_first(&self.unrecorded) => {
                tracing::warn!("{peer}: data of one more connection is not recorded; check the number of streams");
            }
            LeftOut::Displaced | LeftOut::Other | LeftOut::Empty | LeftOut::Unrecorded => {}
        }
    }

    /// Serves a connection to its end.
    pub(super) fn serve(&self, socket: &Connection, (waits, peer): (Waits, SocketAddr), pool: Pool) {
        let mut deadline = Deadline::new(self.limits);
        let (plan, index) = match self.place(socket, (waits, peer), &mut deadline) {
            Ok(place) => place,
            Err(unused) => return self.leave_out(unused, peer),
        };
        let name = self.lock()[index].recorded.name.clone();
        let end = match Recorder::open(plan, name.clone(), Sender::Tcp(peer), &self.interrupts) {
            Ok(mut recorder) => {
                socket.has_files();
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
        let (mut asked, mut stall) = (false, None);
        loop {
            if !asked && (self.interrupts.must_stop() || deadline.is_reached(recorder.bytes())) {
                socket.ask().context("asking for the end")?;
                deadline.stop(self.patience);
                asked = true;
            }
            anyhow::ensure!(!self.interrupts.must_abort(), "interrupted before the end");
            anyhow::ensure!(recorder.is_well(), "a sink has failed");
            check(socket)?;
            if let Some(limit) = deadline.too_silent() {
                anyhow::bail!("no data for {} s", limit.as_secs_f64());
            }
            if waits(&self.interrupts) || !pool.wait(ROOM, LOOK) {
                // Nothing can come while a sink has the whole ring.
                deadline.heard();
                stall.get_or_insert_with(|| socket.stall());
                continue;
            }
            stall = None;
            if asked {
                socket.set_read_timeout(Some(socket.look_at_fin(LOOK)))?;
            }
            let (room, kept) = pool.room();
            let limit = room.len().min(BLOCK_BYTES);
            let got = match (&**socket).read(&mut room[kept..limit]) {
                Ok(0) | Err(_) if socket.given_up().is_some() => continue,
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

/// # Errors
/// The connection was given up.
fn check(socket: &Connection) -> anyhow::Result<()> {
    socket.given_up().map_or(Ok(()), |why| Err(anyhow::anyhow!("{why}")))
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

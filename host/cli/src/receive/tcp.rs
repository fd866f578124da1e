//! `fadelink receive --tcp`: the streams of TCP senders (rtl/tcp), received by the kernel.
//!
//! The boards open the connections. When the receiver closes its direction, a board sends what it has, then closes,
//! too (docs/protocol/tcp_sender.md).

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Context;
use fadelink_receiver::tcp::{Server, END, UNSERVED};
use fadelink_receiver::Pool;
use serde_json::{json, Map};

use super::group::{Group, Line, Outcome};
use super::plan::Senders;
use super::recorder::{self, Ended, Snapshot};
use crate::deadline::{Deadline, Limits};
use crate::interrupts::{Interrupts, NO_ROOM};
use crate::metrics::Meter;
use crate::verdict::{Absent, Accept, Evidence, Verdict};

mod session;

use session::{Received, Session, Stream};

/// Streams of a port with metrics of their own, at most: the first ones.
pub const SHOWN: usize = 256;
/// The same where the boards are not named: anybody may open more and more streams.
const SHOWN_UNNAMED: usize = 64;
/// Stands for the name of all others together.
const OTHERS: &str = "(others)";
/// Longest silence after the end was asked for, if the user sets no other: all of the time that there is for the end.
pub const PATIENCE: Duration = END;

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
            empty: AtomicU64::new(0),
            unrecorded: AtomicU64::new(0),
        });
        let (own, files) = (session.clone(), session.senders.files());
        let server = Server::listen(address, receive_buffer, files, move || {
            let (session, pool) = (own.clone(), Pool::new(own.ring)?);
            Ok(Box::new(move |socket, peer: SocketAddr| {
                // One socket may listen for both families.
                let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
                let waits = session.accept(socket, peer);
                Box::new(move |socket| session.serve(socket, (waits, peer), pool))
            }))
        });
        let server = server.with_context(|| format!("--tcp {}: listening on {address}", address.port()))?;
        Ok(Streams { session, server, port: address.port(), deadline: Deadline::new(limits), wanted: streams })
    }
}

/// Shows what was recorded so far: why it has ended early, and what is wrong with it.
fn show(recorded: &Snapshot, ended_early: Option<String>, wrong: Option<&String>, meter: &mut Meter) {
    recorded.measure(meter, Evidence { error: ended_early, ..Evidence::default() });
    if let Some(wrong) = wrong {
        meter.trouble(format!("{}: {wrong}", recorded.name));
    }
}

impl Streams {
    /// Streams with metrics of their own.
    fn shown(&self) -> usize {
        match self.session.senders {
            Senders::Any(_) => SHOWN_UNNAMED,
            Senders::Known(_) => SHOWN,
        }
    }

    /// Connections that are not those of its streams.
    fn measure_port(&self, meter: &mut Meter) {
        let of_session = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let reasons = [
            ("refused", self.server.refused()),
            ("displaced", self.server.displaced()),
            ("other", of_session(&self.session.others)),
            ("empty", of_session(&self.session.empty)),
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
        let streams = self.session.lock();
        let (shown, others) = streams.split_at(self.shown().min(streams.len()));
        for Stream { recorded, end, .. } in shown {
            let ended_early = end.as_ref().and_then(|end| end.end.clone().err());
            show(recorded, ended_early, end.as_ref().and_then(Received::error), meter);
        }
        let mut sum = Snapshot { name: OTHERS.into(), ..Snapshot::default() };
        others.iter().for_each(|stream| sum.add(&stream.recorded));
        if !others.is_empty() {
            let ends = || others.iter().filter_map(|stream| stream.end.as_ref());
            let ended_early = ends().find_map(|end| end.end.clone().err());
            show(&sum, ended_early, ends().find_map(Received::error), meter);
        }
        drop(streams);
        self.server.late().into_iter().for_each(|late| meter.trouble(late));
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
        self.server.end_in_time();
        if interrupts.must_cut() {
            self.server.cut(NO_ROOM);
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
        others.insert("empty_connections".into(), self.session.empty.load(Ordering::Relaxed).into());
        others.insert("unrecorded_connections".into(), known.foreign.into());
        let board = |(peer, result, verdict): &(SocketAddr, Received, Verdict)| {
            (verdict.state(), result.recorded.json(verdict, "peer", peer, json!({ "error": result.error() })))
        };
        Ok(Outcome::of("streams", streams.iter().map(board), known, others))
    }
}

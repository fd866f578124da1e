//! `fadelink receive --udp`: the streams of UDP/IP stacks (rtl/udp). Lost data is not repeated; it is counted and
//! reported (docs/protocol/udp.md).

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context;
use fadelink_receiver::udp::{Batches, Counts, Order, BATCH};
use fadelink_wire::udp::{self, Datagram};
use serde_json::{json, Map};

use super::group::{Group, Line, Outcome};
use super::patience::UdpPatience;
use super::plan::Senders;
use super::recorder::{self, Snapshot};
use super::tcp::SHOWN;
use crate::deadline::{Deadline, Limits};
use crate::interrupts::Interrupts;
use crate::metrics::Meter;
use crate::verdict::{Absent, Accept, Evidence};

mod boards;
mod dropped;
mod runs;
mod stream;

use boards::{Answer, Boards, RunEnd};
use dropped::Dropped;
use stream::{Received, Setup, Stream};

/// Receive buffer that the kernel is asked for.
pub const RECEIVE_BUFFER: u32 = 32 << 20;
/// Longest wait for a datagram, before other things are looked at.
const TICK: Duration = Duration::from_millis(50);
/// Runs that are received at a time, where the boards are not named. Each has a ring and files.
const OPEN: usize = 256;
/// How often others are shown what has come.
const SHOW: Duration = Duration::from_millis(200);

/// How the streams of UDP/IP stacks are received.
pub struct UdpSettings {
    /// To listen on.
    pub address: SocketAddrV4,
    pub senders: Senders,
    /// Boards that are started, and stopped at the end.
    pub boards: Vec<Ipv4Addr>,
    /// Streams after which the end is reached.
    pub streams: Option<u32>,
    /// Of all of them.
    pub limits: Limits,
    /// Packets of the ring of each stream.
    pub ring: u64,
    /// Receive buffer that the kernel is asked for, in bytes; it doubles it.
    pub receive_buffer: u32,
    /// What counts as the end of a stream.
    pub accept: Accept,
    pub patience: UdpPatience,
}

/// What has come of a stream so far, for others.
struct StreamProgress {
    recorded: Snapshot,
    counts: Counts,
    known: Evidence<'static>,
}

struct Session {
    setup: Setup,
    limits: Limits,
    wanted: Option<u32>,
    live: Arc<Mutex<Vec<StreamProgress>>>,
    socket: Batches,
    boards: Boards,
    streams: Vec<Stream>,
    dropped: Dropped,
    /// Runs that boards say are over, and of which nothing has come: what they say, and when.
    unseen: Vec<(Ipv4Addr, u8, RunEnd, Instant)>,
    /// Boards that did not do what they were asked to, and why.
    failed: Vec<(Ipv4Addr, String)>,
    /// The number that the next run of a board would have, when it was stopped; or what has happened to it.
    next: BTreeMap<Ipv4Addr, Result<u8, String>>,
    /// What has come in the place of runs that boards were asked for, in words.
    instead: Vec<String>,
}

/// Where a datagram belongs; a stream is opened for the first one of a run.
fn stream_of<'a>(
    streams: &'a mut Vec<Stream>,
    (peer, datagram): (SocketAddrV4, &Datagram<'_>),
    (boards, setup): (&Boards, &Setup),
    dropped: &mut Dropped,
) -> anyhow::Result<Option<&'a mut Stream>> {
    let run = datagram.run;
    let of_peer = |stream: &&Stream| stream.peer == peer;
    let earlier = streams.iter().filter(of_peer).count();
    // Numbers of runs are 8 bits: the same one comes again after 256 runs.
    let newest = streams.iter().rposition(|stream| stream.peer == peer);
    let of_board = streams.iter().filter(|stream| stream.peer.ip() == peer.ip()).count();
    let newest_of_board = streams.iter().rposition(|stream| stream.peer.ip() == peer.ip());
    let mut refuse = |streams: &mut Vec<Stream>| {
        dropped.other_run += 1;
        if let Some(newest) = newest_of_board {
            // The board has begun anew, or has another port, and these words are not recorded.
            if !datagram.end {
                streams[newest].suspect(dropped);
            }
        }
    };
    let ahead = newest.map(|newest| run.wrapping_sub(streams[newest].run));
    if ahead.is_some_and(|ahead| ahead == 0 || ahead >= 128) {
        let index = streams.iter().rposition(|stream| stream.peer == peer && stream.run == run);
        if index.is_none() {
            refuse(streams);
        }
        return Ok(index.map(|index| &mut streams[index]));
    }
    // A board that is named has one port: whose words are the board's, nobody knows.
    if boards.contains(*peer.ip()) && newest_of_board.is_some_and(|newest| streams[newest].peer != peer) {
        refuse(streams);
        return Ok(None);
    }
    // Ends are repeated: without a board that was started for it, this one is of a run from before, unless its sender has sent another
    // one since.
    let is_ours =
        if boards.is_empty() { !datagram.end || newest.is_some() } else { boards.is_current(*peer.ip(), run) };
    if !boards.is_empty() && !boards.contains(*peer.ip()) {
        dropped.other_sender += 1;
        return Ok(None);
    }
    if !is_ours {
        dropped.other_run += 1;
        return Ok(None);
    }
    if boards.is_empty() && streams.iter().filter(|stream| !stream.is_over()).count() >= OPEN {
        dropped.too_many += 1;
        return Ok(None);
    }
    let order = if boards.is_empty() { Order::default() } else { Order::from_the_start() };
    let Some(stream) = Stream::open((peer, run, earlier as u32), of_board, order, setup)? else {
        refuse(streams);
        return Ok(None);
    };
    streams.push(stream);
    Ok(streams.last_mut())
}

impl Session {
    /// Asks the boards of streams that are silent whether their run is over: its end may have been lost, or all of it.
    fn ask_for_ends(&self) {
        for stream in self.streams.iter().filter(|stream| stream.told.is_none()) {
            self.boards.ask_for_end(*stream.peer.ip(), stream.run);
        }
        for address in self.silent() {
            if let Some(run) = self.boards.run(address) {
                self.boards.ask_for_end(address, run);
            }
        }
    }

    /// Whether the run that a board was asked for has come, or any, where it has not told its number.
    fn has_come(&self, address: Ipv4Addr) -> bool {
        let run = self.boards.run(address);
        let is_it = |stream: &Stream| *stream.peer.ip() == address && run.is_none_or(|run| stream.run == run);
        self.streams.iter().any(is_it)
    }

    fn has_failed(&self, address: Ipv4Addr) -> bool {
        self.failed.iter().any(|(failed, _)| *failed == address)
    }

    /// Boards that were asked to start, and of whose run nothing has come. One that has failed, or has nothing to send, is not waited
    /// for.
    fn silent(&self) -> impl Iterator<Item = Ipv4Addr> + '_ {
        let is_waited_for = |address| !self.has_come(address) && !self.has_failed(address) && !self.is_unseen(address);
        self.boards.addresses().filter(move |address| is_waited_for(*address))
    }

    /// Whether a board has still to say if the end of its run is true.
    fn has_doubts(&self) -> bool {
        !self.boards.is_empty() && self.streams.iter().any(|stream| stream.claimed.is_some() && stream.told.is_none())
    }

    /// Whether a board has said that its run is over, and had time enough to come.
    fn is_unseen(&self, address: Ipv4Addr) -> bool {
        let linger = self.setup.patience.linger;
        self.unseen.iter().any(|(board, .., since)| *board == address && since.elapsed() >= linger)
    }

    /// Takes what the boards have answered; false: one of them has failed.
    fn hear(&mut self) -> bool {
        let before = self.failed.len();
        for answer in self.boards.answers() {
            match answer {
                Answer::Started => self.setup.interrupts.begin(),
                Answer::Ended(address, run, ended) => {
                    let is_it = |stream: &&mut Stream| *stream.peer.ip() == address && stream.run == run;
                    match self.streams.iter_mut().rfind(is_it) {
                        Some(stream) => stream.has_ended(ended),
                        None if self.unseen.iter().any(|(board, ..)| *board == address) => {}
                        None => self.unseen.push((address, run, ended, Instant::now())),
                    }
                }
                Answer::Idle(address, next) => _ = self.next.insert(address, next),
                Answer::Failed(address, error) => {
                    let error = format!("{error:#}");
                    let streams = self.streams.iter_mut().filter(|stream| *stream.peer.ip() == address);
                    streams.for_each(|stream| stream.failed = Some(error.clone()));
                    self.failed.push((address, error));
                }
            }
        }
        self.failed.len() == before
    }

    /// Takes what has come, for one tick at most.
    fn receive(&mut self) -> anyhow::Result<()> {
        let Session { setup, socket, streams, dropped, boards, .. } = self;
        let (mut result, begun) = (Ok(()), Instant::now());
        let got = socket
            .receive(|peer, payload| {
                let reason = match Datagram::parse(payload) {
                    _ if payload.len() > udp::PAYLOAD_MAX => &mut dropped.oversize,
                    Ok(datagram) => {
                        match stream_of(streams, (peer, &datagram), (boards, setup), dropped) {
                            Ok(Some(stream)) => stream.take(&datagram, !boards.is_empty(), setup, dropped),
                            Ok(None) => {}
                            Err(error) => result = Err(error),
                        }
                        return;
                    }
                    Err(udp::Error::Truncated(..)) => &mut dropped.truncated,
                    Err(udp::Error::Words { .. }) => &mut dropped.words,
                    Err(udp::Error::Flags(_) | udp::Error::Operation(_)) => &mut dropped.flags,
                };
                *reason += 1;
                if let Some(stream) = streams.iter_mut().rfind(|stream| stream.peer == peer) {
                    stream.suspect(dropped);
                }
            })
            .context("receiving")?;
        let emptied = (got < BATCH).then_some(begun);
        Stream::close_ended(streams, setup, emptied);
        result
    }

    /// What need not be told with every batch.
    fn show(&self) {
        let live = |stream: &Stream| StreamProgress {
            recorded: stream.words.look(),
            counts: stream.order.counts(),
            known: stream.known(&self.setup),
        };
        *self.live.lock().unwrap_or_else(PoisonError::into_inner) = self.streams.iter().map(live).collect();
    }

    /// Receives until the end, then stops the boards, also if one fails.
    fn run(&mut self) -> anyhow::Result<()> {
        let result = self.run_to_the_end();
        let are_all_wanted = result.as_ref().is_ok_and(|are_all_wanted| *are_all_wanted);
        self.boards.stop();
        // What a board says to this is the last that is heard of it.
        let begin = Instant::now();
        while !self.boards.are_done()
            && begin.elapsed() < self.setup.patience.end
            && !self.setup.interrupts.must_abort()
        {
            self.hear();
            self.receive()?;
        }
        self.hear();
        self.open_unseen()?;
        self.find_missed(are_all_wanted);
        self.dropped.kernel = u64::from(self.socket.kernel_drops().unwrap_or(0));
        for stream in &mut self.streams {
            // Of a board that does not answer nothing better is known.
            stream.end = stream.end.or(stream.claimed);
            stream.close(&self.setup);
        }
        result.map(drop)
    }

    /// True if all runs of the boards were to come, until they were stopped; false if there were enough.
    fn run_to_the_end(&mut self) -> anyhow::Result<bool> {
        let patience = self.setup.patience;
        let mut deadline = Deadline::new(self.limits);
        let (mut shown, mut asked, mut doubted) = (Instant::now(), Instant::now(), None);
        let wanted = self.wanted.map_or(usize::MAX, |n| n as usize);
        let mut came_before = (0, 0);
        let mut stopped: Option<Instant> = None;
        loop {
            self.receive()?;
            let boards_do = self.hear();
            self.find_unseen();
            if shown.elapsed() >= SHOW {
                self.show();
                shown = Instant::now();
            }
            let bytes: u64 = self.streams.iter().map(|stream| stream.words.bytes()).sum();
            // Those at the begin of a stream wait for the ones before.
            let came = (bytes, self.streams.iter().map(|stream| stream.order.waiting()).sum());
            if std::mem::replace(&mut came_before, came) != came {
                deadline.heard();
            }
            let has_doubts = self.has_doubts();
            // Of a board that was stopped before anything came, too, the end is known by what it says.
            let must_ask = has_doubts || (stopped.is_some() && self.silent().next().is_some());
            let must_count = stopped.is_some() && self.uncounted().next().is_some();
            if (deadline.silence() > patience.silence && asked.elapsed() > patience.silence)
                || (must_ask && asked.elapsed() > TICK)
            {
                self.ask_for_ends();
                asked = Instant::now();
            } else if must_count && asked.elapsed() > TICK {
                self.uncounted().for_each(|address| self.boards.ask_for_runs(address));
                asked = Instant::now();
            }
            // An end that nobody but its frame tells is believed late, and then told as such.
            doubted = doubted.filter(|_| has_doubts).or_else(|| has_doubts.then(Instant::now));
            let has_doubts = doubted.is_some_and(|since| since.elapsed() < patience.doubt);
            let closed = self.streams.iter().filter(|stream| stream.is_over()).count();
            let unseen = self.unseen.iter().filter(|(address, ..)| self.is_unseen(*address)).count();
            if closed + unseen >= wanted && !has_doubts {
                return Ok(false);
            }
            if self.setup.interrupts.must_abort() {
                // Of streams whose end is proven all has come; a board that has not told which runs it had may have had more.
                self.streams.iter_mut().for_each(|stream| stream.interrupted = stream.told.is_none());
                return Ok(true);
            }
            let enough = self.setup.interrupts.must_stop()
                || deadline.is_reached(bytes)
                || deadline.too_silent().is_some()
                || !self.streams.iter().all(|stream| stream.words.are_well())
                || !boards_do;
            match stopped {
                None if enough && self.boards.is_empty() => break,
                None if enough => {
                    self.boards.stop();
                    stopped = Some(Instant::now());
                }
                Some(since) if since.elapsed() > patience.end => break,
                Some(_)
                    if closed == self.streams.len() && !has_doubts && !must_count && self.silent().next().is_none() =>
                {
                    break
                }
                // Of a board that does not answer no end comes.
                Some(_) if !self.failed.is_empty() && deadline.silence() > patience.silence => break,
                _ => {}
            }
        }
        Ok(true)
    }

    fn outcome(self, silent: bool, meter: &mut Meter) -> Outcome {
        let Session { setup, streams, dropped, failed, instead, wanted, .. } = self;
        let missing = recorder::missing(wanted, streams.len());
        let came: Vec<_> = streams.iter().map(|stream| IpAddr::V4(*stream.peer.ip())).collect();
        let streams: Vec<_> = streams.into_iter().map(|stream| stream.result(&setup, meter)).collect();
        // Who takes an end that the board does not confirm for the end needs no answer of it.
        let is_excused = |address: Ipv4Addr| {
            let is_whole = |stream: &Received| *stream.peer.ip() == address && stream.verdict.is_complete();
            setup.accept != Accept::Confirmed && streams.iter().any(is_whole)
        };
        let against: Vec<_> = failed
            .iter()
            .filter(|(address, _)| !is_excused(*address))
            .map(|(_, error)| error)
            .chain(&instead)
            .cloned()
            .collect();
        // Where no end tells how many a stream had, these may have been of it.
        let has_unknown = streams.iter().any(|stream| stream.total.is_none());
        let known = Evidence {
            missing: if has_unknown { dropped.kernel } else { 0 },
            absent: Absent { streams: missing, boards: setup.senders.absent(&came) },
            board: (!against.is_empty()).then(|| against.join("; ")),
            // They may be a board's, or another computer has its name.
            foreign: dropped.too_many + dropped.behind,
            ..Evidence::default()
        };
        let failed: Vec<_> = failed.iter().map(|(_, error)| error).collect();
        for error in &failed {
            tracing::error!("{error}");
        }
        for stream in &streams {
            stream.tell(silent);
        }
        dropped.tell();
        let mut others = Map::new();
        others.insert("missing_streams".into(), missing.into());
        others.insert("dropped".into(), json!(dropped));
        others.insert("failed_boards".into(), json!(failed));
        let board = |stream: &Received| (stream.verdict.state(), stream.json());
        Outcome::of("streams", streams.iter().map(board), known, others)
    }
}

/// The UDP streams of a port.
pub struct Streams {
    thread: JoinHandle<anyhow::Result<Session>>,
    live: Arc<Mutex<Vec<StreamProgress>>>,
}

impl Streams {
    /// Begins to receive, and starts the boards.
    ///
    /// # Errors
    /// The address is not available, or there is no way to a board.
    pub fn begin(settings: UdpSettings, interrupts: &Interrupts) -> anyhow::Result<Streams> {
        let UdpSettings { address, senders, boards, streams: wanted, limits, ring, receive_buffer, accept, patience } =
            settings;
        let port = address.port();
        let socket = Batches::open(address, receive_buffer, TICK)
            .with_context(|| format!("--udp {port}: listening on {address}"))?;
        let setup =
            Setup { senders, ring, interrupts: interrupts.clone(), starts: !boards.is_empty(), accept, patience };
        let boards = Boards::start(&boards, port, (patience, limits.wait))?;
        let live = Arc::new(Mutex::default());
        let (streams, dropped, unseen) = (Vec::new(), Dropped::default(), Vec::new());
        let (failed, instead) = (Vec::new(), Vec::new());
        let mut session = Session {
            setup,
            limits,
            wanted,
            live: live.clone(),
            socket,
            boards,
            streams,
            dropped,
            unseen,
            failed,
            next: BTreeMap::new(),
            instead,
        };
        let receive = move || session.run().map(|()| session);
        let thread = std::thread::Builder::new().name("udp".into()).spawn(receive)?;
        Ok(Streams { thread, live })
    }

    fn look<T>(&self, look: impl FnMut(&StreamProgress) -> T) -> Vec<T> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner).iter().map(look).collect()
    }
}

impl Group for Streams {
    fn lines(&self) -> Vec<Line> {
        let note = |live: &StreamProgress| format!("{} lost", live.counts.lost);
        self.look(|live| Line { name: live.recorded.name.clone(), bytes: live.recorded.bytes, note: note(live) })
    }

    fn measure(&self, meter: &mut Meter) {
        let mut shown = 0;
        self.look(|live| {
            shown += 1;
            if shown > SHOWN {
                return;
            }
            live.recorded.measure(meter, live.known.clone());
            meter.datagrams(&live.recorded.name, &live.counts);
        });
    }

    fn poll(&mut self) -> anyhow::Result<bool> {
        Ok(self.thread.is_finished())
    }

    fn finish(self: Box<Self>, silent: bool, meter: &mut Meter) -> anyhow::Result<Outcome> {
        let session = self.thread.join().map_err(|_| anyhow::anyhow!("the thread that receives UDP panicked"))??;
        Ok(session.outcome(silent, meter))
    }
}

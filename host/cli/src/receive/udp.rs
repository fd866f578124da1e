//! `fadelink receive --udp`: the streams of UDP/IP stacks (rtl/udp). Lost data is not repeated; it is counted and
//! reported (docs/protocol/udp.md).

use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context;
use fadelink_receiver::udp::{Batches, Counts, Order, Step};
use fadelink_receiver::Pool;
use fadelink_sinks::{Block, Board, Origin, Outlets, Report, BLOCK_BYTES};
use fadelink_wire::udp::{self, Datagram};
use fadelink_wire::WordOrder;
use serde_json::{json, Map, Value};

use super::board::{Answer, Boards};
use super::closing::Closing;
use super::group::{Group, Line, Outcome};
use super::plan::Senders;
use super::summary::{self, Summary};
use crate::deadline::{Deadline, Limits};
use crate::interrupts::Interrupts;
use crate::metrics::{self, Meter};
use crate::pattern::Verifier;

/// Receive buffer that the kernel is asked for.
pub const RECEIVE_BUFFER: u32 = 32 << 20;
/// Longest wait for a datagram, before other things are looked at.
const TICK: Duration = Duration::from_millis(50);
/// How often others are shown what has come.
const SHOW: Duration = Duration::from_millis(200);
/// From the end of a run to the moment in which what is missing is given up for.
const LINGER: Duration = Duration::from_millis(200);
/// Silence after which a board is asked whether its run is over.
const SILENCE: Duration = Duration::from_secs(1);
/// Longest wait for the ends of runs that were stopped.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest wait for room in a ring, before other things are looked at.
const ROOM: Duration = Duration::from_millis(100);

/// How the streams of UDP/IP stacks are received.
pub struct Settings {
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
}

/// One run of one board.
struct Stream {
    name: String,
    peer: SocketAddrV4,
    run: u8,
    begin: Instant,
    order: Order,
    data: Data,
    outlets: Closing,
    /// Datagrams of the run, when its end has come, and when.
    end: Option<(u32, Instant)>,
    seconds: f64,
}

/// The words of a stream, put in order.
struct Data {
    pool: Pool,
    /// Bytes that are in the pool and not given to the sinks yet, and how many of them make a block.
    waiting: usize,
    block: usize,
    origin: Origin,
    bytes: u64,
    /// Bytes of a full datagram: of the largest that came.
    full: u64,
    verifier: Option<Verifier>,
    /// Words that no sink had room for when the end was asked for twice.
    given_up: u64,
}

impl Data {
    /// Takes words that are next. They wait for room while a sink has the whole ring: the kernel's receive buffer fills then.
    fn push(&mut self, words: &[u8], outlets: &mut Outlets<Block>, interrupts: &Interrupts) {
        self.bytes += words.len() as u64;
        if let Some(verifier) = &mut self.verifier {
            verifier.check(words);
        }
        if self.waiting + words.len() > self.block {
            self.give(outlets);
        }
        while !self.pool.wait(words.len(), ROOM) {
            if interrupts.must_abort() || !outlets.are_well() {
                self.given_up += words.len() as u64;
                return;
            }
        }
        let (room, kept) = self.pool.room();
        room[kept..kept + words.len()].copy_from_slice(words);
        self.waiting = kept + words.len();
        self.pool.keep(self.waiting);
    }

    /// Gives the sinks what waits.
    fn give(&mut self, outlets: &mut Outlets<Block>) {
        if self.waiting > 0 {
            let data = self.pool.lend(std::mem::take(&mut self.waiting), 0);
            outlets.offer(&Block { data, origin: self.origin });
        }
    }

    fn step(&mut self, step: &Step<'_>, outlets: &mut Outlets<Block>, interrupts: &Interrupts) {
        match step {
            Step::Words(words) => self.push(words, outlets, interrupts),
            // The pattern goes on behind the gap, if the datagrams there were full ones.
            Step::Missing(count) => {
                if let Some(verifier) = &mut self.verifier {
                    verifier.skip(count * self.full);
                }
            }
        }
    }
}

impl Stream {
    fn open(peer: SocketAddrV4, run: u8, order: Order, session: &Setup) -> anyhow::Result<Stream> {
        let board = Board::Udp(peer.into());
        let plan = session.senders.plan(IpAddr::V4(*peer.ip())).context("a board that has no plan")?;
        let outlets = plan.open(board, session.interrupts.stopping())?;
        let pool = Pool::new(session.ring).context("the ring")?;
        let data = Data {
            block: BLOCK_BYTES.min(pool.fill().1 as usize / 2),
            pool,
            waiting: 0,
            origin: Origin { wire_order: Some(WordOrder::Little), ..Origin::of(board) },
            bytes: 0,
            full: 0,
            verifier: plan.verifier(),
            given_up: 0,
        };
        let outlets = Closing::Open(outlets);
        let name = plan.name.clone().unwrap_or_else(|| peer.to_string());
        Ok(Stream { name, peer, run, begin: Instant::now(), order, data, outlets, end: None, seconds: 0.0 })
    }

    /// Takes a datagram; words go on in order.
    fn take(&mut self, datagram: &Datagram<'_>, interrupts: &Interrupts) {
        let Stream { order, data, outlets: Closing::Open(outlets), end, .. } = self else { return };
        if datagram.end {
            end.get_or_insert((datagram.counter, Instant::now()));
            return;
        }
        data.full = data.full.max(datagram.words.len() as u64 / 8);
        order.push(datagram.counter, datagram.words, |step| data.step(&step, outlets, interrupts));
    }

    /// Gives the sinks what came, and looks whether they are done where no more comes.
    fn advance(&mut self) {
        if let Closing::Open(outlets) = &mut self.outlets {
            self.data.give(outlets);
        }
        if self.outlets.is_done() {
            self.outlets.join();
        }
    }

    /// Gives up for what has not come, and lets the sinks finish.
    fn close(&mut self, interrupts: &Interrupts) {
        let Stream { begin, order, data, outlets: Closing::Open(outlets), end, seconds, .. } = self else { return };
        *seconds = begin.elapsed().as_secs_f64();
        order.finish(end.map(|(total, _)| total), |step| data.step(&step, outlets, interrupts));
        data.give(outlets);
        if let Some(verifier) = &mut data.verifier {
            verifier.finish(None);
        }
        let complete = self.has_all_words();
        self.outlets.finish(complete);
    }

    fn has_all_words(&self) -> bool {
        let counts = self.order.counts();
        counts.lost == 0 && counts.late == 0 && self.data.given_up == 0
    }

    /// All that was to come has come, or has had time enough.
    fn is_due(&self) -> bool {
        self.end.is_some_and(|(total, since)| self.order.has_all(total) || since.elapsed() > LINGER)
    }

    fn is_complete(&self) -> bool {
        !self.outlets.is_open() && self.outlets.is_well() && self.has_all_words()
    }

    fn summary<'a>(&'a self, sinks: &'a [Report]) -> Summary<'a, &'a str> {
        let (complete, verifier) = (self.is_complete(), self.data.verifier.as_ref());
        Summary { name: &self.name, bytes: self.data.bytes, seconds: self.seconds, complete, verifier, sinks }
    }

    fn is_good(&self) -> bool {
        self.summary(&[]).is_good()
    }

    fn json(&self) -> Value {
        let more = json!({
            "run": self.run,
            "ended": self.end.is_some(),
            "datagrams": self.end.map(|(total, _)| total),
            "first": self.order.first(),
            "counts": self.order.counts(),
            "gaps": self.order.gaps(),
            "error": self.outlets.error(),
        });
        self.summary(&self.outlets.reports()).json("peer", &self.peer, more)
    }

    /// Tells what was lost, and the rest.
    fn tell(&self, silent: bool) {
        let (name, counts) = (&self.name, self.order.counts());
        if counts.lost + counts.late > 0 {
            let all = counts.received + counts.lost + counts.late;
            let percent = 100.0 * (counts.lost + counts.late) as f64 / all as f64;
            tracing::warn!(
                "{name}: {} of {all} datagrams LOST ({percent:.3} %), {} more came too late",
                counts.lost,
                counts.late
            );
        }
        if let Some(error) = self.outlets.error() {
            tracing::error!("{name}: {error}");
        }
        let first = self.order.first();
        let from = if first > 0 { format!(" from datagram {first}") } else { String::new() };
        let end = if self.end.is_some() { "" } else { ", its end did not come" };
        self.summary(&self.outlets.reports()).tell(silent, &from, end);
    }
}

/// Datagrams that are of no stream, by their reason.
#[derive(Default, serde::Serialize)]
struct Dropped {
    truncated: u64,
    words: u64,
    flags: u64,
    oversize: u64,
    /// Their sender is none of the boards.
    #[serde(skip_serializing_if = "is_none")]
    other_sender: u64,
    /// Of a run that a board was not started for, or whose end is all that came of it.
    #[serde(skip_serializing_if = "is_none")]
    other_run: u64,
    /// Words of a run that was over.
    #[serde(skip_serializing_if = "is_none")]
    after_end: u64,
    /// The kernel had no room: the receive buffer was full.
    kernel: u64,
}

/// Reasons that there are seldom are told where they are met alone.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_none(count: &u64) -> bool {
    *count == 0
}

/// What streams are opened with.
struct Setup {
    senders: Senders,
    ring: u64,
    interrupts: Interrupts,
}

/// What has come of a stream so far, for others.
struct Live {
    name: String,
    bytes: u64,
    wrong_words: Option<u64>,
    counts: Counts,
    sinks: Vec<Report>,
}

struct Session {
    setup: Setup,
    limits: Limits,
    wanted: Option<u32>,
    live: Arc<Mutex<Vec<Live>>>,
    socket: Batches,
    boards: Boards,
    streams: Vec<Stream>,
    dropped: Dropped,
    /// Boards that did not do what they were asked to.
    failed: Vec<String>,
}

/// Where a datagram belongs; a stream is opened for the first one of a run.
fn stream_of<'a>(
    streams: &'a mut Vec<Stream>,
    (peer, datagram): (SocketAddrV4, &Datagram<'_>),
    (boards, setup): (&Boards, &Setup),
    dropped: &mut Dropped,
) -> anyhow::Result<Option<&'a mut Stream>> {
    let run = datagram.run;
    if let Some(index) = streams.iter().rposition(|stream| stream.peer == peer && stream.run == run) {
        return Ok(Some(&mut streams[index]));
    }
    // Ends are repeated: without a board that was started for it, this one is of a run from before.
    let is_ours = if boards.is_empty() { !datagram.end } else { boards.is_current(*peer.ip(), run) };
    if !boards.is_empty() && !boards.contains(*peer.ip()) {
        dropped.other_sender += 1;
        return Ok(None);
    }
    if !is_ours {
        dropped.other_run += 1;
        return Ok(None);
    }
    let order = if boards.is_empty() { Order::default() } else { Order::from_the_start() };
    streams.push(Stream::open(peer, run, order, setup)?);
    Ok(streams.last_mut())
}

impl Session {
    /// Asks the boards of streams that are silent whether their run is over: its end may have been lost.
    fn ask_for_ends(&self) {
        for stream in self.streams.iter().filter(|stream| stream.outlets.is_open() && stream.end.is_none()) {
            self.boards.ask_for_end(*stream.peer.ip(), stream.run);
        }
    }

    /// Takes what the boards have answered; false: one of them has failed.
    fn hear(&mut self) -> bool {
        let before = self.failed.len();
        for answer in self.boards.answers() {
            match answer {
                Answer::Ended(address, run, total) => {
                    let is_it = |stream: &&mut Stream| *stream.peer.ip() == address && stream.run == run;
                    if let Some(stream) = self.streams.iter_mut().find(is_it) {
                        stream.end.get_or_insert((total, Instant::now()));
                    }
                }
                Answer::Failed(error) => self.failed.push(format!("{error:#}")),
            }
        }
        self.failed.len() == before
    }

    /// Takes what has come, for one tick at most.
    fn receive(&mut self) -> anyhow::Result<()> {
        let Session { setup, socket, streams, dropped, boards, .. } = self;
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
                match stream_of(streams, (peer, &datagram), (boards, setup), dropped) {
                    Ok(Some(stream)) if stream.outlets.is_open() => stream.take(&datagram, &setup.interrupts),
                    Ok(Some(_)) => dropped.after_end += u64::from(!datagram.end),
                    Ok(None) => {}
                    Err(error) => result = Err(error),
                }
            })
            .context("receiving")?;
        for stream in streams {
            if stream.outlets.is_open() && (stream.is_due() || !stream.outlets.is_well()) {
                stream.close(&setup.interrupts);
            }
            stream.advance();
        }
        result
    }

    /// What need not be told with every batch.
    fn show(&self) {
        let live = |stream: &Stream| Live {
            name: stream.name.clone(),
            bytes: stream.data.bytes,
            wrong_words: metrics::wrong_words(stream.data.verifier.as_ref()),
            counts: stream.order.counts(),
            sinks: stream.outlets.reports(),
        };
        *self.live.lock().unwrap_or_else(PoisonError::into_inner) = self.streams.iter().map(live).collect();
    }

    /// Receives until the end, then stops the boards, also if one fails.
    fn run(&mut self) -> anyhow::Result<()> {
        let result = self.run_to_the_end();
        self.boards.stop();
        // What a board says to this is the last that is heard of it.
        let begin = Instant::now();
        while !self.boards.are_done() && begin.elapsed() < PATIENCE && !self.setup.interrupts.must_abort() {
            self.hear();
            self.receive()?;
        }
        self.hear();
        self.dropped.kernel = u64::from(self.socket.kernel_drops().unwrap_or(0));
        for stream in &mut self.streams {
            stream.close(&self.setup.interrupts);
        }
        self.streams.iter_mut().for_each(|stream| stream.outlets.join());
        result
    }

    fn run_to_the_end(&mut self) -> anyhow::Result<()> {
        let mut deadline = Deadline::new(self.limits);
        let (mut shown, mut asked) = (Instant::now(), Instant::now());
        let wanted = self.wanted.map_or(usize::MAX, |n| n as usize);
        let mut bytes_before = 0;
        let mut stopped: Option<Instant> = None;
        loop {
            self.receive()?;
            let boards_do = self.hear();
            if shown.elapsed() >= SHOW {
                self.show();
                shown = Instant::now();
            }
            let bytes: u64 = self.streams.iter().map(|stream| stream.data.bytes).sum();
            if std::mem::replace(&mut bytes_before, bytes) != bytes {
                deadline.heard();
            }
            if deadline.silence() > SILENCE && asked.elapsed() > SILENCE {
                self.ask_for_ends();
                asked = Instant::now();
            }
            let closed = self.streams.iter().filter(|stream| !stream.outlets.is_open()).count();
            if closed >= wanted {
                break;
            }
            anyhow::ensure!(!self.setup.interrupts.must_abort(), "interrupted before the end");
            let enough = self.setup.interrupts.must_stop()
                || deadline.is_reached(bytes)
                || deadline.too_silent().is_some()
                || !self.streams.iter().all(|stream| stream.outlets.is_well())
                || !boards_do;
            match stopped {
                None if enough && self.boards.is_empty() => break,
                None if enough => {
                    self.boards.stop();
                    stopped = Some(Instant::now());
                }
                Some(since) if closed == self.streams.len() || since.elapsed() > PATIENCE => break,
                // Of a board that does not answer no end comes.
                Some(_) if !self.failed.is_empty() && deadline.silence() > SILENCE => break,
                _ => {}
            }
        }
        Ok(())
    }

    fn outcome(&self, silent: bool) -> Outcome {
        let missing = summary::missing(self.wanted, self.streams.len());
        // A board that was told to stop says how much there was.
        let ended = self.boards.is_empty() || self.streams.iter().all(|stream| stream.end.is_some());
        let good = missing == 0
            && ended
            && self.failed.is_empty()
            && !self.streams.is_empty()
            && self.streams.iter().all(Stream::is_good);
        for error in &self.failed {
            tracing::error!("{error}");
        }
        for stream in &self.streams {
            stream.tell(silent);
        }
        let dropped = &self.dropped;
        for (count, reason) in [
            (dropped.truncated, "without a header"),
            (dropped.words, "shorter than their words"),
            (dropped.flags, "with unknown flags"),
            (dropped.oversize, "longer than the format allows"),
            (dropped.other_sender, "of other senders"),
            (dropped.other_run, "of earlier runs"),
            (dropped.after_end, "of runs that had ended"),
            (dropped.kernel, "dropped by the kernel, whose buffer was full (--receive-buffer)"),
        ] {
            if count > 0 {
                tracing::warn!("{count} datagrams {reason}");
            }
        }
        let mut others = Map::new();
        others.insert("missing_streams".into(), missing.into());
        others.insert("dropped".into(), json!(dropped));
        others.insert("failed_boards".into(), json!(self.failed));
        Outcome { good, key: "streams", boards: self.streams.iter().map(Stream::json).collect(), others }
    }
}

/// The UDP streams of a port.
pub struct Streams {
    thread: JoinHandle<anyhow::Result<Session>>,
    live: Arc<Mutex<Vec<Live>>>,
}

impl Streams {
    /// Begins to receive, and starts the boards.
    ///
    /// # Errors
    /// The address is not available, or there is no way to a board.
    pub fn begin(settings: Settings, interrupts: &Interrupts) -> anyhow::Result<Streams> {
        let Settings { address, senders, boards, streams: wanted, limits, ring, receive_buffer } = settings;
        let port = address.port();
        let socket = Batches::open(address, receive_buffer, TICK)
            .with_context(|| format!("--udp {port}: listening on {address}"))?;
        let setup = Setup { senders, ring, interrupts: interrupts.clone() };
        let boards = Boards::start(&boards, port)?;
        let live = Arc::new(Mutex::default());
        let (streams, dropped, failed) = (Vec::new(), Dropped::default(), Vec::new());
        let mut session =
            Session { setup, limits, wanted, live: live.clone(), socket, boards, streams, dropped, failed };
        let receive = move || session.run().map(|()| session);
        let thread = std::thread::Builder::new().name("udp".into()).spawn(receive)?;
        Ok(Streams { thread, live })
    }

    fn look<T>(&self, look: impl FnMut(&Live) -> T) -> Vec<T> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner).iter().map(look).collect()
    }
}

impl Group for Streams {
    fn lines(&self) -> Vec<Line> {
        let note = |live: &Live| format!("{} lost", live.counts.lost);
        self.look(|live| Line { name: live.name.clone(), bytes: live.bytes, note: note(live) })
    }

    fn measure(&self, meter: &mut Meter) {
        self.look(|live| {
            meter.board(&live.name, live.bytes, live.wrong_words);
            meter.datagrams(&live.name, &live.counts);
            meter.sinks(&live.name, &live.sinks);
        });
    }

    fn poll(&mut self) -> anyhow::Result<bool> {
        Ok(self.thread.is_finished())
    }

    fn finish(self: Box<Self>, silent: bool) -> anyhow::Result<Outcome> {
        let session = self.thread.join().map_err(|_| anyhow::anyhow!("the thread that receives UDP panicked"))??;
        Ok(session.outcome(silent))
    }
}

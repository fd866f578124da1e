//! `fadelink receive --udp`: the streams of UDP/IP stacks (rtl/udp). Lost data is not repeated; it is counted and
//! reported (docs/protocol/udp.md).

use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context;
use fadelink_receiver::udp::{Batches, Counts, Order, Step};
use fadelink_receiver::Pool;
use fadelink_sinks::{Block, Board, Origin, BLOCK_BYTES};
use fadelink_wire::udp::{self, Datagram};
use fadelink_wire::WordOrder;
use serde_json::{json, Map, Value};

use super::board::{Answer, Boards, RunEnd};
use super::group::{Group, Line, Outcome};
use super::plan::Senders;
use super::recorder::{self, Ended, Ending, Recorder, Snapshot};
use crate::deadline::{Deadline, Limits};
use crate::interrupts::Interrupts;
use crate::metrics::Meter;
use crate::verdict::{Accept, End, Evidence, State, Verdict};

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
/// Longest wait for a board to say whether the end of its run is true.
const DOUBT: Duration = Duration::from_secs(2);
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
    /// What counts as the end of a stream.
    pub accept: Accept,
}

/// One run of one board.
struct Stream {
    peer: SocketAddrV4,
    run: u8,
    /// Runs of this sender that were received before.
    earlier: u32,
    order: Order,
    words: Words,
    /// Words that no sink had room for when the end was asked for twice, in bytes.
    given_up: u64,
    /// Datagrams of the run by its end, and when that came. Anybody may have sent it: a board with slow control is asked.
    claimed: Option<(u32, Instant)>,
    /// The same, as the board confirms it.
    end: Option<(u32, Instant)>,
    /// What the board says of the run's end, by slow control.
    told: Option<Result<(), String>>,
    /// Datagrams that came behind its end, or of another run of its board that is not received, and are none of it.
    after_end: u64,
}

/// Where the words of a stream are.
enum Words {
    Come(Writer),
    Ending(Ending),
    Ended(Ended),
}

/// The words of a stream, put in order, on their way to the recorder.
struct Writer {
    recorder: Recorder,
    pool: Pool,
    /// Bytes that are in the pool and not recorded yet, and how many of them make a block.
    waiting: usize,
    block: usize,
    origin: Origin,
    /// Bytes of a full datagram: of the largest that came.
    full: u64,
    given_up: u64,
}

impl Writer {
    /// Takes words that are next. They wait for room while a sink has the whole ring: the kernel's receive buffer fills then.
    fn push(&mut self, words: &[u8], interrupts: &Interrupts) {
        if self.waiting + words.len() > self.block {
            self.give();
        }
        while !self.pool.wait(words.len(), ROOM) {
            if interrupts.must_abort() || !self.recorder.is_well() {
                self.given_up += words.len() as u64;
                return;
            }
        }
        let (room, kept) = self.pool.room();
        room[kept..kept + words.len()].copy_from_slice(words);
        self.waiting = kept + words.len();
        self.pool.keep(self.waiting);
    }

    /// Has recorded what waits.
    fn give(&mut self) {
        if self.waiting > 0 {
            let data = self.pool.lend(std::mem::take(&mut self.waiting), 0);
            self.recorder.take(&Block { data, origin: self.origin });
        }
    }

    fn step(&mut self, step: &Step<'_>, interrupts: &Interrupts) {
        match step {
            Step::Words(words) => self.push(words, interrupts),
            // The pattern goes on behind the gap, if the datagrams there were full ones.
            Step::Missing(count) => {
                self.give();
                self.recorder.skip(count * self.full);
            }
        }
    }
}

impl Words {
    /// What was recorded so far.
    fn look(&self) -> Snapshot {
        match self {
            Words::Come(writer) => writer.recorder.look(),
            Words::Ending(ending) => ending.look(),
            Words::Ended(ended) => ended.look(),
        }
    }

    fn bytes(&self) -> u64 {
        match self {
            Words::Come(writer) => writer.recorder.bytes() + writer.waiting as u64,
            Words::Ending(ending) => ending.bytes(),
            Words::Ended(ended) => ended.bytes,
        }
    }

    fn come(&self) -> bool {
        matches!(self, Words::Come(_))
    }

    /// False: a sink has failed.
    fn are_well(&self) -> bool {
        match self {
            Words::Come(writer) => writer.recorder.is_well(),
            Words::Ending(_) => true,
            Words::Ended(ended) => ended.error.is_none(),
        }
    }

    /// Each state is used up by the next one, or returned as it is.
    fn change(&mut self, next: impl FnOnce(Words) -> Words) {
        *self = next(std::mem::replace(self, Words::Ended(Ended::default())));
    }

    /// Waits until the sinks are finished.
    fn join(&mut self) {
        self.change(|words| match words {
            Words::Ending(ending) => Words::Ended(ending.join()),
            other => other,
        });
    }
}

impl Stream {
    fn open(
        (peer, run, earlier): (SocketAddrV4, u8, u32),
        order: Order,
        session: &Setup,
    ) -> anyhow::Result<Option<Stream>> {
        let board = Board::Udp(peer.into(), earlier);
        let Some(plan) = session.senders.plan(IpAddr::V4(*peer.ip())) else { return Ok(None) };
        if earlier as usize >= plan.streams {
            return Ok(None);
        }
        let name = match (&plan.name, earlier) {
            (Some(name), _) => name.clone(),
            (None, 0) => peer.to_string(),
            (None, earlier) => format!("{peer} run {}", earlier + 1),
        };
        let recorder = Recorder::open(plan, name, board, &session.interrupts)?;
        let pool = Pool::new(session.ring).context("the ring")?;
        let writer = Writer {
            recorder,
            block: BLOCK_BYTES.min(pool.fill().1 as usize / 2),
            pool,
            waiting: 0,
            origin: Origin { wire_order: Some(WordOrder::Little), ..Origin::of(board) },
            full: 0,
            given_up: 0,
        };
        let words = Words::Come(writer);
        Ok(Some(Stream {
            peer,
            run,
            earlier,
            order,
            words,
            given_up: 0,
            claimed: None,
            end: None,
            told: None,
            after_end: 0,
        }))
    }

    /// Takes a datagram; words go on in order. `asks`: its end is true only when the board says so.
    fn take(&mut self, datagram: &Datagram<'_>, asks: bool, interrupts: &Interrupts) {
        let Stream { order, words, claimed, end, after_end, .. } = self;
        if datagram.end {
            let claimed = *claimed.get_or_insert((datagram.counter, Instant::now()));
            if !asks {
                end.get_or_insert(claimed);
            }
            return;
        }
        match words {
            Words::Come(writer) => {
                writer.full = writer.full.max(datagram.words.len() as u64);
                order.push(datagram.counter, datagram.words, |step| writer.step(&step, interrupts));
            }
            // A repetition by the network may still come.
            _ => *after_end += u64::from(!order.is_known(datagram.counter, datagram.words)),
        }
    }

    /// Has recorded what came, and looks whether the sinks are done where no more comes.
    fn advance(&mut self) {
        match &mut self.words {
            Words::Come(writer) => writer.give(),
            Words::Ending(ending) if ending.is_done() => self.words.join(),
            _ => {}
        }
    }

    /// Gives up for what has not come, and lets the sinks finish.
    fn close(&mut self, setup: &Setup) {
        if let Words::Come(writer) = &mut self.words {
            self.order.finish(self.end.map(|(total, _)| total), |step| writer.step(&step, &setup.interrupts));
            writer.give();
            self.given_up = writer.given_up;
        }
        let known = self.known(setup);
        self.words.change(|words| match words {
            Words::Come(writer) => Words::Ending(writer.recorder.end_aside(known)),
            other => other,
        });
    }

    /// What receiving knows.
    fn known(&self, setup: &Setup) -> Evidence<'static> {
        let counts = self.order.counts();
        let (end, board) = match (self.end, &self.told) {
            // Nobody can stop the board, and the user wants no more.
            (None, _) if !setup.starts => (End::Silence, None),
            (None, _) => (End::Missing, None),
            (Some(_), Some(Ok(()))) => (End::Confirmed, None),
            (Some(_), Some(Err(what))) => (End::Told, Some(what.clone())),
            (Some(_), None) => (End::Told, None),
        };
        Evidence {
            end,
            // A board that has slow control is believed when it confirms.
            accept: if setup.starts { Accept::Confirmed } else { setup.accept },
            board,
            missing: counts.lost + counts.late,
            given_up: self.given_up,
            contradictions: counts.contradictions,
            foreign: counts.beyond + self.after_end,
            ..Evidence::default()
        }
    }

    /// The board has answered: the run is over.
    fn has_ended(&mut self, RunEnd { datagrams, is_ours }: RunEnd) {
        let claimed = self.claimed.map(|(total, _)| total);
        let agrees = match (datagrams, claimed) {
            (Some(sent), Some(claimed)) if sent != claimed => {
                Err(format!("the board has sent {sent} datagrams, and the end that came tells {claimed}"))
            }
            _ => Ok(()),
        };
        self.told.get_or_insert(is_ours.and(agrees));
        if let Some(total) = datagrams.or(claimed) {
            self.end.get_or_insert((total, Instant::now()));
        }
    }

    /// All that was to come has come, or has had time enough.
    fn is_due(&self) -> bool {
        self.end.is_some_and(|(total, since)| self.order.has_all(total) || since.elapsed() > LINGER)
    }

    /// When no more comes.
    fn result(mut self, setup: &Setup) -> Received {
        self.close(setup);
        self.words.join();
        let known = self.known(setup);
        let recorded = match self.words {
            Words::Ended(ended) => ended,
            Words::Come(_) | Words::Ending(_) => unreachable!("it was closed and joined"),
        };
        let verdict = recorded.verdict(known);
        let Stream { peer, run, earlier, order, end, after_end, .. } = self;
        Received { peer, run, earlier, order, total: end.map(|(total, _)| total), after_end, recorded, verdict }
    }
}

/// The result of a stream.
struct Received {
    peer: SocketAddrV4,
    run: u8,
    earlier: u32,
    order: Order,
    /// Datagrams of the run, by its end.
    total: Option<u32>,
    after_end: u64,
    recorded: Ended,
    verdict: Verdict,
}

impl Received {
    fn json(&self) -> Value {
        let more = json!({
            "stream": Board::Udp(self.peer.into(), self.earlier).in_names(),
            "run": self.run,
            "ended": self.total.is_some(),
            "datagrams": self.total,
            "first": self.order.first(),
            "counts": self.order.counts(),
            "after_end": self.after_end,
            "gaps": self.order.gaps(),
            "error": self.recorded.error,
        });
        self.recorded.json(&self.verdict, "peer", &self.peer, more)
    }

    /// Tells what was lost, and the rest.
    fn tell(&self, silent: bool) {
        let (name, counts) = (&self.recorded.name, self.order.counts());
        if counts.lost + counts.late > 0 {
            let all = counts.received + counts.lost + counts.late;
            let percent = 100.0 * (counts.lost + counts.late) as f64 / all as f64;
            tracing::warn!(
                "{name}: {} of {all} datagrams LOST ({percent:.3} %), {} more came too late",
                counts.lost,
                counts.late
            );
        }
        if let Some(error) = &self.recorded.error {
            tracing::error!("{name}: {error}");
        }
        let first = self.order.first();
        let from = if first > 0 { format!(" from datagram {first}") } else { String::new() };
        self.recorded.tell(&self.verdict, silent, &from);
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
    /// Boards are started and stopped by slow control.
    starts: bool,
    /// What counts as the end of a stream.
    accept: Accept,
}

/// What has come of a stream so far, for others.
struct Live {
    recorded: Snapshot,
    counts: Counts,
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
    let of_peer = |stream: &&Stream| stream.peer == peer;
    let earlier = streams.iter().filter(of_peer).count();
    // Numbers of runs are 8 bits: the same one comes again after 256 runs.
    let newest = streams.iter().rposition(|stream| stream.peer == peer);
    let mut refuse = |streams: &mut Vec<Stream>| {
        dropped.other_run += 1;
        if let Some(newest) = newest {
            // The board has begun anew, and these words are not recorded.
            streams[newest].after_end += u64::from(!datagram.end);
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
    let Some(stream) = Stream::open((peer, run, earlier as u32), order, setup)? else {
        refuse(streams);
        return Ok(None);
    };
    streams.push(stream);
    Ok(streams.last_mut())
}

impl Session {
    /// Asks the boards of streams that are silent whether their run is over: its end may have been lost.
    fn ask_for_ends(&self) {
        for stream in self.streams.iter().filter(|stream| stream.told.is_none()) {
            self.boards.ask_for_end(*stream.peer.ip(), stream.run);
        }
    }

    /// Whether a board has still to say if the end of its run is true.
    fn has_doubts(&self) -> bool {
        !self.boards.is_empty() && self.streams.iter().any(|stream| stream.claimed.is_some() && stream.told.is_none())
    }

    /// Takes what the boards have answered; false: one of them has failed.
    fn hear(&mut self) -> bool {
        let before = self.failed.len();
        for answer in self.boards.answers() {
            match answer {
                Answer::Ended(address, run, ended) => {
                    let is_it = |stream: &&mut Stream| *stream.peer.ip() == address && stream.run == run;
                    if let Some(stream) = self.streams.iter_mut().rfind(is_it) {
                        stream.has_ended(ended);
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
                    Ok(Some(stream)) => stream.take(&datagram, !boards.is_empty(), &setup.interrupts),
                    Ok(None) => {}
                    Err(error) => result = Err(error),
                }
            })
            .context("receiving")?;
        for stream in streams {
            if stream.is_due() || !stream.words.are_well() {
                stream.close(setup);
            }
            stream.advance();
        }
        result
    }

    /// What need not be told with every batch.
    fn show(&self) {
        let live = |stream: &Stream| Live { recorded: stream.words.look(), counts: stream.order.counts() };
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
            // Of a board that does not answer nothing better is known.
            stream.end = stream.end.or(stream.claimed);
            stream.close(&self.setup);
        }
        result
    }

    fn run_to_the_end(&mut self) -> anyhow::Result<()> {
        let mut deadline = Deadline::new(self.limits);
        let (mut shown, mut asked, mut doubted) = (Instant::now(), Instant::now(), None);
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
            let bytes: u64 = self.streams.iter().map(|stream| stream.words.bytes()).sum();
            if std::mem::replace(&mut bytes_before, bytes) != bytes {
                deadline.heard();
            }
            let has_doubts = self.has_doubts();
            if (deadline.silence() > SILENCE && asked.elapsed() > SILENCE) || (has_doubts && asked.elapsed() > TICK) {
                self.ask_for_ends();
                asked = Instant::now();
            }
            // An end that nobody but its frame tells is believed late, and then told as such.
            doubted = doubted.filter(|_| has_doubts).or_else(|| has_doubts.then(Instant::now));
            let has_doubts = doubted.is_some_and(|since| since.elapsed() < DOUBT);
            let closed = self.streams.iter().filter(|stream| !stream.words.come()).count();
            if closed >= wanted && !has_doubts {
                break;
            }
            anyhow::ensure!(!self.setup.interrupts.must_abort(), "interrupted before the end");
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
                Some(since) if (closed == self.streams.len() && !has_doubts) || since.elapsed() > PATIENCE => break,
                // Of a board that does not answer no end comes.
                Some(_) if !self.failed.is_empty() && deadline.silence() > SILENCE => break,
                _ => {}
            }
        }
        Ok(())
    }

    fn outcome(self, silent: bool) -> Outcome {
        let Session { setup, streams, dropped, failed, wanted, .. } = self;
        let missing = recorder::missing(wanted, streams.len());
        let streams: Vec<_> = streams.into_iter().map(|stream| stream.result(&setup)).collect();
        for error in &failed {
            tracing::error!("{error}");
        }
        for stream in &streams {
            stream.tell(silent);
        }
        for (count, reason) in [
            (dropped.truncated, "without a header"),
            (dropped.words, "shorter than their words"),
            (dropped.flags, "with unknown flags"),
            (dropped.oversize, "longer than the format allows"),
            (dropped.other_sender, "of other senders"),
            (dropped.other_run, "of earlier runs"),
            (dropped.kernel, "dropped by the kernel, whose buffer was full (--receive-buffer)"),
        ] {
            if count > 0 {
                tracing::warn!("{count} datagrams {reason}");
            }
        }
        let mut others = Map::new();
        others.insert("missing_streams".into(), missing.into());
        others.insert("dropped".into(), json!(dropped));
        others.insert("failed_boards".into(), json!(failed));
        let others_are_well = missing == 0 && failed.is_empty() && !streams.is_empty();
        let states = streams.iter().map(|stream| stream.verdict.state());
        let state = State::worst(states.chain([State::of(others_are_well)]));
        Outcome {
            state,
            may_go_on: false,
            key: "streams",
            boards: streams.iter().map(Received::json).collect(),
            others,
        }
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
        let Settings { address, senders, boards, streams: wanted, limits, ring, receive_buffer, accept } = settings;
        let port = address.port();
        let socket = Batches::open(address, receive_buffer, TICK)
            .with_context(|| format!("--udp {port}: listening on {address}"))?;
        let setup = Setup { senders, ring, interrupts: interrupts.clone(), starts: !boards.is_empty(), accept };
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
        self.look(|live| Line { name: live.recorded.name.clone(), bytes: live.recorded.bytes, note: note(live) })
    }

    fn measure(&self, meter: &mut Meter) {
        self.look(|live| {
            live.recorded.measure(meter);
            meter.datagrams(&live.recorded.name, &live.counts);
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

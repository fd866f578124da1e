//! One run of one board: its words, put in order, on their way to the recorder, and what is known of its end.

use std::net::{IpAddr, SocketAddrV4};
use std::time::{Duration, Instant};

use anyhow::Context;
use fadelink_receiver::udp::{Order, Step};
use fadelink_receiver::Pool;
use fadelink_sinks::{Block, Origin, Sender, BLOCK_BYTES};
use fadelink_wire::udp::Datagram;
use fadelink_wire::WordOrder;
use serde_json::{json, Value};

use super::super::patience::UdpPatience;
use super::super::plan::Senders;
use super::super::recorder::{Ended, Ending, Recorder, Snapshot};
use super::boards::RunEnd;
use super::dropped::Dropped;
use crate::interrupts::Interrupts;
use crate::metrics::Meter;
use crate::verdict::{Accept, End, Evidence, Verdict};

/// Longest wait for room in a ring, before other things are looked at.
const ROOM: Duration = Duration::from_millis(100);

/// Streams at a time that have ended by what anybody can send, and whose sinks wait: what comes later may prove that end false.
const WAITING: usize = 16;

/// Port of a board of which nothing has come.
pub(super) const UNSEEN: u16 = 0;

/// What streams are opened with.
pub(super) struct Setup {
    pub(super) senders: Senders,
    pub(super) ring: u64,
    pub(super) interrupts: Interrupts,
    /// Boards are started and stopped by slow control.
    pub(super) starts: bool,
    /// What counts as the end of a stream.
    pub(super) accept: Accept,
    pub(super) patience: UdpPatience,
}

/// One run of one board.
pub(super) struct Stream {
    pub(super) peer: SocketAddrV4,
    pub(super) run: u8,
    /// Runs of this sender that were received before.
    pub(super) earlier: u32,
    pub(super) order: Order,
    /// The datagram that is waited for, and since when.
    held: Option<(Option<u64>, Instant)>,
    pub(super) words: Words,
    /// Words that no sink had room for when the end was asked for twice, in bytes.
    pub(super) given_up: u64,
    /// Datagrams of the run by its end, and when that came. Anybody may have sent it: a board with slow control is asked.
    pub(super) claimed: Option<(u32, Instant)>,
    /// The same, as the board confirms it.
    pub(super) end: Option<(u32, Instant)>,
    /// What the board says of the run's end, by slow control.
    pub(super) told: Option<Result<(), String>>,
    /// It has said how many datagrams the run had.
    is_counted: bool,
    /// The user asked for the end twice before the board confirmed one.
    pub(super) interrupted: bool,
    /// Why the board could not be asked: it does not do what it is told.
    pub(super) failed: Option<String>,
    /// Ends that tell another number of datagrams than the first one did.
    pub(super) other_ends: u64,
    /// Datagrams of its sender that do not belong to it: they came behind its end, are of another run that is not received, or cannot
    /// be read.
    pub(super) after_end: u64,
    /// All that was to come has come, or has had time enough.
    is_over: bool,
    /// What was known when its sinks were told that all is there. Nothing that comes later changes that: it is of the port.
    settled: Option<Evidence<'static>>,
}

/// Where the words of a stream are.
pub(super) enum Words {
    Come(Writer),
    Ending(Ending),
    Ended(Ended),
}

/// The words of a stream, put in order, on their way to the recorder.
pub(super) struct Writer {
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
    pub(super) fn push(&mut self, words: &[u8], interrupts: &Interrupts) {
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
    pub(super) fn give(&mut self) {
        if self.waiting > 0 {
            let data = self.pool.lend(std::mem::take(&mut self.waiting), 0);
            self.recorder.take(&Block { data, origin: self.origin });
        }
    }

    pub(super) fn step(&mut self, step: &Step<'_>, interrupts: &Interrupts) {
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
    pub(super) fn look(&self) -> Snapshot {
        match self {
            Words::Come(writer) => writer.recorder.look(),
            Words::Ending(ending) => ending.look(),
            Words::Ended(ended) => ended.look(),
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        match self {
            Words::Come(writer) => writer.recorder.bytes() + writer.waiting as u64,
            Words::Ending(ending) => ending.bytes(),
            Words::Ended(ended) => ended.bytes,
        }
    }

    pub(super) fn come(&self) -> bool {
        matches!(self, Words::Come(_))
    }

    /// False: a sink has failed.
    pub(super) fn are_well(&self) -> bool {
        match self {
            Words::Come(writer) => writer.recorder.is_well(),
            Words::Ending(_) => true,
            Words::Ended(ended) => ended.error.is_none(),
        }
    }

    /// Each state is used up by the next one, or returned as it is.
    pub(super) fn change(&mut self, next: impl FnOnce(Words) -> Words) {
        *self = next(std::mem::replace(self, Words::Ended(Ended::default())));
    }

    /// Waits until the sinks are finished.
    pub(super) fn join(&mut self) {
        self.change(|words| match words {
            Words::Ending(ending) => Words::Ended(ending.join()),
            other => other,
        });
    }
}

impl Stream {
    /// `of_board`: streams of the same address that are open or were. `None`: no more is expected.
    pub(super) fn open(
        (peer, run, earlier): (SocketAddrV4, u8, u32),
        of_board: usize,
        order: Order,
        session: &Setup,
    ) -> anyhow::Result<Option<Stream>> {
        let board = Sender::Udp(peer.into(), earlier);
        let Some(plan) = session.senders.plan(IpAddr::V4(*peer.ip())) else { return Ok(None) };
        if of_board >= plan.streams {
            return Ok(None);
        }
        let name = match (&plan.name, earlier) {
            (Some(name), _) => name.clone(),
            (None, 0) => peer.to_string(),
            (None, earlier) => format!("{peer} run {}", earlier + 1),
        };
        let recorder = Recorder::open(plan, name, board, &session.interrupts)?;
        let pool = Pool::new(session.ring).context("the ring")?;
        // Data has come, or the board says that there was none.
        recorder.begin();
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
            held: None,
            words,
            given_up: 0,
            claimed: None,
            end: None,
            told: None,
            is_counted: false,
            interrupted: false,
            failed: None,
            other_ends: 0,
            after_end: 0,
            is_over: false,
            settled: None,
        }))
    }

    /// Takes a datagram; words go on in order. `asks`: its end is true only when the board says so.
    pub(super) fn take(&mut self, datagram: &Datagram<'_>, asks: bool, setup: &Setup, dropped: &mut Dropped) {
        let Stream { order, words, claimed, end, settled, is_over, .. } = self;
        if datagram.end {
            let claimed = *claimed.get_or_insert((datagram.counter, Instant::now()));
            if !asks {
                end.get_or_insert(claimed);
                if claimed.0 != datagram.counter {
                    match settled {
                        None => self.other_ends += 1,
                        Some(_) => dropped.note_after_end(),
                    }
                }
            }
            return;
        }
        match words {
            Words::Come(writer) if !*is_over => {
                writer.full = writer.full.max(datagram.words.len() as u64);
                order.push(datagram.counter, datagram.words, |step| writer.step(&step, &setup.interrupts));
            }
            // A repetition by the network may still come, but soon.
            _ => {
                let is_late = end.is_some_and(|(_, since)| since.elapsed() > setup.patience.silence);
                if is_late || !order.is_known(datagram.counter, datagram.words) {
                    match settled {
                        None => self.after_end += 1,
                        Some(_) => dropped.note_after_end(),
                    }
                }
            }
        }
    }

    /// Counts a datagram that has its reason at the port, and that came of its sender or in its name: it speaks against this stream, or
    /// against the whole if this one is settled.
    pub(super) fn suspect(&mut self, dropped: &mut Dropped) {
        *if self.settled.is_none() { &mut self.after_end } else { &mut dropped.behind } += 1;
    }

    /// Closes the streams of which nothing more is to come. The verdict of one that its board has proven is known now, and that of
    /// one with evidence against it cannot get better. One that is whole if an end is true that anybody can send waits for the end of
    /// all: its own board may send on. `emptied`: as of [`Self::advance`].
    pub(super) fn close_ended(streams: &mut [Stream], setup: &Setup, emptied: Option<Instant>) {
        let mut waiting = 0;
        for stream in streams.iter_mut().rev() {
            stream.is_over |= stream.is_due(setup.patience, emptied);
            if stream.is_over && stream.words.come() {
                let known = stream.known(setup);
                let is_known = known.end == End::Confirmed || !Verdict::of(&known).is_complete();
                waiting += usize::from(!is_known);
                if is_known || waiting > WAITING {
                    stream.close(setup);
                }
            }
            if !stream.words.are_well() {
                stream.close(setup);
            }
            stream.advance(setup, emptied);
        }
    }

    /// No more of it is waited for.
    pub(super) fn is_over(&self) -> bool {
        self.is_over || !self.words.come()
    }

    /// Has recorded what came, and looks whether the sinks are done where no more comes. `emptied`: the kernel had no more datagrams
    /// then.
    fn advance(&mut self, setup: &Setup, emptied: Option<Instant>) {
        match &mut self.words {
            Words::Come(writer) => {
                let due = self.order.due();
                if self.order.waiting() == 0 {
                    self.held = None;
                } else if let Some((_, since)) = self.held.filter(|(held, _)| *held == due) {
                    // A sink may have held this program up, and what is waited for wait in the kernel.
                    if emptied.is_some_and(|emptied| emptied >= since + setup.patience.hold) {
                        self.order.pass(|step| writer.step(&step, &setup.interrupts));
                    }
                } else {
                    self.held = Some((due, Instant::now()));
                }
                writer.give();
            }
            Words::Ending(ending) if ending.is_done() => self.words.join(),
            _ => {}
        }
    }

    /// Gives up for what has not come, and lets the sinks finish. What they are told is its verdict: if that is good it is settled,
    /// and else nothing that comes later makes it good.
    pub(super) fn close(&mut self, setup: &Setup) {
        let Words::Come(writer) = &mut self.words else { return };
        self.order.finish(self.end.map(|(total, _)| total), |step| writer.step(&step, &setup.interrupts));
        writer.give();
        self.given_up = writer.given_up;
        let is_well = writer.recorder.is_well();
        let mut known = self.known(setup);
        if !is_well {
            // It may go on: what the other sinks have is a part.
            known.end = End::Missing;
        }
        self.settled = Verdict::of(&known).is_complete().then(|| known.clone());
        self.words.change(|words| match words {
            Words::Come(writer) => Words::Ending(writer.recorder.end_aside(known)),
            other => other,
        });
    }

    /// What receiving knows.
    pub(super) fn known(&self, setup: &Setup) -> Evidence<'static> {
        if let Some(settled) = &self.settled {
            return settled.clone();
        }
        let counts = self.order.counts();
        let (end, board) = match (self.end, &self.told) {
            // Nobody can stop the board, and the user wants no more; or it was asked for the end and tells none.
            (None, Some(Err(what))) => (End::Silence, Some(what.clone())),
            (None, _) => (End::Silence, self.failed.clone()),
            (Some(_), Some(Ok(()))) if self.is_counted => (End::Confirmed, None),
            // The board knows that it is over, and not how long it was.
            (Some(_), Some(Ok(()))) => (End::Told, None),
            (Some(_), Some(Err(what))) => (End::Told, Some(what.clone())),
            (Some(_), None) => (End::Told, None),
        };
        // Who takes silence for the end takes a part of a run that others have started; one of this program is wanted from its first.
        let is_part = !setup.starts && setup.accept == Accept::Silence;
        Evidence {
            end,
            accept: setup.accept,
            error: self.interrupted.then(|| "interrupted before the end".into()),
            board,
            missing: counts.lost + counts.late + if is_part { 0 } else { counts.before },
            given_up: self.given_up,
            contradictions: counts.contradictions + self.other_ends,
            foreign: counts.beyond + counts.repeated + self.after_end,
            ..Evidence::default()
        }
    }

    /// The board has answered: the run is over.
    pub(super) fn has_ended(&mut self, RunEnd { datagrams, is_ours }: RunEnd) {
        let claimed = self.claimed.map(|(total, _)| total);
        let agrees = match (datagrams, claimed) {
            (Some(sent), Some(claimed)) if sent != claimed => {
                Err(format!("the board has sent {sent} datagrams, and the end that came tells {claimed}"))
            }
            _ => Ok(()),
        };
        self.is_counted |= datagrams.is_some() && self.told.is_none();
        self.told.get_or_insert(is_ours.and(agrees));
        if let Some(total) = datagrams.or(claimed) {
            self.end.get_or_insert((total, Instant::now()));
        }
    }

    /// All that was to come has come, or has had time enough.
    /// `emptied`: as of [`Self::advance`]; a sink may have held this program up, and what is waited for wait in the kernel.
    fn is_due(&self, patience: UdpPatience, emptied: Option<Instant>) -> bool {
        let is_late = |since: Instant| emptied.is_some_and(|emptied| emptied >= since + patience.linger);
        self.end.is_some_and(|(total, since)| self.order.has_all(total) || is_late(since))
    }

    /// When no more comes.
    pub(super) fn result(mut self, setup: &Setup, meter: &mut Meter) -> Received {
        self.close(setup);
        self.words.join();
        let known = self.known(setup);
        let mut recorded = match self.words {
            Words::Ended(ended) => ended,
            Words::Come(_) | Words::Ending(_) => unreachable!("it was closed and joined"),
        };
        let verdict = recorded.verdict(known, meter);
        meter.datagrams(&recorded.name, &self.order.counts());
        let Stream { peer, run, earlier, order, end, after_end, .. } = self;
        Received { peer, run, earlier, order, total: end.map(|(total, _)| total), after_end, recorded, verdict }
    }
}

/// The result of a stream.
pub(super) struct Received {
    pub(super) peer: SocketAddrV4,
    pub(super) run: u8,
    pub(super) earlier: u32,
    pub(super) order: Order,
    /// Datagrams of the run, by its end.
    pub(super) total: Option<u32>,
    pub(super) after_end: u64,
    pub(super) recorded: Ended,
    pub(super) verdict: Verdict,
}

impl Received {
    pub(super) fn json(&self) -> Value {
        let more = json!({
            "stream": Sender::Udp(self.peer.into(), self.earlier).in_names(),
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
    pub(super) fn tell(&self, silent: bool) {
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

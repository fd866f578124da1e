//! `fadelink receive` for FADE-10G and FADE v1: passes data to sinks and verifies it.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::Context;
use fadelink_receiver::counters::FebCounts;
use fadelink_receiver::schedule::Schedule;
use fadelink_receiver::told::Expected;
use fadelink_receiver::{Ending, Error, FebConfig, FebHandle, Kind, Receiver, DEFAULT_TIMEOUT};
use fadelink_sinks::hashes::Blocks;
use fadelink_sinks::{Block, Origin, Sender, BLOCK_BYTES};
use fadelink_wire::fade10g::{self, PACKET_BYTES};
use fadelink_wire::{MacAddr, Protocol};
use serde_json::{json, Map};

use super::before::ADVICE;
use super::group::{Group, Line, Outcome};
use super::inquiry::{self, Answer, Inquirer};
use super::patience::Patience;
use super::plan::Plan;
use super::recorder::{Recorder, Snapshot};
use crate::checksum::Checksum;
use crate::deadline::{Deadline, Limits};
use crate::exit;
use crate::interrupts::Interrupts;
use crate::link::Link;
use crate::metrics::Meter;
use crate::verdict::{Accept, End, Evidence, Verdict};

mod begin;
mod received;

pub use begin::WasStopped;

use begin::{Begin, QUIET};
use received::{in_words, Received};

/// Bytes that are waited for before the sinks are called: fewer calls, yet far less than the ring.
const THRESHOLD: usize = 32 * PACKET_BYTES;
/// Longest wait for the threshold.
const READ_TIMEOUT: Duration = Duration::from_millis(50);
/// Longest time that the answer to STOP is waited for when the end has come: the board may be switched off then.
const ANSWER: Duration = Duration::from_secs(1);
/// Longest time that is waited for that.
const LINGER: Duration = Duration::from_secs(2);

/// One FEB.
pub struct FebSettings {
    pub mac: MacAddr,
    pub config: FebConfig,
    pub plan: Plan,
    /// Reset it first.
    pub take_over: bool,
    /// Of [`Plan::resumed`].
    pub was_stopped: WasStopped,
}

/// How FEBs of an interface are received.
pub struct FadeSettings {
    pub link: Link,
    pub febs: Vec<FebSettings>,
    pub schedule: Schedule,
    /// Of each of them.
    pub limits: Limits,
    /// What counts as the end of their data.
    pub accept: Accept,
    pub patience: Patience,
}

/// What its thread and those who look at it share.
struct Shared {
    schedule: Schedule,
    limits: Limits,
    patience: Patience,
    interrupts: Interrupts,
    /// Of each FEB.
    live: Mutex<Vec<FebProgress>>,
}

/// For the progress display.
#[derive(Default, Clone)]
struct FebProgress {
    recorded: Snapshot,
    counters: FebCounts,
    fill: (u64, u64),
    is_slower: bool,
    /// What the board has answered, if it sends nothing.
    silent: Option<Answer>,
}

/// The FEBs of an interface.
pub struct Febs {
    iface: String,
    receiver: Receiver,
    febs: Vec<FebSettings>,
    threads: Vec<JoinHandle<Received>>,
    shared: Arc<Shared>,
    accept: Accept,
}

impl Febs {
    /// Begins to receive.
    ///
    /// # Errors
    /// An interface, a FEB or a sink that cannot be opened.
    pub fn begin(settings: FadeSettings, interrupts: &Interrupts) -> anyhow::Result<Febs> {
        // What is to go on is not stopped before.
        let goes_on = settings.febs.iter().any(|feb| feb.plan.resumed.is_some());
        let receiver = if goes_on { settings.link.passive()? } else { settings.link.receiver()? };
        Febs::over(receiver, settings, interrupts)
    }

    /// As [`Self::begin`], over a receiver that is there; a passive one, if what a board has goes on.
    ///
    /// # Errors
    /// As there.
    pub fn over(receiver: Receiver, settings: FadeSettings, interrupts: &Interrupts) -> anyhow::Result<Febs> {
        let FadeSettings { link, febs, schedule, limits, accept, patience } = settings;
        receiver.schedule(&schedule)?;
        let handles: Vec<FebHandle> =
            febs.iter().map(|feb| receiver.open_alone(feb.mac, feb.config)).collect::<Result<_, _>>()?;

        // Only now: the files may be those of a program that has the FEBs already.
        let open = |feb: &FebSettings| Recorder::open(&feb.plan, feb.name(), Sender::Feb(feb.mac), interrupts);
        let recorders: Vec<Recorder> = febs.iter().map(open).collect::<Result<_, _>>()?;

        let live = |recorder: &Recorder| FebProgress { recorded: recorder.look(), ..FebProgress::default() };
        let live = Mutex::new(recorders.iter().map(live).collect());
        let shared = Arc::new(Shared { schedule, limits, patience, interrupts: interrupts.clone(), live });
        let mut threads = Vec::new();
        for (i, ((feb, handle), recorder)) in febs.iter().zip(handles).zip(recorders).enumerate() {
            let shared = shared.clone();
            let begin = Begin {
                take_over: feb.take_over,
                resumed: feb.plan.resumed.as_ref().map(Blocks::end),
                transmissions: feb.plan.transmissions.clone(),
                was_stopped: feb.was_stopped,
                durable: feb.plan.durable,
                before: feb.plan.before.clone(),
                goes_on: false,
            };
            let receive = move || {
                let result = one_feb(handle, i, (begin, accept), recorder, &shared);
                if result.error.is_some() || result.recorded.error.is_some() {
                    // The others end too, so that the report comes now; where the run may go on, in the middle.
                    shared.interrupts.fail();
                } else if result.board.is_some() {
                    // Nothing of the board is left to go on with, so the run ends.
                    shared.interrupts.stop();
                }
                result
            };
            threads.push(Builder::new().name("feb".into()).spawn(receive)?);
        }
        Ok(Febs { iface: link.iface, receiver, febs, threads, shared, accept })
    }

    fn live(&self) -> Vec<FebProgress> {
        self.shared.live.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Group for Febs {
    fn lines(&self) -> Vec<Line> {
        let line = |live: FebProgress| Line { note: note(&live), name: live.recorded.name, bytes: live.recorded.bytes };
        self.live().into_iter().map(line).collect()
    }

    fn measure(&self, meter: &mut Meter) {
        meter.link(&self.iface, &self.receiver.counters());
        for FebProgress { recorded, counters, fill, .. } in self.live() {
            recorded.measure(meter, received::against(&counters));
            meter.fade(&recorded.name, &counters, fill);
        }
    }

    fn poll(&mut self) -> anyhow::Result<bool> {
        Ok(self.threads.iter().all(JoinHandle::is_finished))
    }

    fn finish(self: Box<Self>, silent: bool, meter: &mut Meter) -> anyhow::Result<Outcome> {
        let (live, febs) = (self.live(), &self.febs);
        let of_thread = |((thread, live), feb): ((JoinHandle<Received>, FebProgress), &FebSettings)| {
            thread.join().unwrap_or_else(|_| Received::of_a_panic(live.recorded, feb.plan.durable))
        };
        let mut results: Vec<Received> = self.threads.into_iter().zip(live).zip(febs).map(of_thread).collect();
        let mut verdict = |(result, feb): (&mut Received, &FebSettings)| {
            let verdict = result.verdict(self.accept, meter);
            meter.fade(&result.recorded.name, &result.counters, (0, feb.config.ring_packets * PACKET_BYTES as u64));
            verdict
        };
        let verdicts: Vec<Verdict> = results.iter_mut().zip(febs).map(&mut verdict).collect();
        let all = || self.febs.iter().zip(&results).zip(&verdicts);
        for ((_, result), verdict) in all() {
            result.tell(verdict, silent);
        }
        let link = self.receiver.counters();
        let words = in_words(&link.entries());
        if !silent && !words.is_empty() {
            tell!("link: {words}");
        }
        let mut others = Map::new();
        others.insert("link".into(), json!(link));
        let boards = all().map(|((feb, result), verdict)| (verdict.state(), result.json(feb.mac, verdict)));
        let outcome = Outcome::of("febs", boards, Evidence::default(), others);
        Ok(Outcome { may_go_on: results.iter().any(|result| result.was_left), ..outcome })
    }
}

impl FebSettings {
    fn name(&self) -> String {
        self.plan.name.clone().unwrap_or_else(|| self.mac.to_string())
    }
}

/// Receives from one FEB until the end.
fn one_feb(
    mut feb: FebHandle,
    index: usize,
    (mut start, accept): (Begin, Accept),
    mut recorder: Recorder,
    shared: &Shared,
) -> Received {
    let mut outcome = Received::default();
    match receive(&mut feb, (index, &mut start), &mut recorder, shared, &mut outcome) {
        Ok(end) => {
            recorder.begin();
            outcome.end = end;
        }
        Err(error) => outcome.error = Some(exit::in_words(&error)),
    }
    let is_whole = outcome.error.is_none() && outcome.board.is_none();
    if outcome.has_begun && is_answered(&feb, outcome.stopping.take()) {
        let (against, resets) = inquiry::against(&feb, is_whole);
        outcome.resets = resets;
        outcome.board = outcome.board.or(against);
    }
    if is_whole && outcome.end == End::Confirmed {
        outcome.checksum = checksum(&feb, &recorder, &start);
    }
    outcome.transmissions = start.transmissions;
    outcome.kind = feb.kind();
    outcome.slower = feb.slower().map(str::to_owned);
    if outcome.error.is_none() {
        // Before the sinks are finished: what comes meanwhile may speak against what they are to call complete.
        linger(&feb, &recorder, start.durable.then_some(&shared.interrupts));
    }
    outcome.counters = feb.counters();
    if let Some(before) = &start.before {
        let has_failed = outcome.error.is_some();
        let changed = before.wait(|| has_failed || shared.interrupts.must_abort());
        // One that goes on is compared again.
        outcome.changed = if has_failed { Vec::new() } else { changed };
    }
    outcome.recorded = recorder.end(&outcome.known(accept), outcome.kind.map(|kind| kind.protocol));
    let is_whole = outcome.error.is_none() && outcome.recorded.error.is_none();
    if start.durable && !is_whole && (outcome.has_begun || outcome.recorded.bytes > 0) {
        // The run may go on with what no sink has. Without a transmission and without data there is nothing to go on with.
        outcome.was_left = true;
        feb.leave();
    }
    if outcome.recorded.error.is_some() {
        // It tells more than what it led to.
        outcome.error = None;
    }
    outcome
}

fn receive(
    feb: &mut FebHandle,
    (index, begin): (usize, &mut Begin),
    recorder: &mut Recorder,
    shared: &Shared,
    outcome: &mut Received,
) -> anyhow::Result<End> {
    let interrupts = &shared.interrupts;
    shared.schedule.apply()?;
    if let Some(why) = feb.slower() {
        tracing::warn!("{}: {why}; its frames come by the slower way, AF_PACKET", feb.mac());
    }
    outcome.has_begun = begin.transmissions.newest().is_some();
    let end = begin.at(feb, recorder, outcome, (shared.limits.wait, interrupts))?;
    // A board with FADE v1 need not answer START: only its data, or its end, shows that it has obeyed.
    if feb.kind().is_some_and(|kind| kind.protocol == Protocol::Fade10g) {
        recorder.begin();
    } else {
        interrupts.ask();
    }
    if end.is_some() || feb.expected_crc() != Expected::No {
        recorder.sum();
    }
    if let Some(end) = end {
        return Ok(end);
    }
    outcome.has_begun = true;
    let threshold = if begin.durable { 1 } else { THRESHOLD };
    let mut deadline = Deadline::new(shared.limits);
    let mut last_data = Instant::now();
    // It had no reason to be silent before.
    let mut awaited = last_data;
    let (mut stopped, mut aborted) = (false, None);
    let mut inquirer = Inquirer::new(shared.patience.inquiry);
    loop {
        anyhow::ensure!(!(begin.durable && interrupts.have_failed()), "another board of the run could not go on");
        if !stopped && (deadline.is_reached(recorder.bytes()) || interrupts.must_stop()) {
            // Beside the data, which goes on meanwhile; a slow link may answer late.
            let (commander, retries) = (feb.commander(), shared.patience.stop_retries);
            let stop = move || commander.command_with(fade10g::CMD_STOP, 0, DEFAULT_TIMEOUT, retries);
            outcome.stopping = Some(Builder::new().name("stop".into()).spawn(stop).context("STOP: a thread")?);
            stopped = true;
            deadline.stop(shared.patience.silence);
            awaited = Instant::now();
        }
        let answer = outcome.stopping.take_if(|thread| thread.is_finished()).map(|thread| thread.join());
        if let Some(Ok(Err(error))) = answer {
            return Err(error).context("STOP");
        }
        if interrupts.must_abort() && stopped {
            let since = *aborted.get_or_insert_with(Instant::now);
            anyhow::ensure!(since.elapsed() <= LINGER, "interrupted before the end");
        }
        anyhow::ensure!(recorder.is_well(), "a sink has failed");
        if interrupts.must_hold() {
            // The ring fills; then the board waits.
            feb.serve(READ_TIMEOUT);
            deadline.heard();
            awaited = Instant::now();
            continue;
        }
        let is_there = match feb.wait(threshold, Some(READ_TIMEOUT)) {
            // The board has told why, and nothing more will come.
            Err(error @ Error::Aborted(_, ending, _)) if ending != Ending::Unknown => {
                outcome.board = Some(exit::in_words(&error.into()));
                return Ok(End::Confirmed);
            }
            other => other.with_context(|| match recorder.bytes() {
                0 if stopped => {
                    "no data came, not even after STOP; check the power of the board, the cable and its address"
                }
                _ => "receiving",
            })?,
        };
        if !is_there {
            return Ok(match feb.ending() {
                Ending::Confirmed if begin.is_unproven(feb) => End::Told,
                Ending::Confirmed => End::Confirmed,
                _ => End::Silence,
            });
        }
        let data = feb.lend(BLOCK_BYTES);
        if !data.is_empty() {
            last_data = Instant::now();
            deadline.heard();
            // START may have been repeated, with another number, as long as no data had come.
            begin.note(feb)?;
            recorder.take(&Block { data, origin: origin(feb) });
        } else if is_held(feb.fill(), begin.durable) {
            deadline.heard();
            awaited = Instant::now();
        }
        let too_silent = deadline.too_silent();
        if let Some(what) = begin.is_ahead(feb, recorder, too_silent.is_some()) {
            anyhow::bail!("{what}; {}", ADVICE);
        }
        if let Some(limit) = too_silent {
            anyhow::bail!("FEB {}: no data for {} s", feb.mac(), limit.as_secs_f64());
        }
        // A question would wait behind STOP.
        if outcome.stopping.is_none() {
            if let Some(why) = inquirer.why_silent(feb, (last_data, awaited), stopped) {
                outcome.board = Some(why);
                return Ok(End::Confirmed);
            }
        }
        let (counters, fill, is_slower) = (feb.counters(), feb.fill(), feb.slower().is_some());
        let live = FebProgress { recorded: recorder.look(), counters, fill, is_slower, silent: inquirer.answer() };
        shared.live.lock().unwrap_or_else(PoisonError::into_inner)[index] = live;
    }
}

/// Nothing can come while sinks have the whole ring; where what is safe alone is confirmed, while they have anything.
fn is_held((used, size): (u64, u64), durable: bool) -> bool {
    used > 0 && (durable || size - used < PACKET_BYTES as u64)
}

/// Of a transmission that has ended as it should: the CRC of its words, if the board has told it or should have.
fn checksum(feb: &FebHandle, recorder: &Recorder, begin: &Begin) -> Option<Checksum> {
    let noted = || begin.transmissions.newest().and_then(|newest| newest.crc);
    let told = feb.crc().or_else(noted);
    let received = recorder.crc().filter(|_| told.is_some() || feb.expected_crc() == Expected::Yes)?;
    Some(Checksum { told, received })
}

/// STOP is answered, or was not sent: a question would wait behind it. The end may have come before the answer.
fn is_answered(feb: &FebHandle, stopping: Option<JoinHandle<Result<u64, Error>>>) -> bool {
    let Some(stopping) = stopping else { return true };
    let end = Instant::now() + ANSWER;
    while !stopping.is_finished() && Instant::now() < end {
        feb.serve(Duration::from_millis(5));
    }
    stopping.is_finished()
}

/// Where the data came from.
fn origin(feb: &FebHandle) -> Origin {
    let board = Sender::Feb(feb.mac());
    let Some(Kind { protocol, firmware, word_order }) = feb.kind() else { return Origin::of(board) };
    Origin { board, protocol: Some(protocol), firmware, wire_order: word_order }
}

/// Stays while the FEB repeats what it has no confirmation for: an ACK may have been lost. `durable`: and while sinks make safe
/// what is then confirmed, until the user gives up.
fn linger(feb: &FebHandle, recorder: &Recorder, durable: Option<&Interrupts>) {
    let state = || (feb.counters().acks, feb.fill().0);
    let waits = || durable.is_some_and(|user| !user.must_abort()) && feb.fill().0 > 0 && recorder.is_well();
    let (mut last, mut quiet_since) = (state(), Instant::now());
    let mut end = quiet_since + LINGER;
    while (quiet_since.elapsed() < QUIET && Instant::now() < end) || waits() {
        feb.serve(Duration::from_millis(5));
        let now = state();
        if now.1 != last.1 {
            end = Instant::now() + LINGER;
        }
        if now != last {
            (last, quiet_since) = (now, Instant::now());
        }
    }
}

fn note(live: &FebProgress) -> String {
    let c = &live.counters;
    let dropped = c.no_space + c.not_started + c.protocol_errors + c.wrong_length + c.wrong_valid_words;
    let mut text = format!("{} lost, {} repaired", c.missing_frames, c.repaired);
    if dropped > 0 {
        text += &format!(", {dropped} dropped");
    }
    let full = live.fill.0 * 100 / live.fill.1.max(1);
    if full >= 50 {
        text += &format!(", ring {full} % full");
    }
    if live.is_slower {
        text += ", by AF_PACKET";
    }
    if let Some(answer) = &live.silent {
        text += &format!(", no data: {}", answer.in_words());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sink that holds a little does not keep a board silent, unless nothing is confirmed before it has made it safe.
    #[test]
    fn a_board_is_held_by_a_full_ring_alone() {
        let size = 64 * PACKET_BYTES as u64;
        for (used, durable, expected) in [
            (0, false, false),
            (8, false, false),
            (size - PACKET_BYTES as u64, false, false),
            (size - 8, false, true),
            (size, false, true),
            (0, true, false),
            (8, true, true),
        ] {
            assert_eq!(is_held((used, size), durable), expected, "{used} {durable}");
        }
    }
}

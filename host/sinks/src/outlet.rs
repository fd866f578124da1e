//! A sink in its own thread, behind a bounded queue: a slow sink does not slow the others down. With
//! [`Policy::Wait`] the source waits when the queue is full; with [`Policy::Drop`] new items are lost and counted.

use std::any::Any;
use std::collections::VecDeque;
use std::io;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::parts::Parts;
use crate::report::Report;
use crate::sink::{Delivery, End, Failure, Item, Peer, Result, Sink};
use crate::stall::{Stall, AWAY};
use crate::terms::{Policy, Terms};

/// From one [`Sink::tick`] to the next.
const TICK: Duration = Duration::from_secs(1);

/// Why a sink could not do its work.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{sink}: {what}{}", kept(*intact, unit))]
pub struct Error {
    /// The sink, as its user wrote it.
    pub sink: String,
    /// What happened, and what to do.
    pub what: String,
    /// What was written before and can be read, in units.
    pub intact: u64,
    /// [`Item::UNIT`]
    pub unit: &'static str,
}

struct State<T> {
    queue: VecDeque<T>,
    /// The source has begun.
    begun: bool,
    /// What was taken out of the queue is in it until it is written.
    report: Report,
    /// The source has ended: completely, or not.
    end: Option<bool>,
}

struct Handover<T> {
    state: Mutex<State<T>>,
    came: Condvar,
    left: Condvar,
    peer: Option<Peer>,
    stall: Stall,
    delivery: Delivery,
}

impl<T> Handover<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn report(&self) -> Report {
        let mut report = self.lock().report.clone();
        let stalled = self.stall.look(report.written, report.queued_bytes > 0);
        let in_words = || format!("it has taken nothing for {} s, and data waits for it", AWAY.as_secs());
        report.trouble = self.peer.as_ref().and_then(|peer| peer()).or_else(|| stalled.then(in_words));
        if self.delivery != Delivery::Confirmed {
            report.handed_over = std::mem::take(&mut report.written);
        }
        report
    }
}

/// Makes of an item one that keeps nothing of its source; `None`: there is no room.
pub type Copy<T> = Box<dyn FnMut(&T) -> Option<T> + Send>;

/// One sink.
pub struct Outlet<T> {
    shared: Arc<Handover<T>>,
    policy: Policy,
    /// All others go on when it fails.
    optional: bool,
    /// What it has not made safe is never given back, unless it may be lost.
    durable: bool,
    /// Bytes that may wait.
    capacity: u64,
    copy: Option<Copy<T>>,
    thread: Option<JoinHandle<()>>,
}

/// What a panic said.
fn in_words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or(panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a message")
}

/// A panic of a sink is a failure as any.
fn guarded(work: impl FnOnce() -> Result) -> Result {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(format!("panicked: {}", in_words(&*panic)).into()))
}

fn kept(intact: u64, unit: &str) -> String {
    if intact > 0 {
        format!("; the {intact} {unit} before are intact")
    } else {
        String::new()
    }
}

/// What happened to a sink, and what to do.
pub fn describe(failure: &Failure) -> String {
    let text = failure.to_string();
    // Errors of this crate say themselves what to do.
    let of_system = failure.downcast_ref::<io::Error>().filter(|error| error.raw_os_error().is_some());
    let advice = match of_system.map(io::Error::kind) {
        Some(io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) => FULL,
        _ if text.contains("No space left on device") => FULL,
        // Of a library, without its number.
        _ if text.contains("Address already in use") => {
            "another program uses it (`ss -lntup` lists them); end it, or choose another"
        }
        Some(io::ErrorKind::PermissionDenied) => "choose a place where this user may write, or change its rights",
        Some(io::ErrorKind::NotFound) => "make the folder first: mkdir -p",
        Some(io::ErrorKind::IsADirectory) => "it is a folder; name a file in it",
        _ => return text,
    };
    format!("{text}; {advice}")
}

const FULL: &str = "the disk is full; make space, or choose another place";

/// Keeps an item from being given back, which would confirm it to the board: this sink has failed, and has it not.
fn keep<T>(item: T) {
    std::mem::forget(item);
}

/// Waits until the source begins; false: it has ended, and has not.
fn begins<T>(shared: &Handover<T>) -> bool {
    let mut state = shared.lock();
    while !state.begun && state.end.is_none() {
        state = shared.came.wait(state).unwrap_or_else(PoisonError::into_inner);
    }
    state.begun
}

/// The thread of a sink.
fn work<T: Item>(shared: &Handover<T>, mut sink: Box<dyn Sink<T>>, Terms { durable, optional, .. }: Terms) {
    if !begins(shared) {
        // What it has opened is left as it was.
        return;
    }
    let mut looked = Instant::now();
    let mut failed = false;
    let gathers = if durable { sink.gathers() } else { Duration::ZERO };
    let fail = |result: Result| {
        if let Err(failure) = &result {
            let Report { sink, error, .. } = &mut shared.lock().report;
            if error.is_none() {
                let what = error.insert(describe(failure));
                if optional {
                    tracing::error!("{sink}: {what}; this sink is optional, and the run goes on without it");
                }
            }
            shared.left.notify_all();
        }
        result.is_err()
    };
    // What somebody else has changed is not intact.
    let intact = |sink: &dyn Sink<T>, open| match sink.files().map_or(Ok(()), |files| files.check(open)) {
        Ok(()) => sink.intact(),
        Err(error) => {
            fail(Err(error.into()));
            0
        }
    };
    let complete = loop {
        let mut state = shared.lock();
        let now = Instant::now();
        let wait = (looked + TICK).saturating_duration_since(now);
        if state.queue.is_empty() && state.end.is_none() && !wait.is_zero() {
            state = shared.came.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner).0;
        }
        if !state.queue.is_empty() && state.end.is_none() && !gathers.is_zero() {
            drop(state);
            std::thread::sleep(gathers);
            state = shared.lock();
        }
        let mut items = std::mem::take(&mut state.queue);
        if let (true, Some(complete)) = (items.is_empty(), state.end) {
            break complete;
        }
        drop(state);
        if durable && !items.is_empty() {
            // All that waits, then the disk once: the source has it back only when it is safe.
            failed = failed || items.iter().any(|item| fail(guarded(|| sink.write(item))));
            failed = failed || fail(guarded(|| sink.sync()));
        }
        for item in items.drain(..) {
            let lost = sink.lost();
            failed = failed || (!durable && fail(guarded(|| sink.write(&item))));
            let is_written = !failed && sink.lost() == lost;
            let (amount, bytes) = (item.amount(), item.bytes());
            if failed && durable && !optional {
                keep(item);
            } else {
                drop(item);
            }
            let mut state = shared.lock();
            state.report.queued_bytes -= bytes;
            *if is_written { &mut state.report.written } else { &mut state.report.dropped } += amount;
            drop(state);
            shared.left.notify_all();
        }
        if looked.elapsed() >= TICK {
            looked = Instant::now();
            failed = failed || fail(guarded(|| sink.tick()));
            let intact = intact(&*sink, true);
            let mut state = shared.lock();
            failed |= state.report.error.is_some();
            state.report.intact = intact;
        }
    };
    let dropped = shared.lock().report.dropped;
    fail(guarded(|| sink.finish(End { complete: complete && !failed && dropped == 0, dropped })));
    let intact = intact(&*sink, false);
    let mut state = shared.lock();
    state.report.intact = intact;
    state.report.made = sink.files().map_or_else(Arc::default, Parts::made);
}

impl<T: Item> Outlet<T> {
    /// Starts the thread of `sink`, which is `name` to its user. `copy`: what waits for it is a copy, because it must keep nothing
    /// of its source.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(name: &str, terms: Terms, copy: Option<Copy<T>>, sink: Box<dyn Sink<T>>) -> io::Result<Outlet<T>> {
        let Terms { policy, capacity, durable, optional } = terms;
        let delivery = sink.delivery();
        let may_drop = policy == Policy::Drop || delivery == Delivery::Published;
        let report = Report { sink: name.to_owned(), may_drop, optional, keeps: sink.keeps(), ..Report::default() };
        let state = Mutex::new(State { queue: VecDeque::new(), begun: false, report, end: None });
        let (came, left, peer) = (Condvar::new(), Condvar::new(), sink.peer());
        let shared = Arc::new(Handover { state, came, left, peer, stall: Stall::default(), delivery });
        let own = shared.clone();
        let thread = std::thread::Builder::new().name("sink".into()).spawn(move || work(&own, sink, terms))?;
        Ok(Outlet { shared, policy, optional, durable, capacity, copy, thread: Some(thread) })
    }

    /// One that could not be opened, and without which all others go on.
    pub fn failed(name: &str, terms: Terms, why: String) -> Outlet<T> {
        tracing::error!("{name}: {why}; this sink is optional, and the run goes on without it");
        let report =
            Report { sink: name.to_owned(), optional: true, keeps: true, error: Some(why), ..Report::default() };
        let state = Mutex::new(State { queue: VecDeque::new(), begun: false, report, end: None });
        let (came, left, stall, delivery) = (Condvar::new(), Condvar::new(), Stall::default(), Delivery::Confirmed);
        let shared = Arc::new(Handover { state, came, left, peer: None, stall, delivery });
        let Terms { policy, capacity, durable, optional } = terms;
        Outlet { shared, policy, optional, durable, capacity, copy: None, thread: None }
    }

    /// Gives it an item; false: the sink has failed, and is to do its work.
    fn offer(&mut self, item: &T) -> bool {
        let mut state = self.shared.lock();
        state.begun = true;
        let is_full = |state: &State<T>| {
            state.report.queued_bytes > 0 && state.report.queued_bytes + item.bytes() > self.capacity
        };
        while self.policy == Policy::Wait && state.report.error.is_none() && is_full(&state) {
            state = self.shared.left.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let kept = match &mut self.copy {
            _ if state.report.error.is_some() || is_full(&state) => None,
            None => Some(item.clone()),
            Some(copy) => {
                // Copying takes a while, and nobody else adds to the queue.
                drop(state);
                let copied = copy(item);
                state = self.shared.lock();
                copied
            }
        };
        match kept {
            Some(item) => {
                state.report.queued_bytes += item.bytes();
                state.queue.push_back(item);
                self.shared.came.notify_one();
            }
            None => {
                state.report.dropped += item.amount();
                // What its user lets it lose goes back to the source.
                if self.durable && !self.optional && self.policy == Policy::Wait {
                    keep(item.clone());
                }
            }
        }
        !state.report.is_fatal()
    }

    fn begin(&self) {
        self.shared.lock().begun = true;
        self.shared.came.notify_one();
    }

    fn error(&self) -> Option<Error> {
        let Report { sink, intact, error, .. } = Some(self.shared.report()).filter(Report::is_fatal)?;
        Some(Error { sink, what: error?, intact, unit: T::UNIT })
    }
}

impl<T> Outlet<T> {
    fn end(&self, complete: bool) {
        self.shared.lock().end.get_or_insert(complete);
        self.shared.came.notify_one();
    }

    /// Waits until it has ended.
    fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            // A panic outside the sink itself would be a defect of this file.
            let _ = thread.join();
        }
    }
}

impl<T> Drop for Outlet<T> {
    /// Also of one beside which another one could not be opened.
    fn drop(&mut self) {
        self.end(false);
        self.join();
    }
}

/// Looks at the sinks of a source from outside, also while it waits for one of them.
pub struct Onlooker<T>(Vec<Arc<Handover<T>>>);

impl<T> Onlooker<T> {
    /// The report of each sink.
    pub fn reports(&self) -> Vec<Report> {
        self.0.iter().map(|shared| shared.report()).collect()
    }
}

/// All sinks of one source. They are open, and change nothing, until the source begins. When this is dropped they are finished, as
/// after an aborted transmission; of a source that has not begun nothing is left.
pub struct Outlets<T: Item>(Vec<Outlet<T>>);

impl<T: Item> Outlets<T> {
    /// Of these sinks.
    pub fn new(outlets: Vec<Outlet<T>>) -> Outlets<T> {
        Outlets(outlets)
    }

    /// The source has begun: what is made of it from now on stays, and replaces what it is to replace.
    pub fn begin(&self) {
        self.0.iter().for_each(Outlet::begin);
    }

    /// Gives all of them an item, which is the begin at the latest, waiting where that is a sink's policy. False: a sink has failed that is not optional, see
    /// [`Self::finish`].
    pub fn offer(&mut self, item: &T) -> bool {
        let taken = self.0.iter_mut().map(|outlet| outlet.offer(item)).collect::<Vec<_>>();
        taken.into_iter().all(|taken| taken)
    }

    /// True if none has failed but optional ones.
    pub fn are_well(&self) -> bool {
        self.0.iter().all(|outlet| !outlet.shared.lock().report.is_fatal())
    }

    /// The report of each.
    pub fn reports(&self) -> Vec<Report> {
        self.0.iter().map(|outlet| outlet.shared.report()).collect()
    }

    /// For who looks at them from another thread.
    pub fn onlooker(&self) -> Onlooker<T> {
        Onlooker(self.0.iter().map(|outlet| outlet.shared.clone()).collect())
    }

    /// No more comes: each writes what waits and is finished, all at the same time, also if one fails. Of a source that has not begun
    /// nothing is left. `complete`: the source has ended as it should.
    ///
    /// # Errors
    /// That of the first sink that failed and is not optional.
    pub fn finish(&mut self, complete: bool) -> std::result::Result<(), Error> {
        self.0.iter().for_each(|outlet| outlet.end(complete));
        self.0.iter_mut().for_each(Outlet::join);
        self.0.iter().find_map(Outlet::error).map_or(Ok(()), Err)
    }
}

impl<T: Item> Drop for Outlets<T> {
    fn drop(&mut self) {
        // Its errors are for who calls it.
        let _ = self.finish(false);
    }
}

#[cfg(test)]
mod tests;

//! The order of the connections of a source: what came over an earlier one is taken before what comes over the next one.
//!
//! Each connection has its thread. A crate that connects again has closed the connection before, whose last data may still wait in the
//! kernel, or for room in the builder. What comes over the next one would overtake it, and its windows would leave without it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fadelink_receiver::tcp::Connection;
use fadelink_receiver::wake::poll;

/// How often earlier connections are looked at.
const LOOK: Duration = Duration::from_millis(2);
/// An earlier connection of which nobody knows its sources is waited for so long, if something of it was not read.
const UNTOLD: Duration = Duration::from_secs(1);

/// A connection that has not ended.
struct Open {
    socket: Arc<Connection>,
    /// What was read last is not taken yet.
    is_busy: Arc<AtomicBool>,
    /// Empty until the first message.
    sources: BTreeSet<u32>,
}

impl Open {
    /// Something that has come was not taken.
    fn is_unread(&self) -> bool {
        // In this order: its thread is busy before it reads.
        self.socket.is_unread() || self.is_busy.load(Ordering::SeqCst)
    }

    /// True if what comes later of these sources has to wait for it. One that is open, and of which all was taken, may be silent for
    /// ever: another sender has its number, or the crate has lost it without a word.
    fn holds_up(&self, sources: &[u32], waited: Duration) -> bool {
        if self.sources.is_empty() {
            return waited < UNTOLD && self.is_unread();
        }
        let is_of_one = sources.iter().any(|source| self.sources.contains(source));
        is_of_one && (self.socket.is_closed() || self.is_unread())
    }
}

/// The connections that have not ended, by the order in which they were accepted.
#[derive(Default)]
struct State {
    open: BTreeMap<u64, Open>,
    begun: u64,
}

/// See the module.
#[derive(Default)]
pub(super) struct Order {
    state: Mutex<State>,
    /// One has ended.
    ended: Condvar,
}

impl Order {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection was accepted, behind all others.
    pub fn enter(self: &Arc<Order>, socket: &Arc<Connection>) -> Turn {
        let mut state = self.lock();
        state.begun += 1;
        let (number, is_busy) = (state.begun, Arc::new(AtomicBool::new(false)));
        let open = Open { socket: socket.clone(), is_busy: is_busy.clone(), sources: BTreeSet::new() };
        state.open.insert(number, open);
        drop(state);
        Turn { order: self.clone(), number, is_busy }
    }
}

/// Of a connection, until this is dropped: it has ended then, and all of it was taken.
pub(super) struct Turn {
    order: Arc<Order>,
    number: u64,
    is_busy: Arc<AtomicBool>,
}

impl Turn {
    /// These sources send over it from now on. Waits until what has come over earlier connections of theirs was taken, or `must_end`.
    pub fn wait_for(&self, sources: &[u32], must_end: impl Fn() -> bool) {
        let begun = Instant::now();
        let mut state = self.order.lock();
        if let Some(own) = state.open.get_mut(&self.number) {
            own.sources.extend(sources);
        }
        while !must_end() {
            let waited = begun.elapsed();
            if !state.open.range(..self.number).any(|(_, earlier)| earlier.holds_up(sources, waited)) {
                return;
            }
            state = self.order.ended.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.order.lock().open.remove(&self.number);
        self.order.ended.notify_all();
    }
}

/// What a connection gives. It is asked for more when all that it gave was taken.
pub(super) struct Input<'a> {
    pub socket: &'a Connection,
    pub place: &'a Turn,
    /// An error that is silence comes when nothing came for so long after the end was asked for.
    pub patience: Duration,
}

/// Longest wait before it is looked whether the end was asked for.
const ASKED: Duration = Duration::from_millis(100);

/// How much is left of the longest silence after the end was asked for, since reading has begun. It may have been silent for long before.
fn left(patience: Duration, begun: Instant, asked: Option<Instant>) -> Duration {
    asked.map_or(patience, |asked| patience.saturating_sub(begun.max(asked).elapsed()))
}

impl Read for Input<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.place.is_busy.store(false, Ordering::SeqCst);
        let begun = Instant::now();
        loop {
            let left = left(self.patience, begun, self.socket.asked_at());
            let mut ready = [(self.socket.as_fd(), false)];
            poll(&mut ready, Some(self.socket.look_at_fin(ASKED).min(left)));
            match ready[0].1 {
                true => break,
                false if left.is_zero() => return Err(io::ErrorKind::WouldBlock.into()),
                false => {}
            }
        }
        self.place.is_busy.store(true, Ordering::SeqCst);
        (&mut &**self.socket).read(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_counts_from_the_question_for_the_end() {
        let (now, patience) = (Instant::now(), Duration::from_secs(600));
        let earlier = now.checked_sub(2 * patience).unwrap();
        assert_eq!(left(patience, earlier, None), patience);
        assert!(left(patience, earlier, Some(now)) > patience / 2);
        assert!(left(patience, now, Some(earlier)) > patience / 2);
        assert_eq!(left(patience, earlier, Some(earlier)), Duration::ZERO);
    }
}

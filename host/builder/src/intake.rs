//! The joiner between threads: each connection adds messages, one thread takes events. A connection that is too far
//! ahead must wait, so memory is bounded, and a slow sink makes the crates wait.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fadelink_wire::fadc::Header;

use crate::event::{Bytes, Event};
use crate::inspect::Inspector;
use crate::join::Joiner;
use crate::tcp::{MessageHandler, Messages, INTERRUPTED};

/// How often sources are looked at that are silent.
const TICK: Duration = Duration::from_millis(50);

/// Events that are taken at once.
const BATCH: usize = 256;

struct State {
    joiner: Joiner,
    open: usize,
    closing: bool,
    given_up: bool,
}

/// See the module.
pub struct Intake {
    state: Mutex<State>,
    /// Messages were given, or no more come.
    given: Condvar,
    /// Events have left, so there may be room.
    left: Condvar,
}

impl Intake {
    /// Around `joiner`.
    pub fn new(joiner: Joiner) -> Intake {
        Intake {
            state: Mutex::new(State { joiner, open: 0, closing: false, given_up: false }),
            given: Condvar::new(),
            left: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at the joiner.
    pub fn with_joiner<T>(&self, f: impl FnOnce(&Joiner) -> T) -> T {
        f(&self.lock().joiner)
    }

    /// No connection will be opened any more: when the last has ended, all is given away.
    pub fn finish(&self) {
        self.lock().closing = true;
        self.given.notify_one();
    }

    /// Takes no more: connections do not wait for room any more.
    pub fn give_up(&self) {
        self.lock().given_up = true;
        self.left.notify_all();
    }

    /// Waits for events until `deadline` and adds them to `out`; `Err`: no more comes.
    pub fn next_events(&self, deadline: Instant, out: &mut Vec<Event>) -> Result<(), Ended> {
        let mut state = self.lock();
        loop {
            let now = Instant::now();
            state.joiner.tick(now);
            let all = state.closing && state.open == 0;
            while out.len() < BATCH {
                let Some(event) = state.joiner.pop(now, all) else { break };
                out.push(event);
            }
            if !out.is_empty() {
                drop(state);
                self.left.notify_all();
                return Ok(());
            }
            if all {
                return Err(Ended);
            }
            if now >= deadline {
                return Ok(());
            }
            let wait = TICK.min(deadline - now);
            state = self.given.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl MessageHandler for Intake {
    fn open(self: Arc<Self>) -> Box<dyn Messages> {
        self.lock().open += 1;
        let stranger = self.with_joiner(Joiner::inspector);
        Box::new(Connection { intake: self, inspectors: BTreeMap::new(), stranger })
    }
}

struct Connection {
    intake: Arc<Intake>,
    inspectors: BTreeMap<u32, Inspector>,
    /// For messages of sources that are not joined, each by itself.
    stranger: Inspector,
}

impl Messages for Connection {
    fn begin(&mut self, source: u32) {
        let mut state = self.intake.lock();
        if state.joiner.begin_session(source) {
            self.inspectors.insert(source, state.joiner.inspector());
        }
    }

    fn has_rival(&mut self, source: u32) {
        self.intake.lock().joiner.note_two_senders(source);
    }

    /// Waits while a message is far ahead of what others have given.
    fn take(&mut self, messages: &mut Vec<Bytes>) -> io::Result<()> {
        let Connection { intake, inspectors, stranger } = self;
        let inspect = |message: Bytes| {
            let source = Header::parse(&message).ok()?.source_id;
            inspectors.get_mut(&source).unwrap_or(&mut stranger.clone()).inspect(message)
        };
        // The lock is for all connections.
        let inspected: Vec<_> = messages.drain(..).filter_map(inspect).collect();
        let mut state = intake.lock();
        for message in inspected {
            while state.joiner.is_full_for(&message, Instant::now()) {
                if state.given_up {
                    return Err(io::Error::other(INTERRUPTED));
                }
                state.joiner.hear(message.header.source_id, Instant::now());
                intake.given.notify_one();
                state = intake.left.wait_timeout(state, TICK).unwrap_or_else(PoisonError::into_inner).0;
            }
            state.joiner.push(message, None, Instant::now());
        }
        drop(state);
        intake.given.notify_one();
        Ok(())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.intake.lock().open -= 1;
        self.intake.given.notify_one();
    }
}

/// All connections have ended, and all events were given away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended;

#[cfg(test)]
mod tests {
    use fadelink_wire::fadc::FORMAT_VERSION;

    use super::*;
    use crate::policy::Policy;

    fn message(source: u32, record: u64) -> Bytes {
        Header::new(source, FORMAT_VERSION, record, (0, record as u32 * 1000), 0).emit().to_vec().into()
    }

    /// Nobody takes events for longer than a source may be silent, as with a sink whose disk stands still: then all sources wait for
    /// room, and each window has all of them nevertheless.
    #[test]
    fn who_waits_for_room_is_not_silent() {
        let silence = TICK * 20;
        let policy = Policy { sources: vec![1, 2], max_open: 10, silence, ..Policy::default() };
        let intake = Arc::new(Intake::new(Joiner::new(policy)));
        std::thread::scope(|scope| {
            for source in [1, 2] {
                let mut connection = intake.clone().open();
                connection.begin(source);
                scope.spawn(move || (0..).find(|record| connection.take(&mut vec![message(source, *record)]).is_err()));
            }
            let mut events = Vec::new();
            for _ in 0..2 {
                std::thread::sleep(silence * 2);
                intake.next_events(Instant::now(), &mut events).unwrap();
            }
            let joined = intake.with_joiner(Joiner::joined);
            intake.give_up();
            assert!(!events.is_empty() && events.iter().all(|event| event.missing.is_empty()), "{events:?}");
            assert!(joined.sources.values().all(|counts| counts.absences == 0), "{joined:?}");
        });
    }
}

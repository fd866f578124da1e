//! What is asked of those who receive, and what they leave for those who ask.

use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fadelink_wire::MacAddr;

use crate::backend::Backend;
use crate::claim::Segment;
use crate::counters::LinkCounters;
use crate::engine::{Command, FebConfig, Resumed};
use crate::schedule::Schedule;
use crate::shared::Shared;
use crate::source::Error;
use crate::wake::Wake;

/// How often the kernel is asked for its drops.
pub(super) const LOSSES_INTERVAL: Duration = Duration::from_millis(100);
/// Is given an outcome.
pub(super) type ReplyTo<T> = Box<dyn FnOnce(T) + Send>;

/// Sends an outcome to the thread that waits for it, if it still does.
pub(super) fn tell<T: Send + 'static>(reply: SyncSender<T>) -> ReplyTo<T> {
    Box::new(move |outcome| {
        let _ = reply.send(outcome);
    })
}

/// A socket for one FEB alone. `was_reset`: data of that FEB was answered by RESET before.
pub(super) struct Split {
    pub(super) socket: Box<dyn Backend>,
    pub(super) was_reset: bool,
}

pub(super) enum Request {
    Open {
        mac: MacAddr,
        config: FebConfig,
        owned: bool,
        shared: Arc<Shared>,
        reply: ReplyTo<bool>,
    },
    Close {
        mac: MacAddr,
        /// Without a word to it.
        leave: bool,
        reply: ReplyTo<bool>,
    },
    Reset {
        mac: MacAddr,
        /// It is sent.
        reply: ReplyTo<()>,
    },
    Command {
        mac: MacAddr,
        command: Command,
    },
    /// Goes on with a transmission.
    Resume {
        mac: MacAddr,
        transmission: Resumed,
        command: Command,
    },
    /// A socket for `mac` alone, if it is not open.
    SplitOff {
        mac: MacAddr,
        reply: ReplyTo<io::Result<Option<Split>>>,
    },
    /// What the receiving thread asks of the scheduler.
    Schedule {
        schedule: Schedule,
        reply: ReplyTo<io::Result<()>>,
    },
    /// That socket is gone.
    Rejoin {
        mac: MacAddr,
    },
}

/// Requests to the loop that receives from one interface, or one FEB of it.
pub(super) struct Requests {
    /// Of the interface; 0: there is none.
    pub(super) index: u32,
    /// Where FEBs are claimed.
    pub(super) place: Segment,
    /// Notified when there is something to do.
    pub(super) wake: Arc<Wake>,
    waiting: Mutex<Vec<Request>>,
    /// The loop is to end.
    pub(super) ending: AtomicBool,
    /// Why it has ended.
    pub(super) failure: Mutex<Option<String>>,
    pub(super) link: Arc<LinkCounters>,
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Requests {
    pub(super) fn new(index: u32) -> io::Result<Requests> {
        Ok(Requests {
            index,
            place: Segment::new(index),
            wake: Arc::new(Wake::new()?),
            waiting: Mutex::default(),
            ending: AtomicBool::new(false),
            failure: Mutex::default(),
            link: Arc::default(),
        })
    }

    pub(super) fn request(&self, request: Request) -> Result<(), Error> {
        {
            let mut waiting = lock(&self.waiting);
            if let Some(failure) = &*lock(&self.failure) {
                return Err(Error::Failed(failure.clone()));
            }
            waiting.push(request);
        }
        self.wake.notify();
        Ok(())
    }

    /// Those that wait.
    pub(super) fn take(&self) -> Vec<Request> {
        std::mem::take(&mut *lock(&self.waiting))
    }

    /// Who waits for an answer is told that none will come.
    pub(super) fn ends(&self, failure: String) {
        // Both locks: no request may slip in between.
        let mut waiting = lock(&self.waiting);
        *lock(&self.failure) = Some(failure);
        waiting.clear();
    }

    pub(super) fn failed(&self) -> Error {
        Error::Failed(lock(&self.failure).clone().unwrap_or_else(|| "the receiver has ended".into()))
    }
}

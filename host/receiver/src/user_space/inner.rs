//! A loop that receives, for those who ask it: one with a thread of its own, or one that they run while they wait.

use std::io;
use std::ops::Deref;
use std::sync::mpsc::{Receiver as ReplyReceiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, TryLockError};
use std::time::Duration;

use fadelink_wire::MacAddr;

use super::receive::Loop;
use super::requests::{Requests, LOSSES_INTERVAL};
use crate::backend::Backend;
use crate::engine::{Confirm, FebConfig};
use crate::shared::{Reader, Shared};
use crate::source::Error;

/// How often is looked whether another thread has stopped receiving.
pub(super) const LOOK_INTERVAL: Duration = Duration::from_millis(1);

pub(super) struct Inner {
    /// Who waits runs this; a thread of its own does where there is none.
    pub(super) alone: Option<Mutex<Option<Loop>>>,
    pub(super) local: MacAddr,
    pub(super) mtu: u32,
    requests: Requests,
}

impl Deref for Inner {
    type Target = Requests;

    fn deref(&self) -> &Requests {
        &self.requests
    }
}

impl Inner {
    pub(super) fn new(backend: &dyn Backend) -> io::Result<Inner> {
        Ok(Inner { alone: None, local: backend.local(), mtu: backend.mtu(), requests: Requests::new(backend.index())? })
    }

    /// State for a FEB. Where data is confirmed when it is released, that wakes who receives.
    pub(super) fn shared(&self, config: FebConfig) -> io::Result<(Arc<Shared>, Reader)> {
        let released = (config.confirm == Confirm::Released).then(|| self.wake.clone());
        Shared::with_release(config.ring_packets, released)
    }

    /// Waits for an answer of the receiving thread, or receives until it is there.
    pub(super) fn answer<T>(&self, reply: &ReplyReceiver<T>) -> Result<T, Error> {
        loop {
            if let Some(answer) = self.answer_while(reply, Duration::MAX, || true)? {
                return Ok(answer);
            }
        }
    }

    /// The same while `goes_on` says so, which is asked after each `interval`; `None`: it says no.
    pub(super) fn answer_while<T>(
        &self,
        reply: &ReplyReceiver<T>,
        interval: Duration,
        goes_on: impl Fn() -> bool,
    ) -> Result<Option<T>, Error> {
        loop {
            let patience = match self.receive(Duration::ZERO) {
                Some(true) => Duration::ZERO,
                Some(false) => LOOK_INTERVAL,
                None => interval,
            };
            match reply.recv_timeout(patience) {
                Ok(answer) => return Ok(Some(answer)),
                Err(RecvTimeoutError::Timeout) if !goes_on() => return Ok(None),
                Err(RecvTimeoutError::Disconnected) => return Err(self.failed()),
                // Its answer is served behind the frame that brings it.
                Err(RecvTimeoutError::Timeout) => _ = self.receive(LOSSES_INTERVAL),
            }
        }
    }

    /// Receives if no thread of its own does: true if so, false if another one that waits is at it.
    pub(super) fn receive(&self, patience: Duration) -> Option<bool> {
        let mut alone = match self.alone.as_ref()?.try_lock() {
            Ok(alone) => alone,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Some(false),
        };
        if let Some(running) = &mut *alone {
            if let Err(error) = running.turn(&self.requests, patience) {
                self.ends(error.to_string());
                running.engine.abort();
                *alone = None;
            }
        }
        Some(true)
    }
}

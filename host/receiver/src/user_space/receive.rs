//! The loop that receives: backend and engine.

use std::any::Any;
use std::io;
use std::os::fd::AsFd;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fadelink_wire::MacAddr;

use super::requests::{Request, Requests, Split, LOSSES_INTERVAL};
use super::watch::Watch;
use crate::backend::Backend;
use crate::claim::{self, Segment};
use crate::counters::{add, LinkCounters};
use crate::engine::{Actions, Engine};
use crate::flow::{self, Flow};
use crate::numbers::Numbers;
use crate::wake::poll;
/// What a panic said.
fn in_words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or(panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a message")
}

/// Engine and backend.
pub(super) struct Loop {
    backend: Box<dyn Backend>,
    pub(super) engine: Engine,
    epoch: Instant,
    flow: Flow,
    next_losses: Duration,
}

/// Actions of the engine on a backend.
struct OnBackend<'a>(&'a mut dyn Backend);

impl Actions for OnBackend<'_> {
    fn send(&mut self, frame: &[u8]) {
        // Counted by the backend; commands are repeated, and unconfirmed data comes again.
        let _ = self.0.send(frame);
    }

    fn is_connected(&mut self) -> bool {
        self.0.is_connected()
    }
}

/// Actions while the backend hands out frames.
struct OnFrame<'a, 'b> {
    send: &'a mut crate::backend::Send<'b>,
    place: Segment,
}

impl Actions for OnFrame<'_, '_> {
    fn send(&mut self, frame: &[u8]) {
        (self.send)(frame);
    }

    fn opened_elsewhere(&mut self, feb: MacAddr) -> bool {
        self.place.is_shared() && claim::is_claimed(self.place, feb)
    }

    fn refuse(&mut self, feb: MacAddr, reset: &[u8]) -> bool {
        let claim = self.place.is_shared().then(|| claim::reset_now(self.place, feb));
        if matches!(claim, Some(None)) {
            return false;
        }
        self.send(reset);
        true
    }
}

impl Loop {
    pub(super) fn new(backend: Box<dyn Backend>, link: &Arc<LinkCounters>, passive: bool, flow: Flow) -> Self {
        let engine = Engine::new(backend.local(), passive, link.clone());
        Loop { backend, engine, epoch: Instant::now(), flow, next_losses: Duration::ZERO }
    }

    pub(super) fn run(mut self, requests: &Requests) {
        // A panic is an error as any: readers and commands that wait are told, and not left waiting.
        let result = catch_unwind(AssertUnwindSafe(|| {
            let mut watch = Watch::default();
            while !requests.ending.load(Ordering::Acquire) {
                self.turn(requests, LOSSES_INTERVAL)?;
                watch.look(&mut *self.backend, &requests.link, self.epoch.elapsed())?;
            }
            self.serve(requests);
            Ok::<_, io::Error>(())
        }));
        requests.ends(match result {
            Ok(Ok(())) => "the receiver has ended".into(),
            Ok(Err(error)) => error.to_string(),
            Err(panic) => format!("the receiving thread panicked: {}", in_words(&*panic)),
        });
        self.engine.abort();
    }

    /// Takes the frames that wait, at most a batch, confirms them, and does what was asked or is due; waits for more if
    /// there were none, `patience` at most.
    pub(super) fn turn(&mut self, requests: &Requests, patience: Duration) -> io::Result<()> {
        let (engine, epoch) = (&mut self.engine, self.epoch);
        let frames = self.backend.receive(&mut |frame, send| {
            engine.frame(frame, epoch.elapsed(), &mut OnFrame { send, place: requests.place });
        })?;
        self.engine.confirm(&mut OnBackend(&mut *self.backend));
        self.serve(requests);
        let now = self.epoch.elapsed();
        self.engine.poll(now, &mut OnBackend(&mut *self.backend));
        if now >= self.next_losses {
            self.next_losses = now + LOSSES_INTERVAL;
            let losses = self.backend.losses();
            add(&requests.link.kernel_drops, losses.received);
            add(&requests.link.send_errors, losses.sent);
        }
        if patience.is_zero() {
            self.flow.took(frames, now);
        } else if let Some(nap) = self.flow.nap(frames, self.engine.window(), now) {
            flow::sleep(nap.min(patience));
        } else if frames == 0 {
            let timeout = self.engine.next_deadline().unwrap_or(Duration::MAX).saturating_sub(now);
            let timeout = timeout.min(LOSSES_INTERVAL).min(patience);
            let mut fds = [(self.backend.fd(), false), (requests.wake.as_fd(), false)];
            poll(&mut fds, Some(timeout));
            // What was asked before this is served next; under load no call is spent on it.
            if fds[1].1 {
                requests.wake.clear();
            }
        }
        Ok(())
    }

    fn serve(&mut self, requests: &Requests) {
        for request in requests.take() {
            let now = self.epoch.elapsed();
            let actions = &mut OnBackend(&mut *self.backend);
            match request {
                Request::Open { mac, config, owned, shared, reply } => {
                    let opened = self.engine.open(mac, config, owned, shared.clone(), Numbers::of(requests.index, mac));
                    if opened && owned {
                        if let Err(error) = self.backend.opened(mac) {
                            shared.set_slower(error.to_string());
                        }
                    }
                    reply(opened);
                }
                Request::Close { mac, leave, reply } => {
                    if leave {
                        self.engine.leave(mac);
                    } else {
                        self.engine.close(mac, actions);
                    }
                    self.backend.closed(mac);
                    reply(true);
                }
                Request::Reset { mac, reply } => {
                    self.engine.reset(mac, actions);
                    reply(());
                }
                Request::Command { mac, command } => self.engine.command(mac, command, now, actions),
                Request::Resume { mac, transmission, command } => {
                    self.engine.resume(mac, transmission, command, now, actions);
                }
                Request::SplitOff { mac, reply } if self.engine.is_open(mac) => reply(Ok(None)),
                Request::SplitOff { mac, reply } => {
                    let socket = self.backend.split_off(mac);
                    reply(socket.map(|found| found.map(|socket| Split { socket, was_reset: self.engine.forget(mac) })));
                }
                Request::Schedule { schedule, reply } => reply(schedule.apply()),
                Request::Rejoin { mac } => self.backend.closed(mac),
            }
        }
    }
}

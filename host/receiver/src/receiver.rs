//! The receiver: engine and backend in a thread, and the handles of readers.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{sync_channel, Receiver as ReplyReceiver, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fadelink_wire::fade10g;
use fadelink_wire::MacAddr;

use crate::backend::Backend;
use crate::claim::{self, Claim, Use};
use crate::counters::{add, FebCounts, LinkCounters, LinkCounts};
use crate::engine::{Actions, Command, CommandError, Engine, FebConfig};
use crate::shared::{Phase, Reader, Shared};
use crate::wake::{poll, Wake};

/// How often a command is repeated before it fails, by default.
pub const DEFAULT_RETRIES: u32 = 20;
/// Time between two attempts of a command, by default.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_millis(100);
/// How often the kernel is asked for its drops.
const LOSSES_INTERVAL: Duration = Duration::from_millis(100);

/// Why something could not be done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A setting of the FEB is out of range.
    #[error("{0}")]
    Config(String),
    /// The operating system refused.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The FEB is open in this program or in another on this computer.
    #[error("FEB {0} is already opened by a program on this computer; close that one first")]
    AlreadyOpen(MacAddr),
    /// The command has no response.
    #[error("FEB {feb}: {error}")]
    Command {
        /// The FEB.
        feb: MacAddr,
        /// What happened.
        error: CommandError,
    },
    /// The transmission ended before its end.
    #[error("FEB {0}: the transmission was broken off")]
    Aborted(MacAddr),
    /// The interface failed.
    #[error("{0}")]
    Failed(String),
}

/// Sends an outcome to the thread that waits for it, if it still does.
fn tell<T: Send + 'static>(reply: SyncSender<T>) -> Box<dyn FnOnce(T) + Send> {
    Box::new(move |outcome| {
        let _ = reply.send(outcome);
    })
}

enum Request {
    Open { mac: MacAddr, config: FebConfig, owned: bool, shared: Arc<Shared>, reply: Box<dyn FnOnce(bool) + Send> },
    Close { mac: MacAddr, reply: Box<dyn FnOnce(bool) + Send> },
    Reset { mac: MacAddr },
    Command { mac: MacAddr, command: Command },
}

struct Inner {
    local: MacAddr,
    index: u32,
    wake: Wake,
    requests: Mutex<Vec<Request>>,
    ending: AtomicBool,
    failure: Mutex<Option<String>>,
    link: Arc<LinkCounters>,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Inner {
    fn request(&self, request: Request) -> Result<(), Error> {
        {
            let mut requests = lock(&self.requests);
            if let Some(failure) = &*lock(&self.failure) {
                return Err(Error::Failed(failure.clone()));
            }
            requests.push(request);
        }
        self.wake.notify();
        Ok(())
    }

    /// Waits for an answer of the receiving thread.
    fn answer<T>(&self, reply: &ReplyReceiver<T>) -> Result<T, Error> {
        reply.recv().map_err(|_| self.failed())
    }

    fn failed(&self) -> Error {
        Error::Failed(lock(&self.failure).clone().unwrap_or_else(|| "the receiver has ended".into()))
    }
}

/// Receives from all FEBs behind one interface, in a thread of its own.
pub struct Receiver {
    inner: Arc<Inner>,
    thread: Option<JoinHandle<()>>,
}

impl Receiver {
    /// Starts receiving. FEBs that send but are opened by nobody are told to stop, by RESET.
    ///
    /// # Errors
    /// The operating system's, of an event descriptor or a thread.
    pub fn spawn(backend: impl Backend) -> io::Result<Receiver> {
        Self::spawn_with(backend, false)
    }

    /// As [`Self::spawn`], but leaves FEBs alone that nobody opened: for programs that only send
    /// commands.
    ///
    /// # Errors
    /// As [`Self::spawn`].
    pub fn spawn_passive(backend: impl Backend) -> io::Result<Receiver> {
        Self::spawn_with(backend, true)
    }

    fn spawn_with(backend: impl Backend, passive: bool) -> io::Result<Receiver> {
        let inner = Arc::new(Inner {
            local: backend.local(),
            index: backend.index(),
            wake: Wake::new()?,
            requests: Mutex::default(),
            ending: AtomicBool::new(false),
            failure: Mutex::default(),
            link: Arc::default(),
        });
        let for_thread = inner.clone();
        let thread = std::thread::Builder::new()
            .name("fadelink-rx".into())
            .spawn(move || Loop::new(backend, for_thread, passive).run())?;
        Ok(Receiver { inner, thread: Some(thread) })
    }

    /// Address of the interface.
    pub fn local(&self) -> MacAddr {
        self.inner.local
    }

    /// Counters of frames that belong to no open FEB.
    pub fn counters(&self) -> LinkCounts {
        self.inner.link.read()
    }

    /// Why the interface failed, if it has.
    pub fn failure(&self) -> Option<String> {
        lock(&self.inner.failure).clone()
    }

    /// Opens a FEB for its data; no other program on this computer can have it meanwhile.
    ///
    /// # Errors
    /// A bad setting, a FEB that is open already, the operating system, or a failed interface.
    pub fn open(&self, mac: MacAddr, config: FebConfig) -> Result<FebHandle, Error> {
        let claim = match self.inner.index {
            0 => None,
            index => Some(claim::claim(index, mac, Use::Data)?.ok_or(Error::AlreadyOpen(mac))?),
        };
        self.open_with(mac, config, true, claim)
    }

    /// Opens a FEB for commands alone, beside a program that may have its data.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_for_commands(&self, mac: MacAddr) -> Result<FebHandle, Error> {
        self.open_with(mac, FebConfig { ring_packets: 1, window: 1, first_packet: 0 }, false, None)
    }

    fn open_with(
        &self,
        mac: MacAddr,
        config: FebConfig,
        owned: bool,
        claim: Option<Claim>,
    ) -> Result<FebHandle, Error> {
        config.check().map_err(Error::Config)?;
        let (shared, reader) = Shared::new(config.ring_packets)?;
        let (reply, answer) = sync_channel(1);
        self.inner.request(Request::Open { mac, config, owned, shared: shared.clone(), reply: tell(reply) })?;
        if !self.inner.answer(&answer)? {
            return Err(Error::AlreadyOpen(mac));
        }
        Ok(FebHandle { commander: Commander { mac, inner: self.inner.clone() }, reader, claim })
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.inner.ending.store(true, Ordering::Release);
        self.inner.wake.notify();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Sends commands to a FEB; may be cloned and used from any thread.
#[derive(Clone)]
pub struct Commander {
    mac: MacAddr,
    inner: Arc<Inner>,
}

impl Commander {
    /// Sends a command and waits for the value of its response, repeating it after each `timeout`.
    /// The FEB executes it exactly once.
    ///
    /// # Errors
    /// No response, a code that is no command (START is for [`FebHandle::start`] alone), or a failed
    /// interface.
    pub fn command(&self, code: u16, argument: u32, timeout: Duration, retries: u32) -> Result<u64, Error> {
        if code == fade10g::CMD_START {
            return Err(Error::Command { feb: self.mac, error: CommandError::BadCode(code) });
        }
        self.send(code, argument, timeout, retries)
    }

    fn send(&self, code: u16, argument: u32, timeout: Duration, retries: u32) -> Result<u64, Error> {
        let fail = |error| Error::Command { feb: self.mac, error };
        let claim = self.claim_commands(timeout * (retries + 1))?;
        let (reply, answer) = sync_channel(1);
        let reply = tell(reply);
        let command = Command { code, argument, timeout, retries, reply };
        self.inner.request(Request::Command { mac: self.mac, command })?;
        let result = self.inner.answer(&answer)?;
        drop(claim);
        result.map_err(fail)
    }

    /// Another program may not come between a command and its repetition.
    fn claim_commands(&self, patience: Duration) -> Result<Option<Claim>, Error> {
        if self.inner.index == 0 {
            return Ok(None);
        }
        let end = Instant::now() + patience;
        loop {
            if let Some(claim) = claim::claim(self.inner.index, self.mac, Use::Commands)? {
                return Ok(Some(claim));
            }
            if Instant::now() >= end {
                return Err(Error::Command { feb: self.mac, error: CommandError::Busy });
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    }
}

/// A FEB that is open. Dropping it closes the FEB, by RESET if its transmission runs.
pub struct FebHandle {
    commander: Commander,
    reader: Reader,
    #[allow(dead_code)]
    claim: Option<Claim>,
}

impl FebHandle {
    /// Address of the FEB.
    pub fn mac(&self) -> MacAddr {
        self.commander.mac
    }

    /// Sends commands from other threads.
    pub fn commander(&self) -> Commander {
        self.commander.clone()
    }

    /// Sends a command with the default time-out and retries; see [`Commander::command`].
    ///
    /// # Errors
    /// As [`Commander::command`].
    pub fn command(&self, code: u16, argument: u32) -> Result<u64, Error> {
        self.commander.command(code, argument, DEFAULT_TIMEOUT, DEFAULT_RETRIES)
    }

    /// START. A transmission that still runs, as of a reader that was killed, is ended by RESET first.
    ///
    /// # Errors
    /// As [`Commander::command`].
    pub fn start(&mut self) -> Result<(), Error> {
        // Takes the handle mutably: the ring begins anew, and no slice of it may be alive.
        self.commander.send(fade10g::CMD_START, 0, DEFAULT_TIMEOUT, DEFAULT_RETRIES).map(drop)
    }

    /// STOP: the packet being filled becomes the last one. Read on until the end.
    ///
    /// # Errors
    /// As [`Commander::command`].
    pub fn stop(&self) -> Result<(), Error> {
        self.command(fade10g::CMD_STOP, 0).map(drop)
    }

    /// RESET: breaks the transmission off.
    ///
    /// # Errors
    /// A failed interface.
    pub fn reset(&self) -> Result<(), Error> {
        self.commander.inner.request(Request::Reset { mac: self.mac() })
    }

    /// Waits until `threshold` bytes are there, or the transmission has ended, or the time is over
    /// (`None`: no limit). Returns all bytes that are there, contiguous and maybe none; they stay in
    /// the ring until [`Self::release`]. `None`: the transmission is complete and all is released.
    ///
    /// # Errors
    /// [`Error::Aborted`] or [`Error::Failed`] when the transmission was broken off and all that came
    /// before is released.
    pub fn read(&mut self, threshold: usize, timeout: Option<Duration>) -> Result<Option<&[u8]>, Error> {
        let end = timeout.map(|timeout| Instant::now() + timeout);
        let threshold = (threshold as u64).clamp(1, self.reader.ring.bytes());
        let ended = loop {
            self.reader.arm(threshold);
            let phase = self.reader.phase();
            let available = self.reader.tail() - self.reader.head();
            let ended = matches!(phase, Phase::Complete | Phase::Aborted);
            if available >= threshold || ended {
                break ended.then_some(phase);
            }
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                break None;
            }
            self.reader.wake.wait(left);
        };
        // Seen after the phase, so that the end's own bytes are in.
        let data = self.reader.available();
        match ended {
            Some(Phase::Complete) if data.is_empty() => Ok(None),
            Some(_) if data.is_empty() => match &*lock(&self.commander.inner.failure) {
                Some(failure) => Err(Error::Failed(failure.clone())),
                None => Err(Error::Aborted(self.commander.mac)),
            },
            _ => Ok(Some(data)),
        }
    }

    /// Asks for the event descriptor ([`AsFd`]) to become readable when `threshold` bytes are there or
    /// the transmission has ended. True if that is so already. For event loops and async runtimes.
    pub fn arm(&self, threshold: usize) -> bool {
        self.reader.arm((threshold as u64).clamp(1, self.reader.ring.bytes()));
        let available = self.reader.tail() - self.reader.head();
        available >= threshold as u64 || matches!(self.reader.phase(), Phase::Complete | Phase::Aborted)
    }

    /// Gives the first `bytes` of the data back to the ring.
    ///
    /// # Panics
    /// If so many were not there.
    pub fn release(&mut self, bytes: usize) {
        self.reader.release(bytes);
    }

    /// State of the transmission.
    pub fn phase(&self) -> Phase {
        self.reader.phase()
    }

    /// Counters of the FEB.
    pub fn counters(&self) -> FebCounts {
        self.reader.counters.read()
    }

    /// Bytes in the ring, and its size.
    pub fn fill(&self) -> (u64, u64) {
        (self.reader.tail() - self.reader.head(), self.reader.ring.bytes())
    }
}

impl AsFd for FebHandle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.reader.wake.as_fd()
    }
}

impl Drop for FebHandle {
    fn drop(&mut self) {
        let (reply, answer) = sync_channel(1);
        let request = Request::Close { mac: self.mac(), reply: tell(reply) };
        // Waits, so that the claim is not released before the engine has let go. A receiver that has
        // ended has closed the FEB already.
        if self.commander.inner.request(request).is_ok() {
            let _ = answer.recv();
        }
    }
}

struct Loop<B> {
    backend: B,
    inner: Arc<Inner>,
    engine: Engine,
    epoch: Instant,
}

/// Actions of the engine on a backend.
struct OnBackend<'a, B>(&'a mut B);

impl<B: Backend> Actions for OnBackend<'_, B> {
    fn send(&mut self, frame: &[u8]) {
        // Counted by the backend; commands are repeated, and unconfirmed data comes again.
        let _ = self.0.send(frame);
    }
}

/// Actions while the backend hands out frames.
struct OnFrame<'a, 'b> {
    send: &'a mut crate::backend::Send<'b>,
    interface: u32,
}

impl Actions for OnFrame<'_, '_> {
    fn send(&mut self, frame: &[u8]) {
        (self.send)(frame);
    }

    fn opened_elsewhere(&mut self, feb: MacAddr) -> bool {
        self.interface != 0 && claim::is_claimed(self.interface, feb)
    }
}

impl<B: Backend> Loop<B> {
    fn new(backend: B, inner: Arc<Inner>, passive: bool) -> Self {
        let engine = Engine::new(backend.local(), passive, inner.link.clone());
        Loop { backend, inner, engine, epoch: Instant::now() }
    }

    fn run(mut self) {
        if let Err(error) = self.receive_until_the_end() {
            // Both locks: no request may slip in between.
            let mut requests = lock(&self.inner.requests);
            *lock(&self.inner.failure) = Some(error.to_string());
            requests.clear();
        } else {
            self.serve_requests();
            let mut requests = lock(&self.inner.requests);
            *lock(&self.inner.failure) = Some("the receiver has ended".into());
            requests.clear();
        }
        self.engine.abort();
    }

    fn receive_until_the_end(&mut self) -> io::Result<()> {
        let mut next_losses = Duration::ZERO;
        while !self.inner.ending.load(Ordering::Acquire) {
            let (engine, inner, epoch) = (&mut self.engine, &self.inner, self.epoch);
            let frames = self.backend.receive(&mut |frame, send| {
                engine.frame(frame, epoch.elapsed(), &mut OnFrame { send, interface: inner.index });
            })?;
            self.serve_requests();
            let now = self.epoch.elapsed();
            self.engine.poll(now, &mut OnBackend(&mut self.backend));
            if now >= next_losses {
                next_losses = now + LOSSES_INTERVAL;
                let losses = self.backend.losses();
                add(&self.inner.link.kernel_drops, losses.received);
                add(&self.inner.link.send_errors, losses.sent);
            }
            if frames == 0 {
                let timeout = self.engine.next_deadline().unwrap_or(Duration::MAX).saturating_sub(now);
                let timeout = timeout.min(LOSSES_INTERVAL);
                let mut fds = [(self.backend.fd(), false), (self.inner.wake.as_fd(), false)];
                poll(&mut fds, Some(timeout));
                // What was asked before this is served next; under load no call is spent on it.
                if fds[1].1 {
                    self.inner.wake.clear();
                }
            }
        }
        Ok(())
    }

    fn serve_requests(&mut self) {
        let requests = std::mem::take(&mut *lock(&self.inner.requests));
        for request in requests {
            let now = self.epoch.elapsed();
            let actions = &mut OnBackend(&mut self.backend);
            match request {
                Request::Open { mac, config, owned, shared, reply } => {
                    reply(self.engine.open(mac, config, owned, shared));
                }
                Request::Close { mac, reply } => {
                    self.engine.close(mac, actions);
                    reply(true);
                }
                Request::Reset { mac } => self.engine.reset(mac, actions),
                Request::Command { mac, command } => self.engine.command(mac, command, now, actions),
            }
        }
    }
}

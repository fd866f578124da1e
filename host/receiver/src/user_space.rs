//! Receives in this program: engine and backend, and the requests of readers and commands. A thread runs them. For
//! a FEB with its own socket, the thread that waits for data or for an answer runs them.

use std::any::Any;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{sync_channel, Receiver as ReplyReceiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, PoisonError, TryLockError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fadelink_wire::fade10g;
use fadelink_wire::{MacAddr, Resets};

use crate::backend::Backend;
use crate::claim::{self, Claim};
use crate::counters::{add, FebCounts, LinkCounters, LinkCounts};
use crate::engine::{Actions, Command, CommandError, Confirm, Engine, FebConfig};
use crate::flow::{self, Flow, Flows};
use crate::interface::check_mtu;
use crate::kind::Kind;
use crate::loan::ReadSide;
use crate::numbers::Numbers;
use crate::schedule::Schedule;
use crate::shared::{Ending, Phase, Reader, Shared};
use crate::source::{self, Commander, Error, FebBackend, Source, DEFAULT_RETRIES, DEFAULT_TIMEOUT};
use crate::wake::{poll, Wake};

/// How often the kernel is asked for its drops.
const LOSSES_INTERVAL: Duration = Duration::from_millis(100);
/// How often is looked whether another thread has stopped receiving.
const LOOK_INTERVAL: Duration = Duration::from_millis(1);

/// Is given an outcome.
type ReplyTo<T> = Box<dyn FnOnce(T) + Send>;

/// Sends an outcome to the thread that waits for it, if it still does.
fn tell<T: Send + 'static>(reply: SyncSender<T>) -> ReplyTo<T> {
    Box::new(move |outcome| {
        let _ = reply.send(outcome);
    })
}

/// A socket for one FEB alone. `was_reset`: data of that FEB was answered by RESET before.
struct Split {
    socket: Box<dyn Backend>,
    was_reset: bool,
}

enum Request {
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
    },
    Command {
        mac: MacAddr,
        command: Command,
    },
    /// Goes on with a transmission of which so many bytes are confirmed.
    Resume {
        mac: MacAddr,
        bytes: u64,
        stopped: bool,
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

struct Inner {
    /// Who waits runs this; a thread of its own does where there is none.
    alone: Option<Mutex<Option<Loop>>>,
    local: MacAddr,
    index: u32,
    mtu: u32,
    wake: Arc<Wake>,
    requests: Mutex<Vec<Request>>,
    ending: AtomicBool,
    failure: Mutex<Option<String>>,
    link: Arc<LinkCounters>,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Inner {
    fn new(backend: &dyn Backend) -> io::Result<Inner> {
        Ok(Inner {
            alone: None,
            local: backend.local(),
            index: backend.index(),
            mtu: backend.mtu(),
            wake: Arc::new(Wake::new()?),
            requests: Mutex::default(),
            ending: AtomicBool::new(false),
            failure: Mutex::default(),
            link: Arc::default(),
        })
    }

    /// State for a FEB. Where data is confirmed when it is released, that wakes who receives.
    fn shared(&self, config: FebConfig) -> io::Result<(Arc<Shared>, Reader)> {
        let released = (config.confirm == Confirm::Released).then(|| self.wake.clone());
        Shared::with_release(config.ring_packets, released)
    }

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

    /// Waits for an answer of the receiving thread, or receives until it is there.
    fn answer<T>(&self, reply: &ReplyReceiver<T>) -> Result<T, Error> {
        loop {
            let patience = match self.receive(Duration::ZERO) {
                Some(true) => Duration::ZERO,
                Some(false) => LOOK_INTERVAL,
                None => Duration::MAX,
            };
            match reply.recv_timeout(patience) {
                Ok(answer) => return Ok(answer),
                Err(RecvTimeoutError::Disconnected) => return Err(self.failed()),
                // Its answer is served behind the frame that brings it.
                Err(RecvTimeoutError::Timeout) => _ = self.receive(LOSSES_INTERVAL),
            }
        }
    }

    /// Receives if no thread of its own does: true if so, false if another one that waits is at it.
    fn receive(&self, patience: Duration) -> Option<bool> {
        let mut alone = match self.alone.as_ref()?.try_lock() {
            Ok(alone) => alone,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Some(false),
        };
        if let Some(running) = &mut *alone {
            if let Err(error) = running.turn(self, patience) {
                self.ends(error.to_string());
                running.engine.abort();
                *alone = None;
            }
        }
        Some(true)
    }

    /// Who waits for an answer is told that none will come.
    fn ends(&self, failure: String) {
        // Both locks: no request may slip in between.
        let mut requests = lock(&self.requests);
        *lock(&self.failure) = Some(failure);
        requests.clear();
    }

    fn failed(&self) -> Error {
        Error::Failed(lock(&self.failure).clone().unwrap_or_else(|| "the receiver has ended".into()))
    }
}

/// The receiving thread of one interface, and the FEBs of it that have sockets of their own.
pub(crate) struct UserSpace {
    inner: Arc<Inner>,
    thread: Option<JoinHandle<()>>,
    /// By FEB, the last one that had it.
    alone: Mutex<Vec<(MacAddr, Weak<Inner>)>>,
    /// Of all that were there.
    links: Mutex<Vec<Arc<LinkCounters>>>,
    flows: Arc<Flows>,
}

impl UserSpace {
    pub(crate) fn spawn(backend: impl Backend, passive: bool) -> io::Result<UserSpace> {
        let inner = Arc::new(Inner::new(&backend)?);
        let for_thread = inner.clone();
        let flows = Arc::default();
        let flow = Flow::new(&flows);
        let thread = std::thread::Builder::new()
            .name("fadelink-rx".into())
            .spawn(move || Loop::new(Box::new(backend), &for_thread.link, passive, flow).run(&for_thread))?;
        Ok(UserSpace { inner, thread: Some(thread), alone: Mutex::default(), links: Mutex::default(), flows })
    }

    fn open_with(
        &self,
        mac: MacAddr,
        config: FebConfig,
        owned: bool,
        claim: Option<Claim>,
    ) -> Result<(Reader, OpenFeb), Error> {
        let (shared, reader) = self.inner.shared(config)?;
        let (reply, answer) = sync_channel(1);
        self.inner.request(Request::Open { mac, config, owned, shared, reply: tell(reply) })?;
        if !self.inner.answer(&answer)? {
            return Err(Error::AlreadyOpen(mac));
        }
        Ok((reader, OpenFeb { mac, inner: self.inner.clone(), claim, leaves: AtomicBool::new(false), shares: None }))
    }

    fn claim(&self, mac: MacAddr, config: FebConfig) -> Result<Option<Claim>, Error> {
        check_mtu(self.inner.index, self.inner.mtu, config.protocol()).map_err(Error::Config)?;
        Ok(match self.inner.index {
            0 => None,
            index => Some(claim::data(index, mac)?.ok_or(Error::AlreadyOpen(mac))?),
        })
    }

    fn open_claimed(
        &self,
        mac: MacAddr,
        config: FebConfig,
        claim: Option<Claim>,
    ) -> Result<Box<dyn FebBackend>, Error> {
        let (reader, open) = self.open_with(mac, config, true, claim)?;
        Ok(Box::new(UserFeb::new(reader, open, None)))
    }

    /// Who has a socket for `mac`, if it is open.
    fn alone(&self, mac: MacAddr) -> Option<Arc<Inner>> {
        lock(&self.alone).iter().find(|(feb, _)| *feb == mac).and_then(|(_, inner)| inner.upgrade())
    }
}

impl Source for UserSpace {
    fn local(&self) -> MacAddr {
        self.inner.local
    }

    fn counters(&self) -> LinkCounts {
        lock(&self.links).iter().fold(self.inner.link.read(), |all, link| all.plus(&link.read()))
    }

    fn failure(&self) -> Option<String> {
        lock(&self.inner.failure).clone()
    }

    fn schedule(&self, schedule: &Schedule) -> Result<(), Error> {
        let (reply, answer) = sync_channel(1);
        self.inner.request(Request::Schedule { schedule: schedule.clone(), reply: tell(reply) })?;
        Ok(self.inner.answer(&answer)??)
    }

    fn open(&self, mac: MacAddr, config: FebConfig) -> Result<Box<dyn FebBackend>, Error> {
        let claim = self.claim(mac, config)?;
        self.open_claimed(mac, config, claim)
    }

    fn open_alone(&self, mac: MacAddr, config: FebConfig) -> Result<Box<dyn FebBackend>, Error> {
        let claim = self.claim(mac, config)?;
        let (reply, answer) = sync_channel(1);
        self.inner.request(Request::SplitOff { mac, reply: tell(reply) })?;
        let Some(Split { socket, was_reset }) = self.inner.answer(&answer)?? else {
            return self.open_claimed(mac, config, claim);
        };
        let descriptor = socket.fd().try_clone_to_owned()?;
        let mut inner = Inner::new(&*socket)?;
        let mut alone = Loop::new(socket, &inner.link, true, Flow::new(&self.flows));
        let (shared, reader) = inner.shared(config)?;
        alone.engine.open(mac, config, true, shared, Numbers::of(inner.index, mac));
        if was_reset {
            alone.engine.was_reset(mac);
        }
        inner.alone = Some(Mutex::new(Some(alone)));
        let inner = Arc::new(inner);
        lock(&self.links).push(inner.link.clone());
        let mut all = lock(&self.alone);
        all.retain(|(feb, inner)| *feb != mac && inner.strong_count() > 0);
        all.push((mac, Arc::downgrade(&inner)));
        let leaves = AtomicBool::new(false);
        let open = OpenFeb { mac, inner, claim, leaves, shares: Some(self.inner.clone()) };
        Ok(Box::new(UserFeb::new(reader, open, Some(descriptor))))
    }

    fn open_for_commands(&self, mac: MacAddr) -> Result<Commander, Error> {
        if let Some(inner) = self.alone(mac) {
            return Ok(Commander(Arc::new(UserCommands { mac, inner, open: None })));
        }
        let config = FebConfig { ring_packets: 1, window: 1, ..FebConfig::default() };
        let (_, open) = self.open_with(mac, config, false, None)?;
        Ok(Commander(Arc::new(UserCommands { mac, inner: self.inner.clone(), open: Some(open) })))
    }
}

impl Drop for UserSpace {
    fn drop(&mut self) {
        self.inner.ending.store(true, Ordering::Release);
        self.inner.wake.notify();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A FEB that the engine has open, until this is dropped.
struct OpenFeb {
    mac: MacAddr,
    inner: Arc<Inner>,
    #[allow(dead_code)]
    claim: Option<Claim>,
    /// It is closed without a word to it.
    leaves: AtomicBool,
    /// Whose backend the FEB's frames come to again.
    shares: Option<Arc<Inner>>,
}

impl Drop for OpenFeb {
    fn drop(&mut self) {
        let (reply, answer) = sync_channel(1);
        let leave = self.leaves.load(Ordering::Relaxed);
        let request = Request::Close { mac: self.mac, leave, reply: tell(reply) };
        // Waits, so that the claim is not released before the engine has let go. A receiver that has
        // ended has closed the FEB already.
        if self.inner.request(request).is_ok() {
            let _ = self.inner.answer(&answer);
        }
        if let Some(shares) = &self.shares {
            if leave {
                let _ = shares.request(Request::Close { mac: self.mac, leave, reply: Box::new(|_| ()) });
            }
            let _ = shares.request(Request::Rejoin { mac: self.mac });
        }
    }
}

struct UserCommands {
    mac: MacAddr,
    inner: Arc<Inner>,
    /// Of a FEB that is open for commands alone.
    #[allow(dead_code)]
    open: Option<OpenFeb>,
}

impl UserCommands {
    /// Another program may not come between a command and its repetition.
    fn claim(&self) -> Result<Option<Claim>, Error> {
        if self.inner.index == 0 {
            return Ok(None);
        }
        let claim = claim::commands(self.inner.index, self.mac)?;
        claim.map(Some).ok_or(Error::Command { feb: self.mac, error: CommandError::Busy })
    }
}

impl UserCommands {
    /// Asks for what `request` makes of a reply, and waits for the outcome.
    fn ask(&self, request: impl FnOnce(ReplyTo<Result<u64, CommandError>>) -> Request) -> Result<u64, Error> {
        let claim = self.claim()?;
        let (reply, answer) = sync_channel(1);
        self.inner.request(request(tell(reply)))?;
        let result = self.inner.answer(&answer)?;
        drop(claim);
        result.map_err(|error| Error::Command { feb: self.mac, error })
    }
}

impl source::Command for UserCommands {
    fn mac(&self) -> MacAddr {
        self.mac
    }

    fn command(&self, code: u16, argument: u32, timeout: Duration, retries: u32) -> Result<u64, Error> {
        self.ask(|reply| {
            let command = Command { code, argument, timeout, retries, reply };
            Request::Command { mac: self.mac, command }
        })
    }
}

struct UserFeb {
    commands: Arc<UserCommands>,
    reader: Arc<Reader>,
    open: OpenFeb,
    /// From which the reader receives.
    socket: Option<OwnedFd>,
}

impl UserFeb {
    fn new(reader: Reader, open: OpenFeb, socket: Option<OwnedFd>) -> UserFeb {
        let commands = Arc::new(UserCommands { mac: open.mac, inner: open.inner.clone(), open: None });
        UserFeb { open, commands, reader: Arc::new(reader), socket }
    }
}

impl FebBackend for UserFeb {
    fn commander(&self) -> Commander {
        Commander(self.commands.clone())
    }

    fn start(&mut self) -> Result<(), Error> {
        source::Command::command(&*self.commands, fade10g::CMD_START, 0, DEFAULT_TIMEOUT, DEFAULT_RETRIES).map(drop)
    }

    fn resume(&mut self, bytes: u64, stopped: bool) -> Result<(), Error> {
        let (code, argument) = (fade10g::CMD_START, 0);
        let (timeout, retries) = (DEFAULT_TIMEOUT, DEFAULT_RETRIES);
        self.commands.ask(|reply| {
            let command = Command { code, argument, timeout, retries, reply };
            Request::Resume { mac: self.open.mac, bytes, stopped, command }
        })?;
        Ok(())
    }

    fn leave(&self) {
        self.open.leaves.store(true, Ordering::Relaxed);
    }

    fn reset(&self) -> Result<(), Error> {
        self.open.inner.request(Request::Reset { mac: self.open.mac })?;
        // Where nobody receives now it is sent by this.
        self.open.inner.receive(Duration::ZERO);
        Ok(())
    }

    fn ring(&self) -> Arc<dyn ReadSide> {
        self.reader.clone()
    }

    fn arm(&self, lent: u64, threshold: u64) {
        self.reader.arm(lent + threshold);
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_ref().map_or(self.reader.wake.as_fd(), |socket| socket.as_fd())
    }

    fn receive(&self, patience: Duration) -> bool {
        match self.open.inner.receive(patience) {
            None => false,
            Some(true) => true,
            Some(false) => {
                // Another thread waits for an answer to a command, and receives meanwhile.
                std::thread::sleep(patience.min(LOOK_INTERVAL));
                true
            }
        }
    }

    fn state(&self) -> (Phase, u64) {
        let phase = self.reader.phase();
        (phase, self.reader.tail() - self.reader.head())
    }

    fn ending(&self) -> Ending {
        self.reader.ending()
    }

    fn told(&self) -> (Option<u16>, Option<Resets>) {
        (self.reader.told.number(), self.reader.told.resets())
    }

    fn kind(&self) -> Option<Kind> {
        self.reader.kind()
    }

    fn slower(&self) -> Option<&str> {
        self.reader.slower()
    }

    fn broken(&self) -> Error {
        match &*lock(&self.open.inner.failure) {
            Some(failure) => Error::Failed(failure.clone()),
            None => Error::Aborted(self.open.mac, self.ending(), self.told().1.and_then(|resets| resets.by)),
        }
    }

    fn counters(&self) -> FebCounts {
        self.reader.counters.read()
    }
}

/// What a panic said.
fn in_words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or(panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a message")
}

/// Engine and backend.
struct Loop {
    backend: Box<dyn Backend>,
    engine: Engine,
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

impl Loop {
    fn new(backend: Box<dyn Backend>, link: &Arc<LinkCounters>, passive: bool, flow: Flow) -> Self {
        let engine = Engine::new(backend.local(), passive, link.clone());
        Loop { backend, engine, epoch: Instant::now(), flow, next_losses: Duration::ZERO }
    }

    fn run(mut self, inner: &Inner) {
        // A panic is an error as any: readers and commands that wait are told, and not left waiting.
        let result = catch_unwind(AssertUnwindSafe(|| {
            while !inner.ending.load(Ordering::Acquire) {
                self.turn(inner, LOSSES_INTERVAL)?;
            }
            self.serve_requests(inner);
            Ok::<_, io::Error>(())
        }));
        inner.ends(match result {
            Ok(Ok(())) => "the receiver has ended".into(),
            Ok(Err(error)) => error.to_string(),
            Err(panic) => format!("the receiving thread panicked: {}", in_words(&*panic)),
        });
        self.engine.abort();
    }

    /// Takes the frames that wait, at most a batch, confirms them, and does what was asked or is due; waits for more if
    /// there were none, `patience` at most.
    fn turn(&mut self, inner: &Inner, patience: Duration) -> io::Result<()> {
        let (engine, epoch) = (&mut self.engine, self.epoch);
        let frames = self.backend.receive(&mut |frame, send| {
            engine.frame(frame, epoch.elapsed(), &mut OnFrame { send, interface: inner.index });
        })?;
        self.engine.confirm(&mut OnBackend(&mut *self.backend));
        self.serve_requests(inner);
        let now = self.epoch.elapsed();
        self.engine.poll(now, &mut OnBackend(&mut *self.backend));
        if now >= self.next_losses {
            self.next_losses = now + LOSSES_INTERVAL;
            let losses = self.backend.losses();
            add(&inner.link.kernel_drops, losses.received);
            add(&inner.link.send_errors, losses.sent);
        }
        if patience.is_zero() {
            self.flow.took(frames, now);
        } else if let Some(nap) = self.flow.nap(frames, self.engine.window(), now) {
            flow::sleep(nap.min(patience));
        } else if frames == 0 {
            let timeout = self.engine.next_deadline().unwrap_or(Duration::MAX).saturating_sub(now);
            let timeout = timeout.min(LOSSES_INTERVAL).min(patience);
            let mut fds = [(self.backend.fd(), false), (inner.wake.as_fd(), false)];
            poll(&mut fds, Some(timeout));
            // What was asked before this is served next; under load no call is spent on it.
            if fds[1].1 {
                inner.wake.clear();
            }
        }
        Ok(())
    }

    fn serve_requests(&mut self, inner: &Inner) {
        let requests = std::mem::take(&mut *lock(&inner.requests));
        for request in requests {
            let now = self.epoch.elapsed();
            let actions = &mut OnBackend(&mut *self.backend);
            match request {
                Request::Open { mac, config, owned, shared, reply } => {
                    let opened = self.engine.open(mac, config, owned, shared.clone(), Numbers::of(inner.index, mac));
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
                Request::Reset { mac } => self.engine.reset(mac, actions),
                Request::Command { mac, command } => self.engine.command(mac, command, now, actions),
                Request::Resume { mac, bytes, stopped, command } => {
                    self.engine.resume(mac, (bytes, stopped), command, now, actions);
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

//! Receives in this program: engine and backend, and the requests of readers and commands. A thread runs them. For
//! a FEB with its own socket, the thread that waits for data or for an answer runs them.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, Weak};
use std::thread::JoinHandle;

use fadelink_wire::MacAddr;

use crate::backend::Backend;
use crate::claim::{self, Claim};
use crate::counters::{LinkCounters, LinkCounts};
use crate::engine::FebConfig;
use crate::flow::{Flow, Flows};
use crate::fork::{Kept, Process};
use crate::holder::Holder;
use crate::interface::check_mtu;
use crate::numbers::Numbers;
use crate::schedule::Schedule;
use crate::shared::Reader;
use crate::source::{Commander, Error, FebSource, Source};

mod handle;
mod inner;
mod receive;
mod requests;
mod watch;

use handle::{Registration, UserCommands, UserFebSource};
use inner::Inner;
use receive::Loop;
use requests::{lock, tell, Request, Split};

/// The receiving thread of one interface, and the FEBs of it that have sockets of their own.
pub(crate) struct UserSpace {
    inner: Arc<Inner>,
    thread: Option<JoinHandle<()>>,
    /// By FEB, the last one that had it.
    alone: Mutex<Vec<(MacAddr, Weak<Inner>)>>,
    /// Of all that were there.
    links: Mutex<Vec<Arc<LinkCounters>>>,
    flows: Arc<Flows>,
    process: Process,
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
        let process = Process::this();
        Ok(UserSpace { inner, thread: Some(thread), alone: Mutex::default(), links: Mutex::default(), flows, process })
    }

    fn open_with(
        &self,
        mac: MacAddr,
        config: FebConfig,
        owned: bool,
        claim: Option<Claim>,
    ) -> Result<(Reader, Registration), Error> {
        let (shared, reader) = self.inner.shared(config)?;
        let (reply, answer) = sync_channel(1);
        self.inner.request(Request::Open { mac, config, owned, shared, reply: tell(reply) })?;
        if !self.inner.answer(&answer)? {
            return Err(Error::AlreadyOpen(mac, Holder::This));
        }
        Ok((reader, Registration::new(mac, self.inner.clone(), claim, None)))
    }

    fn claim(&self, mac: MacAddr, config: FebConfig) -> Result<Option<Claim>, Error> {
        check_mtu(self.inner.index, self.inner.mtu, config.protocol()).map_err(Error::Config)?;
        let place = self.inner.place;
        let claim = place.is_shared().then(|| claim::data(place, mac)).transpose();
        claim.map_err(|refused| Error::of_data(mac, refused))
    }

    fn open_claimed(&self, mac: MacAddr, config: FebConfig, claim: Option<Claim>) -> Result<Box<dyn FebSource>, Error> {
        let (reader, open) = self.open_with(mac, config, true, claim)?;
        Ok(Box::new(UserFebSource::new(reader, open, None)))
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

    fn open(&self, mac: MacAddr, config: FebConfig) -> Result<Box<dyn FebSource>, Error> {
        let claim = self.claim(mac, config)?;
        self.open_claimed(mac, config, claim)
    }

    fn open_alone(&self, mac: MacAddr, config: FebConfig) -> Result<Box<dyn FebSource>, Error> {
        let claim = self.claim(mac, config)?;
        let (reply, answer) = sync_channel(1);
        self.inner.request(Request::SplitOff { mac, reply: tell(reply) })?;
        let Some(Split { socket, was_reset }) = self.inner.answer(&answer)?? else {
            return self.open_claimed(mac, config, claim);
        };
        let descriptor = Kept::open(|| socket.fd().try_clone_to_owned())?;
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
        let open = Registration::new(mac, inner, claim, Some(self.inner.clone()));
        Ok(Box::new(UserFebSource::new(reader, open, Some(descriptor))))
    }

    fn open_for_commands(&self, mac: MacAddr) -> Result<Commander, Error> {
        if let Some(inner) = self.alone(mac) {
            return Ok(Commander(Arc::new(UserCommands::new(mac, inner, None))));
        }
        let config = FebConfig { ring_packets: 1, window: 1, ..FebConfig::default() };
        let (_, open) = self.open_with(mac, config, false, None)?;
        Ok(Commander(Arc::new(UserCommands::new(mac, self.inner.clone(), Some(open)))))
    }
}

impl Drop for UserSpace {
    fn drop(&mut self) {
        if !self.process.is_this() {
            return;
        }
        self.inner.ending.store(true, Ordering::Release);
        self.inner.wake.notify();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

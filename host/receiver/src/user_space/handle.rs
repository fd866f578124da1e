//! A FEB that is open, as its user sees it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::Arc;
use std::time::Duration;

use fadelink_wire::fade10g;
use fadelink_wire::{MacAddr, Resets};

use super::inner::{Inner, LOOK_INTERVAL};
use super::requests::{lock, tell, ReplyTo, Request};
use crate::claim::{self, Claim, CommandClaim};
use crate::counters::FebCounts;
use crate::engine::{Command, CommandError, Resumed};
use crate::fork::{Kept, Process};
use crate::kind::Kind;
use crate::loan::ReadSide;
use crate::shared::{Ending, Phase, Reader};
use crate::source::{self, Commander, Error, FebSource, DEFAULT_RETRIES, DEFAULT_TIMEOUT};
use crate::told::{Expected, WordsCrc};
/// A FEB that the engine has open, until this is dropped.
pub(super) struct Registration {
    pub(super) mac: MacAddr,
    pub(super) inner: Arc<Inner>,
    #[allow(dead_code)]
    claim: Option<Claim>,
    /// It is closed without a word to it.
    leaves: AtomicBool,
    /// Whose backend the FEB's frames come to again.
    shares: Option<Arc<Inner>>,
    process: Process,
}

impl Registration {
    pub(super) fn new(
        mac: MacAddr,
        inner: Arc<Inner>,
        claim: Option<Claim>,
        shares: Option<Arc<Inner>>,
    ) -> Registration {
        Registration { mac, inner, claim, leaves: AtomicBool::new(false), shares, process: Process::this() }
    }
}

/// Closes a FEB. Waits for it, so that the claim is not released before the engine has let go. A receiver that has ended has closed the
/// FEB already.
fn close(inner: &Inner, mac: MacAddr, leave: bool, sends_reset: bool) {
    let (reply, answer) = sync_channel(1);
    let _no_command = sends_reset.then(|| claim::before_reset(inner.place, mac));
    if inner.request(Request::Close { mac, leave, reply: tell(reply) }).is_ok() {
        let _ = inner.answer(&answer);
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        if !self.process.is_this() {
            return;
        }
        let leave = self.leaves.load(Ordering::Relaxed);
        close(&self.inner, self.mac, leave, self.claim.is_some() && !leave);
        if let Some(shares) = &self.shares {
            if leave {
                let _ = shares.request(Request::Close { mac: self.mac, leave, reply: Box::new(|_| ()) });
            }
            let _ = shares.request(Request::Rejoin { mac: self.mac });
        }
    }
}

pub(super) struct UserCommands {
    mac: MacAddr,
    inner: Arc<Inner>,
    /// Of a FEB that is open for commands alone.
    open: Option<Registration>,
    process: Process,
}

impl UserCommands {
    pub(super) fn new(mac: MacAddr, inner: Arc<Inner>, open: Option<Registration>) -> UserCommands {
        UserCommands { mac, inner, open, process: Process::this() }
    }

    /// Another program may not come between a command and its repetition.
    fn claim(&self) -> Result<Option<CommandClaim>, Error> {
        if !self.inner.place.is_shared() {
            return Ok(None);
        }
        let claim = claim::commands(self.inner.place, self.mac);
        claim.map(Some).map_err(|refused| Error::of_commands(self.mac, refused))
    }
}

impl Drop for UserCommands {
    fn drop(&mut self) {
        if !self.process.is_this() {
            return;
        }
        claim::forget_commands(self.inner.place, self.mac);
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

    fn end_waits(&self) {
        if self.open.is_none() {
            close(&self.inner, self.mac, false, true);
        }
    }
}

pub(super) struct UserFebSource {
    commands: Arc<UserCommands>,
    reader: Arc<Reader>,
    open: Registration,
    /// From which the reader receives.
    socket: Option<Kept<OwnedFd>>,
}

impl UserFebSource {
    pub(super) fn new(reader: Reader, open: Registration, socket: Option<Kept<OwnedFd>>) -> UserFebSource {
        let commands = Arc::new(UserCommands::new(open.mac, open.inner.clone(), None));
        UserFebSource { open, commands, reader: Arc::new(reader), socket }
    }
}

impl FebSource for UserFebSource {
    fn commander(&self) -> Commander {
        Commander(self.commands.clone())
    }

    fn start(&mut self) -> Result<(), Error> {
        source::Command::command(&*self.commands, fade10g::CMD_START, 0, DEFAULT_TIMEOUT, DEFAULT_RETRIES).map(drop)
    }

    fn start_when_there(&mut self, wait: Duration, goes_on: &dyn Fn() -> bool) -> Result<(), Error> {
        let more = u32::try_from(wait.as_millis() / DEFAULT_TIMEOUT.as_millis()).unwrap_or(u32::MAX);
        let (code, argument, timeout) = (fade10g::CMD_START, 0, DEFAULT_TIMEOUT);
        let retries = DEFAULT_RETRIES.saturating_add(more);
        let _claim = self.commands.claim()?;
        let (reply, answer) = sync_channel(1);
        let command = Command { code, argument, timeout, retries, reply: tell(reply) };
        let (feb, inner) = (self.open.mac, &self.open.inner);
        inner.request(Request::Command { mac: feb, command })?;
        let answer = inner.answer_while(&answer, timeout, goes_on)?.unwrap_or(Err(CommandError::GivenUp));
        answer.map(drop).map_err(|error| Error::Command { feb, error })
    }

    fn resume(&mut self, transmission: Resumed) -> Result<(), Error> {
        let (code, argument) = (fade10g::CMD_START, 0);
        let (timeout, retries) = (DEFAULT_TIMEOUT, DEFAULT_RETRIES);
        self.commands.ask(|reply| {
            let command = Command { code, argument, timeout, retries, reply };
            Request::Resume { mac: self.open.mac, transmission, command }
        })?;
        Ok(())
    }

    fn leave(&self) {
        self.open.leaves.store(true, Ordering::Relaxed);
    }

    fn reset(&self) -> Result<(), Error> {
        let _no_command = claim::before_reset(self.open.inner.place, self.open.mac);
        let (reply, answer) = sync_channel(1);
        self.open.inner.request(Request::Reset { mac: self.open.mac, reply: tell(reply) })?;
        self.open.inner.answer(&answer)
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

    fn confirmed(&self) -> u64 {
        self.reader.told.confirmed()
    }

    fn crc(&self) -> (Expected, Option<WordsCrc>) {
        (self.reader.told.expected_crc(), self.reader.told.crc())
    }

    fn kind(&self) -> Option<Kind> {
        self.reader.kind()
    }

    fn filler_words(&self) -> Option<u16> {
        self.reader.told.filler_words()
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

//! The public interface of the receiver: FEBs are opened, read and commanded in the same way with a receiver in
//! this program ([`crate::user_space`]) and with the kernel driver ([`crate::kernel`]).

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fadelink_wire::fade10g;
use fadelink_wire::{MacAddr, Resets};

use crate::backend::Backend;
use crate::counters::{FebCounts, LinkCounts};
use crate::engine::{FebConfig, Resumed};
use crate::fork::Own;
use crate::kernel::Kernel;
use crate::kind::Kind;
use crate::loan::{Ledger, Loan};
use crate::mapping::View;
use crate::schedule::Schedule;
use crate::shared::{Ending, Phase};
use crate::source::{Commander, Error, FebSource, Source};
use crate::told::{Expected, WordsCrc};
use crate::user_space::UserSpace;
use crate::wake::poll;

/// How often is looked while the whole ring is lent.
const NAP: Duration = Duration::from_millis(1);

/// Receives from all FEBs behind one interface. A forked process can drop its copy, which does nothing, and must not use it.
pub struct Receiver(Own<Box<dyn Source>>);

impl Receiver {
    fn of(source: impl Source + 'static) -> Receiver {
        Receiver(Own::new(Box::new(source)))
    }

    /// Receives in a thread of this program. FEBs that send but are opened by nobody are told to stop,
    /// by RESET.
    ///
    /// # Errors
    /// The operating system's, of an event descriptor or a thread.
    pub fn spawn(backend: impl Backend) -> io::Result<Receiver> {
        Ok(Receiver::of(UserSpace::spawn(backend, false)?))
    }

    /// As [`Self::spawn`], but leaves FEBs alone that nobody opened: for programs that only send
    /// commands.
    ///
    /// # Errors
    /// As [`Self::spawn`].
    pub fn spawn_passive(backend: impl Backend) -> io::Result<Receiver> {
        Ok(Receiver::of(UserSpace::spawn(backend, true)?))
    }

    /// Receives through the kernel driver, from the FEBs behind `interface`.
    ///
    /// # Errors
    /// The driver is not loaded, or the interface is not there, is down or no Ethernet.
    pub fn kernel(interface: &str) -> io::Result<Receiver> {
        Ok(Receiver::of(Kernel::open(interface)?))
    }

    /// Address of the interface.
    pub fn local(&self) -> MacAddr {
        self.0.local()
    }

    /// Counters of frames that belong to no open FEB.
    pub fn counters(&self) -> LinkCounts {
        self.0.counters()
    }

    /// Why the interface failed, if it has.
    pub fn failure(&self) -> Option<String> {
        self.0.failure()
    }

    /// What the thread that receives asks of the scheduler; the kernel driver has none. A thread that reads a FEB of
    /// [`Self::open_alone`] receives itself: it calls [`Schedule::apply`].
    ///
    /// # Errors
    /// As there, or a failed interface.
    pub fn schedule(&self, schedule: &Schedule) -> Result<(), Error> {
        self.0.schedule(schedule)
    }

    /// Opens a FEB for its data; no other program on this computer can have it meanwhile.
    ///
    /// # Errors
    /// A bad setting, a FEB that is open already, the operating system, or a failed interface.
    pub fn open(&self, mac: MacAddr, config: FebConfig) -> Result<FebHandle, Error> {
        config.check().map_err(|wrong| Error::Config(wrong.to_string()))?;
        Ok(FebHandle::new(mac, self.0.open(mac, config)?))
    }

    /// As [`Self::open`], with a socket of its own (AF_PACKET): the thread that reads receives, too, and a slow reader holds
    /// up no other FEB. Frames wait in a ring of some 256 while it does something else, and are confirmed when it reads
    /// again: so read often, and close what is read no more. Other backends open the FEB as [`Self::open`] does.
    ///
    /// # Errors
    /// As there.
    pub fn open_alone(&self, mac: MacAddr, config: FebConfig) -> Result<FebHandle, Error> {
        config.check().map_err(|wrong| Error::Config(wrong.to_string()))?;
        Ok(FebHandle::new(mac, self.0.open_alone(mac, config)?))
    }

    /// Opens a FEB for commands alone, beside a program that may have its data.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_for_commands(&self, mac: MacAddr) -> Result<Commander, Error> {
        self.0.open_for_commands(mac)
    }
}

/// A FEB that is open. Dropping it closes the FEB, by RESET if its transmission runs. A forked process can drop its copy, which does
/// nothing, and must not use it ([`crate::fork`]).
pub struct FebHandle {
    mac: MacAddr,
    feb: Own<Box<dyn FebSource>>,
    ledger: Own<Arc<Ledger>>,
}

impl FebHandle {
    fn new(mac: MacAddr, feb: Box<dyn FebSource>) -> FebHandle {
        let ledger = Own::new(Ledger::new(feb.ring()));
        FebHandle { mac, feb: Own::new(feb), ledger }
    }

    /// Address of the FEB.
    pub fn mac(&self) -> MacAddr {
        self.mac
    }

    /// Sends commands from other threads.
    pub fn commander(&self) -> Commander {
        self.feb.commander()
    }

    /// Sends a command; see [`Commander::command`].
    ///
    /// # Errors
    /// As [`Commander::command`].
    pub fn command(&self, code: u16, argument: u32) -> Result<u64, Error> {
        self.commander().command(code, argument)
    }

    /// START. A transmission that still runs, as of a reader that was killed, is ended by RESET first.
    ///
    /// # Errors
    /// As [`Commander::command`]; parts of the transmission before are still lent.
    pub fn start(&mut self) -> Result<(), Error> {
        match self.ledger.with_lent(|lent| lent) {
            0 => self.feb.start(),
            lent => Err(Error::Lent(self.mac, lent)),
        }
    }

    /// START to a FEB that may be switched on later: it is repeated for `wait` longer than that of [`Self::start`], while `goes_on`
    /// says so. Do not repeat [`Self::start`] instead: each is one of its own, and ends the transmission of one that was obeyed and
    /// whose answers were lost. Not with the kernel driver.
    ///
    /// # Errors
    /// As of [`Self::start`]; the backend cannot do this.
    pub fn start_when_there(&mut self, wait: Duration, goes_on: &dyn Fn() -> bool) -> Result<(), Error> {
        match self.ledger.with_lent(|lent| lent) {
            0 => self.feb.start_when_there(wait, goes_on),
            lent => Err(Error::Lent(self.mac, lent)),
        }
    }

    /// Goes on with a transmission, as after a reader was killed: with AF_PACKET and AF_XDP, in a receiver of
    /// [`Receiver::spawn_passive`], which does not stop it before. Data comes from behind what is confirmed. If its end was asked for
    /// before, ask for it again.
    ///
    /// # Errors
    /// As of [`Self::start`]; [`crate::CommandError::NotRunning`] if the FEB was reset, or another transmission was begun,
    /// [`crate::CommandError::AtItsEnd`] if all of it is confirmed.
    pub fn resume(&mut self, transmission: Resumed) -> Result<(), Error> {
        match self.ledger.with_lent(|lent| lent) {
            0 => self.feb.resume(transmission),
            lent => Err(Error::Lent(self.mac, lent)),
        }
    }

    /// STOP: the packet being filled becomes the last one. Read on until the end.
    ///
    /// # Errors
    /// As [`Commander::command`].
    pub fn stop(&self) -> Result<(), Error> {
        self.command(fade10g::CMD_STOP, 0).map(drop)
    }

    /// Closes the FEB without RESET: it keeps what is not confirmed and waits, for a program that goes on ([`Self::resume`]).
    /// Not with the kernel driver.
    pub fn leave(self) {
        self.feb.leave();
    }

    /// RESET: breaks the transmission off.
    ///
    /// # Errors
    /// A failed interface.
    pub fn reset(&self) -> Result<(), Error> {
        self.feb.reset()
    }

    /// Waits until `threshold` bytes are there, or the transmission has ended, or the time is over
    /// (`None`: no limit). Returns all bytes that are there and not lent, contiguous and maybe none; they stay in
    /// the ring until [`Self::release`]. `None`: the transmission is complete and all is lent or released.
    ///
    /// # Errors
    /// [`Error::Aborted`] or [`Error::Failed`] when the transmission was aborted and all that came
    /// before is lent or released.
    pub fn read(&mut self, threshold: usize, timeout: Option<Duration>) -> Result<Option<&[u8]>, Error> {
        Ok(if self.wait(threshold, timeout)? { Some(self.data()) } else { None })
    }

    /// As [`Self::read`], without the data: false if the transmission is complete and all is lent or released.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn wait(&mut self, threshold: usize, timeout: Option<Duration>) -> Result<bool, Error> {
        let end = timeout.map(|timeout| Instant::now() + timeout);
        let mut looked = false;
        let (phase, available) = loop {
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            let is_over = left.is_some_and(|left| left.is_zero());
            if self.is_there(threshold) || (is_over && looked) {
                break self.state();
            }
            looked = true;
            if self.feb.receive(left.unwrap_or(Duration::MAX)) || is_over || self.arm(threshold) {
                continue;
            }
            if self.is_all_lent() {
                // No data can come that would wake this; the driver's descriptor is readable meanwhile.
                std::thread::sleep(left.unwrap_or(NAP).min(NAP));
            } else {
                poll(&mut [(self.feb.fd(), false)], left);
            }
        };
        match phase {
            Phase::Complete if available == 0 => Ok(false),
            Phase::Aborted if available == 0 => Err(self.feb.broken()),
            _ => Ok(true),
        }
    }

    /// State of the transmission, and bytes that are there and not lent.
    fn state(&self) -> (Phase, u64) {
        self.ledger.with_lent(|lent| {
            let (phase, bytes) = self.feb.state();
            (phase, bytes - lent)
        })
    }

    fn is_all_lent(&self) -> bool {
        self.ledger.with_lent(|lent| lent == self.ledger.ring().bytes())
    }

    /// The bytes that are there and not lent, contiguous; they stay in the ring until [`Self::release`].
    pub fn data(&self) -> &[u8] {
        let (_, bytes) = self.state();
        // SAFETY: they are there, and lending or giving them back, and a new START, take this mutably.
        unsafe { self.ledger.slice(bytes) }
    }

    /// The first `bytes` of [`Self::data`], for as long as that is wanted: beyond the end of this.
    ///
    /// # Panics
    /// If so many are not there.
    pub fn view(&self, bytes: usize) -> View {
        let data = &self.data()[..bytes];
        self.ledger.ring().memory().view(data.as_ptr(), bytes)
    }

    /// Words of filler behind the data of a transmission that has ended, as the FEB has told them; `None`: it has not.
    pub(crate) fn filler_words(&self) -> Option<u16> {
        self.feb.filler_words()
    }

    /// The first bytes of [`Self::data`], `limit` at most, lent: others may read them from any thread while this goes on
    /// with what comes behind. Their place in the ring is free when they and all before them are dropped.
    pub fn lend(&mut self, limit: usize) -> Loan {
        let (_, bytes) = self.state();
        self.ledger.lend(bytes.min(limit as u64))
    }

    /// Asks for the event descriptor ([`AsFd`]) to become readable when `threshold` bytes are there or
    /// the transmission has ended. True if that is so already. For event loops and async runtimes.
    pub fn arm(&self, threshold: usize) -> bool {
        self.ledger.with_lent(|lent| self.feb.arm(lent, self.clamp(threshold)));
        self.is_there(threshold)
    }

    /// `threshold` bytes are there, or the transmission has ended.
    fn is_there(&self, threshold: usize) -> bool {
        let (phase, available) = self.state();
        available >= self.clamp(threshold) || has_ended(phase)
    }

    /// Goes on for `time` with what is not reading: confirms again what the FEB repeats, and answers commands of other threads.
    pub fn serve(&self, time: Duration) {
        let end = Instant::now() + time;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            if !self.feb.receive(left) {
                std::thread::sleep(left);
            }
        }
    }

    pub(crate) fn clamp(&self, threshold: usize) -> u64 {
        (threshold as u64).clamp(1, self.ledger.ring().bytes())
    }

    /// Gives the first `bytes` of the data back to the ring.
    ///
    /// # Panics
    /// If so many were not there.
    pub fn release(&mut self, bytes: usize) {
        assert!(bytes as u64 <= self.state().1, "released more than was available");
        self.ledger.pass(bytes as u64);
    }

    /// What the FEB was found to be; `None` before the first START. The last packet of FADE v1 is filled up with
    /// 0xA5, for it cannot tell how many of its words are valid.
    pub fn kind(&self) -> Option<Kind> {
        self.feb.kind()
    }

    /// Why the FEB's frames come by a slower way than the backend has, as when AF_XDP has no socket for it; `None`: they
    /// do not.
    pub fn slower(&self) -> Option<&str> {
        self.feb.slower()
    }

    /// State of the transmission.
    pub fn phase(&self) -> Phase {
        self.state().0
    }

    /// How the end of the transmission is known: [`Ending::Unknown`] before it.
    pub fn ending(&self) -> Ending {
        self.feb.ending()
    }

    /// Number of the transmission, by which [`Self::resume`] tells it from others; `None`: none has begun, or it is not known.
    pub fn transmission(&self) -> Option<u16> {
        self.feb.told().0
    }

    /// The number of the transmission on the FEB, and the RESETs that the FEB has told.
    pub(crate) fn told(&self) -> (Option<u16>, Option<Resets>) {
        self.feb.told()
    }

    /// Packets since the start that the FEB has confirmation of, though they have not come: it sends such as it sends only then. 0: nothing
    /// shows it.
    pub fn confirmed(&self) -> u64 {
        self.feb.confirmed()
    }

    /// Whether the FEB will tell the CRC of the transmission's words at its end: [`FebConfig::checksum`] asks for it.
    pub fn expected_crc(&self) -> Expected {
        self.feb.crc().0
    }

    /// The CRC of the transmission's words that the FEB has told; known when the last of them are there. `None`: none was told.
    pub fn crc(&self) -> Option<WordsCrc> {
        self.feb.crc().1
    }

    /// Counters of the FEB.
    pub fn counters(&self) -> FebCounts {
        self.feb.counters()
    }

    /// Bytes in the ring, lent ones too, and its size.
    pub fn fill(&self) -> (u64, u64) {
        (self.feb.state().1, self.ledger.ring().bytes())
    }
}

impl AsFd for FebHandle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.feb.fd()
    }
}

fn has_ended(phase: Phase) -> bool {
    matches!(phase, Phase::Complete | Phase::Aborted)
}

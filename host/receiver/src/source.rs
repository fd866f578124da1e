//! The traits behind [`crate::Receiver`], and their common types. [`crate::user_space`] and [`crate::kernel`]
//! implement them.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use fadelink_wire::fade10g;
use fadelink_wire::{MacAddr, Resets};

use crate::claim::Refused;
use crate::counters::{FebCounts, LinkCounts};
use crate::engine::{CommandError, FebConfig, Resumed};
use crate::holder::Holder;
use crate::kind::Kind;
use crate::loan::ReadSide;
use crate::schedule::Schedule;
use crate::shared::{Ending, Phase};
use crate::told::{Expected, WordsCrc};

/// How often a command is repeated before it fails, by default.
pub const DEFAULT_RETRIES: u32 = 20;
/// Time between two attempts of a command, by default.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_millis(100);

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
    #[error("FEB {0}: it is open already: {1}; close it there first")]
    AlreadyOpen(MacAddr, Holder),
    /// The command has no response.
    #[error("FEB {feb}: {error}")]
    Command {
        /// The FEB.
        feb: MacAddr,
        /// What happened.
        error: CommandError,
    },
    /// The transmission ended before its end; how, and which computer has sent RESET, as far as is known.
    #[error("FEB {0}: the transmission was aborted{why}", why = .1.why(*.2))]
    Aborted(MacAddr, Ending, Option<MacAddr>),
    /// A new transmission would overwrite what others still read.
    #[error("FEB {0}: {1} bytes of the previous transmission are still lent")]
    Lent(MacAddr, u64),
    /// The interface failed.
    #[error("{0}")]
    Failed(String),
}

impl Error {
    /// The data of a FEB could not be claimed.
    pub(crate) fn of_data(feb: MacAddr, refused: Refused) -> Error {
        match refused {
            Refused::Held(holder) => Error::AlreadyOpen(feb, holder),
            Refused::Io(error) => Error::Io(error),
        }
    }

    /// The commands of a FEB could not be claimed.
    pub(crate) fn of_commands(feb: MacAddr, refused: Refused) -> Error {
        match refused {
            Refused::Held(holder) => Error::Command { feb, error: CommandError::Busy(holder) },
            Refused::Io(error) => Error::Io(error),
        }
    }
}

/// What receives from the FEBs behind one interface.
pub trait Source: Send + Sync {
    /// Address of the interface.
    fn local(&self) -> MacAddr;
    /// Counters of frames that belong to no open FEB.
    fn counters(&self) -> LinkCounts;
    /// Why the interface failed, if it has.
    fn failure(&self) -> Option<String>;
    /// What the thread that receives asks of the scheduler, where there is one.
    ///
    /// # Errors
    /// The scheduler refuses, or the interface has failed.
    fn schedule(&self, schedule: &Schedule) -> Result<(), Error> {
        let _ = schedule;
        Ok(())
    }
    /// Opens a FEB for its data. The settings are checked.
    ///
    /// # Errors
    /// The FEB is open already, the operating system refuses, or the interface has failed.
    fn open(&self, mac: MacAddr, config: FebConfig) -> Result<Box<dyn FebSource>, Error>;
    /// As [`Self::open`], with a socket of its own, from which the thread that reads receives, if there is such a thing.
    ///
    /// # Errors
    /// As [`Self::open`].
    fn open_alone(&self, mac: MacAddr, config: FebConfig) -> Result<Box<dyn FebSource>, Error> {
        self.open(mac, config)
    }
    /// Opens a FEB for commands alone.
    ///
    /// # Errors
    /// As [`Self::open`].
    fn open_for_commands(&self, mac: MacAddr) -> Result<Commander, Error>;
}

/// One FEB that is open for its data. Dropping it closes the FEB, by RESET if its transmission runs.
pub trait FebSource: Send {
    /// Sends commands to it.
    fn commander(&self) -> Commander;
    /// START. Takes the FEB mutably: the ring begins anew, and no slice of it may be alive.
    ///
    /// # Errors
    /// As [`Commander::command`].
    fn start(&mut self) -> Result<(), Error>;
    /// START to a FEB that may be switched on later: the same one, with the same number, is repeated for `wait` longer while
    /// `goes_on` says so. What a FEB has obeyed is not begun again, whatever was lost on the way.
    ///
    /// # Errors
    /// As [`Self::start`]; the backend cannot do this.
    fn start_when_there(&mut self, wait: Duration, goes_on: &dyn Fn() -> bool) -> Result<(), Error> {
        let _ = (wait, goes_on);
        Err(Error::Config("this backend cannot wait for a FEB: expected AF_PACKET or AF_XDP".into()))
    }
    /// Goes on with a transmission that still runs; mutably, as [`Self::start`].
    ///
    /// # Errors
    /// As there; the transmission does not run; the backend cannot do this.
    fn resume(&mut self, transmission: Resumed) -> Result<(), Error> {
        let _ = transmission;
        Err(Error::Config("this backend cannot go on with a transmission".into()))
    }
    /// It is closed without a word to the FEB, which keeps what is not confirmed.
    fn leave(&self) {}
    /// RESET.
    ///
    /// # Errors
    /// The interface has failed.
    fn reset(&self) -> Result<(), Error>;
    /// The reader's side of the ring.
    fn ring(&self) -> Arc<dyn ReadSide>;
    /// Asks the descriptor to become readable when `threshold` bytes are there behind the `lent` ones that are not given
    /// back, or the transmission has ended. Nothing is given back meanwhile.
    fn arm(&self, lent: u64, threshold: u64);
    /// That descriptor.
    fn fd(&self) -> BorrowedFd<'_>;
    /// Where the thread that reads receives: takes frames that wait, or waits for one, `patience` at most. False: another
    /// thread does that.
    fn receive(&self, patience: Duration) -> bool {
        let _ = patience;
        false
    }
    /// State of the transmission, and bytes in the ring that are not given back. In this order, so that the bytes of an end are in.
    fn state(&self) -> (Phase, u64);
    /// How the end of the transmission is known.
    fn ending(&self) -> Ending;
    /// The number of the transmission on the FEB, and the RESETs that the FEB has told; `None`: not known.
    fn told(&self) -> (Option<u16>, Option<Resets>) {
        (None, None)
    }
    /// Packets that the FEB has confirmation of, as what it sends shows, though they have not come; 0: nothing shows it.
    fn confirmed(&self) -> u64 {
        0
    }
    /// Whether the FEB will tell the CRC of the transmission's words, and what it has told.
    fn crc(&self) -> (Expected, Option<WordsCrc>) {
        (Expected::No, None)
    }
    /// What the FEB was found to be; `None` before the first START.
    fn kind(&self) -> Option<Kind>;
    /// Why its frames come by a slower way than the backend has; `None`: they do not.
    fn slower(&self) -> Option<&str> {
        None
    }
    /// Words of filler behind the data of a transmission that has ended, as the FEB has told them; `None`: it has not.
    fn filler_words(&self) -> Option<u16> {
        None
    }
    /// What ended the transmission before its end.
    fn broken(&self) -> Error;
    /// Counters of the FEB.
    fn counters(&self) -> FebCounts;
}

/// Sends commands to one FEB.
pub trait Command: Send + Sync {
    /// The FEB.
    fn mac(&self) -> MacAddr;
    /// Sends a command, waits for the value of its response, repeats it after each `timeout`.
    ///
    /// # Errors
    /// No response, a code that is not a command, or a failed interface.
    fn command(&self, code: u16, argument: u32, timeout: Duration, retries: u32) -> Result<u64, Error>;
    /// Ends what waits for the FEB, in all threads, where that can be done: it is about to be closed.
    fn end_waits(&self) {}
}

/// Sends commands to a FEB; may be cloned and used from any thread.
#[derive(Clone)]
pub struct Commander(pub(crate) Arc<dyn Command>);

impl Commander {
    /// Sends a command and waits for the value of its response, repeating it after each `timeout`.
    /// A Fadelink FEB executes it exactly once; a published core each time that a repetition comes.
    ///
    /// # Errors
    /// No response, a code that is not a command (START is for [`crate::FebHandle::start`] alone), or a failed
    /// interface.
    pub fn command_with(&self, code: u16, argument: u32, timeout: Duration, retries: u32) -> Result<u64, Error> {
        if code == fade10g::CMD_START {
            return Err(Error::Command { feb: self.0.mac(), error: CommandError::BadCode(code) });
        }
        self.0.command(code, argument, timeout, retries)
    }

    /// Closes a FEB that is open for its data, for those who wait for an answer of it or for its data: they are told at once. To be
    /// called before its [`crate::FebHandle`] is dropped, where that is used by another thread. With the kernel driver those who
    /// wait for an answer go on until their time is over.
    pub fn end_waits(&self) {
        self.0.end_waits();
    }

    /// Sends a command with the default time-out and retries; see [`Self::command_with`].
    ///
    /// # Errors
    /// As [`Self::command_with`].
    pub fn command(&self, code: u16, argument: u32) -> Result<u64, Error> {
        self.command_with(code, argument, DEFAULT_TIMEOUT, DEFAULT_RETRIES)
    }
}

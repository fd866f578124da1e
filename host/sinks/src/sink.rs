//! The trait of sinks, and of their items.

use std::sync::atomic::AtomicBool;
use std::sync::Arc;
use std::time::Duration;

use crate::parts::Parts;

/// Why a sink failed.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What a sink returns.
pub type Result<T = ()> = std::result::Result<T, Failure>;

/// Set when the end was asked for: from then on nobody outside is waited for without end.
pub type Stopping = Arc<AtomicBool>;

/// What sinks take; a clone is cheap, and refers to the same data.
pub trait Item: Clone + Send + 'static {
    /// What is counted of it, as `bytes`.
    const UNIT: &'static str;
    /// How much of that it is.
    fn amount(&self) -> u64;
    /// Memory that it keeps from other use, in bytes.
    fn bytes(&self) -> u64;
}

/// Tells what keeps that from taking data to which a sink writes, such as brokers that are away.
pub type Peer = Box<dyn Fn() -> Option<String> + Send + Sync>;

/// How the data ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    /// The source has ended by itself or as asked, and the sink was given and has taken all of it.
    pub complete: bool,
    /// So much of it was dropped before the sink, because its queue was full.
    pub dropped: u64,
}

/// What is known of where the items of a sink go.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Delivery {
    /// What it says that is written has arrived.
    #[default]
    Confirmed,
    /// They are handed over to somebody who does not confirm them.
    HandedOver,
    /// They are for who is there and fast enough.
    Published,
}

/// Takes items in order, in one thread. It is opened before its source begins: one that is dropped before anything of it was called
/// leaves all as it was.
pub trait Sink<T>: Send {
    /// Takes the next item.
    ///
    /// # Errors
    /// It could not be written; no more is given then.
    fn write(&mut self, item: &T) -> Result;

    /// Called about once a second: what waits in memory may be written, a file may be ended.
    ///
    /// # Errors
    /// As [`Self::write`].
    fn tick(&mut self) -> Result {
        Ok(())
    }

    /// Waits until what was written stays readable, whatever happens from then on. Called where data is confirmed to its
    /// source only then; a sink that cannot do this is not used there.
    ///
    /// # Errors
    /// It may not be readable.
    fn sync(&mut self) -> Result {
        Ok(())
    }

    /// How long items are gathered before [`Self::sync`], where that takes longer than what comes in one go.
    fn gathers(&self) -> Duration {
        Duration::ZERO
    }

    /// No more comes. Called once, after an error too; then what was written is made safe as far as can be.
    ///
    /// # Errors
    /// What was written may not be safe.
    fn finish(&mut self, end: End) -> Result;

    /// True if what it takes can be read later; false: it is handed on, and nobody here keeps it.
    fn keeps(&self) -> bool {
        true
    }

    /// How much of what was written stays readable, whatever happens from now on ([`Item::UNIT`]).
    fn intact(&self) -> u64;

    /// How many items it has taken and lost without a failure: there was no room behind it.
    fn lost(&self) -> u64 {
        0
    }

    /// The files that it makes; `None`: it makes none. They are looked at while it writes, and behind [`Self::finish`].
    fn files(&self) -> Option<&Parts>;

    /// Asks that to which it writes, where it can be away while nothing is written.
    fn peer(&self) -> Option<Peer> {
        None
    }

    /// What is known of where its items go.
    fn delivery(&self) -> Delivery {
        Delivery::Confirmed
    }
}

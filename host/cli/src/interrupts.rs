//! SIGINT and SIGTERM: the first ends the run in order, the second aborts it.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

use fadelink_sinks::Stopping;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::register;

/// From the second signal to the moment in which the program ends whatever it waits for.
const GRACE: Duration = Duration::from_secs(5);

/// What was asked for.
#[derive(Clone, Default)]
pub struct Interrupts {
    asked: Stopping,
    must_abort: Arc<AtomicBool>,
    must_hold: Arc<AtomicBool>,
    has_failed: Arc<AtomicBool>,
}

impl Interrupts {
    /// From now on.
    ///
    /// # Errors
    /// The operating system's, of the handlers.
    pub fn watch() -> io::Result<Interrupts> {
        let interrupts = Interrupts::default();
        for signal in [SIGINT, SIGTERM] {
            let seen = interrupts.clone();
            let note = move || {
                if seen.asked.swap(true, Ordering::Relaxed) {
                    seen.must_abort.store(true, Ordering::Relaxed);
                }
            };
            // SAFETY: setting atomics is all that is done in the handler.
            unsafe { register(signal, note)? };
        }
        // Is called behind the handlers from above.
        let (seen, mut signals) = (interrupts.clone(), Signals::new([SIGINT, SIGTERM])?);
        std::thread::Builder::new().name("signals".into()).spawn(move || {
            if signals.forever().any(|_| seen.must_abort()) {
                // Enough for what still answers, as a sink that writes its last.
                std::thread::sleep(GRACE);
                tracing::error!("interrupted before the end");
                std::process::exit(1);
            }
        })?;
        Ok(interrupts)
    }

    /// Those of a part of the work: its end can be asked for by itself, and comes with the second signal at the latest.
    pub fn of_part(&self) -> Interrupts {
        Interrupts { must_abort: self.must_abort.clone(), ..Interrupts::default() }
    }

    /// Asks for the end, as a signal does.
    pub fn stop(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }

    /// A board or a sink has failed: asks for the end.
    pub fn fail(&self) {
        self.has_failed.store(true, Ordering::Relaxed);
        self.stop();
    }

    /// A board or a sink has failed.
    pub fn have_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    /// The end was asked for.
    pub fn must_stop(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// It was asked for again.
    pub fn must_abort(&self) -> bool {
        self.must_abort.load(Ordering::Relaxed)
    }

    /// Asks for the end again, as a second signal does.
    #[cfg(test)]
    pub fn abort(&self) {
        self.stop();
        self.must_abort.store(true, Ordering::Relaxed);
    }

    /// Asks the sources to wait, or to go on.
    pub fn hold(&self, hold: bool) {
        self.must_hold.store(hold, Ordering::Relaxed);
    }

    /// The sources must wait, until they may go on or the end was asked for.
    pub fn must_hold(&self) -> bool {
        self.must_hold.load(Ordering::Relaxed) && !self.must_stop()
    }

    /// The flag behind [`Self::must_stop`].
    pub fn stopping(&self) -> &Stopping {
        &self.asked
    }
}

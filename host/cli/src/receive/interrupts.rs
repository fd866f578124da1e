//! SIGINT and SIGTERM: the first asks for the end, the second does not wait for it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Counts the signals.
#[derive(Clone, Default)]
pub struct Interrupts(Arc<AtomicUsize>);

impl Interrupts {
    /// From now on.
    ///
    /// # Errors
    /// The operating system's, of the handlers.
    pub fn watch() -> std::io::Result<Interrupts> {
        let interrupts = Interrupts::default();
        let (mut signals, count) = (Signals::new([SIGINT, SIGTERM])?, interrupts.0.clone());
        std::thread::spawn(move || {
            for _ in signals.forever() {
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
        Ok(interrupts)
    }

    /// As a signal does: ends what else is received.
    pub fn stop(&self) {
        self.0.fetch_max(1, Ordering::Relaxed);
    }

    /// The end was asked for.
    pub fn asked(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }

    /// It was asked for again.
    pub fn insisted(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 1
    }
}

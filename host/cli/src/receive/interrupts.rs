//! SIGINT and SIGTERM: the first asks for the end, the second does not wait for it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::low_level::register;

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
        for signal in [SIGINT, SIGTERM] {
            let count = interrupts.0.clone();
            let add = move || {
                count.fetch_add(1, Ordering::Relaxed);
            };
            // SAFETY: adding to an atomic is all that is done in the handler.
            unsafe { register(signal, add)? };
        }
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

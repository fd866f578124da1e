//! Python's lock, which a thread gives back while it works and takes again behind that. When Python ends, it ends each thread that
//! asks for its lock, through the frames of Rust below it, which aborts the process. Such a thread waits for the end of the process
//! instead, as since Python 3.14.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::OnceLock;
use std::thread::{self, ThreadId};
use std::time::Duration;

use pyo3::prelude::*;

/// Python is about to end.
static ENDS: AtomicBool = AtomicBool::new(false);
/// Threads that have looked at that, and do not have Python's lock yet.
static RETURNING: AtomicUsize = AtomicUsize::new(0);
/// The thread that ends Python.
static LAST: OnceLock<ThreadId> = OnceLock::new();

/// Longest time that those are waited for: one that Python does not let run is in no hurry.
const PATIENCE: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(1);

/// Works without Python's lock.
pub(crate) fn detach<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> T {
    let result = py.detach(|| {
        let result = work();
        RETURNING.fetch_add(1, Ordering::SeqCst);
        if ENDS.load(Ordering::SeqCst) && LAST.get() != Some(&thread::current().id()) {
            RETURNING.fetch_sub(1, Ordering::SeqCst);
            loop {
                thread::park();
            }
        }
        result
    });
    RETURNING.fetch_sub(1, Ordering::SeqCst);
    result
}

/// Python is about to end: no other thread takes its lock here any more, when this returns.
pub(crate) fn end(py: Python<'_>) {
    let _ = LAST.set(thread::current().id());
    ENDS.store(true, Ordering::SeqCst);
    py.detach(|| {
        let mut left = PATIENCE;
        while RETURNING.load(Ordering::SeqCst) > 0 && !left.is_zero() {
            thread::sleep(TICK);
            left = left.saturating_sub(TICK);
        }
    });
}

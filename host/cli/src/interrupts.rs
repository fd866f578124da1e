//! SIGINT and SIGTERM: the first ends the run in order, the second aborts it. SIGHUP, when the terminal is closed, ends it in
//! order, however often it comes; where it is ignored (nohup), nothing ends.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{mpsc, Arc};
use std::time::Duration;

use fadelink_sinks::Stopping;
use serde_json::json;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use signal_hook::low_level::register;

use crate::exit;
use crate::verdict::{Evidence, Verdict};

/// From the second signal to the moment in which the program ends whatever it waits for.
const GRACE: Duration = Duration::from_secs(5);

/// Said of a source that was cut off, as [`Interrupts::must_cut`] says.
pub const NO_ROOM: &str = "the disk has no room for more of it (disk.reserve)";

/// From that moment to the end of the program: what is told may have to wait, too, for a pipe that nobody reads.
const LAST: Duration = Duration::from_secs(1);

/// Tells the verdict on what does not end, in the place of the report.
fn last_words(json: bool) {
    let error =
        format!("interrupted before the end, and what was to be written did not end within {} s", GRACE.as_secs());
    tracing::error!("{error}");
    let verdict = Verdict::of(&Evidence { error: Some(error), ..Evidence::default() });
    if json {
        out!("{}", json!(verdict));
    } else {
        tell!("{verdict}");
    }
}

/// From now on a file that would be longer than the user allows (RLIMIT_FSIZE) is an error of who writes it, as a full disk is.
///
/// # Errors
/// The operating system's, of the handler.
pub fn survive_long_files() -> io::Result<()> {
    // A handler, which programs that are started do not inherit.
    flag::register(SIGXFSZ, Arc::default()).map(drop)
}

/// True of a signal that the program was started with as one to ignore.
fn is_ignored(signal: i32) -> bool {
    // SAFETY: all zeros are a value of it, which holds no references.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: nothing is changed; `action` is written.
    let result = unsafe { libc::sigaction(signal, std::ptr::null(), &mut action) };
    result == 0 && action.sa_sigaction == libc::SIG_IGN
}

/// What was asked for, and what those who are asked have come to.
#[derive(Clone, Default)]
pub struct Interrupts {
    asked: Stopping,
    must_abort: Arc<AtomicBool>,
    part: Arc<Part>,
}

/// The same of a part of the work.
#[derive(Default)]
struct Part {
    must_hold: AtomicBool,
    must_cut: AtomicBool,
    has_failed: AtomicBool,
    begun: AtomicU8,
    could_not_begin: AtomicBool,
}

/// A source was asked to begin.
const ASKED: u8 = 1;
/// A source has begun.
const BEGUN: u8 = 2;

impl Interrupts {
    /// From now on. `json`: the user wants the report so.
    ///
    /// # Errors
    /// The operating system's, of the handlers.
    pub fn watch(json: bool) -> io::Result<Interrupts> {
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
        if !is_ignored(SIGHUP) {
            flag::register(SIGHUP, interrupts.asked.clone())?;
        }
        // Is called behind the handlers from above.
        let (seen, mut signals) = (interrupts.clone(), Signals::new([SIGINT, SIGTERM])?);
        std::thread::Builder::new().name("signals".into()).spawn(move || {
            if signals.forever().any(|_| seen.must_abort()) {
                // Enough for what still answers, as a sink that writes its last.
                std::thread::sleep(GRACE);
                let (told, is_told) = mpsc::channel();
                let tell = move || {
                    last_words(json);
                    told.send(())
                };
                let teller = std::thread::Builder::new().name("last-words".into()).spawn(tell);
                let _ = teller.map(|_| is_told.recv_timeout(LAST));
                std::process::exit(exit::INCOMPLETE.into());
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
        self.part.has_failed.store(true, Ordering::Relaxed);
        self.stop();
    }

    /// A board or a sink has failed.
    pub fn have_failed(&self) -> bool {
        self.part.has_failed.load(Ordering::Relaxed)
    }

    /// A source has begun: its data is kept.
    pub fn begin(&self) {
        self.part.begun.store(BEGUN, Ordering::Relaxed);
    }

    /// A source has begun.
    pub fn has_begun(&self) -> bool {
        self.part.begun.load(Ordering::Relaxed) == BEGUN
    }

    /// A source was asked to begin that need not answer.
    pub fn ask(&self) {
        self.part.begun.fetch_max(ASKED, Ordering::Relaxed);
    }

    /// A source has begun, or was asked to and need not answer.
    pub fn may_have_begun(&self) -> bool {
        self.part.begun.load(Ordering::Relaxed) >= ASKED
    }

    /// What a source sends cannot be kept, so that it does not begin.
    pub fn fail_to_begin(&self) {
        self.part.could_not_begin.store(true, Ordering::Relaxed);
    }

    /// A source could not begin, whatever was asked for behind that.
    pub fn has_failed_to_begin(&self) -> bool {
        self.part.could_not_begin.load(Ordering::Relaxed)
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
        self.part.must_hold.store(hold, Ordering::Relaxed);
    }

    /// The sources must wait, until they may go on or the end was asked for.
    pub fn must_hold(&self) -> bool {
        self.part.must_hold.load(Ordering::Relaxed) && !self.must_stop()
    }

    /// The end was asked for, and there is no room for more of what still comes.
    pub fn cut(&self) {
        self.part.must_cut.store(true, Ordering::Relaxed);
    }

    /// Sources that send on are not waited for any more.
    pub fn must_cut(&self) -> bool {
        self.part.must_cut.load(Ordering::Relaxed)
    }

    /// The flag behind [`Self::must_stop`].
    pub fn stopping(&self) -> &Stopping {
        &self.asked
    }
}

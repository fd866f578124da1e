//! What earlier programs have recorded of a board, when a run goes on: it is compared with its hashes while the run already does.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fadelink_sinks::{differences, Recovered, Stored};

/// What to do about a run that cannot go on.
pub const ADVICE: &str = "put back what was there, or close the run as it is: fadelink run --close";
/// How often is told how far it is.
const TOLD: Duration = Duration::from_secs(10);

/// How often is looked whether it has ended.
const TICK: Duration = Duration::from_millis(5);

/// What those who look at the comparison and its thread share.
#[derive(Default)]
struct Pace {
    /// The end of the run waits for it.
    is_waited_for: AtomicBool,
    /// Nobody does any more.
    is_left: AtomicBool,
}

/// A comparison, until it is waited for.
pub struct Before {
    /// What the run goes on behind, in words.
    place: String,
    pace: Arc<Pace>,
    thread: Mutex<Option<JoinHandle<Vec<String>>>>,
}

impl fmt::Debug for Before {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.place)
    }
}

/// What the thread has done.
struct Progress {
    name: String,
    done: u64,
    bytes: u64,
    begun: Instant,
    told: Instant,
}

impl Progress {
    /// So much more was read, since `begun`: half of the time is left to the run.
    fn add(&mut self, bytes: u64, pace: &Pace) -> bool {
        self.done += bytes;
        if self.told.elapsed() >= TOLD {
            self.told = Instant::now();
            tracing::info!("{}: {} of {} earlier bytes are compared", self.name, self.done, self.bytes);
        }
        if !pace.is_waited_for.load(Ordering::Relaxed) {
            std::thread::sleep(self.begun.elapsed());
        }
        self.begun = Instant::now();
        !pace.is_left.load(Ordering::Relaxed)
    }
}

impl Before {
    /// Begins to compare what `sinks` have of the board `name` with what was `found`.
    ///
    /// # Errors
    /// No thread.
    pub fn compare(name: &str, sinks: Vec<Box<dyn Stored>>, found: &Recovered) -> io::Result<Before> {
        let (end, hashes) = (found.blocks.end(), found.hashes.clone());
        let places: Vec<_> = sinks.iter().map(|sink| sink.place(end)).collect();
        let place = format!("{} has {end} bytes", places.join(", "));
        let pace = Arc::<Pace>::default();
        let (name, own) = (name.to_owned(), pace.clone());
        let work = move || {
            let now = Instant::now();
            let bytes = end * sinks.len() as u64;
            let mut progress = Progress { name, done: 0, bytes, begun: now, told: now };
            let mut all = Vec::new();
            for sink in &sinks {
                all.extend(differences(&**sink, (&hashes, end), &mut |bytes| progress.add(bytes, &own)));
            }
            for difference in &all {
                tracing::warn!("{}: {difference}", progress.name);
            }
            all
        };
        let thread = std::thread::Builder::new().name("before".into()).spawn(work)?;
        Ok(Before { place, pace, thread: Mutex::new(Some(thread)) })
    }

    /// What the run goes on behind, in words.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Waits until all is compared, or the user gives up: what is not as it was, in words.
    pub fn wait(&self, gives_up: impl Fn() -> bool) -> Vec<String> {
        self.pace.is_waited_for.store(true, Ordering::Relaxed);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(thread) = thread else { return Vec::new() };
        while !thread.is_finished() {
            if gives_up() {
                self.pace.is_left.store(true, Ordering::Relaxed);
            }
            std::thread::sleep(TICK);
        }
        let mut found =
            thread.join().unwrap_or_else(|_| vec!["the thread that compares earlier words panicked".into()]);
        if self.pace.is_left.load(Ordering::Relaxed) {
            found.push("earlier words were not compared to their end, because nobody waited".into());
        }
        found
    }
}

//! Progress of what is received.

use std::fmt::Display;
use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar};

/// From one live update to the next.
const LIVE: Duration = Duration::from_millis(200);
/// From one line to the next, where nobody looks on.
const LINES: Duration = Duration::from_secs(5);

/// Rates of the streams: live on a terminal, else a line now and then.
pub struct Progress {
    all: Option<MultiProgress>,
    bars: Vec<ProgressBar>,
    before: Vec<u64>,
    quiet: bool,
    shown: Instant,
}

impl Progress {
    pub fn new(quiet: bool) -> Progress {
        let terminal = io::stderr().is_terminal() && !quiet;
        let all = terminal.then(MultiProgress::new);
        Progress { all, bars: Vec::new(), before: Vec::new(), quiet, shown: Instant::now() }
    }

    /// True when it is time for [`Progress::show`].
    pub fn is_due(&self) -> bool {
        !self.quiet && self.shown.elapsed() >= if self.all.is_some() { LIVE } else { LINES }
    }

    /// Shows each stream's name, its rate by the bytes that have come, and what else there is to tell.
    pub fn show<Name: Display>(&mut self, streams: impl ExactSizeIterator<Item = (Name, u64, String)>) {
        let elapsed = self.shown.elapsed();
        self.shown = Instant::now();
        self.before.resize(streams.len(), 0);
        for (i, ((name, bytes, more), before)) in streams.zip(&mut self.before).enumerate() {
            let rate = (bytes - std::mem::replace(before, bytes)) as f64 / elapsed.as_secs_f64();
            let text = format!("{name} {:8.2} MB/s  {more}", rate / 1e6);
            let Some(all) = &self.all else {
                eprintln!("{text}");
                continue;
            };
            if self.bars.len() <= i {
                self.bars.push(all.add(ProgressBar::new_spinner()));
            }
            self.bars[i].set_message(text);
            self.bars[i].tick();
        }
    }

    pub fn finish(&self) {
        self.bars.iter().for_each(ProgressBar::finish_and_clear);
    }
}

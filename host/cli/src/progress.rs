//! Progress of streams over IP.

use std::io::{self, IsTerminal};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar};

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

    /// Time between two calls of [`Progress::show`].
    pub fn interval(&self) -> Duration {
        if self.all.is_some() {
            Duration::from_millis(200)
        } else {
            Duration::from_millis(500)
        }
    }

    /// Shows each stream's name and bytes, when it is time.
    pub fn show(&mut self, streams: impl ExactSizeIterator<Item = (SocketAddr, u64)>) {
        let elapsed = self.shown.elapsed();
        if self.quiet || (self.all.is_none() && elapsed < Duration::from_secs(5)) {
            return;
        }
        self.shown = Instant::now();
        self.before.resize(streams.len(), 0);
        for (i, ((peer, bytes), before)) in streams.zip(&mut self.before).enumerate() {
            let rate = (bytes - std::mem::replace(before, bytes)) as f64 / elapsed.as_secs_f64();
            let text = format!("{peer} {:8.2} MB/s  {bytes} bytes", rate / 1e6);
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

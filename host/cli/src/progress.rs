//! Progress of a run on the terminal: a bar of the rate for each stream, then the total and the time left. Nothing is
//! printed where standard error is not a terminal.

use std::fmt::Display;
use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use indicatif::{DecimalBytes, HumanDuration, MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::standard_error;

/// Time from one update to the next.
const UPDATE: Duration = Duration::from_millis(200);
/// Share of the newest rate in the one that is shown.
const NEWEST: f64 = 0.2;
/// Bars for the parts of a character cell.
const CELLS: &str = "█▉▊▋▌▍▎▏ ";

/// The lines of the terminal that are in use while [`is_shown`]; messages are printed above them.
pub static LINES: LazyLock<MultiProgress> = LazyLock::new(MultiProgress::new);

/// Bars are on the terminal.
static IS_SHOWN: AtomicBool = AtomicBool::new(false);

/// True while there are bars on the terminal.
pub fn is_shown() -> bool {
    IS_SHOWN.load(Ordering::Relaxed)
}

/// What is counted.
#[derive(Clone, Copy)]
pub enum Unit {
    /// Bytes of data.
    Bytes,
    /// Events of the event builder.
    Events,
    /// Messages of FADC crates.
    #[cfg(feature = "kafka")]
    Messages,
}

impl Unit {
    fn amount(self, amount: u64) -> String {
        match self {
            Unit::Bytes => DecimalBytes(amount).to_string(),
            Unit::Events => format!("{amount} events"),
            #[cfg(feature = "kafka")]
            Unit::Messages => format!("{amount} messages"),
        }
    }

    fn rate(self, rate: f64) -> String {
        match self {
            Unit::Bytes => format!("{:.2} MB/s", rate / 1e6),
            Unit::Events => format!("{rate:.1} events/s"),
            #[cfg(feature = "kafka")]
            Unit::Messages => format!("{rate:.1} messages/s"),
        }
    }
}

/// When a run ends by itself: at the first of these.
#[derive(Clone, Copy, Default)]
pub struct Goal {
    /// Time since the start.
    pub duration: Option<Duration>,
    /// Amount of all streams together.
    pub amount: Option<u64>,
}

impl Goal {
    /// The part that is done, 0 to 1, and the time left; `None` if nothing ends the run.
    fn done(&self, elapsed: Duration, amount: u64, rate: f64) -> Option<(f64, Duration)> {
        let by_time = self.duration.map(|limit| {
            let done = elapsed.as_secs_f64() / limit.as_secs_f64().max(1e-9);
            (done.min(1.0), limit.saturating_sub(elapsed))
        });
        let by_amount = self.amount.map(|limit| {
            let left = limit.saturating_sub(amount) as f64 / rate;
            let left = Duration::try_from_secs_f64(left).unwrap_or(Duration::MAX);
            ((amount as f64 / limit.max(1) as f64).min(1.0), left)
        });
        by_time.into_iter().chain(by_amount).min_by_key(|(_, left)| *left)
    }
}

/// One stream on the terminal.
struct Line {
    bar: ProgressBar,
    amount: u64,
    rate: f64,
}

/// The streams of a run.
pub struct Progress {
    unit: Unit,
    goal: Goal,
    is_shown: bool,
    begun: Instant,
    updated: Instant,
    streams: Vec<Line>,
    total: ProgressBar,
    most: f64,
}

impl Progress {
    /// Of a run that begins now; `quiet`: nothing is shown.
    pub fn new(unit: Unit, goal: Goal, quiet: bool) -> Progress {
        let is_shown = !quiet && io::stderr().is_terminal();
        let now = Instant::now();
        let total = ProgressBar::hidden();
        Progress { unit, goal, is_shown, begun: now, updated: now, streams: Vec::new(), total, most: 1.0 }
    }

    /// True when it is time for [`Progress::show`].
    pub fn is_due(&self) -> bool {
        self.is_shown && self.updated.elapsed() >= UPDATE && standard_error::is_ready()
    }

    /// Shows each stream: its name, the amount that has come, and what else there is to tell.
    pub fn show<Name: Display>(&mut self, streams: impl Iterator<Item = (Name, u64, String)>) {
        IS_SHOWN.store(true, Ordering::Relaxed);
        let elapsed = self.updated.elapsed().as_secs_f64();
        self.updated = Instant::now();
        for (i, (name, amount, more)) in streams.enumerate() {
            if self.streams.len() <= i {
                let bar = LINES.insert(i, ProgressBar::new(1).with_style(style("{prefix} {bar:12} {msg}")));
                self.streams.push(Line { bar, amount: 0, rate: 0.0 });
            }
            let line = &mut self.streams[i];
            let newest = amount.saturating_sub(line.amount) as f64 / elapsed;
            line.rate = if line.amount == 0 { newest } else { line.rate + NEWEST * (newest - line.rate) };
            line.amount = amount;
            self.most = self.most.max(line.rate);
            line.bar.set_prefix(name.to_string());
            line.bar.set_message(format!("{:>11} {:>9}  {more}", self.unit.rate(line.rate), self.unit.amount(amount)));
        }
        for Line { bar, rate, .. } in &self.streams {
            bar.set_length(self.most as u64);
            bar.set_position(*rate as u64);
        }
        self.show_total();
    }

    fn show_total(&mut self) {
        let amount = self.streams.iter().map(|line| line.amount).sum();
        let rate: f64 = self.streams.iter().map(|line| line.rate).sum();
        let elapsed = self.begun.elapsed();
        let text = format!("{:.0} s, {}, {}", elapsed.as_secs_f64(), self.unit.amount(amount), self.unit.rate(rate));
        let done = self.goal.done(elapsed, amount, rate);
        if self.total.is_hidden() {
            let template = if done.is_some() { "{bar:30} {percent:>3} %  {msg}" } else { "{spinner} {msg}" };
            self.total = LINES.add(ProgressBar::new(1000).with_style(style(template)));
        }
        match done {
            Some((part, left)) if left < Duration::MAX => {
                self.total.set_position((part * 1000.0) as u64);
                self.total.set_message(format!("{text}, {} left", HumanDuration(left)));
            }
            _ => {
                self.total.tick();
                self.total.set_message(text);
            }
        }
    }

    /// Clears the terminal's lines.
    pub fn finish(&self) {
        if !standard_error::is_ready() {
            // They stay where they are.
            LINES.set_draw_target(ProgressDrawTarget::hidden());
        }
        self.streams.iter().map(|line| &line.bar).chain([&self.total]).for_each(ProgressBar::finish_and_clear);
        IS_SHOWN.store(false, Ordering::Relaxed);
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars(CELLS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_first_ends_the_run() {
        let seconds = Duration::from_secs;
        let goal = |duration, amount| Goal { duration, amount };
        assert_eq!(goal(None, None).done(seconds(1), 5, 1.0), None);
        assert_eq!(goal(Some(seconds(4)), None).done(seconds(1), 5, 1.0), Some((0.25, seconds(3))));
        assert_eq!(goal(None, Some(10)).done(seconds(1), 5, 2.5), Some((0.5, seconds(2))));
        assert_eq!(goal(Some(seconds(4)), Some(10)).done(seconds(1), 5, 2.5), Some((0.5, seconds(2))));
        assert_eq!(goal(Some(seconds(4)), Some(10)).done(seconds(3), 5, 2.5), Some((0.75, seconds(1))));
        assert_eq!(goal(None, Some(10)).done(seconds(1), 5, 0.0), Some((0.5, Duration::MAX)), "nothing comes");
        assert_eq!(goal(None, Some(10)).done(seconds(1), 15, 1.0), Some((1.0, seconds(0))), "more than asked for");
    }
}

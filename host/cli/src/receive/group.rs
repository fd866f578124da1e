//! Boards that are received together: of one interface, or of one port. `fadelink receive` has one such group,
//! `fadelink run` any number.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::health;
use crate::metrics::Meter;
use crate::progress::Progress;
use crate::verdict::{Evidence, Reason, State, Verdict};

/// How often a group is looked after.
const TICK: Duration = Duration::from_millis(20);

/// What has come of one stream so far.
pub struct Line {
    /// Its board.
    pub name: String,
    /// Bytes of data.
    pub bytes: u64,
    /// What else there is to tell.
    pub note: String,
}

/// The results of the boards of a group.
pub struct Outcome {
    /// The worst of their verdicts, and of that on the whole.
    pub state: State,
    /// Boards wait with what is not confirmed, for a program that goes on.
    pub may_go_on: bool,
    /// What the boards or streams are called in the report.
    pub key: &'static str,
    /// The report of each.
    pub boards: Vec<Value>,
    /// What speaks against the whole, and is of none of them.
    pub reasons: Vec<Reason>,
    /// What belongs to none of them.
    pub others: Map<String, Value>,
}

impl Outcome {
    /// Of boards, which are called `key`: the verdict on each, and its report. `known` is of none of them.
    pub fn of(
        key: &'static str,
        boards: impl Iterator<Item = (State, Value)>,
        known: Evidence<'_>,
        others: Map<String, Value>,
    ) -> Outcome {
        let (states, boards): (Vec<_>, Vec<_>) = boards.unzip();
        let whole = Verdict::so_far(known);
        let state = State::worst(states.into_iter().chain([whole.state()]));
        Outcome { state, may_go_on: false, key, boards, reasons: whole.reasons().to_vec(), others }
    }

    /// Of boards that were waited for until the end, for this reason.
    pub fn of_what_is_absent(why: Reason) -> Outcome {
        let (boards, others) = (Vec::new(), Map::new());
        Outcome { state: State::Incomplete, may_go_on: false, key: "boards", boards, reasons: vec![why], others }
    }

    /// What belongs to no board, with the reasons.
    pub fn of_the_whole(&mut self) -> Map<String, Value> {
        let mut all = std::mem::take(&mut self.others);
        all.insert("reasons".into(), self.reasons.iter().map(Reason::json).collect());
        all
    }

    /// As one JSON object.
    pub fn json(mut self) -> Value {
        let mut all = self.of_the_whole();
        all.insert("complete".into(), (self.state == State::Complete).into());
        all.insert("verdict".into(), self.state.name().into());
        all.insert(self.key.into(), self.boards.into());
        all.into()
    }
}

/// Boards that are received together. They are received from the moment in which this exists.
pub trait Group {
    /// What has come of each stream so far.
    fn lines(&self) -> Vec<Line>;

    /// Updates the metrics, and tells what is wrong.
    fn measure(&self, meter: &mut Meter);

    /// Looks after it; true: it has ended.
    ///
    /// # Errors
    /// It cannot go on.
    fn poll(&mut self) -> anyhow::Result<bool>;

    /// Waits for the ends of all streams and prints their results, unless nobody is to read them. The metrics have them, too.
    ///
    /// # Errors
    /// It was interrupted, or could not go on.
    fn finish(self: Box<Self>, silent: bool, meter: &mut Meter) -> anyhow::Result<Outcome>;
}

/// Measures groups, and tells that they were looked after.
pub fn measure(groups: &[Box<dyn Group>], meter: &mut Meter) {
    groups.iter().for_each(|group| group.measure(meter));
    health::beat(meter.take_troubles());
}

/// Looks after groups until all have ended, or one cannot go on. `look` is called meanwhile, again and again.
///
/// # Errors
/// That of the group, or of `look`.
pub fn drive(
    groups: &mut [Box<dyn Group>],
    progress: &mut Progress,
    mut look: impl FnMut(&[Box<dyn Group>]) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    loop {
        let mut has_ended = true;
        for group in groups.iter_mut() {
            has_ended &= group.poll()?;
        }
        look(groups)?;
        if progress.is_due() {
            let lines = groups.iter().flat_map(|group| group.lines());
            progress.show(lines.map(|line| (line.name, line.bytes, line.note)));
        }
        if has_ended {
            progress.finish();
            return Ok(());
        }
        std::thread::sleep(TICK);
    }
}

//! The life of a run, as a state machine without side effects: every error is an edge of it (docs/runs.md has the table).

use serde_json::{json, Value};

/// What the program does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// No run goes on; one can be begun.
    Waiting,
    /// A run is to begin; its folder may be there, and no board has begun.
    Starting,
    /// A run goes on.
    Running,
    /// The end was asked for, of a run that goes on or is to begin; or it has come.
    Stopping,
}

/// What happens to it.
#[derive(Debug)]
pub enum Event {
    /// A run is wanted: now, at its time, or by a command.
    Start,
    /// Its end is wanted, by a command.
    Stop,
    /// Its folder and its manifest are there.
    Begun { run: u64, folder: String },
    /// One of its boards has begun, or it waits for boards that begin by themselves.
    Receives,
    /// It ends, for another reason than a command.
    Ends,
    /// It has ended, and its manifest says so: all of its data is there, or not.
    Ended { complete: bool },
    /// It could not begin, or not end as it should.
    Failed(String),
    /// Nothing of it is left, for none of its boards has begun: its end was asked for before, or this has kept it from beginning.
    Withdrawn(Option<String>),
}

/// Why something that was asked for is not possible now.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("run {0} goes on; stop it first")]
    GoesOn(u64),
    #[error("a run is being stopped")]
    IsStopped,
    #[error("no run goes on")]
    NoRun,
}

/// The run that goes on, or the last one.
#[derive(Debug)]
struct Latest {
    /// Which of those that were asked for it is.
    begin: u64,
    number: u64,
    folder: String,
    /// A board has begun, or may do so by itself.
    receives: bool,
    complete: Option<bool>,
}

/// What the program does, and how the last run has ended.
#[derive(Debug)]
pub struct Life {
    phase: Phase,
    /// The end of the run was asked for by a command.
    must_stop: bool,
    latest: Option<Latest>,
    /// The one before that.
    before: Option<Latest>,
    /// Runs that were asked for: this number is never given again, so that who has asked for one can tell it from others.
    begins: u64,
    /// Runs that have begun, and are there.
    begun: u64,
    /// Why the last run has failed, or could not begin; until the next one has begun.
    error: Option<String>,
    /// The user has not let it begin.
    is_withdrawn: bool,
}

/// Why a run is not there whose end was asked for before it had begun.
const WITHDRAWN: &str = "it was stopped before it had begun, and nothing of it is left";

impl Life {
    /// Of a program that has no run yet.
    pub fn new() -> Life {
        Life {
            phase: Phase::Waiting,
            must_stop: false,
            latest: None,
            before: None,
            begins: 0,
            begun: 0,
            error: None,
            is_withdrawn: false,
        }
    }

    /// Takes the next step.
    ///
    /// # Errors
    /// The event was asked for, and is not possible now: nothing has changed.
    pub fn step(&mut self, event: Event) -> Result<(), Refused> {
        match (event, self.phase) {
            (Event::Start, Phase::Waiting) => (self.phase, self.begins) = (Phase::Starting, self.begins + 1),
            (Event::Start, Phase::Starting) => {}
            (Event::Start, Phase::Running) => return Err(Refused::GoesOn(self.number())),
            (Event::Start, Phase::Stopping) => return Err(Refused::IsStopped),
            (Event::Stop, Phase::Waiting) => return Err(Refused::NoRun),
            (Event::Stop, _) => (self.phase, self.must_stop) = (Phase::Stopping, true),
            (Event::Begun { run: number, folder }, _) => {
                // An end that was asked for before is the end of this run.
                self.phase = if self.must_stop { Phase::Stopping } else { Phase::Starting };
                let latest = Latest { begin: self.begins, number, folder, receives: false, complete: None };
                self.before = self.latest.replace(latest);
                self.begun += 1;
                (self.error, self.is_withdrawn) = (None, false);
            }
            (Event::Receives, phase) => {
                if let Some(latest) = self.latest.as_mut().filter(|latest| latest.complete.is_none()) {
                    latest.receives = true;
                    self.phase = if phase == Phase::Starting { Phase::Running } else { phase };
                }
            }
            (Event::Ends, Phase::Running) => self.phase = Phase::Stopping,
            (Event::Ends, Phase::Starting) if self.is_of_a_run() => self.phase = Phase::Stopping,
            (Event::Ends, _) => {}
            (Event::Ended { complete }, _) => self.end(Some(complete), None),
            (Event::Withdrawn(error), _) => {
                (self.latest, self.begun) = (self.before.take(), self.begun.saturating_sub(1));
                self.is_withdrawn = error.is_none();
                self.end(None, Some(error.unwrap_or_else(|| WITHDRAWN.into())));
            }
            (Event::Failed(error), _) => self.end(self.is_of_a_run().then_some(false), Some(error)),
        }
        Ok(())
    }

    /// The next run can be begun, whatever this one came to.
    fn end(&mut self, complete: Option<bool>, error: Option<String>) {
        if let (Some(latest), Some(complete)) = (&mut self.latest, complete) {
            latest.complete = Some(complete);
        }
        (self.phase, self.must_stop, self.error) = (Phase::Waiting, false, error);
    }

    /// A run has begun, and not ended.
    fn is_of_a_run(&self) -> bool {
        self.latest.as_ref().is_some_and(|latest| latest.complete.is_none())
    }

    fn number(&self) -> u64 {
        self.latest.as_ref().map_or(0, |latest| latest.number)
    }

    /// A run is to begin, even if its end was asked for meanwhile.
    pub fn is_wanted(&self) -> bool {
        matches!(self.phase, Phase::Starting | Phase::Stopping) && !self.is_of_a_run()
    }

    /// A run has begun, and goes on or ends.
    pub fn goes_on(&self) -> bool {
        self.phase != Phase::Waiting && self.is_of_a_run()
    }

    /// The end of the run was asked for by a command.
    pub fn must_stop(&self) -> bool {
        self.must_stop
    }

    /// Why the last run has failed, or could not begin, for `GET /health`.
    pub fn trouble(&self) -> Option<String> {
        // The user has asked for it: nothing is wrong.
        let error = self.error.as_ref().filter(|_| !self.is_withdrawn)?;
        Some(format!("the last run has failed: {error}"))
    }

    /// For `GET /run`.
    pub fn json(&self) -> Value {
        let state = match self.phase {
            Phase::Waiting => "waiting",
            Phase::Starting => "starting",
            Phase::Running => "running",
            Phase::Stopping => "stopping",
        };
        let (runs, begins) = (self.begun, self.begins);
        let mut all = json!({ "state": state, "runs": runs, "begins": begins, "error": self.error });
        for key in ["begun", "run", "folder", "receives", "complete"] {
            all[key] = Value::Null;
        }
        if let Some(Latest { begin, number, folder, receives, complete }) = &self.latest {
            (all["begun"], all["run"]) = ((*begin).into(), (*number).into());
            (all["folder"], all["complete"]) = (folder.as_str().into(), (*complete).into());
            all["receives"] = (*receives).into();
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun(run: u64) -> Event {
        Event::Begun { run, folder: format!("run_{run}") }
    }

    fn life(events: impl IntoIterator<Item = Event>) -> Life {
        let mut life = Life::new();
        events.into_iter().for_each(|event| life.step(event).unwrap());
        life
    }

    #[test]
    fn one_run_at_a_time() {
        let mut life = Life::new();
        assert_eq!(life.step(Event::Stop), Err(Refused::NoRun));
        assert!(life.json()["state"] == "waiting" && !life.is_wanted() && !life.goes_on());
        life.step(Event::Start).unwrap();
        assert!(life.is_wanted() && life.json()["state"] == "starting");
        life.step(begun(7)).unwrap();
        assert!(!life.is_wanted() && life.goes_on() && !life.must_stop() && life.json()["state"] == "starting");
        assert_eq!(life.step(Event::Start), Ok(()), "it is that run");
        life.step(Event::Receives).unwrap();
        assert!(life.json()["state"] == "running" && life.json()["begins"] == 1 && life.json()["receives"] == true);
        assert_eq!(life.step(Event::Start), Err(Refused::GoesOn(7)));
        life.step(Event::Stop).unwrap();
        assert!(life.must_stop() && life.json()["state"] == "stopping" && life.goes_on());
        assert_eq!(life.step(Event::Start), Err(Refused::IsStopped));
        life.step(Event::Ended { complete: true }).unwrap();
        assert!(life.json()["complete"] == true && life.json()["state"] == "waiting" && !life.must_stop());
    }

    #[test]
    fn an_end_that_is_asked_for_before_the_run_begins_is_that_of_the_run() {
        let mut life = life([Event::Start, Event::Start, Event::Stop]);
        assert_eq!(life.step(Event::Start), Err(Refused::IsStopped));
        assert!(life.is_wanted() && life.json()["state"] == "stopping");
        life.step(begun(1)).unwrap();
        assert!(life.must_stop() && life.goes_on() && life.json()["receives"] == false);
        life.step(Event::Receives).unwrap();
        assert!(life.json()["state"] == "stopping" && life.json()["receives"] == true);
        life.step(Event::Ended { complete: true }).unwrap();
        life.step(Event::Start).unwrap();
        assert!(!life.must_stop(), "not that of the next one");
    }

    #[test]
    fn a_failure_anywhere_leaves_a_program_that_begins_the_next_run() {
        let start = || vec![Event::Start];
        let stop = || vec![Event::Start, Event::Stop];
        let ways = [start(), stop()].into_iter().flat_map(|begin| {
            let with = |more: Vec<Event>| -> Vec<Event> {
                let again = if begin.len() == 1 { start() } else { stop() };
                again.into_iter().chain(more).collect()
            };
            let begun = |more: Vec<Event>| with([begun(1)].into_iter().chain(more).collect());
            [with(vec![]), begun(vec![])]
                .into_iter()
                .chain([Event::Receives, Event::Ends, Event::Stop].map(|event| begun(vec![event])))
                .chain([Event::Ends, Event::Stop].map(|event| begun(vec![Event::Receives, event])))
                .collect::<Vec<_>>()
        });
        for way in ways {
            let name = format!("{way:?}");
            let mut life = life(way);
            let has_begun = life.goes_on();
            life.step(Event::Failed("no space".into())).unwrap();
            let state = life.json();
            assert!(state["state"] == "waiting" && state["error"] == "no space", "{name}: {state}");
            assert_eq!(state["complete"] == false, has_begun, "{name}: {state}");
            assert!(life.trouble().unwrap().contains("no space") && !life.goes_on() && !life.must_stop(), "{name}");
            life.step(Event::Start).unwrap();
            assert!(life.is_wanted() && life.trouble().is_some(), "{name}: until the next one has begun");
            life.step(begun(2)).unwrap();
            assert!(life.trouble().is_none() && life.goes_on() && life.json()["run"] == 2, "{name}");
        }
    }

    #[test]
    fn a_run_of_which_nothing_is_left_was_none() {
        for (error, is_trouble) in [(Some("no answer".to_owned()), true), (None, false)] {
            let end = [begun(4), Event::Ended { complete: true }, Event::Start, begun(5)];
            let mut life = life([Event::Start].into_iter().chain(end));
            life.step(Event::Withdrawn(error.clone())).unwrap();
            let state = life.json();
            assert!(state["run"] == 4 && state["complete"] == true && state["runs"] == 1, "{state}");
            assert!(state["begins"] == 2 && state["begun"] == 1, "no number is given again: {state}");
            assert!(state["state"] == "waiting" && !life.must_stop(), "{state}");
            assert!(state["error"] == error.as_deref().unwrap_or(WITHDRAWN), "{state}");
            assert_eq!(life.trouble().is_some(), is_trouble, "{state}");
            life.step(Event::Start).unwrap();
            life.step(begun(5)).unwrap();
            assert!(life.trouble().is_none() && life.json()["error"].is_null());
            assert!(life.json()["begins"] == 3 && life.json()["begun"] == 3);
        }
    }

    #[test]
    fn what_could_not_begin_changes_nothing_of_the_last_run() {
        let begin = [Event::Start, begun(4), Event::Ends, Event::Ended { complete: true }, Event::Start];
        let mut life = life(begin);
        life.step(Event::Failed("no space".into())).unwrap();
        let state = life.json();
        assert!(state["run"] == 4 && state["complete"] == true && state["error"] == "no space", "{state}");
    }
}

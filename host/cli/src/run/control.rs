//! What others ask of a run: its state, its begin and its end.

use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use anyhow::Context;
use axum::Router;
use serde_json::{json, Value};

use super::folder::{Runs, SOCKET};
use crate::http::{self, Control, Refused};
use crate::receive::Line;

/// The socket in the folder of the runs, which is removed at the end.
pub struct Socket(PathBuf);

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Serves those who ask at the socket in the folder of the runs.
///
/// # Errors
/// The operating system's.
pub fn serve(runs: &Runs, routes: Router) -> anyhow::Result<Socket> {
    let path = runs.path().join(SOCKET);
    // Left behind by a program that was killed: the folder is this program's.
    let _ = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path).with_context(|| format!("{}", path.display()))?;
    http::serve_unix(listener, routes)?;
    Ok(Socket(path))
}

/// What the program does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// No run goes on; one can be begun.
    Waiting,
    /// A run is to begin, and has not.
    Starting,
    /// A run goes on.
    Running,
}

struct State {
    phase: Phase,
    /// The end of the run that goes on, or is to begin, was asked for.
    must_stop: bool,
    /// The run that goes on, or the last one.
    run: Value,
    begun: Instant,
    boards: Value,
    bytes: u64,
}

/// What the program does, for those who ask.
pub struct Controlled(Mutex<State>);

impl Controlled {
    /// Of a program that waits for a run.
    pub fn new() -> Controlled {
        let run = json!({ "run": null, "folder": null, "complete": null });
        let (phase, boards) = (Phase::Waiting, json!([]));
        Controlled(Mutex::new(State { phase, must_stop: false, run, begun: Instant::now(), boards, bytes: 0 }))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if a run is to begin.
    pub fn is_wanted(&self) -> bool {
        self.lock().phase == Phase::Starting
    }

    /// A run is to begin, by the file of the experiment: it can be stopped from now on.
    pub fn want(&self) {
        self.lock().phase = Phase::Starting;
    }

    /// A run begins. An end that was asked for since it was wanted is its end.
    pub fn begin(&self, run: Value) {
        let mut state = self.lock();
        (state.phase, state.run, state.begun) = (Phase::Running, run, Instant::now());
        (state.boards, state.bytes) = (json!([]), 0);
    }

    /// What has come.
    pub fn show(&self, lines: &[Line]) {
        let boards = lines.iter().map(|line| json!({ "name": line.name, "bytes": line.bytes, "note": line.note }));
        let (boards, bytes) = (boards.collect(), lines.iter().map(|line| line.bytes).sum());
        let mut state = self.lock();
        (state.boards, state.bytes) = (Value::Array(boards), bytes);
    }

    /// True if the end of the run was asked for.
    pub fn must_stop(&self) -> bool {
        self.lock().must_stop
    }

    /// The run has ended, or could not begin: all of it is there, or not.
    pub fn end(&self, complete: bool) {
        let mut state = self.lock();
        if state.phase == Phase::Running {
            state.run["complete"] = complete.into();
        }
        (state.phase, state.must_stop) = (Phase::Waiting, false);
    }
}

impl Control for Controlled {
    fn state(&self) -> Value {
        let state = self.lock();
        let mut all = state.run.clone();
        all["state"] = match state.phase {
            Phase::Waiting => "waiting",
            Phase::Starting | Phase::Running if state.must_stop => "stopping",
            Phase::Starting => "starting",
            Phase::Running => "running",
        }
        .into();
        if state.phase == Phase::Running {
            all["seconds"] = state.begun.elapsed().as_secs_f64().into();
        }
        all["bytes"] = state.bytes.into();
        all["boards"] = state.boards.clone();
        all
    }

    fn start(&self) -> Result<(), Refused> {
        let mut state = self.lock();
        match state.phase {
            Phase::Running => return Err(Refused(format!("run {} goes on; stop it first", state.run["run"]))),
            Phase::Starting if state.must_stop => return Err(Refused("a run is being stopped".into())),
            Phase::Waiting | Phase::Starting => state.phase = Phase::Starting,
        }
        Ok(())
    }

    fn stop(&self) -> Result<(), Refused> {
        let mut state = self.lock();
        if state.phase == Phase::Waiting {
            return Err(Refused("no run goes on".into()));
        }
        state.must_stop = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_run_at_a_time() {
        let control = Controlled::new();
        assert!(control.stop().is_err() && control.state()["state"] == "waiting" && !control.is_wanted());
        assert!(control.start().is_ok() && control.is_wanted());
        control.begin(json!({ "run": 7 }));
        assert!(control.start().is_err() && !control.is_wanted() && !control.must_stop());
        control.show(&[Line { name: "a".into(), bytes: 5, note: String::new() }]);
        assert_eq!((&control.state()["bytes"], &control.state()["run"]), (&5.into(), &7.into()));
        assert!(control.stop().is_ok() && control.must_stop() && control.state()["state"] == "stopping");
        control.end(true);
        assert_eq!((&control.state()["complete"], &control.state()["bytes"]), (&true.into(), &5.into()));
        assert!(control.start().is_ok() && control.state()["state"] == "starting");
        control.end(false);
        assert_eq!((&control.state()["state"], &control.state()["complete"]), (&"waiting".into(), &true.into()));
    }

    #[test]
    fn an_end_that_is_asked_for_before_the_run_begins_is_that_of_the_run() {
        let control = Controlled::new();
        assert!(
            control.start().is_ok() && control.start().is_ok() && control.stop().is_ok() && control.start().is_err()
        );
        assert!(control.state()["state"] == "stopping" && control.is_wanted());
        control.begin(json!({ "run": 1 }));
        assert!(control.must_stop());
        control.end(true);
        assert!(control.start().is_ok() && !control.must_stop(), "not that of the next one");
    }
}

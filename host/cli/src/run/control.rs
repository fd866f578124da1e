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
    /// A run goes on.
    Running,
    /// The end of the run was asked for.
    Stopping,
}

struct State {
    phase: Phase,
    /// A run was asked for and has not begun.
    is_wanted: bool,
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
        let state =
            State { phase: Phase::Waiting, is_wanted: false, run, begun: Instant::now(), boards: json!([]), bytes: 0 };
        Controlled(Mutex::new(state))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if a run was asked for.
    pub fn is_wanted(&self) -> bool {
        self.lock().is_wanted
    }

    /// A run begins.
    pub fn begin(&self, run: Value) {
        let mut state = self.lock();
        (state.phase, state.is_wanted, state.run, state.begun) = (Phase::Running, false, run, Instant::now());
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
        self.lock().phase == Phase::Stopping
    }

    /// The run has ended: all of it is there, or not.
    pub fn end(&self, complete: bool) {
        let mut state = self.lock();
        state.phase = Phase::Waiting;
        state.run["complete"] = complete.into();
    }
}

impl Control for Controlled {
    fn state(&self) -> Value {
        let state = self.lock();
        let mut all = state.run.clone();
        all["state"] = match state.phase {
            Phase::Waiting => "waiting",
            Phase::Running => "running",
            Phase::Stopping => "stopping",
        }
        .into();
        if state.phase != Phase::Waiting {
            all["seconds"] = state.begun.elapsed().as_secs_f64().into();
        }
        all["bytes"] = state.bytes.into();
        all["boards"] = state.boards.clone();
        all
    }

    fn start(&self) -> Result<(), Refused> {
        let mut state = self.lock();
        if state.phase != Phase::Waiting {
            return Err(Refused(format!("run {} goes on; stop it first", state.run["run"])));
        }
        state.is_wanted = true;
        Ok(())
    }

    fn stop(&self) -> Result<(), Refused> {
        let mut state = self.lock();
        if state.phase == Phase::Waiting {
            return Err(Refused("no run goes on".into()));
        }
        state.phase = Phase::Stopping;
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
        assert!(control.start().is_ok());
    }
}

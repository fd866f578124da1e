//! What others ask of a run: its state, its begin and its end.

use std::io;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use anyhow::Context;
use axum::Router;
use fadelink_sinks::unix_path;
use rustix::net::{listen, socket_with, AddressFamily, SocketFlags, SocketType};
use serde_json::{json, Value};

use super::folder::{Runs, SOCKET};
use super::life::{Event, Life};
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
    // Left behind by a program that was killed: the folder is this program's. Anything else is not.
    if path.symlink_metadata().is_ok_and(|found| found.file_type().is_socket()) {
        let _ = std::fs::remove_file(&path);
    }
    let listener = listen_at(&path).with_context(|| format!("{}", path.display()))?;
    http::serve_unix(listener, routes)?;
    Ok(Socket(path))
}

fn listen_at(path: &Path) -> io::Result<UnixListener> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    unix_path::bind(&socket, path)?;
    listen(&socket, 128)?;
    Ok(socket.into())
}

struct State {
    life: Life,
    /// Of the run that goes on.
    begun: Instant,
    boards: Value,
    bytes: u64,
}

/// What the program does, for those who ask.
pub struct Controlled(Mutex<State>);

impl Controlled {
    /// Of a program that waits for a run.
    pub fn new() -> Controlled {
        let (life, boards) = (Life::new(), json!([]));
        Controlled(Mutex::new(State { life, begun: Instant::now(), boards, bytes: 0 }))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something happens that nobody has asked for here.
    pub fn step(&self, event: Event) {
        let mut state = self.lock();
        if matches!(event, Event::Begun { .. }) {
            (state.begun, state.boards, state.bytes) = (Instant::now(), json!([]), 0);
        }
        // What goes on already, or has ended, is as it is wanted.
        let _ = state.life.step(event);
    }

    /// True if a run is to begin.
    pub fn is_wanted(&self) -> bool {
        self.lock().life.is_wanted()
    }

    /// True if the end of the run was asked for.
    pub fn must_stop(&self) -> bool {
        self.lock().life.must_stop()
    }

    /// What is wrong with the last run.
    pub fn trouble(&self) -> Option<String> {
        self.lock().life.trouble()
    }

    /// What has come.
    pub fn show(&self, lines: &[Line]) {
        let boards = lines.iter().map(|line| json!({ "name": line.name, "bytes": line.bytes, "note": line.note }));
        let (boards, bytes) = (boards.collect(), lines.iter().map(|line| line.bytes).sum());
        let mut state = self.lock();
        (state.boards, state.bytes) = (Value::Array(boards), bytes);
    }
}

impl Control for Controlled {
    fn state(&self) -> Value {
        let state = self.lock();
        let mut all = state.life.json();
        if state.life.goes_on() {
            all["seconds"] = state.begun.elapsed().as_secs_f64().into();
        }
        all["bytes"] = state.bytes.into();
        all["boards"] = state.boards.clone();
        all
    }

    fn start(&self) -> Result<(), Refused> {
        self.lock().life.step(Event::Start).map_err(|refused| Refused(refused.to_string()))
    }

    fn stop(&self) -> Result<(), Refused> {
        self.lock().life.step(Event::Stop).map_err(|refused| Refused(refused.to_string()))
    }
}

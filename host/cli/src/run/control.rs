//! What others ask of a run: its state, its begin and its end.

use std::io;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context;
use axum::Router;
use fadelink_sinks::unix_path;
use headers::IfMatch;
use rustix::net::{listen, socket_with, AddressFamily, SocketFlags, SocketType};
use serde_json::{json, Value};

use super::experiment::File;
use super::folder::{identity, Runs, SOCKET};
use super::life::{Event, Life};
use crate::http::{self, Control, Refused};
use crate::receive::Line;

/// Until then the socket of a program that was killed is closed, and how often is looked.
const CLOSED: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(20);

/// The socket in the folder of the runs, which is removed at the end.
pub struct Socket {
    path: PathBuf,
    identity: (u64, u64),
}

impl Drop for Socket {
    fn drop(&mut self) {
        match identity(&self.path) {
            Ok(found) if found == self.identity => _ = std::fs::remove_file(&self.path),
            Ok(_) => tracing::warn!("{}: it is of another program now, and is left", self.path.display()),
            Err(_) => {}
        }
    }
}

/// Serves those who ask at the socket in the folder of the runs.
///
/// # Errors
/// Another program serves there; the operating system's.
pub fn serve(runs: &Runs, routes: Router) -> anyhow::Result<Socket> {
    let path = runs.path().join(SOCKET);
    let named = || format!("{}", path.display());
    remove_left(&path).with_context(named)?;
    let listener = listen_at(&path).with_context(named)?;
    let identity = identity(&path).with_context(named)?;
    http::serve_unix(listener, routes)?;
    Ok(Socket { path, identity })
}

/// Removes the socket of a program that was killed. What is not a socket is not touched, and neither is one at which a program listens: it
/// has the folder, though it has lost the lock.
fn remove_left(path: &Path) -> io::Result<()> {
    match path.symlink_metadata() {
        Ok(found) if found.file_type().is_socket() => {}
        Ok(_) => return Err(io::Error::other("it is not a socket; remove it, or choose another folder")),
        Err(_) => return Ok(()),
    }
    let looked = Instant::now();
    loop {
        match try_connect(path) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => return std::fs::remove_file(path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
            // Of a program that is killed the kernel may close the lock first.
            Ok(_) | Err(_) if looked.elapsed() < CLOSED => std::thread::sleep(TICK),
            Ok(_) | Err(_) => return Err(in_use()),
        }
    }
}

fn in_use() -> io::Error {
    io::Error::other("another program listens there; end that, or choose another folder")
}

/// Connects to a socket, and does not wait for its program.
///
/// # Errors
/// The operating system's: [`io::ErrorKind::WouldBlock`] if as many as it takes wait already.
pub fn try_connect(path: &Path) -> io::Result<UnixStream> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    unix_path::connect(&socket, path)?;
    Ok(socket.into())
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
pub struct Controlled {
    state: Mutex<State>,
    file: Arc<File>,
}

impl Controlled {
    /// Of a program that waits for a run of this experiment.
    pub fn new(file: Arc<File>) -> Controlled {
        let (life, boards) = (Life::new(), json!([]));
        Controlled { state: Mutex::new(State { life, begun: Instant::now(), boards, bytes: 0 }), file }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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

impl State {
    fn json(&self) -> Value {
        let mut all = self.life.json();
        if self.life.goes_on() {
            all["seconds"] = self.begun.elapsed().as_secs_f64().into();
        }
        all["bytes"] = self.bytes.into();
        all["boards"] = self.boards.clone();
        all
    }

    /// What goes on behind this step.
    fn ask(&mut self, event: Event) -> Result<Value, Refused> {
        self.life.step(event).map_err(|refused| Refused::Now(refused.to_string()))?;
        Ok(self.json())
    }
}

impl Control for Controlled {
    fn state(&self) -> Value {
        self.lock().json()
    }

    fn start(&self, file: Option<&IfMatch>) -> Result<Value, Refused> {
        let mut state = self.lock();
        if !state.life.goes_on() {
            // Its user would have a run with settings that are not in it.
            let path = self.file.path.display();
            if self.file.has_changed() {
                return Err(Refused::Now(format!(
                    "{path} has changed since `fadelink run` has read it; end that program, and start it again"
                )));
            }
            if file.is_some_and(|file| !file.precondition_passes(&self.file.tag())) {
                return Err(Refused::Condition(format!(
                    "`fadelink run` has read {path}, which differs from this file; end that program, and start it with this file"
                )));
            }
        }
        state.ask(Event::Start)
    }

    fn stop(&self) -> Result<Value, Refused> {
        self.lock().ask(Event::Stop)
    }
}

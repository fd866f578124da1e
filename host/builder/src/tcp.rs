//! The connections of crates: they open them, as TCP senders do (docs/protocol/tcp_sender.md).

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use fadelink_wire::fadc::Header;
use serde::Serialize;

use crate::event::Bytes;
use crate::reader::{Counts, MessageReader};

/// How often the listener looks whether it is to end.
const TICK: Duration = Duration::from_millis(20);
/// A connection that is silent for so long when the end was asked for is given up: its crate is gone.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where messages go.
pub trait Take: Send + Sync {
    /// A connection begins, in a thread of its own.
    fn open(self: Arc<Self>) -> Box<dyn Messages>;
}

/// Takes what one connection gives; is dropped when that has ended.
pub trait Messages: Send {
    /// The connection is this source's.
    fn begin(&mut self, source: u32);
    /// Whole messages, in order; `messages` is empty then.
    ///
    /// # Errors
    /// No more can be taken: the connection is closed.
    fn take(&mut self, messages: &mut Vec<Bytes>) -> io::Result<()>;
}

/// What came over a connection.
#[derive(Debug, Clone, Serialize)]
pub struct Connection {
    /// The other end.
    pub peer: SocketAddr,
    /// Of its first message.
    pub source: Option<String>,
    /// What it held.
    #[serde(flatten)]
    pub counts: Counts,
    /// True when it has ended.
    pub ended: bool,
    /// Why, where not by the crate.
    pub error: Option<String>,
}

/// A connection, and its socket while it is open.
type Entry = (Connection, Option<TcpStream>);

struct Shared {
    connections: Mutex<Vec<Entry>>,
    stopping: AtomicBool,
    /// Connections that could not be accepted.
    refused: AtomicU64,
    take: Arc<dyn Take>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection that is none: its crate tries again.
    fn refuse(&self, error: &io::Error) {
        if self.refused.fetch_add(1, Ordering::Relaxed) == 0 {
            eprintln!("fadelink: a connection could not be accepted: {error}; this goes on being tried");
        }
        thread::sleep(TICK);
    }
}

/// Accepts connections until it is stopped.
pub struct Server {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

fn is_silence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

fn prepare(socket: &TcpStream) -> io::Result<TcpStream> {
    socket.set_nonblocking(false)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.try_clone()
}

fn receive(shared: &Shared, index: usize, socket: TcpStream, mut take: Box<dyn Messages>) -> io::Result<()> {
    let mut reader = MessageReader::new(socket);
    let mut messages = Vec::new();
    let result = loop {
        let more = reader.next_messages(&mut messages);
        if let Some(first) = messages.first() {
            let mut connections = shared.lock();
            let connection = &mut connections[index].0;
            connection.counts = *reader.counts();
            if connection.source.is_none() {
                let source = Header::parse(first).map_or(0, |header| header.source_id);
                connection.source = Some(format!("{source:#010x}"));
                drop(connections);
                take.begin(source);
            }
        }
        if let Err(error) = take.take(&mut messages) {
            break Err(error);
        }
        match more {
            Ok(true) => {}
            Ok(false) => break Ok(()),
            Err(error) if is_silence(&error) && !shared.stopping.load(Ordering::Relaxed) => {}
            Err(error) => break Err(error),
        }
    };
    reader.give_up();
    shared.lock()[index].0.counts = *reader.counts();
    result
}

/// Gives a connection a thread.
fn serve(shared: &Arc<Shared>, socket: TcpStream, peer: SocketAddr) -> io::Result<JoinHandle<()>> {
    let handle = prepare(&socket)?;
    let connection = Connection { peer, source: None, counts: Counts::default(), ended: false, error: None };
    let mut connections = shared.lock();
    let index = connections.len();
    let own = shared.clone();
    let take = shared.take.clone().open();
    // The thread waits for the lock, so it finds its entry.
    let thread = thread::Builder::new().name("connection".into()).spawn(move || {
        let result = receive(&own, index, socket, take);
        let (connection, handle) = &mut own.lock()[index];
        connection.ended = true;
        connection.error = result.err().map(|error| match is_silence(&error) {
            true => format!("nothing came for {} s after the end was asked for", PATIENCE.as_secs()),
            false => error.to_string(),
        });
        *handle = None;
    })?;
    if shared.stopping.load(Ordering::Relaxed) {
        let _ = handle.shutdown(Shutdown::Write);
    }
    connections.push((connection, Some(handle)));
    Ok(thread)
}

fn accept(shared: &Arc<Shared>, listener: &TcpListener) {
    let mut threads: Vec<JoinHandle<()>> = Vec::new();
    while !shared.stopping.load(Ordering::Relaxed) {
        match listener.accept().and_then(|(socket, peer)| serve(shared, socket, peer)) {
            Ok(thread) => threads.push(thread),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                threads.retain(|thread| !thread.is_finished());
                thread::sleep(TICK);
            }
            Err(error) => shared.refuse(&error),
        }
    }
    for thread in threads {
        let _ = thread.join();
    }
}

impl Server {
    /// Listens on `address`.
    ///
    /// # Errors
    /// The address is not to be had.
    pub fn listen(address: SocketAddr, take: Arc<dyn Take>) -> io::Result<Server> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let shared = Arc::new(Shared {
            connections: Mutex::default(),
            stopping: AtomicBool::new(false),
            refused: AtomicU64::new(0),
            take,
        });
        let accepting = shared.clone();
        let thread = thread::Builder::new().name("accept".into()).spawn(move || accept(&accepting, &listener))?;
        Ok(Server { shared, thread: Some(thread) })
    }

    /// The connections until now.
    pub fn connections(&self) -> Vec<Connection> {
        self.shared.lock().iter().map(|(connection, _)| connection.clone()).collect()
    }

    /// Times that a connection could not be accepted, as for want of descriptors.
    pub fn refused(&self) -> u64 {
        self.shared.refused.load(Ordering::Relaxed)
    }

    /// Accepts no more connections and asks the crates for the end.
    pub fn stop(&self) {
        if self.shared.stopping.swap(true, Ordering::Relaxed) {
            return;
        }
        for socket in self.shared.lock().iter().filter_map(|(_, socket)| socket.as_ref()) {
            let _ = socket.shutdown(Shutdown::Write);
        }
    }

    /// Waits for the end of all connections.
    pub fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

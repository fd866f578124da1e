//! The connections of crates: they open them, as TCP senders do (docs/protocol/tcp_sender.md).

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
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

/// Takes what connections give, from a thread of each.
pub trait Take: Send + Sync {
    /// A connection begins.
    fn open(&self);
    /// It is this source's.
    fn begin(&self, source: u32);
    /// Whole messages, in order; `messages` is empty then.
    ///
    /// # Errors
    /// No more can be taken: the connection is closed.
    fn take(&self, messages: &mut Vec<Bytes>) -> io::Result<()>;
    /// The connection has ended.
    fn close(&self);
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

struct Shared {
    connections: Mutex<Vec<(Connection, TcpStream)>>,
    stopping: AtomicBool,
    take: Arc<dyn Take>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Vec<(Connection, TcpStream)>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
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

fn receive(shared: &Shared, index: usize, socket: TcpStream) -> io::Result<()> {
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
                shared.take.begin(source);
            }
        }
        if let Err(error) = shared.take.take(&mut messages) {
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

fn accept(shared: &Arc<Shared>, listener: &TcpListener) {
    let mut threads = Vec::new();
    while !shared.stopping.load(Ordering::Relaxed) {
        let (socket, peer) = match listener.accept() {
            Ok(accepted) => accepted,
            Err(_) => {
                thread::sleep(TICK);
                continue;
            }
        };
        let Ok(handle) = prepare(&socket) else { continue };
        let connection = Connection { peer, source: None, counts: Counts::default(), ended: false, error: None };
        let mut connections = shared.lock();
        let index = connections.len();
        connections.push((connection, handle));
        drop(connections);
        shared.take.open();
        let shared = shared.clone();
        threads.push(thread::spawn(move || {
            let result = receive(&shared, index, socket);
            let connection = &mut shared.lock()[index].0;
            connection.ended = true;
            connection.error = result.err().map(|error| match is_silence(&error) {
                true => format!("nothing came for {} s after the end was asked for", PATIENCE.as_secs()),
                false => error.to_string(),
            });
            shared.take.close();
        }));
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
        let shared = Arc::new(Shared { connections: Mutex::default(), stopping: AtomicBool::new(false), take });
        let accepting = shared.clone();
        let thread = thread::Builder::new().name("accept".into()).spawn(move || accept(&accepting, &listener))?;
        Ok(Server { shared, thread: Some(thread) })
    }

    /// The connections until now.
    pub fn connections(&self) -> Vec<Connection> {
        self.shared.lock().iter().map(|(connection, _)| connection.clone()).collect()
    }

    /// Accepts no more connections and asks the crates for the end.
    pub fn stop(&self) {
        if self.shared.stopping.swap(true, Ordering::Relaxed) {
            return;
        }
        for (connection, socket) in self.shared.lock().iter() {
            if !connection.ended {
                let _ = socket.shutdown(Shutdown::Write);
            }
        }
    }

    /// Waits for the end of all connections.
    pub fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

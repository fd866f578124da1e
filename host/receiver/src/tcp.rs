//! Connections that boards open; each has its own thread.
//!
//! When this side closes its direction, a board sends what it has, then closes, too (docs/protocol/tcp_sender.md).

use std::collections::BTreeMap;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use rustix::net::sockopt::set_socket_recv_buffer_size;

use crate::wake::poll;

/// How often the listener looks whether it is to end.
const TICK: Duration = Duration::from_millis(20);

/// Serves one connection, in its thread.
pub type Service = Box<dyn FnOnce(&Arc<TcpStream>) + Send>;

/// What the next connection needs, made before it is accepted: without it, the connection waits in the kernel. Called in
/// the order of the connections, with the connection and the address of the other end.
pub type Prepared = Box<dyn FnOnce(&Arc<TcpStream>, SocketAddr) -> Service>;

struct ServerState {
    /// Of connections that are open.
    sockets: Mutex<BTreeMap<u64, Arc<TcpStream>>>,
    closing: AtomicBool,
    accepted: AtomicU64,
    refused: AtomicU64,
    prepare: Box<dyn Fn() -> io::Result<Prepared> + Send + Sync>,
}

impl ServerState {
    fn sockets(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<TcpStream>>> {
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection that could not be accepted: its board tries again.
    fn refuse(&self, error: &io::Error) {
        if self.refused.fetch_add(1, Ordering::Relaxed) == 0 {
            tracing::warn!("a connection could not be accepted: {error}; trying again");
        }
        std::thread::sleep(TICK);
    }
}

/// Accepts connections until it is stopped.
pub struct Server {
    shared: Arc<ServerState>,
    accepting: Option<JoinHandle<Vec<JoinHandle<()>>>>,
    serving: Vec<JoinHandle<()>>,
}

/// A connection in the list of those that are open, until this is dropped.
struct Entry(Arc<ServerState>, u64);

impl Drop for Entry {
    fn drop(&mut self) {
        self.0.sockets().remove(&self.1);
    }
}

/// Gives a connection a thread.
fn serve(
    shared: &Arc<ServerState>,
    prepared: Prepared,
    socket: TcpStream,
    peer: SocketAddr,
) -> io::Result<JoinHandle<()>> {
    socket.set_nonblocking(false)?;
    let number = shared.accepted.load(Ordering::Relaxed);
    let socket = Arc::new(socket);
    shared.sockets().insert(number, socket.clone());
    let (entry, service) = (Entry(shared.clone(), number), prepared(&socket, peer));
    let thread = Builder::new().name("connection".into()).spawn(move || {
        // It leaves the list however it ends.
        let _entry = entry;
        service(&socket);
    })?;
    shared.accepted.fetch_add(1, Ordering::Relaxed);
    Ok(thread)
}

fn accept(shared: &Arc<ServerState>, listener: &TcpListener) -> Vec<JoinHandle<()>> {
    let mut threads: Vec<JoinHandle<()>> = Vec::new();
    let mut prepared = None;
    while !shared.closing.load(Ordering::Relaxed) {
        let mut accept = || {
            let next = match prepared.take() {
                Some(next) => next,
                None => (shared.prepare)()?,
            };
            match listener.accept() {
                Ok((socket, peer)) => serve(shared, next, socket, peer),
                Err(error) => {
                    prepared = Some(next);
                    Err(error)
                }
            }
        };
        match accept() {
            Ok(thread) => threads.push(thread),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                threads.retain(|thread| !thread.is_finished());
                poll(&mut [(listener.as_fd(), false)], Some(TICK));
            }
            Err(error) => shared.refuse(&error),
        }
    }
    threads
}

impl Server {
    /// Listens on `address`; `prepare` makes what each connection needs. `receive_buffer`: of each socket in bytes; without it the
    /// kernel chooses.
    ///
    /// # Errors
    /// The address is not available.
    pub fn listen(
        address: SocketAddr,
        receive_buffer: Option<u32>,
        prepare: impl Fn() -> io::Result<Prepared> + Send + Sync + 'static,
    ) -> io::Result<Server> {
        let listener = TcpListener::bind(address)?;
        if let Some(bytes) = receive_buffer {
            // Connections have it of the listener.
            set_socket_recv_buffer_size(&listener, bytes as usize)?;
        }
        listener.set_nonblocking(true)?;
        let shared = Arc::new(ServerState {
            sockets: Mutex::default(),
            closing: AtomicBool::new(false),
            accepted: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            prepare: Box::new(prepare),
        });
        let own = shared.clone();
        let accepting = Builder::new().name("accept".into()).spawn(move || accept(&own, &listener))?;
        Ok(Server { shared, accepting: Some(accepting), serving: Vec::new() })
    }

    /// Times that a connection could not be accepted, as when the process has no free file descriptor.
    pub fn refused(&self) -> u64 {
        self.shared.refused.load(Ordering::Relaxed)
    }

    /// Accepts no more connections. When this returns no more is opened.
    pub fn close(&mut self) {
        self.shared.closing.store(true, Ordering::Relaxed);
        if let Some(accepting) = self.accepting.take() {
            self.serving = accepting.join().unwrap_or_default();
        }
    }

    /// Accepts no more connections, and asks the boards for the end.
    pub fn stop(&mut self) {
        self.close();
        for socket in self.shared.sockets().values() {
            let _ = socket.shutdown(Shutdown::Write);
        }
    }

    /// Stops, and waits for no board any more: the connections are broken.
    pub fn abort(&mut self) {
        self.close();
        for socket in self.shared.sockets().values() {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    /// True if no connection is served any more.
    pub fn is_idle(&self) -> bool {
        self.shared.sockets().is_empty()
    }

    /// Stops, and waits for the ends of all connections.
    pub fn join(mut self) {
        self.stop();
        for thread in self.serving.drain(..) {
            let _ = thread.join();
        }
    }
}

//! Connections that boards open; each has its own thread.
//!
//! When this side closes its direction, a board sends what it has, then closes, too (docs/protocol/tcp_sender.md).
//!
//! A connection that cannot be served is not accepted: it waits in the kernel, so its board knows that nothing of it was taken.
//! There is room for [`CONNECTIONS`]; those over which nothing came make room for others.
//!
//! An end that was asked for comes within [`END`], or the connection is reset.

use std::collections::BTreeMap;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use rustix::net::sockopt::{set_socket_oobinline, set_socket_recv_buffer_size};

use crate::descriptors::{promise, Promise};
use crate::wake::poll;

mod connection;

pub use connection::{Connection, Stall, END};

/// How often the listener looks whether it is to end.
const TICK: Duration = Duration::from_millis(20);

/// Connections of a server at a time.
pub const CONNECTIONS: usize = 512;

/// Serves one connection, in its thread.
pub type Service = Box<dyn FnOnce(&Arc<Connection>) + Send>;

/// What the next connection needs, made before it is accepted: without it, the connection waits in the kernel. Called in
/// the order of the connections, with the connection and the address of the other end.
pub type Prepared = Box<dyn FnOnce(&Arc<Connection>, SocketAddr) -> Service>;

struct ServerState {
    /// Of connections that are open.
    sockets: Mutex<BTreeMap<u64, Arc<Connection>>>,
    closing: AtomicBool,
    accepted: AtomicU64,
    refused: AtomicU64,
    /// Connections that were asked for their ends to make room.
    displaced: AtomicU64,
    /// Connections were left in the kernel when the server closed.
    unserved: AtomicBool,
    /// Files that a connection is written to.
    files: u64,
    prepare: Box<dyn Fn() -> io::Result<Prepared> + Send + Sync>,
}

impl ServerState {
    fn sockets(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Connection>>> {
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks some of the connections over which nothing came to leave: the oldest.
    fn make_room(&self) {
        for socket in self.sockets().values().filter(|socket| socket.is_silent()).take(CONNECTIONS / 8) {
            if socket.leave() && self.displaced.fetch_add(1, Ordering::Relaxed) == 0 {
                tracing::warn!("there is no room for more connections; those over which nothing came are closed");
            }
        }
    }

    /// A connection that could not be accepted: its board tries again.
    fn refuse(&self, error: &io::Error) {
        if self.refused.fetch_add(1, Ordering::Relaxed) == 0 {
            tracing::warn!("a connection could not be accepted: {error}; trying again");
        }
        std::thread::sleep(TICK);
    }
}

/// What is said where [`Server::join`] has found connections that were not served.
pub const UNSERVED: &str = "connections could not be accepted until the end; what they have sent is not known";

/// Connections that are still accepted when the server closes: more than the kernel accepts before a listener of the standard library
/// does, which are 129.
const LAST: u32 = 160;

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

/// What a thread of a connection is given.
type Work = (Arc<Connection>, Service, Entry);

/// All that the next connection needs: its thread, too.
struct Ready {
    prepared: Prepared,
    files: Promise,
    descriptions: Promise,
    thread: JoinHandle<()>,
    work: SyncSender<Work>,
}

impl Ready {
    /// # Errors
    /// The operating system's: no memory, no thread, no file descriptor.
    fn new(shared: &ServerState) -> io::Result<Ready> {
        let mut files = promise(2 * shared.files)?;
        let descriptions = files.split(shared.files);
        let prepared = (shared.prepare)()?;
        let (work, given) = mpsc::sync_channel::<Work>(1);
        let thread = Builder::new().name("connection".into()).spawn(move || {
            // It leaves the list however it ends.
            if let Ok((socket, service, _entry)) = given.recv() {
                service(&socket);
            }
        })?;
        Ok(Ready { prepared, files, descriptions, thread, work })
    }

    /// Serves a connection. Nothing of this can fail: what it has sent is confirmed to it.
    fn serve(self, shared: &Arc<ServerState>, socket: TcpStream, peer: SocketAddr) -> JoinHandle<()> {
        let number = shared.accepted.fetch_add(1, Ordering::Relaxed);
        let socket = Arc::new(Connection::new(socket, self.files, self.descriptions));
        shared.sockets().insert(number, socket.clone());
        let (entry, service) = (Entry(shared.clone(), number), (self.prepared)(&socket, peer));
        // The thread waits for this alone.
        let _ = self.work.send((socket, service, entry));
        self.thread
    }
}

/// Accepts until the server closes. Boards whose connections the kernel has accepted by then may have sent data, so these are served,
/// too.
fn accept(shared: &Arc<ServerState>, listener: &TcpListener) -> Vec<JoinHandle<()>> {
    let mut threads: Vec<JoinHandle<()>> = Vec::new();
    let mut ready = None;
    let mut left = LAST;
    while left > 0 {
        let closing = shared.closing.load(Ordering::Relaxed);
        let mut waiting = [(listener.as_fd(), false)];
        poll(&mut waiting, Some(if closing || ready.is_none() { Duration::ZERO } else { TICK }));
        if closing {
            left -= 1;
            if !waiting[0].1 {
                return threads;
            }
        } else if waiting[0].1 && shared.sockets().len() >= CONNECTIONS {
            shared.make_room();
            std::thread::sleep(TICK);
            continue;
        }
        let next = match ready.take().map_or_else(|| Ready::new(shared), Ok) {
            Ok(next) => next,
            Err(error) => {
                shared.make_room();
                shared.refuse(&error);
                continue;
            }
        };
        if threads.len() >= CONNECTIONS {
            threads.retain(|thread| !thread.is_finished());
        }
        match listener.accept() {
            Ok((socket, peer)) => threads.push(next.serve(shared, socket, peer)),
            Err(error) => {
                ready = Some(next);
                if !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) {
                    shared.refuse(&error);
                }
            }
        }
    }
    shared.unserved.store(true, Ordering::Relaxed);
    threads
}

impl Server {
    /// Listens on `address`; `prepare` makes what each connection needs. `receive_buffer`: of each socket in bytes; without it the
    /// kernel chooses. `files`: those that a connection is written to, and which are opened when something has come over it
    /// ([`Connection::has_files`]).
    ///
    /// # Errors
    /// The address is not available.
    pub fn listen(
        address: SocketAddr,
        receive_buffer: Option<u32>,
        files: u64,
        prepare: impl Fn() -> io::Result<Prepared> + Send + Sync + 'static,
    ) -> io::Result<Server> {
        let listener = TcpListener::bind(address)?;
        // Connections have the options of the listener. Urgent data (RFC 6093) is numbered as all other, so it belongs where it is in
        // the stream.
        set_socket_oobinline(&listener, true)?;
        if let Some(bytes) = receive_buffer {
            set_socket_recv_buffer_size(&listener, bytes as usize)?;
        }
        listener.set_nonblocking(true)?;
        let shared = Arc::new(ServerState {
            sockets: Mutex::default(),
            closing: AtomicBool::new(false),
            accepted: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            displaced: AtomicU64::new(0),
            unserved: AtomicBool::new(false),
            files,
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

    /// Connections over which nothing came that were asked for their ends to make room.
    pub fn displaced(&self) -> u64 {
        self.shared.displaced.load(Ordering::Relaxed)
    }

    /// Accepts no more connections than there are. When this returns no more is opened.
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
            let _ = socket.ask();
        }
    }

    /// Resets connections whose end was asked for [`END`] ago and has not come. Is to be called again and again.
    pub fn end_in_time(&self) {
        self.shared.sockets().values().for_each(|socket| socket.end_in_time(END));
    }

    /// Resets all connections whose end was asked for some time ago and has not come: `why`.
    pub fn cut(&self, why: &str) {
        self.shared.sockets().values().for_each(|socket| socket.cut(why));
    }

    /// Names connections that go on long after their ends were asked for, in words.
    pub fn late(&self) -> Option<String> {
        let sockets = self.shared.sockets();
        let mut late = sockets.values().filter_map(|socket| socket.is_late());
        let first = late.next()?;
        Some(match late.count() {
            0 => first,
            more => format!("{first} ({more} more connections go on)"),
        })
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

    /// Stops, and waits for the ends of all connections. True if each that there was when the server closed was served; false if some
    /// could not be, as without a free file descriptor: what they have sent is not known.
    pub fn join(mut self) -> bool {
        self.stop();
        while !self.is_idle() {
            self.end_in_time();
            std::thread::sleep(TICK);
        }
        for thread in self.serving.drain(..) {
            let _ = thread.join();
        }
        !self.shared.unserved.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    /// The data of boards that have connected before the end was asked for is theirs, however slow the server is.
    #[test]
    fn connections_that_wait_in_the_kernel_are_served() {
        let (gate, (sender, received)) = (Arc::new(Mutex::new(())), std::sync::mpsc::channel());
        let closed = gate.lock().unwrap();
        let own = gate.clone();
        let prepare = move || {
            drop(own.lock());
            let sender = sender.clone();
            Ok(Box::new(move |_: &Arc<Connection>, _| {
                let service: Service = Box::new(move |connection| {
                    let (mut socket, mut data): (&TcpStream, _) = (connection, Vec::new());
                    let _ = socket.read_to_end(&mut data);
                    let _ = sender.send(data);
                });
                service
            }) as Prepared)
        };
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut server = Server::listen(port, None, 0, prepare).unwrap();
        for number in 0..3 {
            io::Write::write_all(&mut TcpStream::connect(port).unwrap(), &[number; 8]).unwrap();
        }
        let shared = server.shared.clone();
        let stopping = std::thread::spawn(move || {
            server.stop();
            server.join()
        });
        while !shared.closing.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
        drop(closed);
        assert!(stopping.join().unwrap());
        let mut all: Vec<_> = received.try_iter().collect();
        all.sort();
        assert_eq!(all, [0, 1, 2].map(|number| vec![number; 8]));
    }

    /// The end does not wait for what the connections need for ever, and says so.
    #[test]
    fn connections_that_cannot_be_served_are_told() {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let server = Server::listen(port, None, 0, || Err(io::Error::other("nothing is left"))).unwrap();
        let _board = TcpStream::connect(port).unwrap();
        assert!(!server.join());
    }
}

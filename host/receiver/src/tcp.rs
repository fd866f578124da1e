//! Connections that boards open; each has its own thread.
//!
//! When this side closes its direction, a board sends what it has, then closes, too (docs/protocol/tcp_sender.md).
//!
//! A connection that cannot be served is not accepted: it waits in the kernel, so its board knows that nothing of it was taken.
//! There is room for [`CONNECTIONS`]; those over which nothing came make room for others.

use std::collections::BTreeMap;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::ops::Deref;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::net::sockopt::{set_socket_oobinline, set_socket_recv_buffer_size};
use rustix::process::{getrlimit, Resource};

use crate::sockopt;
use crate::time_wait::{came_first, Ends, CLOSING};
use crate::wake::poll;

/// How often the listener looks whether it is to end.
const TICK: Duration = Duration::from_millis(20);

/// Connections of a server at a time.
pub const CONNECTIONS: usize = 512;

/// File descriptors of the process that connections leave for files, and for what else is opened.
const RESERVE: u64 = 128;

/// A connection that was asked for its end to make room, and over which nothing comes for so long, is broken.
const LEAVE: Duration = Duration::from_secs(2);

/// A connection, and whether its end was asked for.
#[derive(Debug)]
pub struct Connection {
    socket: TcpStream,
    /// `None`: it was closed before it was served.
    ends: Option<Ends>,
    /// `None`: not yet; false: when that was done, the other end had closed already.
    asked: Mutex<Option<bool>>,
    /// When it was asked, to make room for others.
    leaves: OnceLock<Instant>,
}

/// What TCP reports of a connection (struct tcp_info of Linux), as far as it is used.
#[repr(C)]
struct Info {
    state: u8,
    _between: [u8; 127],
    bytes_received: u64,
}

impl Connection {
    fn new(socket: TcpStream) -> Connection {
        Connection { ends: Ends::of(&socket).ok(), socket, asked: Mutex::new(None), leaves: OnceLock::new() }
    }

    fn asked(&self) -> MutexGuard<'_, Option<bool>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the board for the end, once.
    ///
    /// # Errors
    /// The connection is broken.
    pub fn ask(&self) -> io::Result<()> {
        let mut asked = self.asked();
        if asked.is_some() {
            return Ok(());
        }
        let was_closed = self.is_closed();
        *asked = Some(!was_closed);
        self.socket.shutdown(Shutdown::Write)?;
        *asked = Some(!came_first(was_closed, self.info()?.state, || self.ends.as_ref().is_some_and(Ends::wait)));
        Ok(())
    }

    /// What TCP is doing with it (RFC 9293, 3.3.2), as Linux numbers it, and what has come.
    fn info(&self) -> io::Result<Info> {
        let mut info = Info { state: 0, _between: [0; 127], bytes_received: 0 };
        sockopt::get(&self.socket, libc::IPPROTO_TCP, libc::TCP_INFO, &mut info, "the state of a connection")?;
        Ok(info)
    }

    /// Nothing has come over it.
    fn is_silent(&self) -> bool {
        self.info().is_ok_and(|info| info.bytes_received == 0)
    }

    /// Asks it for its end, to make room; true the first time. If something comes nevertheless, it is served as all others.
    fn leave(&self) -> bool {
        if let Some(since) = self.leaves.get() {
            if since.elapsed() >= LEAVE {
                // What comes from now on is not confirmed: its board learns that the connection is broken.
                let _ = self.socket.shutdown(Shutdown::Both);
            }
            return false;
        }
        let _ = self.leaves.set(Instant::now());
        // Of a connection that is broken, its reader learns it, too.
        let _ = self.ask();
        true
    }

    /// It was asked to make room.
    pub fn has_left(&self) -> bool {
        self.leaves.get().is_some()
    }

    /// FIN of the other end, which has just come, is the answer to [`Connection::ask`]: it has not crossed ours on the way. One that had to
    /// make room has said nothing of the end of its data.
    pub fn was_asked(&self) -> bool {
        let has_crossed = || self.info().map_or(true, |info| info.state == CLOSING);
        *self.asked() == Some(true) && !self.has_left() && !has_crossed()
    }

    /// Data has come that was not read yet.
    pub fn is_unread(&self) -> bool {
        rustix::io::ioctl_fionread(&self.socket).is_ok_and(|bytes| bytes > 0)
    }

    /// FIN has come, perhaps behind data that was not read yet.
    pub fn is_closed(&self) -> bool {
        let mut polls = [PollFd::new(&self.socket, PollFlags::RDHUP)];
        let ready = rustix::event::poll(&mut polls, Some(&Timespec::default())).unwrap_or(0);
        ready > 0 && polls[0].revents().contains(PollFlags::RDHUP)
    }
}

impl Deref for Connection {
    type Target = TcpStream;

    fn deref(&self) -> &TcpStream {
        &self.socket
    }
}

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

/// A descriptor has the lowest number that is free, so its number tells how many there are.
///
/// # Errors
/// The last ones of the process are not for connections.
fn leave_reserve(listener: &TcpListener) -> io::Result<()> {
    let next = listener.try_clone()?.as_raw_fd() as u64;
    match getrlimit(Resource::Nofile).current {
        Some(limit) if next + RESERVE.min(limit / 4) >= limit => Err(io::Error::other(format!(
            "{next} file descriptors are open, and the last ones of {limit} are kept for files (ulimit -n)"
        ))),
        _ => Ok(()),
    }
}

/// What a thread of a connection is given.
type Work = (Arc<Connection>, Service, Entry);

/// All that the next connection needs: its thread, too.
struct Ready {
    prepared: Prepared,
    thread: JoinHandle<()>,
    work: SyncSender<Work>,
}

impl Ready {
    /// # Errors
    /// The operating system's: no memory, no thread, no file descriptor.
    fn new(shared: &ServerState, listener: &TcpListener) -> io::Result<Ready> {
        leave_reserve(listener)?;
        let prepared = (shared.prepare)()?;
        let (work, given) = mpsc::sync_channel::<Work>(1);
        let thread = Builder::new().name("connection".into()).spawn(move || {
            // It leaves the list however it ends.
            if let Ok((socket, service, _entry)) = given.recv() {
                service(&socket);
            }
        })?;
        Ok(Ready { prepared, thread, work })
    }

    /// Serves a connection. Nothing of this can fail: what it has sent is confirmed to it.
    fn serve(self, shared: &Arc<ServerState>, socket: TcpStream, peer: SocketAddr) -> JoinHandle<()> {
        let number = shared.accepted.fetch_add(1, Ordering::Relaxed);
        let socket = Arc::new(Connection::new(socket));
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
        let next = match ready.take().map_or_else(|| Ready::new(shared, listener), Ok) {
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

    fn pair() -> (Connection, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let board = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (Connection::new(listener.accept().unwrap().0), board)
    }

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
        let mut server = Server::listen(port, None, prepare).unwrap();
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
        let server = Server::listen(port, None, || Err(io::Error::other("nothing is left"))).unwrap();
        let _board = TcpStream::connect(port).unwrap();
        assert!(!server.join());
    }

    /// It may have more, which it cannot send as long as there is no room.
    #[test]
    fn an_end_to_make_room_is_not_one_that_was_asked_for() {
        let (connection, mut board) = pair();
        assert!(connection.is_silent() && connection.leave() && !connection.leave());
        io::Write::write_all(&mut board, &[7; 8]).unwrap();
        board.shutdown(Shutdown::Both).unwrap();
        assert_eq!((&*connection).read(&mut [0; 9]).unwrap(), 8, "what comes nevertheless is served");
        assert_eq!((&*connection).read(&mut [0; 9]).unwrap(), 0);
        assert!(!connection.is_silent() && !connection.was_asked());
    }

    /// Also if what the board sent before it closed is not read yet.
    #[test]
    fn an_end_that_came_first_was_not_asked_for() {
        for (board_first, was_asked) in [(true, false), (false, true)] {
            let (connection, mut board) = pair();
            io::Write::write_all(&mut board, &[7; 8]).unwrap();
            if board_first {
                board.shutdown(Shutdown::Write).unwrap();
                while !connection.is_closed() {}
            }
            assert!(!connection.was_asked());
            connection.ask().unwrap();
            assert_eq!(board.read(&mut [0]).unwrap(), 0, "it is asked in any case");
            board.shutdown(Shutdown::Both).ok();
            connection.ask().unwrap();
            assert_eq!(connection.was_asked(), was_asked);
            assert_eq!((&*connection).read(&mut [0; 9]).unwrap(), 8);
            assert_eq!((&*connection).read(&mut [0; 9]).unwrap(), 0);
        }
    }
}

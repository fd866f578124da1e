//! Connections that the library accepts. It accepts all of them, and keeps those that say nothing for 30 s, so that clients could take
//! every file descriptor of the process. Here they have 10 s for their first words, and leave at once when descriptors are scarce:
//! the library tells the descriptor of each that it accepts, and its number tells how many there are.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;

use fadelink_receiver::descriptors::{is_among_last, turn_away, Local};
use fadelink_sinks::Result;
use zmq::{Context, Socket, SocketEvent, SocketType};

/// Time for the first words of a client, in milliseconds.
const HANDSHAKE: i32 = 10_000;
/// Longest wait for an event, before it is looked whether there will be more, in milliseconds.
const LOOK: i32 = 1000;
/// Where the library tells its events, of a context.
const EVENTS: &str = "inproc://accepted";

/// Counts a connection that was turned away, of a TCP port.
pub type Count = fn(port: u16);

/// Turns connections to a socket away, until this is dropped.
pub struct Watch {
    thread: Option<JoinHandle<()>>,
    is_over: Arc<AtomicBool>,
}

impl Watch {
    /// Begins to watch a socket that is not bound yet.
    pub fn over(socket: &Socket, context: &Context) -> Result<Prepared> {
        socket.set_handshake_ivl(HANDSHAKE)?;
        socket.monitor(EVENTS, SocketEvent::ACCEPTED as i32)?;
        let events = context.socket(SocketType::PAIR)?;
        events.set_linger(0)?;
        events.set_rcvtimeo(LOOK)?;
        events.connect(EVENTS)?;
        Ok(Prepared(events))
    }

    /// No event comes any more: the socket was told so.
    pub fn end(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What a watch needs.
pub struct Prepared(Socket);

impl Prepared {
    /// Watches the connections to `endpoint`, as the library has it.
    pub fn watch(self, endpoint: &str, count: Count) -> Result<Watch> {
        let Prepared(events) = self;
        let is_over = Arc::new(AtomicBool::new(false));
        let (local, own, endpoint) = (local(endpoint), is_over.clone(), endpoint.to_owned());
        let watch = move || {
            watch(
                &events,
                &own,
                |descriptor| {
                    let Some(local) = local.as_ref().filter(|_| is_among_last(descriptor)) else { return false };
                    if !turn_away(descriptor, local) {
                        return false;
                    }
                    if let Local::Port(port) = local {
                        count(*port);
                    }
                    true
                },
                &endpoint,
            )
        };
        let thread = std::thread::Builder::new().name("zmq-watch".into()).spawn(watch)?;
        Ok(Watch { thread: Some(thread), is_over })
    }
}

/// Where connections to an endpoint are at this side.
fn local(endpoint: &str) -> Option<Local> {
    match endpoint.split_once("://")? {
        ("tcp", place) => place.rsplit_once(':')?.1.parse().ok().map(Local::Port),
        ("ipc", path) => Some(Local::Path(PathBuf::from(path))),
        _ => None,
    }
}

/// Takes events until there are no more. `look` gets the descriptor of each connection; true: it has to leave.
fn watch(events: &Socket, is_over: &AtomicBool, look: impl Fn(i32) -> bool, endpoint: &str) {
    let mut is_told = false;
    loop {
        let parts = match events.recv_multipart(0) {
            Ok(parts) => parts,
            Err(zmq::Error::EAGAIN | zmq::Error::EINTR) if !is_over.load(Ordering::Relaxed) => continue,
            Err(_) => return,
        };
        // Its number and its value, which is the descriptor (zmq_socket_monitor(3)).
        let Some((number, value)) = parts.first().and_then(|part| part.split_first_chunk::<2>()) else { return };
        let (number, value) = (u16::from_ne_bytes(*number), <[u8; 4]>::try_from(value).map(i32::from_ne_bytes));
        match value {
            Ok(descriptor) if number == SocketEvent::ACCEPTED.to_raw() => {
                if look(descriptor) && !is_told {
                    is_told = true;
                    tracing::warn!("{endpoint}: there are too few file descriptors for more clients (ulimit -n); they are turned away");
                }
            }
            // It was stopped.
            _ => return,
        }
    }
}

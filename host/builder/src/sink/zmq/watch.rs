//! Connections that the library accepts. It accepts all of them, keeps those that say nothing for 30 s, and keeps all that they subscribe
//! to: clients could take every file descriptor of the process, and its memory. Here they have 10 s for their first words, leave at once
//! when descriptors are scarce, and leave when they say more than subscribers have to say: the library tells the descriptor of each that
//! it accepts, and its number tells how many there are.

use std::collections::BTreeMap;
use std::os::fd::RawFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fadelink_receiver::descriptors::{came, is_among_last, turn_away, Local};
use fadelink_sinks::Result;
use zmq::{Context, Socket, SocketEvent, SocketType};

/// Time for the first words of a client, in milliseconds.
const HANDSHAKE: i32 = 10_000;
/// How often clients are looked at.
const LOOK: Duration = Duration::from_millis(50);
/// Clients of an endpoint at a time.
const CLIENTS: usize = 512;
/// Bytes that a client may say, and how many more each second: the library answers who asks whether it is there. What they subscribe to is
/// bounded for all of them elsewhere, too.
const BYTES: u64 = 8 << 10;
const BYTES_PER_SECOND: u64 = 128;
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
        events.set_rcvtimeo(LOOK.as_millis() as i32)?;
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
        let own = is_over.clone();
        let mut clients = local(endpoint).map(|local| Clients::of(endpoint, local, count));
        let watch = move || {
            watch(&events, &own, |accepted| {
                let Some(clients) = &mut clients else { return };
                match accepted {
                    Some(descriptor) => clients.accept(descriptor),
                    None => clients.look(),
                }
            });
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

/// Why a client has to leave.
#[derive(Clone, Copy)]
enum Why {
    Descriptors,
    Clients,
    Words,
}

/// The connections of an endpoint.
struct Clients {
    endpoint: String,
    local: Local,
    count: Count,
    /// Since when each is there; `None`: it was turned away, and the library, which may not read of it now, has not closed it yet.
    all: BTreeMap<RawFd, Option<Instant>>,
    /// Reasons that were told.
    told: [bool; 3],
}

impl Clients {
    fn of(endpoint: &str, local: Local, count: Count) -> Clients {
        Clients { endpoint: endpoint.to_owned(), local, count, all: BTreeMap::new(), told: [false; 3] }
    }

    fn accept(&mut self, descriptor: RawFd) {
        // The one that had this number is gone.
        self.all.insert(descriptor, Some(Instant::now()));
        if is_among_last(descriptor) {
            self.turn_away(descriptor, Why::Descriptors);
        } else if self.all.len() > CLIENTS {
            self.turn_away(descriptor, Why::Clients);
        }
    }

    fn turn_away(&mut self, descriptor: RawFd, why: Why) {
        if !turn_away(descriptor, &self.local) {
            self.all.remove(&descriptor);
            return;
        }
        self.all.insert(descriptor, None);
        if let Local::Port(port) = self.local {
            (self.count)(port);
        }
        if !std::mem::replace(&mut self.told[why as usize], true) {
            let what = match why {
                Why::Descriptors => "there are too few file descriptors for more clients (ulimit -n)",
                Why::Clients => "there are too many clients",
                Why::Words => "a client has sent more than subscribers have to say",
            };
            tracing::warn!("{}: {what}; such clients are turned away", self.endpoint);
        }
    }

    /// Looks at what they have said.
    fn look(&mut self) {
        let (local, all) = (&self.local, &mut self.all);
        let mut loud = Vec::new();
        all.retain(|descriptor, since| {
            let bytes = came(*descriptor, local);
            let may = since.map(|since| BYTES + since.elapsed().as_secs() * BYTES_PER_SECOND);
            loud.extend(bytes.zip(may).filter(|(bytes, may)| bytes > may).map(|_| *descriptor));
            bytes.is_some()
        });
        for descriptor in loud {
            self.turn_away(descriptor, Why::Words);
        }
    }
}

/// Takes events until there are no more. `look` gets the descriptor of each connection, and `None` from time to time.
fn watch(events: &Socket, is_over: &AtomicBool, mut look: impl FnMut(Option<RawFd>)) {
    let mut looked = Instant::now();
    loop {
        if looked.elapsed() >= LOOK {
            looked = Instant::now();
            look(None);
        }
        let parts = match events.recv_multipart(0) {
            Ok(parts) => parts,
            Err(zmq::Error::EAGAIN | zmq::Error::EINTR) if !is_over.load(Ordering::Relaxed) => continue,
            Err(_) => return,
        };
        // Its number and its value, which is the descriptor (zmq_socket_monitor(3)).
        let Some((number, value)) = parts.first().and_then(|part| part.split_first_chunk::<2>()) else { return };
        let (number, value) = (u16::from_ne_bytes(*number), <[u8; 4]>::try_from(value).map(i32::from_ne_bytes));
        match value {
            Ok(descriptor) if number == SocketEvent::ACCEPTED.to_raw() => look(Some(descriptor)),
            // It was stopped.
            _ => return,
        }
    }
}

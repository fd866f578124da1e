//! Connections that the library accepts. It accepts all of them, keeps those that say nothing for 30 s, and keeps all that they subscribe
//! to: clients could take every file descriptor of the process, its memory, and its time, for what one leaves is looked for in all that
//! the others have subscribed to. Here they have 10 s for their first words, leave at once when descriptors are scarce, and leave when
//! they say more than subscribers have to say: the library tells the descriptor of each that it accepts, and its number tells how many
//! there are. Before a client may say anything the library asks whether it may come (ZAP, ZeroMQ RFC 27): not too many may in a second.

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
/// How many may come together, and behind these in each second.
const CLIENTS_AT_ONCE: f64 = 1024.0;
const CLIENTS_PER_SECOND: f64 = 128.0;
/// Bytes that a client may say, and how many more each second: the library answers who asks whether it is there. What they subscribe to is
/// bounded for all of them elsewhere, too.
const BYTES: u64 = 8 << 10;
const BYTES_PER_SECOND: u64 = 128;
/// Where the library tells its events, of a context.
const EVENTS: &str = "inproc://accepted";
/// Where it asks for each client, of a context (ZeroMQ RFC 27).
const ZAP: &str = "inproc://zeromq.zap.01";
const ZAP_VERSION: &[u8] = b"1.0";

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
        events.connect(EVENTS)?;
        let questions = context.socket(SocketType::REP)?;
        questions.set_linger(0)?;
        questions.bind(ZAP)?;
        // Without a domain it does not ask.
        socket.set_zap_domain("fadelink")?;
        Ok(Prepared { events, questions })
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
pub struct Prepared {
    events: Socket,
    questions: Socket,
}

impl Prepared {
    /// Watches the connections to `endpoint`, as the library has it. `look` looks after what else they have, again and again.
    pub fn watch(self, endpoint: &str, count: Count, mut look: impl FnMut() + Send + 'static) -> Result<Watch> {
        let is_over = Arc::new(AtomicBool::new(false));
        let own = is_over.clone();
        let mut clients = Clients::of(endpoint, count);
        let watch = move || {
            let mut looked = Instant::now();
            while !own.load(Ordering::Relaxed) {
                if self.turn(&mut clients).is_err() {
                    return;
                }
                if looked.elapsed() >= LOOK {
                    clients.look();
                    look();
                    looked = Instant::now();
                }
            }
        };
        let thread = std::thread::Builder::new().name("zmq-watch".into()).spawn(watch)?;
        Ok(Watch { thread: Some(thread), is_over })
    }

    /// Takes what the library tells and asks, and waits for it a while.
    fn turn(&self, clients: &mut Clients) -> zmq::Result<()> {
        let mut both = [&self.events, &self.questions].map(|socket| socket.as_poll_item(zmq::POLLIN));
        match zmq::poll(&mut both, LOOK.as_millis() as i64) {
            Ok(_) | Err(zmq::Error::EINTR) => {}
            Err(error) => return Err(error),
        }
        if both[0].is_readable() {
            let parts = self.events.recv_multipart(0)?;
            // Its number and its value, which is the descriptor (zmq_socket_monitor(3)).
            let first = parts.first().and_then(|part| part.split_first_chunk::<2>());
            let Some((number, value)) = first else { return Ok(()) };
            let (number, value) = (u16::from_ne_bytes(*number), <[u8; 4]>::try_from(value).map(i32::from_ne_bytes));
            match value {
                Ok(descriptor) if number == SocketEvent::ACCEPTED.to_raw() => clients.accept(descriptor),
                _ => {}
            }
        } else if both[1].is_readable() {
            let question = self.questions.recv_multipart(0)?;
            let id = question.get(1).map_or(&[][..], |id| id);
            // Who is refused for now says no more, and has to connect again.
            let (code, text): (&[u8], &[u8]) = if clients.may_come() { (b"200", b"OK") } else { (b"300", b"too fast") };
            let nobody: &[u8] = b"";
            let answer = [ZAP_VERSION, id, code, text, nobody, nobody];
            self.questions.send_multipart(answer, 0)?;
        }
        Ok(())
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
    Fast,
}

/// The connections of an endpoint.
struct Clients {
    endpoint: String,
    /// `None`: it has no connections.
    local: Option<Local>,
    count: Count,
    /// Since when each is there; `None`: it was turned away, and the library, which may not read of it now, has not closed it yet.
    all: BTreeMap<RawFd, Option<Instant>>,
    /// Reasons that were told.
    told: [bool; 4],
    /// How many more may come, as of that moment.
    room: (f64, Instant),
}

impl Clients {
    fn of(endpoint: &str, count: Count) -> Clients {
        let room = (CLIENTS_AT_ONCE, Instant::now());
        let (endpoint, local) = (endpoint.to_owned(), local(endpoint));
        Clients { endpoint, local, count, all: BTreeMap::new(), told: [false; 4], room }
    }

    /// Whether one more may come now.
    fn may_come(&mut self) -> bool {
        let (room, since) = self.room;
        let room = (room + since.elapsed().as_secs_f64() * CLIENTS_PER_SECOND).min(CLIENTS_AT_ONCE);
        let may_come = room >= 1.0;
        self.room = (if may_come { room - 1.0 } else { room }, Instant::now());
        if !may_come {
            self.tell(Why::Fast);
        }
        may_come
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
        let Some(local) = &self.local else { return };
        if turn_away(descriptor, local) {
            self.all.insert(descriptor, None);
            self.tell(why);
        } else {
            self.all.remove(&descriptor);
        }
    }

    /// One was turned away.
    fn tell(&mut self, why: Why) {
        if let Some(Local::Port(port)) = self.local {
            (self.count)(port);
        }
        if !std::mem::replace(&mut self.told[why as usize], true) {
            let what = match why {
                Why::Descriptors => "there are too few file descriptors for more clients (ulimit -n)",
                Why::Clients => "there are too many clients",
                Why::Words => "a client has sent more than subscribers have to say",
                Why::Fast => "clients come too fast",
            };
            tracing::warn!("{}: {what}; such clients are turned away", self.endpoint);
        }
    }

    /// Looks at what they have said.
    fn look(&mut self) {
        let (Some(local), all) = (&self.local, &mut self.all) else { return };
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

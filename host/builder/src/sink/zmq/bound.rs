//! A socket that clients connect to. Its sink sends. Its watch looks after what clients have left and asked for, which the library does
//! only when it is called, and ends the socket if they ask for too much.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fadelink_sinks::Result;
use zmq::{Context, Socket, SocketType};

use super::endpoint;
use super::lent::Message;
use super::subscriptions::Subscriptions;
use super::watch::{Count, Watch};

/// Longest time in which it is tried to send something; then is looked whether the builder is to end.
pub const PATIENCE: Duration = Duration::from_millis(100);
/// Largest message of a client: a subscription.
const SUBSCRIPTION_BYTES: i64 = 1 << 10;
/// Messages of a client that wait until they are looked at, and bytes before them in the kernel.
const SUBSCRIPTIONS: i32 = 16;
const RECEIVE_BUFFER: i32 = 1 << 16;

fn milliseconds(time: Duration) -> i32 {
    time.as_millis() as i32
}

/// The socket, for one thread at a time.
struct Shared {
    /// Until all clients had to leave, for they have subscribed to too much.
    socket: Option<Socket>,
    /// Of a PUB socket.
    subscriptions: Option<Subscriptions>,
}

impl Shared {
    /// Looks after the clients. All have to leave if they take too much.
    fn look(&mut self) {
        let Some(socket) = &self.socket else { return };
        // An error of the socket is told when something is sent.
        let _ = match &mut self.subscriptions {
            Some(subscriptions) => subscriptions.hear(socket),
            None => socket.get_events().map(drop),
        };
        if self.subscriptions.as_ref().is_some_and(Subscriptions::are_too_many) {
            // The library ends it by itself.
            self.socket = None;
        }
    }
}

/// A bound socket. It ends before its context, which waits for it.
pub struct Bound {
    shared: Arc<Mutex<Shared>>,
    watch: Watch,
    _context: Context,
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Bound {
    /// Binds a socket; `events` may wait for each client. Gives the endpoint as the library has it, too.
    ///
    /// # Errors
    /// The endpoint is in use, or none of this computer.
    pub fn open(kind: SocketType, endpoint: &str, events: u64, turned_away: Count) -> Result<(Bound, String)> {
        let context = Context::new();
        let socket = context.socket(kind)?;
        socket.set_linger(0)?;
        socket.set_sndtimeo(milliseconds(PATIENCE))?;
        socket.set_maxmsgsize(SUBSCRIPTION_BYTES)?;
        socket.set_rcvhwm(SUBSCRIPTIONS)?;
        socket.set_rcvbuf(RECEIVE_BUFFER)?;
        socket.set_sndhwm(events.clamp(1, i32::MAX as u64) as i32)?;
        let watch = Watch::over(&socket, &context)?;
        endpoint::bind(&socket, endpoint)?;
        let endpoint = socket.get_last_endpoint()?.unwrap_or_else(|_| endpoint.to_owned());
        let subscriptions = (kind == SocketType::XPUB).then(Subscriptions::default);
        let shared = Shared { socket: Some(socket), subscriptions };
        let shared = Arc::new(Mutex::new(shared));
        let own = shared.clone();
        // While something is sent the library looks after clients itself.
        let look = move || own.try_lock().into_iter().for_each(|mut shared| shared.look());
        let watch = watch.watch(&endpoint, turned_away, look)?;
        Ok((Bound { shared, watch, _context: context }, endpoint))
    }

    /// True if all clients had to leave, for they have subscribed to too much.
    pub fn is_shut(&self) -> bool {
        lock(&self.shared).socket.is_none()
    }

    /// Sends a message.
    ///
    /// # Errors
    /// It was not taken; it may be sent again.
    pub fn send(&self, message: &mut Message) -> zmq::Result<()> {
        match &mut lock(&self.shared).socket {
            Some(socket) => message.send(socket),
            None => Err(zmq::Error::EAGAIN),
        }
    }

    /// Ends it. `linger`: how long clients that still read are waited for.
    pub fn end(self, linger: Duration) -> Ending {
        if let Some(socket) = &lock(&self.shared).socket {
            let _ = socket.set_linger(milliseconds(linger));
        }
        let (told, ending) = mpsc::channel();
        let end = move || {
            drop(self);
            drop(told);
        };
        // Without a thread it has ended here.
        let _ = std::thread::Builder::new().name("zmq-end".into()).spawn(end);
        Ending(ending)
    }
}

/// The end of a socket. It may take long, for the library frees what each client has asked for by itself.
pub struct Ending(Receiver<()>);

impl Ending {
    /// Waits for it; false: it takes longer.
    pub fn wait(&self, longest: Duration) -> bool {
        self.0.recv_timeout(longest) != Err(RecvTimeoutError::Timeout)
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        if let Some(socket) = &mut lock(&self.shared).socket {
            // SAFETY: the socket is open.
            unsafe { zmq_sys::zmq_socket_monitor(socket.as_mut_ptr(), std::ptr::null(), 0) };
        }
        self.watch.end();
    }
}

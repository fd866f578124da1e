//! ZeroMQ: each event is one message with one part, a stream_buffer whose payload are the stream_buffers of the
//! crates.
//!
//! PUB sends all events to each subscriber, but drops them for a slow one, as ZeroMQ defines it. PUSH sends each
//! event to one of its clients, and waits while no client has room. ZeroMQ confirms nothing: events that wait for a client that
//! goes away are lost, and nobody is told.
//!
//! What waits for clients is bounded in bytes: the library bounds it by a number of events for each client, and this file for
//! all of them together, by what the library has given back. The number cannot be changed while clients come and go, for the
//! library (4.3.4) crashes then. So a socket that is full of events of slow subscribers is replaced by one with a lower
//! number, to which they connect again.

use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fadelink_sinks::{Delivery, End, Parts, Result, Sink, Stopping};
use zmq::{Context, Socket, SocketType};

use super::item::{Run, SharedEvent};
use lent::{Lent, Message};
use subscriptions::Subscriptions;
use watch::{Count, Watch};

mod endpoint;
mod lent;
mod subscriptions;
mod watch;

/// Longest wait at the end for clients that still read.
const LINGER: Duration = Duration::from_secs(5);
/// Shortest wait for what the library has taken last.
const LAST: Duration = Duration::from_secs(1);
/// How often a wait looks whether the builder is to end.
const PATIENCE: Duration = Duration::from_millis(100);
/// Events that may wait for a subscriber at first.
const PUB_EVENTS: u64 = 10_000;
/// The same of a client of PUSH. What it has no room for goes to another.
const PUSH_EVENTS: u64 = 100;
/// When that was too much, a subscriber may have this part of what may wait for all.
const SHARE: u64 = 8;
/// Shortest time from one socket to the next.
const AGAIN: Duration = Duration::from_secs(10);
/// Said of a sink that is used behind its end.
const ENDED: &str = "it has ended";
/// Largest message of a client: a subscription.
const SUBSCRIPTION_BYTES: i64 = 1 << 10;
/// Messages of a client that wait until they are looked at, and bytes before them in the kernel.
const SUBSCRIPTIONS: i32 = 16;
const RECEIVE_BUFFER: i32 = 1 << 16;

/// A bound socket. It ends before its context, which waits for it.
struct Bound {
    socket: Socket,
    subscriptions: Subscriptions,
    watch: Watch,
    _context: Context,
}

impl Drop for Bound {
    fn drop(&mut self) {
        // SAFETY: the socket is open.
        unsafe { zmq_sys::zmq_socket_monitor(self.socket.as_mut_ptr(), std::ptr::null(), 0) };
        self.watch.end();
    }
}

/// The socket, and what waits in it.
pub struct ZmqSink {
    /// Until the end.
    bound: Option<Bound>,
    endpoint: String,
    builder_id: u32,
    stopping: Stopping,
    turned_away: Count,
    push: bool,
    /// How many may wait for each client.
    events: u64,
    lent: Arc<Lent>,
    /// Bytes that may wait for all clients.
    room: u64,
    /// Size of the largest event so far.
    largest: u64,
    /// When the socket was replaced.
    replaced: Option<Instant>,
    /// Events for which there was no room.
    lost: u64,
}

fn milliseconds(time: Duration) -> i32 {
    time.as_millis() as i32
}

/// Binds a socket; `events` may wait for each client. Gives the endpoint as the library has it, too.
fn open(kind: SocketType, endpoint: &str, events: u64, turned_away: Count) -> Result<(Bound, String)> {
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
    let watch = watch.watch(&endpoint, turned_away)?;
    Ok((Bound { socket, subscriptions: Subscriptions::default(), watch, _context: context }, endpoint))
}

impl ZmqSink {
    /// Binds a PUSH socket, or a PUB socket that reports what clients subscribe to, to an endpoint. `room`: bytes that may wait for its clients.
    pub fn bind(endpoint: &str, run: &Run, push: bool, room: u64) -> Result<ZmqSink> {
        let (kind, events) = if push { (SocketType::PUSH, PUSH_EVENTS) } else { (SocketType::XPUB, PUB_EVENTS) };
        let (bound, endpoint) = open(kind, endpoint, events, run.turned_away)?;
        Ok(ZmqSink {
            bound: Some(bound),
            endpoint,
            builder_id: run.builder_id,
            stopping: run.stopping.clone(),
            turned_away: run.turned_away,
            push,
            events,
            lent: Arc::default(),
            room,
            largest: 0,
            replaced: None,
            lost: 0,
        })
    }

    /// Replaces the socket, and so takes what the library keeps for its clients; false: that was done a moment ago.
    fn replace(&mut self, why: &str) -> Result<bool> {
        if self.replaced.is_some_and(|replaced| replaced.elapsed() < AGAIN) {
            return Ok(false);
        }
        self.replaced = Some(Instant::now());
        let endpoint = self.endpoint.as_str();
        tracing::warn!("{endpoint}: {why}: all are disconnected, and may connect again");
        // The endpoint is free when this has ended.
        self.bound = None;
        self.bound = Some(open(SocketType::XPUB, endpoint, self.events, self.turned_away)?.0);
        Ok(true)
    }

    /// Keeps what subscribers take in its bounds; false: there is no room for so many bytes more.
    fn has_room(&mut self, bytes: u64) -> Result<bool> {
        let Bound { socket, subscriptions, .. } = self.bound.as_mut().ok_or(ENDED)?;
        subscriptions.hear(socket)?;
        if subscriptions.are_too_many() {
            self.replace("subscribers have too many subscriptions")?;
        }
        if self.lent.wait_for_room(bytes, self.room, Duration::ZERO) {
            return Ok(true);
        }
        self.events = (self.room / SHARE / self.largest).min(PUB_EVENTS);
        self.replace(&format!("{} bytes wait for slow subscribers", self.room))
    }
}

/// The builder ends, and a client does not read.
fn not_taken(events: u64) -> String {
    let seconds = LINGER.as_secs();
    let what = if events > 0 { format!("the last {events} events") } else { "the last events".into() };
    format!("clients did not take {what} within {seconds} s; they are lost")
}

impl Sink<SharedEvent> for ZmqSink {
    fn files(&self) -> Option<&Parts> {
        None
    }

    fn write(&mut self, event: &SharedEvent) -> Result {
        let data = event.0.emit(self.builder_id);
        let bytes = lent::memory(&data);
        self.largest = self.largest.max(bytes);
        if !self.push && !self.has_room(bytes)? {
            self.lost += 1;
            return Ok(());
        }
        let mut asked = None;
        let mut patience = || {
            if self.stopping.load(Ordering::Relaxed) {
                let since = asked.get_or_insert_with(Instant::now).elapsed();
                if since >= LINGER {
                    return Err("clients had no room for an event for 5 s since the end was asked for");
                }
            }
            Ok(())
        };
        while self.push && !self.lent.wait_for_room(bytes, self.room, PATIENCE) {
            patience()?;
        }
        let mut message = Message::lend(data, &self.lent)?;
        let socket = &mut self.bound.as_mut().ok_or(ENDED)?.socket;
        loop {
            match message.send(socket) {
                Ok(()) => return Ok(()),
                Err(zmq::Error::EAGAIN | zmq::Error::EINTR) => patience()?,
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn finish(&mut self, _end: End) -> Result {
        let Some(bound) = self.bound.take() else { return Ok(()) };
        let begin = Instant::now();
        // Waits for clients that still read.
        let left = self.lent.wait_for_all(LINGER);
        // The library has copied the end of the last message, and may not have sent it.
        let linger = if left == 0 { LINGER.saturating_sub(begin.elapsed()).max(LAST) } else { Duration::ZERO };
        bound.socket.set_linger(milliseconds(linger))?;
        let closed = Instant::now();
        // Waits until all is sent, or to the end of this time.
        drop(bound);
        let is_sent = left == 0 && closed.elapsed() + PATIENCE < linger;
        // A subscriber that is too slow loses events, as ZeroMQ defines it.
        if self.push && !is_sent {
            return Err(not_taken(left).into());
        }
        Ok(())
    }

    fn keeps(&self) -> bool {
        false
    }

    fn intact(&self) -> u64 {
        0
    }

    fn lost(&self) -> u64 {
        self.lost
    }

    fn delivery(&self) -> Delivery {
        if self.push {
            Delivery::HandedOver
        } else {
            Delivery::Published
        }
    }
}

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
use zmq::SocketType;

use super::item::{Run, SharedEvent};
use bound::{Bound, Ending, PATIENCE};
use lent::{Lent, Message};
use watch::Count;

mod bound;
mod endpoint;
mod lent;
mod subscriptions;
mod watch;

/// Longest wait at the end for clients that still read.
const LINGER: Duration = Duration::from_secs(5);
/// Shortest wait for what the library has taken last.
const LAST: Duration = Duration::from_secs(1);
/// Events that may wait for a subscriber at first.
const PUB_EVENTS: u64 = 10_000;
/// The same of a client of PUSH. What it has no room for goes to another.
const PUSH_EVENTS: u64 = 100;
/// When that was too much, a subscriber may have this part of what may wait for all.
const SHARE: u64 = 8;
/// Shortest time from one socket to the next.
const AGAIN: Duration = Duration::from_secs(10);

/// The socket, and what waits in it.
pub struct ZmqSink {
    /// Until the end.
    bound: Option<Bound>,
    /// Of the socket before.
    ending: Option<Ending>,
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
    /// When the socket was opened anew.
    opened: Option<Instant>,
    /// Events for which there was no room.
    lost: u64,
}

impl ZmqSink {
    /// Binds a PUSH socket, or a PUB socket that reports what clients subscribe to, to an endpoint. `room`: bytes that may wait for its clients.
    pub fn bind(endpoint: &str, run: &Run, push: bool, room: u64) -> Result<ZmqSink> {
        let (kind, events) = if push { (SocketType::PUSH, PUSH_EVENTS) } else { (SocketType::XPUB, PUB_EVENTS) };
        let (bound, endpoint) = Bound::open(kind, endpoint, events, run.turned_away)?;
        Ok(ZmqSink {
            bound: Some(bound),
            ending: None,
            endpoint,
            builder_id: run.builder_id,
            stopping: run.stopping.clone(),
            turned_away: run.turned_away,
            push,
            events,
            lent: Arc::default(),
            room,
            largest: 0,
            opened: None,
            lost: 0,
        })
    }

    /// Ends the socket, and so what the library keeps for its clients.
    fn shut(&mut self, why: &str) {
        let Some(bound) = self.bound.take() else { return };
        tracing::warn!("{}: {why}: all are disconnected, and may connect again", self.endpoint);
        let ending = bound.end(Duration::ZERO);
        ending.wait(PATIENCE);
        self.ending = Some(ending);
    }

    /// True if the socket was not opened anew a moment ago.
    fn may_open(&self) -> bool {
        self.opened.is_none_or(|opened| opened.elapsed() >= AGAIN)
    }

    /// Opens a socket that was shut again, when it is time.
    fn look(&mut self) -> Result {
        if self.bound.as_ref().is_some_and(Bound::is_shut) {
            self.shut("subscribers have too many subscriptions");
        }
        let has_ended = self.ending.as_ref().is_some_and(|ending| ending.wait(Duration::ZERO));
        if has_ended && self.may_open() {
            self.bound = Some(Bound::open(SocketType::XPUB, &self.endpoint, self.events, self.turned_away)?.0);
            (self.ending, self.opened) = (None, Some(Instant::now()));
        }
        Ok(())
    }

    /// Sends an event to all subscribers; false: it is lost to them, for there was no room.
    fn publish(&mut self, data: Vec<u8>, bytes: u64) -> Result<bool> {
        self.look()?;
        let Some(bound) = &self.bound else { return Ok(false) };
        if !self.lent.wait_for_room(bytes, self.room, Duration::ZERO) {
            if self.may_open() {
                self.events = (self.room / SHARE / self.largest).min(PUB_EVENTS);
                self.shut(&format!("{} bytes wait for slow subscribers", self.room));
            }
            return Ok(false);
        }
        match bound.send(&mut Message::lend(data, &self.lent)?) {
            // It was shut.
            Err(zmq::Error::EAGAIN) => Ok(false),
            sent => Ok(sent.map(|()| true)?),
        }
    }

    /// Sends an event to a client that has room for it, and waits for one.
    fn push(&self, data: Vec<u8>, bytes: u64) -> Result {
        let Some(bound) = &self.bound else { return Ok(()) };
        let mut asked = None;
        let mut patience = || {
            if self.stopping.load(Ordering::Relaxed) {
                let since = asked.get_or_insert_with(Instant::now).elapsed();
                if since >= LINGER {
                    return Err("no client had room for an event for 5 s since the end was asked for");
                }
            }
            Ok(())
        };
        while !self.lent.wait_for_room(bytes, self.room, PATIENCE) {
            patience()?;
        }
        let mut message = Message::lend(data, &self.lent)?;
        loop {
            match bound.send(&mut message) {
                Ok(()) => return Ok(()),
                Err(zmq::Error::EAGAIN | zmq::Error::EINTR) => patience()?,
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// The builder ends, and a client does not read.
fn not_taken(events: u64) -> String {
    let seconds = LINGER.as_secs();
    let what = if events > 0 { format!("the last {events} events") } else { "the last events".into() };
    format!("clients did not take {what} within {seconds} s; they are lost")
}

impl Drop for ZmqSink {
    fn drop(&mut self) {
        if let Some(bound) = self.bound.take() {
            bound.end(Duration::ZERO).wait(LAST);
        }
    }
}

impl Sink<SharedEvent> for ZmqSink {
    fn files(&self) -> Option<&Parts> {
        None
    }

    fn write(&mut self, event: &SharedEvent) -> Result {
        let data = event.0.emit(self.builder_id);
        let bytes = lent::memory(&data);
        self.largest = self.largest.max(bytes);
        if self.push {
            return self.push(data, bytes);
        }
        self.lost += u64::from(!self.publish(data, bytes)?);
        Ok(())
    }

    fn tick(&mut self) -> Result {
        self.look()
    }

    fn finish(&mut self, _end: End) -> Result {
        let Some(bound) = self.bound.take() else { return Ok(()) };
        let begin = Instant::now();
        // Waits for clients that still read.
        let left = self.lent.wait_for_all(LINGER);
        // The library has copied the end of the last message, and may not have sent it.
        let linger = if left == 0 { LINGER.saturating_sub(begin.elapsed()).max(LAST) } else { Duration::ZERO };
        let closed = Instant::now();
        // Waits until all is sent, or to the end of this time.
        let has_ended = bound.end(linger).wait(linger + LAST);
        let is_sent = left == 0 && has_ended && closed.elapsed() + PATIENCE < linger;
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

//! ZeroMQ: each event is one message of one part, a stream_buffer whose payload are the crates' stream_buffers.
//!
//! PUB gives every subscriber all events, but drops them for one that is slow, as ZeroMQ defines it. PUSH gives each
//! event to one of its clients and waits while none has room.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use fadelink_sinks::{End, Result, Sink, Stopping};

use super::item::{Run, SharedEvent};

/// Longest wait at the end for clients that still read, in milliseconds.
const LINGER_MS: i32 = 5000;
/// Events that wait for a slow client.
const HIGH_WATER: i32 = 10_000;
/// How often a wait looks whether the builder is to end.
const PATIENCE_MS: i32 = 100;

/// The socket.
pub struct ZmqSink {
    socket: zmq::Socket,
    builder_id: u32,
    stopping: Stopping,
    sent: u64,
}

impl ZmqSink {
    /// Binds a PUSH or a PUB socket to an endpoint.
    pub fn bind(endpoint: &str, run: &Run, push: bool) -> Result<ZmqSink> {
        let socket = zmq::Context::new().socket(if push { zmq::PUSH } else { zmq::PUB })?;
        socket.set_linger(LINGER_MS)?;
        socket.set_sndhwm(HIGH_WATER)?;
        socket.set_sndtimeo(PATIENCE_MS)?;
        socket.bind(endpoint)?;
        Ok(ZmqSink { socket, builder_id: run.builder_id, stopping: run.stopping.clone(), sent: 0 })
    }
}

impl Sink<SharedEvent> for ZmqSink {
    fn write(&mut self, event: &SharedEvent) -> Result {
        let message = event.0.emit(self.builder_id);
        let mut asked = None;
        loop {
            match self.socket.send(&message[..], 0) {
                Ok(()) => {
                    self.sent += 1;
                    return Ok(());
                }
                Err(zmq::Error::EAGAIN | zmq::Error::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
            if self.stopping.load(Ordering::Relaxed) {
                let since = asked.get_or_insert_with(Instant::now).elapsed();
                if since >= Duration::from_millis(LINGER_MS as u64) {
                    return Err("no client has taken an event since the end was asked for".into());
                }
            }
        }
    }

    fn finish(&mut self, _end: End) -> Result {
        Ok(())
    }

    fn intact(&self) -> u64 {
        self.sent
    }
}

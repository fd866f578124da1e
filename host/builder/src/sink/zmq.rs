//! ZeroMQ: each event is one message with one part, a stream_buffer whose payload are the stream_buffers of the
//! crates.
//!
//! PUB sends all events to each subscriber, but drops them for a slow one, as ZeroMQ defines it. PUSH sends each
//! event to one of its clients, and waits while no client has room. ZeroMQ confirms nothing: events that wait for a client that
//! goes away are lost, and nobody is told.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use fadelink_sinks::{Delivery, End, Parts, Result, Sink, Stopping};
use rzmq::socket::{LINGER as LINGER_OPTION, SNDHWM, SNDTIMEO};
use rzmq::{Context, Msg, Socket, SocketType, ZmqError};
use tokio::runtime::{Builder, Runtime};

use super::item::{Run, SharedEvent};

/// Longest wait at the end for clients that still read.
const LINGER: Duration = Duration::from_secs(5);
/// The option of ZeroMQ for a socket that keeps what its clients have not taken: [`LINGER`] ends the wait.
const WITHOUT_END: i32 = -1;
/// Events that wait for a slow client.
const HIGH_WATER: i32 = 10_000;
/// How often a wait looks whether the builder is to end.
const PATIENCE_MS: i32 = 100;

/// The socket, and what runs it.
pub struct ZmqSink {
    runtime: Runtime,
    context: Context,
    socket: Socket,
    builder_id: u32,
    stopping: Stopping,
    push: bool,
}

impl ZmqSink {
    /// Binds a PUSH or a PUB socket to an endpoint.
    pub fn bind(endpoint: &str, run: &Run, push: bool) -> Result<ZmqSink> {
        let runtime = Builder::new_multi_thread().worker_threads(1).thread_name("zmq").enable_all().build()?;
        let (context, socket) = runtime.block_on(async {
            let context = Context::new()?;
            let socket = context.socket(if push { SocketType::Push } else { SocketType::Pub })?;
            socket.set_option(LINGER_OPTION, WITHOUT_END).await?;
            socket.set_option(SNDHWM, HIGH_WATER).await?;
            socket.set_option(SNDTIMEO, PATIENCE_MS).await?;
            // Any address of this computer, as ZeroMQ writes it.
            socket.bind(&endpoint.replacen("tcp://*:", "tcp://0.0.0.0:", 1)).await?;
            Ok::<_, ZmqError>((context, socket))
        })?;
        let (builder_id, stopping) = (run.builder_id, run.stopping.clone());
        Ok(ZmqSink { runtime, context, socket, builder_id, stopping, push })
    }
}

impl Sink<SharedEvent> for ZmqSink {
    fn files(&self) -> Option<&Parts> {
        None
    }

    fn write(&mut self, event: &SharedEvent) -> Result {
        let message = bytes::Bytes::from(event.0.emit(self.builder_id));
        let mut asked = None;
        loop {
            match self.runtime.block_on(self.socket.send(Msg::from_bytes(message.clone()))) {
                Ok(()) => return Ok(()),
                Err(ZmqError::Timeout | ZmqError::ResourceLimitReached) => {}
                Err(error) => return Err(error.into()),
            }
            if self.stopping.load(Ordering::Relaxed) {
                let since = asked.get_or_insert_with(Instant::now).elapsed();
                if since >= LINGER {
                    return Err("no client has taken an event since the end was asked for".into());
                }
            }
        }
    }

    fn finish(&mut self, _end: End) -> Result {
        // Waits for clients that still read.
        let term = async { tokio::time::timeout(LINGER, self.context.term()).await };
        match self.runtime.block_on(term) {
            Ok(result) => Ok(result?),
            // A subscriber that is too slow loses events, as ZeroMQ defines it.
            Err(_) if !self.push => Ok(()),
            Err(_) => {
                let seconds = LINGER.as_secs();
                Err(format!("a client did not take the last events within {seconds} s; they are lost").into())
            }
        }
    }

    fn keeps(&self) -> bool {
        false
    }

    fn intact(&self) -> u64 {
        0
    }

    fn delivery(&self) -> Delivery {
        if self.push {
            Delivery::HandedOver
        } else {
            Delivery::Published
        }
    }
}

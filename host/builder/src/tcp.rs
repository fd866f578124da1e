//! The connections of crates, which the crates open like TCP senders (docs/protocol/tcp_sender.md).

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fadelink_receiver::tcp;
pub use fadelink_receiver::tcp::UNSERVED;
use fadelink_wire::fadc::Header;

use crate::event::Bytes;
use crate::reader::MessageReader;

mod connections;
mod order;
use connections::Connections;
pub use connections::{Came, Connection, Earlier};
use order::{Input, Order, Turn};

/// A connection that is silent for so long when the end was asked for is given up: its crate is gone. As documented.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// What is said of a connection that is given up because the user asked for the end twice.
pub const INTERRUPTED: &str = "interrupted before the end";

/// Sources that a connection may have: a crate has one for each of its links.
const SOURCES: usize = 256;

/// Where messages go.
pub trait MessageHandler: Send + Sync {
    /// A connection begins.
    fn open(self: Arc<Self>) -> Box<dyn Messages>;
}

/// Takes what one connection gives; is dropped when that has ended.
pub trait Messages: Send {
    /// What comes now is this source's; what it has sent before, over this connection too, is not known.
    fn begin(&mut self, source: u32);
    /// This source, which begins now, has another connection that it has not closed, or had another address: two senders have its
    /// number.
    fn has_rival(&mut self, _source: u32) {}
    /// Whole messages, in order; `messages` is empty then.
    ///
    /// # Errors
    /// No more can be taken: the connection is closed.
    fn take(&mut self, messages: &mut Vec<Bytes>) -> io::Result<()>;
    /// The crate has sent no more: TCP confirms its end, and it was not inside a message.
    ///
    /// # Errors
    /// It cannot be noted.
    fn end(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct ServerState {
    connections: Mutex<Connections>,
    order: Arc<Order>,
    /// Addresses of crates; empty: any.
    crates: Vec<IpAddr>,
    /// Connections of others.
    others: AtomicU64,
    aborting: AtomicBool,
    /// How long a silent connection is waited for when the end was asked for.
    patience: Duration,
}

impl ServerState {
    fn lock(&self) -> MutexGuard<'_, Connections> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if a crate may have this address; others are counted.
    fn admits(&self, peer: SocketAddr) -> bool {
        let is_admitted = self.crates.is_empty() || self.crates.contains(&peer.ip().to_canonical());
        if !is_admitted && self.others.fetch_add(1, Ordering::Relaxed) == 0 {
            tracing::warn!("{peer}: a connection that is not of one of the crates' addresses was closed");
        }
        is_admitted
    }
}

/// Accepts connections of crates until it is stopped.
pub struct Server {
    shared: Arc<ServerState>,
    server: tcp::Server,
}

fn is_silence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// Receives over a connection until it ends; with where what was skipped first began, and why.
fn receive(
    shared: &ServerState,
    number: u64,
    socket: &tcp::Connection,
    place: &Turn,
    take: &mut dyn Messages,
) -> (io::Result<()>, Option<String>) {
    let mut reader = MessageReader::new(Input { socket, place, patience: shared.patience });
    let (mut messages, mut sources, mut first) = (Vec::new(), BTreeSet::new(), None);
    let result = loop {
        let more = reader.next_messages(&mut messages);
        if !messages.is_empty() {
            if reader.take_gap() {
                // Whose the messages were that are missing is not known.
                sources.iter().for_each(|source| take.begin(*source));
            }
            let all = messages.iter().filter_map(|message| Some(Header::parse(message).ok()?.source_id));
            let mut new: Vec<_> = all.filter(|source| sources.insert(*source)).collect();
            let has_too_many = sources.len() > SOURCES;
            new.truncate((SOURCES + new.len()).saturating_sub(sources.len()));
            if !new.is_empty() {
                place.wait_for(&new, || shared.aborting.load(Ordering::Relaxed));
            }
            for source in new {
                first.get_or_insert(source);
                let has_rival = shared.lock().begin(number, source);
                take.begin(source);
                if has_rival {
                    take.has_rival(source);
                }
            }
            if has_too_many {
                break Err(io::Error::other(format!(
                    "more than {SOURCES} sources over one connection: expected those of a crate"
                )));
            }
            shared.lock().count(number, first, *reader.counts());
        }
        let stall = socket.stall();
        if let Err(error) = take.take(&mut messages) {
            break Err(error);
        }
        drop(stall);
        if let Some(why) = socket.given_up() {
            break Err(io::Error::other(why));
        }
        match more {
            // What looks like an end is this side's.
            _ if shared.aborting.load(Ordering::Relaxed) => break Err(io::Error::other(INTERRUPTED)),
            Ok(true) => {}
            Ok(false) if reader.counts().cut_bytes > 0 => break Ok(()),
            Ok(false) => break take.end(),
            Err(error) => break Err(error),
        }
    };
    reader.give_up();
    shared.lock().count(number, first, *reader.counts());
    (result, reader.skipped().map(|(byte, why)| format!("byte {byte}: {why}")))
}

/// Serves a connection that is entered in the list of them.
fn serve(shared: &ServerState, number: u64, socket: &tcp::Connection, place: &Turn, mut take: Box<dyn Messages>) {
    let (result, skipped) = receive(shared, number, socket, place, &mut *take);
    let asked = result.is_ok() && socket.was_asked();
    let error = result.err().map(|error| match is_silence(&error) {
        true => format!("nothing came for {} s after the end was asked for", shared.patience.as_secs_f64()),
        false => error.to_string(),
    });
    shared.lock().end(number, skipped, asked, error);
}

impl Server {
    /// Listens on `address`. `crates`: addresses that connections are accepted from; empty: any. `patience`: how long a silent connection is waited for when the end was asked for.
    ///
    /// # Errors
    /// The address is not available.
    pub fn listen(
        address: SocketAddr,
        crates: Vec<IpAddr>,
        patience: Duration,
        take: Arc<dyn MessageHandler>,
    ) -> io::Result<Server> {
        let shared = Arc::new(ServerState {
            connections: Mutex::default(),
            order: Arc::default(),
            crates,
            others: AtomicU64::new(0),
            aborting: AtomicBool::new(false),
            patience,
        });
        let own = shared.clone();
        let server = tcp::Server::listen(address, None, 0, move || {
            let (shared, take) = (own.clone(), take.clone());
            Ok(Box::new(move |socket, peer| {
                if !shared.admits(peer) {
                    return Box::new(|_| {});
                }
                let (messages, place) = (take.open(), shared.order.enter(socket));
                Box::new(move |socket| {
                    let number = shared.lock().enter(peer, Some(socket.clone()));
                    serve(&shared, number, socket, &place, messages);
                })
            }))
        })?;
        Ok(Server { shared, server })
    }

    /// What came over the connections until now.
    pub fn came(&self) -> Came {
        self.shared.lock().came()
    }

    /// Connections over which something came, and whether all have ended.
    pub fn of_crates(&self) -> (u64, bool) {
        self.shared.lock().of_crates()
    }

    /// Connections over which nothing came until they ended.
    pub fn empty(&self) -> u64 {
        self.shared.lock().empty()
    }

    /// Times that a connection could not be accepted, as when the process has no free file descriptor.
    pub fn refused(&self) -> u64 {
        self.server.refused()
    }

    /// As of [`tcp::Server::displaced`].
    pub fn displaced(&self) -> u64 {
        self.server.displaced()
    }

    /// Connections that were closed, for they are not of the crates' addresses.
    pub fn others(&self) -> u64 {
        self.shared.others.load(Ordering::Relaxed)
    }

    /// Accepts no more connections and asks the crates for the end.
    pub fn stop(&mut self) {
        self.server.stop();
    }

    /// As of [`tcp::Server::end_in_time`].
    pub fn end_in_time(&self) {
        self.server.end_in_time();
    }

    /// As of [`tcp::Server::cut`].
    pub fn cut(&self, why: &str) {
        self.server.cut(why);
    }

    /// As of [`tcp::Server::late`].
    pub fn late(&self) -> Option<String> {
        self.server.late()
    }

    /// Waits for no crate any more: what has come is all.
    pub fn abort(&mut self) {
        self.shared.aborting.store(true, Ordering::Relaxed);
        self.server.abort();
    }

    /// True if no connection is served any more.
    pub fn is_idle(&self) -> bool {
        self.server.is_idle()
    }

    /// Waits for the end of all connections; what came over them, and as of [`tcp::Server::join`].
    pub fn join(mut self) -> (Came, bool) {
        self.stop();
        let is_served = self.server.join();
        (self.shared.lock().came(), is_served)
    }
}

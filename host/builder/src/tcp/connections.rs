//! What came over the connections of crates: each of them while it is open, the last ones that have ended, and the sums of all earlier
//! ones. A computer that connects again and again takes no more memory and no more time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::ops::AddAssign;
use std::sync::Arc;

use fadelink_receiver::tcp;
use serde::Serialize;

use crate::reader::Counts;

/// Connections that are listed one by one when they have ended.
const LISTED: usize = 256;

/// Sources that are known by their numbers, of the sums.
const KNOWN: usize = 256;

/// Sources that are remembered, of connections that are not listed any more.
const REMEMBERED: usize = 1 << 16;

/// What came over a connection.
#[derive(Debug, Clone, Serialize)]
pub struct Connection {
    /// The other end.
    pub peer: SocketAddr,
    /// Of its first message.
    pub source: Option<String>,
    /// Those of its messages that no later connection has gone on with.
    #[serde(skip)]
    pub sources: Vec<u32>,
    /// Those that began here while another connection of theirs was open, or that had another address before.
    #[serde(skip)]
    pub rivals: Vec<u32>,
    /// What it held.
    #[serde(flatten)]
    pub counts: Counts,
    /// Where what was skipped first began, and why no message begins there.
    pub skipped: Option<String>,
    /// True when it has ended.
    pub ended: bool,
    /// The crate has closed it because it was asked to.
    pub asked: bool,
    /// Why, where not by the crate.
    pub error: Option<String>,
}

impl Connection {
    fn new(peer: SocketAddr) -> Connection {
        Connection {
            peer,
            source: None,
            sources: Vec::new(),
            rivals: Vec::new(),
            counts: Counts::default(),
            skipped: None,
            ended: false,
            asked: false,
            error: None,
        }
    }

    /// Nothing came over it, so it is not one of a crate.
    pub fn is_empty(&self) -> bool {
        self.counts == Counts::default()
    }
}

/// Connections that have ended so long ago that they are not listed, together.
#[derive(Debug, Default, Clone, Serialize)]
pub struct Earlier {
    /// How many.
    pub connections: u64,
    /// What they held.
    #[serde(flatten)]
    pub counts: Counts,
    /// Those that were not closed by their crates.
    pub broken: u64,
    /// The first one of these, and why.
    pub error: Option<String>,
    /// Those of their sources that no later connection has gone on with, and that were not asked for their ends.
    #[serde(skip)]
    unasked: BTreeSet<u32>,
    /// More of them than are remembered.
    #[serde(skip)]
    forgotten: bool,
    /// Times that a source may have had two senders.
    #[serde(skip)]
    rivals: BTreeMap<u32, u64>,
}

impl Earlier {
    fn add(&mut self, one: Connection) {
        self.connections += 1;
        self.counts += one.counts;
        if let Some(error) = one.error {
            self.broken += 1;
            self.error.get_or_insert_with(|| format!("{}: {error}", one.peer));
        }
        for source in one.rivals {
            if self.rivals.len() < REMEMBERED || self.rivals.contains_key(&source) {
                *self.rivals.entry(source).or_default() += 1;
            }
        }
        if !one.asked {
            self.unasked.extend(one.sources);
            self.forgotten |= self.unasked.len() > REMEMBERED;
            while self.unasked.len() > REMEMBERED {
                self.unasked.pop_last();
            }
        }
    }
}

/// What came over all connections.
#[derive(Debug, Default, Clone, Serialize)]
pub struct Came {
    /// Those that are open, and the last ones that have ended; none over which nothing came until it ended.
    pub connections: Vec<Connection>,
    /// All others.
    #[serde(rename = "earlier_connections")]
    pub earlier: Earlier,
    /// Sums of all by the source of the first message; `None`: that of a connection whose source is not known, or of more sources
    /// than are shown one by one.
    #[serde(skip)]
    pub by_source: BTreeMap<Option<u32>, Counts>,
}

impl Came {
    /// Those of crates: something came over them.
    pub fn of_crates(&self) -> impl Iterator<Item = &Connection> {
        self.connections.iter().filter(|one| !one.is_empty())
    }

    /// How many there were.
    pub fn number(&self) -> u64 {
        self.earlier.connections + self.connections.len() as u64
    }

    /// What they held.
    pub fn counts(&self) -> Counts {
        let mut counts = self.earlier.counts;
        self.connections.iter().for_each(|one| counts += one.counts);
        counts
    }

    /// The first one that was not closed by its crate, and why.
    pub fn error(&self) -> Option<String> {
        let broken = |one: &Connection| one.error.as_ref().map(|error| format!("{}: {error}", one.peer));
        self.earlier.error.clone().or_else(|| self.of_crates().find_map(broken))
    }

    /// Each source was asked for its end.
    pub fn are_asked(&self) -> bool {
        let earlier = self.earlier.unasked.is_empty() && !self.earlier.forgotten;
        earlier && self.connections.iter().all(|one| one.asked || one.sources.is_empty())
    }

    /// Sources that may have had two senders, and how often: one began while another connection of it was open, or from another address.
    pub fn rivals(&self) -> BTreeMap<u32, u64> {
        let mut rivals = self.earlier.rivals.clone();
        for source in self.connections.iter().flat_map(|one| &one.rivals) {
            *rivals.entry(*source).or_default() += 1;
        }
        rivals
    }
}

/// A connection, and its socket as long as it is open.
struct Served {
    came: Connection,
    socket: Option<Arc<tcp::Connection>>,
}

impl Served {
    /// The crate has closed it.
    fn is_closed(&self) -> bool {
        self.socket.as_ref().is_none_or(|socket| socket.is_closed())
    }
}

/// The connections, by the order in which they began.
#[derive(Default)]
pub(super) struct Connections {
    served: BTreeMap<u64, Served>,
    /// Those that have ended, in the order of their ends.
    ended: VecDeque<u64>,
    earlier: Earlier,
    by_source: BTreeMap<Option<u32>, Counts>,
    /// From where each source has sent last; its port is another one each time.
    addresses: BTreeMap<u32, IpAddr>,
    begun: u64,
    /// Those over which nothing came until they ended; no more is kept of them.
    empty: u64,
}

impl Connections {
    /// Enters a connection in the list; its number there.
    pub(super) fn enter(&mut self, peer: SocketAddr, socket: Option<Arc<tcp::Connection>>) -> u64 {
        self.begun += 1;
        self.served.insert(self.begun, Served { came: Connection::new(peer), socket });
        self.begun
    }

    /// A source sends over a connection: it goes on with those that it has closed before. One that it closes later has an end of its
    /// own. True: it may have two senders, for one of them is open, or it had another address.
    pub(super) fn begin(&mut self, number: u64, source: u32) -> bool {
        let mut is_open = false;
        for earlier in self.served.values_mut().filter(|one| one.came.sources.contains(&source)) {
            if earlier.is_closed() {
                earlier.came.sources.retain(|other| *other != source);
            } else {
                is_open = true;
            }
        }
        self.earlier.unasked.remove(&source);
        let Some(peer) = self.served.get(&number).map(|served| served.came.peer) else { return is_open };
        let has_rival = self.has_moved(source, peer.ip().to_canonical()) || is_open;
        if let Some(Served { came, .. }) = self.served.get_mut(&number) {
            came.source.get_or_insert_with(|| format!("{source:#010x}"));
            came.sources.push(source);
            came.rivals.extend(has_rival.then_some(source));
        }
        has_rival
    }

    /// Notes from where a source sends; true: that is not where it has sent from before.
    fn has_moved(&mut self, source: u32, address: IpAddr) -> bool {
        if self.addresses.len() >= REMEMBERED && !self.addresses.contains_key(&source) {
            // Nothing is known of it later, so that nobody can say that all is well.
            self.earlier.forgotten = true;
            return false;
        }
        let before = self.addresses.insert(source, address).filter(|before| *before != address);
        if let Some(before) = before {
            tracing::warn!(
                "source {source:#010x}: it sends from {address}: expected {before}, from where it has sent before"
            );
        }
        before.is_some()
    }

    /// What came over a connection until now, the first message of which is of `source`.
    pub(super) fn count(&mut self, number: u64, source: Option<u32>, counts: Counts) {
        let Some(Served { came, .. }) = self.served.get_mut(&number) else { return };
        let more = counts.since(came.counts);
        came.counts = counts;
        if more == Counts::default() {
            return;
        }
        let is_known = self.by_source.len() < KNOWN || self.by_source.contains_key(&source);
        *self.by_source.entry(source.filter(|_| is_known)).or_default() += more;
    }

    /// A connection has ended: whether its crate was asked for that, and why it ended where its crate has not closed it.
    pub(super) fn end(&mut self, number: u64, skipped: Option<String>, asked: bool, error: Option<String>) {
        let Some(served) = self.served.get_mut(&number) else { return };
        if served.came.is_empty() {
            self.empty += 1;
            self.served.remove(&number);
            return;
        }
        served.socket = None;
        let came = &mut served.came;
        (came.ended, came.skipped, came.asked, came.error) = (true, skipped, asked, error);
        self.ended.push_back(number);
        if self.ended.len() > LISTED {
            let oldest = self.ended.pop_front().and_then(|oldest| self.served.remove(&oldest));
            oldest.into_iter().for_each(|oldest| self.earlier.add(oldest.came));
        }
    }

    /// What came over them.
    pub(super) fn came(&self) -> Came {
        Came {
            connections: self.served.values().map(|served| served.came.clone()).collect(),
            earlier: self.earlier.clone(),
            by_source: self.by_source.clone(),
        }
    }

    /// Those over which something came, and whether all have ended.
    pub(super) fn of_crates(&self) -> (u64, bool) {
        let came = self.served.values().filter(|served| !served.came.is_empty()).count() as u64;
        (self.earlier.connections + came, self.ended.len() == self.served.len())
    }

    /// Those over which nothing came until they ended.
    pub(super) fn empty(&self) -> u64 {
        self.empty
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, more: Counts) {
        self.messages += more.messages;
        self.bytes += more.bytes;
        self.skipped_bytes += more.skipped_bytes;
        self.resyncs += more.resyncs;
        self.cut_bytes += more.cut_bytes;
    }
}

impl Counts {
    /// What came after `earlier`.
    fn since(self, earlier: Counts) -> Counts {
        Counts {
            messages: self.messages - earlier.messages,
            bytes: self.bytes - earlier.bytes,
            skipped_bytes: self.skipped_bytes - earlier.skipped_bytes,
            resyncs: self.resyncs - earlier.resyncs,
            cut_bytes: self.cut_bytes - earlier.cut_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 1);

    fn counts(messages: u64) -> Counts {
        Counts { messages, bytes: 48 * messages, ..Counts::default() }
    }

    /// A connection of `source` with so many messages, from its begin to its end.
    fn connection(all: &mut Connections, source: u32, messages: u64, asked: bool, error: Option<&str>) {
        let number = all.enter(PEER, None);
        all.begin(number, source);
        all.count(number, Some(source), counts(1));
        all.count(number, Some(source), counts(messages));
        all.end(number, None, asked, error.map(Into::into));
    }

    /// Memory and time do not grow with the connections; sums, the first error and unasked ends are kept.
    #[test]
    fn connections_that_have_ended_long_ago_are_summed() {
        let mut all = Connections::default();
        for number in 0..20_000 {
            connection(&mut all, 7, 3, false, (number == 5).then_some("reset"));
        }
        let came = all.came();
        assert_eq!((came.connections.len(), came.number(), came.counts()), (LISTED, 20_000, counts(60_000)));
        assert_eq!((came.earlier.broken, came.error().as_deref()), (1, Some("127.0.0.1:1: reset")));
        assert!(!came.are_asked());
        assert_eq!((all.of_crates(), came.by_source), ((20_000, true), [(Some(7), counts(60_000))].into()));
    }

    /// A source whose end was not asked for keeps the end unconfirmed, until it goes on and is asked.
    #[test]
    fn an_end_that_was_not_asked_for_is_not_forgotten() {
        let mut all = Connections::default();
        connection(&mut all, 1, 1, false, None);
        for _ in 0..LISTED + 5 {
            connection(&mut all, 2, 1, true, None);
        }
        assert!(!all.came().are_asked());
        connection(&mut all, 1, 1, true, None);
        assert!(all.came().are_asked());
        for source in 0..REMEMBERED as u32 + 1_000 {
            connection(&mut all, source, 1, false, None);
        }
        assert_eq!(all.came().earlier.unasked.len(), REMEMBERED);
        for source in 0..REMEMBERED as u32 + 1_000 {
            connection(&mut all, source, 1, true, None);
        }
        let came = all.came();
        assert!(came.earlier.unasked.is_empty() && !came.are_asked(), "more than are remembered");
        assert_eq!(came.by_source.len(), KNOWN + 1);
        assert_eq!(
            came.counts(),
            came.by_source.values().fold(Counts::default(), |mut sum, one| {
                sum += *one;
                sum
            })
        );
    }

    /// A crate connects again from the same address and another port; who comes from another address may be somebody else.
    #[test]
    fn a_source_has_one_address() {
        let mut all = Connections::default();
        let mut begin = |peer: &str, source| {
            let number = all.enter(peer.parse().unwrap(), None);
            let has_rival = all.begin(number, source);
            all.count(number, Some(source), counts(1));
            all.end(number, None, true, None);
            has_rival
        };
        let moves = [("10.0.0.1:1", 1), ("10.0.0.2:1", 2), ("10.0.0.1:2", 1), ("[::ffff:10.0.0.1]:3", 1)];
        assert!(moves.iter().all(|(peer, source)| !begin(peer, *source)));
        assert!(begin("10.0.0.3:1", 1) && !begin("10.0.0.3:2", 1) && begin("10.0.0.1:4", 1));
        for _ in 0..LISTED {
            begin("10.0.0.9:1", 9);
        }
        assert_eq!(all.came().rivals(), [(1, 2)].into());
    }

    #[test]
    fn connections_without_data_are_counted_alone() {
        let mut all = Connections::default();
        let number = all.enter(PEER, None);
        assert_eq!(all.of_crates(), (0, false));
        all.end(number, None, false, Some("reset".into()));
        assert_eq!((all.came().number(), all.empty(), all.of_crates()), (0, 1, (0, true)));
    }
}

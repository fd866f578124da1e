//! Common parts of `fadelink build` and `fadelink feed`: crates that send over TCP.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
#[cfg(feature = "kafka")]
use fadelink_builder::counts::Joined;
use fadelink_builder::reader::Counts;
pub use fadelink_builder::tcp::PATIENCE;
use fadelink_builder::tcp::{Came, MessageHandler, Server, UNSERVED};
use serde::Serialize;

use crate::board::fields::any_address;
use crate::deadline::{Deadline, Limits};
use crate::interrupts::{Interrupts, NO_ROOM};
use crate::metrics::Meter;
use crate::verdict::{Accept, End, Evidence};

#[derive(clap::Args)]
pub struct Args {
    /// Receive from crates, on this port
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub tcp: Option<u16>,
    /// With --tcp: address to listen on
    #[arg(long, value_name = "IP", default_value_t = any_address())]
    pub listen: IpAddr,
    /// With --tcp: addresses of the crates; connections of others are closed and counted [default: any]
    #[arg(long, value_name = "IP,...", value_delimiter = ',')]
    pub addresses: Vec<IpAddr>,
    /// With --tcp: end when this number of connections over which something came has ended and none is open
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub streams: Option<u32>,
    /// End after this time
    #[arg(long, value_name = "SECONDS", value_parser = crate::number::seconds)]
    pub duration: Option<Duration>,
    /// Print the summary as JSON
    #[arg(long)]
    pub json: bool,
    /// Print only the summary
    #[arg(long)]
    pub quiet: bool,
    /// What counts as the end; `told`: also that a crate closes its connection and was not asked to; `silence`, with build --kafka: also
    /// that nothing more came until the builder was stopped
    #[arg(long, value_enum, default_value_t)]
    pub end: Accept,
    /// Serve metrics for Prometheus at http://ADDRESS/metrics, and the health of the program at http://ADDRESS/health
    #[arg(long, value_name = "IP:PORT")]
    pub metrics: Option<SocketAddr>,
}

/// How crates are received.
pub struct PortSettings {
    /// To listen on.
    pub address: SocketAddr,
    /// Of crates; empty: any.
    pub addresses: Vec<IpAddr>,
    /// Connections over which something came, after which the end is asked for.
    pub streams: Option<u32>,
    pub limits: Limits,
    /// How long a silent connection is waited for when the end was asked for.
    pub patience: Duration,
}

impl Args {
    /// Those on `port`.
    pub fn settings(&self, port: u16) -> PortSettings {
        let limits = Limits { duration: self.duration, ..Limits::default() };
        PortSettings {
            address: SocketAddr::new(self.listen, port),
            addresses: self.addresses.clone(),
            streams: self.streams,
            limits,
            patience: PATIENCE,
        }
    }
}

/// How often is looked whether the connections have ended.
const TICK: Duration = Duration::from_millis(10);

/// The run of a server.
pub struct Run {
    server: Server,
    port: u16,
    deadline: Deadline,
    streams: Option<u32>,
    interrupts: Interrupts,
}

impl Run {
    /// Begins to listen.
    ///
    /// # Errors
    /// The port is not available.
    pub fn begin(
        settings: &PortSettings,
        take: Arc<dyn MessageHandler>,
        interrupts: &Interrupts,
    ) -> anyhow::Result<Run> {
        let PortSettings { address, ref addresses, streams, limits, patience } = *settings;
        let server = Server::listen(address, addresses.clone(), patience, take)
            .with_context(|| format!("--tcp {}: listening on {address}", address.port()))?;
        Ok(Run {
            server,
            port: address.port(),
            deadline: Deadline::new(limits),
            streams,
            interrupts: interrupts.clone(),
        })
    }

    /// Asks for the end where it is time; true: it was asked for, and no connection is opened any more.
    pub fn poll(&mut self) -> bool {
        let (crates, have_ended) = self.server.of_crates();
        let enough = self.streams.is_some_and(|n| crates >= u64::from(n) && have_ended);
        if enough || self.deadline.is_reached(0) {
            self.interrupts.stop();
        }
        let stopping = self.interrupts.must_stop();
        if stopping {
            self.server.stop();
        }
        self.end_in_time();
        stopping
    }

    fn end_in_time(&self) {
        self.server.end_in_time();
        if self.interrupts.must_cut() {
            self.server.cut(NO_ROOM);
        }
    }

    /// Names connections that go on long after their ends were asked for, in words.
    pub fn late(&self) -> Option<String> {
        self.server.late()
    }

    /// True if no connection is served any more.
    pub fn is_idle(&self) -> bool {
        self.server.is_idle()
    }

    /// What has come over each connection so far.
    pub fn came(&self) -> Came {
        self.server.came()
    }

    /// Connections that no messages were taken of so far.
    pub fn unused(&self) -> UnusedConnections {
        let Run { server, port, .. } = self;
        UnusedConnections {
            port: *port,
            refused: server.refused(),
            displaced_connections: server.displaced(),
            other_connections: server.others(),
            empty_connections: server.empty(),
        }
    }

    /// Waits for the connections' ends, until the user asks for the end again; what came over them. `give_up`: those that take what
    /// came wait for nothing any more.
    pub fn finish(mut self, give_up: impl FnOnce()) -> Connections {
        while !self.is_idle() && !self.interrupts.must_abort() {
            self.end_in_time();
            std::thread::sleep(TICK);
        }
        if self.interrupts.must_abort() {
            give_up();
            self.server.abort();
        }
        let unused = self.unused();
        let (came, is_served) = self.server.join();
        Connections { came, unused, unserved: !is_served }
    }
}

/// Connections to a port that no messages were taken of.
#[derive(Debug, Default, Clone, Serialize)]
pub struct UnusedConnections {
    #[serde(skip)]
    port: u16,
    /// Times that one could not be accepted.
    refused: u64,
    /// Those over which nothing came that were closed to make room for others.
    displaced_connections: u64,
    /// Those that were closed, for they are not of the crates' addresses.
    other_connections: u64,
    /// Those over which nothing came until they ended.
    empty_connections: u64,
}

impl UnusedConnections {
    /// Shows them.
    pub fn measure(&self, meter: &mut Meter) {
        if self.port == 0 {
            // Nothing is known yet.
            return;
        }
        let UnusedConnections { port, refused, displaced_connections, other_connections, empty_connections } = *self;
        let reasons = [
            ("refused", refused),
            ("displaced", displaced_connections),
            ("other", other_connections),
            ("empty", empty_connections),
        ];
        meter.port(port, &reasons);
    }
}

/// What came over the connections of a run.
#[derive(Serialize)]
pub struct Connections {
    #[serde(flatten)]
    pub came: Came,
    #[serde(flatten)]
    pub unused: UnusedConnections,
    /// Some could not be until the end.
    pub unserved: bool,
}

/// What is known of connections that go on.
pub fn so_far(came: &Came) -> Evidence<'static> {
    let counts = came.counts();
    Evidence { error: came.error(), skipped_bytes: counts.skipped_bytes + counts.cut_bytes, ..Evidence::default() }
}

/// Sources with the numbers of which two have sent, for those that do not join them.
#[cfg(feature = "kafka")]
pub fn rivals(came: &Came) -> Joined {
    let mut joined = Joined::default();
    for (source, times) in came.rivals() {
        joined.sources.entry(source).or_default().two_senders += times;
    }
    joined
}

impl Connections {
    /// What they prove: FIN has the number of all bytes before it, and answers that of this side.
    pub fn known(&self) -> Evidence<'static> {
        let known = so_far(&self.came);
        let panicked = self.came.of_crates().find(|one| !one.ended);
        let panicked = panicked.map(|one| format!("{}: receiving it panicked", one.peer));
        let error = known.error.or(panicked).or_else(|| self.unserved.then(|| UNSERVED.into()));
        let has_come = self.came.counts() != Counts::default();
        let end = match has_come && error.is_none() {
            true if self.came.are_asked() => End::Confirmed,
            true => End::Told,
            false => End::Missing,
        };
        Evidence { end, error, ..known }
    }

    /// Tells why connections broke, and how many were not served.
    pub fn tell(&self) {
        let UnusedConnections { other_connections, refused, .. } = self.unused;
        if other_connections > 0 {
            tracing::warn!("{other_connections} connections of others than the crates (--addresses) were closed");
        }
        if refused > 0 {
            tracing::warn!("{refused} times a connection could not be accepted");
        }
        if let Some(error) = &self.came.earlier.error {
            let more = match self.came.earlier.broken {
                1 => String::new(),
                broken => format!("; {} more earlier connections were broken", broken - 1),
            };
            tracing::error!("{error}{more}");
        }
        for connection in &self.came.connections {
            if let Some(error) = &connection.error {
                tracing::error!("{}: {error}", connection.peer);
            }
            if let Some(skipped) = &connection.skipped {
                let bytes = connection.counts.skipped_bytes + connection.counts.cut_bytes;
                tracing::warn!(
                    "{}: {bytes} bytes do not belong to a whole message, the first: {skipped}",
                    connection.peer
                );
            }
        }
    }
}

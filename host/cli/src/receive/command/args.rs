//! Arguments of `fadelink receive`, for all protocols.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use fadelink_sinks::{BlockKind, Spec};
use fadelink_wire::MacAddr;

use crate::board::{ConfirmAt, Kind, Threads};
use crate::number;
use crate::pattern::Pattern;
use crate::time_in_names;
use crate::verdict::Accept;

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    pub kind: Kind,
    /// MAC address of a board; repeat for several
    #[arg(long, value_name = "MAC", required_unless_present = "by_ip", conflicts_with = "by_ip")]
    pub feb: Vec<MacAddr>,
    #[command(flatten)]
    pub network: Network,
    /// File for the data, in the byte order of this computer; one for each --feb, in the same order ("-": standard output).
    /// With --tcp and --udp, {stream} is replaced by address and port of each stream; {time} by the time of the start
    #[arg(long, value_name = "FILE")]
    pub out: Vec<PathBuf>,
    /// Replace files of --out that have data from an earlier run
    #[arg(long, requires = "out")]
    pub overwrite: bool,
    /// Further destinations of the data: file:PATH[,direct][,preallocate=SIZE], hdf5:PATH (both [,roll=SIZE][,every=SECONDS][,overwrite]),
    /// hashes:PATH[,overwrite], kafka:HOST:PORT/TOPIC or share:PATH[,wait]; all [,policy=drop[,queue=SIZE]][,optional]; repeat for several. In PATH and TOPIC,
    /// {feb} is replaced by the address of each board; with --tcp and --udp, {stream} is replaced by address and port of each stream;
    /// {time} by the time of the start in UTC, as 20261128T143000Z
    #[arg(long, value_name = "SINK", value_parser = time_in_names::sink::<Spec<BlockKind>>)]
    pub sink: Vec<Spec<BlockKind>>,
    #[cfg(feature = "kafka")]
    #[command(flatten)]
    pub kafka_client: crate::kafka_client::Args,
    /// Verify the data: counter[:FIRST[:STEP]], counter32[:FIRST[:STEP]] (of 32-bit words) or random:SEED; one for all boards
    /// or one for each
    #[arg(long, value_name = "PATTERN")]
    pub verify: Vec<Pattern>,
    /// Stop after this number of packets of 8192 bytes from each board; with --tcp: from each stream, together with
    /// --streams or --duration
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub packets: Option<u64>,
    /// Stop after this time
    #[arg(long, value_name = "SECONDS", value_parser = number::seconds)]
    pub duration: Option<Duration>,
    /// Give up when no data comes for this time
    #[arg(long, value_name = "SECONDS", value_parser = number::seconds)]
    pub idle_timeout: Option<Duration>,
    /// Ask boards that do not answer at the begin again for this time: they may be switched on later. TCP senders come by themselves. Not
    /// with the kernel driver. In the same time an interface or an address that is not there, or is down, is looked for again
    #[arg(long, value_name = "SECONDS", value_parser = number::seconds, overrides_with = "wait")]
    pub wait: Option<Duration>,
    /// When packets of FADE are confirmed to the board: when they are in memory, or when they are safe on the disk
    #[arg(long, value_enum, default_value_t, value_name = "WHEN")]
    pub confirm: ConfirmAt,
    /// What counts as the end of a board's data. A run that ends otherwise is not called complete (exit status 3)
    #[arg(long, value_enum, default_value_t, value_name = "END")]
    pub end: Accept,
    #[command(flatten)]
    pub threads: Threads,
    /// Serve metrics for Prometheus at http://ADDRESS/metrics, and the health of the program at http://ADDRESS/health
    #[arg(long, value_name = "IP:PORT")]
    pub metrics: Option<SocketAddr>,
    /// Show no progress
    #[arg(long)]
    pub quiet: bool,
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
}

impl Args {
    /// Packets are confirmed when they are safe.
    pub fn is_durable(&self) -> bool {
        self.confirm == ConfirmAt::Durable
    }
}

/// Options for boards with an IP protocol, whichever it is.
#[derive(clap::Args)]
pub struct Network {
    /// With --tcp, --udp: end when this number of streams has ended [default: at Ctrl-C or --duration]
    #[arg(long, value_name = "N", conflicts_with_all = ["interface", "feb"], value_parser = clap::value_parser!(u32).range(1..))]
    pub streams: Option<u32>,
    /// With --udp: start the stream of this board towards this computer, and stop it at the end; repeat for several
    #[arg(long, value_name = "IP", conflicts_with_all = ["interface", "feb", "tcp"])]
    pub board: Vec<Ipv4Addr>,
}

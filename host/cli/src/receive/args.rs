//! Arguments of `fadelink receive`, for all protocols.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use fadelink_receiver::schedule::{Cpus, Policy, Schedule};
use fadelink_receiver::{Confirm, FebConfig};
use fadelink_sinks::{BlockKind, Spec};
use fadelink_wire::{Firmware, MacAddr, Protocol, WordOrder};

use crate::link::BackendArgs;
use crate::number;
use crate::pattern::Pattern;
use crate::time_in_names;
use crate::verdict::Accept;

#[derive(clap::Args)]
pub struct Args {
    /// Network interface of the boards
    #[arg(long, value_name = "NAME", required_unless_present = "by_ip")]
    pub iface: Option<String>,
    #[command(flatten)]
    pub backend_args: BackendArgs,
    /// MAC address of a board; repeat for several
    #[arg(long, value_name = "MAC", required_unless_present = "by_ip")]
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
    /// with the kernel driver
    #[arg(long, value_name = "SECONDS", value_parser = number::seconds, overrides_with = "wait")]
    pub wait: Option<Duration>,
    /// Size of the ring of each board or stream in packets of 8192 bytes, a power of two
    #[arg(long, value_name = "N", default_value_t = FebConfig::default().ring_packets)]
    pub ring: u64,
    /// Window of the boards in packets
    #[arg(long, value_name = "M", default_value_t = FebConfig::default().window)]
    pub window: u32,
    /// Number of the first packet (always 0, except in tests)
    #[arg(long, value_name = "NUMBER", default_value = "0", value_parser = number::u32)]
    pub first_packet: u32,
    /// Protocol of the boards, fade10g or fade1 [default: found out at the start]
    #[arg(long, value_name = "PROTOCOL")]
    pub protocol: Option<Protocol>,
    /// Firmware of the boards, fadelink, published-10g or published-v1 [default: found out at the start]
    #[arg(long, value_name = "FIRMWARE")]
    pub firmware: Option<Firmware>,
    /// Byte order of data words on the wire, big or little [default: as the firmware has it]. The output is always in the
    /// byte order of this computer
    #[arg(long, value_name = "ORDER")]
    pub word_order: Option<WordOrder>,
    /// When packets of FADE are confirmed to the board: when they are in memory, or when they are safe on the disk
    #[arg(long, value_enum, default_value_t = ConfirmName::Memory, value_name = "WHEN")]
    pub confirm: ConfirmName,
    /// What counts as the end of a board's data. A run that ends otherwise is not called complete (exit status 3)
    #[arg(long, value_enum, default_value_t = Accept::Confirmed, value_name = "END")]
    pub end: Accept,
    /// Reset the boards first, even if another computer receives from them
    #[arg(long)]
    pub take_over: bool,
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

/// When packets are confirmed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum ConfirmName {
    /// They are in memory
    #[default]
    Memory,
    /// They are safe on the disk
    Durable,
}

impl From<ConfirmName> for Confirm {
    fn from(name: ConfirmName) -> Confirm {
        match name {
            ConfirmName::Memory => Confirm::Received,
            ConfirmName::Durable => Confirm::Released,
        }
    }
}

impl Args {
    /// Packets are confirmed when they are safe.
    pub fn is_durable(&self) -> bool {
        self.confirm == ConfirmName::Durable
    }
}

/// Scheduling of the threads that receive.
#[derive(clap::Args)]
pub struct Threads {
    /// CPUs for the receiving threads, as in 2,4-7
    #[arg(long, value_name = "LIST", conflicts_with = "by_ip")]
    pub cpus: Option<Cpus>,
    /// Real-time priority of the receiving threads, 1 to 99 (SCHED_FIFO; needs CAP_SYS_NICE)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=99), conflicts_with = "by_ip")]
    pub priority: Option<u32>,
    /// Scheduler slice of the receiving threads in microseconds, 100 to 100000; a short slice reduces the wait after a
    /// wake-up (Linux 6.12 and later)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(100..=100_000),
          conflicts_with_all = ["by_ip", "priority"])]
    pub slice: Option<u32>,
}

impl Threads {
    pub fn schedule(&self) -> Schedule {
        let slice = self.slice.map(|micros| Policy::Slice(Duration::from_micros(micros.into())));
        Schedule { cpus: self.cpus.clone(), policy: self.priority.map(Policy::RealTime).or(slice) }
    }
}

/// Options for boards with an IP protocol.
#[derive(clap::Args)]
pub struct Network {
    /// Receive from TCP senders, on this port
    #[arg(long, value_name = "PORT", group = "by_ip", value_parser = clap::value_parser!(u16).range(1..))]
    pub tcp: Option<u16>,
    /// Receive the streams of UDP/IP stacks, on this port
    #[arg(long, value_name = "PORT", group = "by_ip", value_parser = clap::value_parser!(u16).range(1..))]
    pub udp: Option<u16>,
    /// With --tcp, --udp: address to listen on
    #[arg(long, value_name = "IP", default_value_t = IpAddr::V4(Ipv4Addr::UNSPECIFIED), requires = "by_ip")]
    pub listen: IpAddr,
    /// With --tcp, --udp: end when this number of streams has ended [default: at Ctrl-C or --duration]
    #[arg(long, value_name = "N", requires = "by_ip", value_parser = clap::value_parser!(u32).range(1..))]
    pub streams: Option<u32>,
    /// With --tcp, --udp: receive buffer of each socket in bytes; the kernel doubles it [default: TCP: chosen by the kernel,
    /// UDP: 32 MiB]
    #[arg(long, value_name = "BYTES", requires = "by_ip",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(i32::MAX)))]
    pub receive_buffer: Option<u32>,
    /// With --udp: start the stream of this board towards this computer, and stop it at the end; repeat for several
    #[arg(long, value_name = "IP", requires = "udp")]
    pub board: Vec<Ipv4Addr>,
}

//! Arguments of `fadelink receive`, whatever the boards speak.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use fadelink_receiver::schedule::{Cpus, Policy, Schedule};
use fadelink_receiver::FebConfig;
use fadelink_sinks::{BlockKind, Spec};
use fadelink_wire::{Firmware, MacAddr, Protocol, WordOrder};

use crate::link::BackendArgs;
use crate::number;
use crate::pattern::Pattern;

#[derive(clap::Args)]
pub struct Args {
    /// Network interface of the FEBs
    #[arg(long, value_name = "NAME", required_unless_present = "by_ip")]
    pub iface: Option<String>,
    #[command(flatten)]
    pub backend_args: BackendArgs,
    /// FEB to receive from; repeat for several
    #[arg(long, value_name = "MAC", required_unless_present = "by_ip")]
    pub feb: Vec<MacAddr>,
    #[command(flatten)]
    pub network: Network,
    /// File for the data, words as this computer has them; one for each --feb, in order ("-": standard output); with --tcp
    /// and --udp {stream} in it stands for the address and port of each board's stream
    #[arg(long, value_name = "FILE")]
    pub out: Vec<PathBuf>,
    /// Replace files of --out that have data from an earlier run
    #[arg(long, requires = "out")]
    pub overwrite: bool,
    /// Where else the data goes: file:PATH[,direct][,preallocate=SIZE], hdf5:PATH (both [,roll=SIZE][,every=SECONDS][,overwrite]) or
    /// share:PATH[,wait]; all [,policy=drop[,queue=SIZE]]; repeat for several; {feb} in PATH stands for the address of each
    /// FEB, {stream} with --tcp and --udp for the address and port of each stream
    #[arg(long, value_name = "SINK")]
    pub sink: Vec<Spec<BlockKind>>,
    /// Verify the data: counter[:FIRST[:STEP]], counter32[:FIRST[:STEP]] (of 32-bit words) or random:SEED; one for all FEBs
    /// or one for each
    #[arg(long, value_name = "PATTERN")]
    pub verify: Vec<Pattern>,
    /// STOP after so many packets of 8192 bytes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub packets: Option<u64>,
    /// STOP after so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = number::seconds)]
    pub duration: Option<Duration>,
    /// Give up when no data comes for so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = number::seconds)]
    pub idle_timeout: Option<Duration>,
    /// Packets of 8192 bytes in the ring of each FEB or stream, a power of two
    #[arg(long, value_name = "N", default_value_t = FebConfig::default().ring_packets)]
    pub ring: u64,
    /// Packets of the FEB's window
    #[arg(long, value_name = "M", default_value_t = FebConfig::default().window)]
    pub window: u32,
    /// Number of the first packet (0 but in tests of its wrap)
    #[arg(long, value_name = "NUMBER", default_value = "0", value_parser = number::u32)]
    pub first_packet: u32,
    /// What the FEBs speak, fade10g or fade1; without it START finds out
    #[arg(long, value_name = "PROTOCOL")]
    pub protocol: Option<Protocol>,
    /// Whose core the FEBs run, fadelink, published-10g or published-v1; without it START finds out
    #[arg(long, value_name = "FIRMWARE")]
    pub firmware: Option<Firmware>,
    /// Byte order of the FEBs' data words on the wire, big or little; without it as their firmware has it. The data goes
    /// out in this computer's own
    #[arg(long, value_name = "ORDER")]
    pub word_order: Option<WordOrder>,
    /// RESET the FEB first, even if another computer receives from it
    #[arg(long)]
    pub take_over: bool,
    #[command(flatten)]
    pub threads: Threads,
    /// Serve the counters for Prometheus at http://ADDRESS/metrics
    #[arg(long, value_name = "IP:PORT")]
    pub metrics: Option<SocketAddr>,
    /// No progress
    #[arg(long)]
    pub quiet: bool,
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
}

/// What the threads that receive from FEBs ask of the scheduler.
#[derive(clap::Args)]
pub struct Threads {
    /// CPUs that the receiving threads may run on, as 2,4-7
    #[arg(long, value_name = "LIST", conflicts_with = "by_ip")]
    pub cpus: Option<Cpus>,
    /// Real-time priority of the receiving threads, 1 to 99 (SCHED_FIFO; needs CAP_SYS_NICE)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=99), conflicts_with = "by_ip")]
    pub priority: Option<u32>,
    /// Scheduler slice of the receiving threads in microseconds, 100 to 100000: with a short one they wait less after a
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

/// Of boards that speak an IP protocol.
#[derive(clap::Args)]
pub struct Network {
    /// Receive from TCP senders: the port that their connections come to
    #[arg(long, value_name = "PORT", group = "by_ip", value_parser = clap::value_parser!(u16).range(1..))]
    pub tcp: Option<u16>,
    /// Receive the streams of UDP/IP stacks: the port that they are sent to
    #[arg(long, value_name = "PORT", group = "by_ip", value_parser = clap::value_parser!(u16).range(1..))]
    pub udp: Option<u16>,
    /// With --tcp, --udp: the address to listen on
    #[arg(long, value_name = "IP", default_value_t = IpAddr::V4(Ipv4Addr::UNSPECIFIED), requires = "by_ip")]
    pub listen: IpAddr,
    /// With --tcp, --udp: end when so many streams have ended; without it, at Ctrl-C or --duration
    #[arg(long, value_name = "N", requires = "by_ip", value_parser = clap::value_parser!(u32).range(1..))]
    pub streams: Option<u32>,
    /// With --tcp, --udp: receive buffer of each socket in bytes (the kernel doubles it; without it, of TCP the kernel
    /// chooses, of UDP it is 32 MiB)
    #[arg(long, value_name = "BYTES", requires = "by_ip",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(i32::MAX)))]
    pub receive_buffer: Option<u32>,
    /// With --udp: direct this board's stream here by its slow control, start it, and stop it at the end; repeat for several
    #[arg(long, value_name = "IP", requires = "udp")]
    pub board: Vec<Ipv4Addr>,
}

//! What `fadelink receive --tcp` and `--udp` have in common.

use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;

use crate::pattern::Pattern;
use crate::{receive, Usage};

#[derive(clap::Args)]
pub struct Args {
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

/// What becomes of every stream.
pub struct Plan {
    pub out: Option<PathBuf>,
    pub verify: Option<Pattern>,
    pub packets: Option<u64>,
    pub idle_timeout: Option<Duration>,
}

impl Plan {
    /// From the arguments.
    ///
    /// # Errors
    /// Arguments that do not fit together.
    pub fn of(args: &receive::Args) -> Result<Plan, Usage> {
        let usage = |text: String| Err(Usage(text));
        if args.network.tcp.is_some() && !args.network.board.is_empty() {
            return usage("--board: not with --tcp, where the boards open the connections".into());
        }
        if args.verify.len() > 1 {
            return usage(format!(
                "--verify: expected one for all streams with --tcp and --udp, not {}",
                args.verify.len()
            ));
        }
        if args.out.len() > 1 {
            return usage(format!(
                "--out: expected one with {{stream}} in it with --tcp and --udp, not {}",
                args.out.len()
            ));
        }
        let out = args.out.first().cloned();
        let has_place = out.as_ref().is_none_or(|out| out.to_string_lossy().contains("{stream}"));
        if !has_place && args.network.streams != Some(1) {
            return usage("--out: expected {stream} in the path, for each stream, or --streams 1".into());
        }
        if out.as_ref().is_some_and(|out| out.as_os_str() == "-") && args.json {
            return usage("--out -: standard output has room for one stream, and not for --json beside it".into());
        }
        let verify = args.verify.first().copied();
        Ok(Plan { out, verify, packets: args.packets, idle_timeout: args.idle_timeout })
    }
}

/// Where the data of one stream goes.
///
/// # Errors
/// The file cannot be written.
pub fn open(path: &Path, peer: SocketAddr) -> anyhow::Result<Box<dyn Write + Send>> {
    if path.as_os_str() == "-" {
        return Ok(Box::new(io::stdout()));
    }
    let name = path.to_string_lossy().replace("{stream}", &format!("{}-{}", peer.ip(), peer.port()));
    Ok(Box::new(std::fs::File::create(&name).with_context(|| format!("writing {name}"))?))
}

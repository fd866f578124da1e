//! What `fadelink receive --tcp` and `--udp` do with every stream.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;

use super::args::Args;
use crate::exit::Usage;
use crate::pattern::Pattern;

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
    pub fn of(args: &Args) -> Result<Plan, Usage> {
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

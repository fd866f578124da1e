//! `fadelink receive`: passes data of boards to files and other sinks, and verifies it. One file for each protocol;
//! the others have the common parts.

use std::process::ExitCode;

use crate::exit::Usage;

mod args;
mod board;
mod fade;
mod plan;
mod summary;
mod tcp;
mod udp;

pub use args::Args;
pub use udp::RECEIVE_BUFFER as UDP_BUFFER;

/// Receives as the arguments say.
///
/// # Errors
/// Wrong arguments, an interface, port or sink that cannot be opened, a second interrupt.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let by_ip = args.network.tcp.is_some() || args.network.udp.is_some();
    let not_by_ip = [("--iface", args.iface.is_some()), ("--feb", !args.feb.is_empty())];
    if let Some((name, _)) = not_by_ip.iter().find(|(_, given)| by_ip && *given) {
        return Err(Usage(format!("{name}: not with --tcp or --udp, which receive what is sent to their port")).into());
    }
    match (args.network.tcp, args.network.udp) {
        (Some(port), _) => tcp::run(args, port),
        (None, Some(port)) => udp::run(args, port),
        (None, None) => fade::run(args),
    }
}

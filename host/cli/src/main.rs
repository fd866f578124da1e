//! The `fadelink` command. Exit status: 0 done (of `receive`: all data is complete and, if asked,
//! verified), 1 failed, 2 wrong arguments, 3 data incomplete or wrong.

mod build;
mod command;
mod crates;
mod discover;
mod dissect;
mod feb;
mod feed;
mod metrics;
mod network;
mod number;
mod pattern;
mod progress;
mod receive;
mod receive_tcp;
mod receive_udp;
mod register;
mod slow_control;
mod status;
mod top;

use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};
use fadelink_receiver::backend::packet::Packet;
use fadelink_receiver::backend::xdp::Xdp;
use fadelink_receiver::Receiver;

/// Exit status of wrong arguments.
const USAGE: u8 = 2;
/// Exit status of data that is not complete or not what the pattern says.
const INCOMPLETE: u8 = 3;

#[derive(Parser)]
#[command(version, about = "Detector data from an FPGA to Linux, nothing lost")]
struct Cli {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// List the FEBs behind an interface
    Discover(discover::Args),
    /// Receive the data of FEBs until Ctrl-C, or until as much as asked for
    Receive(Box<receive::Args>),
    /// Join the messages of FADC crates by time window
    Build(Box<build::Args>),
    /// Give the messages of FADC crates to Apache Kafka, for builders on many machines
    Feed(feed::Args),
    /// Send a user command to a FEB and print the value of its response
    Cmd(command::Args),
    /// Read or write a register of a UDP/IP board
    Register(register::Args),
    /// Show the state and the counters of FEBs
    Status(status::Args),
    /// Watch the rates and counters of many FEBs
    Top(top::Args),
    /// Be front-end boards in software, to load receivers
    Feb(feb::Args),
    /// Print the FADE frames of a capture
    Dissect(dissect::Args),
}

/// How frames come from the wire.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum BackendName {
    /// AF_PACKET socket with a memory-mapped ring
    Packet,
    /// AF_XDP: frames of the FEBs go past the kernel's network stack
    Xdp,
    /// The kernel driver, /dev/l3_fpga%d
    Kernel,
}

/// The interface to use.
#[derive(clap::Args)]
struct Link {
    /// Network interface of the FEBs
    #[arg(long, value_name = "NAME")]
    iface: String,
    #[command(flatten)]
    how: How,
}

/// How to use it.
#[derive(clap::Args, Clone, Copy)]
struct How {
    /// How frames come from the wire
    #[arg(long, value_enum, default_value_t = BackendName::Packet)]
    backend: BackendName,
    /// With --backend xdp: look for frames instead of waiting for interrupts
    #[arg(long)]
    busy_poll: bool,
}

impl Link {
    /// Frames as they are, for `discover`: no FEB is known yet that a device could have.
    fn frames(&self) -> anyhow::Result<Packet> {
        Ok(Packet::open(&self.iface)?)
    }

    fn receiver(&self) -> anyhow::Result<Receiver> {
        Ok(match self.how.backend {
            BackendName::Packet => Receiver::spawn(Packet::open(&self.iface)?)?,
            BackendName::Xdp => match Xdp::open(&self.iface, self.how.busy_poll) {
                Ok(xdp) => {
                    let copies = if xdp.is_zero_copy() { "zero-copy" } else { "copy mode" };
                    eprintln!("fadelink: AF_XDP on {}, {copies}", self.iface);
                    Receiver::spawn(xdp)?
                }
                Err(error) => {
                    eprintln!("fadelink: AF_XDP is not to be had on {}: {error}; using AF_PACKET", self.iface);
                    Receiver::spawn(Packet::open(&self.iface)?)?
                }
            },
            BackendName::Kernel => Receiver::kernel(&self.iface)?,
        })
    }

    /// A receiver that only sends commands and looks on.
    fn passive(&self) -> anyhow::Result<Receiver> {
        Ok(match self.how.backend {
            // A few commands are not worth a program in the kernel.
            BackendName::Packet | BackendName::Xdp => Receiver::spawn_passive(Packet::open(&self.iface)?)?,
            BackendName::Kernel => Receiver::kernel(&self.iface)?,
        })
    }
}

/// Wrong arguments that only show when they are looked at together.
#[derive(Debug)]
struct Usage(String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if !error.use_stderr() => {
            let _ = error.print();
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            // clap's message without its usage: one line.
            let text = error.to_string();
            let lines: Vec<_> = text.lines().take_while(|line| !line.is_empty()).map(str::trim).collect();
            let text = lines.join(" ");
            eprintln!("fadelink: {}", text.strip_prefix("error: ").unwrap_or(&text));
            return ExitCode::from(USAGE);
        }
    };
    let result = match cli.action {
        Action::Discover(args) => discover::run(&args),
        Action::Receive(args) => receive::run(&args),
        Action::Build(args) => build::run(&args),
        Action::Feed(args) => feed::run(&args),
        Action::Cmd(args) => command::run(&args),
        Action::Register(args) => register::run(&args),
        Action::Status(args) => status::run(&args),
        Action::Top(args) => top::run(&args),
        Action::Feb(args) => feb::run(&args),
        Action::Dissect(args) => dissect::run(&args),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("fadelink: {error:#}");
            ExitCode::from(if error.is::<Usage>() { USAGE } else { 1 })
        }
    }
}

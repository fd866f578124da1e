//! The `fadelink` command. Exit status: 0 done (of `receive`: all data is complete and, if asked,
//! verified), 1 failed, 2 wrong arguments, 3 data incomplete or wrong.

mod build;
mod command;
mod deadline;
mod discover;
mod dissect;
mod doctor;
mod exit;
mod fadc_crates;
mod feb;
#[cfg(feature = "kafka")]
mod feed;
mod interrupts;
mod link;
mod log;
mod metrics;
mod number;
mod pattern;
mod receive;
mod register;
mod slow_control;
mod status;
mod top;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(version, about = "Detector data from an FPGA to Linux, nothing lost")]
struct Cli {
    #[command(flatten)]
    log: log::Args,
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
    #[cfg(feature = "kafka")]
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
    /// Say what this computer and its network cards offer to a receiver, and what would make it better
    Doctor(doctor::Args),
    /// Print the FADE frames of a capture
    Dissect(dissect::Args),
}

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
            return ExitCode::from(exit::USAGE);
        }
    };
    if let Err(error) = cli.log.begin() {
        eprintln!("fadelink: {error:#}");
        return ExitCode::FAILURE;
    }
    let result = match cli.action {
        Action::Discover(args) => discover::run(&args),
        Action::Receive(args) => receive::run(&args),
        Action::Build(args) => build::run(&args),
        #[cfg(feature = "kafka")]
        Action::Feed(args) => feed::run(&args),
        Action::Cmd(args) => command::run(&args),
        Action::Register(args) => register::run(&args),
        Action::Status(args) => status::run(&args),
        Action::Top(args) => top::run(&args),
        Action::Feb(args) => feb::run(&args),
        Action::Doctor(args) => doctor::run(&args),
        Action::Dissect(args) => dissect::run(&args),
    };
    result.unwrap_or_else(|error| exit::of_error(&error))
}

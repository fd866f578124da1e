//! The `fadelink` command.

// Its macros are for all that follows.
#[macro_use]
mod print;

mod access;
mod arguments;
mod board;
mod build;
mod checksum;
mod command;
mod deadline;
mod demo;
mod discover;
mod dissect;
mod doctor;
mod exit;
mod expected;
mod fadc_crates;
mod feb;
#[cfg(feature = "kafka")]
mod feed;
mod generate;
mod health;
mod http;
mod interrupts;
#[cfg(feature = "kafka")]
mod kafka_client;
mod link;
mod log;
mod metrics;
mod names;
mod number;
mod pattern;
mod placeholders;
mod progress;
mod receive;
mod register;
mod run;
mod slow_control;
mod standard_error;
mod status;
mod text;
mod time_in_names;
mod top;
mod verdict;

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};
use rustix::process::{getrlimit, setrlimit, Resource, Rlimit};

/// What the help of a subcommand begins with: the command that runs a board in one terminal, and those for the other.
macro_rules! example {
    ($board:literal, $($command:literal),+) => {
        concat!("Example:\n  terminal 1: ", $board, $("\n  terminal 2: ", $command),+)
    };
}

#[derive(Parser)]
#[command(version, about = "Detector data from an FPGA to Linux, nothing lost", arg_required_else_help = true)]
struct Cli {
    #[command(flatten)]
    log: log::Args,
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// List the boards behind a network interface; published ones of FADE v1 only while they send
    #[command(before_help = example!("fadelink-sim --iface fade0 --create-tap", "fadelink discover --iface fade0"))]
    Discover(discover::Args),
    /// Receive the data of boards, until Ctrl-C or a limit
    #[command(before_help = example!(
        "fadelink-sim --iface fade0 --create-tap",
        "fadelink receive --iface fade0 --feb 02:fa:de:00:00:01 --verify counter --packets 500"
    ))]
    Receive(Box<receive::command::Args>),
    /// Receive as the file of an experiment says, into a folder for each run
    #[command(before_help = example!(
        "fadelink-sim --iface fade0 --create-tap",
        "fadelink discover --iface fade0 --experiment first.toml",
        "fadelink run first.toml --duration 5"
    ))]
    Run(run::Args),
    /// Start a run of an experiment whose `fadelink run` waits for that
    #[command(before_help = example!("fadelink run experiment.toml", "fadelink start experiment.toml"))]
    Start(run::AskArgs),
    /// Stop the run of an experiment, and wait until its data is written
    #[command(before_help = example!("fadelink run experiment.toml", "fadelink stop experiment.toml"))]
    Stop(run::AskArgs),
    /// Check that the files of a run are complete and as they were received
    #[command(before_help = example!(
        "fadelink-sim --iface fade0 --create-tap",
        "fadelink discover --iface fade0 --experiment first.toml",
        "fadelink run first.toml --duration 5",
        "fadelink check runs/run_000001"
    ))]
    Check(run::CheckArgs),
    /// Play a run back, as boards in software
    #[command(before_help = example!(
        "fadelink replay runs/run_000001 --iface feb0",
        "fadelink receive --iface eth0 --feb 02:fa:de:00:00:01 --verify counter --packets 500"
    ))]
    Replay(run::ReplayArgs),
    /// Join the messages of FADC crates by time window
    #[command(before_help = example!(
        "fadelink-sim --iface fade0 --create-tap --protocol fadc --small --phy gmii --windows 50",
        "ip address add 10.9.0.1/24 dev fade0",
        "fadelink build --tcp 10000 --window-ns 65536 --expect 1 --events 40"
    ))]
    Build(Box<build::command::Args>),
    /// Send the messages of FADC crates to Apache Kafka, for builders on many computers
    #[cfg(feature = "kafka")]
    #[command(before_help = example!(
        "fadelink-sim --iface fade0 --create-tap --protocol fadc --small --phy gmii --windows 50",
        "ip address add 10.9.0.1/24 dev fade0",
        "fadelink feed --tcp 10000 --kafka localhost:9092 --duration 20"
    ))]
    Feed(feed::Args),
    /// Show all of it: two simulated boards, a cable that loses frames, and a receiver that verifies every word
    #[command(before_help = "Example:\n  fadelink demo --seconds 5")]
    Demo(demo::Args),
    /// Write man pages and completions, for packages
    #[command(hide = true)]
    Generate(generate::Args),
    /// Send a user command to a board and print the value of its response; FADE v1 has no commands
    #[command(before_help = example!(
        "fadelink-sim --iface fade0 --create-tap",
        "fadelink cmd --iface fade0 --feb 02:fa:de:00:00:01 0x0100"
    ))]
    Cmd(command::Args),
    /// Read or write a register of a board with the UDP/IP stack
    #[command(before_help = example!(
        "fadelink-sim --iface fade0 --create-tap --protocol udp",
        "ip address add 10.9.0.1/24 dev fade0",
        "fadelink register --board 10.9.0.2 0x80000100"
    ))]
    Register(register::Args),
    /// Print the state and the counters of boards; those with FADE v1 have no counters
    #[command(before_help = example!("fadelink-sim --iface fade0 --create-tap", "fadelink status --iface fade0"))]
    Status(status::Args),
    /// Watch the rates and counters of many boards; those with FADE v1 have no counters
    #[command(before_help = example!("fadelink-sim --iface fade0 --create-tap --boards 4", "fadelink top --iface fade0"))]
    Top(top::Args),
    /// Run front-end boards in software, to load receivers at full speed
    #[command(before_help = example!(
        "fadelink feb --iface feb0 --feb 02:fa:de:00:00:01",
        "fadelink receive --iface eth0 --feb 02:fa:de:00:00:01 --verify counter --packets 500"
    ))]
    Feb(feb::Args),
    /// Check the settings of this computer and its network cards
    #[command(before_help = example!("fadelink-sim --iface fade0 --create-tap", "fadelink doctor --iface fade0"))]
    Doctor(doctor::Args),
    /// Print the FADE frames of a capture
    #[command(before_help = example!(
        "fadelink-sim --virtual --packets 300 --pcap run.pcap",
        "fadelink dissect --summary run.pcap"
    ))]
    Dissect(dissect::Args),
}

#[cfg(feature = "kafka")]
impl Action {
    /// How it gets to brokers of Kafka, if it may need them; `run` has that in the file of the experiment.
    fn kafka_client(&self) -> Option<&kafka_client::Args> {
        match self {
            Action::Receive(args) => Some(&args.kafka_client),
            Action::Check(args) => Some(&args.kafka_client),
            Action::Replay(args) => Some(&args.kafka_client),
            Action::Build(args) => Some(&args.kafka_client),
            Action::Feed(args) => Some(&args.kafka_client),
            _ => None,
        }
    }
}

/// File descriptors that the process may have, if the user allows as many.
const DESCRIPTORS: u64 = 1 << 16;

/// Boards, their rings and files need more descriptors than the 1,024 that a process has where it does not ask for them.
fn allow_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.map_or(DESCRIPTORS, |most| most.min(DESCRIPTORS));
    if limit.current.is_some_and(|current| current < wanted) {
        // With those that there are it works, too; what lacks one tells it.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), ..limit });
    }
}

/// The command with all its options.
fn command() -> clap::Command {
    Cli::command().mut_subcommand("build", build::command::exclude)
}

/// Does what the user wants.
fn act() -> ExitCode {
    let cli = match arguments::parse::<Cli>(command()) {
        Ok(cli) => cli,
        Err(error) if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            print::note(command().print_help());
            return ExitCode::SUCCESS;
        }
        Err(error) if !error.use_stderr() => {
            print::note(error.print());
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            log::error(&arguments::in_one_line(&error, &command()));
            return ExitCode::from(exit::USAGE);
        }
    };
    allow_descriptors();
    if let Err(error) = interrupts::survive_long_files() {
        log::error(&format!("handling SIGXFSZ: {error}"));
        return ExitCode::FAILURE;
    }
    if let Err(error) = cli.log.begin() {
        log::error(&format!("{error:#}"));
        return ExitCode::FAILURE;
    }
    #[cfg(feature = "kafka")]
    if let Some(Err(error)) = cli.action.kafka_client().map(kafka_client::Args::begin) {
        return exit::of_error(&error.into());
    }
    let result = match cli.action {
        Action::Discover(args) => discover::run(&args),
        Action::Receive(args) => receive::command::run(&args),
        Action::Run(args) => run::run(&args),
        Action::Start(args) => run::ask(&args, run::Wish::Start),
        Action::Stop(args) => run::ask(&args, run::Wish::Stop),
        Action::Check(args) => run::check(&args),
        Action::Replay(args) => run::replay(&args),
        Action::Build(args) => build::command::run(&args),
        #[cfg(feature = "kafka")]
        Action::Feed(args) => feed::run(&args),
        Action::Demo(args) => demo::run(&args),
        Action::Generate(args) => generate::run(&args, command()),
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

fn main() -> ExitCode {
    let status = act();
    let status = match print::end() {
        Ok(()) => status,
        Err(error) => exit::of_print(status, error),
    };
    standard_error::end();
    status
}

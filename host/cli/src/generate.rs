//! `fadelink generate`, for packages: man pages and completions, from the description of the command.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Command, ValueEnum};
use clap_complete::Shell;
use clap_mangen::roff::{bold, roman, Roff};
use clap_mangen::Man;

use crate::exit;

#[derive(clap::Args)]
pub struct Args {
    /// Folder of the man pages
    #[arg(long, value_name = "FOLDER")]
    man: Option<PathBuf>,
    /// Folder of the completions of all shells
    #[arg(long, value_name = "FOLDER")]
    completions: Option<PathBuf>,
}

/// Files that commands use: name, meaning.
type Files = &'static [(&'static str, &'static str)];
const EXPERIMENT: (&str, &str) = ("experiment.toml", "the experiment; fadelink run --schema prints its fields");
const RUN: (&str, &str) =
    ("runs/run_000001/", "a run: manifest.json, experiment.toml, log.jsonl, the files of its sinks");
const SOCKET: (&str, &str) = ("runs/control.socket", "where fadelink run is asked to start and to stop");
const REGISTERS: (&str, &str) = ("registers.toml", "names of a board's registers and user commands, for --registers");
const NUMBERS: (&str, &str) = (
    "/var/lib/fadelink/csn/",
    "the number of the last command to each board, which all programs of this computer share: members of the group of the \
     folder write it",
);
const CLAIMS: (&str, &str) = (
    "/run/fadelink/",
    "which program has which board: a file for each, with its process and name; members of the group of the folder write it",
);
const INTERFACE: (&str, &str) = ("/sys/class/net/", "network interfaces, for --iface");
const TUN: (&str, &str) = ("/dev/net/tun", "makes the interface of simulated boards");
const DRIVER: (&str, &str) = ("/dev/l3_fpga0", "a board of the kernel driver, for --backend kernel");
const MONITORING: (&str, &str) = ("/usr/share/fadelink/monitoring/", "alert rules and a dashboard, for --metrics");

/// The files of a command, and the commands that belong to it.
fn related(name: &str) -> (Files, &'static [&'static str]) {
    match name {
        "discover" => (&[EXPERIMENT, NUMBERS, CLAIMS], &["receive", "run", "status", "cmd"]),
        "receive" => (
            &[
                ("/etc/fadelink/NAME.receive", "arguments of the unit fadelink-receive@NAME"),
                NUMBERS,
                CLAIMS,
                DRIVER,
                MONITORING,
            ],
            &["discover", "run", "build", "doctor"],
        ),
        "run" => (
            &[
                EXPERIMENT,
                RUN,
                SOCKET,
                ("/etc/fadelink/NAME.toml", "the experiment of the unit fadelink-run@NAME"),
                NUMBERS,
                CLAIMS,
                DRIVER,
            ],
            &["discover", "start", "stop", "check", "replay"],
        ),
        "start" | "stop" => (&[EXPERIMENT, SOCKET], &["run"]),
        "check" => (&[RUN], &["run", "replay"]),
        "replay" => (&[RUN], &["run", "check", "feb"]),
        "build" => (
            &[("/etc/fadelink/NAME.build", "arguments of the unit fadelink-build@NAME"), MONITORING],
            &["feed", "run", "receive"],
        ),
        "feed" => (&[("/etc/fadelink/NAME.feed", "arguments of the unit fadelink-feed@NAME"), MONITORING], &["build"]),
        "demo" => (&[TUN, NUMBERS, CLAIMS], &["receive"]),
        "cmd" => (&[REGISTERS, NUMBERS, CLAIMS], &["discover", "status", "register"]),
        "register" => (&[REGISTERS, CLAIMS], &["cmd", "status"]),
        "status" => (&[REGISTERS, NUMBERS, CLAIMS], &["discover", "top", "cmd"]),
        "top" => (&[REGISTERS, NUMBERS, CLAIMS], &["discover", "status"]),
        "feb" => (&[INTERFACE], &["receive", "replay"]),
        "doctor" => (
            &[
                ("/proc/sys/net/", "settings of the network"),
                ("/sys/class/net/", "settings of the network cards, and which CPUs they interrupt"),
            ],
            &["receive"],
        ),
        "dissect" => (&[("run.pcap", "a capture, as tcpdump and fadelink-sim --pcap write it")], &["receive"]),
        _ => (
            &[
                ("/etc/fadelink/", "experiments and arguments of the systemd units"),
                ("/var/lib/fadelink/", "data of the systemd units"),
                NUMBERS,
                CLAIMS,
                MONITORING,
            ],
            &[],
        ),
    }
}

/// The man page of a command; `siblings`: those that the command has.
fn write_page(command: &Command, siblings: &[String], out: &mut impl Write) -> io::Result<()> {
    let man = Man::new(command.clone()).source(concat!("fadelink ", env!("CARGO_PKG_VERSION")));
    man.render_title(out)?;
    man.render_name_section(out)?;
    man.render_synopsis_section(out)?;
    man.render_description_section(out)?;
    man.render_options_section(out)?;
    if command.has_subcommands() {
        man.render_subcommands_section(out)?;
    }
    let mut more = Roff::new();
    let mut list = |title: &str, entries: &[(&str, &str)]| {
        if !entries.is_empty() {
            more.control("SH", [title]);
        }
        for (name, meaning) in entries {
            more.control("TP", []).text([bold(*name)]).text([roman(*meaning)]);
        }
    };
    let (files, see) = related(command.get_name());
    list("EXIT STATUS", exit::STATUSES);
    list("FILES", files);
    if let Some(example) = command.get_before_help() {
        more.control("SH", ["EXAMPLES"]).control("nf", []);
        for line in example.to_string().lines().skip(1) {
            more.text([roman(line)]);
        }
        more.control("fi", []);
    }
    // A command may be built without some of the others.
    let see = siblings.iter().filter(|name| see.is_empty() || see.contains(&name.as_str()));
    let mut pages: Vec<_> = see.map(|name| format!("fadelink-{name}")).collect();
    pages.push("fadelink-sim".into());
    if command.get_name() != "fadelink" {
        pages.insert(0, "fadelink".into());
    }
    more.control("SH", ["SEE ALSO"]);
    let last = pages.len() - 1;
    for (i, page) in pages.into_iter().enumerate() {
        more.text([bold(page), roman(if i == last { "(1)" } else { "(1)," })]);
    }
    more.to_writer(out)
}

fn write_pages(command: &mut Command, folder: &Path) -> io::Result<()> {
    command.build();
    let shown: Vec<_> = command.get_subcommands().filter(|action| !action.is_hide_set()).collect();
    let names: Vec<_> = shown.iter().map(|action| action.get_name().to_owned()).collect();
    for page in shown.into_iter().chain([&*command]) {
        write_page(page, &names, &mut File::create(folder.join(Man::new(page.clone()).get_filename()))?)?;
    }
    Ok(())
}

/// Writes what is asked for.
///
/// # Errors
/// A folder that does not exist.
pub fn run(args: &Args, command: Command) -> anyhow::Result<ExitCode> {
    let mut command = command.disable_help_subcommand(true);
    let name = command.get_name().to_owned();
    if let Some(folder) = &args.completions {
        for shell in Shell::value_variants() {
            clap_complete::generate_to(*shell, &mut command, &name, folder)
                .with_context(|| folder.display().to_string())?;
        }
    }
    if let Some(folder) = &args.man {
        write_pages(&mut command, folder).with_context(|| folder.display().to_string())?;
    }
    Ok(ExitCode::SUCCESS)
}

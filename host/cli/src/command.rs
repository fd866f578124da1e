//! `fadelink cmd`: one user command.

use std::process::ExitCode;
use std::time::Duration;

use fadelink_receiver::{DEFAULT_RETRIES, DEFAULT_TIMEOUT};
use fadelink_wire::{fade10g, MacAddr};
use serde_json::json;

use crate::link::Link;
use crate::names::{self, Which};
use crate::number;

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    link: Link,
    /// MAC address of the board
    #[arg(long, value_name = "MAC")]
    feb: MacAddr,
    #[command(flatten)]
    names: names::Args,
    /// Code of the command, 0x0100 to 0xffff, or its name, or that of a register
    #[arg(value_parser = user_code)]
    code: Which<u16>,
    /// Argument, 32 bits; with it a register is written
    #[arg(value_parser = number::u32)]
    argument: Option<u32>,
    /// Time between two attempts in milliseconds
    #[arg(long, value_name = "MS", default_value_t = DEFAULT_TIMEOUT.as_millis() as u64,
          value_parser = clap::value_parser!(u64).range(1..=600_000))]
    timeout: u64,
    /// Number of attempts after the first
    #[arg(long, default_value_t = DEFAULT_RETRIES, value_parser = clap::value_parser!(u32).range(0..=1000))]
    retries: u32,
    /// Send the command this number of times, each with its own sequence number
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn user_code(text: &str) -> Result<Which<u16>, String> {
    let code = |text: &str| {
        number::u16(text)
            .ok()
            .filter(|code| *code >= fade10g::CMD_USER_FIRST)
            .ok_or_else(|| "expected the code of a user command, 0x0100 to 0xffff".into())
    };
    Which::parse(text, code)
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let code = match &args.code {
        Which::Number(code) => *code,
        Which::Name(name) => args.names.read()?.code(name, args.argument.is_some())?,
    };
    let argument = args.argument.unwrap_or(0);
    let receiver = args.link.passive()?;
    let feb = receiver.open_for_commands(args.feb)?;
    for _ in 0..args.repeat {
        let timeout = Duration::from_millis(args.timeout);
        let value = feb.command_with(code, argument, timeout, args.retries)?;
        if args.json {
            println!("{}", json!({ "feb": args.feb.to_string(), "code": code, "argument": argument, "value": value }));
        } else {
            println!("{value:#018x} {value}");
        }
    }
    Ok(ExitCode::SUCCESS)
}

//! `fadelink cmd`: one user command, or an access to a register by its name.

use std::process::ExitCode;
use std::time::Duration;

use fadelink_receiver::{Commander, DEFAULT_RETRIES, DEFAULT_TIMEOUT};
use fadelink_wire::{fade10g, MacAddr};
use serde_json::json;

use crate::access::{Access, Asked, Bus, Target};
use crate::link::Link;
use crate::names::{self, Register, Which, READ_REGISTER, WRITE_REGISTER};
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
    /// Argument, 32 bits; with a name: the value that a register or its field gets, in its unit, which may follow; or its bits
    /// with 0x
    #[arg(value_name = "VALUE", allow_hyphen_values = true)]
    value: Option<String>,
    /// Unit of the value
    #[arg(value_name = "UNIT")]
    unit: Option<String>,
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

/// The registers behind the user commands of a FEB.
struct UserCommands {
    feb: Commander,
    timeout: Duration,
    retries: u32,
}

impl UserCommands {
    /// `what`: what is asked for, in words.
    fn ask(&mut self, code: u16, argument: u32, what: &str) -> anyhow::Result<u64> {
        let value = self.feb.command_with(code, argument, self.timeout, self.retries)?;
        anyhow::ensure!(
            value != names::NONE,
            "the board has no {what}, or the access failed: it answered all ones to command {code:#06x}"
        );
        Ok(value)
    }
}

impl Bus for UserCommands {
    fn reaches(&self, target: Target) -> anyhow::Result<()> {
        match target {
            Target::Register(register, _) => register.code(false).map(drop),
            Target::Command(_) => Ok(()),
        }
    }

    fn read(&mut self, register: &Register) -> anyhow::Result<u64> {
        self.ask(register.code(false)?, 0, &format!("register `{}`", register.name))
    }

    fn write(&mut self, register: &Register, word: u32) -> anyhow::Result<u64> {
        self.ask(register.code(true)?, word, &format!("register `{}` that can be written", register.name))
    }

    fn command(&mut self, name: &str, code: u16, argument: u32) -> anyhow::Result<u64> {
        self.ask(code, argument, &format!("command `{name}`"))
    }

    fn identity(&mut self) -> anyhow::Result<u64> {
        self.ask(READ_REGISTER, 0, "register 0")
    }
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let names = args.names.read()?;
    let value: Vec<_> = args.value.iter().chain(&args.unit).cloned().collect();
    let argument = match &args.code {
        Which::Number(_) => number::plain(&value)?.unwrap_or(0),
        Which::Name(_) => 0,
    };
    let receiver = args.link.passive()?;
    let feb = receiver.open_for_commands(args.feb)?;
    let timeout = Duration::from_millis(args.timeout);
    let mut bus = UserCommands { feb, timeout, retries: args.retries };
    if args.names.is_named() && matches!(args.code, Which::Number(_)) {
        names.compare(&mut bus)?;
    }
    for _ in 0..args.repeat {
        let found = match &args.code {
            Which::Number(code) => {
                let word = bus.ask(*code, argument, "such register or command")?;
                Access { asked: Asked::Command(*code, argument), word, shown: vec![] }
            }
            Which::Name(name) => names.access(name, &value, &mut bus)?,
        };
        if args.json {
            let (code, argument) = match found.asked {
                Asked::Command(code, argument) => (code, argument),
                Asked::Read(register) => (READ_REGISTER | register as u16, 0),
                Asked::Write(register, word) => (WRITE_REGISTER | register as u16, word),
            };
            let mut line = json!({ "feb": args.feb.to_string(), "code": code, "argument": argument, "value": number::json(found.word) });
            if !found.shown.is_empty() {
                line["registers"] = found.json();
            }
            out!("{line}");
        } else {
            found.lines().iter().for_each(|line| out!("{line}"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

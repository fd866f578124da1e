//! `fadelink register`: reads or writes a register of a UDP/IP board.

use std::net::Ipv4Addr;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{anyhow, bail};
use serde_json::json;

use crate::access::{Access, Asked, Bus, Target};
use crate::names::{self, Register, Which, WORD_BITS};
use crate::number;
use crate::slow_control::SlowControl;

#[derive(clap::Args)]
pub struct Args {
    /// IP address of the board
    #[arg(long, value_name = "IP")]
    board: Ipv4Addr,
    #[command(flatten)]
    names: names::Args,
    /// Address of the register, or its name
    #[arg(value_parser = register_address)]
    address: Which<u32>,
    /// Value to write, 32 bits; with a name: in the unit of the register or field, which may follow, or its bits with 0x. Without
    /// it the register is read
    #[arg(value_name = "VALUE", allow_hyphen_values = true)]
    value: Option<String>,
    /// Unit of the value
    #[arg(value_name = "UNIT")]
    unit: Option<String>,
    /// Time between two attempts in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..=600_000))]
    timeout: u64,
    /// Number of attempts after the first
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(0..=1000))]
    retries: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn register_address(text: &str) -> Result<Which<u32>, String> {
    Which::parse(text, number::u32)
}

/// The registers behind slow control.
struct Registers {
    board: SlowControl,
}

fn no_commands(name: &str) -> anyhow::Error {
    anyhow!("`{name}` is a user command: expected a register, as slow control has no commands")
}

impl Bus for Registers {
    fn reaches(&self, target: Target) -> anyhow::Result<()> {
        let register = match target {
            Target::Command(command) => return Err(no_commands(&command.name)),
            Target::Register(register, _) => register,
        };
        let beyond = register.fields.iter().find(|field| field.low + field.written_bits() > WORD_BITS);
        beyond.map_or(Ok(()), |field| {
            let (name, low, bits) = (field.name_in(register), field.low, field.bits());
            bail!(
                "field `{name}`: {bits} bits from bit {low} on, expected all within 32, as slow control has no others"
            )
        })
    }

    fn read(&mut self, register: &Register) -> anyhow::Result<u64> {
        self.board.read(register.number).map(u64::from)
    }

    fn write(&mut self, register: &Register, word: u32) -> anyhow::Result<u64> {
        self.board.write(register.number, word).map(u64::from)
    }

    fn command(&mut self, name: &str, _: u16, _: u32) -> anyhow::Result<u64> {
        Err(no_commands(name))
    }

    fn identity(&mut self) -> anyhow::Result<u64> {
        self.board.read(0).map(u64::from)
    }
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let names = args.names.read()?;
    let words: Vec<_> = args.value.iter().chain(&args.unit).cloned().collect();
    let value = match &args.address {
        Which::Number(_) => number::plain(&words)?,
        Which::Name(_) => None,
    };
    let board = SlowControl::new(args.board, Duration::from_millis(args.timeout), args.retries)?;
    let mut bus = Registers { board };
    let found = match &args.address {
        Which::Name(name) => names.access(name, &words, &mut bus)?,
        Which::Number(address) => {
            if args.names.is_named() {
                names.compare(&mut bus)?;
            }
            let (asked, word) = match value {
                None => (Asked::Read(*address), bus.board.read(*address)?),
                Some(value) => (Asked::Write(*address, value), bus.board.write(*address, value)?),
            };
            Access { asked, word: word.into(), shown: vec![] }
        }
    };
    if args.json {
        let (Asked::Read(address) | Asked::Write(address, _)) = found.asked else {
            bail!("slow control has no commands")
        };
        let mut line = json!({ "board": args.board.to_string(), "address": address, "value": found.word });
        if !found.shown.is_empty() {
            line["registers"] = found.json();
        }
        out!("{line}");
    } else if found.shown.is_empty() {
        out!("{0:#010x} {0}", found.word);
    } else {
        found.lines().iter().for_each(|line| out!("{line}"));
    }
    Ok(ExitCode::SUCCESS)
}

//! `fadelink register`: reads or writes a register of a UDP/IP board.

use std::net::Ipv4Addr;
use std::process::ExitCode;
use std::time::Duration;

use serde_json::json;

use crate::names::{self, Which};
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
    /// Value to write; without it the register is read
    #[arg(value_parser = number::u32)]
    value: Option<u32>,
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

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let address = match &args.address {
        Which::Number(address) => *address,
        Which::Name(name) => args.names.read()?.accessed(name, args.value.is_some())?.number,
    };
    let mut board = SlowControl::new(args.board, Duration::from_millis(args.timeout), args.retries)?;
    let value = match args.value {
        None => board.read(address)?,
        Some(value) => board.write(address, value)?,
    };
    if args.json {
        println!("{}", json!({ "board": args.board.to_string(), "address": address, "value": value }));
    } else {
        println!("{value:#010x} {value}");
    }
    Ok(ExitCode::SUCCESS)
}

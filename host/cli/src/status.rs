//! `fadelink status`: state and counters of FEBs.

use std::process::ExitCode;

use anyhow::Context;
use fadelink_feb::example;
use fadelink_receiver::Commander;
use fadelink_wire::{fade10g, MacAddr, Protocol};
use serde_json::{json, Map};

use crate::discover::named_or_found;
use crate::link::Link;

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    link: Link,
    /// FEB to ask; without it, all that answer
    #[arg(long, value_name = "MAC")]
    feb: Vec<MacAddr>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Code of the example user command that reads register 0; the register is added.
pub const READ_REGISTER: u16 = 0x0100;

/// Counters of the example user commands: register and name.
const COUNTERS: [(u16, &str); 22] = [
    (0x10, "sent"),
    (0x11, "retransmitted"),
    (0x12, "acknowledged"),
    (0x13, "early_retransmissions"),
    (0x14, "protocol_errors"),
    (0x15, "delay"),
    (0x16, "stale_acks"),
    (0x17, "wrong_source"),
    (0x18, "commands_while_busy"),
    (0x19, "running"),
    (0x1A, "stopping"),
    (0x1B, "error"),
    (0x20, "rx_error"),
    (0x21, "rx_runt"),
    (0x22, "rx_oversize"),
    (0x23, "rx_bad_fcs"),
    (0x24, "rx_wrong_destination"),
    (0x25, "rx_wrong_ethertype"),
    (0x26, "rx_wrong_version"),
    (0x27, "rx_wrong_code"),
    (0x28, "rx_short"),
    (0x29, "rx_fifo_full"),
];

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let febs = named_or_found(&args.link, &args.feb)?;
    let receiver = args.link.passive()?;
    for (mac, found) in febs {
        let counters = if found.protocol == Some(Protocol::Fade1) {
            None
        } else {
            let feb = receiver.open_for_commands(mac)?;
            if found.protocol.is_none() {
                // Once more, and with patience; else it is an error.
                feb.command(fade10g::CMD_IDENTIFY, 0).with_context(|| {
                    format!("{mac} is not there, or idle with a FADE v1 core, which answers no command")
                })?;
            }
            counters(&feb)?
        };
        if args.json {
            let mut line = found.json(mac);
            line["counters"] = json!(counters);
            println!("{line}");
            continue;
        }
        println!("{mac}: {}", found.words());
        match counters {
            Some(counters) => counters.iter().for_each(|(name, value)| println!("  {name:24}{value}")),
            None if found.protocol == Some(Protocol::Fade1) => println!("  FADE v1 has no commands: no counters"),
            None => println!("  its user commands are not the example's: no counters"),
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn counters(feb: &Commander) -> anyhow::Result<Option<Map<String, serde_json::Value>>> {
    // A core of somebody else may not answer at all.
    let Ok(example::IDENTITY) = feb.command(READ_REGISTER, 0) else { return Ok(None) };
    let mut counters = Map::new();
    for (register, name) in COUNTERS {
        counters.insert(name.into(), feb.command(READ_REGISTER | register, 0)?.into());
    }
    Ok(Some(counters))
}

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
    /// MAC address of a board; repeat for several [default: all boards that answer]
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

/// Register of the example user commands that tells PHY and link.
const PHY: u16 = 0x1E;
/// Register of the example user commands that tells core and version.
const CORE: u16 = 0x1F;

/// What a board knows of its PHY, as `rtl/mac/mac_pkg.sv` has it in `phy_t`; nothing if it has none.
fn phy(word: u64) -> Option<[(&'static str, serde_json::Value); 3]> {
    let word = u32::try_from(word).ok()?;
    if word >> 13 & 1 == 0 {
        return None;
    }
    let speed = ["10 Mb/s", "100 Mb/s", "1000 Mb/s", "unknown speed"][(word >> 1 & 3) as usize];
    let duplex = if word >> 3 & 1 != 0 { "full duplex" } else { "half duplex: frames will be lost" };
    let link = if word & 1 != 0 { format!("{speed}, {duplex}") } else { "down".into() };
    Some([("link", link.into()), ("link_downs", (word >> 16).into()), ("phy_address", (word >> 8 & 31).into())])
}

/// What a core says that it is: a byte for the core, then major, minor and patch.
fn core(word: u64) -> Option<String> {
    let [0, 0, 0, 0, kind, major, minor, patch] = word.to_be_bytes() else { return None };
    let name = match kind {
        0x00 => return None,
        0x01 => "FADE v1".into(),
        0x0A => "FADE-10G".into(),
        0x10 => "TCP sender".into(),
        0x11 => "UDP/IP".into(),
        0x12 => "FADC".into(),
        other => format!("core {other:#04x}"),
    };
    Some(format!("{name} {major}.{minor}.{patch}"))
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let febs = named_or_found(&args.link, &args.feb)?;
    let receiver = args.link.passive()?;
    for (mac, found) in febs {
        let counters = if found.protocol == Some(Protocol::Fade1) {
            None
        } else {
            let feb = receiver.open_for_commands(mac)?;
            if found.protocol.is_none() {
                // Again, with more time; then it is an error.
                feb.command(fade10g::CMD_IDENTIFY, 0).with_context(|| {
                    format!(
                        "{mac} does not answer: it is absent, or idle with a FADE v1 core, which answers no command"
                    )
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
            Some(counters) => {
                for (name, value) in counters {
                    println!("  {name:24}{}", value.as_str().map_or_else(|| value.to_string(), str::to_string));
                }
            }
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
    // Boards in software, and boards from before, do not tell.
    if let Some(core) = core(feb.command(READ_REGISTER | CORE, 0)?) {
        counters.insert("core".into(), core.into());
    }
    for (name, value) in phy(feb.command(READ_REGISTER | PHY, 0)?).into_iter().flatten() {
        counters.insert(name.into(), value);
    }
    for (register, name) in COUNTERS {
        counters.insert(name.into(), feb.command(READ_REGISTER | register, 0)?.into());
    }
    Ok(Some(counters))
}

//! `fadelink status`: state and counters of FEBs.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use fadelink_receiver::Commander;
use fadelink_wire::{fade10g, MacAddr, Protocol};
use serde_json::{json, Map, Value};

use crate::discover::named_or_found;
use crate::link::Link;
use crate::names::{self, Names, Shown, READ_REGISTER};

/// Of a question that may have no answer: wait of one attempt, attempts after the first.
const PATIENCE: Duration = Duration::from_millis(20);
const RETRIES: u32 = 9;

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    link: Link,
    /// MAC address of a board; repeat for several [default: all boards that answer]
    #[arg(long, value_name = "MAC")]
    feb: Vec<MacAddr>,
    #[command(flatten)]
    names: names::Args,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What a board knows of its PHY, as `rtl/mac/mac_pkg.sv` has it in `phy_t`; nothing if it has none.
fn phy(word: u64) -> Option<[Shown; 3]> {
    let word = u32::try_from(word).ok()?;
    if word >> 13 & 1 == 0 {
        return None;
    }
    let speed = ["10 Mb/s", "100 Mb/s", "1000 Mb/s", "unknown speed"][(word >> 1 & 3) as usize];
    let duplex = if word >> 3 & 1 != 0 { "full duplex" } else { "half duplex: frames will be lost" };
    let link = if word & 1 != 0 { format!("{speed}, {duplex}") } else { "down".into() };
    Some([Shown::new("link", link), Shown::new("link_downs", word >> 16), Shown::new("phy_address", word >> 8 & 31)])
}

/// What a core says that it is: a byte for the core, then major, minor and patch.
fn core(word: u64) -> Option<Shown> {
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
    Some(Shown::new("core", format!("{name} {major}.{minor}.{patch}")))
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let names = args.names.read()?;
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
                        "{mac} does not answer: it is absent, or idle with a published FADE v1 core, which answers nothing"
                    )
                })?;
            }
            counters(&feb, &names)?
        };
        if args.json {
            let mut line = found.json(mac);
            line["counters"] = json!(counters.map(values));
            out!("{line}");
            continue;
        }
        out!("{mac}: {}", found.words());
        match counters {
            Some(counters) => {
                let width = counters.iter().map(|shown| shown.name.len()).max().unwrap_or(0) + 2;
                for shown in counters {
                    out!("  {:width$}{}", shown.name, shown.text());
                }
            }
            None if found.protocol == Some(Protocol::Fade1) => out!("  FADE v1 has no commands: no counters"),
            None => {
                out!("  its registers are not those of {}: no counters (--registers FILE names others)", names.name)
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// What the registers say, as JSON; nothing if the board is of another kind, or does not answer.
pub fn json(feb: &Commander, names: &Names) -> anyhow::Result<Option<Value>> {
    // An idle board of FADE v1 never answers.
    if feb.command_with(fade10g::CMD_IDENTIFY, 0, PATIENCE, RETRIES).is_err() {
        return Ok(None);
    }
    Ok(counters(feb, names)?.map(values))
}

fn values(counters: Vec<Shown>) -> Value {
    counters.into_iter().map(|shown| (shown.name, shown.value)).collect::<Map<_, _>>().into()
}

/// What the registers say, by name; nothing if the board is of another kind.
fn counters(feb: &Commander, names: &Names) -> anyhow::Result<Option<Vec<Shown>>> {
    // A core of somebody else may not answer at all.
    if names.identity.is_some_and(|identity| feb.command(READ_REGISTER, 0).ok() != Some(identity)) {
        return Ok(None);
    }
    let mut counters = vec![];
    for register in names.readable() {
        // One that cannot be reached does not hide the others.
        let word = match register.code(false) {
            Ok(code) => feb.command(code, 0)?,
            Err(error) => {
                tracing::warn!("{error:#}");
                names::NONE
            }
        };
        match register.name.as_str() {
            // Boards in software, and boards without a PHY, do not tell.
            "version" => counters.extend(core(word)),
            "phy" => counters.extend(phy(word).into_iter().flatten()),
            _ => counters.extend(register.shown(word)),
        }
    }
    Ok(Some(counters))
}

//! Boards with FADE-10G or FADE v1.

use std::path::PathBuf;

use fadelink_receiver::{FebConfig, WrongField};
use fadelink_wire::{Firmware, MacAddr, Protocol, WordOrder};
use schemars::JsonSchema;
use serde::Deserialize;

use super::fields::{ring, RING_MAX};
use super::group::Common;
use crate::link::{BackendArgs, BackendName, Link};
use crate::pattern::Pattern;
use crate::receive::{fade, Patience, Plan};
use crate::text::Text;

/// A board with FADE-10G or FADE v1.
#[derive(Debug, Clone, clap::Args, Deserialize, JsonSchema)]
#[group(skip)]
#[serde(deny_unknown_fields)]
pub struct Fade {
    /// Its name
    #[arg(skip)]
    pub name: String,
    /// Network interface
    #[arg(long = "iface", value_name = "NAME", required = false, required_unless_present = "by_ip")]
    pub interface: String,
    /// MAC address, as 02:fa:de:00:00:01
    #[arg(skip = Text(MacAddr([0; 6])))]
    pub mac: Text<MacAddr>,
    /// How frames are received
    #[arg(long, value_enum, default_value_t)]
    #[serde(default)]
    pub backend: BackendName,
    /// With xdp: poll for frames instead of waiting for interrupts
    #[arg(long)]
    #[serde(default)]
    pub busy_poll: bool,
    /// fade10g or fade1; without it, found out at the start
    #[arg(long, value_name = "PROTOCOL")]
    pub protocol: Option<Text<Protocol>>,
    /// fadelink, published-10g or published-v1; without it, found out at the start
    #[arg(long, value_name = "FIRMWARE")]
    pub firmware: Option<Text<Firmware>>,
    /// Byte order of data words on the wire, big or little; without it, that of the firmware. The output is always in the byte
    /// order of this computer
    #[arg(long, value_name = "ORDER")]
    pub word_order: Option<Text<WordOrder>>,
    /// Window of the board in packets
    #[arg(long, value_name = "M", default_value_t = window(), value_parser = crate::number::u32)]
    #[serde(default = "window")]
    #[schemars(range(min = 1, max = window()))]
    pub window: u32,
    /// Packets of 8192 bytes of the ring of each board or stream, a power of two
    #[arg(long, value_name = "N", default_value_t = ring(), value_parser = crate::number::u64)]
    #[serde(default = "ring")]
    #[schemars(range(min = 1, max = RING_MAX))]
    pub ring: u64,
    /// Number of the first packet; always 0, except in tests
    #[arg(long, value_name = "NUMBER", default_value = "0", value_parser = crate::number::u32)]
    #[serde(default)]
    pub first_packet: u32,
    /// Reset the board first, even if another computer receives from it
    #[arg(long)]
    #[serde(default)]
    pub take_over: bool,
    /// Names of its registers, for the manifest, as --registers of `fadelink status`; without it, those of the example boards
    #[arg(skip)]
    #[serde(default, deserialize_with = "crate::text::some_path")]
    pub registers: Option<PathBuf>,
    /// Pattern that its words are compared with, as --verify of `fadelink receive`; without it, they are not compared
    #[arg(skip)]
    pub verify: Option<Text<Pattern>>,
    /// Its sinks; without it, those of the experiment
    #[arg(skip)]
    pub sinks: Option<Vec<String>>,
}

fn window() -> u32 {
    FebConfig::default().window
}

impl Fade {
    /// What the receiver needs to know of it.
    fn config(&self, durable: bool) -> Result<FebConfig, WrongField> {
        let name = &self.interface;
        if name.is_empty() || name.len() > 15 || name.contains(['/', ' ', '\0']) {
            return Err(WrongField::new(
                "interface",
                name,
                "expected a name of 1 to 15 characters, as `ip link` lists",
            ));
        }
        if self.busy_poll && self.backend != BackendName::Xdp {
            return Err(WrongField::new("busy_poll", true, "expected backend xdp beside it"));
        }
        if durable && self.backend == BackendName::Kernel {
            let expected = "the driver confirms what is in memory; expected packet or xdp with confirm = \"durable\"";
            return Err(WrongField::new("backend", "kernel", expected));
        }
        let config = FebConfig {
            ring_packets: self.ring,
            window: self.window,
            first_packet: self.first_packet,
            protocol: self.protocol.map(|text| text.0),
            firmware: self.firmware.map(|text| text.0),
            word_order: self.word_order.map(|text| text.0),
            confirm: if durable { fadelink_receiver::Confirm::Released } else { fadelink_receiver::Confirm::Received },
            checksum: true,
        };
        config.check().map_err(|wrong| match wrong.field {
            "ring_packets" => WrongField { field: "ring", ..wrong },
            _ => wrong,
        })?;
        Ok(config)
    }

    /// Where it is.
    pub fn link(&self) -> Link {
        let backend_args = BackendArgs { backend: self.backend, busy_poll: self.busy_poll };
        Link { iface: self.interface.clone(), backend_args }
    }

    /// A group of boards behind the same interface, which are added one after another.
    pub fn group(&self, common: &Common) -> fade::FadeSettings {
        let Common { ref schedule, limits, accept, .. } = *common;
        let (link, schedule, patience) = (self.link(), schedule.clone(), Patience::default());
        fade::FadeSettings { link, febs: Vec::new(), schedule, limits, accept, patience }
    }

    /// Adds the board to its group. `was_stopped`: of a run that goes on.
    ///
    /// # Errors
    /// A field that does not fit, or that another board has.
    pub fn add_to(
        &self,
        group: &mut fade::FadeSettings,
        (plan, was_stopped): (Plan, fade::WasStopped),
        common: &Common,
    ) -> Result<(), WrongField> {
        let mac = self.mac.0;
        if group.febs.iter().any(|other| other.mac == mac) {
            let expected = format!("expected an address that no other board of {} has", self.interface);
            return Err(WrongField::new("mac", mac, expected));
        }
        let (config, take_over) = (self.config(common.durable)?, self.take_over);
        group.febs.push(fade::FebSettings { mac, config, plan, take_over, was_stopped });
        Ok(())
    }
}

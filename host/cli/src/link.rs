//! The interface of the boards, and its backend.

use clap::ValueEnum;
use fadelink_receiver::backend::packet::Packet;
#[cfg(feature = "xdp")]
use fadelink_receiver::backend::xdp::Xdp;
use fadelink_receiver::Receiver;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How frames are received.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Deserialize, Serialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum BackendName {
    /// AF_PACKET socket with a memory-mapped ring
    #[default]
    Packet,
    /// AF_XDP: frames of the boards bypass the kernel's network stack
    Xdp,
    /// The kernel driver, /dev/l3_fpga%d
    Kernel,
}

/// The interface to use.
#[derive(clap::Args)]
pub struct Link {
    /// Network interface of the boards
    #[arg(long, value_name = "NAME")]
    pub iface: String,
    #[command(flatten)]
    pub backend_args: BackendArgs,
}

/// The backend.
#[derive(clap::Args, Clone, Copy)]
pub struct BackendArgs {
    /// How frames are received
    #[arg(long, value_enum, default_value_t)]
    pub backend: BackendName,
    /// With --backend xdp: poll for frames instead of waiting for interrupts
    #[arg(long)]
    pub busy_poll: bool,
}

impl Link {
    /// Frames as they are, for `discover`: no FEB is known yet that a device could have.
    pub fn frames(&self) -> anyhow::Result<Packet> {
        Ok(Packet::open(&self.iface)?)
    }

    pub fn receiver(&self) -> anyhow::Result<Receiver> {
        Ok(match self.backend_args.backend {
            BackendName::Packet => Receiver::spawn(Packet::open(&self.iface)?)?,
            BackendName::Xdp => self.xdp()?,
            BackendName::Kernel => Receiver::kernel(&self.iface)?,
        })
    }

    /// AF_XDP, or AF_PACKET if that is not available.
    #[cfg(feature = "xdp")]
    fn xdp(&self) -> anyhow::Result<Receiver> {
        Ok(match Xdp::open(&self.iface, self.backend_args.busy_poll) {
            Ok(xdp) => {
                let copies = if xdp.is_zero_copy() { "zero-copy" } else { "copy mode" };
                tracing::info!("AF_XDP on {}, {copies}", self.iface);
                Receiver::spawn(xdp)?
            }
            Err(error) => {
                tracing::warn!("AF_XDP is not available on {}: {error}; using AF_PACKET", self.iface);
                Receiver::spawn(Packet::open(&self.iface)?)?
            }
        })
    }

    #[cfg(not(feature = "xdp"))]
    fn xdp(&self) -> anyhow::Result<Receiver> {
        anyhow::bail!("--backend xdp: this program was built without it (cargo feature xdp)")
    }

    /// A receiver that only sends commands and observes.
    pub fn passive(&self) -> anyhow::Result<Receiver> {
        Ok(match self.backend_args.backend {
            // A few commands are not worth a program in the kernel.
            BackendName::Packet | BackendName::Xdp => Receiver::spawn_passive(Packet::open(&self.iface)?)?,
            BackendName::Kernel => Receiver::kernel(&self.iface)?,
        })
    }
}

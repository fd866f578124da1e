//! Boards that are received together, before they are.

use fadelink_builder::sink;
use fadelink_receiver::schedule::Schedule;
use fadelink_receiver::WrongField;

use crate::build;
use crate::deadline::Limits;
use crate::interrupts::Interrupts;
use crate::receive::{self, fade, tcp, udp, Plan, Senders};
use crate::verdict::Accept;

/// What is the same for all boards of a program.
pub struct Common {
    /// Of each board.
    pub limits: Limits,
    /// What counts as the end of their data.
    pub accept: Accept,
    /// They are confirmed what is safe on the disk.
    pub durable: bool,
    pub schedule: Schedule,
}

impl Common {
    /// Refuses what cannot wait for the disk.
    ///
    /// # Errors
    /// `why` it cannot.
    pub fn not_durable(&self, why: &str) -> Result<(), WrongField> {
        match self.durable {
            true => Err(WrongField::new("confirm", "durable", format!("{why}; expected memory"))),
            false => Ok(()),
        }
    }
}

/// Boards of one kind, at one interface or port.
pub enum GroupSettings {
    Fade(fade::Settings),
    Tcp(tcp::Settings),
    Udp(udp::Settings),
    Crates(build::Settings),
}

impl GroupSettings {
    /// Begins to receive.
    ///
    /// # Errors
    /// An interface, a port or a sink that cannot be opened.
    pub fn begin(self, interrupts: &Interrupts) -> anyhow::Result<Box<dyn receive::Group>> {
        Ok(match self {
            GroupSettings::Fade(settings) => Box::new(fade::Febs::begin(settings, interrupts)?),
            GroupSettings::Tcp(settings) => Box::new(tcp::Streams::begin(settings, interrupts)?),
            GroupSettings::Udp(settings) => Box::new(udp::Streams::begin(settings, interrupts)?),
            GroupSettings::Crates(settings) => Box::new(build::Crates::begin(settings, interrupts)?),
        })
    }

    /// The plans of boards whose words are written.
    pub fn plans(&self) -> Vec<&Plan> {
        match self {
            GroupSettings::Fade(fade) => fade.febs.iter().map(|feb| &feb.plan).collect(),
            GroupSettings::Tcp(tcp::Settings { senders: Senders::Known(known), .. })
            | GroupSettings::Udp(udp::Settings { senders: Senders::Known(known), .. }) => {
                known.iter().map(|(_, plan)| plan).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The sinks of events.
    pub fn event_sinks(&self) -> &[sink::Spec] {
        match self {
            GroupSettings::Crates(crates) => &crates.views.sinks,
            _ => &[],
        }
    }
}

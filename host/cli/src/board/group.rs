//! Boards that are received together, before they are.

use std::io;

use fadelink_builder::sink;
use fadelink_receiver::interface::Interface;
use fadelink_receiver::schedule::Schedule;
use fadelink_receiver::WrongField;

use super::waiting::{find_address, Waiting};
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
    Fade(fade::FadeSettings),
    Tcp(tcp::TcpSettings),
    Udp(udp::UdpSettings),
    Crates(build::CratesSettings),
}

impl GroupSettings {
    /// Whether that is there by which the boards are reached.
    fn find(&self) -> io::Result<()> {
        match self {
            GroupSettings::Fade(fade) => Interface::open(&fade.link.iface).map(drop),
            GroupSettings::Tcp(tcp) => find_address(tcp.address.ip(), &[]),
            GroupSettings::Udp(udp) => find_address((*udp.address.ip()).into(), &udp.boards),
            GroupSettings::Crates(crates) => find_address(crates.crates.address.ip(), &[]),
        }
    }

    fn limits(&mut self) -> &mut Limits {
        match self {
            GroupSettings::Fade(fade) => &mut fade.limits,
            GroupSettings::Tcp(tcp) => &mut tcp.limits,
            GroupSettings::Udp(udp) => &mut udp.limits,
            GroupSettings::Crates(crates) => &mut crates.crates.limits,
        }
    }

    /// True of boards that begin by themselves: until they do, nothing is asked of them.
    pub fn only_listens(&self) -> bool {
        matches!(self, GroupSettings::Tcp(_) | GroupSettings::Crates(_))
    }

    /// True of boards that are asked to begin, and answer.
    pub fn obeys(&self) -> bool {
        matches!(self, GroupSettings::Fade(_) | GroupSettings::Udp(_))
    }

    /// Begins to receive, when that is there by which the boards are reached: their wait is also for that.
    ///
    /// # Errors
    /// An interface, a port or a sink that cannot be opened; the user has given up.
    pub fn begin(mut self, interrupts: &Interrupts, waiting: &Waiting<'_>) -> anyhow::Result<Box<dyn receive::Group>> {
        let wait = self.limits().wait;
        self.limits().wait = waiting.until(wait, || self.find())?;
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
            GroupSettings::Tcp(tcp::TcpSettings { senders: Senders::Known(known), .. })
            | GroupSettings::Udp(udp::UdpSettings { senders: Senders::Known(known), .. }) => {
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

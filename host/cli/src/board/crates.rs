//! FADC crates, whose messages are joined to events.

use std::net::{IpAddr, SocketAddr};

use clap::ValueEnum;
use fadelink_builder::key::Key;
use fadelink_builder::{sink, Policy, AHEAD_MAX, OPEN_BYTES};
use fadelink_receiver::WrongField;
use fadelink_wire::fadc::{TICK_NS, WINDOW_TICKS_MAX, WINDOW_TICKS_MIN};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fields::{any_address, check_port, in_range};
use crate::build::{self, Views};
use crate::deadline::Limits;
use crate::fadc_crates;
use crate::text::Seconds;
use crate::verdict::Accept;

/// FADC crates, whose messages are joined to events.
#[derive(Debug, Clone, clap::Args, Deserialize, JsonSchema)]
#[group(skip)]
#[serde(deny_unknown_fields)]
pub struct Crates {
    /// Their name
    #[arg(skip = "crates")]
    pub name: String,
    /// Port of this computer that they connect to
    #[arg(skip)]
    #[schemars(range(min = 1))]
    pub port: u16,
    /// Address of this computer to listen on
    #[arg(skip = any_address())]
    #[serde(default = "any_address")]
    pub listen: IpAddr,
    /// Addresses of the crates; connections of others are closed and counted. Without them, any
    #[arg(skip)]
    #[serde(default)]
    pub addresses: Vec<IpAddr>,
    /// Length of a window in ns, a multiple of 4
    #[arg(long, value_name = "NS", value_parser = crate::number::u32)]
    #[schemars(range(min = WINDOW_NS.0, max = WINDOW_NS.1))]
    pub window_ns: u32,
    /// Sources of each window, as 0xC0DA0001; one of sources and expect is needed
    #[arg(long, value_name = "ID,...", value_delimiter = ',', value_parser = crate::number::u32)]
    #[serde(default)]
    pub sources: Vec<u32>,
    /// Number of sources of each window, the first that are heard, instead of sources; without it, these are what is expected
    #[arg(long, value_name = "N", value_parser = crate::number::u32, conflicts_with = "sources")]
    #[schemars(range(min = 1, max = SOURCES_MAX))]
    pub expect: Option<u32>,
    /// What identifies the window of a message
    #[arg(long, value_enum, default_value_t)]
    #[serde(default)]
    pub join: JoinBy,
    /// What to do with windows in which a source is missing
    #[arg(long, value_enum, default_value_t = Keep::Emit)]
    #[serde(default = "emit")]
    pub missing: Keep,
    /// What to do with messages of windows that were emitted before
    #[arg(long, value_enum, default_value_t = Keep::Drop)]
    #[serde(default = "drop")]
    pub late: Keep,
    /// Which of two messages with the same window and source is kept
    #[arg(long, value_enum, default_value_t)]
    #[serde(default)]
    pub duplicate: Duplicate,
    /// Seconds for which a silent source is waited for
    #[arg(long, value_name = "SECONDS", default_value_t = silence())]
    #[serde(default = "silence")]
    pub silence: Seconds,
    /// Maximum number of open windows; sources that are further ahead must wait
    #[arg(long, value_name = "N", default_value_t = max_open(), value_parser = crate::number::u64)]
    #[serde(default = "max_open")]
    #[schemars(range(min = 1))]
    pub max_open: u64,
    /// Maximum number of windows that a source may pass over at once; a message further ahead is set aside
    #[arg(long, value_name = "N", default_value_t = AHEAD_MAX, value_parser = crate::number::u64)]
    #[serde(default = "max_ahead")]
    pub max_ahead: u64,
    /// Source identifier of the events
    #[arg(long, value_name = "ID", default_value = "0xFADE0001", value_parser = crate::number::u32)]
    #[serde(default = "builder_id")]
    pub builder_id: u32,
    /// Address of the page with live plots, as 127.0.0.1:8080; without it, there is none
    #[arg(long, value_name = "ADDRESS")]
    pub web: Option<SocketAddr>,
    /// Sinks, as --sink of `fadelink build`
    #[arg(skip)]
    pub sinks: Vec<String>,
}

/// Lengths of windows in ns.
const WINDOW_NS: (u32, u32) = (WINDOW_TICKS_MIN * TICK_NS, WINDOW_TICKS_MAX * TICK_NS);
/// Sources of a window.
const SOURCES_MAX: u32 = 1 << 16;

fn emit() -> Keep {
    Keep::Emit
}

fn drop() -> Keep {
    Keep::Drop
}

fn silence() -> Seconds {
    Seconds(2.0)
}

fn max_open() -> u64 {
    4096
}

fn max_ahead() -> u64 {
    AHEAD_MAX
}

fn builder_id() -> u32 {
    0xFADE_0001
}

/// What identifies the window of a message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum JoinBy {
    /// The record counter
    #[default]
    Counter,
    /// The timestamp and the length of the window
    Time,
}

impl JoinBy {
    /// With windows of this length.
    pub fn key(self, window_ns: u32) -> Key {
        match self {
            JoinBy::Counter => Key::Counter,
            JoinBy::Time => Key::Time(window_ns),
        }
    }
}

/// What to do with a window or a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Keep {
    /// Emit it
    Emit,
    /// Only count it
    Drop,
}

/// Which of two messages is kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Duplicate {
    /// The first
    #[default]
    First,
    /// The last
    Last,
}

/// A length of windows in ns.
///
/// # Errors
/// Crates have no such windows.
pub fn check_window(ns: u32) -> Result<(), WrongField> {
    let (least, most) = WINDOW_NS;
    if (least..=most).contains(&ns) && ns.is_multiple_of(TICK_NS) {
        return Ok(());
    }
    Err(WrongField::new("window_ns", ns, format!("expected {least} to {most}, a multiple of {TICK_NS}")))
}

impl Crates {
    /// How their messages are joined.
    ///
    /// # Errors
    /// A field that does not fit.
    pub fn policy(&self) -> Result<Policy, WrongField> {
        check_window(self.window_ns)?;
        if let Some(expect) = self.expect {
            in_range("expect", expect, (1, SOURCES_MAX))?;
        } else if self.sources.is_empty() {
            let expected = "expected the sources of each window (sources) or their number (expect)";
            return Err(WrongField::new("expect", "none", expected));
        }
        if let Some(expect) = self.expect.filter(|_| !self.sources.is_empty()) {
            return Err(WrongField::new("expect", expect, "expected either sources or expect"));
        }
        if let Some((_, twice)) = self.sources.iter().enumerate().find(|(i, id)| self.sources[..*i].contains(id)) {
            return Err(WrongField::new("sources", twice, "expected each source once"));
        }
        in_range("max_open", self.max_open, (1, u64::MAX))?;
        Ok(Policy {
            key: self.join.key(self.window_ns),
            window_ns: self.window_ns,
            sources: self.sources.clone(),
            count: self.expect.unwrap_or(0) as usize,
            emit_incomplete: self.missing == Keep::Emit,
            emit_late: self.late == Keep::Emit,
            keep_last: self.duplicate == Duplicate::Last,
            silence: self.silence.into(),
            max_open: self.max_open,
            max_bytes: OPEN_BYTES,
            max_ahead: self.max_ahead,
        })
    }

    /// What is done with the events.
    pub fn views(&self, sinks: Vec<sink::Spec>) -> Views {
        Views { window_ns: self.window_ns, builder_id: self.builder_id, sinks, web: self.web }
    }

    /// How they are received: without a limit of streams.
    pub fn port(&self, limits: Limits) -> fadc_crates::PortSettings {
        let (address, addresses) = (SocketAddr::new(self.listen, self.port), self.addresses.clone());
        fadc_crates::PortSettings { address, addresses, streams: None, limits, patience: fadc_crates::PATIENCE }
    }

    /// All of them. `events`: how many are enough.
    ///
    /// # Errors
    /// A field that does not fit.
    pub fn group(
        &self,
        crates: fadc_crates::PortSettings,
        (sinks, events): (Vec<sink::Spec>, Option<u64>),
        accept: Accept,
    ) -> Result<build::CratesSettings, WrongField> {
        check_port(crates.address.port())?;
        let (name, policy, views) = (self.name.clone(), self.policy()?, self.views(sinks));
        Ok(build::CratesSettings { name, crates, policy, views, events, accept })
    }
}

//! What `fadelink receive` does with the data of a board, for all protocols.

use std::net::IpAddr;
use std::sync::Arc;

use crc32fast::Hasher;
use fadelink_sinks::hashes::Blocks;
use fadelink_sinks::{Block, BlockKind, Opening, Outlets, Sender, Spec, Stopping};

use super::before::Before;
use super::transmissions::Transmissions;
use crate::pattern::{Pattern, Verifier};

/// Packets of the smallest ring of a stream: some datagrams of any length.
pub const RING_MIN: u64 = 16;

/// What to do with the data of one board.
#[derive(Clone)]
pub struct Plan {
    /// Its name, if it has one beside its address.
    pub name: Option<String>,
    /// Name of the run, which no other one has.
    pub run: String,
    pub sinks: Vec<Spec<BlockKind>>,
    pub verify: Option<Pattern>,
    /// Streams that come from it, at most.
    pub streams: usize,
    /// Its data is confirmed when it is safe.
    pub durable: bool,
    /// The data that an earlier program has confirmed, behind which this goes on.
    pub resumed: Option<Blocks>,
    /// The comparison of that data with its hashes.
    pub before: Option<Arc<Before>>,
    /// The transmissions of a FADE board that this data is of.
    pub transmissions: Transmissions,
}

/// Whose streams are received, and what is done with them.
pub enum Senders {
    /// Of everybody.
    Any(Box<Plan>),
    /// Of boards that are known.
    Known(Vec<(IpAddr, Plan)>),
}

impl Senders {
    /// The plan for the streams of `address`; `None`: no stream of it is expected.
    pub fn plan(&self, address: IpAddr) -> Option<&Plan> {
        match self {
            Senders::Any(plan) => Some(plan),
            Senders::Known(plans) => plans.iter().find(|(known, _)| *known == address).map(|(_, plan)| plan),
        }
    }

    /// Files that a stream is written to, at most.
    pub fn files(&self) -> u64 {
        let files = |plan: &Plan| plan.sinks.iter().map(Spec::descriptors).sum();
        match self {
            Senders::Any(plan) => files(plan),
            Senders::Known(plans) => plans.iter().map(|(_, plan)| files(plan)).max().unwrap_or(0),
        }
    }

    /// The names of boards of which fewer streams came than are expected, where that is known. `came`: the address of each stream.
    pub fn absent(&self, came: &[IpAddr]) -> Vec<String> {
        let Senders::Known(plans) = self else { return Vec::new() };
        let is_absent =
            |(known, plan): &&(IpAddr, Plan)| came.iter().filter(|address| *address == known).count() < plan.streams;
        plans.iter().filter(is_absent).filter_map(|(_, plan)| plan.name.clone()).collect()
    }
}

impl Plan {
    /// Opens the sinks for the data of `board`.
    ///
    /// # Errors
    /// One of them cannot be opened; the others are closed again.
    pub fn open(&self, board: Sender, stopping: &Stopping) -> Result<Outlets<Block>, fadelink_sinks::Error> {
        let Plan { run, durable, resumed, .. } = self;
        let opening = Opening { board, run, stopping, durable: *durable, resumed: resumed.as_ref() };
        let outlets: Result<_, _> = self.sinks.iter().map(|spec| spec.open(&opening)).collect();
        Ok(Outlets::new(outlets?))
    }

    /// What verifies the data.
    pub fn verifier(&self) -> Option<Verifier> {
        let mut verifier = self.verify.map(Verifier::new);
        if let (Some(verifier), Some(resumed)) = (&mut verifier, &self.resumed) {
            let begin = self.transmissions.newest().map_or(0, |newest| newest.begin);
            verifier.skip((resumed.end() - begin) / 8);
        }
        verifier
    }

    /// The CRC of the words of the transmission that goes on, or of no words yet; `None`: it is not known.
    pub fn crc(&self) -> Option<Hasher> {
        let Some(resumed) = &self.resumed else { return Some(Hasher::new()) };
        match self.transmissions.newest().map_or(0, |newest| newest.begin) {
            0 => resumed.crc().map(Hasher::new_with_initial),
            begin => (begin == resumed.end()).then(Hasher::new),
        }
    }

    /// Whether its sinks can keep data until it is safe; else why not.
    ///
    /// # Errors
    /// What was expected.
    pub fn check_durable(&self) -> Result<(), String> {
        for sink in &self.sinks {
            sink.check_durable().map_err(|what| format!("`{sink}`: {what}"))?;
        }
        match self.sinks.iter().any(Spec::is_durable) {
            true => Ok(()),
            false => Err("expected a file or kafka with policy=wait".into()),
        }
    }
}

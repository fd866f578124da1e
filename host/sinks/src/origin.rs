//! Where data came from and what its words are: every sink states it with the data.

use fadelink_wire::{Firmware, MacAddr, Protocol, WordOrder};
use serde_json::{json, Value};

/// Of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// The FEB.
    pub feb: MacAddr,
    /// What it speaks.
    pub protocol: Option<Protocol>,
    /// Whose core it runs.
    pub firmware: Option<Firmware>,
    /// Byte order of its words on the wire; those of a block are in this computer's order.
    pub wire_order: Option<WordOrder>,
}

impl Origin {
    /// Of a FEB of which nothing more is known.
    pub fn of(feb: MacAddr) -> Origin {
        Origin { feb, protocol: None, firmware: None, wire_order: None }
    }

    /// Bits of a word.
    pub fn word_bits(&self) -> u32 {
        self.firmware.map_or(64, |firmware| firmware.word_bytes() as u32 * 8)
    }

    /// The same as names and values, what is not known left out.
    pub fn entries(&self) -> Vec<(&'static str, String)> {
        let entries = [
            ("protocol", self.protocol.map(|protocol| protocol.to_string())),
            ("firmware", self.firmware.map(|firmware| firmware.to_string())),
            ("word_order", Some(WordOrder::NATIVE.to_string())),
            ("wire_word_order", self.wire_order.map(|order| order.to_string())),
        ];
        entries.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }

    /// The manifest of a file. `complete`: the end of the transmission was seen, and all of it is in the file.
    pub fn manifest(&self, bytes: u64, complete: bool) -> Value {
        let mut manifest = json!({
            "feb": self.feb.to_string(),
            "word_bits": self.word_bits(),
            "bytes": bytes,
            "complete": complete,
        });
        for (name, value) in self.entries() {
            manifest[name] = value.into();
        }
        manifest
    }
}

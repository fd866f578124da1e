//! The origin of data and the format of its words, which every sink stores with the data.

use std::fmt;
use std::net::SocketAddr;

use fadelink_wire::{Firmware, MacAddr, Protocol, WordOrder};
use serde_json::{json, Value};

/// Who sent the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sender {
    /// A FEB by its address.
    Feb(MacAddr),
    /// The other end of a TCP connection.
    Tcp(SocketAddr),
    /// The sender of UDP datagrams, and how many runs of it were received before this one.
    Udp(SocketAddr, u32),
}

impl Sender {
    /// Its placeholder in names of files (in braces), and its key in the description of its data.
    pub fn key(self) -> &'static str {
        match self {
            Sender::Feb(_) => "feb",
            Sender::Tcp(_) | Sender::Udp(..) => "stream",
        }
    }

    /// As a part of the name of a file.
    pub fn in_names(self) -> String {
        match self {
            Sender::Feb(mac) => mac.to_string().replace(':', "-"),
            Sender::Tcp(peer) | Sender::Udp(peer, 0) => format!("{}-{}", peer.ip(), peer.port()),
            Sender::Udp(peer, earlier) => format!("{}-{}-{}", peer.ip(), peer.port(), earlier + 1),
        }
    }
}

impl fmt::Display for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Sender::Feb(mac) => mac.fmt(f),
            Sender::Tcp(peer) | Sender::Udp(peer, _) => peer.fmt(f),
        }
    }
}

/// Of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// Who sent it.
    pub board: Sender,
    /// What a FEB speaks.
    pub protocol: Option<Protocol>,
    /// Whose core it runs.
    pub firmware: Option<Firmware>,
    /// Byte order of its words on the wire; those of a block are in this computer's order.
    pub wire_order: Option<WordOrder>,
}

impl Origin {
    /// Of a board of which nothing more is known.
    pub fn of(board: Sender) -> Origin {
        Origin { board, protocol: None, firmware: None, wire_order: None }
    }

    /// Bits of a word.
    pub fn word_bits(&self) -> u32 {
        self.firmware.map_or(64, |firmware| firmware.word_bytes() as u32 * 8)
    }

    /// The same as names and values, what is not known left out.
    pub fn entries(&self) -> Vec<(&'static str, String)> {
        let protocol = match self.board {
            Sender::Feb(_) => self.protocol.map(|protocol| protocol.to_string()),
            Sender::Tcp(_) => Some("tcp".into()),
            Sender::Udp(..) => Some("udp".into()),
        };
        let entries = [
            ("protocol", protocol),
            ("firmware", self.firmware.map(|firmware| firmware.to_string())),
            ("word_order", Some(WordOrder::NATIVE.to_string())),
            ("wire_word_order", self.wire_order.map(|order| order.to_string())),
        ];
        entries.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }

    /// The same as JSON, for the manifest of a file.
    pub fn manifest(&self) -> Value {
        let mut manifest = json!({ "word_bits": self.word_bits() });
        manifest[self.board.key()] = self.board.to_string().into();
        for (name, value) in self.entries() {
            manifest[name] = value.into();
        }
        manifest
    }
}

//! Common parts of the tests of engine and receiver: a FEB that sends a counter, a bad cable, engines frame by frame.

pub mod board;
pub mod fade1;
pub mod fade10g;

use std::collections::BTreeMap;
use std::time::Duration;

use fadelink_feb::{BoardSettings, Fade10gBoard, Quirks, Status, User};
use fadelink_receiver::{Confirm, FebConfig};
use fadelink_wire::{Firmware, MacAddr, Protocol};

/// A FEB that is known to be a Fadelink one of FADE-10G, with a small ring.
pub const FADELINK: FebConfig = FebConfig {
    ring_packets: 16,
    window: 16,
    first_packet: 0,
    protocol: Some(Protocol::Fade10g),
    firmware: Some(Firmware::Fadelink),
    word_order: None,
    confirm: Confirm::Received,
    checksum: false,
};

/// What is sent: 0, 1, 2 and so on.
pub fn word(index: u64) -> u64 {
    index
}

/// Sends the counter while words are left; notes each command that it executes.
#[derive(Default)]
pub struct Counter {
    pub left: u64,
    pub executed: Vec<(u16, u32)>,
    pub next: u64,
}

impl User for Counter {
    fn begin(&mut self) {
        self.next = 0;
    }

    fn fill(&mut self, out: &mut [u8]) -> usize {
        let count = self.left.min(out.len() as u64 / 8);
        for place in out.chunks_exact_mut(8).take(count as usize) {
            place.copy_from_slice(&word(self.next).to_le_bytes());
            self.next += 1;
        }
        self.left -= count;
        count as usize * 8
    }

    fn command(&mut self, code: u16, argument: u32, _: &Status) -> u64 {
        self.executed.push((code, argument));
        self.executed.len() as u64
    }
}

/// A FEB whose time is told by the test.
pub struct SoftFeb {
    pub feb: Fade10gBoard<Counter>,
    now: Duration,
}

impl SoftFeb {
    pub fn new(mac: MacAddr, window: u32, first_packet: u32, words: u64, quirks: Quirks) -> SoftFeb {
        let user = Counter { left: words, ..Counter::default() };
        SoftFeb {
            feb: Fade10gBoard::new(
                mac,
                BoardSettings { window, first_packet, quirks, ..BoardSettings::default() },
                user,
            ),
            now: Duration::ZERO,
        }
    }

    pub fn take(&mut self, frame: &[u8]) {
        self.feb.take(frame, self.now);
    }

    /// The next frame to send. `scan`: time passes, and what waits for its confirmation goes again.
    pub fn give(&mut self, scan: bool) -> Option<Vec<u8>> {
        self.now += if scan { Duration::from_millis(20) } else { Duration::from_micros(1) };
        self.feb.give(self.now).map(<[u8]>::to_vec)
    }

    pub fn running(&self) -> bool {
        self.feb.status().running
    }
}

/// A seeded cable: frames are lost, repeated and put out of order.
pub struct Cable {
    pub random: fastrand::Rng,
    pub loss: f64,
    pub duplicate: f64,
    pub reorder: f64,
    frames: BTreeMap<u64, Vec<u8>>,
    next: u64,
}

impl Cable {
    pub fn new(seed: u64, loss: f64, duplicate: f64, reorder: f64) -> Cable {
        Cable { random: fastrand::Rng::with_seed(seed), loss, duplicate, reorder, frames: BTreeMap::new(), next: 0 }
    }

    pub fn push(&mut self, frame: &[u8]) {
        if self.random.f64() < self.loss {
            return;
        }
        let copies = if self.random.f64() < self.duplicate { 2 } else { 1 };
        for _ in 0..copies {
            let late = if self.random.f64() < self.reorder { self.random.u64(1..8) } else { 0 };
            self.next += 1;
            self.frames.insert((self.next + 2 * late) * 1000 + self.next % 1000, frame.to_vec());
        }
    }

    pub fn pop(&mut self) -> Option<Vec<u8>> {
        self.frames.pop_first().map(|(_, frame)| frame)
    }
}

//! A FEB in software, for tests of the engine: the rules of design section 2 in the plainest form.

#![allow(dead_code, missing_docs)] // each test uses a part

use std::collections::{BTreeMap, VecDeque};

use fadelink_wire::fade10g::{self, Data, Request, Response, DATA_FRAME_LEN, PACKET_BYTES};
use fadelink_wire::serial::after16;
use fadelink_wire::MacAddr;

/// What is sent: 0, 1, 2 and so on.
pub fn word(index: u64) -> u64 {
    index
}

struct Packet {
    payload: Vec<u8>,
    last: Option<u64>,
    sent: Option<u16>,
    again: bool,
}

/// One front-end board.
pub struct SoftFeb {
    pub mac: MacAddr,
    pub window: usize,
    pub peer: Option<MacAddr>,
    pub running: bool,
    /// Words that the source still has; the packet being filled waits for more.
    pub source: u64,
    pub executed: Vec<(u16, u32)>,
    first_packet: u32,
    next_word: u64,
    partial: Vec<u8>,
    stopping: bool,
    tail: u32,
    packets: VecDeque<Packet>,
    sequence: u16,
    stored: Option<(u16, Response)>,
    pending: Option<Response>,
    scan: usize,
}

impl SoftFeb {
    pub fn new(mac: MacAddr, window: usize, first_packet: u32) -> SoftFeb {
        SoftFeb {
            mac,
            window,
            peer: None,
            running: false,
            source: 0,
            executed: Vec::new(),
            first_packet,
            next_word: 0,
            partial: Vec::new(),
            stopping: false,
            tail: first_packet,
            packets: VecDeque::new(),
            sequence: 0,
            stored: None,
            pending: None,
            scan: 0,
        }
    }

    fn clear(&mut self) {
        self.running = false;
        self.stopping = false;
        self.packets.clear();
        self.partial.clear();
        self.next_word = 0;
        self.tail = self.first_packet;
        self.sequence = 0;
    }

    /// A frame from the PC.
    pub fn take(&mut self, frame: &[u8]) {
        let Ok((header, request)) = fade10g::parse_request(frame) else { return };
        if header.dst != self.mac {
            return;
        }
        match request {
            Request::Command { code: fade10g::CMD_RESET, .. } => {
                self.clear();
                self.stored = None;
                self.pending = None;
            }
            Request::Command { code, csn, argument } => {
                if self.running && self.peer != Some(header.src) {
                    return;
                }
                if let Some((_, response)) = self.stored.filter(|(last, _)| *last == csn) {
                    self.pending = Some(response);
                    return;
                }
                self.peer = Some(header.src);
                let mut value = 0;
                match code {
                    fade10g::CMD_START if self.running => value = 2,
                    fade10g::CMD_START => {
                        self.clear();
                        self.running = true;
                    }
                    fade10g::CMD_STOP => self.stopping = self.running,
                    _ => {
                        self.executed.push((code, argument));
                        value = self.executed.len() as u64;
                    }
                }
                let response = Response { code, csn, value };
                self.stored = Some((csn, response));
                self.pending = Some(response);
            }
            Request::Ack { sequence, packet, negative: false, .. } => {
                let at = packet.wrapping_sub(self.tail) as usize;
                if !self.running || at >= self.packets.len() || self.packets[at].sent.is_none() {
                    return;
                }
                for earlier in self.packets.range_mut(..at) {
                    earlier.again |= earlier.sent.is_some_and(|sent| after16(sequence, sent));
                }
                // Confirmed ones leave; those in the middle are marked by an empty payload.
                self.packets[at].payload.clear();
                self.packets[at].again = false;
                while self.packets.front().is_some_and(|p| p.payload.is_empty()) {
                    self.tail = self.tail.wrapping_add(1);
                    if self.packets.pop_front().is_some_and(|p| p.last.is_some()) {
                        self.clear();
                        return;
                    }
                }
                for packet in &mut self.packets {
                    packet.again &= !packet.payload.is_empty();
                }
            }
            Request::Ack { .. } => {}
        }
    }

    fn fill(&mut self) {
        while self.running && self.packets.len() < self.window && self.packets.back().is_none_or(|p| p.last.is_none()) {
            while self.partial.len() < PACKET_BYTES && self.source > 0 && !self.stopping {
                self.partial.extend(word(self.next_word).to_le_bytes());
                self.next_word += 1;
                self.source -= 1;
            }
            let last = if self.partial.len() == PACKET_BYTES {
                None
            } else if self.stopping {
                let words = self.partial.len() as u64 / 8;
                self.partial.resize(PACKET_BYTES - 8, fade10g::FILLER);
                self.partial.extend(words.to_le_bytes());
                Some(words)
            } else {
                return;
            };
            let payload = std::mem::take(&mut self.partial);
            self.packets.push_back(Packet { payload, last, sent: None, again: false });
        }
    }

    /// The next frame to send, if there is one. `scan`: unconfirmed packets too, one after another.
    pub fn give(&mut self, scan: bool) -> Option<Vec<u8>> {
        self.fill();
        let peer = self.peer?;
        let find = |wanted: &dyn Fn(&Packet) -> bool| self.packets.iter().position(wanted);
        let mut at = find(&|p| p.again).or(find(&|p| p.sent.is_none()));
        if at.is_none() && scan {
            let unconfirmed: Vec<_> =
                (0..self.packets.len()).filter(|i| !self.packets[*i].payload.is_empty()).collect();
            self.scan += 1;
            at = unconfirmed.get(self.scan % unconfirmed.len().max(1)).copied();
        }
        let response = self.pending.take();
        let Some(at) = at else {
            return response.map(|r| r.to_frame(peer, self.mac).to_vec());
        };
        let packet = &mut self.packets[at];
        packet.sent = Some(self.sequence);
        packet.again = false;
        let data = Data {
            sequence: self.sequence,
            packet: self.tail.wrapping_add(at as u32),
            delay: 0,
            response,
            last: packet.last,
            payload: &packet.payload,
        };
        let mut frame = [0; DATA_FRAME_LEN];
        data.write(peer, self.mac, &mut frame).expect("a whole packet");
        self.sequence = self.sequence.wrapping_add(1);
        Some(frame.to_vec())
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

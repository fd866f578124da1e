//! The way from the board to the computer: frames are lost, come twice, late and in another order.
//!
//! FADE has no signatures: nobody can tell a forged packet that takes the place of a lost one. So a packet is forged here only
//! if the computer has confirmed the right one, or the board has not sent it yet. Then the right one is not lost.

use std::collections::{HashSet, VecDeque};

use fadelink_wire::{fade1, fade10g, MacAddr, Protocol};

use super::super::way::Way;
use super::case::Case;

/// Frames that are kept, to come again.
const KEPT: usize = 200;

/// Number of the packet that a frame of the computer confirms.
fn confirmed(protocol: Protocol, frame: &[u8]) -> Option<u32> {
    match protocol {
        Protocol::Fade10g => match fade10g::parse_request(frame) {
            Ok((_, fade10g::Request::Ack { negative: false, packet, .. })) => Some(packet),
            _ => None,
        },
        Protocol::Fade1 => match fade1::parse_request(frame) {
            Ok((_, fade1::Request::Ack { set, packet, .. })) => {
                Some(u32::from(set) * fade1::SET_PACKETS + u32::from(packet))
            }
            _ => None,
        },
    }
}

/// Number of the packet in a frame for `computer`, counted from the begin.
pub fn packet(protocol: Protocol, frame: &[u8], computer: MacAddr) -> Option<u32> {
    match protocol {
        Protocol::Fade10g => match fade10g::parse_feb(frame) {
            Ok((header, fade10g::FebFrame::Data(data))) if header.dst == computer => Some(data.packet),
            _ => None,
        },
        Protocol::Fade1 => match fade1::parse_feb(frame) {
            Ok((header, fade1::FebFrame::Data(data))) if header.dst == computer => {
                Some(u32::from(data.set) * fade1::SET_PACKETS + u32::from(data.packet))
            }
            _ => None,
        },
    }
}

#[derive(Clone)]
struct Frame {
    bytes: Vec<u8>,
    /// Run of the source; `None`: forged.
    run: Option<usize>,
}

pub struct Cable {
    protocol: Protocol,
    computer: MacAddr,
    /// Run of the source, of which the numbers are.
    run: usize,
    sent: HashSet<u32>,
    confirmed: HashSet<u32>,
    forged: HashSet<u32>,
    way: Way<Frame>,
    /// Frames of the board that have passed.
    pub passed: VecDeque<Vec<u8>>,
    /// Newest number.
    pub newest: u32,
}

impl Cable {
    pub fn new(case: &Case, computer: MacAddr) -> Cable {
        Cable {
            protocol: case.protocol,
            computer,
            run: 0,
            sent: HashSet::new(),
            confirmed: HashSet::new(),
            forged: HashSet::new(),
            way: Way::new(case.cable, case.seed),
            passed: VecDeque::new(),
            newest: 0,
        }
    }

    /// The board sends a frame in this run of its source. `is_out`: nothing passes.
    pub fn push(&mut self, bytes: Vec<u8>, run: usize, step: u64, is_out: bool) {
        if run != self.run {
            // Its numbers begin anew.
            (self.run, self.newest) = (run, 0);
            self.sent.clear();
            self.confirmed.clear();
            self.forged.clear();
        }
        let number = packet(self.protocol, &bytes, self.computer);
        if let Some(number) = number {
            self.newest = number;
            self.sent.insert(number);
        }
        let frame = Frame { bytes, run: Some(run) };
        if number.is_some_and(|number| self.forged.contains(&number)) {
            self.way.put(frame);
        } else {
            self.way.send(frame, step, is_out);
        }
    }

    /// The computer sends this.
    pub fn answers(&mut self, frame: &[u8]) {
        self.confirmed.extend(confirmed(self.protocol, frame));
    }

    /// A frame that the board does not send now.
    pub fn inject(&mut self, bytes: Vec<u8>) {
        self.way.put(Frame { bytes, run: None });
    }

    /// The frames that come in this step.
    pub fn pop(&mut self, step: u64) -> Vec<Vec<u8>> {
        let frames = self.way.pop(step);
        frames.into_iter().filter_map(|frame| self.comes(frame)).collect()
    }

    fn comes(&mut self, Frame { bytes, run }: Frame) -> Option<Vec<u8>> {
        if let Some(number) = packet(self.protocol, &bytes, self.computer) {
            if run != Some(self.run) {
                if self.sent.contains(&number) && !self.confirmed.contains(&number) {
                    return None;
                }
                self.forged.insert(number);
            }
        }
        if run.is_some() {
            self.passed.push_back(bytes.clone());
            self.passed.truncate(KEPT);
        }
        Some(bytes)
    }
}

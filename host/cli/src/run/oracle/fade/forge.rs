//! Frames that nobody should have sent.

use fadelink_wire::fade10g::{self, DATA_FRAME_LEN, PACKET_BYTES};
use fadelink_wire::{fade1, MacAddr, Protocol};

use super::super::record::word;
use super::super::way::Number;
use super::case::Ask;

pub struct Forger {
    pub protocol: Protocol,
    pub computer: MacAddr,
    pub board: MacAddr,
    pub random: fastrand::Rng,
}

impl Forger {
    /// A request to the board, from `source`.
    pub fn ask(&mut self, ask: Ask, source: MacAddr, newest: u32) -> Vec<u8> {
        let number = self.random.u16(1..);
        let packet = newest.wrapping_add_signed(self.random.i32(-2..3));
        match self.protocol {
            Protocol::Fade10g => {
                let command = |code| fade10g::Request::Command { code, csn: number, argument: 0 };
                let request = match ask {
                    Ask::Reset => command(fade10g::CMD_RESET),
                    Ask::Start => command(fade10g::CMD_START),
                    Ask::Stop => command(fade10g::CMD_STOP),
                    Ask::Identify => command(fade10g::CMD_IDENTIFY),
                    Ask::Confirm => fade10g::Request::Ack {
                        negative: self.random.u8(0..4) == 0,
                        sequence: self.random.u16(..),
                        packet,
                        delay: 0,
                        stored: self.random.bool().then(|| self.random.u64(..)),
                    },
                };
                request.to_frame(self.board, source).to_vec()
            }
            Protocol::Fade1 => {
                let request = match ask {
                    Ask::Reset | Ask::Identify => fade1::Request::Reset,
                    Ask::Start => fade1::Request::Start { transmission: number, permit: None },
                    Ask::Stop => fade1::Request::Stop,
                    Ask::Confirm => fade1::Request::Ack {
                        set: (packet / fade1::SET_PACKETS) as u16,
                        packet: (packet % fade1::SET_PACKETS) as u8,
                        stored: self.random.bool().then(|| self.random.u64(..)),
                    },
                };
                request.to_frame(self.board, source).to_vec()
            }
        }
    }

    /// A data frame with words of its own.
    pub fn data(&mut self, place: Number, newest: u32, is_last: bool) -> Vec<u8> {
        let packet = place.from(newest);
        let mut payload = [0; PACKET_BYTES];
        payload.iter_mut().for_each(|byte| *byte = self.random.u8(..));
        match self.protocol {
            Protocol::Fade10g => {
                let words = self.random.u64(0..=fade10g::LAST_WORDS_MAX);
                let last = is_last.then_some(words);
                if is_last {
                    payload[PACKET_BYTES - 8..].copy_from_slice(&words.to_le_bytes());
                }
                let (sequence, delay) = (self.random.u16(..), 0);
                let data = fade10g::Data { sequence, packet, delay, response: None, last, payload: &payload };
                let mut frame = vec![0; DATA_FRAME_LEN];
                if let Some(frame) = frame.first_chunk_mut() {
                    let _ = data.write(self.computer, self.board, frame);
                }
                frame
            }
            Protocol::Fade1 if is_last => self.answer(packet),
            Protocol::Fade1 => {
                let data = fade1::Data {
                    set: (packet / fade1::SET_PACKETS) as u16,
                    packet: (packet % fade1::SET_PACKETS) as u8,
                    retry: fade1::RETRY_FADELINK,
                    delay: 0,
                    block_acks: true,
                    same_words: true,
                    payload: &[],
                };
                let mut frame = payload[..fade1::DATA_FRAME_LEN].to_vec();
                if let Some(head) = frame.first_chunk_mut() {
                    data.write_header(self.computer, self.board, head);
                }
                frame
            }
        }
    }

    /// The same, with the first word of that packet in this run of the source.
    pub fn begins(&mut self, place: Number, newest: u32, run: Option<u64>) -> Vec<u8> {
        let mut frame = self.data(place, newest, false);
        let (header, packet) = self.lengths();
        if let Some(run) = run {
            let first = word(run, u64::from(place.from(newest)) * (packet / 8) as u64);
            frame[header..header + 8].copy_from_slice(&first.to_le_bytes());
        }
        frame
    }

    /// Bytes of a data frame's header, and of its packet.
    fn lengths(&self) -> (usize, usize) {
        match self.protocol {
            Protocol::Fade10g => (fade10g::DATA_HEADER_LEN, PACKET_BYTES),
            Protocol::Fade1 => (fade1::DATA_HEADER_LEN, fade1::PACKET_BYTES),
        }
    }

    /// An answer with a random number: who knows the right one can say what he wants.
    pub fn answer(&mut self, packets: u32) -> Vec<u8> {
        let number = self.random.u16(..);
        match self.protocol {
            Protocol::Fade10g => {
                let response =
                    fade10g::Response { code: self.random.u16(1..8), csn: number, value: self.random.u64(..) };
                response.to_frame(self.computer, self.board).to_vec()
            }
            Protocol::Fade1 => {
                let phases = [fade1::Phase::None, fade1::Phase::Running, fade1::Phase::Ended, fade1::Phase::Reset];
                let phase = *self.random.choice(&phases).unwrap_or(&fade1::Phase::None);
                let state =
                    fade1::State { phase, transmission: number, packets, resets: None, checksum: None, permit: None };
                state.to_frame(self.computer, self.board).to_vec()
            }
        }
    }

    /// A frame that was damaged: cut off, or with other bits in its header or first word. Now and then nothing of it is right.
    pub fn damage(&mut self, mut frame: Vec<u8>) -> Vec<u8> {
        match self.random.u8(0..4) {
            0 => frame.truncate(self.random.usize(0..=frame.len())),
            1 => frame.iter_mut().for_each(|byte| *byte = self.random.u8(..)),
            _ => {
                let end = frame.len().min(self.lengths().0 + 8);
                for _ in 0..self.random.u8(1..4) {
                    if end > 0 {
                        let at = self.random.usize(0..end);
                        frame[at] ^= 1 << self.random.u8(0..8);
                    }
                }
            }
        }
        frame
    }
}

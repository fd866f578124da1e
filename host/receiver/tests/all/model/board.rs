//! Boards of both protocols whose source begins anew in each transmission.

use fadelink_feb::{Status, User};
use fadelink_wire::fade1;
use fadelink_wire::fade10g::{self, Request};

/// The source of a board: the counter, from 0 in each transmission, as many words as it was told.
#[derive(Default)]
pub struct Words {
    pub per_run: u64,
    pub left: u64,
    pub next: u64,
    pub begun: u32,
}

impl User for Words {
    fn begin(&mut self) {
        self.begun += 1;
        (self.left, self.next) = (self.per_run, 0);
    }

    fn fill(&mut self, out: &mut [u8]) -> usize {
        let count = self.left.min(out.len() as u64 / 8).min(700);
        for place in out.chunks_exact_mut(8).take(count as usize) {
            place.copy_from_slice(&self.next.to_le_bytes());
            self.next += 1;
        }
        self.left -= count;
        count as usize * 8
    }

    fn command(&mut self, _: u16, _: u32, _: &Status) -> u64 {
        0
    }
}

/// The packets that an ACK confirms, whatever the protocol.
pub fn confirmed(frame: &[u8]) -> Vec<u64> {
    let (packet, stored) = match (fade10g::parse_request(frame), fade1::parse_request(frame)) {
        (Ok((_, Request::Ack { packet, stored, .. })), _) => (packet.into(), stored),
        (_, Ok((_, fade1::Request::Ack { set, packet, stored }))) => (u64::from(set) * 32 + u64::from(packet), stored),
        _ => return vec![],
    };
    let before = (0..64).filter(|i| stored.unwrap_or(0) >> i & 1 != 0).map(|i| packet - 1 - i);
    before.chain([packet]).collect()
}

//! The content of packets that were stored: a packet that comes again must be the same.
//!
//! Of each packet the first word is compared. A core that is told that a packet is confirmed while it sends it again has its
//! place free then, and the frame goes on with newer words. Until its header is out the place is locked, and the first word
//! follows the header.

use crate::window::REPEATED;

/// Bytes of a packet that are compared.
const BEGIN: usize = 8;

/// How the newest packets begin, each at its number modulo their count.
pub(super) struct Known {
    begins: Box<[Option<[u8; BEGIN]>]>,
}

/// The first bytes of a packet; the last one may be shorter than others, and is filled up.
fn begin(payload: &[u8]) -> [u8; BEGIN] {
    payload.first_chunk().copied().unwrap_or([0; BEGIN])
}

impl Known {
    pub(super) fn new() -> Known {
        // Those ahead of a gap have a place beside the ones that may come again.
        Known { begins: vec![None; 2 * REPEATED as usize].into() }
    }

    fn at(&mut self, index: u64) -> &mut Option<[u8; BEGIN]> {
        let place = index % self.begins.len() as u64;
        &mut self.begins[place as usize]
    }

    /// Packet `index` is stored.
    pub(super) fn store(&mut self, index: u64, payload: &[u8]) {
        *self.at(index) = Some(begin(payload));
    }

    /// Whether packet `index`, which comes again, has other content. What was stored by an earlier program is not known.
    pub(super) fn contradicts(&mut self, index: u64, payload: &[u8]) -> bool {
        self.at(index).is_some_and(|known| known != begin(payload))
    }
}

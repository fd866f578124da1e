//! The content of packets that were stored: a packet that comes again must be the same.
//!
//! All its words are compared if the FEB sends the same ones again. Of other FEBs the first word is: an earlier core that is told
//! that a packet is confirmed while it sends it again has its place free then, and the frame goes on with newer words. Until its
//! header is out the place is locked, and the first word follows the header.

use twox_hash::XxHash3_64;

use crate::window::REPEATED;

/// What is known of the newest packets, each at its number modulo their count.
pub(super) struct Known {
    digests: Box<[Option<u64>]>,
}

/// What is compared of a packet: a hash of it, or its first word. The last packet may be shorter than others.
fn digest(payload: &[u8], same_words: bool) -> u64 {
    if same_words {
        XxHash3_64::oneshot(payload)
    } else {
        payload.first_chunk().map_or(0, |word| u64::from_ne_bytes(*word))
    }
}

impl Known {
    pub(super) fn new() -> Known {
        // Those ahead of a gap have a place beside the ones that may come again.
        Known { digests: vec![None; 2 * REPEATED as usize].into() }
    }

    fn at(&mut self, index: u64) -> &mut Option<u64> {
        let place = index % self.digests.len() as u64;
        &mut self.digests[place as usize]
    }

    /// Packet `index` is stored. `same_words`: the FEB sends the same words again.
    pub(super) fn store(&mut self, index: u64, payload: &[u8], same_words: bool) {
        *self.at(index) = Some(digest(payload, same_words));
    }

    /// Whether packet `index`, which comes again, has other content. What was stored by an earlier program is not known.
    pub(super) fn contradicts(&mut self, index: u64, payload: &[u8], same_words: bool) -> bool {
        self.at(index).is_some_and(|known| known != digest(payload, same_words))
    }
}

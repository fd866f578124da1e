//! Decides which packet of FADE v1 is stored, confirmed or dropped (docs/protocol/fade1.md), without memory, frames
//! or time.

use fadelink_wire::fade1::{PACKET_BYTES, SET_PACKETS};

use crate::window::{stored_before, Verdict};

/// The receiver's view of one transmission: it begins with packet 0 of set 0.
#[derive(Debug, Clone, Default)]
pub struct Sets {
    ring_packets: u64,
    /// Packets received without a gap since the start.
    in_order: u64,
    /// Bit i: packet `in_order + i` is in; bit 0 is always clear.
    ahead: u64,
}

impl Sets {
    /// Over a ring of `ring_packets` packets of 1024 bytes, at least two sets.
    pub fn new(ring_packets: u64) -> Sets {
        assert!(ring_packets >= 2 * u64::from(SET_PACKETS));
        Sets { ring_packets, in_order: 0, ahead: 0 }
    }

    /// A transmission of which `packets` packets have come already.
    pub fn resumed(ring_packets: u64, packets: u64) -> Sets {
        Sets { in_order: packets, ..Sets::new(ring_packets) }
    }

    /// Judges packet `packet` of set `set`; `released` packets have left the ring. Nothing changes until
    /// [`Self::stored`].
    ///
    /// Packets of two consecutive sets may be under way: of the set that is not complete and of the next.
    /// One of the set before has lost its ACK. Every other set is a protocol error.
    pub fn judge(&self, set: u16, packet: u8, released: u64) -> Verdict {
        let current = self.in_order / u64::from(SET_PACKETS);
        let index = |set: u64| set * u64::from(SET_PACKETS) + u64::from(packet);
        let index = match set.wrapping_sub(current as u16) {
            0 => index(current),
            1 => index(current + 1),
            u16::MAX if current > 0 => return Verdict::ConfirmAgain { index: index(current - 1) },
            _ => return Verdict::ProtocolError,
        };
        if index < self.in_order || self.ahead >> (index - self.in_order) & 1 != 0 {
            Verdict::ConfirmAgain { index }
        } else if index - released >= self.ring_packets {
            Verdict::NoSpace
        } else {
            Verdict::Store { index }
        }
    }

    /// Notes that packet `index`, judged [`Verdict::Store`], is in the ring. True if it filled a gap: a later packet is
    /// in the ring already.
    pub fn stored(&mut self, index: u64) -> bool {
        let filled_gap = self.ahead >> (index - self.in_order) != 0;
        self.ahead |= 1 << (index - self.in_order);
        let run = self.ahead.trailing_ones();
        self.ahead = self.ahead.checked_shr(run).unwrap_or(0);
        self.in_order += u64::from(run);
        filled_gap
    }

    /// Which packets before packet `index`, of these two sets, are in: bit i is set if packet `index - 1 - i` is.
    pub fn stored_before(&self, index: u64) -> u64 {
        stored_before(index, self.in_order, self.ahead)
    }

    /// Bytes received without a gap since the start.
    pub fn bytes(&self) -> u64 {
        self.in_order * PACKET_BYTES as u64
    }

    /// True if no packet is in behind one that is missing.
    pub fn is_gap_free(&self) -> bool {
        self.ahead == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sets_in_flight_and_others() {
        let mut sets = Sets::new(128);
        assert_eq!(sets.judge(0xFFFF, 0, 0), Verdict::ProtocolError, "before the start");
        assert_eq!(sets.judge(1, 31, 0), Verdict::Store { index: 63 });
        assert_eq!(sets.judge(2, 0, 0), Verdict::ProtocolError);
        (0..33).for_each(|i| _ = sets.stored(i));
        assert_eq!(sets.bytes(), 33 * 1024);
        let again = |index| Verdict::ConfirmAgain { index };
        assert_eq!((sets.judge(0, 31, 0), sets.judge(1, 0, 0)), (again(31), again(32)));
        assert_eq!(sets.judge(2, 31, 0), Verdict::Store { index: 95 });
        assert_eq!(sets.judge(3, 0, 0), Verdict::ProtocolError);
        assert_eq!(sets.judge(0xFFFF, 0, 0), Verdict::ProtocolError);
    }

    #[test]
    fn no_space_is_dropped_until_released() {
        let mut sets = Sets::new(64);
        (0..64).for_each(|i| _ = sets.stored(i));
        assert_eq!(sets.judge(2, 0, 0), Verdict::NoSpace);
        assert_eq!(sets.judge(2, 0, 1), Verdict::Store { index: 64 });
        assert_eq!(sets.judge(2, 1, 1), Verdict::NoSpace);
    }

    proptest! {
        /// Against a set of received packets, across the wrap of the set number.
        #[test]
        fn agrees_with_a_set(begin in prop::sample::select(vec![0u64, 5, 65535, 65536 * 3]),
                             steps in prop::collection::vec((-80i64..110, any::<bool>()), 1..300)) {
            let ring = 128;
            let mut sets = Sets { ring_packets: ring, in_order: begin * 32, ahead: 0 };
            let mut received = std::collections::BTreeSet::new();
            let (mut in_order, mut released) = (begin * 32, begin * 32);
            for (offset, release) in steps {
                if release {
                    released = in_order;
                }
                let index = in_order as i64 + offset;
                prop_assume!(index >= 0);
                let index = index as u64;
                let distance = (index / 32) as i64 - (in_order / 32) as i64;
                let expected = match distance {
                    0 | 1 if index < in_order || received.contains(&index) => Verdict::ConfirmAgain { index },
                    0 | 1 if index - released >= ring => Verdict::NoSpace,
                    0 | 1 => Verdict::Store { index },
                    -1 => Verdict::ConfirmAgain { index },
                    _ => Verdict::ProtocolError,
                };
                let verdict = sets.judge((index / 32) as u16, (index % 32) as u8, released);
                prop_assert_eq!(verdict, expected, "packet {} at {}", index, in_order);
                if let Verdict::Store { index } = verdict {
                    sets.stored(index);
                    received.insert(index);
                    while received.contains(&in_order) {
                        in_order += 1;
                    }
                }
                prop_assert_eq!(sets.bytes(), in_order * 1024);
                for at in (begin * 32).max(in_order.saturating_sub(40))..in_order / 32 * 32 + 64 {
                    let is_in = |packet: u64| packet < in_order || received.contains(&packet);
                    let bits = (0..64).filter(|i| *i < at && is_in(at - 1 - i));
                    prop_assert_eq!(sets.stored_before(at), bits.map(|i| 1 << i).sum::<u64>(), "before {}", at);
                }
                prop_assert_eq!(sets.is_gap_free(), received.range(in_order..).next().is_none());
            }
        }
    }
}

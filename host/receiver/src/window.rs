//! Decides which packet of FADE-10G is stored, confirmed or dropped (docs/protocol/fade10g.md; paper section 4),
//! without memory, frames or time.

/// Most packets that a window can have.
pub const MAX_WINDOW: u32 = 64;
/// Packets that may come again behind the newest: a FEB repeats those of its window, and a network may deliver a frame late.
/// Older numbers are of another transmission.
pub const REPEATED: u64 = 1024;

/// What to do with a data packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// New: store it as packet `index` since the start, then confirm it.
    Store {
        /// Packets before this one since the start of the transmission.
        index: u64,
    },
    /// Packet `index` since the start was already confirmed: confirm it again.
    ConfirmAgain {
        /// Packets before this one since the start of the transmission.
        index: u64,
    },
    /// New, but the ring has no free place: drop it without ACK.
    NoSpace,
    /// Newer than the window, from before the start or long ago, behind the last packet, or another last packet: protocol
    /// error.
    ProtocolError,
}

/// The receiver's view of one transmission.
#[derive(Debug, Clone)]
pub struct Window {
    window: u32,
    ring_packets: u64,
    first: u32,
    /// Packets received without a gap since the start.
    in_order: u64,
    /// The first packet that may come again.
    oldest: u64,
    /// Bit i: packet `in_order + i` is in; bit 0 is always clear.
    ahead: u64,
    /// Index and valid words of the last packet, once it was seen.
    last: Option<(u64, u64)>,
}

impl Window {
    /// A transmission that begins with packet `first`, over a window of `window` packets (1 to 64)
    /// and a ring of `ring_packets`.
    pub fn new(first: u32, window: u32, ring_packets: u64) -> Self {
        assert!((1..=MAX_WINDOW).contains(&window) && ring_packets >= u64::from(window));
        Window { window, ring_packets, first, in_order: 0, oldest: 0, ahead: 0, last: None }
    }

    /// A transmission of which `packets` packets have come already.
    pub fn resumed(first: u32, window: u32, ring_packets: u64, packets: u64) -> Self {
        let oldest = packets.saturating_sub(window.into());
        Window { in_order: packets, oldest, ..Window::new(first, window, ring_packets) }
    }

    /// Packets received without a gap since the start.
    pub fn packets(&self) -> u64 {
        self.in_order
    }

    /// The number that packet `index` has on the wire.
    pub fn number(&self, index: u64) -> u32 {
        self.first.wrapping_add(index as u32)
    }

    /// Judges data packet `packet`; `last` holds its valid words if it is the last one; `released`
    /// packets have left the ring. Nothing changes until [`Self::stored`].
    pub fn judge(&self, packet: u32, last: Option<u64>, released: u64) -> Verdict {
        let next = self.first.wrapping_add(self.in_order as u32);
        let ahead = packet.wrapping_sub(next);
        if ahead >= 1 << 31 {
            // From before the start: nothing that was received here.
            let index = self.in_order.checked_sub(u64::from(ahead.wrapping_neg()));
            let oldest = self.oldest.max(self.in_order.saturating_sub(REPEATED));
            return index
                .filter(|index| *index >= oldest)
                .map_or(Verdict::ProtocolError, |index| self.known(index, last));
        }
        if ahead >= self.window {
            return Verdict::ProtocolError;
        }
        let index = self.in_order + u64::from(ahead);
        if self.ahead >> ahead & 1 != 0 {
            return self.known(index, last);
        }
        let contradicts = match (self.last, last) {
            (Some((end, _)), None) => index >= end,
            (Some((end, words)), Some(now)) => (index, now) != (end, words),
            // A packet behind this one was already confirmed.
            (None, Some(_)) => self.ahead >> ahead != 0,
            (None, None) => false,
        };
        if contradicts {
            Verdict::ProtocolError
        } else if index - released >= self.ring_packets {
            Verdict::NoSpace
        } else {
            Verdict::Store { index }
        }
    }

    /// A packet that is in already: the same kind again is confirmed again.
    fn known(&self, index: u64, last: Option<u64>) -> Verdict {
        match (self.last, last) {
            (Some((end, words)), Some(now)) if (index, now) != (end, words) => Verdict::ProtocolError,
            (None, Some(_)) => Verdict::ProtocolError,
            (Some((end, _)), None) if index == end => Verdict::ProtocolError,
            _ => Verdict::ConfirmAgain { index },
        }
    }

    /// Packets since the start, behind those that have come, that a FEB with this window has confirmation of if it sends data packet
    /// `packet`; `None`: it says nothing of them.
    pub fn confirmed_by(&self, packet: u32, feb_window: u32) -> Option<u64> {
        let ahead = packet.wrapping_sub(self.first.wrapping_add(self.in_order as u32));
        let is_behind = (feb_window..feb_window + MAX_WINDOW).contains(&ahead);
        is_behind.then(|| self.in_order + u64::from(ahead - feb_window) + 1)
    }

    /// Notes that packet `index`, judged [`Verdict::Store`], is in the ring. True if it filled a gap: a later packet is
    /// in the ring already.
    pub fn stored(&mut self, index: u64, last: Option<u64>) -> bool {
        let filled_gap = self.ahead >> (index - self.in_order) != 0;
        self.ahead |= 1 << (index - self.in_order);
        let run = self.ahead.trailing_ones();
        self.ahead = self.ahead.checked_shr(run).unwrap_or(0);
        self.in_order += u64::from(run);
        if let Some(words) = last {
            self.last = Some((index, words));
        }
        filled_gap
    }

    /// Which packets before packet `index`, of this window, are in: bit i is set if packet `index - 1 - i` is.
    pub fn stored_before(&self, index: u64) -> u64 {
        stored_before(index, self.in_order, self.ahead)
    }

    /// True if no packet is in behind one that is missing.
    pub fn is_gap_free(&self) -> bool {
        self.ahead == 0
    }

    /// Bytes received without a gap since the start.
    pub fn bytes(&self) -> u64 {
        use fadelink_wire::fade10g::PACKET_BYTES;
        match self.last {
            Some((end, words)) if self.in_order > end => end * PACKET_BYTES as u64 + words * 8,
            _ => self.in_order * PACKET_BYTES as u64,
        }
    }

    /// True when the last packet was seen and all before it are in.
    pub fn complete(&self) -> bool {
        matches!(self.last, Some((end, _)) if self.in_order > end)
    }
}

/// Bit i: packet `index - 1 - i` is in, if those before `in_order` are and of the others those that `ahead` has.
pub(crate) fn stored_before(index: u64, in_order: u64, ahead: u64) -> u64 {
    let ones = |count: u64| u64::MAX.checked_shr(64 - count.min(64) as u32).unwrap_or(0);
    // Those that came ahead of a gap: bit 0 of `ahead` is the farthest of them.
    let gap = index.saturating_sub(in_order);
    let ahead = (ahead & ones(gap)).reverse_bits().checked_shr(64 - gap.min(64) as u32).unwrap_or(0);
    (ahead | !ones(gap)) & ones(index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn window() -> Window {
        Window::new(0, 16, 32)
    }

    fn take(w: &mut Window, packet: u32, last: Option<u64>) {
        match w.judge(packet, last, 0) {
            Verdict::Store { index } => _ = w.stored(index, last),
            other => panic!("packet {packet}: {other:?}"),
        }
    }

    #[test]
    fn a_packet_behind_a_later_one_fills_a_gap() {
        let mut w = window();
        assert_eq!([0, 3, 1, 4, 2, 5].map(|index| w.stored(index, None)), [false, false, true, false, true, false]);
    }

    #[test]
    fn gap_free_prefix_only() {
        let mut w = window();
        take(&mut w, 1, None);
        take(&mut w, 3, None);
        assert_eq!(w.bytes(), 0);
        take(&mut w, 0, None);
        assert_eq!(w.bytes(), 2 * 8192);
        take(&mut w, 2, None);
        assert_eq!(w.bytes(), 4 * 8192);
        assert_eq!(w.judge(1, None, 0), Verdict::ConfirmAgain { index: 1 });
    }

    #[test]
    fn what_is_stored_before_a_packet() {
        let mut w = Window::new(7, 64, 128);
        [7, 9, 10, 12].iter().for_each(|packet| take(&mut w, *packet, None));
        assert_eq!([0, 1, 3, 4, 6].map(|index| w.stored_before(index)), [0, 1, 0b101, 0b1011, 0b10_1101]);
        (7..7 + 64).filter(|p| ![7, 9, 10, 12].contains(p)).for_each(|packet| take(&mut w, packet, None));
        assert_eq!([63, 64, 65].map(|index| w.stored_before(index)), [u64::MAX >> 1, u64::MAX, u64::MAX << 1]);
    }

    /// A FEB sends no packet that its window does not have.
    #[test]
    fn a_packet_shows_what_is_confirmed_before_it() {
        let w = Window::resumed(u32::MAX - 2, 64, 128, 100);
        let by = |index: u32| w.confirmed_by((u32::MAX - 2).wrapping_add(index), 32);
        assert_eq!(
            [99, 100, 131, 132, 163, 195, 196].map(by),
            [None, None, None, Some(101), Some(132), Some(164), None]
        );
    }

    #[test]
    fn full_window_of_64_advances() {
        let mut w = Window::new(5, 64, 128);
        for packet in (5..69).rev() {
            take(&mut w, packet, None);
        }
        assert_eq!(w.bytes(), 64 * 8192);
        take(&mut w, 69, None);
    }

    #[test]
    fn outside_the_window_is_an_error_but_what_was_received() {
        let mut w = window();
        assert_eq!(w.judge(16, None, 0), Verdict::ProtocolError);
        assert_eq!(w.judge(u32::MAX, None, 0), Verdict::ProtocolError, "from before the start");
        take(&mut w, 0, None);
        assert_eq!(w.judge(0, None, 0), Verdict::ConfirmAgain { index: 0 });
        assert_eq!(w.judge(16, None, 0), Verdict::Store { index: 16 });
    }

    #[test]
    fn numbers_of_long_ago_are_of_another_transmission() {
        let mut w = Window::new(0, 16, 4096);
        (0..2000).for_each(|p| take(&mut w, p, None));
        assert_eq!(w.judge(2000 - 1024, None, 0), Verdict::ConfirmAgain { index: 976 });
        assert_eq!(w.judge(2000 - 1025, None, 0), Verdict::ProtocolError);
        // What was confirmed before it goes on may come again as far as the FEB's window goes.
        let w = Window::resumed(0, 16, 32, 500);
        assert_eq!(w.judge(484, None, 500), Verdict::ConfirmAgain { index: 484 });
        assert_eq!(w.judge(483, None, 500), Verdict::ProtocolError);
    }

    #[test]
    fn no_space_is_dropped_until_released() {
        let mut w = Window::new(0, 16, 16);
        (0..16).for_each(|p| take(&mut w, p, None));
        assert_eq!(w.judge(16, None, 0), Verdict::NoSpace);
        assert_eq!(w.judge(16, None, 1), Verdict::Store { index: 16 });
        assert_eq!(w.judge(17, None, 1), Verdict::NoSpace);
    }

    #[test]
    fn last_packet_ends_the_transmission() {
        let mut w = window();
        take(&mut w, 1, Some(3));
        assert!(!w.complete());
        assert_eq!(w.judge(2, None, 0), Verdict::ProtocolError);
        assert_eq!(w.judge(0, Some(3), 0), Verdict::ProtocolError);
        assert_eq!(w.judge(1, Some(4), 0), Verdict::ProtocolError);
        assert_eq!(w.judge(1, None, 0), Verdict::ProtocolError);
        assert_eq!(w.judge(1, Some(3), 0), Verdict::ConfirmAgain { index: 1 });
        take(&mut w, 0, None);
        assert!(w.complete());
        assert_eq!(w.bytes(), 8192 + 24);
        assert_eq!(w.judge(2, None, 0), Verdict::ProtocolError);
        assert_eq!(w.judge(1, Some(3), 0), Verdict::ConfirmAgain { index: 1 });
    }

    #[test]
    fn a_last_packet_before_confirmed_ones_is_an_error() {
        let mut w = window();
        take(&mut w, 4, None);
        assert_eq!(w.judge(2, Some(0), 0), Verdict::ProtocolError);
        assert_eq!(w.judge(4, Some(0), 0), Verdict::ProtocolError);
    }

    proptest! {
        /// Against a set of received packets, from any first number, across the wrap.
        #[test]
        fn agrees_with_a_set(first: u32, window in 1u32..=64, steps in prop::collection::vec((-80i64..80, any::<bool>()), 1..400)) {
            let ring = 128u64;
            let mut w = Window::new(first, window, ring);
            let mut received = std::collections::BTreeSet::new();
            let mut released = 0u64;
            for (offset, release) in steps {
                let in_order = (0u64..).find(|i| !received.contains(i)).unwrap();
                if release {
                    released = in_order;
                }
                let index = in_order as i64 + offset;
                let packet = first.wrapping_add(index as u32);
                let known = index >= (in_order as i64 - REPEATED as i64).max(0);
                let expected = if known && received.contains(&(index as u64)) {
                    Verdict::ConfirmAgain { index: index as u64 }
                } else if index < 0 || offset >= i64::from(window) {
                    Verdict::ProtocolError
                } else if index as u64 - released >= ring {
                    Verdict::NoSpace
                } else {
                    Verdict::Store { index: index as u64 }
                };
                let verdict = w.judge(packet, None, released);
                prop_assert_eq!(verdict, expected, "packet {} at {}", index, in_order);
                if let Verdict::Store { index } = verdict {
                    w.stored(index, None);
                    received.insert(index);
                }
                let in_order = (0u64..).find(|i| !received.contains(i)).unwrap();
                prop_assert_eq!(w.bytes(), in_order * 8192);
                for at in in_order.saturating_sub(70)..in_order + u64::from(window) {
                    let bits = (0..64).filter(|i| *i < at && received.contains(&(at - 1 - i)));
                    prop_assert_eq!(w.stored_before(at), bits.map(|i| 1 << i).sum::<u64>(), "before {}", at);
                }
            }
        }
    }
}

//! Packets that are stored and wait for their confirmation, because their data is not released yet
//! ([`super::Confirm::Released`]).

use std::collections::VecDeque;

use crate::window::MAX_WINDOW;

/// Of each packet its last frame, as a confirmation names it.
pub(super) struct Held<F> {
    /// Packets that are confirmed, since the start.
    confirmed: u64,
    /// Of those behind them; `None`: it is not stored.
    frames: VecDeque<Option<F>>,
}

impl<F> Held<F> {
    /// Of a transmission of which so many packets are confirmed.
    pub(super) fn new(confirmed: u64) -> Held<F> {
        // The FEB sends no more than its window before one is confirmed.
        Held { confirmed, frames: VecDeque::with_capacity(2 * MAX_WINDOW as usize) }
    }

    /// Packet `index` is stored and came in `frame`; false: it is confirmed already.
    pub(super) fn note(&mut self, index: u64, frame: F) -> bool {
        let Some(at) = index.checked_sub(self.confirmed) else { return false };
        let at = at as usize;
        while self.frames.len() <= at {
            self.frames.push_back(None);
        }
        self.frames[at] = Some(frame);
        true
    }

    /// The data of so many packets since the start is released: those that can be confirmed now, with their numbers.
    pub(super) fn release(&mut self, released: u64) -> impl Iterator<Item = (u64, F)> + '_ {
        let first = self.confirmed;
        let count = (released.saturating_sub(first) as usize).min(self.frames.len());
        self.confirmed += count as u64;
        (first..).zip(self.frames.drain(..count)).filter_map(|(index, frame)| Some((index, frame?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_confirmed_in_order_and_once() {
        let mut held = Held::new(10);
        assert!(held.note(11, 'b') && held.note(10, 'a') && held.note(12, 'c'));
        assert!(!held.note(9, 'x'), "confirmed before the start");
        assert_eq!(held.release(10).next(), None);
        assert!(held.note(11, 'B'), "its frame came again");
        assert_eq!(held.release(12).collect::<Vec<_>>(), [(10, 'a'), (11, 'B')]);
        assert_eq!(held.release(12).next(), None);
        assert!(!held.note(11, 'b'));
        assert_eq!(held.release(99).collect::<Vec<_>>(), [(12, 'c')]);
        assert_eq!(held.release(99).next(), None);
        assert!(held.note(13, 'd'));
    }
}

//! A way from a board to the computer, on which things are lost, come twice, late and in another order.

use std::collections::VecDeque;

/// Steps after which what is late comes.
const LATE: std::ops::Range<u64> = 1..20;

/// A chance of each that is sent.
#[derive(Debug, Clone, Copy, Default)]
pub struct Chances {
    pub loss: f64,
    pub duplicate: f64,
    pub reorder: f64,
}

/// A number near the newest one, or any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Number {
    /// So many before or behind the newest one.
    Near(i32),
    /// Any.
    Far(u32),
}

impl Number {
    pub fn any(random: &mut fastrand::Rng) -> Number {
        let near = Number::Near(random.i32(-40..40));
        if random.u8(0..4) == 0 {
            Number::Far(random.u32(..))
        } else {
            near
        }
    }

    /// The number.
    pub fn from(self, newest: u32) -> u32 {
        match self {
            Number::Near(ahead) => newest.wrapping_add_signed(ahead),
            Number::Far(number) => number,
        }
    }
}

pub struct Way<T> {
    chances: Chances,
    random: fastrand::Rng,
    arriving: VecDeque<T>,
    late: Vec<(u64, T)>,
}

impl<T: Clone> Way<T> {
    pub fn new(chances: Chances, seed: u64) -> Way<T> {
        let random = fastrand::Rng::with_seed(seed ^ 0xCAB1E);
        Way { chances, random, arriving: VecDeque::new(), late: Vec::new() }
    }

    /// Sends something. `is_out`: nothing passes.
    pub fn send(&mut self, sent: T, step: u64, is_out: bool) {
        let Chances { loss, duplicate, reorder } = self.chances;
        if is_out || self.random.f64() < loss {
            return;
        }
        if self.random.f64() < duplicate {
            self.late.push((step + self.random.u64(LATE), sent.clone()));
        }
        if self.random.f64() < reorder {
            self.late.push((step + self.random.u64(LATE), sent));
        } else {
            self.arriving.push_back(sent);
        }
    }

    /// Something that comes in any case.
    pub fn put(&mut self, sent: T) {
        self.arriving.push_back(sent);
    }

    /// What comes in this step.
    pub fn pop(&mut self, step: u64) -> VecDeque<T> {
        let mut index = 0;
        while index < self.late.len() {
            if self.late[index].0 <= step {
                self.arriving.push_back(self.late.swap_remove(index).1);
            } else {
                index += 1;
            }
        }
        std::mem::take(&mut self.arriving)
    }
}

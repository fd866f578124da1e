//! The user logic of the example boards (rtl/boards/example): a pattern source, and registers that user commands
//! access.

use crate::feb::User;
use crate::random::{first_random, next_random};
use crate::status::Status;

/// Register 0.
pub const IDENTITY: u64 = 0x4641_4445_3130_4701;
/// The answer of a register that is not there, and of an unknown code.
const NONE: u64 = u64::MAX;

/// The source and the registers. A transmission begins with the settings of its START.
#[derive(Debug, Default, Clone)]
pub struct Example {
    scratch: u32,
    random: bool,
    seed: u64,
    limit: u32,
    gap: u16,
    accumulator: u32,
    next: u64,
    is_random: bool,
    left: u64,
}

/// Sets half of a 64-bit register, returns what it was.
fn half(register: &mut u64, shift: u32, write: bool, argument: u32) -> u64 {
    let old = *register >> shift & 0xFFFF_FFFF;
    if write {
        *register = *register & !(0xFFFF_FFFF << shift) | u64::from(argument) << shift;
    }
    old
}

fn plain(register: &mut u32, mask: u32, write: bool, argument: u32) -> u64 {
    let old = u64::from(*register);
    if write {
        *register = argument & mask;
    }
    old
}

impl Example {
    /// With transmissions of `words`, 0 for no limit, until a command sets another.
    pub fn with_limit(words: u32) -> Example {
        Example { limit: words, ..Example::default() }
    }

    fn register(&mut self, register: u16, write: bool, argument: u32, status: &Status) -> u64 {
        match register {
            0x00 => IDENTITY,
            0x01 => plain(&mut self.scratch, u32::MAX, write, argument),
            0x02 => {
                let mut random = u32::from(self.random);
                let old = plain(&mut random, 1, write, argument);
                self.random = random != 0;
                old
            }
            0x03 => half(&mut self.seed, 0, write, argument),
            0x04 => half(&mut self.seed, 32, write, argument),
            0x05 => plain(&mut self.limit, u32::MAX, write, argument),
            0x06 => {
                let mut gap = u32::from(self.gap);
                let old = plain(&mut gap, 0xFFFF, write, argument);
                self.gap = gap as u16;
                old
            }
            0x07 => {
                // The answer has the carry that the register has no room for.
                let sum = u64::from(self.accumulator) + u64::from(if write { argument } else { 0 });
                self.accumulator = sum as u32;
                sum
            }
            // A board in software has no PHY and no core.
            0x1E | 0x1F => 0,
            0x10..=0x1B | 0x20..=0x29 => status.register(register),
            _ => NONE,
        }
    }
}

impl User for Example {
    fn begin(&mut self) {
        self.is_random = self.random;
        self.left = if self.limit == 0 { u64::MAX } else { self.limit.into() };
        self.next = if self.random { first_random(self.seed) } else { 0 };
    }

    fn fill(&mut self, out: &mut [u8]) -> usize {
        let (words, _) = out.as_chunks_mut::<8>();
        let count = self.left.min(words.len() as u64) as usize;
        if self.is_random {
            for word in &mut words[..count] {
                *word = self.next.to_le_bytes();
                self.next = next_random(self.next);
            }
        } else {
            for (i, word) in words[..count].iter_mut().enumerate() {
                *word = self.next.wrapping_add(i as u64).to_le_bytes();
            }
            self.next = self.next.wrapping_add(count as u64);
        }
        if self.left != u64::MAX {
            self.left -= count as u64;
        }
        count * 8
    }

    fn command(&mut self, code: u16, argument: u32, status: &Status) -> u64 {
        match code >> 8 {
            1 => self.register(code & 0xFF, false, 0, status),
            2 => self.register(code & 0xFF, true, argument, status),
            _ => NONE,
        }
    }
}

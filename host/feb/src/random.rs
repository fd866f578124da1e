//! The random words of the pattern source in the example boards.

/// What the generator starts from when its seed is 0.
const SEED_FOR_ZERO: u64 = 0x9E37_79B9_7F4A_7C15;

/// The next word of the random pattern: xorshift64 (Marsaglia 2003, shifts 13, 7, 17).
pub fn next_random(mut x: u64) -> u64 {
    x ^= x << 13;
    x ^= x >> 7;
    x ^ x << 17
}

/// Its first word.
pub fn first_random(seed: u64) -> u64 {
    next_random(if seed == 0 { SEED_FOR_ZERO } else { seed })
}

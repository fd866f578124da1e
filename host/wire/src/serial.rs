//! Serial number arithmetic: comparison of numbers that wrap (RFC 1982).

/// True if the 32-bit number `a` is after `b`: `(a - b) mod 2^32` is in `1..2^31`.
pub const fn after32(a: u32, b: u32) -> bool {
    let distance = a.wrapping_sub(b);
    distance != 0 && distance < 1 << 31
}

/// True if the 16-bit number `a` is after `b`: `(a - b) mod 2^16` is in `1..2^15`.
pub const fn after16(a: u16, b: u16) -> bool {
    let distance = a.wrapping_sub(b);
    distance != 0 && distance < 1 << 15
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_holds_across_the_wrap() {
        assert!(after32(0, u32::MAX));
        assert!(!after32(u32::MAX, 0));
        assert!(after32(5, 4) && !after32(4, 5) && !after32(4, 4));
        assert!(after16(0, 0xFFFF) && !after16(0xFFFF, 0));
    }

    #[test]
    fn half_the_circle_away_is_not_after() {
        assert!(after32((1 << 31) - 1, 0));
        assert!(!after32(1 << 31, 0) && !after32(0, 1 << 31));
        assert!(after16(0x7FFF, 0) && !after16(0x8000, 0) && !after16(0, 0x8000));
    }
}

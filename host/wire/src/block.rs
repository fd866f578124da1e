//! The extension that makes an ACK of FADE-10G or FADE v1 a block ACK: after its fields come a mark, zero (16
//! bits), the bits, and zero (64 bits, reserved).

/// Behind the fields of an ACK: a block ACK, which confirms more packets than the one that it names.
pub const BLOCK_MARK: u16 = 0xB10C;
/// Bytes of all that.
pub(crate) const LEN: usize = 20;
/// Bytes before the bits.
const BITS: usize = 4;

/// The bits of a block ACK, of what is behind the fields; a frame that ends before their end is an ordinary ACK.
pub(crate) fn bits(rest: &[u8]) -> Option<u64> {
    let bits = rest.get(BITS..)?.first_chunk()?;
    rest.starts_with(&BLOCK_MARK.to_be_bytes()).then(|| u64::from_be_bytes(*bits))
}

/// Makes an ACK a block ACK, if there are bits.
pub(crate) fn write(bits: Option<u64>, rest: &mut [u8]) {
    if let Some(bits) = bits {
        rest[..LEN].fill(0);
        rest[..2].copy_from_slice(&BLOCK_MARK.to_be_bytes());
        rest[BITS..][..8].copy_from_slice(&bits.to_be_bytes());
    }
}

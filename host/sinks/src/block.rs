//! Data of a board.

use fadelink_receiver::Loan;

use crate::origin::Origin;
use crate::sink::Item;

/// Bytes of a block, at most.
pub const BLOCK_BYTES: usize = 1 << 20;

/// Data that came in a row: whole words as this computer has them, [`BLOCK_BYTES`] at most.
#[derive(Clone)]
pub struct Block {
    /// The data, in a ring; its place there is free when the last clone is gone.
    pub data: Loan,
    /// Where it came from.
    pub origin: Origin,
}

impl Item for Block {
    const UNIT: &'static str = "bytes";

    fn amount(&self) -> u64 {
        self.data.len() as u64
    }

    fn bytes(&self) -> u64 {
        self.data.len() as u64
    }
}

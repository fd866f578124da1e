//! HDF5: what all files of it have in common, and those of words.

mod files;
mod words;

pub use files::{append, column, failed, set, set_text, Files};
pub use words::WordsSink;

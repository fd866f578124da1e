//! HDF5: the common part of all files, and files of words.

mod files;
mod words;

pub use files::{append, column, failed, set, set_text, Files};
pub use words::WordsSink;

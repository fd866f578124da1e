//! HDF5: the common part of all files, and files of words.

mod columns;
mod files;
mod words;

pub use bytemuck::NoUninit;
pub use files::{column, failed, set, set_text, Files};
pub use words::WordsSink;

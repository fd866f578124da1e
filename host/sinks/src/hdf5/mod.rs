//! HDF5: the common part of all files, and files of words.

mod columns;
mod files;
mod library;
mod words;

pub use bytemuck::NoUninit;
pub use files::Files;
pub use library::{column, failed, set, set_text};
pub use words::WordsSink;

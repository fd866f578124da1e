//! The folder of a run (docs/runs.md): its manifest, what belongs to it, and whether it is what was received. The command and
//! the Python package judge by the same rules.

mod check;
mod claims;
pub mod files;
pub mod manifest;
mod scope;
mod sinks;
mod unique;
mod words;

pub use check::{check, Checked, Depth};
pub use manifest::{Error, Manifest};
pub use scope::Scope;
pub use sinks::{stream, word_files, Sink};
pub use words::{Comparison, Expected};

//! A front-end board (FEB) in software: the FEB's side of FADE-10G (docs/protocol/fade10g.md), to load
//! receivers beyond the speed of the simulated board, and to test them without one.
//!
//! [`Feb`] is the protocol: no socket, no thread, time is a parameter. Its frames are made in place, in
//! the buffers of its window. [`User`] is what a detector would be: data and user commands;
//! [`example::Example`] is that of the example boards.

pub mod congestion;
pub mod example;
mod fade1;
mod feb;
pub mod quirks;
pub mod random;

pub use congestion::Rule;
pub use fade1::Fade1Feb;
pub use feb::{Fade10gFeb, Settings, Status, User};
pub use quirks::{Quirk, Quirks};

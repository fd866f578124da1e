//! Front-end boards (FEBs) in software (docs/protocol/fade10g.md, fade1.md, udp.md), to load receivers faster than the
//! simulated board can, and to test them without one.
//!
//! [`Fade10gBoard`], [`Fade1Board`] (as one: [`Board`]) and [`UdpBoard`] are the protocols: no socket, no thread, time is a parameter. Frames are made in
//! place, in the buffers of the window. [`User`] is the detector: data and user commands. [`example::Example`] is
//! the user logic of the example boards.

mod board;
pub mod congestion;
pub mod example;
mod fade1;
mod feb;
mod permits;
pub mod quirks;
pub mod random;
mod settings;
mod status;
mod udp;

pub use board::Board;
pub use congestion::Rule;
pub use fade1::Fade1Board;
pub use feb::{Fade10gBoard, User};
pub use quirks::{Quirk, Quirks};
pub use settings::BoardSettings;
pub use status::Status;
pub use udp::UdpBoard;

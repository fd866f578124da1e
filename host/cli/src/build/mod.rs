//! Joins the messages of FADC crates by time window; `command` is `fadelink build`.

pub mod command;
mod group;

pub use group::{Crates, CratesSettings, Views};

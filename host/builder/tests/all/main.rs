//! Tests of the event builder. One program, which is linked once.

mod bench;
mod connections;
mod epochs;
#[path = "../../../sinks/tests/harm/mod.rs"]
mod harm;
mod inspect;
mod join;
mod outputs;

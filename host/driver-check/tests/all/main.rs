//! Tests of the driver's rules beside the engine. One program, which is linked once.

mod boards;
mod model;
mod rules;
mod traces;
mod traces1;

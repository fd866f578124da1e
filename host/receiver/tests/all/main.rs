//! Tests of the engine and of the receiver. One program, which is linked once.

mod checksum;
mod durable;
mod engine;
mod exactly_once;
mod fade1;
mod fade1_end;
mod firmware;
mod fuzz;
mod model;
mod receiver;
mod starts;

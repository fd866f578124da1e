//! Tests of the boards in software. One program, which is linked once.

mod checksum;
mod permits;
mod resets;
mod sharing;
mod traces;

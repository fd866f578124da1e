//! Tests of the wire formats. One program, which is linked once.

mod fadc;
mod fade1;
mod fade10g;
mod udp;

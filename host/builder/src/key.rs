//! The number by which a message is joined.

use std::fmt;

use fadelink_wire::fadc::Header;

/// What the number of a window is taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// The record counter: all crates have begun to count at the same time.
    Counter,
    /// The timestamp, divided by the window's length in nanoseconds.
    Time(u32),
}

impl Key {
    /// Of a message; `None`: no window has such a number, or such a time.
    pub fn of(self, header: &Header) -> Option<u64> {
        let number = match self {
            Key::Counter => header.record_counter,
            Key::Time(window_ns) => u64::try_from(header.time_ns().div_euclid(window_ns.into())).ok()?,
        };
        // There is a window behind each.
        (number < u64::MAX).then_some(number)
    }
}

/// As `counter` or `time:WINDOW_NS`.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Counter => f.write_str("counter"),
            Key::Time(window_ns) => write!(f, "time:{window_ns}"),
        }
    }
}

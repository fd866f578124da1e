//! How sinks are given what they take.

/// What a sink does when it is slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// It holds the source up.
    Wait,
    /// What comes when its queue is full is lost to it, and counted.
    Drop,
}

/// How a sink is given what it takes.
#[derive(Debug, Clone, Copy)]
pub struct Terms {
    /// What it does when it is slow.
    pub policy: Policy,
    /// Bytes that may wait for it.
    pub capacity: u64,
    /// Items are kept until they are safe.
    pub durable: bool,
    /// All others go on when it fails: it keeps nothing then.
    pub optional: bool,
}

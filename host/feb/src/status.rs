//! State and counters of a board.

/// State and counters, as the example boards show them.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    /// Data frames sent.
    pub sent: u64,
    /// Of them, packets that were sent before.
    pub retransmitted: u64,
    /// Packets confirmed.
    pub acknowledged: u64,
    /// Early retransmissions scheduled.
    pub early: u64,
    /// ACKs of packets that were not sent yet.
    pub protocol_errors: u64,
    /// Delay between data frames, in clock cycles.
    pub delay: u32,
    /// ACKs of packets that had been confirmed.
    pub stale_acks: u64,
    /// Dropped: from another computer than the one that sent START.
    pub wrong_source: u64,
    /// A transmission runs.
    pub running: bool,
    /// It is being stopped.
    pub stopping: bool,
    /// Dropped: for another destination.
    pub wrong_destination: u64,
    /// Dropped: another ethertype.
    pub wrong_ethertype: u64,
    /// Dropped: another version.
    pub wrong_version: u64,
    /// Dropped: an unknown code.
    pub wrong_code: u64,
    /// Dropped: too short for its fields.
    pub short: u64,
}

impl Status {
    /// Register of the example boards that shows a counter; 0 for those that only hardware has.
    pub fn register(&self, register: u16) -> u64 {
        match register {
            0x10 => self.sent,
            0x11 => self.retransmitted,
            0x12 => self.acknowledged,
            0x13 => self.early,
            0x14 => self.protocol_errors,
            0x15 => self.delay.into(),
            0x16 => self.stale_acks,
            0x17 => self.wrong_source,
            0x19 => self.running.into(),
            0x1A => self.stopping.into(),
            0x1B => u64::from(self.protocol_errors > 0),
            0x24 => self.wrong_destination,
            0x25 => self.wrong_ethertype,
            0x26 => self.wrong_version,
            0x27 => self.wrong_code,
            0x28 => self.short,
            _ => 0,
        }
    }
}

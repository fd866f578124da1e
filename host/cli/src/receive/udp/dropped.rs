//! Datagrams that are of no stream.

/// Datagrams that are of no stream, by their reason.
#[derive(Default, serde::Serialize)]
pub(super) struct Dropped {
    pub(super) truncated: u64,
    pub(super) words: u64,
    pub(super) flags: u64,
    pub(super) oversize: u64,
    /// Their sender is none of the boards.
    #[serde(skip_serializing_if = "is_none")]
    pub(super) other_sender: u64,
    /// Of a run that a board was not started for, or whose end is all that came of it.
    #[serde(skip_serializing_if = "is_none")]
    pub(super) other_run: u64,
    /// Of one more run than are received at a time.
    #[serde(skip_serializing_if = "is_none")]
    pub(super) too_many: u64,
    /// Of a run whose stream is settled, and none of its datagrams.
    #[serde(skip_serializing_if = "is_none")]
    pub(super) after_end: u64,
    /// Of these and of ends, those that came of the sender of a settled stream, or in its name: nobody knows what else is not of its
    /// board.
    #[serde(skip)]
    pub(super) behind: u64,
    /// The kernel had no room: the receive buffer was full.
    pub(super) kernel: u64,
}

/// Reasons that there are seldom are told where they are met alone.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_none(count: &u64) -> bool {
    *count == 0
}

impl Dropped {
    /// Counts a datagram that says it is of a settled stream, and is not.
    pub(super) fn note_after_end(&mut self) {
        if self.after_end == 0 {
            tracing::warn!(
                "a datagram came behind the end of its run: expected none, so another sender has the board's name"
            );
        }
        self.after_end += 1;
        self.behind += 1;
    }

    /// Reports them, by reason.
    pub(super) fn tell(&self) {
        for (count, reason) in [
            (self.truncated, "without a header"),
            (self.words, "shorter than their words"),
            (self.flags, "with unknown flags"),
            (self.oversize, "longer than the format allows"),
            (self.other_sender, "of other senders"),
            (self.other_run, "of other runs"),
            (self.too_many, "of more senders and runs than are received at a time; name the boards: --board"),
            (self.after_end, "of runs that had ended"),
            (self.kernel, "dropped by the kernel, whose buffer was full (--receive-buffer)"),
        ] {
            if count > 0 {
                tracing::warn!("{count} datagrams {reason}");
            }
        }
    }
}

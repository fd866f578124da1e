//! What the transmissions of both protocols have in common; only their data frames differ.

use std::time::Duration;

use super::first::First;
use super::outbox::Outbox;
use crate::shared::Shared;

/// The receiver's view of a transmission.
pub(super) trait Transmission {
    /// Whether all that comes is of it.
    fn first(&self) -> &First;
    /// Packets of the FEB's window, if it takes block ACKs.
    fn blocks(&self) -> Option<u32>;
    /// Confirms what was stored, or released, since the last call: by one block ACK, if the FEB takes that.
    fn confirm(&mut self, shared: &Shared, out: &mut Outbox<'_>);
    /// STOP was asked for.
    fn stop(&mut self, shared: &Shared, now: Duration);
    /// That has been done.
    fn is_stopping(&self) -> bool;
    /// Sends what is due.
    fn poll(&mut self, shared: &Shared, out: &mut Outbox<'_>) {
        let _ = (shared, out);
    }
    /// When something will be.
    fn next_deadline(&self) -> Option<Duration> {
        self.first().deadline()
    }
}

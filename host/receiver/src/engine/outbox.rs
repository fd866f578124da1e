//! Where the frames for one FEB go, and the time of it.

use std::time::Duration;

use fadelink_wire::fade10g::Request;
use fadelink_wire::{fade1, MacAddr};

use super::command::Actions;

/// The way to a FEB, while one input of the engine is handled.
pub(super) struct Outbox<'a> {
    feb: MacAddr,
    local: MacAddr,
    /// The time.
    pub(super) now: Duration,
    actions: &'a mut dyn Actions,
}

impl<'a> Outbox<'a> {
    /// From `local` to `feb`.
    pub(super) fn new(feb: MacAddr, local: MacAddr, now: Duration, actions: &'a mut dyn Actions) -> Outbox<'a> {
        Outbox { feb, local, now, actions }
    }

    /// For what does not depend on the time.
    pub(super) fn untimed(feb: MacAddr, local: MacAddr, actions: &'a mut dyn Actions) -> Outbox<'a> {
        Outbox::new(feb, local, Duration::ZERO, actions)
    }

    /// False if silence proves nothing: what is sent now cannot be answered.
    pub(super) fn is_connected(&mut self) -> bool {
        self.actions.is_connected()
    }

    /// Sends a frame of FADE-10G.
    pub(super) fn fade10g(&mut self, request: Request) {
        self.actions.send(&request.to_frame(self.feb, self.local));
    }

    /// Sends RESET for data that nobody wants, if no command is under way.
    pub(super) fn refuse(&mut self, reset: Request) -> bool {
        self.actions.refuse(self.feb, &reset.to_frame(self.feb, self.local))
    }

    /// The same, of FADE v1.
    pub(super) fn refuse_fade1(&mut self) -> bool {
        self.actions.refuse(self.feb, &fade1::Request::Reset.to_frame(self.feb, self.local))
    }

    /// Sends a frame of FADE v1.
    pub(super) fn fade1(&mut self, request: fade1::Request) {
        self.actions.send(&request.to_frame(self.feb, self.local));
    }
}

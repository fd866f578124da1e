//! Boards whose START proves nothing: a transmission is certain only when its first packet has come. The published
//! FADE-10G core answers every START alike, and continues the numbers of an earlier transmission if RESET was lost.
//! START of FADE v1 has no answer.

use std::time::Duration;

/// What has come of a transmission whose first packet is awaited.
pub(super) enum First {
    /// The first packet, or a proof that all that comes is of this transmission.
    Come,
    /// Nothing.
    Awaited,
    /// Others: the first may have been lost, or they are of an earlier transmission. It is waited for until then.
    Missing(Duration),
}

/// What to do with a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admission {
    /// It is of this transmission.
    Take,
    /// It may be: it is neither stored nor confirmed, and will come again.
    Wait,
    /// An earlier transmission runs: RESET and START.
    Restart,
}

impl First {
    pub(super) fn new(proven: bool) -> First {
        if proven {
            First::Come
        } else {
            First::Awaited
        }
    }

    pub(super) fn has_come(&self) -> bool {
        matches!(self, First::Come)
    }

    /// The FEB says that this transmission runs.
    pub(super) fn is_proven(&mut self) {
        *self = First::Come;
    }

    /// It says that another one does: nothing is waited for.
    pub(super) fn is_of_another(&mut self) {
        *self = First::Missing(Duration::ZERO);
    }

    /// Judges a packet: the `first` one, or one that is `foreign` to the transmission's begin. `patience`: how long the first one is
    /// waited for.
    pub(super) fn admit(&mut self, first: bool, foreign: bool, patience: Duration, now: Duration) -> Admission {
        match self {
            First::Come => return Admission::Take,
            _ if first => {
                *self = First::Come;
                return Admission::Take;
            }
            First::Awaited => *self = First::Missing(now + patience),
            First::Missing(_) => {}
        }
        if foreign || self.is_overdue(now) {
            Admission::Restart
        } else {
            Admission::Wait
        }
    }

    /// The time at which it is overdue.
    pub(super) fn deadline(&self) -> Option<Duration> {
        match self {
            First::Missing(until) => Some(*until),
            First::Come | First::Awaited => None,
        }
    }

    /// Others have come for so long that it will not.
    pub(super) fn is_overdue(&self, now: Duration) -> bool {
        self.deadline().is_some_and(|deadline| now >= deadline)
    }
}

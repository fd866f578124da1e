//! Counters, by name. Every dropped frame is counted under exactly one reason.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

/// Makes a struct of atomic counters, and one of their values.
macro_rules! counters {
    ($(#[$doc:meta])* $atomic:ident, $(#[$doc2:meta])* $plain:ident { $($(#[$field_doc:meta])* $field:ident,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Default)]
        pub struct $atomic { $($(#[$field_doc])* pub $field: AtomicU64,)* }

        $(#[$doc2])*
        #[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize)]
        pub struct $plain { $($(#[$field_doc])* pub $field: u64,)* }

        impl $atomic {
            /// The values now.
            pub fn read(&self) -> $plain {
                $plain { $($field: self.$field.load(Ordering::Relaxed),)* }
            }
        }

        impl $plain {
            /// What was counted since `before`.
            pub fn since(&self, before: &Self) -> Self {
                $plain { $($field: self.$field.wrapping_sub(before.$field),)* }
            }

            /// What was counted here and there.
            pub fn plus(&self, other: &Self) -> Self {
                $plain { $($field: self.$field.wrapping_add(other.$field),)* }
            }

            /// Names and values, in order.
            pub fn entries(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($field), self.$field),)*]
            }
        }
    };
}

counters! {
    /// Counters of one FEB.
    FebCounters,
    /// Values of [`FebCounters`].
    FebCounts {
        /// Data frames stored.
        packets,
        /// Data frames of packets that were already confirmed: retransmissions, confirmed again.
        duplicates,
        /// Of these, frames with other content than the one that was stored: one of the two is not the FEB's.
        contradictions,
        /// Data frames stored behind a later one: they filled a gap, for they were lost and sent again, or overtaken.
        repaired,
        /// Dropped: data frames for which the ring had no free place.
        no_space,
        /// Dropped: data frames that are not known to belong to this transmission: before START was confirmed, and, where
        /// that proves nothing, before the first packet.
        not_started,
        /// Dropped: data frames outside the window, against the end of the transmission, or with an end that was not asked for.
        protocol_errors,
        /// Dropped: data frames of a wrong length.
        wrong_length,
        /// Dropped: last data frames with an impossible number of valid words.
        wrong_valid_words,
        /// Frame sequence numbers that never came: frames lost on the way, of data or not.
        missing_frames,
        /// ACK frames sent.
        acks,
        /// Command responses that answered a command.
        responses,
        /// Command responses that answered nothing: late ones, or another program's. What a data frame repeats of the one
        /// before is not counted: the published core repeats its last response in every frame.
        unexpected_responses,
        /// Command frames sent, with repetitions.
        commands,
        /// RESET frames sent to this FEB.
        resets,
        /// STARTs that found an earlier transmission still running.
        interrupted,
        /// Times that the transmission was begun again, because its first packet did not come: what the FEB had taken for it is lost,
        /// unless it was of an earlier one.
        begun_again,
        /// Transmission delay that the FEB told last, in its clock cycles.
        delay,
    }
}

counters! {
    /// Counters of an interface: frames that belong to no open FEB.
    LinkCounters,
    /// Values of [`LinkCounters`].
    LinkCounts {
        /// Frames received.
        frames,
        /// Dropped: addressed to another computer.
        other_destination,
        /// Dropped: shorter than their header.
        truncated,
        /// Dropped: another ethertype.
        wrong_ethertype,
        /// Dropped: another version of FADE.
        wrong_version,
        /// Dropped: unknown frame type.
        wrong_type,
        /// Dropped: from a FEB that nobody opened.
        unknown_feb,
        /// RESET frames sent to FEBs that nobody opened.
        resets,
        /// Dropped: from a FEB that another program on this computer has opened.
        other_program,
        /// Dropped by the kernel before the receiver saw them.
        kernel_drops,
        /// Frames that could not be sent.
        send_errors,
        /// Times that the interface could not receive: it was down, a port of a bridge, or had another address.
        interruptions,
    }
}

/// Adds one. Each counter has one writer, so this needs no locked instruction.
pub(crate) fn count(counter: &AtomicU64) {
    add(counter, 1);
}

/// Adds `n`.
pub(crate) fn add(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
}

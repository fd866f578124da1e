//! The result of one FEB.

use std::thread::JoinHandle;

use fadelink_receiver::counters::FebCounts;
use fadelink_receiver::{Error, Kind};
use fadelink_wire::{Firmware, MacAddr, Resets};
use serde_json::{json, Value};

use super::super::recorder::{Ended, Snapshot};
use super::super::transmissions::Transmissions;
use crate::checksum::Checksum;
use crate::discover;
use crate::metrics::Meter;
use crate::verdict::{Accept, End, Evidence, Verdict};

/// The result of one FEB.
#[derive(Default)]
pub(super) struct Received {
    pub(super) recorded: Ended,
    /// How its end is known.
    pub(super) end: End,
    /// Its transmission has begun, now or in an earlier program.
    pub(super) has_begun: bool,
    /// It was left with what is not confirmed, for a program that goes on.
    pub(super) was_left: bool,
    pub(super) kind: Option<Kind>,
    pub(super) slower: Option<String>,
    /// Those that its data is of.
    pub(super) transmissions: Transmissions,
    pub(super) counters: FebCounts,
    /// Of receiving, in words.
    pub(super) error: Option<String>,
    /// Why the board says that its transmission is over, or was disturbed, in words.
    pub(super) board: Option<String>,
    /// STOP was sent, and is not answered.
    pub(super) stopping: Option<JoinHandle<Result<u64, Error>>>,
    /// RESETs that the board says to have obeyed since START.
    pub(super) resets: Option<Resets>,
    /// What an earlier program has recorded, and is not as it was.
    pub(super) changed: Vec<String>,
    /// CRC of the words; `None`: the board has none.
    pub(super) checksum: Option<Checksum>,
}

impl Received {
    /// Receiving it has panicked.
    pub(super) fn of_a_panic(last: Snapshot, durable: bool) -> Received {
        let Snapshot { name, bytes, .. } = last;
        let recorded = Ended { name, bytes, ..Ended::default() };
        Received { recorded, was_left: durable, error: Some("receiving it panicked".into()), ..Received::default() }
    }

    /// What receiving knows.
    pub(super) fn known(&self, accept: Accept) -> Evidence<'static> {
        // A board that can prove its end, and does not, is not one whose silence the user may take for it.
        let can_prove = self.kind.and_then(|kind| kind.firmware) == Some(Firmware::Fadelink);
        let accept = if can_prove && accept == Accept::Silence { Accept::Told } else { accept };
        Evidence {
            end: self.end,
            accept,
            error: self.error.clone(),
            board: self.board.clone(),
            restarted: self.transmissions.restarted(),
            checksum: self.checksum,
            changed: self.changed.clone(),
            ..against(&self.counters)
        }
    }

    pub(super) fn verdict(&mut self, accept: Accept, meter: &mut Meter) -> Verdict {
        let known = self.known(accept);
        self.recorded.verdict(known, meter)
    }

    pub(super) fn json(&self, feb: MacAddr, verdict: &Verdict) -> Value {
        let more = json!({
            "protocol": self.kind.map(|kind| kind.protocol.to_string()),
            "firmware": self.kind.and_then(|kind| kind.firmware).map(|firmware| firmware.to_string()),
            "word_order": self.kind.and_then(|kind| kind.word_order).map(|order| order.to_string()),
            "slower": self.slower,
            "crc32": self.checksum.map(|checksum| checksum.json()),
            "board_resets": discover::resets_json(self.resets),
            "restarted": self.transmissions.restarted(),
            "transmissions": self.transmissions.all(),
            "filler_words": self.recorded.verifier.as_ref().map(|v| v.filler),
            "error": self.recorded.error.as_ref().or(self.error.as_ref()),
            "counters": self.counters,
        });
        self.recorded.json(verdict, "feb", &feb, more)
    }

    pub(super) fn tell(&self, verdict: &Verdict, silent: bool) {
        if let Some(error) = self.recorded.error.as_ref().or(self.error.as_ref()) {
            tracing::error!("{}: {error}", self.recorded.name);
        }
        self.recorded.tell(verdict, silent, "");
        if silent {
            return;
        }
        if let Some(checksum) = self.checksum.filter(Checksum::is_right) {
            tell!("  {}", checksum.words());
        }
        if let Some(kind) = self.kind {
            tell!("  {}", discover::in_words(kind));
        }
        tell!("  {}", in_words(&self.counters.entries()));
    }
}

/// What counters tell against a transmission.
pub(super) fn against(counters: &FebCounts) -> Evidence<'static> {
    let FebCounts { contradictions, protocol_errors: foreign, begun_again, .. } = *counters;
    Evidence { contradictions, foreign, begun_again, ..Evidence::default() }
}

/// The counters that are not zero.
pub(super) fn in_words(counters: &[(&str, u64)]) -> String {
    let counted = counters.iter().filter(|(_, n)| *n > 0);
    counted.map(|(name, n)| format!("{name} {n}")).collect::<Vec<_>>().join(", ")
}

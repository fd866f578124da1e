//! Which of the bytes that have come are the FEB's. Fadelink's core of FADE v1 fills its last packet up, and tells only at the end how
//! many words of it are filler, if it tells that at all. The published one sends no packet that is not full.

use fadelink_wire::fade1::{FILLER, PACKET_BYTES};
use fadelink_wire::{Firmware, Protocol};

use crate::kind::Kind;
use crate::receiver::FebHandle;
use crate::shared::Phase;

const WORD_BYTES: usize = 8;

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Valid {
    /// So many of [`FebHandle::data`] are the FEB's.
    pub bytes: usize,
    /// So many follow them that are filler, or may be, which is not known yet.
    pub withheld: usize,
    /// How many bytes of filler the transmission has, which has ended; `None`: it has not, or the FEB does not tell.
    pub filler: Option<usize>,
    /// At its end, where the FEB does not tell: so many of the last bytes may be filler, and may be data.
    pub possible: usize,
    /// The transmission has ended.
    pub has_ended: bool,
}

/// Bytes at the end of `data` that look like filler: whole words, in the last packet.
fn trailing(data: &[u8]) -> usize {
    let last = &data[data.len().saturating_sub(PACKET_BYTES)..];
    let bytes = last.iter().rev().take_while(|byte| **byte == FILLER).count();
    bytes / WORD_BYTES * WORD_BYTES
}

/// `filler`: as the FEB has told it, in bytes.
fn judge(data: &[u8], kind: Option<Kind>, phase: Phase, filler: Option<usize>) -> Valid {
    let has_ended = matches!(phase, Phase::Complete | Phase::Aborted);
    let all = Valid { bytes: data.len(), withheld: 0, filler: None, possible: 0, has_ended };
    let fills = |kind: &Kind| kind.protocol == Protocol::Fade1 && kind.firmware != Some(Firmware::PublishedV1);
    if !kind.as_ref().is_some_and(fills) {
        return Valid { filler: has_ended.then_some(0), ..all };
    }
    let bytes = trailing(data);
    if !has_ended {
        return Valid { bytes: data.len() - bytes, withheld: bytes, ..all };
    }
    match filler.filter(|filler| *filler <= bytes) {
        // What is told and is not there is no reason to leave anything out.
        Some(filler) => Valid { bytes: data.len() - filler, withheld: filler, filler: Some(filler), ..all },
        None => Valid { possible: bytes, ..all },
    }
}

impl FebHandle {
    /// Which of [`Self::data`] are the FEB's words. Give those, and when the transmission has ended [`Self::release`] the rest, too.
    pub fn valid(&self) -> Valid {
        // Before the data: that of an end is in.
        let phase = self.phase();
        let filler = self.filler_words().map(|words| usize::from(words) * WORD_BYTES);
        judge(self.data(), self.kind(), phase, filler)
    }

    /// As [`Self::arm`], for so many valid bytes; `now`: what [`Self::valid`] told, of which at least one is wanted more.
    pub fn arm_valid(&self, threshold: usize, now: &Valid) -> bool {
        self.arm(threshold.saturating_add(now.withheld))
    }

    /// So many valid bytes are there, or as many as the ring has room for, or the transmission has ended.
    pub fn has_valid(&self, threshold: usize, now: &Valid) -> bool {
        now.has_ended || now.bytes >= (self.clamp(threshold) as usize).min(self.fill().1 as usize - now.withheld)
    }
}

#[cfg(test)]
mod tests {
    use fadelink_wire::WordOrder;

    use super::*;

    fn kind(protocol: Protocol, firmware: Option<Firmware>) -> Option<Kind> {
        Some(Kind { protocol, firmware, word_order: Some(WordOrder::Little) })
    }

    /// Bytes, withheld, filler and possible filler of data whose last `last` bytes are 0xA5.
    fn of(
        last: usize,
        kind: Option<Kind>,
        phase: Phase,
        filler: Option<usize>,
    ) -> (usize, usize, Option<usize>, usize) {
        let mut data = vec![1; 2048];
        data[2048 - last..].fill(FILLER);
        let Valid { bytes, withheld, filler, possible, .. } = judge(&data, kind, phase, filler);
        (bytes, withheld, filler, possible)
    }

    #[test]
    fn filler_is_left_out_where_it_is_known_and_nothing_else_is() {
        let fade1 = kind(Protocol::Fade1, Some(Firmware::Fadelink));
        for last in [0, 8, 16, 1016] {
            assert_eq!(of(last, fade1, Phase::Running, None), (2048 - last, last, None, 0));
            assert_eq!(of(last, fade1, Phase::Complete, None), (2048, 0, None, last), "it is not told");
            assert_eq!(of(last, fade1, Phase::Aborted, None), (2048, 0, None, last));
            assert_eq!(of(last, fade1, Phase::Complete, Some(last)), (2048 - last, last, Some(last), 0));
            // Data that looks like it.
            assert_eq!(of(last, fade1, Phase::Complete, Some(0)), (2048, 0, Some(0), 0));
            assert_eq!(of(last, fade1, Phase::Complete, Some(last + 8)), (2048, 0, None, last), "not there");
        }
        assert_eq!(of(2048, fade1, Phase::Running, None), (1024, 1024, None, 0), "a packet at most");
        assert_eq!(of(23, fade1, Phase::Running, None), (2032, 16, None, 0), "whole words");
        for (protocol, firmware) in [(Protocol::Fade1, Firmware::PublishedV1), (Protocol::Fade10g, Firmware::Fadelink)]
        {
            let full = kind(protocol, Some(firmware));
            assert_eq!(of(16, full, Phase::Running, None), (2048, 0, None, 0));
            assert_eq!(of(16, full, Phase::Complete, None), (2048, 0, Some(0), 0));
        }
    }
}

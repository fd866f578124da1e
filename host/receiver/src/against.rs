//! What speaks against the data of a transmission, though its end has come.

use std::fmt;

use fadelink_wire::Resets;

use crate::inquiry::Inquiry;
use crate::receiver::FebHandle;
use crate::shared::Ending;
use crate::source::Error;

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Against {
    /// The FEB has not told that it had no more.
    EndNotConfirmed,
    /// The FEB tells so, when it is asked.
    Told(Ending),
    /// So many packets came again with other content.
    Contradictions(u64),
    /// So many frames cannot be of the transmission.
    Foreign(u64),
    /// It was begun again so often; the FEB may have taken words before.
    BegunAgain(u64),
    /// The FEB was sent RESET in the transmission, or at its end.
    Resets(Resets),
}

impl fmt::Display for Against {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Against::EndNotConfirmed => f.write_str("its end is not confirmed"),
            Against::Told(ending) => write!(f, "the FEB tells another end{}", ending.why(None)),
            Against::Contradictions(count) => write!(f, "{count} packets came again with other content"),
            Against::Foreign(count) => write!(f, "{count} frames of another sender or another transmission came"),
            Against::BegunAgain(count) => write!(f, "it was begun again {count} times"),
            Against::Resets(Resets { count, by: Some(by) }) => write!(f, "{count} RESETs were sent, the last by {by}"),
            Against::Resets(Resets { count, by: None }) => write!(f, "{count} RESETs were sent"),
        }
    }
}

impl FebHandle {
    /// Asks the FEB, and tells what speaks against the data of a transmission whose end has come; nothing: it is whole. Of what can be
    /// lost here only the CRC of the words ([`Self::crc`]) is not compared.
    ///
    /// # Errors
    /// As of [`Self::inquire`].
    pub fn against(&self) -> Result<Vec<Against>, Error> {
        Ok(self.against_of(&self.inquire()?))
    }

    /// The same, of what the FEB has said: for those who have asked it in another thread ([`Self::question`]).
    pub fn against_of(&self, told: &Inquiry) -> Vec<Against> {
        let Inquiry { ending, resets, .. } = *told;
        let counts = self.counters();
        let count = |count: u64, what: fn(u64) -> Against| (count > 0).then(|| what(count));
        let is_told = !matches!(ending, Ending::Unknown | Ending::Confirmed | Ending::Silence);
        [
            (self.ending() != Ending::Confirmed).then_some(Against::EndNotConfirmed),
            is_told.then_some(Against::Told(ending)),
            count(counts.contradictions, Against::Contradictions),
            count(counts.protocol_errors, Against::Foreign),
            count(counts.begun_again, Against::BegunAgain),
            resets.filter(|resets| resets.count > 0).map(Against::Resets),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

//! Differences of the published cores (docs/protocol/firmware.md), one by one, to test receivers with boards of
//! either kind and with mixtures.

use std::fmt;
use std::str::FromStr;

use fadelink_wire::Firmware;

/// One thing that a board does otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quirk {
    /// Data words most significant byte first; of FADE v1 they have 32 bits.
    BigWords,
    /// The number of valid words of the last packet most significant byte first.
    BigCount,
    /// Every START is answered by 0 and continues; only RESET begins the numbering, and the source, anew.
    StartContinues,
    /// The first frame after RESET has sequence number 1.
    SequenceFromOne,
    /// No IDENTIFY: from broadcast ignored, else a command like any other, answered by 0. FADE v1: it is ignored, and STOP is
    /// not answered.
    NoIdentify,
    /// Block ACKs are not offered, and taken for ordinary ones.
    NoBlockAcks,
    /// NACKs do nothing.
    IgnoresNack,
    /// The last response stays in every data frame until the next command.
    ResponseStays,
    /// Response frames are filled with 0x00.
    ZeroFiller,
    /// A command is executed each time that it comes.
    ExecutesAgain,
    /// Obeys every computer, and sends to the one that spoke last.
    AnyComputer,
    /// FADE v1: the words of a packet that STOP finds partly filled stay in the board.
    PartialStays,
    /// FADE v1: no mark in the place of the retry number.
    NoMark,
    /// RESETs are not counted, as in Fadelink's first cores: RESET BY is unknown.
    NoResetCount,
    /// Every START is obeyed without a permit, as in Fadelink's first cores.
    NoPermit,
    /// No CRC of the words, as in cores without that option.
    NoChecksum,
    /// A packet that is confirmed while it is sent again may end with newer words, as in Fadelink's first cores; it is not offered that it
    /// has the same ones.
    OtherWords,
    /// A bit of the first packet changes in the memory of the board, behind the CRC.
    BadMemory,
}

use Quirk::*;

impl Quirk {
    /// All of them, with their names.
    pub const ALL: [(Quirk, &str); 18] = [
        (BigWords, "big-words"),
        (BigCount, "big-count"),
        (StartContinues, "start-continues"),
        (SequenceFromOne, "sequence-from-1"),
        (NoIdentify, "no-identify"),
        (NoBlockAcks, "no-block-acks"),
        (IgnoresNack, "ignores-nack"),
        (ResponseStays, "response-stays"),
        (ZeroFiller, "zero-filler"),
        (ExecutesAgain, "executes-again"),
        (AnyComputer, "any-computer"),
        (PartialStays, "partial-stays"),
        (NoMark, "no-mark"),
        (NoResetCount, "no-reset-count"),
        (NoPermit, "no-permit"),
        (NoChecksum, "no-checksum"),
        (OtherWords, "other-words"),
        (BadMemory, "bad-memory"),
    ];
}

impl fmt::Display for Quirk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Quirk::ALL.iter().find(|(quirk, _)| quirk == self).map_or("", |(_, name)| name);
        f.write_str(name)
    }
}

impl FromStr for Quirk {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Quirk::ALL.iter().find(|(_, name)| *name == text).map(|(quirk, _)| *quirk);
        let names: Vec<_> = Quirk::ALL.iter().map(|(_, name)| *name).collect();
        found.ok_or_else(|| format!("expected one of {}", names.join(", ")))
    }
}

/// A set of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Quirks(u32);

impl Quirks {
    /// Those of a firmware.
    pub fn of(firmware: Firmware) -> Quirks {
        let quirks: &[Quirk] = match firmware {
            Firmware::Fadelink => &[],
            Firmware::Published10g => &[
                BigWords,
                BigCount,
                StartContinues,
                SequenceFromOne,
                NoIdentify,
                NoBlockAcks,
                IgnoresNack,
                ResponseStays,
                ZeroFiller,
                ExecutesAgain,
                AnyComputer,
            ],
            Firmware::PublishedV1 => &[BigWords, StartContinues, NoIdentify, AnyComputer, PartialStays, NoMark],
        };
        quirks.iter().fold(Quirks::default(), |all, quirk| all.with(*quirk))
    }

    /// These, and one more.
    #[must_use]
    pub fn with(self, quirk: Quirk) -> Quirks {
        Quirks(self.0 | 1 << quirk as u16)
    }

    /// True if it is one of them.
    pub fn has(self, quirk: Quirk) -> bool {
        self.0 >> quirk as u16 & 1 != 0
    }
}

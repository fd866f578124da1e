//! What a seed chooses: boards, others that connect, a disk, and what happens when.

use super::super::disk::Fault;

/// What happens to a board when it has taken so many words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// Its connection ends by RST.
    Reset,
    /// Its connection ends inside a word; by RST, or by FIN.
    Cut(bool),
    /// Its connection ends by FIN behind a whole word, though it has more: it was forged, or something ends the board's programs.
    Ended,
    /// It loses its power: nothing comes any more, and the connection stays open.
    PowerLoss,
    /// Another program disables it: it sends what it has.
    Disabled,
    /// It pauses for so many milliseconds.
    Pause(u64),
}

/// Who else connects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scan {
    /// And closes at once.
    Closes,
    /// And ends by RST.
    Resets,
    /// And stays until the receiver closes.
    Stays,
    /// And sends bytes.
    Sends(usize),
}

#[derive(Debug, Clone)]
pub struct SenderCase {
    /// Words of a run of the source, and how many come at once.
    pub words: u64,
    pub burst: u64,
    /// A run ends with its source.
    pub ends: bool,
    /// It connects again when its connection has ended.
    pub again: bool,
    /// It connects after so many milliseconds.
    pub begin: u64,
    /// Bytes that are sent at a time.
    pub piece: usize,
    pub events: Vec<(u64, Event)>,
}

#[derive(Debug, Clone)]
pub struct Case {
    /// A file of an experiment names the boards; else they are received as by `fadelink receive --tcp --streams`.
    pub named: bool,
    /// An end counts that nobody has asked for.
    pub told: bool,
    pub boards: Vec<SenderCase>,
    /// When, from a board's address (its number) or from another one.
    pub scans: Vec<(u64, Option<usize>, Scan)>,
    /// The end is asked for when so many bytes have come, or after so many milliseconds.
    pub stop: (u64, u64),
    /// Milliseconds after which the program is killed, and another one begins.
    pub kill: Option<u64>,
    pub disk: Option<Fault>,
}

impl SenderCase {
    fn any(random: &mut fastrand::Rng) -> SenderCase {
        let most = *random.choice(&[1, 10, 1000, 30_000]).unwrap_or(&1);
        let words = random.u64(0..=most);
        let count = *random.choice(&[0, 0, 0, 1, 1, 2]).unwrap_or(&0);
        let event = |random: &mut fastrand::Rng| match random.u8(0..9) {
            0 => Event::Reset,
            1 | 2 => Event::Cut(random.bool()),
            3 | 4 => Event::PowerLoss,
            5 => Event::Disabled,
            6 => Event::Ended,
            _ => Event::Pause(random.u64(1..150)),
        };
        SenderCase {
            words,
            burst: *random.choice(&[10_000, 200, 3]).unwrap_or(&1),
            ends: random.bool(),
            again: random.bool(),
            begin: if random.bool() { 0 } else { random.u64(0..150) },
            piece: *random.choice(&[7, 8, 1000, 65536]).unwrap_or(&8),
            events: (0..count).map(|_| (random.u64(0..=words), event(random))).collect(),
        }
    }
}

impl Case {
    pub fn new(seed: u64) -> Case {
        let mut random = fastrand::Rng::with_seed(seed);
        let random = &mut random;
        let named = random.bool();
        let boards: Vec<_> = (0..random.usize(1..=2)).map(|_| SenderCase::any(random)).collect();
        let bytes = boards.iter().map(|board| board.words * 8).sum();
        let scan = |random: &mut fastrand::Rng| {
            let from = random.bool().then(|| random.usize(0..boards.len()));
            let scan = match random.u8(0..7) {
                0 | 1 => Scan::Closes,
                2 => Scan::Resets,
                // Where the boards are not named, anybody who sends is a sender.
                3 if named && from.is_none() => Scan::Sends(random.usize(1..100)),
                _ => Scan::Stays,
            };
            (random.u64(0..100), from, scan)
        };
        let count = *random.choice(&[0, 0, 1, 2]).unwrap_or(&0);
        let scans = (0..count).map(|_| scan(random)).collect();
        Case {
            named,
            told: random.u8(0..4) > 0,
            scans,
            stop: (random.u64(0..bytes * 2 + 100), random.u64(20..300)),
            kill: (random.u8(0..8) == 0).then(|| random.u64(0..150)),
            disk: (random.u8(0..6) == 0).then(|| Fault::any(random, bytes)),
            boards,
        }
    }
}

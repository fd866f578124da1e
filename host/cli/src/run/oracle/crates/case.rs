//! What a seed chooses: crates, how they are joined, a disk, and what happens when.

use super::super::disk::Fault;

/// What happens to a crate when it has come to a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// Its connection ends by RST, and it goes on over the next one.
    Reset,
    /// Its connection ends inside a message; by RST, or by FIN.
    Cut(bool),
    /// Its connection ends behind a message, and it goes on over the next one.
    Reconnect,
    /// It loses its power, and begins anew with window 0; the connection stays open.
    PowerLoss,
    /// It has no room for so many windows, and tells it.
    Lost(u64),
    /// The message is sent again; with other words.
    Again(bool),
    /// It has lost the hits of the message, and tells so many; or a module did not end the window in time.
    HitsLost(u16, bool),
    /// Somebody sends a message of another source over its connection.
    Other(u32),
    /// The message has another number: this one is added to it.
    WrongNumber(u64),
    /// Bytes that are not a message: a length, the magic or the version is wrong.
    Malformed(usize, u32),
    /// The message has another time: one that is so many seconds later.
    WrongTime(i64),
    /// It pauses for so many milliseconds.
    Pause(u64),
    /// Its program is killed: the connection is closed, and the rest is never sent.
    Ends,
}

#[derive(Debug, Clone)]
pub struct Crate {
    pub source: u32,
    /// It connects after so many milliseconds; `None`: never.
    pub begin: Option<u64>,
    /// Chance of a window to be empty: it is not sent.
    pub empty: f64,
    /// Words of a message, at most.
    pub words: usize,
    pub events: Vec<(u64, Event)>,
    /// Behind its last message it waits until it is asked for the end.
    pub waits: bool,
    /// Its first windows, so many, are lost before it connects, and it does not know of them.
    pub forgets: u64,
}

#[derive(Debug, Clone)]
pub struct Case {
    pub seed: u64,
    pub crates: Vec<Crate>,
    /// Windows of a run of each crate.
    pub windows: u64,
    /// The file of the experiment names them; else their number.
    pub named: bool,
    pub by_time: bool,
    pub drops_incomplete: bool,
    pub emits_late: bool,
    pub keeps_last: bool,
    pub max_open: u64,
    /// When a port is scanned, in milliseconds, and bytes that are sent.
    pub scans: Vec<(u64, usize)>,
    /// Milliseconds after which the end is asked for.
    pub stop: u64,
    pub disk: Option<Fault>,
    /// The user accepts an end that nobody has asked for.
    pub told: bool,
}

impl Event {
    fn any(random: &mut fastrand::Rng) -> Event {
        match random.u8(0..17) {
            0 => Event::Reset,
            1 => Event::Cut(random.bool()),
            2 | 3 => Event::Reconnect,
            4 | 5 => Event::PowerLoss,
            6 | 7 => Event::Lost(random.u64(1..20)),
            8 => Event::Again(random.bool()),
            9 | 10 => Event::Malformed(random.usize(1..6) * 4, random.u32(..)),
            11 => Event::WrongTime(*random.choice(&[1, -1_000_000, i64::MAX / 2]).unwrap_or(&1)),
            13 => Event::HitsLost(random.u16(0..1024), random.bool()),
            14 => Event::Other(0xC0DA_0001 + 256 * random.u32(3..9)),
            15 => Event::WrongNumber(*random.choice(&[1 << 20, 1 << 40, u64::MAX, 1, 7]).unwrap_or(&1)),
            12 => Event::Pause(random.u64(1..100)),
            _ => Event::Ends,
        }
    }
}

impl Case {
    pub fn new(seed: u64) -> Case {
        let mut random = fastrand::Rng::with_seed(seed);
        let random = &mut random;
        // Apart: the other draws of a seed do not depend on these.
        let mut ends = fastrand::Rng::with_seed(!seed);
        let most = *random.choice(&[3, 30, 300]).unwrap_or(&3);
        let windows = random.u64(1..=most);
        let mut crates: Vec<_> = (0..random.u32(1..=3))
            .map(|number| {
                let count = *random.choice(&[0, 0, 0, 0, 1, 2]).unwrap_or(&0);
                Crate {
                    source: 0xC0DA_0001 + 256 * number,
                    begin: (random.u8(0..20) > 0).then(|| if random.bool() { 0 } else { random.u64(0..100) }),
                    empty: if random.bool() { 0.0 } else { random.f64() * 0.5 },
                    words: *random.choice(&[0, 5, 300]).unwrap_or(&0),
                    events: (0..count).map(|_| (random.u64(0..windows), Event::any(random))).collect(),
                    waits: ends.u8(0..4) > 0,
                    // Of those that no crate sends nobody can know: the first one has all.
                    forgets: if number > 0 && ends.u8(0..6) == 0 { ends.u64(0..windows) } else { 0 },
                }
            })
            .collect();
        if crates.iter().any(|one| one.forgets > 0) {
            crates[0].empty = 0.0;
        }
        let count = *random.choice(&[0, 0, 0, 1, 2]).unwrap_or(&0);
        let scan = |random: &mut fastrand::Rng| {
            let bytes = if random.u8(0..4) == 0 { random.usize(1..100) } else { 0 };
            (random.u64(0..100), bytes)
        };
        Case {
            seed,
            windows,
            named: random.bool(),
            by_time: random.u8(0..4) == 0,
            drops_incomplete: random.u8(0..3) == 0,
            emits_late: random.u8(0..3) == 0,
            keeps_last: random.bool(),
            max_open: *random.choice(&[4096, 10]).unwrap_or(&4096),
            scans: (0..count).map(|_| scan(random)).collect(),
            stop: random.u64(20..300),
            disk: (random.u8(0..8) == 0).then(|| Fault::any(random, windows * 100)),
            crates,
            told: ends.bool(),
        }
    }
}

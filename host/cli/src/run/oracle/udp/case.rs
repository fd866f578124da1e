//! What a seed chooses: a board, a network, a disk, and what happens when.

use super::super::disk::Fault;
use super::super::way::{Chances, Number};

/// When something happens, in steps: datagrams that the board sends, and moments in which it sends none.
#[derive(Debug, Clone, Copy)]
pub enum When {
    /// Since the board was first started by our program.
    AfterStart(u64),
    /// Since it was first stopped by our program.
    AfterStop(u64),
}

/// What happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// Another program uses the slow control.
    Other(Ask),
    /// A datagram with other words, from the board's address.
    Data(Number, Run),
    /// An end of a run, from the board's address.
    End(Number, Run),
    /// A datagram with words from another address (true), or another port of the board's.
    Sender(bool),
    /// A reply of the slow control that the board did not give.
    Reply,
    /// Datagrams that were damaged on the way.
    Malformed(u32),
    /// A datagram of the board comes again, much later.
    Replay,
    /// The board loses its power, and has it again after so many steps.
    PowerLoss(u64),
    /// The same; then another program sets it up as it was.
    PowerLossAndStart(u64),
    /// Nothing passes for so many steps.
    CableOut(u64),
    /// The program is killed, and another one begins.
    Kill,
}

/// What another program does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    Stop,
    /// Starts a board that is stopped.
    Start,
    /// Stops it, and starts it as it was.
    Restart,
    /// Has it send elsewhere.
    Redirect,
    /// The same, and back; started again, or not.
    RedirectAndBack(bool),
    /// Sets another size of its datagrams.
    Payload,
}

/// A number of a run: the present one and so much.
pub type Run = i8;

#[derive(Debug, Clone)]
pub struct Case {
    pub seed: u64,
    /// A file of an experiment names the board; else it is received as by `fadelink receive --udp --board`.
    pub named: bool,
    /// The receiver starts the board; else another program does.
    pub starts: bool,
    /// The receiver ends with the first stream.
    pub one_stream: bool,
    pub payload: u32,
    /// Runs before.
    pub earlier: u32,
    /// Words of a run of the source, and how many come at once.
    pub words: u64,
    pub burst: u64,
    /// A run ends with its source.
    pub ends: bool,
    /// The end is asked for when so many bytes have come, or after so many milliseconds.
    pub stop: (u64, u64),
    pub network: Chances,
    /// Chance of a request or a reply of the slow control to be lost, and so on.
    pub control: f64,
    pub events: Vec<(When, Event)>,
    pub disk: Option<Fault>,
}

impl Case {
    pub fn new(seed: u64) -> Case {
        let mut random = fastrand::Rng::with_seed(seed);
        let random = &mut random;
        let payload = *random.choice(&[16, 72, 520, 1472]).unwrap_or(&16);
        let room = u64::from(payload - 8) / 8;
        let datagrams = *random.choice(&[1, 3, 30, 100, 300, 1500]).unwrap_or(&1);
        let words = random.u64(0..=datagrams * room);
        let burst = *random.choice(&[10_000, 200, 30]).unwrap_or(&1);
        let chance = |random: &mut fastrand::Rng, most: f64| match random.u8(0..10) {
            0 => random.f64() * most,
            1 => random.f64() * most / 20.0,
            _ => 0.0,
        };
        let loss = chance(random, 0.1);
        let duplicate = if random.bool() { 0.0 } else { random.f64() * 0.2 };
        let reorder = if random.bool() { 0.0 } else { random.f64() * 0.2 };
        let control = if random.u8(0..4) > 0 { 0.0 } else { random.f64() * 0.2 };
        let count = *random.choice(&[0, 1, 1, 2, 2, 3, 5]).unwrap_or(&1);
        let datagrams = words / room + 10;
        let named = random.bool();
        Case {
            seed,
            named,
            starts: named || random.u8(0..10) > 0,
            one_stream: named || random.bool(),
            payload,
            earlier: *random.choice(&[0, 0, 1, 255, 256, 300]).unwrap_or(&0),
            words,
            burst,
            ends: random.u8(0..3) == 0,
            stop: (random.u64(0..words * 10 + 100), random.u64(20..300)),
            network: Chances { loss, duplicate, reorder },
            control,
            events: (0..count).map(|_| (When::any(random, datagrams), Event::any(random))).collect(),
            disk: (random.u8(0..6) == 0).then(|| Fault::any(random, words * 8)),
        }
    }
}

impl When {
    fn any(random: &mut fastrand::Rng, datagrams: u64) -> When {
        match random.u8(0..4) {
            0 => When::AfterStart(random.u64(0..10)),
            1 => When::AfterStart(random.u64(0..datagrams * 2)),
            2 => When::AfterStop(random.u64(0..10)),
            _ => When::AfterStop(random.u64(0..datagrams.min(100))),
        }
    }
}

impl Event {
    fn any(random: &mut fastrand::Rng) -> Event {
        let asks =
            [Ask::Stop, Ask::Start, Ask::Restart, Ask::Redirect, Ask::RedirectAndBack(random.bool()), Ask::Payload];
        let ask = *random.choice(&asks).unwrap_or(&Ask::Stop);
        let place = Number::any(random);
        let run = *random.choice(&[0, 0, 0, 1, -1, 2, 127, -128]).unwrap_or(&0);
        match random.u8(0..20) {
            0..=3 => Event::Other(ask),
            4..=6 => Event::Data(place, run),
            7..=9 => Event::End(place, run),
            10 => Event::Sender(random.bool()),
            11 => Event::Reply,
            12 => Event::Malformed(random.u32(1..30)),
            13 => Event::Replay,
            14 => Event::PowerLoss(random.u64(0..100)),
            15 | 16 => Event::PowerLossAndStart(random.u64(0..100)),
            17 => Event::CableOut(random.u64(1..300)),
            18 => Event::Kill,
            _ => Event::End(Number::Near(random.i32(0..4)), 0),
        }
    }
}

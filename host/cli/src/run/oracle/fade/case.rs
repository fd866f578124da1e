//! What a seed chooses: a board, a cable, a disk, and what happens when.

use fadelink_wire::{fade1, fade10g, Firmware, Protocol};

use super::super::disk::Fault;
use super::super::way::{Chances, Number};

/// When something happens, in steps: frames that pass the cable, and moments in which none does.
#[derive(Debug, Clone, Copy)]
pub enum When {
    /// Since the begin.
    Step(u64),
    /// Since the board was first asked for the end.
    AfterStop(u64),
}

/// What happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// RESET, START, STOP, IDENTIFY or a confirmation of another computer.
    Other(Ask),
    /// The same with the address of ours.
    Forged(Ask),
    /// A second program resets the board and begins a run, on this computer (true) or another.
    SecondProgram(bool),
    /// A data frame with other words.
    Data(Number),
    /// The same, with the first word that the board gives this packet, if it is one of Fadelink: of others no more is compared.
    Begins(Number),
    /// A data frame with other words as the last packet.
    Last(Number),
    /// An answer that the board did not give.
    Answer,
    /// Frames that were damaged on the way.
    Malformed(u32),
    /// A frame of the board comes again, much later.
    Replay,
    /// The board loses its power, and has it again after so many steps.
    PowerLoss(u64),
    /// Nothing passes for so many steps.
    CableOut(u64),
    /// The program is killed, and started again.
    Kill,
}

/// What a computer sends to a board.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    Reset,
    Start,
    Stop,
    Identify,
    Confirm,
}

#[derive(Debug, Clone)]
pub struct Case {
    pub seed: u64,
    pub protocol: Protocol,
    pub firmware: Firmware,
    /// A board of Fadelink has a CRC of its words.
    pub crc: bool,
    /// The file of the experiment names them.
    pub told: bool,
    pub durable: bool,
    /// The FEB has a socket of its own.
    pub alone: bool,
    pub window: u32,
    /// Words of a run of the source, and how many come at once.
    pub words: u64,
    pub burst: u64,
    /// The end is asked for when so many bytes have come, or after so many milliseconds.
    pub stop: (u64, u64),
    pub cable: Chances,
    pub events: Vec<(When, Event)>,
    pub disk: Option<Fault>,
}

impl Case {
    pub fn new(seed: u64) -> Case {
        let mut random = fastrand::Rng::with_seed(seed);
        let random = &mut random;
        let (protocol, firmware) = match random.u8(0..20) {
            0..=8 => (Protocol::Fade10g, Firmware::Fadelink),
            9..=11 => (Protocol::Fade10g, Firmware::Published10g),
            12 => (Protocol::Fade1, Firmware::PublishedV1),
            _ => (Protocol::Fade1, Firmware::Fadelink),
        };
        let packet = if protocol == Protocol::Fade10g { fade10g::PACKET_BYTES } else { fade1::PACKET_BYTES } as u64;
        let packets = *random.choice(&[1, 3, 10, 40, 100]).unwrap_or(&1);
        let words = random.u64(0..=packets * packet / 8);
        let burst = *random.choice(&[10_000, 500, 130]).unwrap_or(&1);
        let durable = random.u8(0..10) < 4;
        let chance = |random: &mut fastrand::Rng| if random.bool() { 0.0 } else { random.f64() * 0.2 };
        let cable = Chances { loss: chance(random), duplicate: chance(random), reorder: chance(random) };
        let count = *random.choice(&[0, 1, 1, 2, 2, 3, 5]).unwrap_or(&1);
        let frames = words * 8 / packet + 10;
        let mut events: Vec<_> = (0..count).map(|_| (When::any(random, frames), Event::any(random, durable))).collect();
        if durable && random.bool() {
            events.push((When::Step(random.u64(0..frames * 2)), Event::Kill));
        }
        Case {
            seed,
            protocol,
            firmware,
            // A program that goes on knows nothing else of what another one has stored.
            crc: durable || random.bool(),
            told: random.u8(0..10) < 8,
            durable,
            alone: random.bool(),
            window: *random.choice(&[8, 16, 32]).unwrap_or(&16),
            words,
            burst,
            stop: (random.u64(0..words * 10 + 100), random.u64(20..300)),
            cable,
            events,
            disk: (random.u8(0..5) == 0).then(|| Fault::any(random, words * 8)),
        }
    }
}

impl When {
    fn any(random: &mut fastrand::Rng, frames: u64) -> When {
        match random.u8(0..4) {
            0 => When::Step(random.u64(0..30)),
            1 => When::Step(random.u64(0..frames * 2)),
            2 => When::AfterStop(random.u64(0..20)),
            _ => When::AfterStop(random.u64(0..frames.min(200))),
        }
    }
}

impl Event {
    fn any(random: &mut fastrand::Rng, durable: bool) -> Event {
        let asks = [Ask::Reset, Ask::Start, Ask::Stop, Ask::Identify, Ask::Confirm];
        let ask = *random.choice(&asks).unwrap_or(&Ask::Reset);
        let place = Number::any(random);
        match random.u8(0..20) {
            0 | 1 => Event::Other(ask),
            2 | 3 => Event::Forged(ask),
            4 | 5 => Event::Data(place),
            6 | 7 => Event::Last(place),
            8 => Event::Answer,
            9 => Event::Malformed(random.u32(1..30)),
            10 => Event::Replay,
            11 => Event::PowerLoss(random.u64(0..100)),
            12 => Event::CableOut(random.u64(1..500)),
            13 => Event::Other(Ask::Reset),
            14 | 15 => Event::SecondProgram(random.bool()),
            16 => Event::Begins(place),
            17 => Event::Begins(Number::Near(random.i32(0..4))),
            _ if durable => Event::Kill,
            _ => Event::Data(Number::Near(random.i32(0..4))),
        }
    }
}

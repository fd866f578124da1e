//! Confirmation of released data alone, and transmissions that go on with another receiver, over bad cables.
//! FADELINK_SEED reproduces a run.

use crate::model;
use std::sync::mpsc::{channel, Receiver as Replies};
use std::sync::Arc;
use std::time::Duration;

use crate::model::{Cable, Counter};
use fadelink_feb::{Board, BoardSettings};
use fadelink_receiver::counters::LinkCounters;
use fadelink_receiver::engine::{Command, CommandError, Confirm, Engine, FebConfig, Resumed};
use fadelink_receiver::numbers::Numbers;
use fadelink_receiver::shared::{Ending, Phase, Reader, Shared};
use fadelink_wire::fade10g::{self, Request};
use fadelink_wire::{fade1, MacAddr, Protocol};

const PC: MacAddr = MacAddr([2, 0xfa, 0xde, 0, 0, 0xf0]);
const FEB: MacAddr = MacAddr([2, 0xfa, 0xde, 0, 0, 1]);
const MS: Duration = Duration::from_millis(1);

fn seed() -> u64 {
    std::env::var("FADELINK_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1)
}

/// A board whose time is told by the test, of either protocol.
struct Timed {
    board: Board<Counter>,
    now: Duration,
}

impl Timed {
    fn new(protocol: Protocol, words: u64) -> Timed {
        let user = Counter { left: words, ..Counter::default() };
        let settings = BoardSettings { window: 16, ..BoardSettings::default() };
        Timed { board: Board::new(protocol, FEB, settings, user), now: Duration::ZERO }
    }

    fn take(&mut self, frame: &[u8]) {
        self.board.take(frame, self.now);
    }

    fn give(&mut self, scan: bool) -> Option<Vec<u8>> {
        self.now += if scan { 20 * MS } else { Duration::from_micros(1) };
        self.board.give(self.now).map(<[u8]>::to_vec)
    }

    fn running(&self) -> bool {
        self.board.status().running
    }
}

/// A receiver with one FEB, and what is safe of its data.
struct Bench {
    engine: Engine,
    reader: Reader,
    now: Duration,
    sent: Vec<Vec<u8>>,
    protocol: Protocol,
}

impl Bench {
    fn new(protocol: Protocol) -> Bench {
        let config = FebConfig {
            ring_packets: 64,
            protocol: Some(protocol),
            confirm: Confirm::Released,
            ..FebConfig::default()
        };
        let mut engine = Engine::new(PC, true, Arc::new(LinkCounters::default()));
        let (shared, reader) = Shared::new(config.ring_packets).unwrap();
        assert!(engine.open(FEB, config, true, shared, Numbers::private(None)));
        Bench { engine, reader, now: Duration::ZERO, sent: Vec::new(), protocol }
    }

    fn packet_bytes(&self) -> u64 {
        match self.protocol {
            Protocol::Fade10g => fade10g::PACKET_BYTES as u64,
            Protocol::Fade1 => fade1::PACKET_BYTES as u64,
        }
    }

    /// START, STOP, or going on.
    fn ask(&mut self, code: u16, resume: Option<Resumed>) -> Replies<Result<u64, CommandError>> {
        let (tell, outcome) = channel();
        let reply = Box::new(move |result| tell.send(result).unwrap_or(()));
        let command = Command { code, argument: 0, timeout: 10 * MS, retries: 1000, reply };
        let mut send = |frame: &[u8]| self.sent.push(frame.to_vec());
        match resume {
            Some(resumed) => self.engine.resume(FEB, resumed, command, self.now, &mut send),
            None => self.engine.command(FEB, command, self.now, &mut send),
        }
        outcome
    }

    /// Exchanges what waits, and checks that what is confirmed is safe.
    fn turn(&mut self, board: &mut Timed, (up, down): (&mut Cable, &mut Cable)) {
        self.now += MS;
        let mut send = |frame: &[u8]| self.sent.push(frame.to_vec());
        for _ in 0..12 {
            let scan = up.random.f64() < 0.1;
            if let Some(frame) = board.give(scan) {
                up.push(&frame);
            }
            if let Some(frame) = up.pop() {
                self.engine.frame(&frame, self.now, &mut send);
            }
        }
        self.engine.confirm(&mut send);
        self.engine.poll(self.now, &mut send);
        let sent = std::mem::take(&mut self.sent);
        for frame in sent {
            self.check(&frame);
            down.push(&frame);
        }
        while let Some(frame) = down.pop() {
            board.take(&frame);
        }
    }

    /// A frame confirms nothing that is not released.
    fn check(&self, frame: &[u8]) {
        let head = self.reader.head();
        let all = self.reader.phase() == Phase::Complete && head == self.reader.tail();
        let released = if all { head.div_ceil(self.packet_bytes()).max(1) } else { head / self.packet_bytes() };
        let (number, modulus, stored) = match self.protocol {
            Protocol::Fade10g => match fade10g::parse_request(frame).unwrap().1 {
                Request::Ack { packet, stored, .. } => (u64::from(packet), 1 << 32, stored),
                Request::Command { .. } => return,
            },
            Protocol::Fade1 => match fade1::parse_request(frame) {
                Ok((_, fade1::Request::Ack { set, packet, stored })) => {
                    (u64::from(set) * 32 + u64::from(packet), 1 << 21, stored)
                }
                _ => return,
            },
        };
        // An empty last packet has no bytes.
        let slack = u64::from(all);
        let behind = (released + slack + modulus - 1 - number % modulus) % modulus;
        assert!(behind < 1 << 16, "packet {number} is confirmed, and {released} are released");
        assert_eq!(stored.unwrap_or(0).checked_shr(number.min(64) as u32).unwrap_or(0), 0, "before the first packet");
    }

    /// Brings some of the data to safety.
    fn save(&mut self, disk: &mut Vec<u8>, packets: u64) {
        let there = self.reader.available();
        let bytes = (packets * self.packet_bytes()).min(there.len() as u64) as usize;
        disk.extend_from_slice(&there[..bytes]);
        self.reader.release(bytes);
    }
}

/// A transmission that goes on, whose number is not known.
fn behind(bytes: u64) -> Resumed {
    Resumed { bytes, stopped: false, number: None, protocol: None }
}

fn words(data: &[u8]) -> impl Iterator<Item = u64> + '_ {
    data.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap()))
}

/// A transmission whose receiver is killed again and again.
fn transmission(protocol: Protocol, case: u64) {
    let mut random = fastrand::Rng::with_seed(seed() * 1000 + case);
    let loss = random.f64() * 0.2;
    let mut cable = || Cable::new(random.u64(..), loss, 0.05, 0.05);
    let (mut up, mut down) = (cable(), cable());
    let count = random.u64(50_000..300_000);
    let mut board = Timed::new(protocol, count);
    let (mut bench, mut disk, mut kills) = (Bench::new(protocol), Vec::new(), 0);
    let begun = bench.ask(fade10g::CMD_START, None);
    let mut outcome = Some(begun);
    let mut stopped = false;
    for step in 0.. {
        assert!(step < 100_000, "case {case}: it does not end: {} of {} bytes", disk.len(), count * 8);
        bench.turn(&mut board, (&mut up, &mut down));
        if random.f64() < 0.3 {
            bench.save(&mut disk, random.u64(..20));
        }
        let is_all = disk.len() as u64 + bench.packet_bytes() > count * 8;
        let result = outcome.as_ref().and_then(|outcome| outcome.try_recv().ok());
        if let Some(result) = result {
            outcome = None;
            match result {
                Ok(_) => {}
                Err(CommandError::AtItsEnd | CommandError::NotRunning(_)) if stopped => break,
                // FADE v1 does not tell that it runs, and has no full packet to send.
                Err(CommandError::NotRunning(_)) if protocol == Protocol::Fade1 && is_all => return,
                // Killed before the board had heard START.
                Err(CommandError::NotRunning(_)) if disk.is_empty() => {
                    outcome = Some(bench.ask(fade10g::CMD_START, None))
                }
                Err(error) => panic!("case {case}: {error}, kills: {kills}"),
            }
        }
        if outcome.is_none() && !stopped && is_all {
            bench.ask(fade10g::CMD_STOP, None);
            stopped = true;
        }
        let has_ended = bench.reader.phase() == Phase::Complete && bench.reader.available().is_empty();
        if has_ended && !board.running() {
            break;
        }
        if outcome.is_none() && kills < 8 && random.f64() < 0.01 {
            kills += 1;
            // Noted with the first data, or not.
            let number = bench.reader.told.number().filter(|_| !disk.is_empty());
            bench = Bench::new(protocol);
            bench.now = Duration::from_secs(10 * kills);
            let resumed = Resumed { bytes: disk.len() as u64, stopped, number, protocol: Some(protocol) };
            outcome = Some(bench.ask(fade10g::CMD_START, Some(resumed)));
            if stopped {
                bench.ask(fade10g::CMD_STOP, None);
            }
        }
    }
    let found = words(&disk).take(count as usize);
    assert!(found.zip(0..).all(|(word, i)| word == model::word(i)), "case {case}: a word is missing or double");
    let filled = words(&disk).skip(count as usize).all(|word| word == u64::from_ne_bytes([0xA5; 8]));
    assert!(disk.len() as u64 >= count * 8 && filled, "case {case}: {} bytes of {}", disk.len(), count * 8);
}

#[test]
fn no_confirmed_word_of_fade10g_is_lost_or_doubled() {
    (0..20).for_each(|case| transmission(Protocol::Fade10g, case));
}

#[test]
fn no_confirmed_word_of_fade1_is_lost_or_doubled() {
    (0..20).for_each(|case| transmission(Protocol::Fade1, case));
}

#[test]
fn a_board_that_was_reset_is_told() {
    for (protocol, ending) in [(Protocol::Fade10g, Ending::Unknown), (Protocol::Fade1, Ending::SwitchedOff)] {
        let (mut up, mut down) = (Cable::new(1, 0.0, 0.0, 0.0), Cable::new(2, 0.0, 0.0, 0.0));
        let mut board = Timed::new(protocol, 100);
        let mut bench = Bench::new(protocol);
        let outcome = bench.ask(fade10g::CMD_START, Some(behind(5 * bench.packet_bytes())));
        (0..2000).for_each(|_| bench.turn(&mut board, (&mut up, &mut down)));
        assert_eq!(outcome.try_recv(), Ok(Err(CommandError::NotRunning(ending))), "{protocol}");
        // Now a new one.
        let outcome = bench.ask(fade10g::CMD_START, None);
        (0..2000).for_each(|_| bench.turn(&mut board, (&mut up, &mut down)));
        assert_eq!(outcome.try_recv(), Ok(Ok(0)));
        assert!(board.running());
    }
}

/// Between two receivers another program has another transmission, of which as much is confirmed, or more.
#[test]
fn another_transmission_is_not_taken_for_this_one() {
    for protocol in [Protocol::Fade10g, Protocol::Fade1] {
        let (mut up, mut down) = (Cable::new(1, 0.0, 0.0, 0.0), Cable::new(2, 0.0, 0.0, 0.0));
        let mut board = Timed::new(protocol, 1_000_000);
        let mut begin = |board: &mut Timed, packets: u64| {
            let mut bench = Bench::new(protocol);
            let outcome = bench.ask(fade10g::CMD_START, None);
            let mut disk = Vec::new();
            for _ in 0..2000 {
                bench.turn(board, (&mut up, &mut down));
                let left = packets - disk.len() as u64 / bench.packet_bytes();
                bench.save(&mut disk, left);
            }
            assert_eq!(disk.len() as u64, packets * bench.packet_bytes(), "{protocol}");
            assert_eq!(outcome.try_recv(), Ok(Ok(0)), "{protocol}");
            (bench.reader.told.number(), disk.len() as u64)
        };
        let (first, bytes) = begin(&mut board, 2);
        let (second, _) = begin(&mut board, 3);
        assert!(first.is_some() && second.is_some() && first != second, "{protocol}: {first:?}, {second:?}");
        let mut resume = |number| {
            let mut bench = Bench::new(protocol);
            let outcome = bench
                .ask(fade10g::CMD_START, Some(Resumed { bytes, stopped: false, number, protocol: Some(protocol) }));
            (0..2000).for_each(|_| bench.turn(&mut board, (&mut up, &mut down)));
            outcome.try_recv()
        };
        assert_eq!(resume(first), Ok(Err(CommandError::NotRunning(Ending::OtherTransmission))), "{protocol}");
        assert_eq!(resume(second), Ok(Ok(0)), "{protocol}");
    }
}

#[test]
fn only_the_last_packet_is_not_full() {
    let (mut up, mut down) = (Cable::new(1, 0.0, 0.0, 0.0), Cable::new(2, 0.0, 0.0, 0.0));
    let mut board = Timed::new(Protocol::Fade10g, 100);
    let mut bench = Bench::new(Protocol::Fade10g);
    let resumed = Resumed { protocol: Some(Protocol::Fade10g), ..behind(800) };
    let outcome = bench.ask(fade10g::CMD_START, Some(resumed));
    (0..100).for_each(|_| bench.turn(&mut board, (&mut up, &mut down)));
    assert_eq!(outcome.try_recv(), Ok(Err(CommandError::AtItsEnd)));
}

//! The engine with boards of every firmware (docs/protocol/firmware.md), and with receivers that are killed:
//! confirmed data is always delivered. FADELINK_SEED reproduces a run, FADELINK_CASES sets the number of random
//! runs.

use std::collections::BTreeSet;
use std::sync::mpsc::{channel, Receiver as Replies};
use std::sync::Arc;
use std::time::Duration;

use crate::model::board::{confirmed, Words};
use crate::model::Cable;
use fadelink_feb::{Board, BoardSettings, Fade10gBoard, Quirk, Quirks};
use fadelink_receiver::engine::{Command, CommandError, Confirm, Engine, FebConfig};
use fadelink_receiver::numbers::Numbers;
use fadelink_receiver::shared::{Phase, Reader, Shared};
use fadelink_receiver::Kind;
use fadelink_wire::fade10g::{self, Data, Identity, Request, Response};
use fadelink_wire::{Firmware, MacAddr, Protocol, WordOrder};

const PC: MacAddr = MacAddr([2, 0xfa, 0xde, 0, 0, 0xf0]);
const FEB: MacAddr = MacAddr([2, 0xfa, 0xde, 0, 0, 1]);
const MS: Duration = Duration::from_millis(1);

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|s| s.parse().ok()).unwrap_or(default)
}

type Outcome = Replies<Result<u64, CommandError>>;

/// A receiver that may be killed: an engine, and the reader of its one FEB.
struct Program {
    engine: Engine,
    reader: Reader,
    sent: Vec<Vec<u8>>,
    now: Duration,
}

impl Program {
    fn new(config: FebConfig) -> Program {
        let (shared, reader) = Shared::new(config.ring_packets).unwrap();
        let mut engine = Engine::new(PC, false, Arc::default());
        assert!(engine.open(FEB, config, true, shared, Numbers::private(None)));
        Program { engine, reader, sent: Vec::new(), now: Duration::ZERO }
    }

    fn command(&mut self, code: u16) -> Outcome {
        let (tell, outcome) = channel();
        let reply = Box::new(move |result| tell.send(result).unwrap_or(()));
        let command = Command { code, argument: 0, timeout: 20 * MS, retries: 1000, reply };
        self.engine.command(FEB, command, self.now, &mut |frame: &[u8]| self.sent.push(frame.to_vec()));
        outcome
    }

    fn frame(&mut self, frame: &[u8]) {
        self.engine.frame(frame, self.now, &mut |frame: &[u8]| self.sent.push(frame.to_vec()));
    }

    /// Confirms what was taken, as behind a batch of frames.
    fn confirm(&mut self) {
        self.engine.confirm(&mut |frame: &[u8]| self.sent.push(frame.to_vec()));
    }

    fn wait(&mut self, time: Duration) {
        self.confirm();
        self.now += time;
        self.engine.poll(self.now, &mut |frame: &[u8]| self.sent.push(frame.to_vec()));
    }

    /// What was sent since the last call.
    fn requests(&mut self) -> Vec<Request> {
        self.sent.drain(..).map(|frame| fade10g::parse_request(&frame).unwrap().1).collect()
    }

    /// The one command that was sent since the last call.
    fn csn(&mut self, expected: u16) -> u16 {
        let requests = self.requests();
        let [Request::Command { code, csn, .. }] = requests[..] else { panic!("{requests:?}") };
        assert_eq!(code, expected);
        csn
    }

    fn answer(&mut self, code: u16, csn: u16, value: u64) {
        self.frame(&Response { code, csn, value }.to_frame(PC, FEB));
    }
}

const SMALL: FebConfig = FebConfig {
    ring_packets: 64,
    window: 32,
    first_packet: 0,
    protocol: None,
    firmware: None,
    word_order: None,
    confirm: Confirm::Received,
    checksum: false,
};

fn data(packet: u32, last: Option<u64>, response: Option<Response>) -> Vec<u8> {
    let mut payload = vec![packet as u8; fade10g::PACKET_BYTES];
    payload[..8].copy_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8]);
    if let Some(words) = last {
        payload[fade10g::PACKET_BYTES - 8..].copy_from_slice(&words.to_be_bytes());
    }
    let mut frame = [0; fade10g::DATA_FRAME_LEN];
    Data { sequence: 1, packet, delay: 7, response, last, payload: &payload }.write(PC, FEB, &mut frame).unwrap();
    frame.to_vec()
}

impl Program {
    /// RESETs, each round met with silence.
    fn reset_rounds(&mut self, already: usize) {
        for _ in already..3 {
            assert_eq!(self.requests(), [RESET; 3]);
            self.wait(20 * MS);
        }
    }
}

const RESET: Request = Request::Command { code: fade10g::CMD_RESET, csn: 0, argument: 0 };

/// START to a published board, answered; and the response, which stays in its data frames.
fn started() -> (Program, Response) {
    let mut program = Program::new(SMALL);
    let outcome = program.command(fade10g::CMD_START);
    let csn = program.csn(fade10g::CMD_IDENTIFY);
    program.answer(fade10g::CMD_IDENTIFY, csn, 0);
    program.reset_rounds(0);
    let csn = program.csn(fade10g::CMD_START);
    program.answer(fade10g::CMD_START, csn, 0);
    assert_eq!(outcome.try_recv().unwrap(), Ok(0));
    (program, Response { code: fade10g::CMD_START, csn, value: 0 })
}

#[test]
fn a_published_board_is_found_out_and_its_words_are_made_native() {
    let (mut program, _) = started();
    program.command(fade10g::CMD_STOP);
    let csn = program.csn(fade10g::CMD_STOP);
    program.answer(fade10g::CMD_STOP, csn, 0);
    let stays = Response { code: fade10g::CMD_STOP, csn, value: 0 };
    let kind =
        Kind { protocol: Protocol::Fade10g, firmware: Some(Firmware::Published10g), word_order: Some(WordOrder::Big) };
    assert_eq!(program.reader.kind(), Some(kind));
    for packet in 0..5 {
        program.frame(&data(packet, None, Some(stays)));
    }
    program.frame(&data(5, Some(3), Some(stays)));
    assert_eq!(program.requests().len(), 6);
    assert_eq!((program.reader.phase(), program.reader.tail()), (Phase::Complete, 5 * 8192 + 24));
    assert_eq!(program.reader.available()[..8], [8, 7, 6, 5, 4, 3, 2, 1]);
    let counters = program.reader.counters.read();
    assert_eq!((counters.responses, counters.unexpected_responses), (3, 0), "it repeats its last response");
    assert_eq!(counters.interrupted, 0, "a fresh board");
}

/// The cable was out while IDENTIFY was sent: silence does not make a board of Fadelink a published one.
#[test]
fn a_board_that_answers_start_is_asked_again_what_it_is() {
    let mut program = Program::new(FebConfig { protocol: Some(Protocol::Fade10g), ..SMALL });
    let outcome = program.command(fade10g::CMD_START);
    while !program.requests().contains(&RESET) {
        program.wait(5 * MS);
    }
    program.wait(20 * MS);
    program.reset_rounds(1);
    let csn = program.csn(fade10g::CMD_START);
    program.answer(fade10g::CMD_START, csn, 0);
    assert!(outcome.try_recv().is_err());
    let csn = program.csn(fade10g::CMD_IDENTIFY);
    let identity = Identity {
        window: 32,
        running: true,
        stopping: false,
        block_acks: true,
        csn: None,
        transmission: csn,
        resets: None,
        checksum: false,
        same_words: true,
    };
    // Nobody has asked for this one.
    program.answer(fade10g::CMD_IDENTIFY, csn.wrapping_add(1), 0);
    program.answer(fade10g::CMD_IDENTIFY, csn, identity.to_value());
    let csn = program.csn(fade10g::CMD_START);
    program.answer(fade10g::CMD_START, csn, 2);
    assert_eq!(program.requests(), [RESET; 3]);
    program.wait(20 * MS);
    let csn = program.csn(fade10g::CMD_START);
    program.answer(fade10g::CMD_START, csn, 0);
    assert_eq!(outcome.try_recv().unwrap(), Ok(0));
    assert_eq!(program.reader.kind().unwrap().firmware, Some(Firmware::Fadelink));
}

#[test]
fn words_and_firmware_can_be_told() {
    let config = FebConfig { firmware: Some(Firmware::Published10g), word_order: Some(WordOrder::Little), ..SMALL };
    let mut program = Program::new(config);
    program.command(fade10g::CMD_START);
    program.reset_rounds(0);
    let csn = program.csn(fade10g::CMD_START);
    program.answer(fade10g::CMD_START, csn, 0);
    program.frame(&data(0, None, None));
    assert_eq!(program.reader.available()[..8], [1, 2, 3, 4, 5, 6, 7, 8]);
    for (firmware, protocol) in [(Firmware::Published10g, Protocol::Fade1), (Firmware::PublishedV1, Protocol::Fade10g)]
    {
        let config = FebConfig { firmware: Some(firmware), protocol: Some(protocol), ..SMALL };
        assert_eq!(config.check().unwrap_err().field, "protocol", "{config:?}");
    }
}

#[test]
fn packets_of_an_earlier_transmission_are_not_confirmed_but_reset() {
    let (mut program, stays) = started();
    for packet in [10, 11, 9] {
        program.frame(&data(packet, None, Some(stays)));
    }
    assert_eq!(program.requests(), [], "the first may have been lost");
    program.wait(100 * MS);
    assert_eq!(program.requests(), [RESET; 3]);
    program.frame(&data(9, None, Some(stays)));
    program.wait(20 * MS);
    program.reset_rounds(0);
    let csn = program.csn(fade10g::CMD_START);
    program.answer(fade10g::CMD_START, csn, 0);
    // Outside every window: there is nothing to wait for.
    for packet in [1000, u32::MAX] {
        program.frame(&data(packet, None, None));
        program.reset_rounds(0);
        let csn = program.csn(fade10g::CMD_START);
        program.answer(fade10g::CMD_START, csn, 0);
    }
    program.frame(&data(1, None, None));
    program.frame(&data(0, None, None));
    program.frame(&data(1, None, None));
    assert_eq!(program.requests().len(), 2);
    assert_eq!((program.reader.phase(), program.reader.tail()), (Phase::Running, 2 * 8192));
    assert_eq!(program.reader.counters.read().interrupted, 3);
}

#[test]
fn what_begins_again_is_stopped_again() {
    let (mut program, _) = started();
    let stopped = program.command(fade10g::CMD_STOP);
    let csn = program.csn(fade10g::CMD_STOP);
    program.answer(fade10g::CMD_STOP, csn, 0);
    assert_eq!(stopped.try_recv().unwrap(), Ok(0));
    program.frame(&data(1000, None, None));
    program.reset_rounds(0);
    let csn = program.csn(fade10g::CMD_START);
    program.answer(fade10g::CMD_START, csn, 0);
    let csn = program.csn(fade10g::CMD_STOP);
    program.wait(20 * MS);
    assert_eq!(program.csn(fade10g::CMD_STOP), csn, "until it is answered");
    program.answer(fade10g::CMD_STOP, csn, 0);
    program.wait(100 * MS);
    assert_eq!(program.requests(), []);
    program.frame(&data(0, Some(7), None));
    assert_eq!((program.reader.phase(), program.reader.tail()), (Phase::Complete, 56));
}

#[test]
fn a_board_that_does_not_fall_silent_is_an_error() {
    let mut program = Program::new(FebConfig { firmware: Some(Firmware::Published10g), ..SMALL });
    let outcome = program.command(fade10g::CMD_START);
    for _ in 0..120 {
        program.frame(&data(3, None, None));
        program.wait(20 * MS);
    }
    assert_eq!(outcome.try_recv().unwrap(), Err(CommandError::SendsOn));
    // A transmission that was to restart is aborted.
    let (mut program, _) = started();
    for _ in 0..230 {
        program.frame(&data(1000, None, None));
        program.wait(10 * MS);
    }
    assert_eq!(program.reader.phase(), Phase::Aborted);
}

#[test]
fn a_board_whose_numbers_never_begin_is_broken_off() {
    let (mut program, _) = started();
    for _ in 0..10 {
        program.frame(&data(1000, None, None));
        program.reset_rounds(0);
        let csn = program.csn(fade10g::CMD_START);
        program.answer(fade10g::CMD_START, csn, 0);
    }
    assert_eq!(program.reader.phase(), Phase::Running);
    program.frame(&data(1000, None, None));
    assert_eq!((program.reader.phase(), program.requests()), (Phase::Aborted, vec![]));
    program.wait(100 * MS);
    program.frame(&data(1000, None, None));
    assert_eq!(program.requests(), [RESET]);
}

/// What the reader takes must be the counter from 0, whatever ran before; behind it, of FADE v1, filler.
fn read(program: &mut Program, received: &mut u64, words: u64) {
    let taken = program.reader.available();
    for (word, at) in taken.as_chunks::<8>().0.iter().zip(*received..) {
        let expected = if at < words { at } else { u64::from_ne_bytes([0xA5; 8]) };
        assert_eq!(u64::from_le_bytes(*word), expected, "word {at} of {words}");
    }
    let bytes = taken.len();
    *received += bytes as u64 / 8;
    program.reader.release(bytes);
}

/// Receivers come and are killed at any moment, without a word to the board; the last one reads to the end.
#[test]
fn whatever_was_confirmed_is_delivered() {
    let (mut complete, mut killed, mut interrupted) = (0, 0, 0);
    for case in 0..setting("FADELINK_CASES", 120) {
        let mut random = fastrand::Rng::with_seed(setting("FADELINK_SEED", 1) * 100_000 + case);
        let fade1 = random.u8(..3) == 0;
        let firmware = match (random.bool(), fade1) {
            (false, _) => Firmware::Fadelink,
            (true, false) => Firmware::Published10g,
            (true, true) => Firmware::PublishedV1,
        };
        // FADE v1 begins with a whole packet.
        let words = random.u64(if fade1 { 128 } else { 1 }..30_000);
        let settings = BoardSettings {
            window: if firmware == Firmware::Published10g { 16 } else { 32 },
            quirks: Quirks::of(firmware),
            ..BoardSettings::default()
        };
        let user = Words { per_run: words, ..Words::default() };
        let protocol = if fade1 { Protocol::Fade1 } else { Protocol::Fade10g };
        let mut board = Board::new(protocol, FEB, settings, user);
        let loss = *random.choice(&[0.0, 0.02, 0.2]).unwrap();
        let cable = |seed| Cable::new(seed, loss, 0.02, 0.05);
        let (mut up, mut down) = (cable(random.u64(..)), cable(random.u64(..)));
        let mut now = Duration::ZERO;
        let told = random.bool();
        let config = FebConfig {
            firmware: told.then_some(firmware).filter(|firmware| *firmware != Firmware::Fadelink),
            protocol: (told && fade1).then_some(Protocol::Fade1),
            ..SMALL
        };
        let lives = random.usize(1..5);
        for life in 0..lives {
            let mut program = Program::new(config);
            program.now = now;
            let until = (life + 1 < lives).then(|| now + Duration::from_micros(random.u64(..800_000)));
            let begun = board.user().begun;
            let started = program.command(fade10g::CMD_START);
            let (mut running, mut stopped, mut received) = (false, false, 0);
            let mut acks = BTreeSet::new();
            let give_up = now + Duration::from_secs(60);
            loop {
                assert!(now < give_up, "case {case}: {firmware} {:?}", program.reader.counters.read());
                if until.is_some_and(|until| now >= until) || program.reader.phase() == Phase::Complete {
                    break;
                }
                now += Duration::from_micros(100);
                program.wait(Duration::from_micros(100));
                for frame in std::mem::take(&mut program.sent) {
                    acks.extend(confirmed(&frame));
                    down.push(&frame);
                }
                if let Some(frame) = down.pop() {
                    board.take(&frame, now);
                }
                if let Some(frame) = board.give(now) {
                    up.push(frame);
                }
                if let Some(frame) = up.pop() {
                    program.frame(&frame);
                }
                running |= started.try_recv().is_ok_and(|started| started == Ok(0));
                if running && !stopped && board.user().begun > begun && board.user().left == 0 {
                    program.command(fade10g::CMD_STOP);
                    stopped = true;
                }
                if random.u8(..4) == 0 {
                    read(&mut program, &mut received, words);
                }
            }
            let counters = program.reader.counters.read();
            interrupted += counters.interrupted;
            if life == 0 {
                assert_eq!(counters.interrupted, 0, "case {case}: nothing ran before");
            }
            program.confirm();
            for frame in std::mem::take(&mut program.sent) {
                acks.extend(confirmed(&frame));
                down.push(&frame);
            }
            assert_eq!(acks.len() as u64, counters.packets, "case {case}: confirmed, and stored");
            if until.is_some() && program.reader.phase() != Phase::Complete {
                killed += 1;
                continue;
            }
            read(&mut program, &mut received, words);
            let expected = match (fade1, firmware) {
                (false, _) => words,
                (true, Firmware::PublishedV1) => words / 128 * 128,
                (true, _) => words.div_ceil(128) * 128,
            };
            assert_eq!(received, expected, "case {case}: {firmware}, life {life} of {lives}: {counters:?}");
            assert_eq!(program.reader.kind().unwrap().firmware, Some(firmware), "case {case}");
            complete += 1;
        }
    }
    assert!(complete > 80 && killed > 40 && interrupted > 10, "{complete} {killed} {interrupted}");
}

/// What lies between the firmwares: any set of quirks of FADE-10G, in the order of words that was told.
#[test]
fn boards_with_any_quirks_lose_nothing() {
    for case in 0..setting("FADELINK_CASES", 60) {
        let mut random = fastrand::Rng::with_seed(setting("FADELINK_SEED", 1) * 200_000 + case);
        // A bad memory changes words.
        let all = Quirk::ALL.iter().map(|(quirk, _)| *quirk).filter(|quirk| *quirk != Quirk::BadMemory);
        let chosen: Vec<Quirk> = all.filter(|_| random.bool()).collect();
        let quirks = chosen.iter().fold(Quirks::default(), |all, quirk| all.with(*quirk));
        let order = if quirks.has(Quirk::BigWords) { WordOrder::Big } else { WordOrder::Little };
        let words = random.u64(1..20_000);
        let user = Words { per_run: words, ..Words::default() };
        let mut board = Fade10gBoard::new(FEB, BoardSettings { window: 16, quirks, ..BoardSettings::default() }, user);
        let (mut up, mut down) = (Cable::new(random.u64(..), 0.05, 0.02, 0.05), Cable::new(case, 0.05, 0.02, 0.05));
        let mut program = Program::new(FebConfig { word_order: Some(order), ..SMALL });
        let started = program.command(fade10g::CMD_START);
        let (mut running, mut stopped, mut received) = (false, false, 0);
        while program.reader.phase() != Phase::Complete {
            assert!(program.now < Duration::from_secs(60), "case {case}: {chosen:?}");
            program.wait(Duration::from_micros(100));
            program.sent.drain(..).for_each(|frame| down.push(&frame));
            if let Some(frame) = down.pop() {
                board.take(&frame, program.now);
            }
            if let Some(frame) = board.give(program.now) {
                up.push(frame);
            }
            if let Some(frame) = up.pop() {
                program.frame(&frame);
            }
            running |= started.try_recv().is_ok_and(|started| started == Ok(0));
            if running && !stopped && board.user.begun > 0 && board.user.left == 0 {
                program.command(fade10g::CMD_STOP);
                stopped = true;
            }
            read(&mut program, &mut received, words);
        }
        read(&mut program, &mut received, words);
        assert_eq!(received, words, "case {case}: {chosen:?}");
    }
}

/// The last packet has every number of valid words, of either kind of board.
#[test]
fn every_number_of_valid_words_is_taken() {
    for (firmware, words) in [Firmware::Fadelink, Firmware::Published10g]
        .into_iter()
        .flat_map(|firmware| (0..1024).map(move |words| (firmware, 1024 * (words % 3) + words)))
    {
        let user = Words { per_run: words, ..Words::default() };
        let settings = BoardSettings { window: 16, quirks: Quirks::of(firmware), ..BoardSettings::default() };
        let mut board = Fade10gBoard::new(FEB, settings, user);
        let mut program = Program::new(SMALL);
        program.command(fade10g::CMD_START);
        let (mut stopped, mut received) = (false, 0);
        while program.reader.phase() != Phase::Complete {
            assert!(program.now < Duration::from_secs(10), "{firmware}, {words} words");
            for frame in std::mem::take(&mut program.sent) {
                board.take(&frame, program.now);
            }
            while let Some(frame) = board.give(program.now) {
                let frame = frame.to_vec();
                program.frame(&frame);
            }
            if !stopped && board.user.begun > 0 && board.user.left == 0 && program.reader.phase() == Phase::Running {
                program.command(fade10g::CMD_STOP);
                stopped = true;
            }
            program.wait(MS);
        }
        read(&mut program, &mut received, words);
        assert_eq!(received, words, "{firmware}");
    }
}

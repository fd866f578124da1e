//! Processor time of a data frame of FADE-10G in the driver's rules and in the engine, side by side: without the copy of its
//! packet, and with it. `cargo run --release -p fadelink-driver-check --example speed [FRAMES]`

#![expect(clippy::print_stdout)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fadelink_driver_check as c;
use fadelink_receiver::engine::{Command, Engine};
use fadelink_receiver::numbers::Numbers;
use fadelink_receiver::shared::{Reader, Shared};
use fadelink_receiver::FebConfig;
use fadelink_wire::fade10g::{self, Data, Identity, Request, Response, DATA_FRAME_LEN, PACKET_BYTES, REQUEST_LEN};
use fadelink_wire::{Firmware, MacAddr, Protocol};

const PC: MacAddr = MacAddr([2, 0xfa, 0xde, 0, 0, 0xf0]);
const FEB: MacAddr = MacAddr([2, 0xfa, 0xde, 0, 0, 1]);
/// Frames that come together, and are confirmed together.
const TOGETHER: u32 = 16;
const ROUNDS: usize = 7;
const NOW: Duration = Duration::ZERO;
const IDENTITY: Identity = Identity {
    window: 64,
    running: false,
    stopping: false,
    block_acks: true,
    csn: None,
    transmission: 0,
    resets: None,
    checksum: false,
    same_words: false,
};

/// What a board answers to a command.
fn answer(frame: &[u8]) -> Option<Response> {
    match fade10g::parse_request(frame) {
        Ok((_, Request::Command { code: code @ fade10g::CMD_IDENTIFY, csn, .. })) => {
            Some(Response { code, csn, value: IDENTITY.to_value() })
        }
        Ok((_, Request::Command { code: code @ fade10g::CMD_START, csn, .. })) => {
            Some(Response { code, csn, value: 0 })
        }
        _ => None,
    }
}

fn settings() -> FebConfig {
    FebConfig {
        ring_packets: 64,
        window: 64,
        protocol: Some(Protocol::Fade10g),
        firmware: Some(Firmware::Fadelink),
        ..FebConfig::default()
    }
}

struct Rust {
    engine: Engine,
    reader: Reader,
}

impl Rust {
    fn begin() -> Rust {
        let config = settings();
        let (shared, reader) = Shared::new(config.ring_packets).expect("a ring");
        let mut engine = Engine::new(PC, false, Arc::default());
        engine.open(FEB, config, true, shared.clone(), Numbers::private(Some(1)));
        let timeout = Duration::from_secs(1);
        let start = Command { code: fade10g::CMD_START, argument: 0, timeout, retries: 1, reply: Box::new(|_| ()) };
        let mut sent: Vec<Vec<u8>> = Vec::new();
        engine.command(FEB, start, NOW, &mut |frame: &[u8]| sent.push(frame.to_vec()));
        while let Some(frame) = sent.pop() {
            if let Some(response) = answer(&frame) {
                engine.frame(&response.to_frame(PC, FEB), NOW, &mut |frame: &[u8]| sent.push(frame.to_vec()));
            }
        }
        assert!(shared.kind().is_some(), "the transmission has begun");
        Rust { engine, reader }
    }

    fn take(&mut self, frames: &[Vec<u8>]) {
        for frame in frames {
            self.engine.frame(frame, NOW, &mut |frame: &[u8]| {
                black_box(frame);
            });
        }
        self.engine.confirm(&mut |frame: &[u8]| {
            black_box(frame);
        });
        let bytes = self.reader.available().len();
        assert_eq!(bytes, frames.len() * PACKET_BYTES);
        self.reader.release(bytes);
    }
}

struct C {
    feb: c::DriverFeb,
    settings: c::DriverSettings,
    ring: Vec<u8>,
    copies: bool,
}

impl C {
    fn begin(copies: bool) -> C {
        let settings =
            c::DriverSettings { ring_packets: 64, window: 64, first_packet: 0, protocol: 1, firmware: 1, words: 0 };
        let mut this = C { feb: c::DriverFeb::default(), settings, ring: vec![0; 64 * PACKET_BYTES], copies };
        // SAFETY: live structures.
        unsafe {
            c::fade_feb_init(&raw mut this.feb, &raw const this.settings, true, 1);
            c::fade_feb_start(&raw mut this.feb, 1000, 1, 0);
        }
        while let Some(response) = this.asked().into_iter().find_map(|frame| answer(&frame)) {
            this.frame(&response.to_frame(PC, FEB));
        }
        assert!(this.feb.started, "the transmission has begun");
        this
    }

    /// Frames that are due.
    fn asked(&mut self) -> Vec<[u8; REQUEST_LEN]> {
        let mut tick = c::Tick::default();
        // SAFETY: live structures.
        unsafe { c::fade_feb_tick(&raw mut self.feb, &raw const self.settings, 0, &raw mut tick) };
        let write = |request: &c::Request| {
            let mut out = [0; REQUEST_LEN];
            let (feb, pc) = (FEB.0.as_ptr(), PC.0.as_ptr());
            // SAFETY: memory of the sizes that the function names.
            unsafe { c::fade_command(out.as_mut_ptr(), feb, pc, request.code, request.csn, 0) };
            out
        };
        tick.requests[..tick.count as usize].iter().map(write).collect()
    }

    fn frame(&mut self, frame: &[u8]) {
        let (mut fields, mut actions) = (c::Frame::default(), c::Actions::default());
        let last = frame.last_chunk::<8>().copied().unwrap_or_default();
        let feb = &raw mut self.feb;
        // SAFETY: the frame is as long as its length says; the rest is live.
        unsafe {
            let kind = c::fade_parse(frame.as_ptr(), frame.len(), last.as_ptr(), &raw mut fields);
            let given_back = c::fade_feb_bytes(feb);
            c::fade_feb_take(feb, &raw const self.settings, kind, &raw const fields, given_back, 0, &raw mut actions);
        }
        if actions.store && self.copies {
            let at = actions.slot as usize * PACKET_BYTES;
            self.ring[at..at + PACKET_BYTES].copy_from_slice(&frame[frame.len() - PACKET_BYTES..]);
        }
    }

    fn take(&mut self, frames: &[Vec<u8>]) {
        // SAFETY: a live FEB.
        let before = unsafe { c::fade_feb_bytes(&raw const self.feb) };
        frames.iter().for_each(|frame| self.frame(frame));
        let (mut what, mut out) = (c::Confirmation::default(), [0; REQUEST_LEN]);
        // SAFETY: live structures, and memory of the size that the function names.
        unsafe {
            assert!(c::fade_feb_confirm(&raw mut self.feb, &raw mut what));
            c::fade_ack(out.as_mut_ptr(), FEB.0.as_ptr(), PC.0.as_ptr(), &raw const what);
            assert_eq!(c::fade_feb_bytes(&raw const self.feb) - before, (frames.len() * PACKET_BYTES) as u64);
        }
        black_box(&out);
        black_box(&self.ring);
    }
}

/// Nanoseconds a frame.
fn time(count: u32, mut take: impl FnMut(&[Vec<u8>])) -> f64 {
    let payload = [0x5a; PACKET_BYTES];
    let mut frames = vec![vec![0; DATA_FRAME_LEN]; TOGETHER as usize];
    let mut spent = Duration::ZERO;
    for first in (0..count).step_by(TOGETHER as usize) {
        for (frame, packet) in frames.iter_mut().zip(first..) {
            let data =
                Data { sequence: packet as u16, packet, delay: 0, response: None, last: None, payload: &payload };
            let out = frame.as_mut_slice().first_chunk_mut().expect("the length of a data frame");
            data.write_header(PC, FEB, out);
        }
        let begin = Instant::now();
        take(&frames);
        spent += begin.elapsed();
    }
    spent.as_nanos() as f64 / f64::from(count)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let count: u32 = std::env::args().nth(1).map_or(200_000, |text| text.parse().expect("FRAMES: a number"));
    let count = count.next_multiple_of(TOGETHER);
    let (mut rules, mut driver, mut engine) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (mut bare, mut whole, mut rust) = (C::begin(false), C::begin(true), Rust::begin());
        rules.push(time(count, |frames| bare.take(frames)));
        driver.push(time(count, |frames| whole.take(frames)));
        engine.push(time(count, |frames| rust.take(frames)));
    }
    let (rules, driver, engine) = (median(rules), median(driver), median(engine));
    println!("{count} frames, {TOGETHER} together, median of {ROUNDS} rounds, ns a frame:");
    println!("driver's rules without the copy {rules:7.1}");
    println!("driver's rules and the copy     {driver:7.1}");
    println!("engine, with its copy           {engine:7.1}  ({:.2} of the line above)", engine / driver);
}

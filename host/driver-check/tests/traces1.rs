//! Whole traces of FADE v1 through the engine and through the driver's rules: the same frames go in, the same frames
//! must come out, the same packets must be stored, and the counters must be equal. FADELINK_SEED reproduces a run.

use std::sync::Arc;
use std::time::Duration;

use fadelink_driver_check as c;
use fadelink_receiver::counters::FebCounts;
use fadelink_receiver::engine::{Command, Engine};
use fadelink_receiver::shared::{Phase, Reader, Shared};
use fadelink_receiver::FebConfig;
use fadelink_wire::fade1::{Data, DATA_FRAME_LEN, DATA_HEADER_LEN, PACKET_BYTES, REQUEST_LEN, TYPE_RESET};
use fadelink_wire::{fade10g, MacAddr, Protocol};

const PC: MacAddr = MacAddr([2, 0xfa, 0xde, 0, 0, 0xf0]);
const FEB: MacAddr = MacAddr([2, 0xfa, 0xde, 0, 0, 1]);

/// What the kernel does around the rules, with a ring in plain memory.
struct Driver {
    feb: c::Feb,
    settings: c::Settings,
    ring: Vec<u8>,
    head: u64,
    tail: u64,
    /// When the delayed work runs.
    next_tick: Option<u64>,
    sent: Vec<Vec<u8>>,
}

impl Driver {
    fn request(&mut self, kind: u16) {
        let mut out = [0; REQUEST_LEN];
        // SAFETY: memory of the sizes that the function names.
        unsafe { c::fade1_request(out.as_mut_ptr(), FEB.0.as_ptr(), PC.0.as_ptr(), kind) };
        self.sent.push(out.to_vec());
    }

    /// As start_fade1(), in two parts: RESET, and 20 ms later the rest.
    fn start(&mut self, now_ms: Option<u64>) {
        match now_ms {
            None => {
                // SAFETY: a live FEB.
                unsafe { c::fade_feb_command(&raw mut self.feb, fade10g::CMD_START) };
                self.feb.pending = false;
                self.feb.stats.resets += 1;
                self.request(TYPE_RESET);
            }
            Some(now) => {
                // SAFETY: live structures.
                unsafe { c::fade1_feb_begin(&raw mut self.feb, &raw const self.settings) };
                (self.feb.starting, self.feb.waiting) = (1, true);
                (self.head, self.tail) = (0, 0);
                self.next_tick = Some(now);
                self.tick(now);
            }
        }
    }

    fn stop(&mut self, now_ms: u64) {
        let already = self.feb.stopping;
        // SAFETY: a live FEB.
        if unsafe { c::fade1_feb_stop(&raw mut self.feb) } && !already {
            self.next_tick = Some(now_ms);
        }
    }

    fn tick(&mut self, now_ms: u64) {
        if self.next_tick.take_if(|at| *at <= now_ms).is_none() {
            return;
        }
        let mut next = 0;
        // SAFETY: a live FEB and number.
        let kind = unsafe { c::fade1_feb_tick(&raw mut self.feb, &raw mut next) };
        if kind != 0 {
            self.request(kind);
        }
        self.next_tick = (next > 0).then_some(now_ms + u64::from(next));
    }

    fn frame(&mut self, frame: &[u8], now_ms: u64) {
        let (mut fields, mut actions) = (c::Frame::default(), c::Actions::default());
        let final_word = [0; 8];
        // SAFETY: the frame is longer than what is looked at, or its length says so; the rest is live.
        unsafe {
            let kind = c::fade_parse(frame.as_ptr(), frame.len(), final_word.as_ptr(), &raw mut fields);
            let (feb, settings) = (&raw mut self.feb, &raw const self.settings);
            c::fade_feb_take(feb, settings, kind, &raw const fields, self.tail, now_ms, &raw mut actions);
        }
        if actions.store {
            let at = actions.slot as usize * PACKET_BYTES;
            self.ring[at..at + PACKET_BYTES].copy_from_slice(&frame[DATA_HEADER_LEN..]);
            // SAFETY: a live FEB.
            self.head = unsafe { c::fade_feb_bytes(&raw const self.feb) };
        }
        if actions.reset {
            self.request(TYPE_RESET);
        }
        if actions.confirm {
            let mut out = [0; REQUEST_LEN];
            let (set, packet) = (fields.sequence, fields.packet);
            // SAFETY: memory of the sizes that the function names.
            unsafe { c::fade1_ack(out.as_mut_ptr(), FEB.0.as_ptr(), PC.0.as_ptr(), set, packet) };
            self.sent.push(out.to_vec());
        }
        if actions.tick {
            self.next_tick = Some(now_ms);
        }
    }
}

struct Both {
    engine: Engine,
    shared: Arc<Shared>,
    reader: Reader,
    driver: Driver,
    sent: Vec<Vec<u8>>,
    now: Duration,
}

impl Both {
    fn new(ring_packets: u64) -> Both {
        let config = FebConfig { ring_packets, window: 8, first_packet: 0, protocol: Some(Protocol::Fade1) };
        let (shared, reader) = Shared::new(ring_packets).unwrap();
        let mut engine = Engine::new(PC, false, Arc::default());
        assert!(engine.open(FEB, config, true, shared.clone()));
        let driver = Driver {
            feb: c::Feb::default(),
            settings: c::Settings { ring_packets, window: 8, first_packet: 0, protocol: 2 },
            ring: vec![0; ring_packets as usize * fade10g::PACKET_BYTES],
            head: 0,
            tail: 0,
            next_tick: None,
            sent: Vec::new(),
        };
        Both { engine, shared, reader, driver, sent: Vec::new(), now: Duration::ZERO }
    }

    fn now_ms(&self) -> u64 {
        self.now.as_millis() as u64
    }

    fn command(&mut self, code: u16) {
        let command =
            Command { code, argument: 0, timeout: Duration::from_millis(100), retries: 0, reply: Box::new(|_| ()) };
        self.engine.command(FEB, command, self.now, &mut |frame: &[u8]| self.sent.push(frame.to_vec()));
    }

    fn start(&mut self) {
        self.command(fade10g::CMD_START);
        self.driver.start(None);
        self.compare();
        self.now += Duration::from_millis(20);
        self.engine.poll(self.now, &mut |frame: &[u8]| self.sent.push(frame.to_vec()));
        self.driver.start(Some(self.now_ms()));
        self.compare();
    }

    fn stop(&mut self) {
        self.command(fade10g::CMD_STOP);
        self.driver.stop(self.now_ms());
        self.wait(0);
    }

    fn wait(&mut self, ms: u64) {
        for step in 0..=ms {
            self.now += Duration::from_millis(step.min(1));
            self.engine.poll(self.now, &mut |frame: &[u8]| self.sent.push(frame.to_vec()));
            self.driver.tick(self.now_ms());
        }
        self.compare();
    }

    fn frame(&mut self, frame: &[u8]) {
        self.engine.frame(frame, self.now, &mut |frame: &[u8]| self.sent.push(frame.to_vec()));
        self.driver.frame(frame, self.now_ms());
        self.wait(0);
    }

    fn compare(&self) {
        let (ours, theirs) = (self.shared.counters.read(), FebCounts::from(self.driver.feb.stats));
        assert_eq!(self.sent.len(), self.driver.sent.len(), "{ours:?} {theirs:?}");
        assert_eq!(self.sent.last(), self.driver.sent.last());
        assert_eq!(ours, theirs);
        assert_eq!((self.shared.head(), self.shared.tail()), (self.driver.tail, self.driver.head));
        let state = match self.shared.phase() {
            Phase::Idle => 0,
            Phase::Running => 1,
            Phase::Complete => 2,
            Phase::Aborted => 3,
        };
        assert_eq!(state, self.driver.feb.state);
    }

    fn read(&mut self) -> usize {
        let (data, driver) = (self.reader.available(), &self.driver);
        let at = driver.tail as usize % driver.ring.len();
        let first = data.len().min(driver.ring.len() - at);
        assert!(data[..first] == driver.ring[at..at + first] && data[first..] == driver.ring[..data.len() - first]);
        let bytes = data.len();
        self.reader.release(bytes);
        self.driver.tail += bytes as u64;
        bytes
    }
}

fn data_frame(random: &mut fastrand::Rng, number: u64) -> Vec<u8> {
    let mut frame = vec![0; DATA_FRAME_LEN];
    let (set, packet) = ((number / 32) as u16, (number % 32) as u8);
    let head = frame.first_chunk_mut::<DATA_HEADER_LEN>().unwrap();
    Data { set, packet, delay: random.u32(..), payload: &[] }.write_header(PC, FEB, head);
    frame[DATA_HEADER_LEN..DATA_HEADER_LEN + 8].copy_from_slice(&random.u64(..).to_le_bytes());
    frame
}

#[test]
fn random_traces_give_the_same_actions() {
    let seed = std::env::var("FADELINK_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1);
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut bytes, mut complete, mut aborted, mut errors, mut full) = (0, 0, 0, 0, 0);
    for _ in 0..40 {
        let mut both = Both::new(8 << random.u32(..3));
        // Before START: strays, and RESET for them.
        for _ in 0..random.usize(..4) {
            both.frame(&data_frame(&mut random, 5));
            both.wait(random.u64(..60));
        }
        both.start();
        if random.u8(..4) == 0 {
            both.frame(&data_frame(&mut random, 32 * 9));
            both.wait(random.u64(..150));
        }
        let steps = if random.u8(..5) == 0 { 0 } else { 1200 };
        for step in 0..steps {
            let next = both.driver.feb.sets.in_order;
            match random.u8(..100) {
                0..3 => bytes += both.read(),
                8..10 => both.wait(random.u64(..40)),
                10 if step > 600 && random.u8(..4) == 0 => both.stop(),
                11 if random.u8(..8) == 0 => {
                    let mut frame = data_frame(&mut random, next);
                    frame[19] |= random.u8(..);
                    frame[18] |= random.u8(..4) | if random.bool() { 0x80 } else { 0 };
                    both.frame(&frame);
                }
                12 => {
                    let mut frame = data_frame(&mut random, next);
                    frame.truncate(random.usize(20..DATA_FRAME_LEN));
                    both.frame(&frame);
                }
                13 if random.u8(..20) == 0 => {
                    let sets = random.u64(2..60_000);
                    let frame = data_frame(&mut random, next + 32 * sets);
                    both.frame(&frame);
                }
                _ => {
                    let offset = *random.choice(&[0, 0, 0, 0, 1, 2, 3, 31, -1, -5]).unwrap();
                    both.frame(&data_frame(&mut random, next.saturating_add_signed(offset)));
                }
            }
        }
        bytes += both.read();
        both.stop();
        while both.driver.feb.sets.ahead != 0 {
            both.frame(&data_frame(&mut random, both.driver.feb.sets.in_order));
        }
        both.wait(700);
        bytes += both.read();
        let (state, stats) = (both.driver.feb.state, both.driver.feb.stats);
        (complete, aborted) = (complete + u32::from(state == 2), aborted + u32::from(state == 3));
        (errors, full) = (errors + stats.protocol_errors, full + stats.no_space);
        if state == 2 && stats.packets > 40 {
            both.frame(&data_frame(&mut random, both.driver.feb.sets.in_order - 1));
            both.frame(&data_frame(&mut random, both.driver.feb.sets.in_order));
        }
        // And once more.
        both.start();
        both.frame(&data_frame(&mut random, 0));
        both.compare();
    }
    assert!(bytes > 1_000_000 && errors > 20 && full > 50, "{bytes} {errors} {full}");
    assert!(complete > 20 && aborted > 2 && complete + aborted == 40, "{complete} {aborted}");
}

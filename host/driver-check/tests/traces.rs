//! Whole traces through the engine and through the driver's rules: the same frames and commands go in,
//! the same frames must come out, the same packets must be stored, and the counters must be equal.
//! FADELINK_SEED reproduces a run.

use std::sync::Arc;
use std::time::Duration;

use fadelink_driver_check as c;
use fadelink_receiver::counters::FebCounts;
use fadelink_receiver::engine::{Command, Engine};
use fadelink_receiver::shared::{Phase, Reader, Shared};
use fadelink_receiver::FebConfig;
use fadelink_wire::ethernet::Header;
use fadelink_wire::fade10g::{self, Data, Request, Response, DATA_FRAME_LEN, PACKET_BYTES, REQUEST_LEN};
use fadelink_wire::{MacAddr, Protocol};

const PC: MacAddr = MacAddr([2, 0xfa, 0xde, 0, 0, 0xf0]);
const FEB: MacAddr = MacAddr([2, 0xfa, 0xde, 0, 0, 1]);

/// What the kernel does around the rules, with a ring in plain memory.
struct Driver {
    feb: c::Feb,
    settings: c::Settings,
    ring: Vec<u8>,
    head: u64,
    tail: u64,
    origin: u64,
    sent: Vec<Vec<u8>>,
}

impl Driver {
    fn new(config: FebConfig) -> Driver {
        let FebConfig { ring_packets, window, first_packet, .. } = config;
        Driver {
            feb: c::Feb::default(),
            settings: c::Settings { ring_packets, window, first_packet, protocol: 0 },
            ring: vec![0; ring_packets as usize * PACKET_BYTES],
            head: 0,
            tail: 0,
            origin: 0,
            sent: Vec::new(),
        }
    }

    fn send_command(&mut self, code: u16, csn: u16, argument: u32) {
        let mut out = [0; REQUEST_LEN];
        // SAFETY: memory of the sizes that the function names.
        unsafe { c::fade_command(out.as_mut_ptr(), FEB.0.as_ptr(), PC.0.as_ptr(), code, csn, argument) };
        self.sent.push(out.to_vec());
    }

    /// `csn`: the engine draws its first one at random, so the driver is given it.
    fn command(&mut self, code: u16, csn: u16, argument: u32) {
        self.feb.csn = csn.wrapping_sub(1);
        // SAFETY: a live FEB.
        let csn = unsafe { c::fade_feb_command(&raw mut self.feb, code) };
        self.feb.stats.commands += 1;
        self.send_command(code, csn, argument);
    }

    fn frame(&mut self, frame: &[u8], now_ms: u64) {
        let (mut fields, mut actions) = (c::Frame::default(), c::Actions::default());
        let final_word = frame.last_chunk::<8>().copied().unwrap_or_default();
        // SAFETY: the frame is longer than what is looked at, or its length says so; the rest is live.
        let kind = unsafe { c::fade_parse(frame.as_ptr(), frame.len(), final_word.as_ptr(), &raw mut fields) };
        if matches!(kind, c::Kind::Truncated | c::Kind::EtherType | c::Kind::Version | c::Kind::Type) {
            return;
        }
        // SAFETY: live structures.
        unsafe {
            c::fade_feb_take(
                &raw mut self.feb,
                &raw const self.settings,
                kind,
                &raw const fields,
                self.tail,
                now_ms,
                &raw mut actions,
            );
        }
        // SAFETY: live windows.
        unsafe {
            if actions.begun {
                self.origin = c::fade_window_slot(&raw const self.feb.window, 0) * PACKET_BYTES as u64;
                (self.head, self.tail) = (0, 0);
            }
            if actions.store {
                let at = actions.slot as usize * PACKET_BYTES;
                self.ring[at..at + PACKET_BYTES].copy_from_slice(&frame[fade10g::DATA_HEADER_LEN..]);
                self.head = c::fade_window_bytes(&raw const self.feb.window);
            }
        }
        if actions.reset {
            self.send_command(fade10g::CMD_RESET, 0, 0);
        }
        if actions.confirm {
            let mut out = [0; REQUEST_LEN];
            // SAFETY: memory of the sizes that the function names.
            unsafe { c::fade_ack(out.as_mut_ptr(), FEB.0.as_ptr(), PC.0.as_ptr(), &raw const fields) };
            self.sent.push(out.to_vec());
        }
        if actions.answered && self.feb.answer.code == fade10g::CMD_START && self.feb.answer.value != 0 {
            // As fade_start(): RESET, and another START when frames under way have come.
            self.feb.stats.resets += 1;
            self.send_command(fade10g::CMD_RESET, 0, 0);
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
    fn new(config: FebConfig) -> Both {
        let (shared, reader) = Shared::new(config.ring_packets).unwrap();
        let mut engine = Engine::new(PC, false, Arc::default());
        assert!(engine.open(FEB, config, true, shared.clone()));
        Both { engine, shared, reader, driver: Driver::new(config), sent: Vec::new(), now: Duration::ZERO }
    }

    fn command(&mut self, code: u16, argument: u32) {
        let before = self.sent.len();
        let command =
            Command { code, argument, timeout: Duration::from_secs(1000), retries: 0, reply: Box::new(|_| ()) };
        self.engine.command(FEB, command, self.now, &mut |frame: &[u8]| self.sent.push(frame.to_vec()));
        if let Some(frame) = self.sent.get(before) {
            let Ok((_, Request::Command { csn, .. })) = fade10g::parse_request(frame) else { panic!("a command") };
            self.driver.command(code, csn, argument);
        }
    }

    fn frame(&mut self, frame: &[u8]) {
        self.engine.frame(frame, self.now, &mut |frame: &[u8]| self.sent.push(frame.to_vec()));
        self.driver.frame(frame, self.now.as_millis() as u64);
        self.compare();
    }

    /// The time of a START's repetition, after RESET.
    fn repeat_start(&mut self) {
        self.now += Duration::from_millis(21);
        let before = self.sent.len();
        self.engine.poll(self.now, &mut |frame: &[u8]| self.sent.push(frame.to_vec()));
        if let Some(frame) = self.sent.get(before) {
            let Ok((_, Request::Command { csn, code, argument })) = fade10g::parse_request(frame) else { panic!() };
            self.driver.command(code, csn, argument);
        }
    }

    fn compare(&self) {
        let (ours, theirs) = (self.shared.counters.read(), FebCounts::from(self.driver.feb.stats));
        assert_eq!(self.sent.len(), self.driver.sent.len(), "{ours:?} {theirs:?}");
        assert_eq!(self.sent.last(), self.driver.sent.last());
        assert_eq!(ours, theirs);
        assert_eq!((self.shared.head(), self.shared.tail()), (self.driver.tail, self.driver.head));
        assert_eq!(self.shared.phase() == Phase::Complete, self.driver.feb.state == 2);
    }

    /// The reader takes all; what both stored is the same.
    fn read(&mut self) -> usize {
        let (data, driver) = (self.reader.available(), &self.driver);
        let size = driver.ring.len();
        let at = ((driver.origin + driver.tail) as usize) % size;
        let first = data.len().min(size - at);
        assert!(data[..first] == driver.ring[at..at + first] && data[first..] == driver.ring[..data.len() - first]);
        let bytes = data.len();
        self.reader.release(bytes);
        self.driver.tail += bytes as u64;
        bytes
    }
}

fn data_frame(random: &mut fastrand::Rng, number: u32, last: Option<u64>, response: Option<Response>) -> Vec<u8> {
    let mut payload = [0u8; PACKET_BYTES];
    payload[..8].copy_from_slice(&random.u64(..).to_le_bytes());
    if let Some(words) = last {
        payload[PACKET_BYTES - 8..].copy_from_slice(&words.to_le_bytes());
    }
    let (sequence, delay) = (random.u16(..), random.u32(..));
    let data = Data { sequence, packet: number, delay, response, last, payload: &payload };
    let mut frame = vec![0; DATA_FRAME_LEN];
    data.write(PC, FEB, frame.as_mut_slice().try_into().unwrap()).unwrap();
    frame
}

#[test]
fn random_traces_give_the_same_actions() {
    let seed = std::env::var("FADELINK_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1);
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut bytes, mut begun, mut complete, mut resets) = (0, 0, 0, 0);
    for _ in 0..60 {
        let window = random.u32(1..=64);
        let ring_packets = u64::from(window.next_power_of_two()) << random.u32(..2);
        let config =
            FebConfig { ring_packets, window, first_packet: random.u32(..), protocol: Some(Protocol::Fade10g) };
        let mut both = Both::new(config);
        for _ in 0..1500 {
            both.now += Duration::from_millis(random.u64(..4));
            // The response that would be right now, sometimes spoilt.
            let pending = &both.driver.feb;
            let mut response = Response { code: pending.pending_code, csn: pending.csn, value: 0 };
            let spoilt = random.u8(..20);
            match spoilt {
                0 => response.csn ^= 1,
                1 => response.code ^= 1,
                2 | 3 => response.value = random.u64(1..3),
                _ => {}
            }
            let start_again = pending.pending_code == fade10g::CMD_START && !pending.pending && !pending.started;
            let in_order = pending.window.in_order as u32;
            let near = config.first_packet.wrapping_add(in_order);
            match random.u8(..100) {
                _ if start_again => both.repeat_start(),
                // One command at a time, as a mutex of the driver sees to.
                0..6 if !pending.pending => {
                    let codes = [fade10g::CMD_START, fade10g::CMD_STOP, fade10g::CMD_IDENTIFY, 0x0100, 0xffff];
                    both.command(*random.choice(&codes).unwrap(), random.u32(..));
                }
                6..16 => both.frame(&response.to_frame(PC, FEB)),
                16..18 => both.frame(&Response { code: 0, csn: 0, value: 0 }.to_frame(PC, FEB)),
                18..24 => bytes += both.read(),
                24..28 => {
                    let mut frame = data_frame(&mut random, near, None, None);
                    match random.u8(..3) {
                        0 => frame.truncate(random.usize(..DATA_FRAME_LEN)),
                        1 => frame.push(0),
                        _ => {
                            let at = random.usize(12..40);
                            frame[at] ^= 1 << random.u8(..8);
                        }
                    }
                    // The driver is asked only about frames for this computer from this FEB.
                    if Header::split(&frame).is_some_and(|(header, _)| header.src == FEB) {
                        both.frame(&frame);
                    }
                }
                28..30 => {
                    let words = random.u64(..1030);
                    let number = near.wrapping_add(random.u32(..3));
                    let frame = data_frame(&mut random, number, Some(words), None);
                    both.frame(&frame);
                }
                _ => {
                    let number =
                        near.wrapping_add(*random.choice(&[0, 0, 0, 1, 2, 3, u32::MAX, 63, 64, 1000]).unwrap());
                    let riding = (spoilt < 3 || random.u8(..10) == 0).then_some(response).filter(|r| r.code != 0);
                    let frame = data_frame(&mut random, number, None, riding);
                    both.frame(&frame);
                }
            }
            begun += u32::from(both.driver.feb.started);
            complete += u32::from(both.driver.feb.state == 2);
        }
        resets += both.driver.feb.stats.resets;
        both.compare();
    }
    assert!(
        bytes > 10_000_000 && begun > 10_000 && complete > 100 && resets > 100,
        "{bytes} {begun} {complete} {resets}"
    );
}

//! The driver's rules and the engine side by side: both get the same frames and commands.

use std::sync::mpsc::{channel, Receiver as Replies};
use std::sync::Arc;
use std::time::Duration;

use fadelink_driver_check as c;
use fadelink_receiver::abi;
use fadelink_receiver::counters::FebCounts;
use fadelink_receiver::engine::{Command, CommandError, Engine};
use fadelink_receiver::numbers::Numbers;
use fadelink_receiver::shared::{Phase, Reader, Shared};
use fadelink_receiver::FebConfig;
use fadelink_wire::fade10g::{self, PACKET_BYTES, REQUEST_LEN};
use fadelink_wire::{fade1, MacAddr, Protocol, Resets};

pub const PC: MacAddr = MacAddr([2, 0xfa, 0xde, 0, 0, 0xf0]);
pub const FEB: MacAddr = MacAddr([2, 0xfa, 0xde, 0, 0, 1]);

/// Time-out of START and its attempts after the first.
pub const TIMEOUT_MS: u32 = 20;
pub const RETRIES: u32 = 8;

/// What the kernel does around the rules, with a ring in plain memory.
pub struct Driver {
    pub feb: c::DriverFeb,
    settings: c::DriverSettings,
    ring: Vec<u8>,
    head: u64,
    tail: u64,
    origin: u64,
    sent: Vec<Vec<u8>>,
    /// Code and argument of the command that is sent when IDENTIFY is answered.
    asked_for: Option<(u16, u32)>,
}

impl Driver {
    fn new(config: FebConfig, owned: bool, csn: u16) -> Driver {
        let FebConfig { ring_packets, window, first_packet, .. } = config;
        let settings = c::DriverSettings {
            ring_packets,
            window,
            first_packet,
            protocol: abi::protocol(config.protocol()),
            firmware: abi::firmware(config.firmware),
            words: abi::words(config.word_order),
        };
        let mut feb = c::DriverFeb::default();
        // SAFETY: live structures.
        unsafe { c::fade_feb_init(&raw mut feb, &raw const settings, owned, csn) };
        let ring = vec![0; ring_packets as usize * PACKET_BYTES];
        Driver { feb, settings, ring, head: 0, tail: 0, origin: 0, sent: Vec::new(), asked_for: None }
    }

    fn exchange(&mut self, code: u16, argument: u32) {
        // SAFETY: a live FEB.
        let csn = unsafe { c::fade_feb_command(&raw mut self.feb, code) };
        self.feb.stats.commands += 1;
        self.send(c::Request { fade1: false, code, csn, argument });
    }

    fn send(&mut self, request: c::Request) {
        let mut out = [0; REQUEST_LEN];
        let (feb, pc) = (FEB.0.as_ptr(), PC.0.as_ptr());
        // SAFETY: memory of the sizes that the functions name.
        unsafe {
            if request.fade1 {
                c::fade1_request(out.as_mut_ptr(), feb, pc, request.code, request.csn, request.argument);
            } else {
                c::fade_command(out.as_mut_ptr(), feb, pc, request.code, request.csn, request.argument);
            }
        }
        self.sent.push(out.to_vec());
    }

    fn command(&mut self, code: u16, argument: u32, now_ms: u64) {
        // SAFETY: a live FEB.
        unsafe {
            match code {
                fade10g::CMD_START => c::fade_feb_start(&raw mut self.feb, TIMEOUT_MS, RETRIES, now_ms),
                fade10g::CMD_STOP if c::fade1_feb_stop(&raw mut self.feb, now_ms) => {}
                // FADE v1 has no others.
                _ if self.feb.protocol == 2 => {}
                _ if c::fade_feb_asks(&raw const self.feb, code) => {
                    self.asked_for = Some((code, argument));
                    self.exchange(fade10g::CMD_IDENTIFY, 0);
                }
                _ => self.exchange(code, argument),
            }
        }
        self.tick(now_ms);
    }

    fn begin(&mut self) {
        // SAFETY: a live FEB.
        self.origin = unsafe { c::fade_feb_origin(&raw const self.feb) };
        (self.head, self.tail) = (0, 0);
    }

    fn tick(&mut self, now_ms: u64) {
        loop {
            let mut tick = c::Tick::default();
            // SAFETY: live structures.
            unsafe { c::fade_feb_tick(&raw mut self.feb, &raw const self.settings, now_ms, &raw mut tick) };
            tick.requests[..tick.count as usize].iter().for_each(|request| self.send(*request));
            if tick.begun {
                self.begin();
            }
            if !tick.again || tick.next > now_ms {
                return;
            }
        }
    }

    fn frame(&mut self, frame: &[u8], now_ms: u64) {
        let (mut fields, mut actions) = (c::Frame::default(), c::Actions::default());
        let final_word = frame.last_chunk::<8>().copied().unwrap_or_default();
        // SAFETY: the frame is longer than what is looked at, or its length says so; the rest is live.
        let kind = unsafe { c::fade_parse(frame.as_ptr(), frame.len(), final_word.as_ptr(), &raw mut fields) };
        if matches!(kind, c::Kind::Truncated | c::Kind::EtherType | c::Kind::Version | c::Kind::Type) {
            return;
        }
        let (feb, settings) = (&raw mut self.feb, &raw const self.settings);
        // SAFETY: live structures.
        unsafe {
            c::fade_feb_take(feb, settings, kind, &raw const fields, self.tail, now_ms, &raw mut actions);
        }
        if let Some((code, argument)) = self.asked_for.take_if(|_| !self.feb.pending) {
            self.exchange(code, argument);
        }
        if actions.begun {
            self.begin();
        }
        if actions.store {
            // SAFETY: a live FEB.
            let bytes = unsafe { c::fade_feb_packet_bytes(&raw const self.feb) } as usize;
            let at = actions.slot as usize * bytes;
            let place = &mut self.ring[at..at + bytes];
            place.copy_from_slice(&frame[frame.len() - bytes..]);
            if self.feb.swap > 0 {
                place.chunks_exact_mut(self.feb.swap as usize).for_each(<[u8]>::reverse);
            }
            // SAFETY: a live FEB.
            self.head = unsafe { c::fade_feb_bytes(&raw const self.feb) };
        }
        if actions.reset {
            let (fade1, code) = match kind {
                c::Kind::Data1 => (true, fade1::TYPE_RESET),
                _ => (false, fade10g::CMD_RESET),
            };
            self.send(c::Request { fade1, code, csn: 0, argument: 0 });
        }
        if actions.confirm && kind == c::Kind::Data1 {
            let c::Frame { sequence, packet, .. } = fields;
            self.ack(&c::Confirmation { sequence, packet, fade1: true, ..Default::default() });
        } else if actions.confirm {
            self.confirm();
        }
        if actions.tick {
            self.tick(now_ms);
        }
    }
}

impl Driver {
    /// As behind frames that came together.
    fn confirm(&mut self) {
        let mut what = c::Confirmation::default();
        // SAFETY: live structures.
        if unsafe { c::fade_feb_confirm(&raw mut self.feb, &raw mut what) } {
            self.ack(&what);
        }
    }

    fn ack(&mut self, what: &c::Confirmation) {
        let mut out = [0; REQUEST_LEN];
        // SAFETY: memory of the sizes that the function names.
        unsafe { c::fade_ack(out.as_mut_ptr(), FEB.0.as_ptr(), PC.0.as_ptr(), what) };
        self.sent.push(out.to_vec());
    }
}

/// Engine and driver, side by side.
pub struct Both {
    engine: Engine,
    pub shared: Arc<Shared>,
    reader: Reader,
    pub driver: Driver,
    sent: Vec<Vec<u8>>,
    pub now: Duration,
    started: Option<Replies<Result<u64, CommandError>>>,
}

impl Both {
    /// `owned`: opened for its data; else for commands, beside another program.
    pub fn new(config: FebConfig, owned: bool, seed: u64) -> Both {
        let (shared, reader) = Shared::new(config.ring_packets).unwrap();
        let mut engine = Engine::new(PC, false, Arc::default());
        let csn = fastrand::Rng::with_seed(seed).u16(..);
        assert!(engine.open(FEB, config, owned, shared.clone(), Numbers::private(Some(csn))));
        let driver = Driver::new(config, owned, csn);
        Both { engine, shared, reader, driver, sent: Vec::new(), now: Duration::ZERO, started: None }
    }

    fn now_ms(&self) -> u64 {
        self.now.as_millis() as u64
    }

    /// True if a command may be sent: one at a time, as a mutex of the driver sees to.
    pub fn is_free(&self) -> bool {
        let feb = &self.driver.feb;
        !(feb.pending || feb.start.stage > 0 && feb.start.asked)
    }

    pub fn command(&mut self, code: u16, argument: u32) {
        let is_start = code == fade10g::CMD_START;
        let (tell, outcome) = channel();
        let reply = Box::new(move |result| tell.send(result).unwrap_or(()));
        let timeout = if is_start { Duration::from_millis(TIMEOUT_MS.into()) } else { Duration::from_secs(100_000) };
        let retries = if is_start { RETRIES } else { 0 };
        let command = Command { code, argument, timeout, retries, reply };
        self.engine.command(FEB, command, self.now, &mut |frame: &[u8]| self.sent.push(frame.to_vec()));
        if is_start {
            self.started = Some(outcome);
        }
        self.driver.command(code, argument, self.now_ms());
        self.compare();
    }

    pub fn frame(&mut self, frame: &[u8]) {
        self.engine.frame(frame, self.now, &mut |frame: &[u8]| self.sent.push(frame.to_vec()));
        self.engine.poll(self.now, &mut |frame: &[u8]| self.sent.push(frame.to_vec()));
        self.driver.frame(frame, self.now_ms());
        self.compare();
    }

    /// Behind frames that came together.
    pub fn confirm(&mut self) {
        self.engine.confirm(&mut |frame: &[u8]| self.sent.push(frame.to_vec()));
        self.driver.confirm();
        self.compare();
    }

    pub fn wait(&mut self, ms: u64) {
        self.confirm();
        for step in 0..=ms {
            self.now += Duration::from_millis(step.min(1));
            self.engine.poll(self.now, &mut |frame: &[u8]| self.sent.push(frame.to_vec()));
            self.driver.tick(self.now_ms());
        }
        self.compare();
    }

    /// What both have sent since the last call.
    pub fn sent(&mut self) -> Vec<Vec<u8>> {
        self.driver.sent.clear();
        std::mem::take(&mut self.sent)
    }

    fn compare(&mut self) {
        let (ours, theirs) = (self.shared.counters.read(), FebCounts::from(self.driver.feb.stats));
        // Of what is sent at one time the order does not matter.
        let sorted = |frames: &[Vec<u8>]| {
            let mut frames = frames.to_vec();
            frames.sort();
            frames
        };
        assert_eq!(sorted(&self.sent), sorted(&self.driver.sent), "{ours:?} {theirs:?}");
        if self.sent.len() > 1000 {
            self.sent();
        }
        // The driver does not look into packets.
        assert_eq!(FebCounts { contradictions: 0, ..ours }, theirs);
        assert_eq!((self.shared.head(), self.shared.tail()), (self.driver.tail, self.driver.head));
        let state = match self.shared.phase() {
            Phase::Idle => 0,
            Phase::Running => 1,
            Phase::Complete => 2,
            Phase::Aborted => 3,
        };
        let feb = &self.driver.feb;
        assert_eq!((state, self.shared.ending() as u32), (feb.state, feb.ending));
        if feb.started {
            let resets = feb
                .resets_told
                .then(|| Resets { count: feb.resets, by: (feb.reset_by != [0; 6]).then_some(MacAddr(feb.reset_by)) });
            assert_eq!((self.shared.told.number(), self.shared.told.resets()), (Some(feb.number), resets));
        }
        let kind = self.shared.kind().filter(|_| feb.started);
        if let Some(kind) = kind {
            assert_eq!(
                (abi::protocol(Some(kind.protocol)), abi::firmware(kind.firmware)),
                (feb.protocol, feb.firmware)
            );
        }
        if let Some(outcome) = self.started.as_ref().and_then(|started| started.try_recv().ok()) {
            let expected = match outcome {
                Ok(_) => 0,
                Err(CommandError::Timeout { .. }) => 1,
                Err(_) => 2,
            };
            assert_eq!((expected, false), (feb.start.outcome, feb.start.asked && feb.start.stage > 0), "{outcome:?}");
        }
    }

    /// The reader takes all; what both stored is the same.
    pub fn read(&mut self) -> Vec<u8> {
        let (data, driver) = (self.reader.available().to_vec(), &self.driver);
        let size = driver.ring.len();
        let at = ((driver.origin + driver.tail) as usize) % size;
        let first = data.len().min(size - at);
        assert!(data[..first] == driver.ring[at..at + first] && data[first..] == driver.ring[..data.len() - first]);
        self.reader.release(data.len());
        self.driver.tail += data.len() as u64;
        data
    }

    pub fn is_fade1(&self) -> bool {
        self.shared.kind().is_some_and(|kind| kind.protocol == Protocol::Fade1)
    }
}

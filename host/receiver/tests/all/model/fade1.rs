//! An engine with a FEB of FADE v1, and the frames of that FEB.

use std::sync::mpsc::{channel, Receiver as Replies};
use std::sync::Arc;
use std::time::Duration;

use fadelink_receiver::counters::LinkCounters;
use fadelink_receiver::engine::{Command, CommandError, Engine, FebConfig};
use fadelink_receiver::numbers::Numbers;
use fadelink_receiver::shared::{Reader, Shared};
use fadelink_wire::fade1::{self, Data, Request, State, DATA_FRAME_LEN, DATA_HEADER_LEN};
use fadelink_wire::{fade10g, MacAddr, Permit, Protocol, Resets};

pub const PC: MacAddr = MacAddr([2, 0xfa, 0xde, 0, 0, 0xf0]);
pub const FEB: MacAddr = MacAddr([2, 0xfa, 0xde, 0, 0, 1]);
pub const MS: Duration = Duration::from_millis(1);

pub fn config(protocol: Option<Protocol>) -> FebConfig {
    FebConfig { ring_packets: 16, window: 16, protocol, ..FebConfig::default() }
}

pub struct Bench {
    pub engine: Engine,
    pub link: Arc<LinkCounters>,
    pub reader: Reader,
    pub now: Duration,
    pub sent: Vec<Vec<u8>>,
    /// Of the START that was sent last.
    pub transmission: u16,
}

/// Its number, as [`Bench::requests`] gives it.
pub const START: Request = Request::Start { transmission: 0, permit: Some(Permit::NONE) };

impl Bench {
    pub fn new(protocol: Option<Protocol>) -> Bench {
        Bench::with(config(protocol))
    }

    pub fn with(config: FebConfig) -> Bench {
        let link = Arc::new(LinkCounters::default());
        let mut engine = Engine::new(PC, false, link.clone());
        let (shared, reader) = Shared::new(config.ring_packets).unwrap();
        assert!(engine.open(FEB, config, true, shared, Numbers::private(None)));
        Bench { engine, link, reader, now: Duration::ZERO, sent: Vec::new(), transmission: 0 }
    }

    pub fn command(&mut self, code: u16) -> Replies<Result<u64, CommandError>> {
        let (tell, outcome) = channel();
        let reply = Box::new(move |result| tell.send(result).unwrap_or(()));
        let command = Command { code, argument: 0, timeout: 10 * MS, retries: 5, reply };
        self.engine.command(FEB, command, self.now, &mut |frame: &[u8]| self.sent.push(frame.to_vec()));
        outcome
    }

    pub fn frame(&mut self, frame: &[u8]) {
        self.engine.frame(frame, self.now, &mut |frame: &[u8]| self.sent.push(frame.to_vec()));
    }

    /// What a Fadelink board answers.
    pub fn state(&mut self, phase: fade1::Phase, packets: u32) {
        self.state_of(self.transmission, phase, packets);
    }

    pub fn state_of(&mut self, transmission: u16, phase: fade1::Phase, packets: u32) {
        self.frame(
            &State { phase, transmission, packets, resets: None, checksum: None, permit: None }.to_frame(PC, FEB),
        );
    }

    pub fn state_with(&mut self, transmission: u16, phase: fade1::Phase, resets: Option<Resets>) {
        self.frame(&State { phase, transmission, packets: 3, resets, checksum: None, permit: None }.to_frame(PC, FEB));
    }

    pub fn confirm(&mut self) {
        self.engine.confirm(&mut |frame: &[u8]| self.sent.push(frame.to_vec()));
    }

    pub fn wait(&mut self, time: Duration) {
        self.now += time;
        self.engine.poll(self.now, &mut |frame: &[u8]| self.sent.push(frame.to_vec()));
    }

    /// What was sent of FADE v1 since the last call, and how many frames of FADE-10G.
    pub fn requests(&mut self) -> (Vec<Request>, usize) {
        let all = self.sent.len();
        let mut of_v1: Vec<_> =
            self.sent.drain(..).filter_map(|frame| Some(fade1::parse_request(&frame).ok()?.1)).collect();
        for request in &mut of_v1 {
            if let Request::Start { transmission, .. } = request {
                self.transmission = std::mem::take(transmission);
            }
        }
        let others = all - of_v1.len();
        (of_v1, others)
    }

    /// RESETs of FADE v1, each round met with silence.
    pub fn reset_rounds(&mut self) {
        for _ in 0..3 {
            assert_eq!(self.requests().0, [Request::Reset; 3]);
            self.wait(20 * MS);
        }
    }

    /// START, begun by its first packet.
    pub fn started() -> Bench {
        Bench::started_with(config(Some(Protocol::Fade1)))
    }

    pub fn started_with(config: FebConfig) -> Bench {
        let mut bench = Bench::with(config);
        let outcome = bench.command(fade10g::CMD_START);
        bench.reset_rounds();
        assert_eq!(bench.requests(), (vec![START], 0));
        bench.frame(&data(0, 0));
        assert_eq!(outcome.try_recv().unwrap(), Ok(0));
        assert_eq!(bench.requests().0, [Request::Ack { set: 0, packet: 0, stored: None }]);
        bench
    }
}

pub fn data(set: u16, packet: u8) -> Vec<u8> {
    data_of(set, packet, false)
}

/// `block_acks`: the FEB takes them.
pub fn data_of(set: u16, packet: u8, block_acks: bool) -> Vec<u8> {
    let mut frame = vec![packet; DATA_FRAME_LEN];
    let head = frame.first_chunk_mut::<DATA_HEADER_LEN>().unwrap();
    Data { set, packet, retry: fade1::RETRY_FADELINK, delay: 7, block_acks, same_words: true, payload: &[] }
        .write_header(PC, FEB, head);
    frame
}

//! An engine with FEBs of FADE-10G, its time, what it sent.

use std::sync::mpsc::{channel, Receiver as Replies};
use std::sync::Arc;
use std::time::Duration;

use fadelink_receiver::counters::LinkCounters;
use fadelink_receiver::engine::{Actions, Command, CommandError, Engine, FebConfig};
use fadelink_receiver::numbers::Numbers;
use fadelink_receiver::shared::{Reader, Shared};
use fadelink_wire::fade10g::{self, Identity, Request, Response};
use fadelink_wire::MacAddr;

pub const PC: MacAddr = MacAddr([2, 0xfa, 0xde, 0, 0, 0xf0]);

pub fn feb_mac(i: u8) -> MacAddr {
    MacAddr([2, 0xfa, 0xde, 0, 0, i])
}

/// What a FEB tells that is new and has no options.
pub const PLAIN: Identity = Identity {
    window: 16,
    running: false,
    stopping: false,
    block_acks: false,
    csn: None,
    transmission: 0,
    resets: None,
    checksum: false,
    same_words: false,
};

/// An engine, its time, what it sent.
pub struct Bench {
    pub engine: Engine,
    pub link: Arc<LinkCounters>,
    pub now: Duration,
    pub sent: Vec<Vec<u8>>,
    pub elsewhere: Vec<MacAddr>,
}

pub struct Collect<'a>(pub &'a mut Vec<Vec<u8>>, pub &'a [MacAddr]);

impl Actions for Collect<'_> {
    fn send(&mut self, frame: &[u8]) {
        self.0.push(frame.to_vec());
    }

    fn opened_elsewhere(&mut self, feb: MacAddr) -> bool {
        self.1.contains(&feb)
    }
}

pub type Outcome = Replies<Result<u64, CommandError>>;

impl Bench {
    pub fn new() -> Bench {
        let link = Arc::new(LinkCounters::default());
        let engine = Engine::new(PC, false, link.clone());
        Bench { engine, link, now: Duration::ZERO, sent: Vec::new(), elsewhere: Vec::new() }
    }

    pub fn open(&mut self, mac: MacAddr, config: FebConfig) -> Reader {
        let (shared, reader) = Shared::new(config.ring_packets).unwrap();
        assert!(self.engine.open(mac, config, true, shared, Numbers::private(None)));
        reader
    }

    pub fn frame(&mut self, frame: &[u8]) {
        self.engine.frame(frame, self.now, &mut Collect(&mut self.sent, &self.elsewhere));
    }

    pub fn command(&mut self, mac: MacAddr, code: u16, argument: u32, retries: u32) -> Outcome {
        let (tell, outcome) = channel();
        let timeout = Duration::from_millis(10);
        let reply = Box::new(move |result| tell.send(result).unwrap_or(()));
        let command = Command { code, argument, timeout, retries, reply };
        self.engine.command(mac, command, self.now, &mut Collect(&mut self.sent, &self.elsewhere));
        outcome
    }

    pub fn wait(&mut self, time: Duration) {
        self.now += time;
        self.engine.poll(self.now, &mut Collect(&mut self.sent, &self.elsewhere));
    }

    /// Commands and ACKs sent since the last call.
    pub fn requests(&mut self) -> Vec<Request> {
        self.sent.drain(..).map(|frame| fade10g::parse_request(&frame).unwrap().1).collect()
    }

    /// Confirms what was taken, as behind a batch of frames.
    pub fn confirm(&mut self) {
        self.engine.confirm(&mut Collect(&mut self.sent, &self.elsewhere));
    }

    /// Answers IDENTIFY, which was sent.
    pub fn identify(&mut self, mac: MacAddr, block_acks: bool) {
        self.identify_with(mac, Identity { block_acks, ..PLAIN });
    }

    pub fn identify_with(&mut self, mac: MacAddr, identity: Identity) {
        let Request::Command { code: fade10g::CMD_IDENTIFY, csn, .. } = self.requests()[0] else { panic!() };
        let value = identity.to_value();
        self.frame(&Response { code: fade10g::CMD_IDENTIFY, csn, value }.to_frame(PC, mac));
    }

    /// START, answered by a FEB that takes no block ACKs.
    pub fn started(&mut self, mac: MacAddr, config: FebConfig) -> Reader {
        self.started_with(mac, config, PLAIN)
    }

    pub fn started_with(&mut self, mac: MacAddr, config: FebConfig, identity: Identity) -> Reader {
        let shared = self.open(mac, config);
        let outcome = self.command(mac, fade10g::CMD_START, 0, 0);
        self.identify_with(mac, identity);
        let Request::Command { code: fade10g::CMD_START, csn, .. } = self.requests()[0] else { panic!() };
        self.frame(&Response { code: fade10g::CMD_START, csn, value: 0 }.to_frame(PC, mac));
        assert_eq!(outcome.try_recv().unwrap(), Ok(0));
        shared
    }

    /// STOP, answered.
    pub fn stop(&mut self, mac: MacAddr) {
        self.sent.clear();
        let outcome = self.command(mac, fade10g::CMD_STOP, 0, 0);
        self.identify(mac, false);
        let Request::Command { code: fade10g::CMD_STOP, csn, .. } = self.requests()[0] else { panic!() };
        self.frame(&Response { code: fade10g::CMD_STOP, csn, value: 0 }.to_frame(PC, mac));
        assert_eq!(outcome.try_recv().unwrap(), Ok(0));
    }
}

pub fn data(packet: u32, sequence: u16, last: Option<u64>) -> Vec<u8> {
    let mut payload = vec![packet as u8; fade10g::PACKET_BYTES];
    if let Some(words) = last {
        payload[fade10g::PACKET_BYTES - 8..].copy_from_slice(&words.to_le_bytes());
    }
    let data = fade10g::Data { sequence, packet, delay: 7, response: None, last, payload: &payload };
    let mut frame = [0; fade10g::DATA_FRAME_LEN];
    data.write(PC, feb_mac(1), &mut frame).unwrap();
    frame.to_vec()
}

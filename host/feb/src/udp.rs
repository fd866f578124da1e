//! A board with the UDP/IP stack (docs/protocol/udp.md): one stream and its slow control.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use fadelink_wire::udp::{self, Datagram, Request, CONTROL_BYTES, FILLER, PAYLOAD_MAX, STREAM_HEADER_BYTES};

use crate::feb::User;

/// How often the end of a run is sent, and how long after the last time.
const ENDS: u32 = 4;
const BETWEEN_ENDS: Duration = Duration::from_millis(1);
/// Shortest payload.
const PAYLOAD_MIN: u32 = 16;
/// State of the PTP port of a board without PTP.
const PTP_DISABLED: u32 = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    Running,
    /// What is there is sent, then the end.
    Stopping,
    /// The end of the run is sent so many times more.
    Ending(u32),
}

/// A board in software: no socket, no thread, time is a parameter.
pub struct UdpBoard<U> {
    /// What is behind the stream; its commands are not used.
    pub user: U,
    state: State,
    /// As it was set: a run may also end with its source.
    enabled: bool,
    peer: SocketAddrV4,
    payload: u32,
    checksum: u32,
    run: u32,
    /// Datagrams of this run, of the one before, and of all.
    datagrams: u32,
    last: u32,
    all: u32,
    /// Time from one datagram to the next, at least, and when the next is due.
    pace: Duration,
    due: Duration,
    /// The last request, and its answer: a repetition has it again.
    answered: Option<(SocketAddrV4, Request, [u8; CONTROL_BYTES])>,
    datagram: Box<[u8]>,
    /// Bytes of words that wait for the next datagram.
    filled: usize,
}

impl<U: User> UdpBoard<U> {
    /// A board that is idle. `payload`: bytes of its datagrams, as in the register; `pace`: time from one to the next, at least.
    ///
    /// # Panics
    /// If the payload is not one that the register takes.
    pub fn new(payload: u32, pace: Duration, user: U) -> UdpBoard<U> {
        assert!(is_payload(payload), "payload: expected 16 to 8972, a multiple of 4");
        UdpBoard {
            user,
            state: State::Idle,
            enabled: false,
            peer: SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0),
            payload,
            checksum: 1,
            run: 0,
            datagrams: 0,
            last: 0,
            all: 0,
            pace,
            due: Duration::ZERO,
            answered: None,
            datagram: vec![0; PAYLOAD_MAX].into(),
            filled: 0,
        }
    }

    /// Executes a request of the slow control; `None`: it is not a request.
    pub fn control(&mut self, from: SocketAddrV4, payload: &[u8]) -> Option<[u8; CONTROL_BYTES]> {
        let request = Request::parse(payload).ok()?;
        if let Some((client, before, answer)) = &self.answered {
            if *client == from && before.sequence == request.sequence && before.address == request.address {
                return Some(*answer);
            }
        }
        let done = match request.write {
            Some(value) => self.write(request.address, value).then_some(value),
            None => self.read(request.address),
        };
        let answer = match done {
            Some(value) => request.reply(udp::STATUS_DONE, value),
            None => request.reply(udp::STATUS_ADDRESS, 0),
        };
        self.answered = Some((from, request, answer));
        Some(answer)
    }

    fn read(&self, register: u32) -> Option<u32> {
        Some(match register {
            udp::REGISTER_IDENTITY => udp::IDENTITY,
            udp::REGISTER_ENABLE => self.enabled.into(),
            udp::REGISTER_PEER_IP => (*self.peer.ip()).into(),
            udp::REGISTER_PEER_PORT => self.peer.port().into(),
            udp::REGISTER_PAYLOAD => self.payload,
            udp::REGISTER_CHECKSUM => self.checksum,
            udp::REGISTER_RUN => self.run,
            udp::REGISTER_LAST => self.last,
            udp::REGISTER_PTP_STATE => PTP_DISABLED,
            udp::REGISTER_PTP_ROLE..=udp::REGISTER_PTP_STEPS => 0,
            udp::REGISTER_COUNTERS => self.all,
            _ => return None,
        })
    }

    /// False: there is no such register, or it does not take this value now.
    fn write(&mut self, register: u32, value: u32) -> bool {
        let idle = self.state == State::Idle;
        match register {
            udp::REGISTER_ENABLE if value == 0 => {
                self.enabled = false;
                self.end();
            }
            udp::REGISTER_ENABLE if value == 1 && self.enabled => {}
            udp::REGISTER_ENABLE if value == 1 && idle => self.begin(),
            udp::REGISTER_PEER_IP if idle => self.peer.set_ip(value.into()),
            udp::REGISTER_PEER_PORT if idle && value <= u16::MAX.into() => self.peer.set_port(value as u16),
            udp::REGISTER_PAYLOAD if idle && is_payload(value) => self.payload = value,
            udp::REGISTER_CHECKSUM => self.checksum = value,
            _ => return false,
        }
        true
    }

    fn begin(&mut self) {
        (self.state, self.enabled, self.filled) = (State::Running, true, 0);
        self.user.begin();
    }

    /// No more data comes: the run ends when what is there was sent.
    pub fn end(&mut self) {
        if self.state == State::Running {
            self.state = State::Stopping;
        }
    }

    /// True while no run goes on.
    pub fn is_idle(&self) -> bool {
        self.state == State::Idle
    }

    /// Number of the run that goes on, or is next.
    pub fn run(&self) -> u32 {
        self.run
    }

    /// The next datagram that is to be sent at `now`, and where to.
    pub fn give(&mut self, now: Duration) -> Option<(&[u8], SocketAddrV4)> {
        if now < self.due {
            return None;
        }
        match self.state {
            State::Idle => None,
            State::Running | State::Stopping => self.words(now),
            State::Ending(left) => {
                self.due = now + BETWEEN_ENDS;
                let end = Datagram { counter: self.last, run: self.run.wrapping_sub(1) as u8, end: true, words: &[] };
                self.state = if left > 1 { State::Ending(left - 1) } else { State::Idle };
                self.datagram[..STREAM_HEADER_BYTES].copy_from_slice(&end.header());
                Some((&self.datagram[..STREAM_HEADER_BYTES], self.peer))
            }
        }
    }

    /// The next datagram with words: a full one, or what is left at the end.
    fn words(&mut self, now: Duration) -> Option<(&[u8], SocketAddrV4)> {
        let room = (self.payload as usize - STREAM_HEADER_BYTES) / 8 * 8;
        let is_running = self.state == State::Running;
        if is_running {
            let free = &mut self.datagram[STREAM_HEADER_BYTES + self.filled..STREAM_HEADER_BYTES + room];
            self.filled += self.user.fill(free);
        }
        if self.filled < room && is_running {
            return None;
        }
        if self.filled == 0 {
            (self.last, self.run) = (self.datagrams, self.run.wrapping_add(1));
            (self.datagrams, self.state) = (0, State::Ending(ENDS));
            return self.give(now);
        }
        let words = std::mem::take(&mut self.filled);
        let end = STREAM_HEADER_BYTES + words;
        let (counter, run) = (self.datagrams, self.run as u8);
        let header = Datagram { counter, run, end: false, words: &self.datagram[STREAM_HEADER_BYTES..end] }.header();
        self.datagram[..STREAM_HEADER_BYTES].copy_from_slice(&header);
        let length = if words == room { self.payload as usize } else { end };
        self.datagram[end..length].fill(FILLER);
        self.datagrams = self.datagrams.wrapping_add(1);
        self.all = self.all.wrapping_add(1);
        self.due = now + self.pace;
        Some((&self.datagram[..length], self.peer))
    }
}

fn is_payload(bytes: u32) -> bool {
    (PAYLOAD_MIN..=PAYLOAD_MAX as u32).contains(&bytes) && bytes.is_multiple_of(4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::Status;

    /// Words from 0 up to a limit.
    struct Counter {
        next: u64,
        limit: u64,
    }

    impl User for Counter {
        fn begin(&mut self) {
            self.next = 0;
        }

        fn fill(&mut self, out: &mut [u8]) -> usize {
            let words = (out.len() as u64 / 8).min(self.limit - self.next);
            for word in out.chunks_exact_mut(8).take(words as usize) {
                word.copy_from_slice(&self.next.to_le_bytes());
                self.next += 1;
            }
            words as usize * 8
        }

        fn command(&mut self, _code: u16, _argument: u32, _status: &Status) -> u64 {
            0
        }
    }

    const CLIENT: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 9, 0, 1), 4000);

    struct Client {
        board: UdpBoard<Counter>,
        sequence: u32,
    }

    impl Client {
        fn ask(&mut self, address: u32, write: Option<u32>) -> Result<u32, u8> {
            self.sequence += 1;
            let request = Request { sequence: self.sequence, address, write };
            let answer = self.board.control(CLIENT, &request.to_bytes()).unwrap();
            assert_eq!(self.board.control(CLIENT, &request.to_bytes()).unwrap(), answer, "a repetition");
            let reply = udp::Reply::parse(&answer).unwrap();
            assert_eq!((reply.sequence, reply.address), (self.sequence, address));
            if reply.status == udp::STATUS_DONE {
                Ok(reply.value)
            } else {
                Err(reply.status)
            }
        }
    }

    #[test]
    fn a_run_by_slow_control() {
        let board = UdpBoard::new(100, Duration::ZERO, Counter { next: 0, limit: 25 });
        let mut client = Client { board, sequence: 0 };
        assert_eq!(client.ask(udp::REGISTER_IDENTITY, None), Ok(udp::IDENTITY));
        assert_eq!(client.ask(udp::REGISTER_RUN, Some(1)), Err(udp::STATUS_ADDRESS));
        assert_eq!(client.ask(udp::REGISTER_PAYLOAD, Some(17)), Err(udp::STATUS_ADDRESS));
        assert_eq!(client.ask(udp::REGISTER_PEER_IP, Some((*CLIENT.ip()).into())), Ok(0x0A09_0001));
        assert_eq!(client.ask(udp::REGISTER_PEER_PORT, Some(10000)), Ok(10000));
        assert_eq!(client.ask(udp::REGISTER_CHECKSUM, Some(0xFEDC_BA98)), Ok(0xFEDC_BA98));
        assert_eq!(client.ask(udp::REGISTER_CHECKSUM, None), Ok(0xFEDC_BA98), "all bits are kept");
        for run in 0..2 {
            assert_eq!(client.ask(udp::REGISTER_RUN, None), Ok(run));
            // A run that ended with its source leaves the register as it is.
            assert_eq!(client.ask(udp::REGISTER_ENABLE, None), Ok(run));
            assert_eq!(client.ask(udp::REGISTER_ENABLE, Some(0)), Ok(0));
            assert_eq!(client.ask(udp::REGISTER_ENABLE, Some(1)), Ok(1));
            assert_eq!(client.ask(udp::REGISTER_PEER_PORT, Some(9)), Err(udp::STATUS_ADDRESS), "it runs");
            let mut words = Vec::new();
            let mut take = |board: &mut UdpBoard<Counter>, now| {
                let Some((data, peer)) = board.give(now) else { return false };
                assert_eq!(peer.port(), 10000);
                let datagram = Datagram::parse(data).unwrap();
                assert_eq!((datagram.run, datagram.end), (run as u8, false));
                assert_eq!(datagram.counter as usize, words.len() / 11, "11 words in a payload of 100 bytes");
                words.extend(datagram.words.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)));
                true
            };
            assert!(take(&mut client.board, Duration::ZERO) && take(&mut client.board, Duration::ZERO));
            assert!(!take(&mut client.board, Duration::ZERO), "three words are not a full datagram");
            client.board.end();
            assert!(take(&mut client.board, Duration::ZERO));
            assert_eq!(words, (0..25).collect::<Vec<_>>());
            for end in 0..4 {
                let now = BETWEEN_ENDS * end;
                let (data, _) = client.board.give(now).unwrap();
                let end = Datagram { counter: 3, run: run as u8, end: true, words: &[] };
                assert_eq!(Datagram::parse(data), Ok(end));
                assert!(client.board.give(now).is_none());
            }
            assert!(client.board.is_idle());
            assert_eq!(
                (client.ask(udp::REGISTER_LAST, None), client.ask(udp::REGISTER_COUNTERS, None)),
                (Ok(3), Ok(3 * run + 3))
            );
            client.board.due = Duration::ZERO;
        }
    }
}

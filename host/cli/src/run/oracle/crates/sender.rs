//! A crate that sends its messages over TCP, and keeps a record of each that it has made.

use std::io::{ErrorKind, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddrV4, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fadelink_wire::fadc::{
    header_word, Header, FORMAT_VERSION, HEADER_BYTES, TYPE_LOST, TYPE_TIMEOUT, TYPE_WINDOWS_LOST,
};

use super::super::connect::{self, Other};
use super::case::{Case, Crate, Event};

/// Length of a window.
pub const WINDOW_NS: u32 = 16384;
/// How often is looked for what is new.
const LOOK: Duration = Duration::from_micros(500);
/// Longest wait for a receiver to close.
const PATIENCE: Duration = Duration::from_secs(10);

/// A message that a crate has made.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Made {
    pub window: u64,
    pub source: u32,
    pub bytes: Vec<u8>,
}

/// What the threads of a seed share.
pub struct World {
    pub receiver: SocketAddrV4,
    made: Mutex<Vec<Made>>,
    pub over: AtomicBool,
    begun: Instant,
}

/// How a connection goes on.
enum Next {
    /// It is broken, or the crate has closed it: it connects again.
    Connect,
    /// Nothing more comes over it, and it stays open.
    Silent,
    Over,
}

impl World {
    pub fn new() -> World {
        let (_, port) = connect::places();
        World {
            receiver: SocketAddrV4::new(Ipv4Addr::LOCALHOST, port),
            made: Mutex::default(),
            over: AtomicBool::new(false),
            begun: Instant::now(),
        }
    }

    /// The record.
    pub fn made(&self) -> MutexGuard<'_, Vec<Made>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    fn wait_until(&self, millis: u64) {
        while !self.is_over() && self.begun.elapsed() < Duration::from_millis(millis) {
            std::thread::sleep(LOOK);
        }
    }

    /// Somebody else connects, and may send something.
    pub fn scan(&self, (at, bytes): (u64, usize)) {
        self.wait_until(at);
        if let Ok(mut stream) = connect::from(Ipv4Addr::new(127, 0, 0, 9), self.receiver) {
            let _ = stream.write(&vec![0x55; bytes]);
        }
    }

    /// A crate, until it has sent all or the seed is over.
    pub fn serve(&self, case: &Case, one: &Crate) {
        let Some(begin) = one.begin else { return };
        self.wait_until(begin);
        let mut sending = Sending {
            world: self,
            case,
            one,
            random: fastrand::Rng::with_seed(case.seed ^ u64::from(one.source)),
            events: one.events.clone(),
            window: 0,
            lost: 0,
            follows: false,
        };
        while sending.window < one.forgets {
            let message = sending.message();
            sending.note(&message);
            sending.window += 1;
        }
        let mut without_power = Vec::new();
        while !self.is_over() {
            let Ok(stream) = connect::from(Ipv4Addr::LOCALHOST, self.receiver) else {
                std::thread::sleep(LOOK);
                continue;
            };
            let mut kept = Some(stream);
            match sending.send(&mut kept) {
                Next::Over => break,
                Next::Silent => without_power.push(kept),
                Next::Connect => {}
            }
        }
        while !self.is_over() && !without_power.is_empty() {
            std::thread::sleep(LOOK);
        }
    }
}

struct Sending<'a> {
    world: &'a World,
    case: &'a Case,
    one: &'a Crate,
    random: fastrand::Rng,
    events: Vec<(u64, Event)>,
    window: u64,
    /// Windows before this one that had no room.
    lost: u64,
    /// A good message was sent over this connection.
    follows: bool,
}

impl Sending<'_> {
    /// The message of the present window.
    fn message(&mut self) -> Vec<u8> {
        let count = self.random.usize(0..=self.one.words);
        let lost = (self.lost > 0).then_some(1 << 31 | u32::from(TYPE_WINDOWS_LOST) << 15 | (self.lost as u32) << 5);
        self.lost = 0;
        // Hits of slot 3.
        let head = (count > 0).then_some(1 << 31 | 1 << 15 | 3);
        let hits = (0..count).map(|_| self.random.u32(..1 << 12) << 17 | self.random.u32(..1 << 17));
        let words: Vec<u32> = lost.into_iter().chain(head).chain(hits.collect::<Vec<_>>()).collect();
        self.framed(self.one.source, &words)
    }

    /// Words as the message of the present window of a source.
    fn framed(&self, source: u32, words: &[u32]) -> Vec<u8> {
        let ns = (self.window + 1) * u64::from(WINDOW_NS);
        let time = (100_000 * i64::from(WINDOW_NS) + (ns / 1_000_000_000) as i64, (ns % 1_000_000_000) as u32);
        let header = Header::new(source, FORMAT_VERSION, self.window, time, 4 * words.len());
        let mut bytes = header.emit().to_vec();
        bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        bytes.resize(header.total_length as usize, 0);
        bytes
    }

    fn note(&self, bytes: &[u8]) {
        let made = Made { window: self.window, source: self.one.source, bytes: bytes.to_vec() };
        self.world.made().push(made);
    }

    /// Writes all; false: the connection is broken.
    fn write(&self, stream: &mut TcpStream, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() && !self.world.is_over() {
            match stream.write(bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(LOOK),
                Err(_) => return false,
            }
        }
        true
    }

    /// Sends over a connection.
    fn send(&mut self, kept: &mut Option<TcpStream>) -> Next {
        self.follows = false;
        loop {
            let Some(stream) = kept.as_mut() else { return Next::Connect };
            if self.world.is_over() {
                return Next::Over;
            }
            let other = connect::other_end(stream);
            if other == Other::Broken {
                return Next::Connect;
            }
            if other == Other::Closed || self.window >= self.case.windows {
                if self.one.waits {
                    self.wait(stream);
                }
                return self.end(stream);
            }
            let due = self.events.iter().position(|(at, _)| *at == self.window);
            let event = due.map(|index| self.events.swap_remove(index).1);
            let is_last = self.window + 1 == self.case.windows;
            if event.is_none() && !is_last && self.random.f64() < self.one.empty {
                self.window += 1;
                continue;
            }
            if let Some(next) = self.happens(event, kept) {
                return next;
            }
        }
    }

    /// Sends the message of the present window, or what happens instead.
    fn happens(&mut self, event: Option<Event>, kept: &mut Option<TcpStream>) -> Option<Next> {
        let stream = kept.as_mut()?;
        let mut again = None;
        match event {
            Some(Event::Ends) => return Some(self.is_killed(stream)),
            Some(Event::Reconnect) => return Some(Next::Connect),
            Some(Event::Reset) => {
                kept.take().map(connect::reset)?;
                return Some(Next::Connect);
            }
            Some(Event::PowerLoss) => {
                self.window = 0;
                return Some(Next::Silent);
            }
            Some(Event::Cut(by_reset)) => {
                let message = self.message();
                self.note(&message);
                self.write(stream, &message[..message.len() - 5]);
                self.window += 1;
                if by_reset {
                    kept.take().map(connect::reset)?;
                }
                return Some(Next::Connect);
            }
            Some(Event::Lost(count)) => {
                for _ in 0..count.min(self.case.windows - self.window - 1) {
                    let message = self.message();
                    self.note(&message);
                    (self.window, self.lost) = (self.window + 1, self.lost + 1);
                }
            }
            Some(Event::Malformed(at, value)) => {
                let mut message = self.message();
                self.note(&message);
                message[at..at + 4].copy_from_slice(&value.to_le_bytes());
                self.window += 1;
                return (!self.write(stream, &message)).then_some(Next::Connect);
            }
            Some(Event::HitsLost(count, is_late)) => {
                let message = self.message();
                self.note(&message);
                let kind = if is_late { TYPE_TIMEOUT } else { TYPE_LOST };
                // What it tells is that there was something.
                let word = header_word(kind, count.max(u16::from(!is_late)), 3);
                let message = self.framed(self.one.source, &[word]);
                self.window += 1;
                return (!self.write(stream, &message)).then_some(Next::Connect);
            }
            // Where sources are not named, it may be one of those.
            Some(Event::Other(source)) if self.case.named && !self.write(stream, &self.framed(source, &[])) => {
                return Some(Next::Connect);
            }
            Some(Event::WrongNumber(more)) => {
                let number = self.window.wrapping_add(more);
                let is_well = self.send_other(stream, |header| Header { record_counter: number, ..header });
                return (!is_well).then_some(Next::Connect);
            }
            Some(Event::WrongTime(more)) => {
                let is_well = self.send_other(stream, |header| Header { seconds: header.seconds + more, ..header });
                return (!is_well).then_some(Next::Connect);
            }
            Some(Event::Again(is_other)) => again = Some(is_other),
            Some(Event::Pause(millis)) => std::thread::sleep(Duration::from_millis(millis)),
            Some(Event::Other(_)) | None => {}
        }
        let message = self.message();
        self.note(&message);
        let mut is_well = self.write(stream, &message);
        if let Some(is_other) = again {
            let other = if is_other { self.message() } else { message };
            self.note(&other);
            is_well &= self.write(stream, &other);
        }
        self.window += 1;
        self.follows = true;
        (!is_well).then_some(Next::Connect)
    }

    /// Sends the message of the present window with another header; false: the connection is broken. What it should be is in the
    /// record, where a message before it shows that this one cannot be right.
    fn send_other(&mut self, stream: &mut TcpStream, change: impl FnOnce(Header) -> Header) -> bool {
        let good = self.message();
        let mut sent = good.clone();
        if let Ok(header) = Header::parse(&good) {
            sent[..HEADER_BYTES].copy_from_slice(&change(header).emit());
        }
        self.note(if self.follows { &good } else { &sent });
        self.window += 1;
        self.write(stream, &sent)
    }

    /// Until the end is asked for.
    fn wait(&self, stream: &TcpStream) {
        let since = Instant::now();
        while !self.world.is_over() && since.elapsed() < PATIENCE && connect::other_end(stream) == Other::Listens {
            std::thread::sleep(LOOK);
        }
    }

    /// Closes behind the last message.
    fn end(&self, stream: &TcpStream) -> Next {
        let _ = stream.shutdown(Shutdown::Write);
        self.wait(stream);
        Next::Over
    }

    /// Closes, with messages that it has made and not sent. Where the end was asked for before, nobody can know of them; nor where
    /// the user accepts that.
    fn is_killed(&mut self, stream: &TcpStream) -> Next {
        let _ = stream.shutdown(Shutdown::Both);
        if !self.case.told && self.world.begun.elapsed() < Duration::from_millis(self.case.stop) {
            let message = self.message();
            self.note(&message);
        }
        Next::Over
    }
}

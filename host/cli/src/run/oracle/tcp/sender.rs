//! A board that sends over TCP (docs/protocol/tcp_sender.md), and others that connect. It keeps a record of each word that it took
//! from its source, by connection.

use std::io::{ErrorKind, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddrV4, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fadelink_feb::User;

use super::super::connect::{self, Other};
use super::super::record::{Record, Source};
use super::case::{Event, Scan, SenderCase};

/// How often is looked for what is new.
const LOOK: Duration = Duration::from_micros(500);
/// Longest wait for a receiver to close.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a receiver may take from looking whether a board has closed to asking it for the end.
const CROSSING: Duration = Duration::from_millis(100);
/// Bytes that are taken at a time.
const TAKEN: usize = 16 << 10;

/// A connection over which a board has sent.
#[derive(Debug, Clone)]
pub struct Connection {
    /// Number of the board, and the address and port that it has sent from.
    pub board: usize,
    pub peer: SocketAddrV4,
    /// Program that was there.
    pub program: u32,
    /// The run of the board's source.
    pub run: usize,
    /// Something was sent.
    pub has_sent: bool,
    /// It was ended behind so many bytes, though the board had more; true: the receiver may have asked for the end before.
    pub ended: Option<(usize, bool)>,
}

/// What the threads of a seed share.
pub struct World {
    pub receiver: SocketAddrV4,
    /// Of each board, and of others.
    pub addresses: Vec<Ipv4Addr>,
    pub records: Vec<Record>,
    connections: Mutex<Vec<Connection>>,
    /// The program that is there.
    pub program: AtomicU32,
    pub over: AtomicBool,
    begun: Instant,
}

/// How a connection has ended.
enum Ending {
    /// The board has sent all.
    Whole,
    Broken,
    /// The board has no power; the socket stays open.
    Silent(TcpStream),
    Over,
}

impl World {
    pub fn new(boards: usize) -> World {
        let (_, port) = connect::places();
        World {
            receiver: SocketAddrV4::new(Ipv4Addr::LOCALHOST, port),
            addresses: (0..=boards).map(|_| connect::places().0).collect(),
            records: (0..boards).map(|_| Record::default()).collect(),
            connections: Mutex::default(),
            program: AtomicU32::new(0),
            over: AtomicBool::new(false),
            begun: Instant::now(),
        }
    }

    pub fn connections(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes something of a board's connection.
    fn change(&self, board: usize, change: impl FnMut(&mut Connection)) {
        let run = self.records[board].runs().len() - 1;
        self.connections().iter_mut().filter(|one| (one.board, one.run) == (board, run)).for_each(change);
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    fn program(&self) -> u32 {
        self.program.load(Ordering::Relaxed)
    }

    fn wait_until(&self, millis: u64) {
        while !self.is_over() && self.begun.elapsed() < Duration::from_millis(millis) {
            std::thread::sleep(LOOK);
        }
    }

    /// A board, until the seed is over.
    pub fn serve(&self, number: usize, board: &SenderCase) {
        let mut events = board.events.clone();
        let mut source = Source::new(self.records[number].clone(), board.words, board.burst);
        let mut without_power = Vec::new();
        self.wait_until(board.begin);
        let mut ended_for = None;
        while !self.is_over() {
            let program = self.program();
            let has_ended = ended_for == Some(program) && !board.again;
            let stream = (!has_ended).then(|| connect::from(self.addresses[number], self.receiver).ok()).flatten();
            let Some(stream) = stream else {
                std::thread::sleep(LOOK);
                continue;
            };
            source.begin();
            if let Ok(std::net::SocketAddr::V4(peer)) = stream.local_addr() {
                let run = self.records[number].runs().len() - 1;
                self.connections().push(Connection { board: number, peer, program, run, has_sent: false, ended: None });
            }
            match self.send(stream, (number, board), &mut source, &mut events) {
                Ending::Whole => ended_for = Some(program),
                Ending::Silent(stream) => without_power.push(stream),
                Ending::Broken | Ending::Over => {}
            }
        }
    }

    /// Sends a run over a connection.
    fn send(
        &self,
        mut stream: TcpStream,
        (number, board): (usize, &SenderCase),
        source: &mut Source,
        events: &mut Vec<(u64, Event)>,
    ) -> Ending {
        let record = &self.records[number];
        let (mut pending, mut written, mut is_ending) = (Vec::new(), 0, false);
        loop {
            if self.is_over() {
                return Ending::Over;
            }
            match connect::other_end(&stream) {
                Other::Listens => {}
                Other::Closed => is_ending = true,
                Other::Broken => return Ending::Broken,
            }
            is_ending |= board.ends && source.has_ended();
            if !is_ending && pending.len() < board.piece {
                let mut words = [0; TAKEN];
                let bytes = source.fill(&mut words);
                pending.extend_from_slice(&words[..bytes]);
            }
            let taken = record.runs().last().map_or(0, |run| run.words.len() as u64);
            // A connection that breaks before anything has come is gone on with by the next one: the words are not lost.
            let is_early = |event| written == 0 && matches!(event, Event::Reset | Event::Cut(_) | Event::Ended);
            let due = events.iter().position(|(at, event)| *at <= taken && !is_early(*event));
            match due.map(|index| events.swap_remove(index).1) {
                None => {}
                Some(Event::Disabled) => is_ending = true,
                Some(Event::Pause(millis)) => std::thread::sleep(Duration::from_millis(millis)),
                Some(Event::Ended) => {
                    // Behind a whole word, if there is room for it.
                    let rest = pending.len().min((8 - written % 8) % 8);
                    written += stream.write(&pending[..rest]).unwrap_or(0);
                    let _ = stream.shutdown(Shutdown::Write);
                    // It comes behind what the receiver has no room for; what is seen a little later may have been asked before.
                    let since = Instant::now();
                    while since.elapsed() < PATIENCE && !connect::end_has_come(&stream) {
                        if connect::other_end(&stream) != Other::Listens {
                            break;
                        }
                        std::thread::sleep(LOOK);
                    }
                    std::thread::sleep(CROSSING);
                    let was_asked = connect::other_end(&stream) != Other::Listens;
                    self.change(number, |one| one.ended = Some((written, was_asked)));
                    return Ending::Whole;
                }
                Some(Event::PowerLoss) => return Ending::Silent(stream),
                Some(Event::Reset) => {
                    connect::reset(stream);
                    return Ending::Broken;
                }
                Some(Event::Cut(by_reset)) => {
                    let _ = stream.write(&[0xCC; 5][..if written % 8 == 3 { 4 } else { 5 }]);
                    if by_reset {
                        connect::reset(stream);
                    }
                    return Ending::Broken;
                }
            }
            if pending.is_empty() && is_ending {
                let _ = stream.shutdown(Shutdown::Write);
                let since = Instant::now();
                while !self.is_over() && since.elapsed() < PATIENCE && connect::other_end(&stream) == Other::Listens {
                    std::thread::sleep(LOOK);
                }
                return Ending::Whole;
            }
            if pending.is_empty() {
                std::thread::sleep(LOOK);
                continue;
            }
            match stream.write(&pending[..pending.len().min(board.piece)]) {
                Ok(bytes) => {
                    if written == 0 {
                        self.change(number, |one| one.has_sent = true);
                    }
                    written += bytes;
                    pending.drain(..bytes);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(LOOK),
                Err(_) => return Ending::Broken,
            }
        }
    }

    /// Somebody else connects.
    pub fn scan(&self, (at, from, scan): (u64, Option<usize>, Scan)) {
        self.wait_until(at);
        let address = self.addresses[from.unwrap_or(self.records.len())];
        let Ok(mut stream) = connect::from(address, self.receiver) else { return };
        match scan {
            Scan::Closes => {}
            Scan::Resets => connect::reset(stream),
            Scan::Sends(count) => _ = stream.write(&vec![0x55; count]),
            Scan::Stays => {
                while !self.is_over() && connect::other_end(&stream) == Other::Listens {
                    std::thread::sleep(LOOK);
                }
            }
        }
    }
}

//! The board, the network and who disturbs both, in a thread of their own.

use std::collections::{HashSet, VecDeque};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fadelink_feb::UdpBoard;
use fadelink_wire::udp::{self, Datagram, Reply, Request};

use super::super::connect;
use super::super::record::{Record, Source};
use super::super::way::Number;
use super::case::{Ask, Case, Event, Run, When};
use super::network::Network;

pub const COMPUTER: Ipv4Addr = Ipv4Addr::LOCALHOST;
/// Of another computer, where nobody listens.
const OTHER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(127, 0, 0, 9), 9);
/// Port that the board's datagrams come from.
const PORT: u16 = 49152;

/// Time of the runs before.
const BEFORE: Duration = Duration::from_secs(5);
/// Datagrams that the board sends at most until requests are looked at.
const BURST: usize = 32;
/// When that is: while datagrams pass, and at most.
const SOON: Duration = Duration::from_micros(100);
const LATER: Duration = Duration::from_millis(2);
/// Steps after which a request that is late comes.
const LATE: std::ops::Range<u64> = 1..50;
/// How often another program tries what the board refuses.
const TRIES: u32 = 300;

pub struct World {
    case: Case,
    epoch: Instant,
    /// `None`: without power.
    board: Option<UdpBoard<Source>>,
    pub record: Record,
    network: Network,
    random: fastrand::Rng,
    step: u64,
    /// Steps at which our program has first started the board, and has stopped it behind that.
    started: Option<u64>,
    stopped: Option<u64>,
    power_back: u64,
    cable_back: u64,
    /// Events that have happened.
    pub happened: Vec<Event>,
    /// The program that is there: those before it are killed.
    pub program: u32,
    /// Ports of the slow control of the program that is there, and of those that are killed.
    clients: HashSet<u16>,
    dead: HashSet<u16>,
    /// Requests and replies that come late.
    late: Vec<(u64, SocketAddrV4, Vec<u8>, bool)>,
    /// What another program still writes: register, value, how often it was refused.
    others: VecDeque<(u32, u32, u32)>,
    /// Of the receiver.
    pub receiver: SocketAddrV4,
    sockets: Sockets,
}

struct Sockets {
    control: UdpSocket,
    stream: UdpSocket,
    /// Other ports of the board's address, and of another.
    beside: UdpSocket,
    other: UdpSocket,
}

/// Shared with who plays.
pub type Shared = Arc<Mutex<World>>;

pub fn lock(world: &Shared) -> MutexGuard<'_, World> {
    world.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A board as it is after it was switched on; it had so many runs `earlier`.
fn switched_on(case: &Case, record: &Record, earlier: u32) -> UdpBoard<Source> {
    // Runs before are none of the record.
    let empty = || Source::new(Record::default(), 0, 0);
    let mut board = UdpBoard::new(case.payload, Duration::ZERO, empty());
    let mut now = Duration::ZERO;
    for run in 0..earlier {
        let request = |value| Request { sequence: 2 * run + value, address: udp::REGISTER_ENABLE, write: Some(value) };
        [1, 0].into_iter().for_each(|value| _ = board.control(OTHER, &request(value).to_bytes()));
        while !board.is_idle() {
            now += Duration::from_millis(1);
            board.give(now);
        }
    }
    board.user = Source::new(record.clone(), case.words, case.burst);
    board
}

impl World {
    /// A board at an address of its own.
    pub fn new(case: Case) -> io::Result<World> {
        let (address, port) = connect::places();
        let bind = |port| UdpSocket::bind(SocketAddrV4::new(address, port));
        let control = bind(udp::CONTROL_PORT)?;
        let record = Record::default();
        Ok(World {
            epoch: Instant::now() - BEFORE,
            board: Some(switched_on(&case, &record, case.earlier)),
            record,
            network: Network::new(&case),
            random: fastrand::Rng::with_seed(case.seed ^ 0x0DDE),
            step: 0,
            started: None,
            stopped: None,
            power_back: 0,
            cable_back: 0,
            happened: Vec::new(),
            program: 0,
            clients: HashSet::new(),
            dead: HashSet::new(),
            late: Vec::new(),
            others: VecDeque::new(),
            receiver: SocketAddrV4::new(COMPUTER, port),
            sockets: Sockets {
                control,
                stream: bind(PORT)?,
                beside: bind(PORT + 1)?,
                other: UdpSocket::bind("127.0.0.8:0")?,
            },
            case,
        })
    }

    pub fn address(&self) -> Option<Ipv4Addr> {
        match self.sockets.control.local_addr() {
            Ok(SocketAddr::V4(address)) => Some(*address.ip()),
            _ => None,
        }
    }

    fn is_out(&self) -> bool {
        self.step < self.cable_back
    }

    /// The board executes a request of our program, or of somebody else.
    fn executes(&mut self, from: SocketAddrV4, request: &[u8], is_ours: bool) -> Option<Vec<u8>> {
        let before = self.record.runs().len();
        let reply = self.board.as_mut()?.control(from, request)?;
        for run in &mut self.record.runs()[before..] {
            run.is_ours = is_ours;
        }
        if is_ours {
            let stops =
                matches!(Request::parse(request), Ok(Request { address: udp::REGISTER_ENABLE, write: Some(0), .. }));
            if self.record.runs().len() > before {
                self.started.get_or_insert(self.step);
            } else if stops && self.started.is_some() {
                self.stopped.get_or_insert(self.step);
            }
        }
        Some(reply.to_vec())
    }

    /// A request comes to the board, and is answered.
    fn requested(&mut self, from: SocketAddrV4, request: &[u8], is_again: bool) {
        // One that the network has kept is nobody's wish any more.
        if let Some(reply) = self.executes(from, request, !is_again) {
            self.send(from, reply, false);
        }
    }

    /// A message of the slow control goes to the board, or from it.
    fn send(&mut self, client: SocketAddrV4, message: Vec<u8>, is_request: bool) {
        let chance = self.case.control;
        if self.is_out() || self.random.f64() < chance {
            return;
        }
        if self.random.f64() < chance {
            self.late.push((self.step + self.random.u64(LATE), client, message.clone(), is_request));
        }
        if is_request {
            self.requested(client, &message, false);
        } else {
            let _ = self.sockets.control.send_to(&message, client);
        }
    }

    /// Takes the requests of our program.
    fn listen(&mut self) -> bool {
        let (mut request, mut has_come) = ([0; 64], false);
        while let Ok((length, SocketAddr::V4(client))) = self.sockets.control.recv_from(&mut request) {
            if self.dead.contains(&client.port()) {
                continue;
            }
            has_come = true;
            self.clients.insert(client.port());
            self.send(client, request[..length].to_vec(), true);
        }
        has_come
    }

    /// Moves all on; false: there was nothing to do.
    fn turn(&mut self) -> bool {
        self.step += 1;
        self.events();
        if self.board.is_none() && self.step >= self.power_back {
            self.board = Some(switched_on(&self.case, &self.record, 0));
        }
        let mut is_busy = self.listen();
        let step = self.step;
        let (due, later) = std::mem::take(&mut self.late).into_iter().partition(|(at, ..)| *at <= step);
        self.late = later;
        for (_, client, message, is_request) in due {
            if is_request {
                self.requested(client, &message, true);
            } else {
                let _ = self.sockets.control.send_to(&message, client);
            }
        }
        self.others();
        for _ in 0..BURST {
            let now = self.epoch.elapsed();
            let Some(board) = &mut self.board else { break };
            if self.case.ends && board.user.has_ended() {
                board.end();
            }
            let Some((payload, to)) = board.give(now) else { break };
            let sent = (payload.to_vec(), to);
            is_busy = true;
            self.step += 1;
            let (run, is_out) = (self.record.runs().len(), self.is_out());
            self.network.push(sent, run, self.step, is_out);
            self.events();
        }
        for (payload, to) in self.network.pop(self.step) {
            // Nobody may be there.
            let _ = self.sockets.stream.send_to(&payload, to);
        }
        is_busy
    }

    /// Another program goes on with what it does.
    fn others(&mut self) {
        while let Some((address, value, tries)) = self.others.pop_front() {
            let request = Request { sequence: self.random.u32(..), address, write: Some(value) }.to_bytes();
            let reply = self.executes(OTHER, &request, false);
            let is_done =
                reply.is_some_and(|reply| Reply::parse(&reply).is_ok_and(|reply| reply.status == udp::STATUS_DONE));
            if !is_done && tries < TRIES {
                self.others.push_front((address, value, tries + 1));
                return;
            }
        }
    }

    /// What is due happens.
    fn events(&mut self) {
        let (step, started, stopped) = (self.step, self.started, self.stopped);
        let is_due = |when: When| match when {
            When::AfterStart(after) => started.is_some_and(|started| step >= started + after),
            When::AfterStop(after) => stopped.is_some_and(|stopped| step >= stopped + after),
        };
        let (due, later): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.case.events).into_iter().partition(|(when, _)| is_due(*when));
        self.case.events = later;
        for (_, event) in due {
            self.happened.push(event);
            self.happens(event);
        }
    }

    /// Another program has the board send to this receiver.
    pub fn start(&mut self) {
        let (ip, port) = ((*self.receiver.ip()).into(), self.receiver.port().into());
        let writes = [(udp::REGISTER_PEER_IP, ip), (udp::REGISTER_PEER_PORT, port), (udp::REGISTER_ENABLE, 1)];
        self.others.extend(writes.map(|(address, value)| (address, value, 0)));
    }

    fn asks(&mut self, ask: Ask) {
        let (stop, start) = ((udp::REGISTER_ENABLE, 0, 0), (udp::REGISTER_ENABLE, 1, 0));
        let away = (udp::REGISTER_PEER_IP, (*OTHER.ip()).into(), 0);
        match ask {
            Ask::Stop => self.others.push_back(stop),
            Ask::Start => self.others.push_back(start),
            Ask::Restart => self.others.extend([stop, start]),
            Ask::Redirect => self.others.extend([stop, away, start]),
            Ask::RedirectAndBack(starts) => {
                self.others.extend([stop, away, start, stop]);
                self.start();
                if !starts {
                    self.others.pop_back();
                }
            }
            Ask::Payload => self.others.extend([stop, (udp::REGISTER_PAYLOAD, 136, 0), start]),
        }
    }

    /// A datagram that the board has not sent.
    fn forged(&mut self, place: Number, run: Run, end: bool) -> Vec<u8> {
        let (newest, present) = self.network.newest;
        let counter = place.from(newest);
        let words: Vec<u8> = match end {
            true => Vec::new(),
            false => (0..8 * self.random.usize(0..3)).map(|_| self.random.u8(..)).collect(),
        };
        let run = present.wrapping_add_signed(run);
        let datagram = Datagram { counter, run, end, words: &words };
        [&datagram.header()[..], &words].concat()
    }

    fn happens(&mut self, event: Event) {
        match event {
            Event::Other(ask) => self.asks(ask),
            Event::Data(place, run) => {
                let payload = self.forged(place, run, false);
                self.network.inject(payload, self.receiver);
            }
            Event::End(place, run) => {
                let payload = self.forged(place, run, true);
                self.network.inject(payload, self.receiver);
            }
            Event::Sender(is_other) => {
                let payload = self.forged(Number::Near(1), 0, false);
                let Sockets { beside, other, .. } = &self.sockets;
                let _ = if is_other { other } else { beside }.send_to(&payload, self.receiver);
            }
            Event::Reply => {
                let request = Request { sequence: self.random.u32(..), address: udp::REGISTER_RUN, write: None };
                let reply = request.reply(udp::STATUS_DONE, self.random.u32(..));
                for port in &self.clients {
                    let _ = self.sockets.control.send_to(&reply, SocketAddrV4::new(COMPUTER, *port));
                }
            }
            Event::Malformed(count) => {
                for _ in 0..count {
                    let Some((mut payload, to)) = self.passed() else { break };
                    match self.random.u8(0..3) {
                        0 => payload.truncate(self.random.usize(0..=payload.len())),
                        1 => payload.iter_mut().for_each(|byte| *byte = self.random.u8(..)),
                        _ => {
                            let at = self.random.usize(0..payload.len().min(16));
                            payload[at] ^= 1 << self.random.u8(0..8);
                        }
                    }
                    self.network.inject(payload, to);
                }
            }
            Event::Replay => {
                if let Some((payload, to)) = self.passed() {
                    self.network.inject(payload, to);
                }
            }
            Event::PowerLoss(steps) | Event::PowerLossAndStart(steps) => {
                self.board = None;
                self.power_back = self.step + steps;
                if matches!(event, Event::PowerLossAndStart(_)) {
                    self.start();
                }
            }
            Event::CableOut(steps) => self.cable_back = self.step + steps,
            Event::Kill => {
                self.program += 1;
                self.record.runs().iter_mut().for_each(|run| run.is_ours = false);
                self.dead.extend(self.clients.drain());
            }
        }
    }

    /// A datagram that has come.
    fn passed(&mut self) -> Option<(Vec<u8>, SocketAddrV4)> {
        let count = self.network.passed.len();
        (count > 0).then(|| self.network.passed[self.random.usize(0..count)].clone())
    }
}

/// The thread of a world, until this is dropped.
pub struct Running(Arc<AtomicBool>, Option<JoinHandle<()>>);

impl Running {
    pub fn begin(world: &Shared) -> io::Result<Running> {
        lock(world).sockets.control.set_nonblocking(true)?;
        let (stop, world) = (Arc::new(AtomicBool::new(false)), world.clone());
        let seen = stop.clone();
        let run = move || {
            let mut wait = SOON;
            while !seen.load(Ordering::Relaxed) {
                wait = if lock(&world).turn() { SOON } else { (wait * 2).min(LATER) };
                std::thread::sleep(wait);
            }
        };
        Ok(Running(stop, Some(std::thread::Builder::new().name("world".into()).spawn(run)?)))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        if let Some(thread) = self.1.take() {
            let _ = thread.join();
        }
    }
}

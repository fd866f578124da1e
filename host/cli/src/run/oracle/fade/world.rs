//! The board, the cable and who disturbs both. A program has an end of the cable, which moves all of it on whenever it looks
//! for frames: nothing here has a thread.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fadelink_feb::Board;
use fadelink_receiver::backend::{Backend, Losses, Send};
use fadelink_wire::{fade1, fade10g, Firmware, MacAddr, Protocol};
use rustix::time::{
    timerfd_create, timerfd_settime, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec,
};

use super::super::disk::Disk;
use super::super::record::{Record, Source};
use super::board::board;
use super::cable::Cable;
use super::case::{Ask, Case, Event, When};
use super::forge::Forger;

pub const COMPUTER: MacAddr = MacAddr([2, 0xfa, 0xde, 0, 0, 0xf0]);
pub const OTHER: MacAddr = MacAddr([2, 0xfa, 0xde, 0, 0, 0xf1]);
pub const BOARD: MacAddr = MacAddr([2, 0xfa, 0xde, 0, 0, 1]);

/// Frames that the board sends at most until the program looks again.
const BURST: usize = 32;
/// When the program looks again: while frames pass, and at most.
const SOON: Duration = Duration::from_micros(100);
const LATER: Duration = Duration::from_millis(2);

pub struct World {
    case: Case,
    epoch: Instant,
    /// `None`: without power.
    board: Option<Board<Source>>,
    pub record: Record,
    up: Cable,
    forger: Forger,
    random: fastrand::Rng,
    /// Not yet at the board.
    down: Vec<Vec<u8>>,
    step: u64,
    /// Step at which our computer has first asked for the end.
    stopped: Option<u64>,
    /// Last packets that the board has sent behind that, first: the run, the number of the packet, words of the run so far. A START of
    /// somebody else makes a published core go on with the same run.
    pub lasts: Vec<(usize, u32, usize)>,
    power_back: u64,
    cable_back: u64,
    /// Events that have happened.
    pub happened: Vec<Event>,
    /// The program whose frames pass: those before it are killed.
    pub program: u32,
    /// Where it writes.
    pub folder: Option<(Arc<Disk>, PathBuf)>,
    /// The FEB has a socket of its own.
    split: bool,
}

/// Shared by the ends of the cable.
pub type Shared = Arc<Mutex<World>>;

pub fn lock(world: &Shared) -> MutexGuard<'_, World> {
    world.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a request begins or ends a transmission.
fn asks(protocol: Protocol, frame: &[u8]) -> Option<Ask> {
    match protocol {
        Protocol::Fade10g => match fade10g::parse_request(frame).ok()?.1 {
            fade10g::Request::Command { code: fade10g::CMD_STOP, .. } => Some(Ask::Stop),
            _ => None,
        },
        Protocol::Fade1 => match fade1::parse_request(frame).ok()?.1 {
            fade1::Request::Stop => Some(Ask::Stop),
            _ => None,
        },
    }
}

impl World {
    pub fn new(case: Case) -> Shared {
        let record = Record::default();
        let random = fastrand::Rng::with_seed(case.seed ^ 0x0DDE);
        let forger = Forger {
            protocol: case.protocol,
            computer: COMPUTER,
            board: BOARD,
            random: fastrand::Rng::with_seed(case.seed ^ 0xF02E),
        };
        Arc::new(Mutex::new(World {
            epoch: Instant::now(),
            board: Some(board(BOARD, &case, record.clone())),
            record,
            up: Cable::new(&case, COMPUTER),
            forger,
            random,
            down: Vec::new(),
            step: 0,
            stopped: None,
            lasts: Vec::new(),
            power_back: 0,
            cable_back: 0,
            happened: Vec::new(),
            program: 0,
            folder: None,
            split: false,
            case,
        }))
    }

    fn is_out(&self) -> bool {
        self.step < self.cable_back
    }

    /// The board takes a frame of `is_ours`, or of somebody else.
    fn board_takes(&mut self, frame: &[u8], is_ours: bool) {
        let Some(board) = &mut self.board else { return };
        let before = self.record.runs().len();
        board.take(frame, self.epoch.elapsed());
        for run in &mut self.record.runs()[before..] {
            run.is_ours = is_ours;
        }
    }

    /// The program sends.
    fn send(&mut self, frame: &[u8]) {
        self.step += 1;
        self.up.answers(frame);
        if asks(self.case.protocol, frame) == Some(Ask::Stop) {
            self.stopped.get_or_insert(self.step);
        }
        if !self.is_out() && self.random.f64() >= self.case.cable.loss {
            self.down.push(frame.to_vec());
        }
    }

    /// Moves all on; the frames that come to the program.
    fn turn(&mut self) -> Vec<Vec<u8>> {
        self.step += 1;
        self.events();
        if self.board.is_none() && self.step >= self.power_back {
            self.board = Some(board(BOARD, &self.case, self.record.clone()));
        }
        for frame in std::mem::take(&mut self.down) {
            self.board_takes(&frame, true);
        }
        for _ in 0..BURST {
            let now = self.epoch.elapsed();
            let Some(frame) = self.board.as_mut().and_then(|board| board.give(now).map(<[u8]>::to_vec)) else { break };
            self.step += 1;
            let (run, is_out) = (self.record.runs().len(), self.is_out());
            self.note_last(&frame);
            self.up.push(frame, run, self.step, is_out);
            self.events();
        }
        self.up.pop(self.step)
    }

    /// Notes that the board ends what our computer has stopped.
    fn note_last(&mut self, frame: &[u8]) {
        let Ok((_, fade10g::FebFrame::Data(data))) = fade10g::parse_feb(frame) else { return };
        if data.last.is_none() || self.stopped.is_none() {
            return;
        }
        let runs = self.record.runs();
        let Some((index, run)) = runs.iter().enumerate().next_back() else { return };
        if !self.lasts.iter().any(|(other, packet, _)| (*other, *packet) == (index, data.packet)) {
            self.lasts.push((index, data.packet, run.words.len()));
        }
    }

    /// What is due happens.
    fn events(&mut self) {
        let (step, stopped) = (self.step, self.stopped);
        let is_due = |when: When| match when {
            When::Step(at) => step >= at,
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

    fn happens(&mut self, event: Event) {
        let newest = self.up.newest;
        match event {
            Event::Other(ask) => {
                let frame = self.forger.ask(ask, OTHER, newest);
                self.board_takes(&frame, false);
            }
            Event::Forged(ask) => {
                let frame = self.forger.ask(ask, COMPUTER, newest);
                self.board_takes(&frame, false);
            }
            Event::SecondProgram(is_here) => {
                let source = if is_here { COMPUTER } else { OTHER };
                for ask in [Ask::Reset, Ask::Start] {
                    let frame = self.forger.ask(ask, source, newest);
                    self.board_takes(&frame, false);
                }
            }
            Event::Data(place) => self.up.inject(self.forger.data(place, newest, false)),
            Event::Begins(place) => {
                let run = self.record.runs().len() as u64;
                let begin = (self.case.firmware == Firmware::Fadelink).then_some(run);
                self.up.inject(self.forger.begins(place, newest, begin));
            }
            Event::Last(place) => self.up.inject(self.forger.data(place, newest, true)),
            Event::Answer => self.up.inject(self.forger.answer(newest)),
            Event::Malformed(count) => {
                for _ in 0..count {
                    let Some(frame) = self.passed() else { break };
                    self.up.inject(self.forger.damage(frame));
                }
            }
            Event::Replay => {
                if let Some(frame) = self.passed() {
                    self.up.inject(frame);
                }
            }
            Event::PowerLoss(steps) => {
                self.board = None;
                self.power_back = self.step + steps;
            }
            Event::CableOut(steps) => self.cable_back = self.step + steps,
            Event::Kill => {
                if let Some((disk, folder)) = &self.folder {
                    disk.freeze(folder);
                }
                self.program += 1;
                self.split = false;
                self.down.clear();
            }
        }
    }

    /// A frame that has passed.
    fn passed(&mut self) -> Option<Vec<u8>> {
        let count = self.up.passed.len();
        (count > 0).then(|| self.up.passed[self.random.usize(0..count)].clone())
    }
}

/// A program's end of the cable.
pub struct End {
    world: Shared,
    program: u32,
    /// That of one FEB.
    is_split: bool,
    /// The program must go.
    gone: Arc<AtomicBool>,
    timer: OwnedFd,
    patience: Duration,
}

impl End {
    /// Of the next program. It fails when `gone` is set.
    pub fn new(world: &Shared, gone: &Arc<AtomicBool>) -> io::Result<End> {
        let program = lock(world).program;
        End::of(world, program, gone, false)
    }

    fn of(world: &Shared, program: u32, gone: &Arc<AtomicBool>, is_split: bool) -> io::Result<End> {
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        let end = End { world: world.clone(), program, is_split, gone: gone.clone(), timer, patience: SOON };
        end.look_in(SOON)?;
        Ok(end)
    }

    fn look_in(&self, time: Duration) -> io::Result<()> {
        let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
        let value = Timespec { tv_sec: 0, tv_nsec: time.as_nanos() as i64 };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &Itimerspec { it_interval: zero, it_value: value })?;
        Ok(())
    }

    /// The world, unless the frames go elsewhere.
    fn world(&self) -> Option<MutexGuard<'_, World>> {
        let world = lock(&self.world);
        (world.program == self.program && world.split == self.is_split).then_some(world)
    }
}

impl Backend for End {
    fn local(&self) -> MacAddr {
        COMPUTER
    }

    fn index(&self) -> u32 {
        0
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }

    fn receive(&mut self, handler: &mut dyn FnMut(&[u8], &mut Send<'_>)) -> io::Result<usize> {
        if self.gone.load(Ordering::Relaxed) {
            return Err(io::Error::other("killed"));
        }
        let frames = self.world().map(|mut world| world.turn()).unwrap_or_default();
        self.patience = if frames.is_empty() { (self.patience * 2).min(LATER) } else { SOON };
        self.look_in(self.patience)?;
        for frame in &frames {
            handler(frame, &mut |answer| _ = self.world().map(|mut world| world.send(answer)));
        }
        Ok(frames.len())
    }

    fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        if let Some(mut world) = self.world() {
            world.send(frame);
        }
        self.patience = SOON;
        self.look_in(SOON)
    }

    fn losses(&mut self) -> Losses {
        Losses::default()
    }

    fn closed(&mut self, _: MacAddr) {
        let mut world = lock(&self.world);
        if world.program == self.program {
            world.split = false;
        }
    }

    fn split_off(&mut self, _: MacAddr) -> io::Result<Option<Box<dyn Backend>>> {
        let mut world = lock(&self.world);
        if !world.case.alone || world.program != self.program {
            return Ok(None);
        }
        world.split = true;
        drop(world);
        Ok(Some(Box::new(End::of(&self.world, self.program, &self.gone, true)?)))
    }
}

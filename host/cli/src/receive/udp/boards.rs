//! Boards whose streams slow control starts. Each has its own thread, so that a board that does not answer does not
//! delay the data of the others.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fadelink_wire::udp;

use super::super::patience::UdpPatience;
use crate::slow_control::SlowControl;

/// How often is asked whether an earlier run has ended.
const TICK: Duration = Duration::from_millis(50);

/// What a board is asked to do.
enum Request {
    Start,
    Stop,
    /// Whether this run is over, as far as this receiver can know of it.
    HasEnded(u8, Asked),
    /// Which runs it has begun.
    Runs(Asked),
}

/// A board was asked, until this is dropped.
struct Asked(Arc<AtomicBool>);

impl Drop for Asked {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// Who has stopped a board.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    /// Nobody, as far as is known.
    None,
    ThisProgram,
    Another,
}

/// What it has answered.
pub enum Answer {
    /// Its stream was started.
    Started,
    /// The run is over.
    Ended(Ipv4Addr, u8, RunEnd),
    /// No run is under way, and the next one would have this number; or what has happened to the board meanwhile.
    Idle(Ipv4Addr, Result<u8, String>),
    /// It does not do what it is asked to, and why.
    Failed(Ipv4Addr, anyhow::Error),
}

/// What a board says of a run that is over.
pub struct RunEnd {
    /// Its datagrams; `None`: the board does not know any more.
    pub datagrams: Option<u32>,
    /// The run was for this receiver to its end, and nobody else has stopped it; or what has happened instead.
    pub is_ours: Result<(), String>,
}

/// One board.
pub struct StartedBoard {
    address: Ipv4Addr,
    /// It was asked whether its run is over, and has not answered.
    is_asked: Arc<AtomicBool>,
    requests: Option<Sender<Request>>,
    thread: Option<JoinHandle<()>>,
}

/// The first run of each board that is for this receiver.
type Runs = Arc<Mutex<BTreeMap<Ipv4Addr, u8>>>;

/// All boards, and what they answer.
pub struct Boards {
    boards: Vec<StartedBoard>,
    answers: Receiver<Answer>,
    runs: Runs,
    is_stopped: Arc<AtomicBool>,
}

/// How long a board is waited for.
struct Waiting {
    patience: UdpPatience,
    /// At its begin.
    wait: Duration,
    is_stopped: Arc<AtomicBool>,
}

fn lock(runs: &Runs) -> MutexGuard<'_, BTreeMap<Ipv4Addr, u8>> {
    runs.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a board, once. One that does not answer is asked for something that changes nothing until the wait for it is over: it may be
/// switched on later.
fn start_when_there(control: &mut SlowControl, to: (u16, &Runs), waiting: &Waiting) -> anyhow::Result<u32> {
    let begun = Instant::now();
    let mut is_told = false;
    while !waiting.wait.is_zero() {
        let error = match control.read(udp::REGISTER_ENABLE) {
            Err(error) if begun.elapsed() < waiting.wait && !waiting.is_stopped.load(Ordering::Relaxed) => error,
            _ => break,
        };
        if !std::mem::replace(&mut is_told, true) {
            tracing::warn!("{error:#}; it is asked again for {:.0} s", waiting.wait.as_secs_f64());
        }
        std::thread::sleep(TICK);
    }
    start(control, to, waiting.patience)
}

/// The setting of the checksum of a board, with a random number above it that the board loses with its power.
fn mark(control: &mut SlowControl) -> anyhow::Result<u32> {
    let checksum = control.read(udp::REGISTER_CHECKSUM)? & udp::CHECKSUM_BIT;
    let marked = fastrand::u32(1..=u32::MAX >> 1) << 1 | checksum;
    control.write(udp::REGISTER_CHECKSUM, marked)?;
    Ok(marked)
}

/// Its mark, which it has while it is not switched off.
fn start(control: &mut SlowControl, (port, runs): (u16, &Runs), patience: UdpPatience) -> anyhow::Result<u32> {
    let own = control.own_address()?;
    control.write(udp::REGISTER_ENABLE, 0)?;
    // The run that was stopped so may take a while to its end.
    let begin = Instant::now();
    while let Err(error) = control.write(udp::REGISTER_PEER_IP, own.into()) {
        if begin.elapsed() > patience.end {
            return Err(error);
        }
        std::thread::sleep(TICK);
    }
    control.write(udp::REGISTER_PEER_PORT, port.into())?;
    // The write that enables the stream is repeated until it is answered. A board that was switched off behind the first one begins
    // anew, under the same number: its mark tells.
    let marked = mark(control)?;
    let run = control.read(udp::REGISTER_RUN)?;
    // Known before its first datagram comes.
    lock(runs).insert(control.board(), run as u8);
    control.write(udp::REGISTER_ENABLE, 1)?;
    Ok(marked)
}

/// Whether the board has been this receiver's since its start; or what has happened instead.
fn is_ours(
    control: &mut SlowControl,
    port: u16,
    (stopped, marked): (By, Option<u32>),
) -> anyhow::Result<Result<(), String>> {
    let board = control.board();
    let mark = control.read(udp::REGISTER_CHECKSUM)?;
    let enabled = control.read(udp::REGISTER_ENABLE)?;
    let destination = (control.read(udp::REGISTER_PEER_IP)?, control.read(udp::REGISTER_PEER_PORT)?);
    Ok(if marked.is_some_and(|marked| marked != mark) {
        Err(format!("{board} was switched off and on, or another program has written its settings"))
    } else if destination != (control.own_address()?.into(), port.into()) {
        let (ip, port) = destination;
        Err(format!("{board} was told to send to {}:{port} instead", Ipv4Addr::from(ip)))
    } else if enabled == 0 && stopped != By::ThisProgram {
        Err(format!("{board} was stopped by another program"))
    } else {
        Ok(())
    })
}

/// What the board says of a run, if it is over; one that does not answer now is asked again.
fn ended(
    control: &mut SlowControl,
    (port, run): (u16, u8),
    known: (By, Option<u32>),
) -> anyhow::Result<Option<RunEnd>> {
    let is_ours = is_ours(control, port, known)?;
    let next = control.read(udp::REGISTER_RUN)? as u8;
    let ended = match next.wrapping_sub(run) {
        0 => return Ok(None),
        1 => RunEnd { datagrams: Some(control.read(udp::REGISTER_LAST)?), is_ours },
        // It has begun others since.
        _ => RunEnd { datagrams: None, is_ours },
    };
    Ok(Some(ended))
}

/// The number that the next run of a board would have, or what has happened to it; `None`: one is under way, or is to be sent.
fn idle(control: &mut SlowControl, port: u16, known: (By, Option<u32>)) -> anyhow::Result<Option<Result<u8, String>>> {
    if let Err(what) = is_ours(control, port, known)? {
        return Ok(Some(Err(what)));
    }
    // During a run it is refused.
    let own = control.own_address()?;
    if control.write(udp::REGISTER_PEER_IP, own.into()).is_err() {
        return Ok(None);
    }
    Ok(Some(Ok(control.read(udp::REGISTER_RUN)? as u8)))
}

/// Stops a board; who has.
fn stop(control: &mut SlowControl) -> anyhow::Result<By> {
    // One that does not answer is told all the same.
    let was_stopped = control.read(udp::REGISTER_ENABLE).is_ok_and(|enabled| enabled == 0);
    control.write(udp::REGISTER_ENABLE, 0)?;
    Ok(if was_stopped { By::Another } else { By::ThisProgram })
}

fn serve(
    mut control: SlowControl,
    (port, runs): (u16, &Runs),
    waiting: &Waiting,
    requests: &Receiver<Request>,
    answers: &Sender<Answer>,
) {
    let board = control.board();
    let failed = |error| Answer::Failed(board, error);
    let (mut stopped, mut marked) = (By::None, None);
    for request in requests {
        let answer = match request {
            Request::Start => match start_when_there(&mut control, (port, runs), waiting) {
                Ok(mark) => {
                    marked = Some(mark);
                    Some(Answer::Started)
                }
                Err(error) => Some(failed(error)),
            },
            Request::Stop => match stop(&mut control) {
                Ok(by) => {
                    stopped = by;
                    None
                }
                Err(error) => Some(failed(error)),
            },
            Request::HasEnded(run, _asked) => {
                let ended = ended(&mut control, (port, run), (stopped, marked)).ok().flatten();
                ended.map(|ended| Answer::Ended(control.board(), run, ended))
            }
            Request::Runs(_asked) => {
                let next = idle(&mut control, port, (stopped, marked)).ok().flatten();
                next.map(|next| Answer::Idle(board, next))
            }
        };
        if let Some(answer) = answer {
            let has_failed = matches!(answer, Answer::Failed(..));
            // Nobody may listen any more.
            let _ = answers.send(answer);
            if has_failed {
                // It is said once.
                break;
            }
        }
    }
}

impl Boards {
    /// Directs the streams of all of them to this port of the computer and starts them, each as soon as it answers.
    ///
    /// # Errors
    /// There is no way to a board, or no thread for it.
    pub fn start(
        addresses: &[Ipv4Addr],
        port: u16,
        (patience, wait): (UdpPatience, Duration),
    ) -> anyhow::Result<Boards> {
        let (answer, answers) = channel();
        let is_stopped: Arc<AtomicBool> = Arc::default();
        let (mut boards, runs) = (Vec::new(), Runs::default());
        for address in addresses {
            let control = SlowControl::new(*address, patience.attempt, patience.retries)?;
            let (request, requests) = channel();
            let (answer, runs) = (answer.clone(), runs.clone());
            let waiting = Waiting { patience, wait, is_stopped: is_stopped.clone() };
            let thread = std::thread::Builder::new()
                .name("slow control".into())
                .spawn(move || serve(control, (port, &runs), &waiting, &requests, &answer))?;
            let is_asked = Arc::default();
            boards.push(StartedBoard { address: *address, is_asked, requests: Some(request), thread: Some(thread) });
        }
        let boards = Boards { boards, answers, runs, is_stopped };
        boards.boards.iter().for_each(|board| board.ask(Request::Start));
        Ok(boards)
    }

    /// True if there are none: streams of all senders are received.
    pub fn is_empty(&self) -> bool {
        self.boards.is_empty()
    }

    /// True if this is one of them.
    pub fn contains(&self, address: Ipv4Addr) -> bool {
        self.addresses().any(|board| board == address)
    }

    /// All of them.
    pub fn addresses(&self) -> impl Iterator<Item = Ipv4Addr> + '_ {
        self.boards.iter().map(|board| board.address)
    }

    /// The run that a board was started for, once it is known.
    pub fn run(&self, address: Ipv4Addr) -> Option<u8> {
        lock(&self.runs).get(&address).copied()
    }

    /// True if this run of a board is for this receiver: the one that it was started for, or one behind it.
    pub fn is_current(&self, address: Ipv4Addr, run: u8) -> bool {
        self.run(address).is_some_and(|first| run.wrapping_sub(first) < 128)
    }

    /// Asks a board whether its run is over; the answer is [`Answer::Ended`], if it is.
    pub fn ask_for_end(&self, address: Ipv4Addr, run: u8) {
        self.ask(address, |asked| Request::HasEnded(run, asked));
    }

    /// Asks a board that was stopped which runs it has begun; the answer is [`Answer::Idle`], if none is under way.
    pub fn ask_for_runs(&self, address: Ipv4Addr) {
        self.ask(address, Request::Runs);
    }

    fn ask(&self, address: Ipv4Addr, request: impl FnOnce(Asked) -> Request) {
        if let Some(board) = self.boards.iter().find(|board| board.address == address) {
            // One question at a time: behind a slow link STOP would wait for all of them.
            if !board.is_asked.swap(true, Ordering::Relaxed) {
                board.ask(request(Asked(board.is_asked.clone())));
            }
        }
    }

    /// Stops all of them, also if one fails.
    pub fn stop(&mut self) {
        if self.is_stopped.swap(true, Ordering::Relaxed) {
            return;
        }
        self.boards.iter().for_each(|board| board.ask(Request::Stop));
    }

    /// What they have answered meanwhile.
    pub fn answers(&self) -> impl Iterator<Item = Answer> + '_ {
        self.answers.try_iter()
    }

    /// No more is asked: true if all have done or refused what they were asked to.
    pub fn are_done(&mut self) -> bool {
        self.boards.iter_mut().for_each(|board| board.requests = None);
        self.boards.iter().all(|board| board.thread.as_ref().is_none_or(JoinHandle::is_finished))
    }
}

impl StartedBoard {
    fn ask(&self, request: Request) {
        if let Some(requests) = &self.requests {
            // Its thread ends with this sender alone.
            let _ = requests.send(request);
        }
    }
}

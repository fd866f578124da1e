//! A command is executed exactly once (docs/protocol/fade10g.md, "Exactly once"): sessions that begin at each possible
//! last number of a board, programs that take turns, programs that are killed. The board counts.

use std::path::PathBuf;
use std::sync::mpsc::{channel, Receiver as Replies};
use std::sync::Arc;
use std::time::Duration;

use fadelink_feb::{BoardSettings, Fade10gBoard, Quirks, Status, User};
use fadelink_receiver::engine::{Command, CommandError, Engine, FebConfig};
use fadelink_receiver::numbers::Numbers;
use fadelink_receiver::shared::Shared;
use fadelink_wire::fade10g::{self, Request};
use fadelink_wire::{Firmware, MacAddr, Protocol};

const PC: MacAddr = MacAddr([2, 0xfa, 0xde, 0, 0, 0xf0]);
const FEB: MacAddr = MacAddr([2, 0xfa, 0xde, 0, 0, 1]);
const TIMEOUT: Duration = Duration::from_millis(20);
/// Adds the argument; the response is the sum.
const ADD: u16 = 0x0207;

#[derive(Default)]
struct Sum {
    sum: u64,
    /// How often a transmission began.
    begun: u32,
}

impl User for Sum {
    fn begin(&mut self) {
        self.begun += 1;
    }

    fn fill(&mut self, _: &mut [u8]) -> usize {
        0
    }

    fn command(&mut self, code: u16, argument: u32, _: &Status) -> u64 {
        assert_eq!(code, ADD);
        self.sum += u64::from(argument);
        self.sum
    }
}

/// A board that adds, and the time.
struct Adder {
    feb: Fade10gBoard<Sum>,
    now: Duration,
}

impl Adder {
    fn new(firmware: Firmware) -> Adder {
        let settings = BoardSettings { window: 1, quirks: Quirks::of(firmware), ..BoardSettings::default() };
        Adder { feb: Fade10gBoard::new(FEB, settings, Sum::default()), now: Duration::ZERO }
    }

    /// A command of this computer, which another program has sent.
    fn executes(&mut self, csn: u16, argument: u32) {
        self.feb.take(&Request::Command { code: ADD, csn, argument }.to_frame(FEB, PC), self.now);
        while self.feb.give(self.now).is_some() {}
    }
}

/// A program that has the board open.
struct Program {
    engine: Engine,
    sent: Vec<Vec<u8>>,
}

type Outcome = Replies<Result<u64, CommandError>>;

impl Program {
    fn new(numbers: Numbers, firmware: Option<Firmware>) -> Program {
        let protocol = Some(Protocol::Fade10g);
        let config = FebConfig { ring_packets: 1, window: 1, protocol, firmware, ..FebConfig::default() };
        let (shared, _) = Shared::new(config.ring_packets).unwrap();
        let mut engine = Engine::new(PC, false, Arc::default());
        assert!(engine.open(FEB, config, true, shared, numbers));
        Program { engine, sent: Vec::new() }
    }

    fn command(&mut self, code: u16, argument: u32, board: &Adder) -> Outcome {
        let (tell, outcome) = channel();
        let reply = Box::new(move |result| tell.send(result).unwrap_or(()));
        let command = Command { code, argument, timeout: TIMEOUT, retries: 5, reply };
        self.engine.command(FEB, command, board.now, &mut |frame: &[u8]| self.sent.push(frame.to_vec()));
        outcome
    }

    /// Passes what was sent to the board.
    fn send(&mut self, board: &mut Adder) {
        for frame in std::mem::take(&mut self.sent) {
            board.feb.take(&frame, board.now);
        }
    }

    /// Passes what the board sends to this program.
    fn receive(&mut self, board: &mut Adder) {
        while let Some(frame) = board.feb.give(board.now) {
            self.engine.frame(frame, board.now, &mut |frame: &[u8]| self.sent.push(frame.to_vec()));
        }
    }

    /// The outcome, when all frames arrive.
    fn outcome(&mut self, outcome: &Outcome, board: &mut Adder) -> Result<u64, CommandError> {
        loop {
            self.send(board);
            self.receive(board);
            if let Ok(outcome) = outcome.try_recv() {
                return outcome;
            }
            board.now += TIMEOUT / 4;
            self.engine.poll(board.now, &mut |frame: &[u8]| self.sent.push(frame.to_vec()));
        }
    }

    fn run(&mut self, code: u16, argument: u32, board: &mut Adder) -> Result<u64, CommandError> {
        let outcome = self.command(code, argument, board);
        self.outcome(&outcome, board)
    }
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("fadelink-once-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

#[test]
fn a_session_begins_at_each_possible_last_number() {
    let mut board = Adder::new(Firmware::Fadelink);
    for last in 0..=u16::MAX {
        board.executes(last, 10);
        let before = board.feb.user.sum;
        let mut session = Program::new(Numbers::private(None), None);
        assert_eq!(session.run(ADD, 1, &mut board), Ok(before + 1), "last number {last}");
        // And one that would draw the board's last number by itself, behind that of IDENTIFY.
        let mut session = Program::new(Numbers::private(Some(last.wrapping_sub(1))), None);
        assert_eq!(session.run(ADD, 1, &mut board), Ok(before + 2), "last number {last}");
        assert_eq!(board.feb.user.sum, before + 2);
    }
}

#[test]
fn a_transmission_begins_and_ends_at_each_possible_last_number() {
    let mut board = Adder::new(Firmware::Fadelink);
    for last in 0..=u16::MAX {
        board.executes(last, 0);
        let mut session = Program::new(Numbers::private(Some(last.wrapping_sub(2))), None);
        assert_eq!(session.run(fade10g::CMD_START, 0, &mut board), Ok(0), "last number {last}");
        assert_eq!(board.feb.user.begun, u32::from(last) + 1);
        assert!(board.feb.status().running);
        assert_eq!(session.run(fade10g::CMD_STOP, 0, &mut board), Ok(0), "last number {last}");
        session.receive(&mut board);
        session.engine.confirm(&mut |frame: &[u8]| board.feb.take(frame, board.now));
        assert!(!board.feb.status().running, "last number {last}");
    }
}

#[test]
fn a_published_board_is_sent_no_number_that_it_executed_last() {
    let mut board = Adder::new(Firmware::Published10g);
    for last in 1..=u16::MAX {
        board.executes(last, 10);
        let before = board.feb.user.sum;
        // This computer remembers it, and the session's first number is another: the board would execute it again.
        let mut session = Program::new(Numbers::private(Some(last)), Some(Firmware::Published10g));
        let outcome = session.command(ADD, 1, &board);
        let sent = fade10g::parse_request(&session.sent[0]).unwrap().1;
        assert!(matches!(sent, Request::Command { code: ADD, csn, .. } if csn != last && csn != 0), "{sent:?}");
        assert_eq!(session.outcome(&outcome, &mut board), Ok(before + 1));
        assert_eq!(board.feb.user.sum, before + 1);
    }
}

#[test]
fn a_number_that_a_frame_shows_is_not_sent() {
    for last in 1..=u16::MAX {
        let mut session = Program::new(Numbers::private(Some(last.wrapping_sub(1))), Some(Firmware::Published10g));
        let shown = fade10g::Response { code: ADD, csn: last, value: 5 }.to_frame(PC, FEB);
        session.engine.frame(&shown, Duration::ZERO, &mut |_: &[u8]| {});
        session.command(ADD, 1, &Adder::new(Firmware::Published10g));
        let sent = fade10g::parse_request(&session.sent[0]).unwrap().1;
        let after = last.wrapping_add(1).max(1);
        assert_eq!(sent, Request::Command { code: ADD, csn: after, argument: 1 });
    }
}

#[test]
fn programs_that_take_turns() {
    let folder = folder("turns");
    for (shared, firmware) in [(true, Firmware::Fadelink), (false, Firmware::Fadelink), (true, Firmware::Published10g)]
    {
        let mut board = Adder::new(firmware);
        let numbers = |_| match shared {
            true => Numbers::shared(&folder, &firmware.to_string()).unwrap(),
            false => Numbers::private(None),
        };
        let known = Some(firmware).filter(|firmware| *firmware != Firmware::Fadelink);
        let mut programs = [0, 1, 2].map(|i| Program::new(numbers(i), known));
        let mut random = fastrand::Rng::with_seed(1);
        for turn in 1..=2000 {
            let program = random.usize(..3);
            assert_eq!(programs[program].run(ADD, 1, &mut board), Ok(turn), "{firmware}, shared {shared}");
            if random.u8(..4) == 0 {
                programs[program] = Program::new(numbers(program), known);
            }
        }
        assert_eq!(board.feb.user.sum, 2000);
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_program_that_is_killed_before_the_answer_spoils_no_command_of_the_next() {
    let folder = folder("killed");
    for shared in [true, false] {
        let mut board = Adder::new(Firmware::Fadelink);
        for round in 0..2000 {
            let numbers = || match shared {
                true => Numbers::shared(&folder, "board").unwrap(),
                false => Numbers::private(None),
            };
            let before = board.feb.user.sum;
            let mut killed = Program::new(numbers(), None);
            killed.command(ADD, 100, &board);
            // IDENTIFY, its answer, and the command: the answer to that does not come.
            killed.send(&mut board);
            killed.receive(&mut board);
            killed.send(&mut board);
            drop(killed);
            assert_eq!(board.feb.user.sum, before + 100);
            let mut next = Program::new(numbers(), None);
            assert_eq!(next.run(ADD, 1, &mut board), Ok(before + 101), "round {round}, shared {shared}");
        }
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_program_with_a_counter_of_its_own_beside_one_that_shares() {
    // Its responses are not seen by the other, whose next number would be the same.
    let folder = folder("beside");
    let mut board = Adder::new(Firmware::Fadelink);
    let mut sharing = Program::new(Numbers::shared(&folder, "board").unwrap(), None);
    for turn in 0..1000 {
        assert_eq!(sharing.run(ADD, 1, &mut board), Ok(2 * turn + 1));
        let mut other = Program::new(Numbers::private(None), None);
        assert_eq!(other.run(ADD, 1, &mut board), Ok(2 * turn + 2));
    }
    std::fs::remove_dir_all(folder).unwrap();
}

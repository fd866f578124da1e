//! `fadelink demo`: two simulated boards send over a cable that loses frames; every word is received and verified.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{bail, ensure, Context};
use fadelink_receiver::Receiver;
use fadelink_wire::MacAddr;
use rustix::process::{kill_process, Pid, Signal};
use serde_json::Value;

use crate::exit;
use crate::link::{BackendArgs, BackendName, Link};
use crate::number;

/// The boards: the first one sends a counter, the second one random words.
const BOARDS: [MacAddr; 2] = [MacAddr([2, 0xfa, 0xde, 0, 0, 1]), MacAddr([2, 0xfa, 0xde, 0, 0, 2])];
/// Share of frames that the cable loses, in each direction.
const LOSS: f64 = 0.01;
const RANDOM_SEED: u32 = 0xFADE;
/// User commands of the simulated boards: random words, their seed, and a register to which a write adds.
const RANDOM: u16 = 0x0202;
const SEED: u16 = 0x0203;
const ADD: u16 = 0x0207;
const SUM: u16 = 0x0107;
/// Commands that are sent to a board in a row.
const BURST: u64 = 10;
/// From the last commands to the end of the data.
const QUIET: Duration = Duration::from_secs(3);

#[derive(clap::Args)]
pub struct Args {
    /// Time that the boards send
    #[arg(long, value_name = "SECONDS", default_value = "20", value_parser = number::seconds)]
    seconds: Duration,
    /// Network interface to the boards; without --boards-iface it is made
    #[arg(long, value_name = "NAME", default_value = "fadelink0")]
    iface: String,
    /// Network interface of the boards, at the other end of a cable that is there
    #[arg(long, value_name = "NAME")]
    boards_iface: Option<String>,
    /// The simulated boards [default: fadelink-sim beside this program, or in PATH]
    #[arg(long, value_name = "FILE")]
    simulator: Option<PathBuf>,
}

/// A program that is ended with this.
struct Program(Child);

impl Program {
    /// Asks it to end.
    fn stop(&self) {
        // It may have ended by itself.
        let _ = kill_process(Pid::from_child(&self.0), Signal::TERM);
    }

    /// Waits for its end: its report, and whether it did well.
    fn report(mut self) -> anyhow::Result<(Value, bool)> {
        let mut text = String::new();
        if let Some(out) = &mut self.0.stdout {
            out.read_to_string(&mut text)?;
        }
        let status = self.0.wait()?;
        let report = serde_json::from_str(&text).context("its report")?;
        Ok((report, status.success()))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.stop();
        let _ = self.0.wait();
    }
}

impl Args {
    fn simulator(&self) -> PathBuf {
        let beside = || {
            let path = std::env::current_exe().ok()?.with_file_name("fadelink-sim");
            path.exists().then_some(path)
        };
        self.simulator.clone().or_else(beside).unwrap_or_else(|| "fadelink-sim".into())
    }

    /// The boards, when they answer.
    fn boards(&self) -> anyhow::Result<Program> {
        let path = self.simulator();
        let mut command = Command::new(&path);
        command.args(["--iface", self.boards_iface.as_ref().unwrap_or(&self.iface)]);
        if self.boards_iface.is_none() {
            command.arg("--create-tap");
        }
        command.args(["--boards", &BOARDS.len().to_string(), "--link", &format!("loss={LOSS}"), "--json"]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut boards = Program(child.with_context(|| format!("the simulated boards, {}", path.display()))?);
        let mut said = BufReader::new(boards.0.stderr.take().context("the simulated boards")?);
        let mut line = String::new();
        said.read_line(&mut line)?;
        if !line.contains("board(s) on") {
            said.read_to_string(&mut line)?;
            bail!("the simulated boards: {}", line.trim());
        }
        // What it says later is of no interest, but it must be able to say it.
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        Ok(boards)
    }

    fn link(&self) -> Link {
        let backend_args = BackendArgs { backend: BackendName::Packet, busy_poll: false };
        Link { iface: self.iface.clone(), backend_args }
    }

    fn receiver(&self) -> anyhow::Result<Program> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args([
            "receive",
            "--json",
            "--iface",
            &self.iface,
            "--duration",
            &self.seconds.as_secs_f64().to_string(),
        ]);
        for (board, pattern) in BOARDS.iter().zip(["counter".to_owned(), format!("random:{RANDOM_SEED}")]) {
            command.args(["--feb", &board.to_string(), "--verify", &pattern]);
        }
        Ok(Program(command.stdout(Stdio::piped()).spawn()?))
    }
}

fn command(receiver: &Receiver, board: MacAddr, code: u16, argument: u32) -> anyhow::Result<u64> {
    Ok(receiver.open_for_commands(board)?.command(code, argument)?)
}

/// Prints the result: true if it is as it should be.
fn tell(report: &Value, boards: &Value, sent: u64, executed: &[u64]) -> anyhow::Result<bool> {
    out!(
        "{:17} {:>10} {:>12} {:>9} {:>12} {:>9}",
        "",
        "received",
        "frames lost",
        "repaired",
        "words wrong",
        "commands"
    );
    let febs = report["febs"].as_array().context("its report")?;
    let sum = |name: &str| febs.iter().filter_map(|feb| feb[name].as_u64()).sum::<u64>();
    for (feb, executed) in febs.iter().zip(executed) {
        let number = |value: &Value| value.as_u64().unwrap_or(0);
        let counters = &feb["counters"];
        out!(
            "{} {:7.2} MB {:12} {:9} {:12} {executed:9}",
            feb["feb"].as_str().unwrap_or_default(),
            number(&feb["bytes"]) as f64 / 1e6,
            number(&counters["missing_frames"]),
            number(&counters["repaired"]),
            number(&feb["wrong_words"]),
        );
    }
    let simulated = boards["simulated_us"].as_f64().unwrap_or(f64::NAN);
    let rate = sum("bytes") as f64 * 8.0 / BOARDS.len() as f64 / simulated / 1000.0;
    out!("A packet that is lost twice counts twice as lost, and once as repaired.\n");
    out!("In the boards' own time this took {:.0} ms: each sent {rate:.1} Gb/s of data.", simulated / 1000.0);
    let good = report["complete"] == true && executed.iter().all(|done| *done == sent);
    if good {
        out!(
            "PASSED: all {} words arrived, and are the words that the boards sent; each of {} commands was executed exactly once.",
            sum("words"),
            sent * BOARDS.len() as u64
        );
    } else {
        out!("FAILED: complete: {}; {sent} commands sent to each board, {executed:?} executed", report["complete"]);
    }
    Ok(good)
}

/// Runs the boards and the receiver.
///
/// # Errors
/// There are no simulated boards, or this user may not make an interface or receive frames.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    out!(
        "\nTwo 10 Gb/s front-end boards send their data to this computer over FADE-10G.\n  \
         Boards    the RTL of the core and its MAC, simulated clock by clock, so they are slower than real ones\n  \
         Cable     loses {} % of the frames in each direction\n  \
         Computer  receives {} boards, repairs what was lost, compares every word with what the board sent,\n            \
         and sends user commands to the boards at the same time\n",
        LOSS * 100.0,
        BOARDS.len()
    );
    let boards = args.boards()?;
    let commands = args.link().passive()?;
    command(&commands, BOARDS[1], RANDOM, 1)?;
    command(&commands, BOARDS[1], SEED, RANDOM_SEED)?;
    let receiver = args.receiver()?;
    // Each write adds 1 to a register: what is executed twice, or never, shows in the sum.
    let (mut sent, begin) = (0, Instant::now());
    while begin.elapsed() < args.seconds.saturating_sub(QUIET).max(Duration::from_secs(1)) {
        for board in BOARDS {
            for _ in 0..BURST {
                command(&commands, board, ADD, 1)?;
            }
        }
        sent += BURST;
    }
    let (report, _) = receiver.report()?;
    let executed = BOARDS.map(|board| command(&commands, board, SUM, 0));
    let executed = executed.into_iter().collect::<Result<Vec<_>, _>>()?;
    drop(commands);
    boards.stop();
    let (simulated, ended_well) = boards.report()?;
    ensure!(ended_well, "the simulated boards have failed");
    let good = tell(&report, &simulated, sent, &executed)?;
    Ok(exit::of_data(good))
}

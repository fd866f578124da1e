//! `fadelink top`: many boards at a glance, by their own counters.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use fadelink_receiver::{Commander, Receiver};
use fadelink_wire::fade10g::{self, Identity, PACKET_BYTES};
use fadelink_wire::{MacAddr, Protocol};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyModifiers};
use ratatui::layout::Constraint;
use ratatui::style::{Modifier, Style};
use ratatui::widgets::{Block, Row, Table};

use crate::discover::{named_or_found, Found};
use crate::names::{self, Names, Register, NONE, READ_REGISTER};
use crate::print::{self, Unprinted};
use crate::{link::Link, number};

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    link: Link,
    /// MAC address of a board; repeat for several [default: all boards that answer]
    #[arg(long, value_name = "MAC")]
    feb: Vec<MacAddr>,
    #[command(flatten)]
    names: names::Args,
    /// Time between two updates in seconds
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = number::seconds)]
    interval: Duration,
    /// Print this number of tables instead of showing them on the terminal
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    batch: Option<u32>,
}

const HEAD: [&str; 9] = ["board", "state", "MB/s", "packets", "repeated", "early", "delay", "errors", "firmware"];
const WIDTHS: [u16; 9] = [17, 8, 8, 10, 8, 7, 6, 6, 13];
/// The counters of the core in these columns.
const COUNTERS: [&str; 6] =
    ["sent", "retransmitted", "acknowledged", "early_retransmissions", "protocol_errors", "delay"];
/// A board that does not answer delays the others by at most this time.
const TIMEOUT: Duration = Duration::from_millis(20);
const RETRIES: u32 = 5;

struct Watched {
    mac: MacAddr,
    found: Found,
    commander: Commander,
    /// Confirmed packets, and when.
    before: Option<(u64, Instant)>,
}

impl Watched {
    fn ask(&self, code: u16) -> Option<u64> {
        self.commander.command_with(code, 0, TIMEOUT, RETRIES).ok()
    }

    /// One that cannot be reached is as one that is not there.
    fn read(&self, register: &Register) -> Option<u64> {
        register.code(false).map_or(Some(NONE), |code| self.ask(code))
    }

    /// What there is to say about it now: the columns of every board, then those of its registers.
    fn row(&mut self, names: &Names) -> Vec<String> {
        let mut row = vec![String::new(); HEAD.len()];
        row[0] = self.mac.to_string();
        row[8] = self.found.firmware.map_or(String::new(), |firmware| firmware.to_string());
        if self.found.protocol == Some(Protocol::Fade1) {
            row[1] = "FADE v1".into();
            return row;
        }
        let Some(identity) = self.ask(fade10g::CMD_IDENTIFY) else {
            row[1] = "silent".into();
            self.before = None;
            return row;
        };
        self.found.identity = Identity::from_value(identity);
        row[1] = if self.found.identity.is_some() { self.found.state().into() } else { "answers".into() };
        if names.identity.is_some_and(|identity| self.ask(READ_REGISTER) != Some(identity)) {
            return row;
        }
        for register in names.readable().filter(|register| register.columns().next().is_some()) {
            let Some(word) = self.read(register) else { return row };
            row.extend(register.shown(word).filter(|shown| shown.top).map(|shown| shown.text()));
        }
        let values = COUNTERS.map(|name| self.read(names.register(name)?));
        let [Some(sent), Some(again), Some(confirmed), Some(early), Some(errors), Some(delay)] = values else {
            return row;
        };
        let now = Instant::now();
        if let Some((before, then)) = self.before.replace((confirmed, now)) {
            // Counters have 32 bits in the boards.
            let packets = (confirmed as u32).wrapping_sub(before as u32);
            let rate = f64::from(packets) * PACKET_BYTES as f64 / (now - then).as_secs_f64();
            row[2] = format!("{:.2}", rate / 1e6);
        }
        row[3] = sent.to_string();
        row[4] = format!("{:.2} %", again as f64 * 100.0 / sent.max(1) as f64);
        row[5] = early.to_string();
        row[6] = delay.to_string();
        row[7] = errors.to_string();
        row
    }
}

fn boards(receiver: &Receiver, febs: Vec<(MacAddr, Found)>) -> anyhow::Result<Vec<Watched>> {
    let open = |(mac, found)| Ok(Watched { mac, found, commander: receiver.open_for_commands(mac)?, before: None });
    febs.into_iter().map(open).collect()
}

/// The columns and their widths.
fn columns(names: &Names) -> (Vec<String>, Vec<u16>) {
    let own: Vec<_> = names.readable().flat_map(Register::columns).collect();
    // A name may be short, and what it tells long.
    let widths = own.iter().map(|name| name.len().clamp(8, 24) as u16);
    (HEAD.map(String::from).into_iter().chain(own.clone()).collect(), WIDTHS.into_iter().chain(widths).collect())
}

/// Prints tables, a line a board.
fn print(args: &Args, names: &Names, boards: &mut [Watched], tables: u32) -> Result<(), Unprinted> {
    let (head, widths) = columns(names);
    let line = |cells: &[String]| {
        let cells = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}", width = (*width).into()));
        out!("{}", cells.collect::<Vec<_>>().join("  "));
    };
    for table in 0..tables {
        if table > 0 {
            out!("");
        }
        line(&head);
        boards.iter_mut().for_each(|board| line(&board.row(names)));
        print::check()?;
        if table + 1 < tables {
            std::thread::sleep(args.interval);
        }
    }
    Ok(())
}

fn is_end(event: &Event) -> bool {
    let Event::Key(key) = event else { return false };
    let control_c = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
    control_c || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc)
}

/// Shows the boards until `q`.
fn show(
    args: &Args,
    names: &Names,
    boards: &mut [Watched],
    terminal: &mut ratatui::DefaultTerminal,
) -> anyhow::Result<()> {
    let (head, widths) = columns(names);
    loop {
        let next = Instant::now() + args.interval;
        let rows: Vec<_> = boards.iter_mut().map(|board| Row::new(board.row(names))).collect();
        let running = format!(" {} boards on {}, q: quit ", rows.len(), args.link.iface);
        terminal.draw(|frame| {
            // On a narrow terminal the address stays whole.
            let mut widths: Vec<_> = widths.iter().copied().map(Constraint::Length).collect();
            widths[0] = Constraint::Min(WIDTHS[0]);
            let table = Table::new(rows, widths)
                .header(Row::new(head.clone()).style(Style::new().add_modifier(Modifier::BOLD)))
                .column_spacing(1)
                .block(Block::bordered().title(running));
            frame.render_widget(table, frame.area());
        })?;
        while let Some(left) = next.checked_duration_since(Instant::now()) {
            if event::poll(left)? && is_end(&event::read()?) {
                return Ok(());
            }
        }
    }
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let names = args.names.read()?;
    let febs = named_or_found(&args.link, &args.feb)?;
    let receiver = args.link.passive()?;
    let mut boards = boards(&receiver, febs)?;
    match args.batch {
        Some(tables) => print(args, &names, &mut boards, tables)?,
        None if std::io::stdout().is_terminal() => {
            let mut terminal = ratatui::try_init()?;
            let shown = show(args, &names, &mut boards, &mut terminal);
            let left = ratatui::try_restore().and_then(|()| terminal.show_cursor());
            // Its own end would tell an error of that, on a standard error that may be the same terminal, and panic.
            std::mem::forget(terminal);
            shown.and(left.map_err(Into::into))?;
        }
        None => anyhow::bail!("standard output is not a terminal; print tables with --batch N"),
    }
    Ok(ExitCode::SUCCESS)
}

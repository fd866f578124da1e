//! `fadelink doctor`: checks this computer and its network cards, and recommends settings (docs/computer.md).

mod card;
mod computer;
mod ethtool;
mod files;

use std::process::ExitCode;

use serde::Serialize;

use files::Files;

#[derive(clap::Args)]
pub struct Args {
    /// Network interface of the boards; repeat for several [default: all network cards]
    #[arg(long, value_name = "NAME")]
    iface: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// How good a setting is for a receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    /// As it should be.
    Good,
    /// The computer does not tell.
    Unknown,
    /// It works, but slower, later or with losses.
    Improve,
    /// Nothing can be received so.
    Fault,
}

/// What was found out about one setting.
#[derive(Debug, Serialize)]
struct Finding {
    /// The setting.
    check: &'static str,
    /// The interface, where it is one's.
    #[serde(skip_serializing_if = "Option::is_none")]
    iface: Option<String>,
    state: State,
    /// What it is now.
    found: String,
    /// What that means, unless it is good.
    #[serde(skip_serializing_if = "Option::is_none")]
    meaning: Option<&'static str>,
    /// The command or the step that mends it.
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

impl Finding {
    fn good(check: &'static str, found: impl Into<String>) -> Finding {
        Finding { check, iface: None, state: State::Good, found: found.into(), meaning: None, fix: None }
    }

    fn unknown(check: &'static str, found: impl Into<String>) -> Finding {
        Finding { state: State::Unknown, ..Finding::good(check, found) }
    }

    fn improve(check: &'static str, found: impl Into<String>, meaning: &'static str, fix: String) -> Finding {
        Finding { state: State::Improve, meaning: Some(meaning), fix: Some(fix), ..Finding::good(check, found) }
    }

    fn fault(check: &'static str, found: impl Into<String>, meaning: &'static str, fix: String) -> Finding {
        Finding { state: State::Fault, ..Finding::improve(check, found, meaning, fix) }
    }

    fn print(&self) {
        let state = match self.state {
            State::Good => "good",
            State::Unknown => "unknown",
            State::Improve => "improve",
            State::Fault => "FAULT",
        };
        let iface = self.iface.as_deref().map_or(String::new(), |iface| format!("{iface} "));
        out!("{state:8} {:30} {}", format!("{iface}{}", self.check), self.found);
        if let (Some(meaning), Some(fix)) = (self.meaning, &self.fix) {
            out!("{:39} {meaning}", "");
            out!("{:39} -> {fix}", "");
        }
    }
}

/// Looks at the computer and its network cards. Status 1 if something keeps a receiver from working.
///
/// # Errors
/// An interface that does not exist.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let files = Files::of_this_computer();
    let ifaces = if args.iface.is_empty() { files.cards() } else { args.iface.clone() };
    for iface in &ifaces {
        anyhow::ensure!(files.has_interface(iface), "interface {iface} does not exist; `ip link` lists those that do");
    }
    let mut findings = computer::examine(&files)?;
    for iface in &ifaces {
        let of_card = card::examine(&files, iface)?;
        findings.extend(of_card.into_iter().map(|finding| Finding { iface: Some(iface.clone()), ..finding }));
    }
    if args.json {
        out!("{}", serde_json::to_string(&findings)?);
    } else {
        findings.iter().for_each(Finding::print);
        if ifaces.is_empty() {
            out!("No network card was found; name an interface by --iface.");
        }
    }
    let is_faulty = findings.iter().any(|finding| finding.state == State::Fault);
    Ok(if is_faulty { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

//! `fadelink discover`: who is there.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use fadelink_receiver::backend::Backend;
use fadelink_wire::fade10g::{self, FebFrame, Request};
use fadelink_wire::MacAddr;
use serde::Serialize;
use serde_json::json;

use crate::link::Link;
use crate::number;

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    link: Link,
    /// Seconds to listen
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = number::seconds)]
    timeout: Duration,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What a FEB tells of itself (docs/protocol/fade10g.md, IDENTIFY).
#[derive(Debug, Clone, Copy, Serialize, PartialEq, Eq)]
pub struct Identity {
    /// Packets of its window.
    pub window: u32,
    /// A transmission runs.
    pub running: bool,
    /// A transmission is being stopped.
    pub stopping: bool,
}

impl Identity {
    /// From the value of the response; `None` if its layout is unknown.
    pub fn from_value(value: u64) -> Option<Identity> {
        let [layout, window, flags, ..] = value.to_be_bytes();
        (layout == 1 && window < 32).then(|| Identity {
            window: 1 << window,
            running: flags & 1 != 0,
            stopping: flags & 2 != 0,
        })
    }

    /// In a word.
    pub fn state(self) -> &'static str {
        match (self.running, self.stopping) {
            (_, true) => "stopping",
            (true, _) => "running",
            _ => "idle",
        }
    }
}

/// How often the question is repeated: it or its answer may be lost.
const REPEAT: Duration = Duration::from_millis(100);

/// Asks all FEBs, listens for `timeout`. A FEB that sends but does not answer has no identity.
pub fn discover(backend: &mut impl Backend, timeout: Duration) -> anyhow::Result<BTreeMap<MacAddr, Option<Identity>>> {
    let mut found = BTreeMap::new();
    let local = backend.local();
    let end = Instant::now() + timeout;
    let mut ask = Instant::now();
    let question = Request::Command { code: fade10g::CMD_IDENTIFY, csn: fastrand::u16(..), argument: 0 };
    loop {
        let now = Instant::now();
        if now >= end {
            return Ok(found);
        }
        if now >= ask {
            backend.send(&question.to_frame(MacAddr::BROADCAST, local))?;
            ask = now + REPEAT;
        }
        backend.receive(&mut |frame, _| {
            let Ok((header, body)) = fade10g::parse_feb(frame) else { return };
            let identity = match body {
                FebFrame::Response(Some(response)) if response.code == fade10g::CMD_IDENTIFY => {
                    Identity::from_value(response.value)
                }
                _ => None,
            };
            let known = found.entry(header.src).or_insert(None);
            *known = identity.or(*known);
        })?;
        // The ring hands frames over by itself; this is no place where latency matters.
        std::thread::sleep(ask.min(end).saturating_duration_since(now).min(Duration::from_millis(5)));
    }
}

/// The FEBs that the user named, or all that answer.
pub fn named_or_found(link: &Link, named: &[MacAddr]) -> anyhow::Result<Vec<MacAddr>> {
    if !named.is_empty() {
        return Ok(named.to_vec());
    }
    let found = discover(&mut link.frames()?, Duration::from_millis(500))?;
    anyhow::ensure!(!found.is_empty(), "no FEB answered on {}; name one with --feb", link.iface);
    Ok(found.into_keys().collect())
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let found = discover(&mut args.link.frames()?, args.timeout)?;
    for (mac, identity) in &found {
        if args.json {
            println!("{}", json!({ "feb": mac.to_string(), "identity": identity }));
        } else {
            match identity {
                Some(i) => println!("{mac}  FADE-10G, window {} packets, {}", i.window, i.state()),
                None => println!("{mac}  sends FADE-10G frames, does not answer IDENTIFY"),
            }
        }
    }
    if found.is_empty() && !args.json {
        eprintln!("fadelink: no FEB answered on {}", args.link.iface);
    }
    Ok(ExitCode::from(u8::from(found.is_empty())))
}

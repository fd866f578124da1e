//! `fadelink discover`: lists boards.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context;
use fadelink_receiver::backend::Backend;
use fadelink_receiver::interface::name_of;
use fadelink_receiver::numbers::Numbers;
use fadelink_receiver::Kind;
use fadelink_wire::ethernet::Header;
use fadelink_wire::fade10g::{self, FebFrame, Identity, Request, ResetBy, Response};
use fadelink_wire::{fade1, Firmware, MacAddr, Protocol, Resets};
use serde_json::{json, Value};

use crate::link::Link;
use crate::number;

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    link: Link,
    /// MAC address of a board to ask directly, because an idle board with a published core ignores broadcasts; repeat for
    /// several. Do not name a published core that another computer receives from: it would send to this computer
    #[arg(long, value_name = "MAC")]
    feb: Vec<MacAddr>,
    /// Time to listen in seconds
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = number::seconds)]
    timeout: Duration,
    /// Write the file of an experiment with these boards, for `fadelink run`
    #[arg(long, value_name = "FILE")]
    experiment: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What is known of a FEB without START.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Found {
    /// What it speaks.
    pub protocol: Option<Protocol>,
    /// Whose core it runs.
    pub firmware: Option<Firmware>,
    /// What a board of Fadelink reports about itself.
    pub identity: Option<Identity>,
    /// The answer to RESET BY, which is asked where RESETs were counted.
    reset_by: Option<ResetBy>,
    /// What a board of Fadelink with FADE v1 reports about itself.
    pub fade1: Option<fade1::State>,
    /// It sends data.
    pub sends: bool,
}

impl Found {
    fn note(&mut self, frame: &[u8]) {
        let response = match fade10g::parse_feb(frame) {
            Ok((_, FebFrame::Data(data))) => {
                self.sends = true;
                data.response
            }
            Ok((_, FebFrame::Response(response))) => response,
            Err(_) => return self.note_fade1(frame),
        };
        self.protocol = Some(Protocol::Fade10g);
        match response {
            Some(Response { code: fade10g::CMD_IDENTIFY, value, .. }) => {
                self.identity = Identity::from_value(value);
                let firmware = if self.identity.is_some() { Firmware::Fadelink } else { Firmware::Published10g };
                self.firmware = Some(firmware);
            }
            Some(Response { code: fade10g::CMD_RESET_BY, value, .. }) => {
                self.reset_by = Some(ResetBy::from_value(value))
            }
            _ => {}
        }
    }

    /// It has counted RESETs, and has not told yet who sent the last one.
    fn keeps_sender(&self) -> bool {
        self.reset_by.is_none()
            && self.identity.is_some_and(|identity| identity.resets.is_some_and(|resets| resets > 0))
    }

    /// All that is asked is known.
    fn is_known(&self) -> bool {
        self.firmware.is_some() && !self.keeps_sender()
    }

    /// RESETs since START.
    fn resets(&self) -> Option<Resets> {
        let fade10g = self.identity.and_then(|identity| identity.resets);
        let fade10g = fade10g.map(|count| Resets { count, by: self.reset_by.and_then(|told| told.by) });
        fade10g.or(self.fade1.and_then(|state| state.resets))
    }

    fn note_fade1(&mut self, frame: &[u8]) {
        let ours = match fade1::parse_feb(frame) {
            Ok((_, fade1::FebFrame::Data(data))) => {
                self.sends = true;
                data.retry == fade1::RETRY_FADELINK
            }
            Ok((_, fade1::FebFrame::State(state))) => {
                self.fade1 = Some(state);
                true
            }
            Err(_) => return,
        };
        self.protocol = Some(Protocol::Fade1);
        self.firmware = Some(if ours { Firmware::Fadelink } else { Firmware::PublishedV1 });
    }

    /// What it does, in a word.
    pub fn state(&self) -> &'static str {
        match self.identity {
            Some(Identity { stopping: true, .. }) => "stopping",
            Some(Identity { running: true, .. }) => "running",
            Some(_) => "idle",
            None if self.fade1.is_some() => self.fade1.map_or("", |state| state.phase.name()),
            None if self.sends => "sends",
            None => "silent",
        }
    }

    /// The part of a report that says what it is.
    pub fn json(&self, feb: MacAddr) -> Value {
        json!({
            "feb": feb.to_string(),
            "protocol": self.protocol.map(|protocol| protocol.to_string()),
            "firmware": self.firmware.map(|firmware| firmware.to_string()),
            "sends": self.sends,
            "identity": self.identity.map(identity_json).or_else(|| self.fade1.map(fade1_json)),
            "reset_by": self.resets().and_then(|resets| resets.by).map(|by| by.to_string()),
        })
    }

    /// The same in words.
    pub fn words(&self) -> String {
        let firmware = self.firmware.map_or("unknown firmware".into(), |firmware| firmware.to_string());
        let window = self.identity.map_or(String::new(), |i| format!(", window {} packets", i.window));
        let mut words = format!("{}, {firmware}{window}, {}", protocol_in_words(self.protocol), self.state());
        if self.protocol == Some(Protocol::Fade10g) && self.firmware.is_none() {
            words += ", does not answer IDENTIFY";
        }
        if let Some(Resets { count: count @ 1.., by }) = self.resets() {
            words += &format!(", {count} RESETs since START");
            words += &by.map_or(String::new(), |by| format!(", the last from {by}"));
        }
        words
    }
}

/// The answer to IDENTIFY of FADE v1.
pub fn fade1_json(state: fade1::State) -> Value {
    let fade1::State { phase, transmission, packets, resets, checksum, permit: _ } = state;
    let crc = checksum.map(|sum| json!({ "crc": sum.crc, "last_words": sum.last_words }));
    json!({ "state": phase.name(), "transmission": transmission, "packets": packets, "resets": resets_json(resets),
            "checksum": crc })
}

/// The answer to IDENTIFY.
pub fn identity_json(identity: Identity) -> Value {
    let Identity { window, running, stopping, block_acks, csn, transmission, resets, checksum, same_words } = identity;
    json!({ "window": window, "running": running, "stopping": stopping, "block_acks": block_acks, "csn": csn,
            "transmission": transmission, "resets": resets, "checksum": checksum, "same_words": same_words })
}

/// RESETs since START.
pub fn resets_json(resets: Option<Resets>) -> Value {
    resets.map_or(Value::Null, |Resets { count, by }| json!({ "count": count, "by": by.map(|by| by.to_string()) }))
}

fn protocol_in_words(protocol: Option<Protocol>) -> &'static str {
    match protocol {
        Some(Protocol::Fade10g) => "FADE-10G",
        Some(Protocol::Fade1) => "FADE v1",
        None => "unknown protocol",
    }
}

/// What a receiver found a FEB to be.
pub fn in_words(kind: Kind) -> String {
    let firmware = kind.firmware.map_or("unknown firmware".into(), |firmware| firmware.to_string());
    let order = kind.word_order.map_or(String::new(), |order| format!(", words {order}-endian on the wire"));
    format!("{}, {firmware}{order}", protocol_in_words(Some(kind.protocol)))
}

/// How often the question is repeated: it or its answer may be lost.
const REPEAT: Duration = Duration::from_millis(100);

/// Asks all FEBs, those `named` and those that are heard each by its address, and listens for `timeout`, or until all
/// `named` are known.
pub fn discover(
    backend: &mut impl Backend,
    named: &[MacAddr],
    timeout: Duration,
) -> anyhow::Result<BTreeMap<MacAddr, Found>> {
    let mut found: BTreeMap<MacAddr, Found> = BTreeMap::new();
    let local = backend.local();
    let end = Instant::now() + timeout;
    let mut ask = Instant::now();
    // A published core executes IDENTIFY like any command.
    let mut numbers: BTreeMap<MacAddr, Numbers> = BTreeMap::new();
    // Why the last question could not be sent: an interface that is down may come up.
    let mut unsent = None;
    loop {
        let now = Instant::now();
        let is_known = |mac: &MacAddr| found.get(mac).is_some_and(Found::is_known);
        if now >= end || !named.is_empty() && named.iter().all(is_known) {
            return match unsent.filter(|_| found.is_empty()) {
                Some(error) => Err(error),
                None => Ok(found),
            };
        }
        if now >= ask {
            let heard = found.iter().filter(|(_, found)| found.protocol == Some(Protocol::Fade10g)).map(|(mac, _)| mac);
            let mut asked: Vec<_> = named.iter().chain(heard).filter(|mac| !is_known(mac)).copied().collect();
            asked.dedup();
            if named.is_empty() {
                asked.push(MacAddr::BROADCAST);
            }
            for mac in asked {
                let numbers = numbers.entry(mac).or_insert_with(|| match mac {
                    MacAddr::BROADCAST => Numbers::private(None),
                    _ => Numbers::of(backend.index(), mac),
                });
                let keeps_sender = found.get(&mac).is_some_and(Found::keeps_sender);
                let code = if keeps_sender { fade10g::CMD_RESET_BY } else { fade10g::CMD_IDENTIFY };
                let question = Request::Command { code, csn: numbers.draw(), argument: 0 };
                unsent = backend.send(&question.to_frame(mac, local)).err().map(|error| {
                    let name = name_of(backend.index()).unwrap_or_default();
                    anyhow::Error::from(error).context(format!("interface {name}: the question to boards was not sent"))
                });
            }
            ask = now + REPEAT;
        }
        backend.receive(&mut |frame, _| {
            let Some((header, _)) = Header::split(frame) else { return };
            if header.ethertype == fade10g::ETHERTYPE && header.dst == local {
                found.entry(header.src).or_default().note(frame);
            }
        })?;
        // The ring hands frames over by itself; latency does not matter here.
        std::thread::sleep(ask.min(end).saturating_duration_since(now).min(Duration::from_millis(5)));
    }
}

/// What the FEBs are that the user named, in their order, or all that answer.
pub fn named_or_found(link: &Link, named: &[MacAddr]) -> anyhow::Result<Vec<(MacAddr, Found)>> {
    let mut found = discover(&mut link.frames()?, named, Duration::from_millis(500))?;
    if !named.is_empty() {
        return Ok(named.iter().map(|mac| (*mac, found.remove(mac).unwrap_or_default())).collect());
    }
    anyhow::ensure!(
        !found.is_empty(),
        "no board answered on {}; check its power and the cable, or name one with --feb",
        link.iface
    );
    Ok(found.into_iter().collect())
}

/// The file of an experiment with these boards (docs/runs.md).
fn experiment(iface: &str, found: &BTreeMap<MacAddr, Found>) -> String {
    let mut text = String::from("# Fields: docs/runs.md, or `fadelink run --schema`.\nfolder = \"runs\"\n");
    for (number, (mac, found)) in (1..).zip(found) {
        text += &format!("\n[[fade]]\nname = \"board{number}\"\ninterface = \"{iface}\"\nmac = \"{mac}\"\n");
        if let Some(protocol) = found.protocol {
            text += &format!("protocol = \"{protocol}\"\n");
        }
    }
    text
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut backend = args.link.frames()?;
    let mut found = discover(&mut backend, &args.feb, args.timeout)?;
    if !args.feb.is_empty() {
        for (mac, more) in discover(&mut backend, &[], args.timeout)? {
            found.entry(mac).or_insert(more);
        }
    }
    for (mac, found) in &found {
        if args.json {
            out!("{}", found.json(*mac));
        } else {
            out!("{mac}  {}", found.words());
        }
    }
    if let Some(path) = args.experiment.as_ref().filter(|_| !found.is_empty()) {
        let named = || format!("--experiment {}", path.display());
        let mut file = File::create_new(path).with_context(named)?;
        file.write_all(experiment(&args.link.iface, &found).as_bytes()).with_context(named)?;
    }
    if found.is_empty() {
        let more = if args.feb.is_empty() {
            "a board with a published core must be named with --feb"
        } else {
            "an idle board with a published FADE v1 core answers nothing, and is found only while it sends"
        };
        tracing::error!("no board answered on {}; check its power and the cable; {more}", args.link.iface);
    }
    Ok(ExitCode::from(u8::from(found.is_empty())))
}

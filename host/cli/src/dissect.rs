//! `fadelink dissect`: the FADE frames of a capture, in words.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use fadelink_wire::ethernet::Header;
use fadelink_wire::fade1;
use fadelink_wire::fade10g::{self, Data, Error, FebFrame, Identity, Request, ResetBy, Response};
use fadelink_wire::{Permit, Protocol, Resets};
use pcap_file::pcap::PcapReader;
use pcap_file::pcapng::{Block, PcapNgReader};
use serde_json::{json, Value};

use crate::discover::{fade1_json, identity_json};
use crate::number;
use crate::print::Lines;

#[derive(clap::Args)]
pub struct Args {
    /// Capture file, pcap or pcapng
    file: PathBuf,
    /// Print JSON, one line for each frame
    #[arg(long)]
    json: bool,
    /// Print only the counts
    #[arg(long)]
    summary: bool,
}

/// Hands each frame of the capture, with its time, to `each`.
fn frames(path: &Path, mut each: impl FnMut(Duration, &[u8]) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let name = || path.display().to_string();
    let mut file = File::open(path).with_context(name)?;
    let mut magic = [0; 4];
    file.read_exact(&mut magic).with_context(|| format!("{}: no capture, too short", name()))?;
    file.rewind().with_context(name)?;
    let file = BufReader::new(file);
    if magic == [0x0A, 0x0D, 0x0D, 0x0A] {
        let mut reader = PcapNgReader::new(file).with_context(name)?;
        while let Some(block) = reader.next_block() {
            match block.with_context(name)? {
                Block::EnhancedPacket(packet) => each(packet.timestamp, &packet.data)?,
                Block::SimplePacket(packet) => each(Duration::ZERO, &packet.data)?,
                _ => {}
            }
        }
    } else {
        let mut reader = PcapReader::new(file).with_context(|| format!("{}: neither pcap nor pcapng", name()))?;
        while let Some(packet) = reader.next_packet() {
            let packet = packet.with_context(name)?;
            each(packet.timestamp, &packet.data)?;
        }
    }
    Ok(())
}

fn identity(response: Response) -> Option<Identity> {
    Identity::from_value(response.value).filter(|_| response.code == fade10g::CMD_IDENTIFY)
}

fn reset_by(response: Response) -> Option<ResetBy> {
    (response.code == fade10g::CMD_RESET_BY).then(|| ResetBy::from_value(response.value))
}

fn resets_words(resets: Option<Resets>) -> String {
    let Some(Resets { count, by }) = resets else { return String::new() };
    format!(", {count} RESETs{}", by.map_or(String::new(), |by| format!(", the last from {by}")))
}

fn permit_words(permit: Option<Permit>) -> String {
    permit.map_or(String::new(), |permit| match permit.bits() {
        0 => ", no permit".into(),
        bits => format!(", permit {bits:#010x}"),
    })
}

/// The permit that the answer to START gives.
fn permit(response: Response) -> Option<Permit> {
    Permit::from_answer(response.value).filter(|_| response.code == fade10g::CMD_START)
}

fn response_json(response: Option<Response>) -> Value {
    let Some(response) = response else { return Value::Null };
    let Response { code, csn, value } = response;
    let mut json = json!({ "code": code, "csn": csn, "value": number::json(value) });
    if let Some(identity) = identity(response) {
        json["identity"] = identity_json(identity);
    }
    if let Some(permit) = permit(response) {
        json["permit"] = json!(permit.bits());
    }
    if let Some(ResetBy { transmission, by }) = reset_by(response) {
        json["reset_by"] = json!({ "transmission": transmission, "address": by.map(|by| by.to_string()) });
    }
    json
}

fn response_words(response: Response) -> String {
    let Response { code, csn, value } = response;
    let mut words = format!(", response to {code:#06x} csn {csn}: {value:#x}") + &permit_words(permit(response));
    if let Some(Identity { window, running, stopping, block_acks, csn, transmission, resets, checksum, same_words }) =
        identity(response)
    {
        words += &format!(" (window {window}, transmission {transmission}");
        let flags = [
            (running, ", running"),
            (stopping, ", stopping"),
            (block_acks, ", block ACKs"),
            (checksum, ", CRC of the words"),
            (same_words, ", sends the same words again"),
        ];
        words.extend(flags.iter().filter(|(set, _)| *set).map(|(_, name)| *name));
        words += &csn.map_or(String::new(), |csn| format!(", last csn {csn}"));
        words += &(resets_words(resets.map(|count| Resets { count, by: None })) + ")");
    }
    if let Some(ResetBy { transmission, by }) = reset_by(response) {
        let by = by.map_or("nobody".into(), |by| by.to_string());
        words += &format!(" (transmission {transmission}, reset by {by})");
    }
    words
}

/// Kind, fields, and the frame in words.
fn feb_frame(body: &FebFrame<'_>) -> (&'static str, Value, String) {
    let words = |response: Option<Response>| response.map_or(String::new(), response_words);
    match body {
        FebFrame::Response(response) => ("response", json!({ "response": response_json(*response) }), words(*response)),
        FebFrame::Data(data @ Data { sequence, packet, delay, response, last, .. }) => (
            if last.is_some() { "last" } else { "data" },
            json!({ "sequence": sequence, "packet": packet, "delay": delay, "valid_words": last,
                    "crc": data.checksum(), "response": response_json(*response) }),
            format!(
                "packet {packet}, sequence {sequence}, delay {delay}{}{}{}",
                last.map_or(String::new(), |words| format!(", {words} valid words")),
                data.checksum().map_or(String::new(), |crc| format!(", CRC {crc:#010x}")),
                words(*response)
            ),
        ),
    }
}

/// The bits of a block ACK.
fn add_stored(stored: Option<u64>, fields: &mut Value, text: &mut String) {
    if let Some(stored) = stored {
        fields["stored"] = number::json(stored);
        *text += &format!(", stored before it {stored:#018x}");
    }
}

fn request(request: &Request) -> (&'static str, Value, String) {
    match *request {
        Request::Command { code, csn, argument } => {
            let kind = match code {
                fade10g::CMD_START => "start",
                fade10g::CMD_STOP => "stop",
                fade10g::CMD_RESET => "reset",
                fade10g::CMD_IDENTIFY => "identify",
                fade10g::CMD_RESET_BY => "reset_by",
                _ => "command",
            };
            let permit = Permit::from_argument(argument).filter(|_| code == fade10g::CMD_START);
            let text = format!("code {code:#06x}, csn {csn}, argument {argument:#x}{}", permit_words(permit));
            (kind, json!({ "code": code, "csn": csn, "argument": argument }), text)
        }
        Request::Ack { negative, sequence, packet, delay, stored } => {
            let kind = if negative { "nack" } else { "ack" };
            let mut fields = json!({ "sequence": sequence, "packet": packet, "delay": delay });
            let mut text = format!("packet {packet}, sequence {sequence}, delay {delay}");
            add_stored(stored, &mut fields, &mut text);
            (kind, fields, text)
        }
    }
}

fn is_fade(frame: &[u8]) -> bool {
    Header::split(frame).is_some_and(|(header, _)| header.ethertype == fade10g::ETHERTYPE)
}

/// The same of FADE v1, in either direction.
fn fade1_frame(frame: &[u8]) -> Result<(&'static str, Value, String), String> {
    let words = |set, packet| format!("set {set}, packet {packet}");
    let parsed = match fade1::parse_feb(frame) {
        Ok((_, fade1::FebFrame::State(state))) => {
            let fade1::State { phase, transmission, packets, resets, checksum, permit } = state;
            let text = format!("FADE v1, {}, transmission {transmission}, {packets} packets", phase.name());
            let mut fields = fade1_json(state);
            fields["version"] = json!(1);
            fields["permit"] = json!(permit.map(Permit::bits));
            let crc =
                checksum.map(|sum| format!(", CRC {:#010x}, {} words in the last packet", sum.crc, sum.last_words));
            return Ok((
                "state",
                fields,
                text + &resets_words(resets) + &crc.unwrap_or_default() + &permit_words(permit),
            ));
        }
        Ok((_, fade1::FebFrame::Data(data))) => {
            let fade1::Data { set, packet, retry, delay, block_acks, same_words, .. } = data;
            let text = format!("FADE v1, {}, delay {delay}", words(set, packet));
            let fields = json!({ "version": 1, "set": set, "packet": packet, "retry": retry, "delay": delay,
                "block_acks": block_acks, "same_words": same_words });
            return Ok(("data", fields, text));
        }
        Err(fade1::Error::Type(_)) => fade1::parse_request(frame),
        Err(error) => Err(error),
    };
    let (_, body) = parsed.map_err(|error| error.to_string())?;
    let command = |kind| (kind, json!({ "version": 1 }), "FADE v1".to_owned());
    Ok(match body {
        fade1::Request::Start { transmission, permit } => (
            "start",
            json!({ "version": 1, "transmission": transmission, "permit": permit.map(Permit::bits) }),
            format!("FADE v1, transmission {transmission}{}", permit_words(permit)),
        ),
        fade1::Request::Stop => command("stop"),
        fade1::Request::Reset => command("reset"),
        fade1::Request::Ack { set, packet, stored } => {
            let mut fields = json!({ "version": 1, "set": set, "packet": packet });
            let mut text = format!("FADE v1, {}", words(set, packet));
            add_stored(stored, &mut fields, &mut text);
            ("ack", fields, text)
        }
    })
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut out = Lines::default();
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    let mut number = 0u64;
    frames(&args.file, |time, frame| {
        number += 1;
        // A capture has no direction. Frames with a type of a FEB are treated as frames of a FEB, though a user
        // command may have the same code.
        let parsed = match fade10g::parse_feb(frame) {
            _ if Protocol::of(frame) == Protocol::Fade1 && is_fade(frame) => fade1_frame(frame),
            Ok((_, body)) => Ok(feb_frame(&body)),
            Err(Error::EtherType(_)) => {
                *counts.entry("other_protocol".into()).or_default() += 1;
                return Ok(());
            }
            Err(Error::Type(_)) => {
                fade10g::parse_request(frame).map(|(_, body)| request(&body)).map_err(|error| error.to_string())
            }
            Err(error) => Err(error.to_string()),
        };
        let (kind, fields, text) = match parsed {
            Ok(parsed) => parsed,
            Err(error) => ("malformed", json!({ "error": error }), error),
        };
        *counts.entry(kind.into()).or_default() += 1;
        if args.summary {
            return Ok(());
        }
        let addresses = Header::split(frame).map(|(header, _)| header);
        let address = |mac: Option<fadelink_wire::MacAddr>| mac.map_or("?".to_owned(), |mac| mac.to_string());
        let (src, dst) = (address(addresses.map(|h| h.src)), address(addresses.map(|h| h.dst)));
        let seconds = time.as_secs_f64();
        if args.json {
            let line = json!({ "number": number, "time": seconds, "source": src, "destination": dst, "kind": kind,
                               "length": frame.len(), "fields": fields });
            out.add(format_args!("{line}"))?;
        } else {
            let text = text.trim_start_matches(", ");
            out.add(format_args!("{number:6} {seconds:.9} {src} > {dst} {kind:9} {text}"))?;
        }
        Ok(())
    })?;
    if args.json && args.summary {
        out.add(format_args!("{}", json!(counts)))?;
    } else if !args.json {
        let counts: Vec<_> = counts.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        out.add(format_args!("{number} frames: {}", counts.join(", ")))?;
    }
    Ok(ExitCode::SUCCESS)
}

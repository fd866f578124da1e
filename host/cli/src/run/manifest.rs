//! The manifest of a run.

use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

use fadelink_sinks::{durable, hashes};
use fadelink_wire::udp;
use serde_json::{json, Map, Value};

use super::experiment::File;
use super::folder::{RunFolder, MANIFEST};
use super::groups;
use super::moment;
use crate::receive::Outcome;
use crate::slow_control::SlowControl;

/// Version of the manifest's format.
pub const FORMAT: u64 = 1;
/// Of the slow control of boards: wait of one attempt, attempts after the first.
const TIMEOUT: Duration = Duration::from_millis(200);
const RETRIES: u32 = 4;

/// The registers of a UDP/IP stack that say how it was set and what its clock does.
const UDP_REGISTERS: [(&str, u32); 9] = [
    ("payload", udp::REGISTER_PAYLOAD),
    ("checksum", udp::REGISTER_CHECKSUM),
    ("ptp_role", udp::REGISTER_PTP_ROLE),
    ("ptp_locked", udp::REGISTER_PTP_LOCKED),
    ("ptp_offset_ns", udp::REGISTER_PTP_OFFSET),
    ("ptp_delay_ns", udp::REGISTER_PTP_DELAY),
    ("ptp_seconds", udp::REGISTER_PTP_SECONDS),
    ("ptp_ns", udp::REGISTER_PTP_NS),
    ("datagrams", udp::REGISTER_COUNTERS),
];

/// A manifest, and where it is.
pub struct Manifest {
    folder: RunFolder,
    content: Value,
}

/// What a board with slow control says of itself now; `null`: it does not answer.
fn udp_board(address: Ipv4Addr) -> Value {
    let read = || -> anyhow::Result<Value> {
        let mut control = SlowControl::new(address, TIMEOUT, RETRIES)?;
        let mut values = Map::new();
        for (name, register) in UDP_REGISTERS {
            let value = control.read(register)?;
            let is_signed = [udp::REGISTER_PTP_OFFSET, udp::REGISTER_PTP_DELAY].contains(&register);
            values.insert(name.into(), if is_signed { (value as i32).into() } else { value.into() });
        }
        Ok(values.into())
    };
    read().unwrap_or_else(|error| {
        tracing::warn!("{error:#}");
        Value::Null
    })
}

/// This moment, by all clocks: those of the computer, and those of boards with slow control.
fn moment(file: &File) -> Value {
    let experiment = &file.experiment;
    let mut interfaces: Vec<_> = experiment.fade.iter().map(|feb| &*feb.get_ref().interface).collect();
    interfaces.sort_unstable();
    interfaces.dedup();
    let mut now = moment::now(interfaces.into_iter());
    let boards: Map<_, _> =
        experiment.udp.iter().map(|board| (board.get_ref().name.clone(), udp_board(board.get_ref().address))).collect();
    if !boards.is_empty() {
        now["boards"] = boards.into();
    }
    now
}

/// The experiment as JSON.
fn settings(file: &File) -> Value {
    file.text.parse::<toml::Table>().ok().and_then(|table| serde_json::to_value(table).ok()).unwrap_or_default()
}

/// The table of a board in the experiment.
fn settings_of(settings: &Value, name: &str) -> Value {
    // Behind it is the port of a stream.
    let name = name.split('/').next().unwrap_or(name);
    let tables = ["fade", "tcp", "udp", "crates"].iter().filter_map(|kind| settings[kind].as_array());
    let found = tables.flatten().find(|table| table["name"] == name);
    found.cloned().unwrap_or_default()
}

/// The hashes of a board's words; their file is no longer needed then.
fn hashes_of(folder: &Path, board: &Value, settings: &Value) -> std::io::Result<Value> {
    let several = settings["streams"].as_u64().is_some_and(|streams| streams > 1);
    let name = settings["name"].as_str().unwrap_or_default();
    let path = folder.join(groups::hashes(name, several).replace("{stream}", &groups::stream(board)));
    let (blocks, bytes) = hashes::of_blocks(&hashes::read(&path)?);
    let blocks: Vec<_> = blocks.iter().map(|hash| hash.to_hex().to_string()).collect();
    Ok(json!({ "block_bytes": hashes::HASHED_BYTES, "bytes": bytes, "blake3": blocks }))
}

impl Manifest {
    /// Of a run that begins now.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn begin(folder: &RunFolder, file: &File) -> std::io::Result<Manifest> {
        let content = json!({
            "format": FORMAT,
            "run": folder.number,
            "title": file.experiment.title,
            "state": "running",
            "software": format!("fadelink {}", env!("CARGO_PKG_VERSION")),
            "computer": rustix::system::uname().nodename().to_string_lossy(),
            "begin": moment(file),
            "experiment": settings(file),
        });
        let manifest = Manifest { folder: folder.clone(), content };
        manifest.write()?;
        Ok(manifest)
    }

    fn write(&self) -> std::io::Result<()> {
        durable::replace(&self.folder.path.join(MANIFEST), format!("{:#}\n", self.content).as_bytes())
    }

    /// Adds the results of the run, and writes it. `files`: its files.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn finish(
        mut self,
        file: &File,
        outcomes: Vec<Outcome>,
        (ended_by, error): (&str, Option<String>),
        files: Value,
    ) -> std::io::Result<()> {
        let complete = error.is_none() && outcomes.iter().all(|outcome| outcome.good);
        let state = match (&error, complete) {
            (Some(_), _) => "failed",
            (None, true) => "complete",
            (None, false) => "incomplete",
        };
        self.content["state"] = state.into();
        self.content["ended_by"] = ended_by.into();
        self.content["error"] = error.into();
        self.content["end"] = moment(file);
        let (mut boards, mut groups, mut used) = (Vec::new(), Vec::new(), Vec::new());
        for outcome in outcomes {
            let names: Vec<_> = outcome.boards.iter().map(|board| board["name"].clone()).collect();
            for mut board in outcome.boards {
                let settings = settings_of(&self.content["experiment"], board["name"].as_str().unwrap_or_default());
                if outcome.key != "crates" {
                    board["hashes"] = hashes_of(&self.folder.path, &board, &settings)?;
                }
                board["settings"] = settings;
                boards.push(board);
            }
            let mut group = outcome.others;
            group.insert("boards".into(), names.into());
            groups.push(Value::from(group));
        }
        self.content["boards"] = boards.into();
        self.content["groups"] = groups.into();
        self.content["files"] = files;
        self.write()?;
        for entry in std::fs::read_dir(&self.folder.path)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "hashes") {
                used.push(path);
            }
        }
        used.iter().try_for_each(std::fs::remove_file)
    }
}

//! The manifest of a run.

use std::collections::HashMap;
use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use fadelink_runs::files::{is_note, EXPERIMENT, LOG, MANIFEST};
use fadelink_runs::manifest::{name, sealed, FORMAT};
use fadelink_runs::Error;
use fadelink_sinks::hashes::Entry;
use fadelink_sinks::{durable, hashes};
use fadelink_wire::{udp, Protocol};
use serde_json::{json, Map, Value};
use toml::Spanned;

use super::experiment::File;
use super::files;
use super::folder::RunFolder;
use super::groups::{self, Kept};
use super::moment;
use crate::board::Fade;
use crate::receive::{Outcome, Transmissions};
use crate::slow_control::SlowControl;
use crate::verdict::{Reason, State};
use crate::{names, status};

/// Shortest time between two entries of a timeline, in ns.
const TIMES: u64 = 1_000_000_000;
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

/// What is left of a stream of an unfinished run.
pub struct Certain {
    /// Its board.
    pub name: String,
    /// Of a board with several: the address and port of this one.
    pub stream: String,
    /// Its sinks, as in a report.
    pub sinks: Vec<Value>,
    /// The file with the hashes.
    pub hashes: PathBuf,
    /// Of a FADE board whose data was confirmed when it was safe.
    pub transmissions: Transmissions,
    /// What is not as it was, in words.
    pub changed: Option<String>,
}

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
            // The other bits are for the program that has started its stream.
            let value = if register == udp::REGISTER_CHECKSUM { value & udp::CHECKSUM_BIT } else { value };
            values.insert(name.into(), if is_signed { (value as i32).into() } else { value.into() });
        }
        Ok(values.into())
    };
    read().unwrap_or_else(|error| {
        tracing::warn!("{error:#}");
        Value::Null
    })
}

/// What a board with FADE-10G says of itself now; `null`: it does not answer, or has other registers.
fn fade_board(board: &Fade, base: &Path) -> Value {
    let read = || -> anyhow::Result<Option<Value>> {
        let names = names::read(board.registers.as_ref().map(|path| base.join(path)).as_deref())?;
        let receiver = board.link().passive()?;
        status::json(&receiver.open_for_commands(board.mac.0)?, &names)
    };
    read()
        .unwrap_or_else(|error| {
            tracing::warn!("{}: its registers are not in the manifest: {error:#}", board.name);
            None
        })
        .unwrap_or_default()
}

/// This moment, by all clocks: those of the computer, and those of boards with slow control. With what boards say of
/// themselves, if there is time to `ask` them.
fn moment(file: &File, ask: bool) -> Value {
    let experiment = &file.experiment;
    let mut interfaces: Vec<_> = experiment.fade.iter().map(|feb| &*feb.get_ref().interface).collect();
    interfaces.sort_unstable();
    interfaces.dedup();
    let mut now = moment::now(interfaces.into_iter());
    let base = file.path.parent().unwrap_or(Path::new(""));
    let udp = experiment.udp.iter().map(Spanned::get_ref).filter(|_| ask);
    let fade = experiment.fade.iter().map(Spanned::get_ref).filter(|_| ask);
    let fade = fade.filter(|board| board.protocol.is_none_or(|protocol| protocol.0 == Protocol::Fade10g));
    let boards = udp.map(|board| (board.name.clone(), udp_board(board.address)));
    let boards: Map<_, _> = boards.chain(fade.map(|board| (board.name.clone(), fade_board(board, base)))).collect();
    now["boards"] = boards.into();
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
fn hashes_of(folder: &Path, board: &Value, settings: &Value) -> io::Result<(Value, Value)> {
    let several = settings["streams"].as_u64().is_some_and(|streams| streams > 1);
    let name = settings["name"].as_str().unwrap_or_default();
    hash_list(&folder.join(groups::hashes(name, several).replace("{stream}", &fadelink_runs::stream(board))))
}

/// When the data had come: pairs of ns since 1970 and bytes, not more than one each second and the last.
fn timeline(entries: &[Entry]) -> Value {
    let mut times: Vec<(u64, u64)> = Vec::new();
    for Entry { record, time } in entries {
        match times.as_slice() {
            // The last one is there in any case.
            [.., (before, _), _] if time.saturating_sub(*before) < TIMES => _ = times.pop(),
            _ => {}
        }
        times.push((*time, record.end));
    }
    json!(times)
}

/// What the manifest says of a file.
fn entry(bytes: u64, hash: &blake3::Hash) -> Value {
    json!({ "bytes": bytes, "blake3": hash.to_hex().as_str() })
}

/// The entry of a file that each run has; of one that is not there the check tells.
fn entry_of_own(path: &Path) -> io::Result<Option<Value>> {
    match files::entry(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        found => found.map(Some),
    }
}

/// The hashes in a file, and the timeline.
fn hash_list(path: &Path) -> io::Result<(Value, Value)> {
    let entries = match hashes::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        entries => entries?,
    };
    let (blocks, bytes) = hashes::of_blocks(&entries);
    let blocks: Vec<_> = blocks.iter().map(|hash| hash.to_hex().to_string()).collect();
    let hashes = json!({ "block_bytes": hashes::HASHED_BYTES, "bytes": bytes, "blake3": blocks });
    Ok((hashes, timeline(&entries)))
}

impl Manifest {
    /// Of a run that begins now.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn begin(folder: &RunFolder, file: &File) -> anyhow::Result<Manifest> {
        let content = json!({
            "format": FORMAT,
            "run": folder.number,
            "title": file.experiment.title,
            "state": "running",
            "software": format!("fadelink {}", env!("CARGO_PKG_VERSION")),
            "computer": rustix::system::uname().nodename().to_string_lossy(),
            "begin": moment(file, true),
            "experiment": settings(file),
        });
        let manifest = Manifest { folder: folder.clone(), content };
        manifest.write()?;
        Ok(manifest)
    }

    /// Names the file of an error, which the operating system does not.
    fn of<T>(&self, name: &str, result: io::Result<T>) -> anyhow::Result<T> {
        result.with_context(|| format!("{}: {name}", self.folder.path.display()))
    }

    fn write(&self) -> anyhow::Result<()> {
        let path = self.folder.path.join(MANIFEST);
        let write = || durable::replace(&path, sealed(self.content.clone()).as_bytes()).map(drop);
        self.of("the manifest", self.folder.check().and_then(|()| write()))
    }

    /// Of a run that was not finished.
    ///
    /// # Errors
    /// It cannot be read, or was changed.
    pub fn open(folder: &RunFolder) -> Result<Manifest, Error> {
        let found = fadelink_runs::Manifest::read_sealed(&folder.path)?;
        Ok(Manifest { folder: folder.clone(), content: found.content })
    }

    /// A name that no other run has: its computer, its number, and when it began.
    pub fn name(&self) -> String {
        name(&self.content)
    }

    /// True if the run has not ended, by this.
    pub fn is_unfinished(&self) -> bool {
        self.was_stopped() || self.content["state"] == "running"
    }

    /// True if the end of the run was asked for.
    pub fn was_stopped(&self) -> bool {
        self.content["state"] == "stopping"
    }

    /// Why the end was asked for, if it was.
    pub fn ended_by(&self) -> Option<String> {
        self.content["ended_by"].as_str().map(str::to_owned)
    }

    /// The run goes on behind so many bytes of each board, after it had gone on for so long.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn resume(&mut self, file: &File, boards: &HashMap<String, Kept>, gone_on: Duration) -> anyhow::Result<()> {
        let mut now = moment(file, true);
        now["gone_on"] = gone_on.as_secs_f64().into();
        now["bytes"] =
            boards.iter().map(|(name, kept)| (name.clone(), kept.blocks.end().into())).collect::<Map<_, _>>().into();
        match self.content["resumed"].as_array_mut() {
            Some(all) => all.push(now),
            None => self.content["resumed"] = json!([now]),
        }
        self.write()
    }

    /// The end is asked for from now on, for this reason.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn stopping(&mut self, ended_by: &str) -> anyhow::Result<()> {
        self.content["ended_by"] = ended_by.into();
        self.content["state"] = "stopping".into();
        self.write()
    }

    /// The run cannot go on now, and does when the program is started again. What boards report so far is there until then.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn interrupted(mut self, outcomes: Vec<Outcome>, error: Option<String>) -> anyhow::Result<()> {
        self.content["error"] = error.into();
        self.list(outcomes.into_iter().flat_map(|outcome| outcome.boards).collect());
        self.write()
    }

    /// Ends the manifest of a run whose program was ended by force: `certain` is what is left of each stream, `others` are sinks of
    /// no stream.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn crashed(mut self, certain: Vec<Certain>, mut others: Value) -> anyhow::Result<()> {
        self.content["state"] = "crashed".into();
        self.content["ended_by"] = "crash".into();
        let mut boards = Vec::new();
        for Certain { name, stream, sinks, hashes, transmissions, changed } in certain {
            let (hashes, timeline) = self.of("its hashes", hash_list(&hashes))?;
            let mut board =
                json!({ "name": name, "complete": false, "sinks": sinks, "hashes": hashes, "timeline": timeline });
            board["bytes"] = board["hashes"]["bytes"].clone();
            board["settings"] = settings_of(&self.content["experiment"], &name);
            board["reasons"] = changed.into_iter().map(|text| Reason::Changed(text).json()).collect();
            if !stream.is_empty() {
                board["stream"] = stream.into();
            }
            if transmissions.newest().is_some() {
                board["restarted"] = transmissions.restarted().into();
                board["transmissions"] = json!(transmissions.all());
            }
            boards.push(board);
        }
        let mut listed = Map::new();
        files::list(&self.folder.path, &mut others, &mut listed);
        self.content["files"] = listed.into();
        self.list(boards);
        let of_own = |name: &str| self.of(name, entry_of_own(&self.folder.path.join(name)));
        let (copy, log) = (of_own(EXPERIMENT)?, of_own(LOG)?);
        self.seal(copy, log)
    }

    /// These boards, and the files of their sinks.
    fn list(&mut self, mut boards: Vec<Value>) {
        let mut listed = match self.content["files"].take() {
            Value::Object(listed) => listed,
            _ => Map::new(),
        };
        boards.iter_mut().for_each(|board| files::list(&self.folder.path, &mut board["sinks"], &mut listed));
        self.content["boards"] = boards.into();
        self.content["files"] = listed.into();
    }

    /// Writes the manifest for the last time, with the entries of the experiment's `copy` and of the log.
    fn seal(&mut self, copy: Option<Value>, log: Option<Value>) -> anyhow::Result<()> {
        for (name, entry) in [(EXPERIMENT, copy), (LOG, log)] {
            if let Some(entry) = entry {
                self.content["files"][name] = entry;
            }
        }
        self.write()?;
        self.drop_notes()
    }

    /// The files of hashes and transmissions are not needed any more: the manifest has them. The mark goes with them.
    ///
    /// # Errors
    /// The operating system's.
    pub fn drop_notes(&self) -> anyhow::Result<()> {
        self.of("its notes", self.remove_notes())
    }

    fn remove_notes(&self) -> io::Result<()> {
        self.folder.check()?;
        for entry in std::fs::read_dir(&self.folder.path)? {
            let entry = entry?;
            if entry.file_name().to_str().is_some_and(is_note) {
                std::fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    /// Adds the results of the run, and writes it: the worst verdict of its boards, and its files. `ask`: boards are asked for their
    /// registers. `log`: bytes and hash of what was written there.
    ///
    /// # Errors
    /// It cannot be written; hashes of words are not those that were written, and it says so.
    pub fn finish(
        mut self,
        file: &File,
        outcomes: Vec<Outcome>,
        (ended_by, error): (&str, Option<String>),
        (state, log): (State, Option<(u64, blake3::Hash)>),
        ask: bool,
    ) -> anyhow::Result<()> {
        self.content["end"] = moment(file, ask);
        let mut changed = None;
        let (mut boards, mut groups) = (Vec::new(), Vec::new());
        for mut outcome in outcomes {
            let mut group = outcome.of_the_whole();
            let names: Vec<_> = outcome.boards.iter().map(|board| board["name"].clone()).collect();
            for mut board in outcome.boards {
                let settings = settings_of(&self.content["experiment"], board["name"].as_str().unwrap_or_default());
                if outcome.key != "crates" {
                    let hashes = hashes_of(&self.folder.path, &board, &settings);
                    (board["hashes"], board["timeline"]) = self.of("its hashes", hashes)?;
                    if board["complete"] == true && board["hashes"]["bytes"] != board["bytes"] {
                        changed.get_or_insert(format!("{}: another program has changed its hashes", board["name"]));
                    }
                }
                board["settings"] = settings;
                boards.push(board);
            }
            group.insert("boards".into(), names.into());
            groups.push(Value::from(group));
        }
        let error = error.or_else(|| changed.clone());
        self.content["state"] = if error.is_some() { "failed" } else { state.name() }.into();
        self.content["ended_by"] = ended_by.into();
        self.content["error"] = error.into();
        self.content["groups"] = groups.into();
        self.list(boards);
        let copy = entry(file.text.len() as u64, &blake3::hash(file.text.as_bytes()));
        let log = log.map(|(bytes, hash)| entry(bytes, &hash));
        self.seal(Some(copy), log)?;
        self.of("the manifest", changed.map_or(Ok(()), |what| Err(io::Error::other(what))))
    }
}

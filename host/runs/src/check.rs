//! Checks a run: its files are those that the manifest lists, and what is in them is what was received.

use std::fs;
use std::path::{Component, Path, PathBuf};

use fadelink_sinks::Places;

use crate::claims;
use crate::files::{self, EXPERIMENT, LOG};
use crate::manifest::{Error, Manifest, CHANGED};
use crate::scope::{is_plain, Scope};
use crate::sinks::Sink;
use crate::words::{self, Expected};

/// What is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// The manifest, and the names and sizes of files.
    Sizes,
    /// Their content, too.
    Content,
}

/// What was found.
#[derive(Debug)]
pub struct Checked {
    /// The manifest.
    pub manifest: Manifest,
    /// What is not as it should be, in words.
    pub findings: Vec<String>,
    /// What cannot be checked, and need not be.
    pub notes: Vec<String>,
    /// Bytes that were read.
    pub bytes: u64,
}

impl Checked {
    /// The run is complete, and as it was received.
    pub fn is_good(&self) -> bool {
        self.findings.is_empty()
    }
}

/// Why a run in this state is not complete.
fn why(state: &str) -> &'static str {
    match state {
        "running" | "stopping" => "it goes on, or its program was ended by force; `fadelink run` finishes its manifest",
        "crashed" => "its program was ended by force; what is here is certain",
        "end_not_confirmed" => "nobody knows whether a board had more, see boards in its manifest",
        "incomplete" => "data of it is missing, see boards in its manifest",
        "failed" => "see error in its manifest",
        _ => "expected complete, incomplete, end_not_confirmed, failed, crashed, running or stopping",
    }
}

/// A check, as far as it has come.
struct Check<'a> {
    scope: Scope,
    manifest: &'a Manifest,
    depth: Depth,
    findings: Vec<String>,
    notes: Vec<String>,
    bytes: u64,
    /// Names of the files that need no hash: their words were compared with those of a board, or they may lack some.
    compared: Vec<String>,
    /// Names of the files of optional sinks that have failed: what they have left there is not looked at.
    failed: Vec<Places>,
    /// Boards of which there was something to check.
    boards: usize,
}

impl Check<'_> {
    /// Adds what is not known yet.
    fn add(&mut self, what: String) {
        if !self.findings.contains(&what) {
            self.findings.push(what);
        }
    }

    /// True if all files of a sink are listed with hashes of their own, by which [`Self::listed`] checks them.
    fn is_hashed(&mut self, sink: &Sink<'_>) -> bool {
        let named = |path: &PathBuf| self.manifest.content["files"][self.scope.named(path)]["blake3"].is_string();
        let found = sink.found(&self.scope.folder);
        let is_hashed = !found.is_empty() && found.iter().all(named);
        // A run that is not complete may have none.
        if !is_hashed && (self.manifest.state() == "complete" || !found.is_empty()) {
            self.add(format!("{}: expected its files in the manifest, with their hashes", sink.text));
        }
        is_hashed
    }

    /// Compares the words of a board in plain files; true: they were read.
    fn words(&mut self, sink: &Sink<'_>, expected: &Expected) -> bool {
        let paths = sink.found(&self.scope.folder);
        if paths.is_empty() {
            // A link without its target is not found either.
            let first = self.scope.folder.join(&sink.place);
            let why = self.scope.open(&first).err();
            self.add(why.unwrap_or_else(|| format!("{}: it was not finished", sink.text)));
            return false;
        }
        let sizes = self.depth == Depth::Sizes;
        match words::check_files(&self.scope, &paths, expected, (sizes, &mut self.findings)) {
            Ok(read) => {
                self.bytes += read;
                self.compared.extend(paths.iter().map(|path| self.scope.named(path)));
                true
            }
            Err(what) => {
                self.add(what);
                false
            }
        }
    }

    /// Compares the words of a board in a topic; true: they were read.
    #[cfg(feature = "kafka")]
    fn topic(&mut self, sink: &Sink<'_>, expected: &Expected) -> bool {
        let read = || -> fadelink_sinks::Result<_> {
            let mut comparison = words::Comparison::new(expected.clone());
            let topic = fadelink_sinks::kafka::Words::connect(sink.place.parse()?, &self.manifest.name())?;
            topic.each(0, |data| {
                comparison.update(data);
                true
            })?;
            Ok(comparison)
        };
        match read() {
            Ok(comparison) => {
                self.bytes += expected.bytes;
                self.findings.extend(comparison.finish(|_, _| sink.text.to_owned()));
                true
            }
            Err(failure) => {
                self.add(format!("{}: its words cannot be checked: {failure}", sink.text));
                false
            }
        }
    }

    #[cfg(not(feature = "kafka"))]
    fn topic(&mut self, sink: &Sink<'_>, _: &Expected) -> bool {
        self.add(format!("{}: its words cannot be checked: built without Kafka", sink.text));
        false
    }

    /// Checks the data of a board in each of its sinks.
    fn board(&mut self, board: &serde_json::Value) {
        let name = board["name"].as_str().unwrap_or_default();
        let expected = Expected::of(board);
        let mut is_read = false;
        for sink in Sink::all(board).into_iter().filter(|sink| sink.keeps) {
            if let (true, Some(error)) = (sink.optional, sink.error) {
                self.notes.push(format!("{name}: {}: it has failed, and is optional: {error}", sink.text));
                self.compared.extend(sink.names().iter().map(|name| (*name).to_owned()));
                self.failed.extend(sink.places(&self.scope.folder));
                continue;
            }
            if sink.dropped > 0 {
                let what = format!("{name}: {}: it lost {} bytes, and cannot be checked", sink.text, sink.dropped);
                if sink.may_drop {
                    self.notes.push(what);
                    self.compared.extend(sink.names().iter().map(|name| (*name).to_owned()));
                } else {
                    self.add(what);
                }
                continue;
            }
            is_read |= match (sink.kind, &expected) {
                ("file", Some(expected)) => self.words(&sink, expected),
                ("kafka", Some(expected)) if self.depth == Depth::Content => self.topic(&sink, expected),
                ("kafka", _) => true,
                _ => sink.is_file() && self.is_hashed(&sink),
            };
        }
        if is_read {
            self.boards += 1;
        } else if board["kept"] == false {
            self.add(format!("{name}: there is nothing to check: no output of the run keeps what it has sent"));
        } else {
            self.add(format!("{name}: nothing of what it has sent could be checked"));
        }
    }

    /// Looks for what is in the folder and does not belong there.
    fn folder(&mut self) -> std::io::Result<()> {
        let listed = &self.manifest.content["files"];
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.scope.folder)? {
            let entry = entry?;
            let (name, kind) = (entry.file_name(), entry.file_type()?);
            // A manifest has no names that are not UTF-8.
            let has_text = name.to_str().is_some();
            let name = name.to_string_lossy();
            let is_known = has_text && (files::is_of_the_run(&name) || !listed[&*name].is_null());
            let is_left = kind.is_file() && self.failed.iter().any(|places| places.have(&entry.path()));
            if is_known || is_left {
                continue;
            }
            found.push(if kind.is_file() && files::is_note(&name) {
                format!("{name}: it is of a run that goes on; the manifest of this one has what it has")
            } else if kind.is_file() && name.ends_with(files::PART) {
                format!("{name}: it was not finished")
            } else {
                let what = if kind.is_dir() { "the folder" } else { "it" };
                format!("{name}: {what} does not belong to the run")
            });
        }
        found.sort();
        found.into_iter().for_each(|what| self.add(what));
        Ok(())
    }

    /// Checks the files that the manifest lists.
    fn listed(&mut self) {
        let listed = self.manifest.content["files"].as_object().into_iter().flatten();
        for own in [EXPERIMENT, LOG] {
            if self.manifest.content["files"][own].is_null() {
                self.add(format!("manifest.json: files: {own}: expected its hash"));
            }
        }
        for (name, entry) in listed {
            // One that leads out of it is read if that is asked for.
            let leads_out = Path::new(name).components().any(|part| !matches!(part, Component::Normal(_)));
            if !is_plain(name) && !leads_out {
                self.add(format!("manifest.json: files: {name}: expected the name of a file in the folder of the run"));
                continue;
            }
            match self.file(name, entry) {
                Ok(_) if !entry["blake3"].is_string() && !self.compared.contains(name) => {
                    self.add(format!("manifest.json: files: {name}: expected its hash"));
                }
                Ok(read) => self.bytes += read,
                Err(what) => self.add(what),
            }
        }
    }

    /// Checks one of them: bytes that were read.
    fn file(&self, name: &str, entry: &serde_json::Value) -> Result<u64, String> {
        let file = self.scope.open(&self.scope.folder.join(name))?;
        let in_words = |error: std::io::Error| format!("{name}: it cannot be read: {error}");
        let bytes = file.metadata().map_err(in_words)?.len();
        if entry["bytes"] != bytes {
            return Err(format!("{name}: it has {bytes} bytes, expected {}", entry["bytes"]));
        }
        let Some(hash) = entry["blake3"].as_str().filter(|_| self.depth == Depth::Content) else { return Ok(0) };
        if files::hash(file).map_err(in_words)? != hash {
            return Err(format!("{name}: its content is not what was written"));
        }
        Ok(bytes)
    }
}

/// Checks the run in this folder. `outside`: reads files elsewhere that the manifest names, and follows links.
///
/// # Errors
/// It is not the folder of a run.
pub fn check(run: &Path, outside: bool, depth: Depth) -> Result<Checked, Error> {
    let manifest = Manifest::read_as(run, outside)?;
    let error = |error: std::io::Error| Error { path: run.to_owned(), what: error.to_string() };
    let scope = Scope::new(run, outside).map_err(error)?;
    let (findings, notes, compared) = (Vec::new(), Vec::new(), Vec::new());
    let mut check =
        Check { scope, manifest: &manifest, depth, findings, notes, bytes: 0, compared, failed: Vec::new(), boards: 0 };
    let state = manifest.state();
    if state != "complete" {
        check.add(format!("the run is {state}: {}", why(state)));
    }
    let of_folder = files::number_of(&check.scope.folder);
    if of_folder.is_some_and(|number| manifest.content["run"] != number) {
        check.add(format!("manifest.json: it is of run {}: expected that of its folder", manifest.content["run"]));
    }
    if !manifest.is_sealed {
        check.add(format!("manifest.json: {CHANGED}"));
    }
    if state != "running" && state != "stopping" {
        claims::against(&manifest).into_iter().for_each(|what| check.add(what));
        manifest.boards().for_each(|board| check.board(board));
        check.folder().map_err(error)?;
        check.listed();
        if check.boards == 0 {
            check.add("there is nothing to check: the run has data of no board".into());
        }
    }
    let Check { findings, notes, bytes, .. } = check;
    Ok(Checked { findings, notes, bytes, manifest })
}

#[cfg(test)]
mod tests;

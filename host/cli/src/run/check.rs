//! `fadelink check`: verifies a run later, by the hashes in its manifest.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use fadelink_sinks::hashes::{Blocks, Record, HASHED_BYTES};
#[cfg(feature = "kafka")]
use fadelink_sinks::kafka;
use fadelink_sinks::{BlockKind, Parts, Spec};
use serde_json::{json, Value};

use super::{files, groups, manifest};
use crate::{checksum, exit};

/// Bytes that are read at a time.
const PIECE: usize = 1 << 20;

#[derive(clap::Args)]
pub struct Args {
    /// Folder of the run
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// Read also files outside that folder, if the manifest names them
    #[arg(long)]
    outside: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// A sink of a board, and its place.
fn sink_of(board: &Value, sink: &str) -> anyhow::Result<(Spec<BlockKind>, String)> {
    let spec: Spec<BlockKind> = sink.parse().map_err(|what| anyhow::anyhow!("sink `{sink}`: {what}"))?;
    let place = spec.place.replace("{stream}", &groups::stream(board));
    Ok((spec, place))
}

/// The files of a board's words by one sink, in their order; `None`: the sink has no plain files in the run.
///
/// # Errors
/// The manifest names a sink that does not exist.
pub fn word_files(run: &Path, board: &Value, sink: &str) -> anyhow::Result<Option<Vec<PathBuf>>> {
    let (spec, place) = sink_of(board, sink)?;
    let BlockKind::File(plain) = spec.kind else { return Ok(None) };
    Ok(Some(Parts::found(run.join(place), plain.files)))
}

/// What is wrong with a run.
#[derive(Default)]
struct Findings(Vec<String>);

impl Findings {
    /// Adds what is not known yet.
    fn add(&mut self, what: String) {
        if !self.0.contains(&what) {
            self.0.push(what);
        }
    }
}

/// What may be read: the files in the folder of the run, and with `outside` all that the manifest names.
struct Scope {
    folder: PathBuf,
    outside: bool,
}

impl Scope {
    fn of(args: &Args) -> anyhow::Result<Scope> {
        let folder = args.run.canonicalize().with_context(|| args.run.display().to_string())?;
        Ok(Scope { folder, outside: args.outside })
    }

    /// A path of the manifest as it is told: without the folder of the run.
    fn named(&self, path: &Path) -> String {
        path.strip_prefix(&self.folder).unwrap_or(path).display().to_string()
    }

    /// Opens a file that the manifest names; else says why it is not read.
    fn open(&self, path: &Path) -> Result<File, String> {
        let named = self.named(path);
        // Behind links, which may lead anywhere.
        let real = path.canonicalize().map_err(|error| match error.kind() {
            ErrorKind::NotFound => format!("{named}: it is missing"),
            _ => format!("{named}: {error}"),
        })?;
        if !self.outside && !real.starts_with(&self.folder) {
            return Err(format!("{named}: it is outside the folder of the run, and was not read (--outside reads it)"));
        }
        // A pipe would be waited for.
        if !real.is_file() {
            return Err(format!("{named}: expected a file"));
        }
        File::open(&real).map_err(|error| format!("{named}: {error}"))
    }
}

/// Compares the hashes of words with those of the manifest.
struct Words<'a> {
    blocks: Blocks,
    expected: &'a [&'a str],
    wrong: Vec<u64>,
}

impl<'a> Words<'a> {
    fn new(expected: &'a [&'a str]) -> Words<'a> {
        Words { blocks: Blocks::default(), expected, wrong: Vec::new() }
    }

    fn is_right(expected: &[&str], record: Record) -> bool {
        expected.get(record.block() as usize).is_some_and(|hash| **hash == *record.hash.to_hex())
    }

    fn update(&mut self, data: &[u8]) {
        let Words { blocks, expected, wrong } = self;
        let look = |record: Record| {
            wrong.extend((!Self::is_right(expected, record)).then_some(record.block()));
            Ok::<_, std::convert::Infallible>(())
        };
        let Ok(()) = blocks.update(data, look);
    }

    /// The bytes that there are, the numbers of wrong blocks, and the CRC of all.
    fn finish(mut self) -> (u64, Vec<u64>, Option<u32>) {
        let rest = self.blocks.rest().filter(|record| !Self::is_right(self.expected, *record));
        self.wrong.extend(rest.map(|record| record.block()));
        (self.blocks.end(), self.wrong, self.blocks.crc())
    }
}

/// What a manifest says of the words of a board.
struct Expected<'a> {
    /// Of each block.
    hashes: &'a [&'a str],
    bytes: u64,
    /// CRC of all of them; `None`: the board has none, or they are not of one transmission.
    crc: Option<&'a str>,
}

impl Expected<'_> {
    /// What is wrong with the CRC of the words that were found at `place`: to be told where each block is right.
    fn wrong_crc(&self, place: &str, found: Option<u32>) -> Option<String> {
        let (expected, found) = (self.crc?, checksum::in_words(found?));
        (expected != found).then(|| format!("{place}: the CRC of all words is {found}, expected {expected}"))
    }
}

/// Bytes of a block of data that ends at byte `end`.
fn of_block(block: u64, end: u64) -> (u64, u64) {
    (block * HASHED_BYTES, ((block + 1) * HASHED_BYTES).min(end))
}

/// Reads the words of a run from a topic.
#[cfg(feature = "kafka")]
fn read_topic(place: &str, run: &str, words: &mut Words<'_>) -> anyhow::Result<()> {
    let topic = kafka::Words::connect(place.parse().map_err(anyhow::Error::msg)?, run)?;
    topic.each(0, |data| {
        words.update(data);
        true
    })?;
    Ok(())
}

/// Compares the hashes of words in a topic with those of the manifest; bytes of the topic, `None` if it could not be read.
#[cfg(feature = "kafka")]
fn check_topic(
    (run, sink, place): (&str, &str, &str),
    expected: &Expected<'_>,
    findings: &mut Findings,
) -> Option<u64> {
    let mut words = Words::new(expected.hashes);
    if let Err(error) = read_topic(place, run, &mut words) {
        findings.add(format!("{sink}: its words cannot be checked: {error:#}"));
        return None;
    }
    let (end, wrong, crc) = words.finish();
    if end != expected.bytes {
        findings.add(format!("{sink}: the words end at byte {end}, expected {}", expected.bytes));
    }
    findings.0.extend(expected.wrong_crc(sink, crc).filter(|_| end == expected.bytes && wrong.is_empty()));
    for block in wrong {
        let (begin, end) = of_block(block, end);
        findings.add(format!("{sink}: bytes {begin} to {end} of the board's words are not those that were received"));
    }
    Some(end)
}

/// Compares the hashes of words in files with those of the manifest; bytes of the files, `None` if they could not be read.
fn check_words(scope: &Scope, paths: &[PathBuf], expected: &Expected<'_>, findings: &mut Findings) -> Option<u64> {
    let (mut words, mut piece, mut ends) = (Words::new(expected.hashes), vec![0; PIECE], Vec::new());
    for path in paths {
        let named = scope.named(path);
        let mut read = || -> Result<(), String> {
            let mut file = scope.open(path)?;
            loop {
                match file.read(&mut piece).map_err(|error| format!("{named}: {error}"))? {
                    0 => return Ok(()),
                    got => words.update(&piece[..got]),
                }
            }
        };
        if let Err(what) = read() {
            findings.add(what);
            return None;
        }
        ends.push((named, words.blocks.end()));
    }
    let (end, wrong, crc) = words.finish();
    let last = ends.last().map_or("no file", |(name, _)| name);
    if end != expected.bytes {
        findings.add(format!("{last}: the words end at byte {end}, expected {}", expected.bytes));
    }
    findings.0.extend(expected.wrong_crc(last, crc).filter(|_| end == expected.bytes && wrong.is_empty()));
    for block in wrong {
        let (begin, end) = of_block(block, end);
        let begins = [0].into_iter().chain(ends.iter().map(|(_, end)| *end));
        let touched =
            ends.iter().zip(begins).filter(|((_, file_end), file_begin)| *file_begin < end && *file_end > begin);
        let names: Vec<_> = touched.map(|((name, _), _)| &**name).collect();
        let names = names.join(", ");
        findings.add(format!("{names}: bytes {begin} to {end} of the board's words are not those that were received"));
    }
    Some(end)
}

/// What was read of a run.
#[derive(Default)]
struct Checked {
    bytes: u64,
    /// Boards of which there was something to check.
    boards: usize,
}

/// What is needed to check the boards of a run.
struct Run<'a> {
    scope: &'a Scope,
    manifest: &'a Value,
}

impl Run<'_> {
    /// True if a file of a sink is listed with a hash of its own, by which [`Self::files`] checks it.
    fn is_hashed(&self, place: &str) -> bool {
        let path = self.scope.folder.join(place);
        let name = path.strip_prefix(&self.scope.folder).ok().and_then(Path::to_str);
        name.is_some_and(|name| self.manifest["files"][name]["blake3"].is_string())
    }

    /// Checks the words of a board in each of its sinks.
    fn board(&self, board: &Value, findings: &mut Findings, checked: &mut Checked) -> anyhow::Result<()> {
        let name = board["name"].as_str().unwrap_or_default();
        let hashes = &board["hashes"];
        let expected: Vec<&str> = hashes["blake3"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let of_words = hashes["bytes"].as_u64();
        let crc = board["crc32"]["received"].as_str().filter(|_| board["restarted"].is_null());
        let mut is_read = false;
        for sink in board["sinks"].as_array().into_iter().flatten() {
            let text = sink["sink"].as_str().unwrap_or_default();
            if sink["dropped"].as_u64().unwrap_or(0) > 0 {
                findings.add(format!("{name}: {text}: it lost {} bytes, and cannot be checked", sink["dropped"]));
                continue;
            }
            let Some(bytes) = of_words else {
                // Events, whose sinks are those of the builder.
                let place = text.split_once(':').map_or("", |(_, place)| place.split(',').next().unwrap_or_default());
                is_read |= self.is_hashed(place);
                continue;
            };
            let expected = Expected { hashes: &expected, bytes, crc };
            if let Some(paths) = word_files(&self.scope.folder, board, text)? {
                if paths.is_empty() {
                    findings.add(format!("{}: it is missing", sink_of(board, text)?.1));
                } else if let Some(read) = check_words(self.scope, &paths, &expected, findings) {
                    checked.bytes += read;
                    is_read = true;
                }
                continue;
            }
            let (spec, place) = sink_of(board, text)?;
            is_read |= self.is_hashed(&place);
            #[cfg(feature = "kafka")]
            if matches!(spec.kind, BlockKind::Kafka) {
                let name_of_run = manifest::name(self.manifest);
                if let Some(read) = check_topic((&name_of_run, text, &place), &expected, findings) {
                    checked.bytes += read;
                    is_read = true;
                }
            }
            #[cfg(not(feature = "kafka"))]
            let _ = spec;
        }
        if is_read {
            checked.boards += 1;
        } else {
            findings.add(format!("{name}: nothing of what it has sent could be checked"));
        }
        Ok(())
    }

    /// Checks the files that the manifest lists, and that there are no others.
    fn files(&self, findings: &mut Findings, checked: &mut Checked) -> anyhow::Result<()> {
        let listed = self.manifest["files"].as_object().context("files: expected an object")?;
        for entry in std::fs::read_dir(&self.scope.folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let kind = entry.file_type()?;
            let is_known =
                files::is_of_the_run(&name) || files::is_note(&name) || (listed.contains_key(&name) && kind.is_file());
            if name.ends_with(".part") && kind.is_file() && !is_known {
                findings.add(format!("{name}: it was not finished"));
            } else if !is_known {
                let what = if kind.is_dir() { "the folder" } else { "it" };
                findings.add(format!("{name}: {what} does not belong to the run"));
            }
        }
        for (name, entry) in listed {
            let found = match self.scope.open(&self.scope.folder.join(name)) {
                Ok(file) => file,
                Err(what) => {
                    findings.add(what);
                    continue;
                }
            };
            let bytes = found.metadata()?.len();
            if entry["bytes"] != bytes {
                findings.add(format!("{name}: it has {bytes} bytes, expected {}", entry["bytes"]));
            } else if let Some(hash) = entry["blake3"].as_str() {
                checked.bytes += bytes;
                if files::hash(found)? != hash {
                    findings.add(format!("{name}: its content is not what was written"));
                }
            }
        }
        Ok(())
    }
}

/// Checks a run: exit status 0 if it is complete and as it was received.
///
/// # Errors
/// The folder is not that of a run, or a file cannot be read.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let manifest = manifest::read(&args.run)?;
    let mut findings = Findings::default();
    let state = manifest["state"].as_str().unwrap_or_default();
    if state != "complete" {
        let reason = match state {
            "running" | "stopping" => {
                "it goes on, or its program was ended by force; `fadelink run` finishes its manifest"
            }
            "crashed" => "its program was ended by force; what is here is certain",
            "end_not_confirmed" => "nobody knows whether a board had more, see boards in its manifest",
            _ => "data of it is missing, see boards in its manifest",
        };
        findings.add(format!("the run is {state}: {reason}"));
    }
    let mut checked = Checked::default();
    if state != "running" && state != "stopping" {
        let scope = Scope::of(args)?;
        let run = Run { scope: &scope, manifest: &manifest };
        for board in manifest["boards"].as_array().into_iter().flatten() {
            run.board(board, &mut findings, &mut checked)?;
        }
        run.files(&mut findings, &mut checked)?;
        if checked.boards == 0 {
            findings.add("there is nothing to check: the run has data of no board".into());
        }
    }
    let bytes = checked.bytes;
    let good = findings.0.is_empty();
    if args.json {
        println!(
            "{}",
            json!({ "good": good, "run": manifest["run"], "state": state, "bytes": bytes, "findings": findings.0 })
        );
    } else {
        findings.0.iter().for_each(|finding| println!("{finding}"));
        let verdict = if good { "complete, and as it was received" } else { "NOT AS IT SHOULD BE" };
        println!("run {}: {bytes} bytes checked: {verdict}", manifest["run"]);
    }
    Ok(exit::of_data(good))
}

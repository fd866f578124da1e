//! `fadelink check`: verifies a run later, by the hashes in its manifest.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use fadelink_sinks::hashes::{Blocks, Record, HASHED_BYTES};
#[cfg(feature = "kafka")]
use fadelink_sinks::kafka;
use fadelink_sinks::{BlockKind, Parts, Spec};
use serde_json::{json, Value};

use super::{files, groups, manifest};
use crate::exit;

/// Bytes that are read at a time.
const PIECE: usize = 1 << 20;

#[derive(clap::Args)]
pub struct Args {
    /// Folder of the run
    #[arg(value_name = "RUN")]
    run: PathBuf,
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
    fn add(&mut self, what: String) {
        self.0.push(what);
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

    /// The bytes that there are, and the numbers of wrong blocks.
    fn finish(mut self) -> (u64, Vec<u64>) {
        let rest = self.blocks.rest().filter(|record| !Self::is_right(self.expected, *record));
        self.wrong.extend(rest.map(|record| record.block()));
        (self.blocks.end(), self.wrong)
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

/// Compares the hashes of words in a topic with those of the manifest; bytes of the topic.
#[cfg(feature = "kafka")]
fn check_topic((run, sink, place): (&str, &str, &str), expected: &[&str], bytes: u64, findings: &mut Findings) -> u64 {
    let mut words = Words::new(expected);
    if let Err(error) = read_topic(place, run, &mut words) {
        findings.add(format!("{sink}: its words cannot be checked: {error:#}"));
        return 0;
    }
    let (end, wrong) = words.finish();
    if end != bytes {
        findings.add(format!("{sink}: the words end at byte {end}, expected {bytes}"));
    }
    for block in wrong {
        let (begin, end) = of_block(block, end);
        findings.add(format!("{sink}: bytes {begin} to {end} of the board's words are not those that were received"));
    }
    end
}

/// Compares the hashes of words in files with those of the manifest; bytes of the files.
fn check_words(paths: &[PathBuf], expected: &[&str], bytes: u64, findings: &mut Findings) -> anyhow::Result<u64> {
    let (mut words, mut piece, mut ends) = (Words::new(expected), vec![0; PIECE], Vec::new());
    for path in paths {
        let named = || path.display().to_string();
        let mut file = File::open(path).with_context(named)?;
        loop {
            let got = file.read(&mut piece).with_context(named)?;
            if got == 0 {
                break;
            }
            words.update(&piece[..got]);
        }
        ends.push((path.file_name().unwrap_or_default().to_string_lossy(), words.blocks.end()));
    }
    let (end, wrong) = words.finish();
    if end != bytes {
        let last = ends.last().map_or("no file", |(name, _)| name);
        findings.add(format!("{last}: the words end at byte {end}, expected {bytes}"));
    }
    for block in wrong {
        let (begin, end) = of_block(block, end);
        let begins = [0].into_iter().chain(ends.iter().map(|(_, end)| *end));
        let touched =
            ends.iter().zip(begins).filter(|((_, file_end), file_begin)| *file_begin < end && *file_end > begin);
        let names: Vec<_> = touched.map(|((name, _), _)| &**name).collect();
        let names = names.join(", ");
        findings.add(format!("{names}: bytes {begin} to {end} of the board's words are not those that were received"));
    }
    Ok(end)
}

/// Checks the words of a board in each of its sinks; their bytes.
#[cfg_attr(not(feature = "kafka"), expect(unused_variables))]
fn check_board((run, name_of_run): (&Path, &str), board: &Value, findings: &mut Findings) -> anyhow::Result<u64> {
    let name = board["name"].as_str().unwrap_or_default();
    let hashes = &board["hashes"];
    let expected: Vec<&str> = hashes["blake3"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let bytes = hashes["bytes"].as_u64().with_context(|| format!("board `{name}`: hashes.bytes: expected a number"))?;
    let mut checked = 0;
    for sink in board["sinks"].as_array().into_iter().flatten() {
        let text = sink["sink"].as_str().unwrap_or_default();
        if sink["dropped"].as_u64().unwrap_or(0) > 0 {
            findings.add(format!("{name}: {text}: it lost {} bytes, and cannot be checked", sink["dropped"]));
            continue;
        }
        if let Some(paths) = word_files(run, board, text)? {
            checked += check_words(&paths, &expected, bytes, findings)?;
        }
        #[cfg(feature = "kafka")]
        if let (Spec { kind: BlockKind::Kafka, .. }, place) = sink_of(board, text)? {
            checked += check_topic((name_of_run, text, &place), &expected, bytes, findings);
        }
    }
    Ok(checked)
}

/// Checks the files that the manifest lists; bytes of those with a hash of their own.
fn check_files(run: &Path, manifest: &Value, findings: &mut Findings) -> anyhow::Result<u64> {
    let listed = manifest["files"].as_object().context("files: expected an object")?;
    let there = files::names(run)?;
    for name in there.iter().filter(|name| !listed.contains_key(*name)) {
        findings.add(format!("{name}: it does not belong to the run"));
    }
    let mut checked = 0;
    for (name, entry) in listed {
        let path = run.join(name);
        let Ok(found) = std::fs::metadata(&path) else {
            findings.add(format!("{name}: it is missing"));
            continue;
        };
        if entry["bytes"] != found.len() {
            findings.add(format!("{name}: it has {} bytes, expected {}", found.len(), entry["bytes"]));
        } else if let Some(hash) = entry["blake3"].as_str() {
            checked += found.len();
            if files::hash(&path)? != hash {
                findings.add(format!("{name}: its content is not what was written"));
            }
        }
    }
    Ok(checked)
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
            _ => "data of it is missing, see boards in its manifest",
        };
        findings.add(format!("the run is {state}: {reason}"));
    }
    let mut bytes = 0;
    if state != "running" && state != "stopping" {
        for board in manifest["boards"].as_array().into_iter().flatten().filter(|board| board["hashes"].is_object()) {
            bytes += check_board((&args.run, &manifest::name(&manifest)), board, &mut findings)?;
        }
        bytes += check_files(&args.run, &manifest, &mut findings)?;
    }
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

//! What the outputs of `fadelink receive` and `fadelink run` say of streams, without any rule of theirs: how far they agree, and which
//! files are called complete.

use std::path::{Path, PathBuf};

use serde_json::{json, Value};

use crate::exit;
use crate::receive::{Plan, Transmissions};
use crate::verdict::State;

/// A file whose content was called complete.
pub struct Claimed {
    /// Address and port of its sender.
    pub peer: String,
    /// Who says so.
    pub by: &'static str,
    pub content: Vec<u8>,
}

/// The plan for streams of everybody, of `fadelink receive`.
pub fn plan(folder: &Path) -> anyhow::Result<Plan> {
    let place = folder.join("{stream}.dat");
    let sink = format!("file:{}", place.display()).parse().map_err(anyhow::Error::msg)?;
    Ok(Plan {
        name: None,
        run: "a run".into(),
        sinks: vec![sink],
        verify: None,
        streams: usize::MAX,
        durable: false,
        resumed: None,
        before: None,
        transmissions: Transmissions::default(),
    })
}

/// What a command tells that fails.
pub fn failed(error: &anyhow::Error) -> (State, Value) {
    let text = exit::in_words(error);
    (
        State::Incomplete,
        json!({ "complete": false, "verdict": "incomplete", "reasons": [{ "reason": "board", "text": text }], "streams": [] }),
    )
}

fn is_true(value: &Value) -> bool {
    value == &Value::Bool(true)
}

/// Whether what is complete has no reasons, and what is not has some, each with words.
///
/// # Errors
/// They do not agree.
pub fn agree(is_complete: bool, reasons: &Value) -> Result<(), String> {
    let reasons = reasons.as_array().ok_or("no reasons in the report")?;
    let has_text = |reason: &Value| {
        let is_text = |name: &str| reason[name].as_str().is_some_and(|text| !text.is_empty());
        is_text("reason") && is_text("text")
    };
    match (is_complete, reasons.is_empty()) {
        (true, false) => Err(format!("complete, and there are reasons: {reasons:?}")),
        (false, true) => Err("not complete, and no reason is told".into()),
        _ if !reasons.iter().all(has_text) => Err(format!("a reason without words: {reasons:?}")),
        _ => Ok(()),
    }
}

/// Whether the report of a stream says complete.
fn is_complete(report: &Value) -> Result<bool, String> {
    let (complete, verdict) = (is_true(&report["complete"]), report["verdict"] == "complete");
    if complete != verdict {
        return Err(format!("complete is {complete}, and the verdict is {}", report["verdict"]));
    }
    agree(complete, &report["reasons"])?;
    Ok(complete)
}

/// The files that something says are complete. `key`: what the streams are called in the report; `path`: of the file of a stream, by its report.
///
/// # Errors
/// The outputs do not agree, or do not say what is missing.
pub fn claimed(
    (state, key): (State, &str),
    report: &Value,
    path: impl Fn(&Value) -> PathBuf,
) -> Result<Vec<Claimed>, String> {
    let all = state == State::Complete;
    if is_true(&report["complete"]) != all || (report["verdict"] == "complete") != all {
        return Err(format!("the exit status says complete: {all}; the report: {}", report["verdict"]));
    }
    let streams = report[key].as_array().ok_or("no streams in the report")?;
    let mut claimed = Vec::new();
    let mut are_complete = true;
    for stream in streams {
        let path = path(stream);
        let description = std::fs::read_to_string(path.with_extension("dat.json")).unwrap_or_default();
        let description: Value = serde_json::from_str(&description).unwrap_or_default();
        let is_complete = is_complete(stream)?;
        are_complete &= is_complete;
        for (by, says) in [("the report", is_complete), ("the description", is_true(&description["complete"]))] {
            if says {
                let content = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
                claimed.push(Claimed { peer: stream["peer"].as_str().unwrap_or_default().into(), by, content });
            }
        }
    }
    if all && (!are_complete || streams.is_empty()) {
        return Err("complete, and a stream is not, or there is none".into());
    }
    // What is of no stream has reasons of its own.
    if all || are_complete {
        agree(all, &report["reasons"])?;
    }
    Ok(claimed)
}

/// Bytes that are the same.
pub fn same(found: &[u8], expected: &[u8]) -> usize {
    found.iter().zip(expected).take_while(|(a, b)| a == b).count()
}

/// Compares a file with what it may be.
///
/// # Errors
/// It differs from all of that.
pub fn compare(Claimed { peer, by, content }: &Claimed, possible: &[Vec<u8>]) -> Result<(), String> {
    if possible.contains(content) {
        return Ok(());
    }
    let nearest = possible.iter().max_by_key(|one| same(content, one)).map_or(&[][..], |nearest| nearest);
    Err(format!(
        "{peer}: {by} says complete, and the file differs from the record at byte {}: {} bytes, the source gave {}",
        same(content, nearest),
        content.len(),
        nearest.len()
    ))
}

/// The files of a folder, with their sizes.
pub fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| format!("{:?} {}", entry.file_name(), entry.metadata().map_or(0, |m| m.len()))).collect()
}

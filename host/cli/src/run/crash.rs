//! Runs whose program was ended by force: what is certain of their data.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use fadelink_sinks::hashes::Blocks;
use fadelink_sinks::{recover, BlockKind};
use fadelink_wire::Firmware;
use serde_json::{json, Value};

use super::files;
use super::groups::Kept;
use super::manifest::Certain;
use crate::receive::Plan;

/// The streams of a board that have files: what stands for `{stream}` in their paths.
fn streams(plan: &Plan, hashes: &str) -> std::io::Result<Vec<String>> {
    if plan.streams == 1 {
        return Ok(vec![String::new()]);
    }
    let path = Path::new(hashes);
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return Ok(Vec::new()) };
    let name = name.to_string_lossy();
    let (prefix, suffix) = name.split_once("{stream}").unwrap_or((&name, ""));
    let mut streams = Vec::new();
    for entry in folder.read_dir()? {
        let found = entry?.file_name();
        let stream = found.to_str().and_then(|found| found.strip_prefix(prefix)?.strip_suffix(suffix));
        streams.extend(stream.map(str::to_owned));
    }
    Ok(streams)
}

/// Finds what is certain of the data of a board, and cuts off the rest: of each of its streams.
///
/// # Errors
/// The operating system's, or those of a sink.
pub fn of_board(plan: &Plan) -> anyhow::Result<Vec<(Certain, Blocks)>> {
    let name = plan.name.clone().unwrap_or_default();
    let Some(hashes) = plan.sinks.iter().find(|sink| matches!(sink.kind, BlockKind::Hashes { .. })) else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    for stream in streams(plan, &hashes.place)? {
        let path = |place: &str| place.replace("{stream}", &stream);
        let mut stored = Vec::new();
        for sink in &plan.sinks {
            let found = sink.stored(&path(&sink.place), &plan.run).map_err(|failure| anyhow!("{sink}: {failure}"))?;
            stored.extend(found);
        }
        let hashes = PathBuf::from(path(&hashes.place));
        let blocks = recover(&hashes, &stored).map_err(|failure| anyhow!("board `{name}`: {failure}"))?;
        let sinks = plan.sinks.iter().map(|sink| json!({ "sink": sink.text })).collect();
        // A board of which nothing has come has no file of them.
        if hashes.exists() {
            found.push((Certain { name: name.clone(), stream, sinks, hashes }, blocks));
        }
    }
    Ok(found)
}

/// The core of a board, as the description of its first file has it.
fn firmware(plan: &Plan) -> Option<Firmware> {
    let file = plan.sinks.iter().find(|sink| matches!(sink.kind, BlockKind::File(_)))?;
    let text = std::fs::read_to_string(files::description(file.place.as_ref())).ok()?;
    serde_json::from_str::<Value>(&text).ok()?["firmware"].as_str()?.parse().ok()
}

/// The same of boards with one stream each, by name.
///
/// # Errors
/// The operating system's, or those of a sink.
pub fn of_boards(plans: &[&Plan]) -> anyhow::Result<HashMap<String, Kept>> {
    let mut boards = HashMap::new();
    for plan in plans {
        let blocks = of_board(plan)?.into_iter().map(|(_, blocks)| blocks).next().unwrap_or_default();
        let firmware = firmware(plan).filter(|_| blocks.end() > 0);
        boards.insert(plan.name.clone().unwrap_or_default(), Kept { blocks, firmware });
    }
    Ok(boards)
}

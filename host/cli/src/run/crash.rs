//! Runs whose program was ended by force: what is certain of their data.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anyhow::{anyhow, Context};
use fadelink_sinks::hashes::Blocks;
use fadelink_sinks::{recover, BlockKind};
use fadelink_wire::{Firmware, Protocol};
use serde_json::{json, Value};

use super::files;
use super::groups::Kept;
use super::manifest::Certain;
use crate::receive::{Plan, Transmissions};

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
            let transmissions = transmissions(plan, &blocks)?;
            found.push((Certain { name: name.clone(), stream, sinks, hashes, transmissions }, blocks));
        }
    }
    Ok(found)
}

/// The transmissions that the data of a board is of.
fn transmissions(plan: &Plan, blocks: &Blocks) -> anyhow::Result<Transmissions> {
    let name = plan.name.as_deref().unwrap_or_default();
    plan.transmissions.clone().found(blocks.end()).with_context(|| format!("board `{name}`: its list of transmissions"))
}

/// What a board speaks, and its core, as the description of its first file has them.
fn kind(plan: &Plan) -> (Option<Protocol>, Option<Firmware>) {
    let file = plan.sinks.iter().find(|sink| matches!(sink.kind, BlockKind::File(_)));
    let text = file.and_then(|file| std::fs::read_to_string(files::description(file.place.as_ref())).ok());
    let description: Value = text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    let entry = |name: &str| description[name].as_str();
    (entry("protocol").and_then(|name| name.parse().ok()), entry("firmware").and_then(|name| name.parse().ok()))
}

/// The same of boards with one stream each, by name.
///
/// # Errors
/// The operating system's, or those of a sink.
pub fn of_boards(plans: &[&Plan]) -> anyhow::Result<HashMap<String, Kept>> {
    let mut boards = HashMap::new();
    for plan in plans {
        let blocks = of_board(plan)?.into_iter().map(|(_, blocks)| blocks).next().unwrap_or_default();
        let (protocol, firmware) = if blocks.end() > 0 { kind(plan) } else { (None, None) };
        let transmissions = transmissions(plan, &blocks)?;
        boards.insert(plan.name.clone().unwrap_or_default(), Kept { blocks, protocol, firmware, transmissions });
    }
    Ok(boards)
}

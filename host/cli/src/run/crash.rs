//! Runs whose program was ended by force: what is certain of their data.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{anyhow, bail, Context};
use fadelink_builder::sink;
use fadelink_sinks::hashes::Blocks;
use fadelink_sinks::{description, recover, BlockKind, Parts, Recovered, Stored};
use fadelink_wire::{Firmware, Protocol};
use serde_json::{json, Value};

use super::files;
use super::groups::Kept;
use super::manifest::Certain;
use crate::board::GroupSettings;
use crate::receive::{Before, Plan, Transmissions, ADVICE};

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

/// What is there of a stream.
struct Found {
    stream: String,
    hashes: PathBuf,
    sinks: Vec<Box<dyn Stored>>,
    recovered: Recovered,
}

/// Finds what is certain of the data of a board: of each of its streams. Nothing is changed.
fn find(plan: &Plan) -> anyhow::Result<Vec<Found>> {
    let Some(hashes) = plan.sinks.iter().find(|sink| matches!(sink.kind, BlockKind::Hashes { .. })) else {
        return Ok(Vec::new());
    };
    let mut all = Vec::new();
    for stream in streams(plan, &hashes.place)? {
        let path = |place: &str| place.replace("{stream}", &stream);
        let mut sinks = Vec::new();
        // Nobody has waited for those that are optional.
        for sink in plan.sinks.iter().filter(|sink| !sink.optional) {
            let found = sink.stored(&path(&sink.place), &plan.run).map_err(|failure| anyhow!("{sink}: {failure}"))?;
            sinks.extend(found);
        }
        let hashes = PathBuf::from(path(&hashes.place));
        let recovered = recover(&hashes, &sinks).map_err(|failure| anyhow!("{failure}"))?;
        all.push(Found { stream, hashes, sinks, recovered });
    }
    Ok(all)
}

/// Closes the data of a board: finds what is certain of each of its streams, and cuts off the rest, unless it was confirmed, or
/// nothing tells what is certain.
///
/// # Errors
/// The operating system's, or those of a sink.
pub fn close(plan: &Plan) -> anyhow::Result<Vec<Certain>> {
    let mut all = Vec::new();
    for Found { stream, hashes, sinks, recovered } in find(plan)? {
        let Recovered { blocks, damaged, lost, .. } = recovered;
        let transmissions = transmissions(plan, &blocks);
        let against = damaged.or(lost.filter(|_| plan.durable));
        let changed = against.or(transmissions.as_ref().err().map(|error| format!("{error:#}")));
        if changed.is_none() {
            fadelink_sinks::hashes::cut(&hashes, blocks.end())?;
            sinks.iter().try_for_each(|sink| sink.cut(blocks.end())).map_err(|failure| anyhow!("{failure}"))?;
        }
        // A board of which nothing has come has no file of them.
        if hashes.exists() || changed.is_some() {
            let name = plan.name.clone().unwrap_or_default();
            let mut sinks = Vec::new();
            for sink in &plan.sinks {
                let mut entry = json!({ "sink": sink.text });
                if let Some(options) = sink.kind.files() {
                    let place = sink.place.replace("{stream}", &stream);
                    let has_words = matches!(sink.kind, BlockKind::File(_));
                    entry["files"] = files::found(Parts::found(place, options), has_words)?.into();
                }
                sinks.push(entry);
            }
            let transmissions = transmissions.unwrap_or_default();
            all.push(Certain { name, stream, sinks, hashes, transmissions, changed });
        }
    }
    Ok(all)
}

/// The sinks of events, as in a report: what is found of their files.
///
/// # Errors
/// The operating system's.
pub fn of_events(settings: &[GroupSettings]) -> std::io::Result<Value> {
    let mut sinks = Vec::new();
    for sink in settings.iter().flat_map(GroupSettings::event_sinks) {
        sinks.push(json!({ "sink": sink.text, "files": files::found(sink::found(sink), false)? }));
    }
    Ok(sinks.into())
}

/// The transmissions that the data of a board is of.
fn transmissions(plan: &Plan, blocks: &Blocks) -> anyhow::Result<Transmissions> {
    plan.transmissions.clone().found(blocks.end()).with_context(|| {
        let file = plan.transmissions.file().map(|file| file.display().to_string());
        file.unwrap_or_default()
    })
}

/// What a board speaks, and its core, as the description of its first file has them.
fn kind(plan: &Plan) -> anyhow::Result<(Option<Protocol>, Option<Firmware>)> {
    let Some(file) = plan.sinks.iter().find(|sink| matches!(sink.kind, BlockKind::File(_))) else {
        return Ok((None, None));
    };
    let path = description(file.place.as_ref());
    let text = match std::fs::read_to_string(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error).context(path.display().to_string()),
        text => text.unwrap_or_default(),
    };
    // Which is found out again, if the description does not say it.
    let description: Value = serde_json::from_str(&text).unwrap_or_default();
    let entry = |name: &str| description[name].as_str();
    Ok((entry("protocol").and_then(|name| name.parse().ok()), entry("firmware").and_then(|name| name.parse().ok())))
}

/// What there is of boards with one stream each, by name, for a run that goes on.
///
/// # Errors
/// The operating system's, those of a sink, or what was confirmed to a board is not there.
pub fn of_boards(plans: &[&Plan]) -> anyhow::Result<HashMap<String, Kept>> {
    let mut boards = HashMap::new();
    for plan in plans {
        let name = plan.name.clone().unwrap_or_default();
        let kept = kept(plan, &name).with_context(|| format!("board `{name}`"))?;
        boards.insert(name, kept);
    }
    Ok(boards)
}

fn kept(plan: &Plan, name: &str) -> anyhow::Result<Kept> {
    let Some(Found { sinks, recovered, .. }) = find(plan)?.into_iter().next() else { return Ok(Kept::default()) };
    if let Some(what) = recovered.damaged.as_ref().or(recovered.lost.as_ref()) {
        bail!("{what}; {ADVICE}");
    }
    let transmissions = transmissions(plan, &recovered.blocks).context(ADVICE)?;
    let blocks = recovered.blocks.clone();
    let (protocol, firmware) = if blocks.end() > 0 { kind(plan)? } else { (None, None) };
    let before = Some(Arc::new(Before::compare(name, sinks, &recovered)?));
    Ok(Kept { blocks, before, protocol, firmware, transmissions })
}

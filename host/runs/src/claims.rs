//! What a manifest says against itself.

use fadelink_sinks::hashes::HASHED_BYTES;
use serde_json::Value;

use crate::manifest::Manifest;
use crate::sinks::Sink;

/// The tables of boards in an experiment.
const TABLES: [&str; 4] = ["fade", "tcp", "udp", "crates"];

/// True of what is not said, is nothing or none.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(value) => value.as_u64() == Some(0),
        Value::String(value) => value.is_empty(),
        Value::Array(value) => value.is_empty(),
        Value::Object(value) => value.is_empty(),
    }
}

/// A value as it is told.
fn told(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(80) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text,
    }
}

/// What is found.
struct Claims(Vec<String>);

impl Claims {
    fn add(&mut self, of: &str, field: &str, found: &Value, expected: &str) {
        self.0.push(format!("{of}: {field}: {}: expected {expected}", told(found)));
    }

    fn is(&mut self, of: &str, (field, found): (&str, &Value), expected: impl Into<Value>) {
        let expected = expected.into();
        if *found != expected {
            self.add(of, field, found, &told(&expected));
        }
    }

    fn nothing(&mut self, of: &str, field: &str, found: &Value) {
        if !is_nothing(found) {
            self.add(of, field, found, "nothing of a complete run");
        }
    }

    /// The hashes of a board's words and their number.
    fn words(&mut self, name: &str, board: &Value) {
        let hashes = &board["hashes"];
        let bytes = hashes["bytes"].as_u64();
        self.is(name, ("hashes.block_bytes", &hashes["block_bytes"]), HASHED_BYTES);
        self.is(name, ("hashes.bytes", &hashes["bytes"]), board["bytes"].clone());
        if !board["words"].is_null() {
            self.is(name, ("words", &board["words"]), board["bytes"].as_u64().map(|bytes| bytes / 8));
        }
        let list = hashes["blake3"].as_array();
        let blocks = bytes.map(|bytes| bytes.div_ceil(HASHED_BYTES));
        if list.map(|list| list.len() as u64) != blocks || blocks.is_none() {
            let count = list.map(Vec::len).into();
            self.add(name, "hashes.blake3", &count, &format!("hashes of {} blocks", blocks.unwrap_or(0)));
        }
        if let Some(last) = board["timeline"].as_array().and_then(|times| times.last()) {
            self.is(name, ("timeline: the last bytes", &last[1]), hashes["bytes"].clone());
        }
    }

    /// What a board reports, of a complete run.
    fn complete(&mut self, name: &str, board: &Value) {
        self.is(name, ("complete", &board["complete"]), true);
        self.is(name, ("verdict", &board["verdict"]), "complete");
        for field in ["reasons", "error", "restarted", "wrong_words"] {
            self.nothing(name, field, &board[field]);
        }
        let crc = &board["crc32"];
        if !crc.is_null() {
            self.is(name, ("crc32.received", &crc["received"]), crc["board"].clone());
        }
        for sink in board["sinks"].as_array().into_iter().flatten() {
            let of = format!("{name}: {}", told(&sink["sink"]));
            // `check` notes those that have failed and are optional.
            if sink["optional"] == true && !sink["error"].is_null() {
                continue;
            }
            self.nothing(&of, "error", &sink["error"]);
            if sink["may_drop"] != true {
                self.nothing(&of, "dropped", &sink["dropped"]);
            }
        }
    }

    /// What was counted of a board, of a complete run: what speaks against its data, and is not a number of each run.
    fn counts(&mut self, name: &str, board: &Value) {
        for field in [
            "gaps",
            "counts.lost",
            "counters.protocol_errors",
            "counters.contradictions",
            "board_resets.count",
            "counters.begun_again",
        ] {
            let found = field.split('.').fold(board, |value, part| &value[part]);
            self.nothing(name, field, found);
        }
        if board["verified"] == false {
            self.add(name, "verified", &board["verified"], "true of a complete run");
        }
    }

    /// What belongs to no board, of a complete run.
    fn whole(&mut self, content: &Value) {
        let groups = content["groups"].as_array().into_iter().flatten();
        for (i, group) in groups.enumerate() {
            for field in ["reasons", "missing_streams", "unserved", "unrecorded_connections", "failed_boards"] {
                self.nothing("manifest.json", &format!("groups[{i}].{field}"), &group[field]);
            }
        }
        if ["crash", "error"].iter().any(|by| content["ended_by"] == *by) {
            self.add("manifest.json", "ended_by", &content["ended_by"], "that of a complete run");
        }
        if !content["end"]["utc"].is_string() {
            self.0.push("manifest.json: end.utc: expected it of a complete run".into());
        }
    }

    /// The sizes of a board's files of words.
    fn sizes(&mut self, name: &str, board: &Value, files: &Value) {
        for sink in Sink::all(board).iter().filter(|sink| sink.kind == "file" && sink.is_whole()) {
            let sizes: Vec<u64> = sink.names().iter().filter_map(|name| files[*name]["bytes"].as_u64()).collect();
            if Some(sizes.iter().sum()) != board["bytes"].as_u64() {
                let sum: Value = sizes.iter().sum::<u64>().into();
                self.add(name, &format!("bytes of the files of {}", sink.text), &sum, &told(&board["bytes"]));
            }
        }
    }
}

/// What the manifest of a run that has ended says against itself, in words.
pub fn against(manifest: &Manifest) -> Vec<String> {
    let (content, is_complete) = (&manifest.content, manifest.state() == "complete");
    let (of, mut claims) = ("manifest.json", Claims(Vec::new()));
    for (field, is_right) in [
        ("run", content["run"].is_u64()),
        ("begin.utc", content["begin"]["utc"].is_string()),
        ("experiment", content["experiment"].is_object()),
        ("files", content["files"].is_object()),
        ("boards", content["boards"].is_array()),
    ] {
        if !is_right {
            claims.0.push(format!("{of}: {field}: expected it"));
        }
    }
    let mut names: Vec<&str> = Vec::new();
    for board in manifest.boards() {
        let name = board["name"].as_str().unwrap_or_default();
        if name.is_empty() || (board["counts"].is_null() && names.contains(&name)) {
            claims.add(of, "boards: name", &board["name"], "a name that no other board has");
        }
        names.push(name);
        if board["events"].is_null() {
            claims.words(name, board);
        }
        if board["sinks"].as_array().is_none_or(Vec::is_empty) {
            claims.add(name, "sinks", &board["sinks"], "one or more");
        }
        if is_complete {
            claims.complete(name, board);
            claims.counts(name, board);
            if board["events"].is_null() {
                claims.sizes(name, board, &content["files"]);
            }
        }
    }
    if is_complete {
        claims.nothing(of, "error", &content["error"]);
        claims.whole(content);
        let tables = TABLES.iter().filter_map(|table| content["experiment"][table].as_array()).flatten();
        for (wanted, table) in tables.filter_map(|table| Some((table["name"].as_str()?, table))) {
            let is_there = |name: &&&str| **name == wanted || name.starts_with(&format!("{wanted}/"));
            let (there, streams) = (names.iter().filter(is_there).count(), table["streams"].as_u64().unwrap_or(1));
            if there == 0 {
                claims.0.push(format!("{of}: boards: expected `{wanted}`, which the experiment has"));
            } else if (there as u64) < streams {
                claims.0.push(format!("{of}: boards: {there} streams of `{wanted}`: expected {streams}"));
            }
        }
    }
    claims.0
}

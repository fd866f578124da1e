use std::path::PathBuf;

use fadelink_sinks::hashes::HASHED_BYTES;
use serde_json::{json, Value};

use super::*;
use crate::files::MANIFEST;
use crate::manifest::sealed;

/// The folder of a run with a board that has two files of words and one of another kind.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        let folder = Folder(tempfile::tempdir().unwrap());
        let words: Vec<u8> = (0..30_000u32).flat_map(u32::to_le_bytes).collect();
        for (name, content) in [
            ("left.dat", &words[..80_000]),
            ("left.000001.dat", &words[80_000..]),
            ("left.h5", b"another kind"),
            (LOG, b"{}\n"),
            (EXPERIMENT, b"[[fade]]"),
        ] {
            fs::write(folder.path(name), content).unwrap();
        }
        let sinks = json!([
            { "sink": "file:left.dat,roll=80000", "files": ["left.dat", "left.000001.dat"] },
            { "sink": "hdf5:left.h5", "files": ["left.h5"] },
        ]);
        let hashes = [blake3::hash(&words).to_hex().to_string()];
        let hashes = json!({ "block_bytes": HASHED_BYTES, "bytes": words.len(), "blake3": hashes });
        let board = json!({
            "name": "left", "bytes": words.len(), "words": words.len() / 8, "complete": true, "verdict": "complete",
            "reasons": [], "sinks": sinks, "hashes": hashes, "timeline": [[1, 8], [2, words.len()]], "kept": true,
        });
        let mut listed = json!({ "left.dat": { "bytes": 80_000 }, "left.000001.dat": { "bytes": 40_000 } });
        for name in ["left.h5", LOG, EXPERIMENT] {
            let content = fs::read(folder.path(name)).unwrap();
            listed[name] = json!({ "bytes": content.len(), "blake3": blake3::hash(&content).to_hex().to_string() });
        }
        let moment = json!({ "utc": "2026-11-01T00:00:00Z" });
        let manifest = json!({
            "format": 1, "run": 1, "computer": "a", "state": "complete", "begin": moment, "end": moment, "error": null,
            "ended_by": "size", "experiment": { "fade": [{ "name": "left" }] }, "boards": [board], "files": listed,
        });
        folder.write(&manifest);
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, manifest: &Value) {
        fs::write(self.path(MANIFEST), sealed(manifest.clone())).unwrap();
    }

    /// What is found; where the manifest cannot be read, that.
    fn findings(&self, depth: Depth) -> Vec<String> {
        check(self.0.path(), false, depth).map_or_else(|error| vec![error.to_string()], |checked| checked.findings)
    }

    fn content(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let entries = fs::read_dir(self.0.path()).unwrap().map(|entry| entry.unwrap().path());
        entries.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
    }
}

#[test]
fn whatever_is_changed_is_found() {
    let folder = Folder::new();
    assert_eq!(folder.findings(Depth::Content), [""; 0]);
    assert_eq!(folder.findings(Depth::Sizes), [""; 0]);
    let mut random = fastrand::Rng::with_seed(7);
    for (path, content) in folder.content() {
        let name = path.file_name().unwrap().display().to_string();
        for _ in 0..40 {
            let at = random.usize(..content.len());
            let mut changed = content.clone();
            changed[at] ^= 1 << random.u8(..7);
            let (longer, shorter) = ([&content[..], b"x"].concat(), content[..at].to_vec());
            for (new, depth) in [(changed, Depth::Content), (longer, Depth::Sizes), (shorter, Depth::Sizes)] {
                fs::write(&path, &new).unwrap();
                let findings = folder.findings(depth);
                assert!(!findings.is_empty(), "{name}: byte {at}: {} bytes", new.len());
            }
        }
        fs::remove_file(&path).unwrap();
        let findings = folder.findings(Depth::Sizes);
        assert!(findings.iter().any(|what| what.contains(&name)), "{name}: {findings:?}");
        fs::write(&path, content).unwrap();
    }
    assert_eq!(folder.findings(Depth::Content), [""; 0]);
}

/// Numbers and words in the manifest that contradict each other, though the seal is right.
#[test]
fn a_manifest_that_says_otherwise_is_found() {
    let folder = Folder::new();
    let manifest = Manifest::read(folder.0.path()).unwrap().content;
    for (pointer, value) in [
        ("/state", json!("incomplete")),
        ("/error", json!("x")),
        ("/end", json!(null)),
        ("/begin", json!({})),
        ("/boards", json!([])),
        ("/files", json!([])),
        ("/files/left.dat/bytes", json!(8)),
        ("/files/left.h5/blake3", json!("00")),
        ("/files/left.h5", json!({ "bytes": 12 })),
        ("/boards/0/name", json!("right")),
        ("/boards/0/bytes", json!(8)),
        ("/boards/0/words", json!(8)),
        ("/boards/0/complete", json!(false)),
        ("/boards/0/verdict", json!("incomplete")),
        ("/boards/0/reasons", json!([{ "reason": "missing" }])),
        ("/boards/0/sinks", json!([])),
        ("/boards/0/sinks/0/files", json!(["left.dat"])),
        ("/boards/0/sinks/0/files", json!(["left.000001.dat", "left.dat"])),
        ("/boards/0/sinks/0/files/0", json!("../left.dat")),
        ("/boards/0/sinks/1/files", json!([])),
        ("/boards/0/hashes", json!(null)),
        ("/boards/0/hashes/bytes", json!(8)),
        ("/boards/0/hashes/block_bytes", json!(8)),
        ("/boards/0/hashes/blake3", json!([])),
        ("/boards/0/timeline/1/1", json!(8)),
        ("/experiment/fade/0/name", json!("other")),
    ] {
        let mut changed = manifest.clone();
        *changed.pointer_mut(pointer).unwrap() = value.clone();
        folder.write(&changed);
        assert!(!folder.findings(Depth::Content).is_empty(), "{pointer}: {value}");
    }
    for (pointer, entry, value) in [
        ("/files", "left.000002.dat", json!({ "bytes": 8 })),
        ("/files", "a/left.dat", json!({ "bytes": 8 })),
        ("/boards/0", "restarted", json!(8)),
        ("/boards/0", "wrong_words", json!(8)),
        ("/boards/0", "crc32", json!({ "board": "00000000", "received": "00000001" })),
        ("/boards/0", "gaps", json!([[1, 2]])),
        ("/boards/0", "counts", json!({ "lost": 7 })),
        ("/boards/0", "counters", json!({ "protocol_errors": 1 })),
        ("/boards/0", "counters", json!({ "contradictions": 1 })),
        ("/boards/0", "counters", json!({ "begun_again": 1 })),
        ("/boards/0", "board_resets", json!({ "count": 1 })),
        ("/boards/0", "verified", json!(false)),
        ("/experiment/fade/0", "streams", json!(2)),
        ("", "groups", json!([{ "reasons": [{ "reason": "absent" }] }])),
        ("", "groups", json!([{}, { "missing_streams": 3 }])),
        ("", "groups", json!([{ "unserved": true }])),
        ("", "groups", json!([{ "unrecorded_connections": 4 }])),
        ("", "groups", json!([{ "failed_boards": ["a"] }])),
        ("", "ended_by", json!("crash")),
        ("", "ended_by", json!("error")),
        ("/boards/0/sinks/0", "dropped", json!(8)),
        ("/boards/0/sinks/1", "error", json!("the disk is full")),
    ] {
        let mut changed = manifest.clone();
        changed.pointer_mut(pointer).unwrap()[entry] = value.clone();
        folder.write(&changed);
        assert!(!folder.findings(Depth::Content).is_empty(), "{pointer}/{entry}: {value}");
    }
    folder.write(&manifest);
    assert_eq!(folder.findings(Depth::Content), [""; 0]);
}

/// A second output does not answer for the first one.
#[test]
fn every_output_is_checked() {
    let (folder, elsewhere) = (Folder::new(), tempfile::tempdir().unwrap());
    let mut manifest = Manifest::read(folder.0.path()).unwrap().content;
    let path = elsewhere.path().join("left.h5");
    fs::rename(folder.path("left.h5"), &path).unwrap();
    let name = path.display().to_string();
    let entry = manifest["files"].as_object_mut().unwrap().remove("left.h5").unwrap();
    manifest["files"][&name] = entry;
    manifest["boards"][0]["sinks"][1]["files"] = json!([name]);
    folder.write(&manifest);
    let findings = |outside| check(folder.0.path(), outside, Depth::Content).unwrap().findings;
    assert_eq!(findings(true), [""; 0]);
    assert!(findings(false)[0].contains("left.h5: it is outside the folder"));
    fs::write(&path, b"another king").unwrap();
    assert!(findings(true)[0].contains("left.h5: its content is not what was written"));
    fs::remove_file(path).unwrap();
    assert!(findings(true)[0].contains("left.h5: it is missing"));
}

/// What its user lets an output lose is told, but the run is good.
#[test]
fn an_output_that_may_drop_is_noted() {
    let folder = Folder::new();
    let mut manifest = Manifest::read(folder.0.path()).unwrap().content;
    let sink = &mut manifest["boards"][0]["sinks"][1];
    (sink["may_drop"], sink["dropped"]) = (true.into(), 8.into());
    folder.write(&manifest);
    let checked = check(folder.0.path(), false, Depth::Content).unwrap();
    assert_eq!(checked.findings, [""; 0]);
    assert!(checked.notes[0].contains("hdf5:left.h5: it lost 8 bytes"), "{:?}", checked.notes);
    manifest["boards"][0]["sinks"].as_array_mut().unwrap().remove(0);
    folder.write(&manifest);
    let findings = check(folder.0.path(), false, Depth::Content).unwrap().findings;
    assert!(findings.iter().any(|what| what.contains("nothing of what it has sent could be checked")), "{findings:?}");
}

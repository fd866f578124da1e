//! The files of a run: those that its sinks have made, with the hashes of what they have written.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use fadelink_runs::files::{hash, is_note, is_of_the_run, PART};
use fadelink_sinks::description;
use serde_json::{json, Map, Value};

/// A file that nobody changes any more, as in the manifest.
///
/// # Errors
/// The operating system's.
pub fn entry(path: &Path) -> io::Result<Value> {
    let file = File::open(path)?;
    let bytes = file.metadata()?.len();
    Ok(json!({ "bytes": bytes, "blake3": hash(file)? }))
}

/// True if there are notes for a program that goes on: a run has not ended.
///
/// # Errors
/// The operating system's.
pub fn has_notes(folder: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(folder)? {
        if entry?.file_name().to_str().is_some_and(is_note) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// True of a name that is no data: it is written at the end, or for the run alone. No sink may have it.
pub fn is_own(name: &str) -> bool {
    is_of_the_run(name) || is_note(name) || name.ends_with(PART)
}

/// Refuses links, which lead elsewhere, and what has the name of a file that a run writes itself and is none: a pipe would be waited for.
///
/// # Errors
/// Which one; the operating system's.
pub fn check_own(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_symlink() || (entry.file_name().to_str().is_some_and(is_own) && !kind.is_file()) {
            return Err(io::Error::other(format!("{}: expected a file", entry.path().display())));
        }
    }
    Ok(())
}

/// The name of a file in a manifest: its path, if it is not in the folder of the run.
fn name(folder: &Path, path: &Path) -> String {
    let absolute = || std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let name = path.strip_prefix(folder).map_or_else(|_| absolute(), Path::to_owned);
    name.to_string_lossy().into_owned()
}

/// Moves what the sinks in a report say of their files to `listed`, by name; the report has only the names then.
pub fn list(folder: &Path, sinks: &mut Value, listed: &mut Map<String, Value>) {
    for sink in sinks.as_array_mut().into_iter().flatten() {
        // Of a pipe, or a device, there is none. Hashes keep no data, but are a file.
        let is_hashes = sink["sink"].as_str().is_some_and(|text| text.starts_with("hashes:"));
        let keeps = sink["keeps"] != false || is_hashes;
        let Some(files) = sink.get_mut("files").and_then(Value::as_array_mut) else { continue };
        let mut names = Vec::new();
        for file in files.drain(..).filter(|_| keeps) {
            let Value::Object(mut entry) = file else { continue };
            let path = entry.remove("path");
            let name = name(folder, path.as_ref().and_then(Value::as_str).unwrap_or_default().as_ref());
            // What could not be finished has no size.
            if !is_own(&name) && entry["bytes"].is_u64() {
                listed.insert(name.clone(), entry.into());
                names.push(name);
            }
        }
        sink["files"] = names.into();
    }
}

/// Files of a sink whose program was ended by force, as in a report: what is found of them. `has_words`: their hashes are those of
/// its board's words, and each has a description.
///
/// # Errors
/// The operating system's.
pub fn found(paths: Vec<PathBuf>, has_words: bool) -> io::Result<Vec<Value>> {
    let mut files = Vec::new();
    for path in paths {
        let description = description(&path);
        if has_words {
            files.push(json!({ "path": path, "bytes": fs::metadata(&path)?.len() }));
        }
        for path in if has_words { [description] } else { [path] } {
            if path.exists() {
                let mut file = entry(&path)?;
                file["path"] = path.to_string_lossy().into();
                files.push(file);
            }
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_listed_by_name() {
        let folder = Path::new("runs/0001");
        let mut sinks = json!([
            { "sink": "file:a.dat", "files": [
                { "path": "runs/0001/a.dat", "bytes": 16 },
                { "path": "runs/0001/a.dat.json", "bytes": 3, "blake3": "ab" },
                { "path": "/elsewhere/b.dat", "bytes": 4 },
                { "path": "runs/0001/c.dat", "bytes": null },
            ] },
            { "sink": "hashes:a.hashes", "files": [{ "path": "runs/0001/a.hashes", "bytes": 8 }] },
            { "sink": "file:/dev/null", "keeps": false, "files": [{ "path": "/dev/null", "bytes": 0 }] },
            { "sink": "share:x" },
        ]);
        let mut listed = Map::new();
        list(folder, &mut sinks, &mut listed);
        let expected = json!({
            "a.dat": { "bytes": 16 }, "a.dat.json": { "bytes": 3, "blake3": "ab" }, "/elsewhere/b.dat": { "bytes": 4 },
        });
        assert_eq!(Value::from(listed), expected);
        let expected = json!([
            { "sink": "file:a.dat", "files": ["a.dat", "a.dat.json", "/elsewhere/b.dat"] },
            { "sink": "hashes:a.hashes", "files": [] },
            { "sink": "file:/dev/null", "keeps": false, "files": [] },
            { "sink": "share:x" },
        ]);
        assert_eq!(sinks, expected);
    }

    #[test]
    fn what_a_sink_has_left_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
        for name in ["a.dat", "a.dat.json", "a.000001.dat", "b.dat"] {
            fs::write(path(name), name).unwrap();
        }
        let names = |has_words| {
            let files = found(["a.dat", "a.000001.dat"].map(|name| path(name).into()).into(), has_words).unwrap();
            let is_hashed = |file: &Value| file["blake3"].is_string();
            let name = |file: &Value| name(folder.path(), file["path"].as_str().unwrap().as_ref());
            files.iter().map(|file| (name(file), is_hashed(file))).collect::<Vec<_>>()
        };
        let expected =
            |all: &[(&str, bool)]| all.iter().map(|(name, hash)| ((*name).to_owned(), *hash)).collect::<Vec<_>>();
        assert_eq!(names(true), expected(&[("a.dat", false), ("a.dat.json", true), ("a.000001.dat", false)]));
        assert_eq!(names(false), expected(&[("a.dat", true), ("a.000001.dat", true)]));
    }
}

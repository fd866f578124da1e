//! The manifest of a run, and its seal: the hash of its own text. A manifest that somebody has changed has another one.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::files::MANIFEST;
use crate::scope::Scope;
use crate::unique;

/// Version of the manifest's format.
pub const FORMAT: u64 = 1;
/// What stands before the seal in the text, which has no other such line.
const KEY: &str = "\n  \"seal\": \"";
/// What stands for the seal where it is computed.
const NONE: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// Why a manifest cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{}: {what}", path.display())]
pub struct Error {
    /// Where it is.
    pub path: PathBuf,
    /// What is wrong.
    pub what: String,
}

/// A manifest that was read.
#[derive(Debug, Clone)]
pub struct Manifest {
    /// Its content.
    pub content: Value,
    /// It is as it was written.
    pub is_sealed: bool,
}

fn seal_of(unsealed: &str) -> String {
    blake3::hash(unsealed.as_bytes()).to_hex().to_string()
}

/// The text of a manifest with this content.
pub fn sealed(mut content: Value) -> String {
    content["seal"] = NONE.into();
    let text = format!("{content:#}\n");
    text.replacen(&format!("{KEY}{NONE}"), &format!("{KEY}{}", seal_of(&text)), 1)
}

fn is_sealed(text: &str) -> bool {
    let Some((before, rest)) = text.split_once(KEY) else { return false };
    match rest.split_at_checked(NONE.len()) {
        Some((seal, behind)) => seal_of(&[before, KEY, NONE, behind].concat()) == seal,
        None => false,
    }
}

impl Manifest {
    /// Reads the manifest in the folder of a run.
    ///
    /// # Errors
    /// It is not there, not a file, or of another format.
    pub fn read(run: &Path) -> Result<Manifest, Error> {
        Manifest::read_as(run, false)
    }

    /// The same. `outside`: it may be a link to a file elsewhere.
    ///
    /// # Errors
    /// As there.
    pub fn read_as(run: &Path, outside: bool) -> Result<Manifest, Error> {
        let path = run.join(MANIFEST);
        let error = |what| Error { path: path.clone(), what };
        let in_words = |found: io::Error| match found.kind() {
            io::ErrorKind::NotFound => error("expected the folder of a run, which has this file".into()),
            _ => error(found.to_string()),
        };
        std::fs::symlink_metadata(&path).map_err(in_words)?;
        let scope = Scope::new(run, outside).map_err(in_words)?;
        let mut file = scope.open(&scope.folder.join(MANIFEST)).map_err(|what| {
            // The error names it.
            error(what.strip_prefix("manifest.json: ").unwrap_or(&what).to_owned())
        })?;
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(in_words)?;
        let content = unique::parse(&text).map_err(|found| error(found.to_string()))?;
        match &content["format"] {
            format if *format == FORMAT => Ok(Manifest { is_sealed: is_sealed(&text), content }),
            format => Err(error(format!("format {format}: expected {FORMAT}"))),
        }
    }

    /// The same, of one that is as it was written.
    ///
    /// # Errors
    /// As there, or it was changed.
    pub fn read_sealed(run: &Path) -> Result<Manifest, Error> {
        let manifest = Manifest::read(run)?;
        if !manifest.is_sealed {
            return Err(Error { path: run.join(MANIFEST), what: CHANGED.into() });
        }
        Ok(manifest)
    }

    /// A name that no other run has: its computer, its number, and when it began.
    pub fn name(&self) -> String {
        name(&self.content)
    }

    /// In one word, how the run stands.
    pub fn state(&self) -> &str {
        self.content["state"].as_str().unwrap_or_default()
    }

    /// The reports of its boards.
    pub fn boards(&self) -> impl Iterator<Item = &Value> {
        self.content["boards"].as_array().into_iter().flatten()
    }
}

/// What is said of a manifest that was changed.
pub const CHANGED: &str = "it is not as it was written: its seal is not that of its text";

/// The same of its content.
pub fn name(content: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    format!("{} {} {}", text(&content["computer"]), content["run"], text(&content["begin"]["utc"]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_changed_manifest_is_not_sealed() {
        let content = json!({ "format": 1, "run": 7, "experiment": { "title": "\n  \"seal\": \"0000" }, "z": [] });
        let text = sealed(content.clone());
        assert!(is_sealed(&text), "{text}");
        for at in 0..text.len() - 1 {
            let mut changed = text.clone().into_bytes();
            changed[at] ^= 1;
            assert!(!is_sealed(&String::from_utf8(changed).unwrap()), "byte {at}");
        }
        assert!(!is_sealed(&format!("{content:#}")));
        let folder = tempfile::tempdir().unwrap();
        let write = |text: &str| std::fs::write(folder.path().join(MANIFEST), text).unwrap();
        assert!(Manifest::read(folder.path()).unwrap_err().to_string().contains("expected the folder of a run"));
        write(&text);
        let again = sealed(Manifest::read_sealed(folder.path()).unwrap().content);
        assert_eq!(again, text);
        write(&text.replace("\"run\": 7", "\"run\": 8"));
        assert!(!Manifest::read(folder.path()).unwrap().is_sealed);
        assert!(Manifest::read_sealed(folder.path()).unwrap_err().to_string().contains(CHANGED));
        write(&text.replace("\"format\": 1", "\"format\": 2"));
        assert!(Manifest::read(folder.path()).unwrap_err().to_string().contains("format 2: expected 1"));
    }

    #[test]
    fn a_manifest_is_a_file() {
        let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let path = folder.path().join(MANIFEST);
        let error = |outside| Manifest::read_as(folder.path(), outside).unwrap_err().to_string();
        // A pipe would be waited for.
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        assert_eq!((error(false), error(true)), {
            let expected = format!("{}: expected a file", path.display());
            (expected.clone(), expected)
        });
        std::fs::remove_file(&path).unwrap();
        std::fs::write(elsewhere.path().join("a"), sealed(json!({ "format": 1 }))).unwrap();
        std::os::unix::fs::symlink(elsewhere.path().join("a"), &path).unwrap();
        assert!(error(false).contains("it is a link, and was not followed (--outside follows it)"));
        assert!(Manifest::read_as(folder.path(), true).unwrap().is_sealed);
    }
}

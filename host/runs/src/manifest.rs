//! The manifest of a run, and its seal: the hash of its own text. A manifest that somebody has changed has another one.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::files::MANIFEST;
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
    /// It is not there, or of another format.
    pub fn read(run: &Path) -> Result<Manifest, Error> {
        let path = run.join(MANIFEST);
        let error = |what| Error { path: path.clone(), what };
        let text = std::fs::read_to_string(&path).map_err(|found| match found.kind() {
            io::ErrorKind::NotFound => error("expected the folder of a run, which has this file".into()),
            _ => error(found.to_string()),
        })?;
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
}

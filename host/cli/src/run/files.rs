//! The files of a run: their sizes, and the hashes of those that have other content than plain words.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{channel, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use fadelink_runs::files::{hash, is_note, is_of_the_run, PART};
use fadelink_sinks::description;
use serde_json::{json, Map, Value};

/// How often is looked for files that are finished.
const TICK: Duration = Duration::from_secs(2);

/// A file of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its size.
    pub bytes: u64,
    /// BLAKE3 of its content; `None`: the hashes of its board's words are those of its content.
    pub hash: Option<String>,
}

impl Listed {
    /// As in the manifest.
    fn json(self) -> Value {
        let mut entry = json!({ "bytes": self.bytes });
        if let Some(hash) = self.hash {
            entry["blake3"] = hash.into();
        }
        entry
    }
}

/// A file that nobody changes any more, as in the manifest.
///
/// # Errors
/// The operating system's.
pub fn entry(path: &Path) -> io::Result<Value> {
    let file = File::open(path)?;
    let bytes = file.metadata()?.len();
    Ok(Listed { bytes, hash: Some(hash(file)?) }.json())
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

/// The files in the folder of a run that have data, by name.
///
/// # Errors
/// The operating system's.
fn names(folder: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if let (true, Ok(name)) = (entry.file_type()?.is_file(), entry.file_name().into_string()) {
            if !is_own(&name) {
                names.push(name);
            }
        }
    }
    names.sort();
    Ok(names)
}

/// Lists those that are finished and not listed yet; with `all`, also the descriptions, which change until the end.
fn look(folder: &Path, listed: &mut BTreeMap<String, Listed>, all: bool) -> io::Result<()> {
    for name in names(folder)? {
        let path = folder.join(&name);
        let (is_words, bytes) = (description(&path).exists(), fs::metadata(&path)?.len());
        // One that was looked at before its description was there has grown since.
        let is_current =
            listed.get(&name).is_some_and(|entry| entry.bytes == bytes && entry.hash.is_none() == is_words);
        if is_current || (!all && (is_words || name.ends_with(".json"))) {
            continue;
        }
        let hash = if is_words { None } else { Some(hash(File::open(&path)?)?) };
        listed.insert(name, Listed { bytes, hash });
    }
    Ok(())
}

/// Makes the list of a run's files while the run goes on, so that its end does not wait for it.
pub struct Lister {
    end: Sender<()>,
    thread: JoinHandle<io::Result<BTreeMap<String, Listed>>>,
}

impl Lister {
    /// Begins.
    ///
    /// # Errors
    /// No thread.
    pub fn begin(folder: PathBuf) -> io::Result<Lister> {
        let (end, asked) = channel();
        let work = move || {
            let mut listed = BTreeMap::new();
            while asked.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                look(&folder, &mut listed, false)?;
            }
            look(&folder, &mut listed, true)?;
            Ok(listed)
        };
        let thread = std::thread::Builder::new().name("files".into()).spawn(work)?;
        Ok(Lister { end, thread })
    }

    /// No file changes any more: the list, for the manifest.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn finish(self) -> io::Result<Value> {
        drop(self.end);
        let listed = self.thread.join().map_err(|_| io::Error::other("the thread that lists files panicked"))??;
        Ok(listed.into_iter().map(|(name, listed)| (name, listed.json())).collect::<Map<_, _>>().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fadelink_runs::files::{LOG, MANIFEST};

    #[test]
    fn files_are_listed_when_they_are_finished() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str| fs::write(folder.path().join(name), name).unwrap();
        ["a.dat", "a.dat.json", "a.hashes", "a.transmissions", "b.h5", "c.h5.part", MANIFEST, LOG]
            .into_iter()
            .for_each(write);
        let mut listed = BTreeMap::new();
        look(folder.path(), &mut listed, false).unwrap();
        assert_eq!(listed.keys().collect::<Vec<_>>(), ["b.h5"]);
        // The file of words was looked at between its creation and that of its description.
        fs::rename(folder.path().join("a.dat.json"), folder.path().join("description")).unwrap();
        look(folder.path(), &mut listed, false).unwrap();
        assert!(listed["a.dat"].hash.is_some());
        fs::rename(folder.path().join("description"), folder.path().join("a.dat.json")).unwrap();
        fs::write(folder.path().join("a.dat"), "more words").unwrap();
        look(folder.path(), &mut listed, true).unwrap();
        assert_eq!(listed["a.dat"], Listed { bytes: 10, hash: None });
        write("a.dat");
        let list = Lister::begin(folder.path().into()).unwrap().finish().unwrap();
        assert_eq!(list["a.dat"], json!({ "bytes": 5 }));
        assert_eq!(list["b.h5"], json!({ "bytes": 4, "blake3": blake3::hash(b"b.h5").to_hex().to_string() }));
        assert_eq!(list.as_object().unwrap().keys().collect::<Vec<_>>(), ["a.dat", "a.dat.json", "b.h5"]);
    }
}

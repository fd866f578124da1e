//! The folder of the runs, and that of each run.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;
use rustix::fs::{flock, FlockOperation};

/// Socket of the program that has the folder of the runs.
pub const SOCKET: &str = "control.socket";
/// File that is locked by this program.
const LOCK: &str = "lock";
const PREFIX: &str = "run_";

/// The folder of the runs; no other program may begin a run in it.
pub struct Runs {
    folder: PathBuf,
    _lock: File,
}

/// The folder of one run.
#[derive(Clone)]
pub struct RunFolder {
    /// Where it is.
    pub path: PathBuf,
    /// Number of the run.
    pub number: u64,
}

fn number_of(name: &Path) -> Option<u64> {
    name.file_name()?.to_str()?.strip_prefix(PREFIX)?.parse().ok()
}

impl Runs {
    /// Makes the folder where it is not there, and takes it.
    ///
    /// # Errors
    /// Another program has it, or the operating system's.
    pub fn open(folder: &Path) -> anyhow::Result<Runs> {
        let named = || format!("folder {}", folder.display());
        fs::create_dir_all(folder).with_context(named)?;
        let lock = File::create(folder.join(LOCK)).with_context(named)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|error| match error {
            rustix::io::Errno::WOULDBLOCK => {
                anyhow::anyhow!("{}: another `fadelink run` uses it; end that, or choose another folder", named())
            }
            error => anyhow::Error::from(io::Error::from(error)).context(named()),
        })?;
        // Absolute, as messages and manifests name it.
        Ok(Runs { folder: folder.canonicalize().with_context(named)?, _lock: lock })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// The folders of all runs, by their numbers.
    ///
    /// # Errors
    /// The operating system's.
    pub fn all(&self) -> io::Result<Vec<RunFolder>> {
        let mut all = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            if let Some(number) = number_of(&path) {
                all.push(RunFolder { path, number });
            }
        }
        all.sort_by_key(|folder| folder.number);
        Ok(all)
    }

    /// Makes the folder of the next run.
    ///
    /// # Errors
    /// The operating system's.
    pub fn next(&self) -> anyhow::Result<RunFolder> {
        let all = self.all().with_context(|| format!("folder {}", self.folder.display()))?;
        let last = all.last().map_or(0, |last| last.number);
        let number = last.checked_add(1).with_context(|| {
            format!("folder {}: {PREFIX}{last} has the last number: move it away", self.folder.display())
        })?;
        let path = self.folder.join(format!("{PREFIX}{number:06}"));
        fs::create_dir(&path).with_context(|| format!("folder {}", path.display()))?;
        Ok(RunFolder { path, number })
    }
}

/// Free space where `path` is, in bytes, for this user.
///
/// # Errors
/// The operating system's.
pub fn free_space(path: &Path) -> io::Result<u64> {
    let status = rustix::fs::statvfs(path)?;
    Ok(status.f_bavail * status.f_frsize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_numbered() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b");
        let runs = Runs::open(&path).unwrap();
        assert_eq!((runs.next().unwrap().number, runs.next().unwrap().number), (1, 2));
        fs::create_dir(path.join("run_000041")).unwrap();
        fs::create_dir(path.join("run_x")).unwrap();
        let next = runs.next().unwrap();
        assert_eq!((next.number, next.path.file_name().unwrap().to_str()), (42, Some("run_000042")));
        let last = path.join(format!("run_{}", u64::MAX));
        fs::create_dir(&last).unwrap();
        let error = runs.next().err().unwrap().to_string();
        assert!(error.contains("run_18446744073709551615 has the last number: move it away"), "{error}");
        fs::remove_dir(last).unwrap();
        let error = Runs::open(&path).err().unwrap().to_string();
        assert!(error.contains("another `fadelink run` uses it"), "{error}");
        drop(runs);
        assert!(Runs::open(&path).is_ok());
        assert!(free_space(&path).unwrap() > 0);
    }
}

//! Files that roll over: the next file begins when one is large or old enough. So a crash costs at most the last
//! file, and no limit of a format ends a run.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, io};

use crate::options::Options;

/// Options of sinks that write files. By default there is one file, which must not exist before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FileOptions {
    /// The next file begins when this one has so many bytes.
    pub roll: Option<u64>,
    /// The next file begins when this one is so old.
    pub every: Option<Duration>,
    /// A file of an earlier run is replaced.
    pub overwrite: bool,
}

impl FileOptions {
    /// From the options `roll=SIZE`, `every=SECONDS` (0: never; without it `every`) and `overwrite`.
    ///
    /// # Errors
    /// What was expected.
    pub fn parse(options: &mut Options<'_>, every: Option<Duration>) -> Result<FileOptions, String> {
        let roll = options.size("roll")?;
        let every = options.seconds("every")?.map_or(every, |every| (!every.is_zero()).then_some(every));
        Ok(FileOptions { roll, every, overwrite: options.flag("overwrite")? })
    }

    /// True if there may be a next file.
    pub fn rolls(&self) -> bool {
        self.roll.is_some() || self.every.is_some()
    }
}

/// The files of one sink, in order: `data.h5`, `data.000001.h5`, `data.000002.h5`.
#[derive(Debug)]
pub struct Parts {
    path: PathBuf,
    options: FileOptions,
    number: u32,
    begun: Instant,
}

impl Parts {
    /// The files of a sink whose first file is `path`.
    ///
    /// # Errors
    /// A file of an earlier run has data and must not be overwritten, or a second file exists: it would look like
    /// one of this run.
    pub fn new(path: impl Into<PathBuf>, options: FileOptions) -> io::Result<Parts> {
        let mut parts = Parts::numbered(path, options, 0);
        if parts.path.is_dir() {
            return Err(rustix::io::Errno::ISDIR.into());
        }
        let has_data = fs::metadata(&parts.path).is_ok_and(|found| found.is_file() && found.len() > 0);
        if has_data && !options.overwrite {
            let advice =
                "choose another name, or allow to replace it: --overwrite, or the option overwrite of a --sink";
            return Err(exists(&parts.path, advice));
        }
        parts.number = 1;
        let second = parts.path();
        if options.rolls() && second.exists() {
            return Err(exists(&second, "it belongs to an earlier run; move it away, or choose another name"));
        }
        parts.number = 0;
        Ok(parts)
    }

    /// The same, of files that may be there: from this number on.
    pub(crate) fn numbered(path: impl Into<PathBuf>, options: FileOptions, number: u32) -> Parts {
        Parts { path: path.into(), options, number, begun: Instant::now() }
    }

    /// The files that a sink has made, in their order.
    pub fn found(path: impl Into<PathBuf>, options: FileOptions) -> Vec<PathBuf> {
        let mut parts = Parts::numbered(path, options, 0);
        let mut found = Vec::new();
        while parts.path().exists() && (options.rolls() || found.is_empty()) {
            found.push(parts.path());
            parts.number += 1;
        }
        found
    }

    /// Path of the first one.
    pub(crate) fn first(&self) -> &Path {
        &self.path
    }

    /// Number of the file, from 0 on.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Its path.
    pub fn path(&self) -> PathBuf {
        if self.number == 0 {
            return self.path.clone();
        }
        let number = format!("{:06}", self.number);
        let name = match self.path.extension() {
            Some(extension) => format!("{number}.{}", Path::new(extension).display()),
            None => number,
        };
        match self.path.extension() {
            Some(_) => self.path.with_extension(name),
            None => {
                let mut path = self.path.as_os_str().to_owned();
                path.push(format!(".{name}"));
                path.into()
            }
        }
    }

    /// True if the file, which has so many bytes, is large or old enough.
    pub fn is_due(&self, bytes: u64) -> bool {
        bytes > 0
            && (self.options.roll.is_some_and(|size| bytes >= size)
                || self.options.every.is_some_and(|every| self.begun.elapsed() >= every))
    }

    /// Begins the next.
    pub fn advance(&mut self) {
        self.number += 1;
        self.begun = Instant::now();
    }
}

fn exists(path: &Path, advice: &str) -> io::Error {
    io::Error::new(io::ErrorKind::AlreadyExists, format!("the file {} exists; {advice}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_limits() {
        let folder = tempfile::tempdir().unwrap();
        let name = |name: &str| folder.path().join(name);
        let options = FileOptions { roll: Some(100), every: Some(Duration::from_secs(3600)), overwrite: false };
        let mut parts = Parts::new(name("run.1.h5"), options).unwrap();
        assert_eq!(parts.path(), name("run.1.h5"));
        assert!(!parts.is_due(99) && parts.is_due(100));
        parts.advance();
        assert_eq!(parts.path(), name("run.1.000001.h5"));
        let mut plain =
            Parts::new(name("data"), FileOptions { every: Some(Duration::ZERO), ..Default::default() }).unwrap();
        assert!(plain.is_due(1) && !plain.is_due(0), "one that is empty is not followed by another");
        plain.advance();
        assert_eq!(plain.path(), name("data.000001"));
        std::fs::write(name("data.000001"), "").unwrap();
        let error = Parts::new(name("data"), options).unwrap_err().to_string();
        assert!(error.contains("data.000001 exists; it belongs to an earlier run"), "{error}");
        assert!(Parts::new(name("data"), FileOptions::default()).is_ok());
    }

    #[test]
    fn data_of_an_earlier_run_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        let open = |overwrite| Parts::new(&path, FileOptions { overwrite, ..Default::default() });
        std::fs::write(&path, "").unwrap();
        assert!(open(false).is_ok(), "an empty file has no data");
        std::fs::write(&path, "words").unwrap();
        let error = open(false).unwrap_err().to_string();
        assert!(error.contains("data exists; choose another name") && error.contains("--overwrite"), "{error}");
        assert!(open(true).is_ok());
        assert!(Parts::new("/dev/null", FileOptions::default()).is_ok());
    }
}

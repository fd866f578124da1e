//! Files that roll over: when one is large or old enough, the next begins. So a crash costs the last of them at most, and
//! no limit of a format ends a run.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::options::Options;

/// When the next file begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Roll {
    /// When the file has so many bytes.
    pub size: Option<u64>,
    /// When it is so old.
    pub every: Option<Duration>,
}

impl Roll {
    /// From the options `roll=SIZE` and `every=SECONDS`, 0: never; without the latter it is `every`.
    ///
    /// # Errors
    /// What was expected.
    pub fn of(options: &mut Options<'_>, every: Option<Duration>) -> Result<Roll, String> {
        let size = options.size("roll")?;
        let every = options.seconds("every")?.map_or(every, |every| (!every.is_zero()).then_some(every));
        Ok(Roll { size, every })
    }

    /// One file, whatever comes.
    pub fn never() -> Roll {
        Roll { size: None, every: None }
    }
}

/// The files of one sink, in order: `data.h5`, `data.000001.h5`, `data.000002.h5`.
#[derive(Debug)]
pub struct Parts {
    path: PathBuf,
    roll: Roll,
    number: u32,
    begun: Instant,
}

impl Parts {
    /// Of the sink whose first file is `path`.
    ///
    /// # Errors
    /// A second file is there, of an earlier run: it would be taken for this one's.
    pub fn new(path: impl Into<PathBuf>, roll: Roll) -> io::Result<Parts> {
        let mut parts = Parts { path: path.into(), roll, number: 1, begun: Instant::now() };
        let second = parts.path();
        if roll != Roll::never() && second.exists() {
            let text = format!("{} is there, of an earlier run; move it away or choose another name", second.display());
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
        }
        parts.number = 0;
        Ok(parts)
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
            && (self.roll.size.is_some_and(|size| bytes >= size)
                || self.roll.every.is_some_and(|every| self.begun.elapsed() >= every))
    }

    /// Begins the next.
    pub fn advance(&mut self) {
        self.number += 1;
        self.begun = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_limits() {
        let folder = tempfile::tempdir().unwrap();
        let name = |name: &str| folder.path().join(name);
        let roll = Roll { size: Some(100), every: Some(Duration::from_secs(3600)) };
        let mut parts = Parts::new(name("run.1.h5"), roll).unwrap();
        assert_eq!(parts.path(), name("run.1.h5"));
        assert!(!parts.is_due(99) && parts.is_due(100));
        parts.advance();
        assert_eq!(parts.path(), name("run.1.000001.h5"));
        let mut plain = Parts::new(name("data"), Roll { size: None, every: Some(Duration::ZERO) }).unwrap();
        assert!(plain.is_due(1) && !plain.is_due(0), "one that is empty is not followed by another");
        plain.advance();
        assert_eq!(plain.path(), name("data.000001"));
        std::fs::write(name("data.000001"), "").unwrap();
        let error = Parts::new(name("data"), roll).unwrap_err().to_string();
        assert!(error.contains("data.000001 is there, of an earlier run"), "{error}");
        assert!(Parts::new(name("data"), Roll::never()).is_ok());
    }
}

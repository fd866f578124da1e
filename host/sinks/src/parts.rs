//! Files that roll over: the next file begins when one is large or old enough. So a crash costs at most the last
//! file, and no limit of a format ends a run.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{fs, io};

use rustix::fs::OFlags;

use crate::durable::{self, UNFINISHED};
use crate::made::{Content, Made};
use crate::options::Options;
use crate::output::{Output, DESCRIPTION};

/// Options of sinks that write files. By default there is one file, which must not exist before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FileOptions {
    /// The next file begins when this one has so many bytes.
    pub roll: Option<u64>,
    /// The next file begins when this one is so old.
    pub every: Option<Duration>,
    /// A file of an earlier run is replaced; one that has a number never is.
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

/// What to do about a file that exists, and may not be replaced.
const EARLIER: &str = "it belongs to an earlier run; move it away, or choose another name";
const REPLACEABLE: &str =
    "choose another name, or allow to replace it: --overwrite, or the option overwrite of a --sink";

/// Digits of a number.
const DIGITS: usize = 6;

/// The files of one sink, in order: `data.h5`, `data.000001.h5`, `data.000002.h5`.
#[derive(Debug)]
pub struct Parts {
    path: PathBuf,
    options: FileOptions,
    number: u32,
    begun: Instant,
    /// Those that were made, in their order.
    made: Vec<Made>,
    /// What somebody else has done to one of them.
    changed: Option<String>,
}

impl Parts {
    /// The files of a sink whose first file is `path`.
    ///
    /// # Errors
    /// There may be more than one, and another one than the first exists: it would look like one of this run.
    pub fn new(path: impl Into<PathBuf>, options: FileOptions) -> io::Result<Parts> {
        let parts = Parts::numbered(path, options, 0);
        if let Some(path) = parts.earlier()?.filter(|_| options.rolls()) {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                format!("the file {} exists; {EARLIER}", path.display()),
            ));
        }
        Ok(parts)
    }

    /// The same, of files that may be there: from this number on.
    pub(crate) fn numbered(path: impl Into<PathBuf>, options: FileOptions, number: u32) -> Parts {
        Parts { path: path.into(), options, number, begun: Instant::now(), made: Vec::new(), changed: None }
    }

    /// A file of an earlier run that has a number.
    fn earlier(&self) -> io::Result<Option<PathBuf>> {
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let text = |part: Option<&std::ffi::OsStr>| part.map(|part| part.to_string_lossy().into_owned());
        let stem = format!("{}.", text(self.path.file_stem()).unwrap_or_default());
        let extension = text(self.path.extension()).map_or(String::new(), |extension| format!(".{extension}"));
        let is_earlier = |name: &str| {
            let Some(rest) = name.strip_prefix(&*stem) else { return false };
            let end = rest.trim_start_matches(|digit: char| digit.is_ascii_digit());
            let end = end.strip_suffix(UNFINISHED).or(end.strip_suffix(DESCRIPTION)).unwrap_or(end);
            rest.len() - end.len() >= DIGITS && end == extension
        };
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if entry.file_name().to_str().is_some_and(is_earlier) {
                return Ok(Some(entry.path()));
            }
        }
        Ok(None)
    }

    /// Makes the file of this number; that of an earlier run is replaced, if this is the first one, and that is wanted. `flags` are
    /// those of open(2).
    ///
    /// # Errors
    /// The operating system's; it exists; somebody writes it.
    pub fn create(&mut self, flags: OFlags) -> io::Result<Output> {
        // The user has named the first one alone.
        let flags = if self.number == 0 { flags } else { flags | OFlags::NOFOLLOW };
        let output = Output::create(&self.path(), self.overwrites(), flags);
        self.add(output)
    }

    /// The same of a file that gets its name when it is whole: `name` is that of [`Self::path`], or one made of it.
    ///
    /// # Errors
    /// As there.
    pub fn create_unfinished(&mut self, name: &Path) -> io::Result<Output> {
        let output = Output::create_unfinished(name, self.overwrites());
        self.add(output)
    }

    /// Goes on behind the end of the file of this number.
    ///
    /// # Errors
    /// The operating system's; somebody writes it.
    pub fn resume(&mut self) -> io::Result<Output> {
        let output = Output::resume(&self.path());
        self.add(output)
    }

    fn add(&mut self, output: io::Result<Output>) -> io::Result<Output> {
        let output = output.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => {
                let advice = if self.number == 0 { REPLACEABLE } else { EARLIER };
                io::Error::new(error.kind(), format!("{error}; {advice}"))
            }
            _ => error,
        })?;
        self.made.extend(output.made().cloned());
        Ok(output)
    }

    fn overwrites(&self) -> bool {
        self.options.overwrite && self.number == 0
    }

    /// Compares a file, of which so many bytes were written, with what is on the disk.
    ///
    /// # Errors
    /// Somebody else has changed, removed or replaced it.
    pub fn compare(&mut self, output: &Output, bytes: u64) -> io::Result<()> {
        let checked = output.check(bytes);
        if let Err(error) = &checked {
            self.changed.get_or_insert_with(|| error.to_string());
        }
        checked
    }

    /// Finishes a file of so many bytes; one that had another name so far gets its own, and nothing that has it meanwhile is replaced
    /// unless that is wanted.
    ///
    /// # Errors
    /// The operating system's, or those of [`Self::compare`]; the file stays where it is.
    pub fn finish(&mut self, output: &Output, bytes: u64) -> io::Result<()> {
        self.compare(output, bytes)?;
        let is_this = |made: &Made| output.path().is_some_and(|path| made.is_at(path));
        if let (Some(index), Some(made)) = (self.made.iter().rposition(is_this), output.finish(bytes)?) {
            self.made[index] = made;
        }
        Ok(())
    }

    /// Writes the description of a file, which is one of those that the sink makes.
    ///
    /// # Errors
    /// The operating system's.
    pub(crate) fn describe(&mut self, path: &Path, text: &[u8]) -> io::Result<()> {
        let made = Made::finished(path, &durable::replace(path, text)?, Content::Hash(blake3::hash(text)));
        match self.made.iter_mut().rfind(|made| made.is_at(path)) {
            Some(before) => *before = made,
            None => self.made.push(made),
        }
        Ok(())
    }

    /// The description of a file of a program that was ended by force is one of those of this sink, as it is.
    ///
    /// # Errors
    /// The operating system's.
    pub(crate) fn adopt(&mut self, path: &Path) -> io::Result<()> {
        let content = blake3::hash(&fs::read(path)?);
        self.made.push(Made::finished(path, &fs::metadata(path)?, Content::Hash(content)));
        Ok(())
    }

    /// The one that was finished with this path.
    pub(crate) fn find(&mut self, path: &Path) -> Option<&mut Made> {
        self.made.iter_mut().rfind(|made| made.is_at(path) && !made.is_open())
    }

    /// The files that were made.
    pub(crate) fn made(&self) -> Arc<[Made]> {
        self.made.as_slice().into()
    }

    /// Whether the files are there as they were made: all, or only those that are `open`.
    ///
    /// # Errors
    /// The first that is not, and what has happened to it.
    pub(crate) fn check(&self, open: bool) -> io::Result<()> {
        if let Some(changed) = &self.changed {
            return Err(io::Error::other(changed.clone()));
        }
        self.made.iter().filter(|made| !open || made.is_open()).try_for_each(Made::check)
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
        let number = format!("{:0DIGITS$}", self.number);
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

    /// Begins the next, if it can be made; else this one stays the last.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn next<T, E>(&mut self, make: impl FnOnce(&mut Parts) -> Result<T, E>) -> Result<T, E> {
        let begun = self.begun;
        self.advance();
        let made = make(self);
        if made.is_err() {
            (self.number, self.begun) = (self.number - 1, begun);
        }
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_limits() {
        let folder = tempfile::tempdir().unwrap();
        let name = |name: &str| folder.path().join(name);
        let options = FileOptions { roll: Some(100), every: Some(Duration::from_secs(3600)), overwrite: true };
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
    }

    #[test]
    fn files_of_an_earlier_run_stay() {
        for (earlier, first, is_earlier) in [
            ("data.000001", "data", true),
            ("data.000007.json", "data", true),
            ("data.1234567.part", "data", true),
            ("run.1.000003.h5", "run.1.h5", true),
            ("run.000001.h5.part", "run.h5", true),
            ("data.00001", "data", false),
            ("data.000001.h5", "data", false),
            ("run.h5", "run.h5", false),
            ("run.000001.dat", "run.h5", false),
        ] {
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join(earlier), "").unwrap();
            let rolls = FileOptions { roll: Some(100), overwrite: true, ..FileOptions::default() };
            let path = folder.path().join(first);
            let error = Parts::new(&path, rolls).err().map(|error| error.to_string()).unwrap_or_default();
            assert_eq!(
                error.contains(&format!("{earlier} exists; it belongs to an earlier run")),
                is_earlier,
                "{error}"
            );
            assert!(Parts::new(&path, FileOptions::default()).is_ok());
        }
    }

    #[test]
    fn only_the_first_file_replaces_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        let options = FileOptions { roll: Some(1), overwrite: true, ..FileOptions::default() };
        std::fs::write(&path, "before").unwrap();
        let mut parts = Parts::new(&path, options).unwrap();
        let output = parts.create(OFlags::empty()).unwrap();
        parts.finish(&output, 0).unwrap();
        parts.advance();
        // It came meanwhile.
        std::fs::write(parts.path(), "before").unwrap();
        assert!(parts.create(OFlags::empty()).is_err() && parts.create_unfinished(&parts.path()).is_err());
        assert_eq!(std::fs::read_to_string(parts.path()).unwrap(), "before");
        assert!(parts.check(false).is_ok());
        std::fs::remove_file(&path).unwrap();
        assert!(parts.check(true).is_ok() && parts.check(false).is_err(), "it is no longer written");
    }
}

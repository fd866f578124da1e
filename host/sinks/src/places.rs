//! The names of the files of a sink: that of the first one, which its user has named, and those with numbers. All of them are its own
//! from the begin on, whether it comes to them or not.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::durable::UNFINISHED;
use crate::output::{place, DESCRIPTION};

/// Digits of a number; more if it does not fit.
const DIGITS: usize = 6;

/// Files of the same kind, in order: `data.h5`, `data.000001.h5`, `data.000002.h5`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    first: PathBuf,
    /// The same for all paths of it.
    place: PathBuf,
    /// Behind the number, which is behind a point.
    end: OsString,
    /// There may be more than the first one.
    rolls: bool,
}

fn without<'a>(name: &'a [u8], end: &str) -> &'a [u8] {
    name.strip_suffix(end.as_bytes()).unwrap_or(name)
}

/// What of a name is before and behind a number, with the points of both.
fn split(name: &[u8], end: &[u8]) -> Option<(usize, usize)> {
    let rest = name.strip_suffix(end)?;
    let stem = rest.len() - rest.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    (rest.len() - stem >= DIGITS && stem > 1 && rest[stem - 1] == b'.').then_some((stem - 1, rest.len()))
}

/// The name of the file, or of what it has until it is finished, or of its description.
fn of_file(name: &OsStr) -> &[u8] {
    without(without(without(name.as_bytes(), UNFINISHED), DESCRIPTION), UNFINISHED)
}

impl Places {
    /// Those of a sink whose first file is `first`.
    pub fn new(first: impl Into<PathBuf>, rolls: bool) -> Places {
        let first = first.into();
        let mut end = OsString::new();
        if let Some(extension) = first.extension() {
            end.push(".");
            end.push(extension);
        }
        Places { place: place(&first), first, end, rolls }
    }

    /// Those beside them that end so, in the place of the extension.
    #[must_use]
    pub fn beside(&self, end: &str) -> Places {
        let mut name = OsString::from_vec(self.stem().to_vec());
        name.push(end);
        let [first, place] = [&self.first, &self.place].map(|path| path.with_file_name(&name));
        Places { first, place, end: end.into(), rolls: self.rolls }
    }

    /// What is before the number.
    fn stem(&self) -> &[u8] {
        let name = self.first.file_name().unwrap_or_default().as_bytes();
        name.strip_suffix(self.end.as_bytes()).unwrap_or(name)
    }

    /// Path of the first one.
    pub fn first(&self) -> &Path {
        &self.first
    }

    /// True if there may be a next file.
    pub fn rolls(&self) -> bool {
        self.rolls
    }

    /// Path of the file of this number; the first one has 0.
    pub fn path(&self, number: u32) -> PathBuf {
        if number == 0 {
            return self.first.clone();
        }
        let mut name = OsString::from_vec(self.stem().to_vec());
        name.push(format!(".{number:0DIGITS$}"));
        name.push(&self.end);
        self.first.with_file_name(name)
    }

    /// True of the name of a file with a number, and of what belongs to it.
    fn has_number(&self, name: &OsStr) -> bool {
        let name = of_file(name);
        self.rolls && split(name, self.end.as_bytes()).is_some_and(|(stem, _)| name[..stem] == *self.stem())
    }

    /// True if a file could be of both.
    pub fn meets(&self, other: &Places) -> bool {
        let has = |sink: &Places, other: &Places| other.place.file_name().is_some_and(|name| sink.has_number(name));
        self.place == other.place
            || ((has(self, other) || has(other, self)) && self.place.parent() == other.place.parent())
    }

    /// True if this is the path of one of them, of what it is until it is finished, or of its description.
    pub fn have(&self, path: &Path) -> bool {
        let Some(name) = path.file_name() else { return false };
        let is_first = self.place.file_name().is_some_and(|own| own.as_bytes() == of_file(name));
        (is_first || self.has_number(name)) && self.place.parent() == place(path).parent()
    }

    /// The first one, what belongs to it, and what is there of those with numbers.
    pub fn known(&self) -> Vec<PathBuf> {
        let with = |path: &Path, end: &str| {
            let mut name = path.as_os_str().to_owned();
            name.push(end);
            PathBuf::from(name)
        };
        let files = [self.first.clone(), with(&self.first, DESCRIPTION)];
        let unfinished = files.each_ref().map(|file| with(file, UNFINISHED));
        files.into_iter().chain(unfinished).chain(self.numbered().unwrap_or_default()).collect()
    }

    /// What is there of the names with numbers.
    ///
    /// # Errors
    /// The operating system's.
    pub fn numbered(&self) -> io::Result<Vec<PathBuf>> {
        if !self.rolls {
            return Ok(Vec::new());
        }
        let folder = self.first.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut found = Vec::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if self.has_number(&entry.file_name()) {
                found.push(entry.path());
            }
        }
        found.sort();
        Ok(found)
    }

    /// The first files of sinks to which the first one here could belong, by its name.
    pub fn above(&self) -> Vec<PathBuf> {
        let name = self.first.file_name().unwrap_or_default().as_bytes();
        let points = (0..=name.len()).filter(|at| *at == name.len() || name[*at] == b'.');
        let numbers = points.filter_map(|at| split(name, &name[at..]));
        let first = |(stem, end): (usize, usize)| [&name[..stem], &name[end..]].concat();
        numbers.map(|number| self.first.with_file_name(OsString::from_vec(first(number)))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(first: &str) -> Places {
        Places::new(first, true)
    }

    #[test]
    fn each_file_has_its_name() {
        for (first, next) in [
            ("run.1.h5", "run.1.000001.h5"),
            ("data", "data.000001"),
            (".hidden", ".hidden.000001"),
            ("a.b/data", "a.b/data.000001"),
        ] {
            let names = names(first);
            assert_eq!((names.path(0), names.path(1)), (first.into(), next.into()));
            assert_eq!(names.path(1_234_567).to_str().unwrap(), next.replace("000001", "1234567"));
            assert_eq!(Places::new(next, false).above(), [PathBuf::from(first)], "{next}");
        }
        let beside = names("x/y.parquet").beside(".windows.parquet");
        assert_eq!(
            [beside.path(0), beside.path(2)].map(|path| path.to_str().unwrap().to_owned()),
            ["x/y.windows.parquet", "x/y.000002.windows.parquet"]
        );
        assert!(names("data.00001").above().is_empty() && names("data").above().is_empty());
    }

    #[test]
    fn names_that_could_be_of_two_sinks() {
        for (one, other, meet) in [
            ("a", "a", true),
            ("a", "b", false),
            ("a.h5", "a.000001.h5", true),
            ("a.h5", "a.1234567.h5", true),
            ("a.h5", "./a.000001.h5", true),
            ("a.h5", "x/a.000001.h5", false),
            ("a.h5", "a.00001.h5", false),
            ("a.h5", "a.000001.dat", false),
            ("a.h5", "a.b.000001.h5", false),
            ("a", "a.000009", true),
        ] {
            assert_eq!(names(one).meets(&names(other)), meet, "{one} {other}");
            assert_eq!(names(other).meets(&names(one)), meet, "{other} {one}");
            let one_file = |name: &str| Places::new(name, false);
            assert_eq!(one_file(one).meets(&one_file(other)), one == other, "{one} {other}");
        }
        assert!(names("x.parquet").beside(".windows.parquet").meets(&Places::new("x.000003.windows.parquet", false)));
    }

    #[test]
    fn whatever_is_there_of_the_names_is_found() {
        for (there, first, is_found) in [
            ("data.000001", "data", true),
            ("data.000007.json", "data", true),
            ("data.000007.json.part", "data", true),
            ("data.1234567.part", "data", true),
            ("run.1.000003.h5", "run.1.h5", true),
            ("run.000001.h5.part", "run.h5", true),
            ("data.00001", "data", false),
            ("data.000001.h5", "data", false),
            ("run.h5", "run.h5", false),
            ("run.000001.dat", "run.h5", false),
        ] {
            let folder = tempfile::tempdir().unwrap();
            fs::write(folder.path().join(there), "").unwrap();
            let first = folder.path().join(first);
            let expected: Vec<_> = is_found.then(|| folder.path().join(there)).into_iter().collect();
            assert_eq!(Places::new(&first, true).numbered().unwrap(), expected, "{there}");
            assert_eq!(
                Places::new(&first, true).known().contains(&folder.path().join(there)),
                is_found || there == "run.h5"
            );
            assert!(Places::new(&first, false).numbered().unwrap().is_empty());
        }
    }
}

//! Files that roll over: the next file begins when one is large or old enough. So a crash costs at most the last
//! file, and no limit of a format ends a run.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use crate::claim;
use crate::durable;
use crate::made::{Content, Identity, Made};
use crate::options::Options;
use crate::output::{self, Output};
use crate::places::Places;

/// Options of sinks that write files. By default there is one file, which must not exist before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FileOptions {
    /// The next file begins when this one has so many bytes.
    pub roll: Option<u64>,
    /// The next file begins when this one is so old.
    pub every: Option<Duration>,
    /// Files of an earlier run are replaced, and those that have a number are removed.
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

/// The files of one sink, in order: `data.h5`, `data.000001.h5`, `data.000002.h5`.
#[derive(Debug)]
pub struct Parts {
    /// Those of a sink that makes several at a time are beside the first ones.
    places: Vec<Places>,
    options: FileOptions,
    number: u32,
    begun: Instant,
    /// Those with numbers of an earlier run, which are removed when the source begins.
    replaced: Vec<(PathBuf, Identity)>,
    /// Those that were made, in their order.
    made: Vec<Made>,
    /// What somebody else has done to one of them.
    changed: Option<String>,
}

impl Parts {
    /// The files of a sink whose first file is `path`.
    pub fn new(path: impl Into<PathBuf>, options: FileOptions) -> Parts {
        Parts::numbered(path, options, 0)
    }

    /// The same, of files that may be there: from this number on.
    pub(crate) fn numbered(path: impl Into<PathBuf>, options: FileOptions, number: u32) -> Parts {
        let places = vec![Places::new(path, options.rolls())];
        let (begun, replaced, made, changed) = (Instant::now(), Vec::new(), Vec::new(), None);
        Parts { places, options, number, begun, replaced, made, changed }
    }

    /// Beside each there is one that ends so, in the place of the extension.
    #[must_use]
    pub fn and_beside(mut self, end: &str) -> Parts {
        self.places.push(self.places[0].beside(end));
        self
    }

    /// Claims all names that the files will have, by the first one: no other sink may have one of them.
    ///
    /// # Errors
    /// Another sink has one of them, or could come to it.
    fn claim(&self, output: &mut Output, name: &Path) -> io::Result<()> {
        let Some(places) = self.places.iter().find(|places| places.first() == name) else { return Ok(()) };
        if output.path().is_none() {
            return Ok(());
        }
        if !claim::take(output.file(), places.rolls())? {
            return Err(output::in_use(name));
        }
        if places.rolls() || self.options.overwrite {
            output.hold()?;
        }
        for first in places.above() {
            for path in [&first, &durable::unfinished(&first)] {
                let found = File::open(path).ok().filter(|file| file.metadata().is_ok_and(|found| found.is_file()));
                if found.map_or(Ok(false), |file| claim::are_numbers_taken(&file))? {
                    let (name, first) = (name.display(), first.display());
                    let what =
                        format!("the file {name} is one of those that follow {first}, which another sink writes");
                    return Err(io::Error::new(
                        io::ErrorKind::ResourceBusy,
                        format!("{what}, of this program or another one; choose another name"),
                    ));
                }
            }
        }
        Ok(())
    }

    /// Looks for files that have one of the numbers: they would look like some of this run.
    ///
    /// # Errors
    /// There is one, and it is not to be replaced.
    fn look(&mut self, name: &Path) -> io::Result<()> {
        let Some(places) = self.places.iter().find(|places| places.first() == name) else { return Ok(()) };
        for path in places.numbered()? {
            let found = fs::symlink_metadata(&path)?;
            if !self.options.overwrite || !durable::is_alone(&found) {
                return Err(output::exists(&path));
            }
            output::check_free(&path)?;
            self.replaced.push((path, Identity::of(&found)));
        }
        Ok(())
    }

    /// Makes the file of this number; that of an earlier run is replaced, if this is the first one, and that is wanted: when the source
    /// begins ([`Self::begin`]). `flags` are those of open(2).
    ///
    /// # Errors
    /// The operating system's; it exists; somebody writes it.
    pub fn create(&mut self, flags: OFlags) -> io::Result<Output> {
        // The user has named the first one alone.
        let flags = if self.number == 0 { flags } else { flags | OFlags::NOFOLLOW };
        let output = Output::create(&self.path(), self.overwrites(), flags);
        self.add(output, &self.path())
    }

    /// The same of a file that gets its name when it is whole: `name` is that of [`Self::path`], or one made of it.
    ///
    /// # Errors
    /// As there.
    pub fn create_unfinished(&mut self, name: &Path) -> io::Result<Output> {
        let output = Output::create_unfinished(name, self.overwrites());
        self.add(output, name)
    }

    /// Goes on behind the end of the file of this number.
    ///
    /// # Errors
    /// The operating system's; somebody writes it.
    pub fn resume(&mut self) -> io::Result<Output> {
        let path = self.path();
        let mut output = Output::resume(&path)?;
        self.claim(&mut output, &path)?;
        self.made.extend(output.made().cloned());
        Ok(output)
    }

    fn add(&mut self, output: io::Result<Output>, name: &Path) -> io::Result<Output> {
        let claimed = output.and_then(|mut output| {
            self.claim(&mut output, name)?;
            self.look(name)?;
            Ok(output)
        });
        let mut output = claimed.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => {
                let advice = if self.number == 0 { REPLACEABLE } else { EARLIER };
                io::Error::new(error.kind(), format!("{error}; {advice}"))
            }
            _ => error,
        })?;
        self.made.extend(output.made().cloned());
        if self.number > 0 {
            output.begin()?;
        }
        Ok(output)
    }

    /// The source has begun: the file, which is the one of this number, is emptied, if it was there before, and stays from now on. It
    /// is as old as this. Those with numbers of an earlier run are removed.
    ///
    /// # Errors
    /// The operating system's; somebody else has changed, removed or replaced it.
    pub fn begin(&mut self, output: &mut Output) -> io::Result<()> {
        if !output.has_begun() {
            self.begun = Instant::now();
        }
        output.begin()?;
        for (path, identity) in std::mem::take(&mut self.replaced) {
            match fs::symlink_metadata(&path) {
                Ok(found) if Identity::of(&found) == identity => fs::remove_file(&path)?,
                Ok(_) => return Err(output::exists(&path)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
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
        let may_replace = self.overwrites() || self.made.iter().any(|made| made.is_at(path));
        let found = if may_replace { durable::replace(path, text) } else { durable::create(path, text) };
        let found = found.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => {
                let what = format!("the file {} exists, and did not at the begin", path.display());
                io::Error::new(error.kind(), what)
            }
            _ => error,
        })?;
        let made = Made::finished(path, &found, Content::Hash(blake3::hash(text)));
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
        self.places[0].first()
    }

    /// Number of the file, from 0 on.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Its path.
    pub fn path(&self) -> PathBuf {
        self.places[0].path(self.number)
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
    fn limits() {
        let options = FileOptions { roll: Some(100), every: Some(Duration::from_secs(3600)), overwrite: true };
        let mut parts = Parts::new("run.1.h5", options);
        assert!(!parts.is_due(99) && parts.is_due(100));
        parts.advance();
        assert_eq!(parts.path(), Path::new("run.1.000001.h5"));
        let plain = Parts::new("data", FileOptions { every: Some(Duration::ZERO), ..Default::default() });
        assert!(plain.is_due(1) && !plain.is_due(0), "one that is empty is not followed by another");
    }

    const ROLLS: FileOptions = FileOptions { roll: Some(1), every: None, overwrite: false };
    const OVERWRITES: FileOptions = FileOptions { overwrite: true, ..ROLLS };

    fn create(path: &Path, options: FileOptions) -> io::Result<(Parts, Output)> {
        let mut parts = Parts::new(path, options);
        parts.create(OFlags::empty()).map(|output| (parts, output))
    }

    fn text<T>(result: io::Result<T>) -> String {
        result.map(drop).unwrap_err().to_string()
    }

    fn names(folder: &Path) -> Vec<String> {
        let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    }

    #[test]
    fn files_of_an_earlier_run_are_refused_or_replaced_when_the_source_begins() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        let earlier = ["data", "data.000001", "data.000001.json", "data.000007.part", "data.1", "other.000001"];
        earlier.iter().for_each(|name| fs::write(folder.path().join(name), name).unwrap());
        assert!(text(create(&path, ROLLS)).contains("data exists; choose another name"));
        fs::write(&path, "").unwrap();
        let error = text(create(&path, ROLLS));
        assert!(error.contains("data.000001 exists; choose another name"), "{error}");
        fs::write(&path, "data").unwrap();
        drop(create(&path, OVERWRITES).unwrap());
        for name in earlier {
            assert_eq!(fs::read_to_string(folder.path().join(name)).unwrap(), name, "it has not begun");
        }
        let (mut parts, mut output) = create(&path, OVERWRITES).unwrap();
        parts.begin(&mut output).unwrap();
        assert_eq!(names(folder.path()), ["data", "data.1", "other.000001"]);
        assert_eq!(fs::metadata(&path).unwrap().len(), 0);
        drop((parts, output));
        // What would be removed is none of the user's other files.
        fs::hard_link(folder.path().join("data.1"), folder.path().join("data.000003")).unwrap();
        assert!(text(create(&path, OVERWRITES)).contains("data.000003 exists"));
        fs::remove_file(folder.path().join("data.000003")).unwrap();
        fs::write(folder.path().join("data.000003"), "").unwrap();
        let (mut parts, mut output) = create(&path, OVERWRITES).unwrap();
        fs::rename(folder.path().join("data.1"), folder.path().join("data.000003")).unwrap();
        assert!(text(parts.begin(&mut output)).contains("data.000003 exists"));
        assert_eq!(fs::read_to_string(folder.path().join("data.000003")).unwrap(), "data.1");
    }

    #[test]
    fn a_file_that_comes_meanwhile_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        fs::write(&path, "before").unwrap();
        let (mut parts, mut output) = create(&path, OVERWRITES).unwrap();
        parts.begin(&mut output).unwrap();
        parts.finish(&output, 0).unwrap();
        parts.advance();
        fs::write(parts.path(), "before").unwrap();
        assert!(parts.create(OFlags::empty()).is_err() && parts.create_unfinished(&parts.path()).is_err());
        assert_eq!(fs::read_to_string(parts.path()).unwrap(), "before");
        assert!(parts.check(false).is_ok());
        fs::remove_file(&path).unwrap();
        assert!(parts.check(true).is_ok() && parts.check(false).is_err(), "it is no longer written");
    }

    /// Also when the first file is finished, as long as the run goes on.
    #[test]
    fn names_that_a_sink_may_come_to_are_its_own() {
        let single = FileOptions { overwrite: true, ..FileOptions::default() };
        for unfinished in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a.h5");
            let mut parts = Parts::new(&path, ROLLS);
            let output = if unfinished { parts.create_unfinished(&path) } else { parts.create(OFlags::empty()) };
            let mut output = output.unwrap();
            for is_finished in [false, true] {
                let found = names(folder.path());
                let what = format!("{unfinished} {is_finished}");
                for other in ["a.000005.h5", "a.1234567.h5"] {
                    let error = text(create(&folder.path().join(other), single));
                    let expected = format!("{other} is one of those that follow");
                    assert!(error.contains(&expected), "{what}: {error}");
                }
                for options in [single, OVERWRITES] {
                    let error = text(create(&path, options));
                    assert!(error.contains("is being written by another sink"), "{what}: {error}");
                    let error = text(Parts::new(&path, options).create_unfinished(&path));
                    assert!(error.contains("is being written by another sink"), "{what}: {error}");
                }
                assert!(create(&folder.path().join("a.5.h5"), single).is_ok(), "{what}");
                assert_eq!(names(folder.path()), found, "{what}");
                if !is_finished {
                    parts.begin(&mut output).unwrap();
                    parts.finish(&output, 0).unwrap();
                    parts.advance();
                    drop(std::mem::replace(&mut output, Output::stream(File::open("/dev/null").unwrap())));
                }
            }
            drop(parts);
            assert!(create(&folder.path().join("a.000005.h5"), single).is_ok());
            // The other way round.
            let (parts, output) = create(&folder.path().join("a.000005.h5"), single).unwrap();
            let error = text(create(&path, OVERWRITES));
            assert!(error.contains("a.000005.h5 is being written by another sink"), "{error}");
            drop((parts, output));
        }
    }
}

//! Files that sinks make. Each has one writer, replaces nothing that its user has not given up, and is at the end what its
//! writer has made of it: what others do to it meanwhile is an error.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use blake3::Hasher;
use rustix::fs::{flock, renameat_with, FlockOperation, OFlags, RenameFlags, CWD};
use rustix::io::Errno;

use crate::durable::{self, UNFINISHED};
use crate::made::{Content, Made};
use crate::streams;

/// End of the names of descriptions of files.
pub const DESCRIPTION: &str = ".json";

/// Refuses names that are those of other files than data.
///
/// # Errors
/// What was expected.
pub fn check_name(path: &str) -> Result<(), String> {
    for (end, what) in [(UNFINISHED, "files that are not finished"), (DESCRIPTION, "descriptions of files")] {
        if path.ends_with(end) {
            return Err(format!("`{path}`: names that end in `{end}` are those of {what}; expected another name"));
        }
    }
    Ok(())
}

/// The same for all paths of a file: two that differ may not be of one file, but for links of the file itself.
pub fn place(path: &Path) -> PathBuf {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match (parent.canonicalize(), path.file_name()) {
        (Ok(parent), Some(name)) => parent.join(name),
        _ => path.components().collect(),
    }
}

/// A file that is written, each time behind its end, and by nobody else.
#[derive(Debug)]
pub struct Output {
    file: File,
    /// Its name when it is finished.
    name: PathBuf,
    /// What has this name then may be replaced.
    overwrite: bool,
    /// `None`: it is a pipe or a device, of which nothing can be said.
    made: Option<Made>,
    /// Of a file that gets its name when it is whole: what its writer has written.
    hasher: Option<Arc<Mutex<Hasher>>>,
}

/// Writes a file from its begin to its end, with a hash of what is written.
#[derive(Debug)]
pub struct Writer {
    file: File,
    hasher: Option<Arc<Mutex<Hasher>>>,
}

impl Write for Writer {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let written = self.file.write(data)?;
        if let Some(hasher) = &self.hasher {
            hasher.lock().unwrap_or_else(PoisonError::into_inner).update(&data[..written]);
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn exists(path: &Path) -> io::Error {
    io::Error::new(io::ErrorKind::AlreadyExists, format!("the file {} exists", path.display()))
}

fn in_use(path: &Path) -> io::Error {
    let why = "is being written by another sink, of this program or another one; choose another name";
    io::Error::new(io::ErrorKind::ResourceBusy, format!("the file {} {why}", path.display()))
}

/// Takes a file for one writer; the kernel gives it back when the program ends in any way.
///
/// # Errors
/// Another one has it.
pub(crate) fn lock(file: &File, path: &Path) -> io::Result<()> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(()),
        Err(Errno::WOULDBLOCK) => Err(in_use(path)),
        // A file system without locks: what another writer does is found at the end.
        Err(Errno::NOSYS | Errno::NOTSUP | Errno::NOLCK | Errno::INVAL) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Refuses a file that somebody writes.
fn check_free(path: &Path) -> io::Result<()> {
    if !fs::metadata(path).is_ok_and(|found| found.is_file()) {
        return Ok(());
    }
    match File::open(path) {
        Ok(file) => lock(&file, path),
        // One that cannot be read is of another user, whose rights protect it.
        Err(_) => Ok(()),
    }
}

/// What is found of a file that may not be there.
fn found(path: &Path) -> io::Result<Option<Metadata>> {
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        found => found.map(Some),
    }
}

impl Output {
    /// Makes a file that has its name from the begin; one that is there must be empty, unless `overwrite`. `flags` are those of
    /// open(2). Pipes, devices and what a link leads to are opened as they are, unless NOFOLLOW is among `flags`: the user has not
    /// named the file itself.
    pub(crate) fn create(name: &Path, overwrite: bool, flags: OFlags) -> io::Result<Output> {
        Output::take(name, name, overwrite, flags, |output| {
            check_free(&durable::unfinished(name))?;
            output.clear(overwrite)
        })
    }

    /// Makes a file that gets its name when it is whole. None may have that name, unless `overwrite`.
    pub(crate) fn create_unfinished(name: &Path, overwrite: bool) -> io::Result<Output> {
        match found(name)? {
            Some(found) if found.is_dir() => return Err(Errno::ISDIR.into()),
            Some(found) if !(overwrite && found.is_file()) => return Err(exists(name)),
            _ => {}
        }
        let path = durable::unfinished(name);
        let mut output = Output::take(&path, name, overwrite, OFlags::NOFOLLOW, |output| {
            check_free(name)?;
            output.clear(overwrite)
        })?;
        output.hasher = Some(Arc::default());
        Ok(output)
    }

    /// Goes on behind the end of a file, which is made where it is not there.
    pub fn resume(name: &Path) -> io::Result<Output> {
        durable::separate(name)?;
        Output::take(name, name, false, OFlags::empty(), |_| Ok(()))
    }

    /// Standard output.
    pub(crate) fn stream(file: File) -> Output {
        Output { file, name: PathBuf::new(), overwrite: false, made: None, hasher: None }
    }

    /// Opens the file at `path` for this writer alone. One that was made for that is removed if `check` refuses it.
    fn take(
        path: &Path,
        name: &Path,
        overwrite: bool,
        flags: OFlags,
        check: impl FnOnce(&Output) -> io::Result<()>,
    ) -> io::Result<Output> {
        let mut described = name.as_os_str().to_owned();
        described.push(DESCRIPTION);
        streams::check([path, name, described.as_ref()])?;
        let mut open = OpenOptions::new();
        open.append(true).custom_flags(flags.bits() as i32);
        let (file, is_new) = match open.clone().create_new(true).open(path) {
            // It may also be a link to one that is not there.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                match streams::open(open.create(true), flags, path) {
                    // A link, or a pipe, that has a name of the sink's own choice.
                    Err(_) if flags.contains(OFlags::NOFOLLOW) => return Err(exists(path)),
                    file => (file?, false),
                }
            }
            new => (new?, true),
        };
        let mut output = Output { file, name: name.to_owned(), overwrite, made: None, hasher: None };
        let found = output.file.metadata()?;
        if flags.contains(OFlags::NOFOLLOW) && !durable::is_alone(&found) {
            return Err(exists(path));
        }
        if found.is_file() {
            lock(&output.file, path)?;
            let mut made = Made::open_at(path, &found);
            if overwrite {
                made.hold(&output.file)?;
            }
            // Its last writer may have given it another name meanwhile.
            made.check()?;
            output.made = Some(made);
            if let Err(error) = check(&output) {
                if is_new {
                    let _ = fs::remove_file(path);
                }
                return Err(error);
            }
        }
        Ok(output)
    }

    /// Begins anew.
    fn clear(&self, overwrite: bool) -> io::Result<()> {
        let path = self.made.as_ref().map_or(&*self.name, Made::path);
        match self.file.metadata()?.len() {
            0 => Ok(()),
            _ if overwrite => self.file.set_len(0),
            _ => Err(exists(path)),
        }
    }

    /// It is opened for writing, at its end.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Writes it, so that the hash of its content is that of what was written.
    ///
    /// # Errors
    /// The operating system's.
    pub fn writer(&self) -> io::Result<Writer> {
        Ok(Writer { file: self.file.try_clone()?, hasher: self.hasher.clone() })
    }

    /// What is known of its content, if it has so many bytes.
    fn content(&self, bytes: u64) -> Content {
        let Some(hasher) = &self.hasher else { return Content::Words };
        let hasher = hasher.lock().unwrap_or_else(PoisonError::into_inner);
        // A part of what was written may have been cut off.
        if hasher.count() == bytes {
            Content::Hash(hasher.finalize())
        } else {
            Content::Unknown
        }
    }

    /// Where it is now; `None`: it is not a file on a disk.
    pub fn path(&self) -> Option<&Path> {
        self.made.as_ref().map(Made::path)
    }

    pub(crate) fn made(&self) -> Option<&Made> {
        self.made.as_ref()
    }

    /// Whether it is where it was made, and has so many bytes.
    ///
    /// # Errors
    /// What has happened to it.
    pub fn check(&self, bytes: u64) -> io::Result<()> {
        let Some(made) = &self.made else { return Ok(()) };
        made.has(&made.found()?, bytes)
    }

    /// Gives it its name, if it has another one so far: with all its content on the disk before, and the name after this. Returns
    /// what has to be found from now on.
    pub(crate) fn finish(&self, bytes: u64) -> io::Result<Option<Made>> {
        let Some(made) = &self.made else { return Ok(None) };
        self.check(bytes)?;
        if made.path() != self.name {
            self.file.sync_all()?;
            if self.overwrite {
                fs::rename(made.path(), &self.name)?;
            } else {
                rename_new(made.path(), &self.name)?;
            }
            durable::sync_parent(&self.name)?;
        }
        let found = self.file.metadata()?;
        made.has(&found, bytes)?;
        let made = Made::finished(&self.name, &found, self.content(bytes)).holding(made);
        made.check()?;
        Ok(Some(made))
    }
}

/// Renames a file to a name that nothing has.
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    let renamed = match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // A file system without that.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => link_new(from, to),
        renamed => renamed.map_err(io::Error::from),
    };
    renamed.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            let (from, to) = (from.display(), to.display());
            let text = format!("the file {to} exists, and did not at the begin; the data is in {from}");
            io::Error::new(io::ErrorKind::AlreadyExists, text)
        }
        _ => error,
    })
}

fn link_new(from: &Path, to: &Path) -> io::Result<()> {
    fs::hard_link(from, to)?;
    fs::remove_file(from)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    type Make = fn(&Path, bool) -> io::Result<Output>;

    /// A file with its name from the begin, and one that gets it when it is whole.
    const MAKES: [Make; 2] =
        [|name, overwrite| Output::create(name, overwrite, OFlags::empty()), Output::create_unfinished];

    fn text(result: io::Result<Output>) -> String {
        result.unwrap_err().to_string()
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_has_one_writer() {
        for (first, second) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a");
            let output = MAKES[first](&path, false).unwrap();
            let found = names(folder.path());
            for overwrite in [false, true] {
                // A file that has its name exists, whether it is written or not.
                let expected =
                    if (first, second, overwrite) == (0, 1, false) { "a exists" } else { "is being written" };
                let error = text(MAKES[second](&path, overwrite));
                assert!(error.contains(expected), "{first} {second} {overwrite}: {error}");
                assert_eq!(names(folder.path()), found, "nothing of it is left");
            }
            drop(output);
            assert!(MAKES[second](&path, true).is_ok());
        }
    }

    #[test]
    fn links_are_the_same_file() {
        let folder = tempfile::tempdir().unwrap();
        let name = |name: &str| folder.path().join(name);
        std::os::unix::fs::symlink(name("a"), name("soft")).unwrap();
        let output = MAKES[0](&name("soft"), false).unwrap();
        assert!(name("a").exists(), "a link to nothing is followed");
        fs::hard_link(name("a"), name("hard")).unwrap();
        for other in ["a", "./a", "hard", "soft"] {
            assert!(text(MAKES[0](&name(other), true)).contains("is being written"), "{other}");
        }
        assert!(output.finish(0).is_ok());
        assert_eq!(place(&name("./a")), place(&folder.path().join("../").join(name("a"))));
        assert_ne!(place(&name("a")), place(&name("b")));
    }

    #[test]
    fn nothing_is_replaced_without_being_asked() {
        for make in MAKES {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a");
            fs::write(&path, "before").unwrap();
            assert!(text(make(&path, false)).contains("a exists"));
            assert_eq!((fs::read_to_string(&path).unwrap(), names(folder.path())), ("before".into(), vec!["a".into()]));
            let output = make(&path, true).unwrap();
            output.file().write_all(b"now").unwrap();
            output.finish(3).unwrap();
            assert_eq!((fs::read_to_string(&path).unwrap(), names(folder.path())), ("now".into(), vec!["a".into()]));
            assert!(make(folder.path(), true).unwrap_err().raw_os_error().is_some(), "a folder");
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        // Left by a program that was killed.
        fs::write(folder.path().join("a.part"), "before").unwrap();
        assert!(text(MAKES[1](&path, false)).contains("a.part exists"));
        fs::remove_file(folder.path().join("a.part")).unwrap();
        // It comes while the file is written.
        let output = MAKES[1](&path, false).unwrap();
        output.file().write_all(b"now").unwrap();
        fs::write(&path, "meanwhile").unwrap();
        let error = output.finish(3).unwrap_err().to_string();
        assert!(error.contains("a exists, and did not at the begin; the data is in"), "{error}");
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!((read("a"), read("a.part")), ("meanwhile".into(), "now".into()));
        assert!(MAKES[1]("/dev/null".as_ref(), true).is_err(), "no device is replaced");
        assert!(MAKES[0]("/dev/null".as_ref(), false).unwrap().finish(7).unwrap().is_none());
    }

    #[test]
    fn a_rename_replaces_nothing_with_and_without_the_kernel() {
        let folder = tempfile::tempdir().unwrap();
        let name = |name: &str| folder.path().join(name);
        for rename in [rename_new, link_new] {
            fs::write(name("a"), "a").unwrap();
            fs::write(name("b"), "b").unwrap();
            assert!(rename(&name("a"), &name("b")).is_err());
            assert_eq!((fs::read(name("a")).unwrap(), fs::read(name("b")).unwrap()), (b"a".to_vec(), b"b".to_vec()));
            rename(&name("a"), &name("c")).unwrap();
            assert_eq!(names(folder.path()), ["b", "c"]);
            fs::remove_file(name("c")).unwrap();
        }
    }

    #[test]
    fn what_others_do_is_told() {
        type Harm = fn(&Path);
        let harms: [(&str, Harm); 7] = [
            ("was removed or renamed", |path| fs::remove_file(path).unwrap()),
            ("was removed or renamed", |path| fs::rename(path, path.with_extension("x")).unwrap()),
            ("a folder of its path was", |path| {
                let folder = path.parent().unwrap();
                fs::rename(folder, folder.with_extension("x")).unwrap();
            }),
            ("was replaced", |path| {
                fs::remove_file(path).unwrap();
                fs::write(path, "12345678").unwrap();
            }),
            ("has 3 bytes instead of 8", |path| File::options().write(true).open(path).unwrap().set_len(3).unwrap()),
            ("has 9 bytes instead of 8", |path| {
                File::options().append(true).open(path).unwrap().write_all(b"x").unwrap()
            }),
            ("has 0 bytes instead of 8", |path| File::create(path).map(drop).unwrap()),
        ];
        for make in MAKES {
            for (expected, harm) in harms {
                let top = tempfile::tempdir().unwrap();
                let folder = top.path().join("folder");
                fs::create_dir(&folder).unwrap();
                let output = make(&folder.join("a"), false).unwrap();
                output.file().write_all(b"12345678").unwrap();
                output.check(8).unwrap();
                harm(output.path().unwrap());
                let error = output.finish(8).unwrap_err().to_string();
                assert!(error.contains(expected), "{expected}: {error}");
            }
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a");
            let output = make(&path, false).unwrap();
            output.file().write_all(b"12345678").unwrap();
            let made = output.finish(8).unwrap().unwrap();
            made.check().unwrap();
            fs::write(&path, "1234567").unwrap();
            assert!(made.check().unwrap_err().to_string().contains("has 7 bytes instead of 8"), "behind its end, too");
            // The clock of a file system has steps.
            let modified = || fs::metadata(&path).unwrap().modified().unwrap();
            let before = modified();
            while modified() == before {
                fs::write(&path, "12345679").unwrap();
            }
            let error = made.check().unwrap_err().to_string();
            assert!(error.contains("was written by another program after it was finished"), "{error}");
            drop(output);
            // It gets the same inode on many file systems.
            fs::remove_file(&path).unwrap();
            fs::write(&path, "12345678").unwrap();
            assert!(made.check().is_err());
        }
    }

    #[test]
    fn the_hash_is_that_of_what_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let output = MAKES[1](&path, false).unwrap();
        output.writer().unwrap().write_all(b"1234").unwrap();
        output.writer().unwrap().write_all(b"5678").unwrap();
        // Another program.
        File::options().write(true).open(output.path().unwrap()).unwrap().write_all(b"x").unwrap();
        let entry = serde_json::to_value(output.finish(8).unwrap().unwrap()).unwrap();
        let expected = serde_json::json!({
            "path": path, "bytes": 8, "blake3": blake3::hash(b"12345678").to_hex().as_str()
        });
        assert_eq!(entry, expected);
        let output = MAKES[1](&folder.path().join("b"), false).unwrap();
        output.writer().unwrap().write_all(b"1234").unwrap();
        output.file().set_len(2).unwrap();
        let entry = serde_json::to_value(output.finish(2).unwrap().unwrap()).unwrap();
        assert!(entry["blake3"].is_null(), "a part was cut off: {entry}");
    }

    #[test]
    fn what_another_writer_cuts_is_found_whatever_is_written_then() {
        let folder = tempfile::tempdir().unwrap();
        let output = MAKES[0](&folder.path().join("a"), false).unwrap();
        output.file().write_all(b"12345678").unwrap();
        output.file().set_len(4).unwrap();
        output.file().write_all(b"12345678").unwrap();
        assert!(output.finish(16).unwrap_err().to_string().contains("has 12 bytes instead of 16"));
    }
}

//! Files that sinks make. Each has one writer, replaces nothing that its user has not given up, and is at the end what its
//! writer has made of it: what others do to it meanwhile is an error.
//!
//! A file is opened before its source begins. What opening has made is removed again if the source does not begin, and what was
//! there before is as it was.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use blake3::Hasher;
use rustix::fs::{flock, FlockOperation, OFlags};
use rustix::io::Errno;

use crate::claim;
use crate::durable::{self, UNFINISHED};
use crate::made::{Content, Made};
use crate::streams;

/// End of the names of descriptions of files.
pub const DESCRIPTION: &str = ".json";
/// End of the name of the table of windows beside a file of Parquet with hits, in the place of its extension.
pub const WINDOWS_END: &str = ".windows.parquet";

/// Bytes of the name of a file. File systems take 255; the names of what belongs to it, with a number, are longer by 25 at most.
const NAME_MAX: usize = 255 - 25;

/// Refuses names that are those of other files than data, or of none.
///
/// # Errors
/// What was expected.
pub fn check_name(path: &str) -> Result<(), String> {
    if path.contains('\0') {
        return Err(format!("`{}`: it has a zero byte; expected the name of a file", path.escape_debug()));
    }
    if matches!(path.rsplit('/').next(), None | Some("" | "." | "..")) {
        return Err(format!("`{path}`: it is the name of a folder; expected that of a file"));
    }
    for (end, what) in [(UNFINISHED, "files that are not finished"), (DESCRIPTION, "descriptions of files")] {
        if path.ends_with(end) {
            return Err(format!("`{path}`: names that end in `{end}` are those of {what}; expected another name"));
        }
    }
    let name = Path::new(path).file_name().map_or(0, |name| name.len());
    // What stands for a board or a stream in it is an address, with a port, of 48 bytes at most.
    let added = if ["{stream}", "{feb}"].iter().any(|key| path.contains(key)) { 43 } else { 0 };
    if name + added > NAME_MAX {
        return Err(format!("`{path}`: its name has {name} bytes; expected at most {}", NAME_MAX - added));
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
    /// It was made for this writer.
    is_new: bool,
    /// Its source has begun, and it is that of this writer from then on.
    has_begun: bool,
}

impl Drop for Output {
    /// A source that has not begun leaves nothing. Readers may lock the file from now on, also one whose name stays claimed.
    fn drop(&mut self) {
        let Some(made) = &self.made else { return };
        if self.is_new && !self.has_begun {
            made.remove_empty();
        }
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
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

pub(crate) fn exists(path: &Path) -> io::Error {
    io::Error::new(io::ErrorKind::AlreadyExists, format!("the file {} exists", path.display()))
}

pub(crate) fn in_use(path: &Path) -> io::Error {
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

/// Refuses a file that somebody writes, or has written in a run that goes on.
pub(crate) fn check_free(path: &Path) -> io::Result<()> {
    if !fs::metadata(path).is_ok_and(|found| found.is_file()) {
        return Ok(());
    }
    match File::open(path) {
        Ok(file) if claim::is_name_taken(&file)? => Err(in_use(path)),
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
            output.check_empty()
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
            output.check_empty()
        })?;
        output.hasher = Some(Arc::default());
        Ok(output)
    }

    /// Goes on behind the end of a file, which is made where it is not there.
    pub fn resume(name: &Path) -> io::Result<Output> {
        durable::separate(name)?;
        let mut output = Output::take(name, name, false, OFlags::empty(), |_| Ok(()))?;
        output.has_begun = true;
        Ok(output)
    }

    /// Standard output.
    pub(crate) fn stream(file: File) -> Output {
        Output::of(file, Path::new(""), (false, false))
    }

    fn of(file: File, name: &Path, (overwrite, is_new): (bool, bool)) -> Output {
        Output { file, name: name.to_owned(), overwrite, made: None, hasher: None, is_new, has_begun: false }
    }

    /// Opens the file at `path` for this writer alone. Nothing of it is left if `check` refuses it.
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
                let was_there = path.exists();
                match streams::open(open.create(true), flags, path) {
                    // A link, or a pipe, that has a name of the sink's own choice.
                    Err(_) if flags.contains(OFlags::NOFOLLOW) => return Err(exists(path)),
                    file => (file?, !was_there),
                }
            }
            new => (new?, true),
        };
        let mut output = Output::of(file, name, (overwrite, is_new));
        let found = output.file.metadata()?;
        if flags.contains(OFlags::NOFOLLOW) && !durable::is_alone(&found) {
            return Err(exists(path));
        }
        if found.is_file() {
            lock(&output.file, path)?;
            // Its last writer may have given it another name meanwhile.
            output.made.insert(Made::open_at(path, &found)).check()?;
            check(&output)?;
        }
        Ok(output)
    }

    /// Refuses what has data that its user has not given up.
    fn check_empty(&self) -> io::Result<()> {
        match self.file.metadata()?.len() {
            1.. if !self.overwrite => Err(exists(self.made.as_ref().map_or(&*self.name, Made::path))),
            _ => Ok(()),
        }
    }

    /// The source has begun: the file is emptied, if it was there before, and stays from now on.
    ///
    /// # Errors
    /// The operating system's; somebody else has changed, removed or replaced it.
    pub(crate) fn begin(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.has_begun, true) {
            return Ok(());
        }
        let Some(made) = &self.made else { return Ok(()) };
        match made.found()?.len() {
            0 => Ok(()),
            _ if self.overwrite => self.file.set_len(0),
            bytes => Err(io::Error::other(format!(
                "the file {} has {bytes} bytes instead of 0: another program has changed it",
                made.path().display()
            ))),
        }
    }

    /// Its source has begun.
    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun
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

    /// Keeps its claim of names as long as what was made is known.
    pub(crate) fn hold(&mut self) -> io::Result<()> {
        match &mut self.made {
            Some(made) => made.hold(&self.file),
            None => Ok(()),
        }
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
    durable::rename_new(from, to).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            let (from, to) = (from.display(), to.display());
            let text = format!("the file {to} exists, and did not at the begin; the data is in {from}");
            io::Error::new(io::ErrorKind::AlreadyExists, text)
        }
        _ => error,
    })
}

#[cfg(test)]
mod tests;

//! The folder of the runs, and that of each run.

use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use fadelink_runs::files::{
    is_of_the_run, name_of, number_of, EXPERIMENT, LAST, LOG, MANIFEST, PART, TRANSMISSIONS, UNFINISHED,
};
use fadelink_sinks::durable;
use rustix::fs::{flock, open, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::places;
use crate::exit::Usage;

/// Socket of the program that has the folder of the runs.
pub const SOCKET: &str = "control.socket";
/// File that is locked by this program.
pub const LOCK: &str = "lock";

/// The folder of the runs; no other program may begin a run in it.
pub struct Runs {
    folder: PathBuf,
    /// Its content is the number of the last run that has begun: that is not given again when the folder of the run is moved away.
    lock: File,
    /// The folder itself is locked, too: whatever happens to the files in it, it has one program.
    _folder: File,
}

/// The folder of one run.
#[derive(Clone)]
pub struct RunFolder {
    /// Where it is.
    pub path: PathBuf,
    /// Number of the run.
    pub number: u64,
    /// What tells it from another one with its name; `None`: it cannot be looked at.
    identity: Option<(u64, u64)>,
}

/// Device and number of what is there; a link is not followed.
///
/// # Errors
/// The operating system's.
pub fn identity(path: &Path) -> io::Result<(u64, u64)> {
    path.symlink_metadata().map(|found| (found.dev(), found.ino()))
}

/// The content of the mark, of the same length for any time.
fn mark(time: Duration) -> String {
    format!("{:012}\n", time.as_secs())
}

impl RunFolder {
    fn at(path: PathBuf, number: u64) -> RunFolder {
        let identity = identity(&path).ok();
        RunFolder { path, number, identity }
    }

    /// Whether it is still the one that has its name: what has come to its place is not touched.
    ///
    /// # Errors
    /// It was moved, removed or replaced; the operating system's.
    pub fn check(&self) -> io::Result<()> {
        match identity(&self.path) {
            Ok(found) if self.identity == Some(found) => Ok(()),
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => {
                let path = self.path.display();
                Err(io::Error::other(format!("{path}: the folder of the run was moved, removed or replaced")))
            }
        }
    }

    /// The run begins. Until its notes are dropped it is found by this mark.
    ///
    /// # Errors
    /// The operating system's.
    pub fn begins(&self) -> io::Result<()> {
        self.check()?;
        durable::replace(&self.path.join(UNFINISHED), mark(Duration::ZERO).as_bytes()).map(drop)
    }

    /// The run has gone on for so long, by a clock that is not stepped. The disk is not waited for: a power cut may cost some seconds.
    ///
    /// # Errors
    /// The operating system's.
    pub fn goes_on(&self, time: Duration) -> io::Result<()> {
        self.mark_of(fs::OpenOptions::new().write(true))?.write_all_at(mark(time).as_bytes(), 0)
    }

    /// The mark. What others have put in its place is not opened.
    fn mark_of(&self, options: &mut fs::OpenOptions) -> io::Result<File> {
        self.check()?;
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = options.custom_flags(flags.bits() as i32).open(self.path.join(UNFINISHED))?;
        if !durable::is_alone(&file.metadata()?) {
            return Err(io::Error::other(format!("{UNFINISHED}: expected the file that the run has made")));
        }
        Ok(file)
    }

    /// How long it had gone on when its program was ended; nothing where that is not known.
    pub fn gone_on(&self) -> Duration {
        let text = self.mark_of(fs::OpenOptions::new().read(true)).and_then(io::read_to_string).unwrap_or_default();
        text.trim_end().parse().map_or(Duration::ZERO, Duration::from_secs)
    }

    /// True if there is something with the name of its manifest.
    pub fn has_manifest(&self) -> bool {
        self.path.join(MANIFEST).symlink_metadata().is_ok()
    }

    /// Removes a run that could not begin: what a run has before its data, with the transmissions that it has asked for, and its folder.
    ///
    /// # Errors
    /// The operating system's; it has other files.
    pub fn abandon(&self) -> io::Result<()> {
        self.check()?;
        let is_list = |name: &str| name.ends_with(TRANSMISSIONS);
        let of_the_begin = |name: &str| name == UNFINISHED || is_of_the_run(name) || is_list(name);
        let mut lists = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let name = name.strip_suffix(PART).unwrap_or(&name);
            if !of_the_begin(name) {
                return Err(io::Error::other(format!("{name}: a run has it that has begun")));
            }
            lists.extend(is_list(name).then(|| entry.path()));
        }
        lists.iter().try_for_each(fs::remove_file)?;
        // The mark at last: what is left without it would be no run for any program.
        for name in [MANIFEST, LOG, EXPERIMENT, UNFINISHED] {
            for name in [durable::unfinished(name.as_ref()), name.into()] {
                match fs::remove_file(self.path.join(name)) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => {}
                }
            }
        }
        fs::remove_dir(&self.path)
    }
}

/// Manifests and reports name files by their paths, in UTF-8.
///
/// # Errors
/// This one has another path.
pub fn check_name(folder: &Path) -> Result<(), Usage> {
    let path = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    if path.to_str().is_none() {
        let name = path.as_os_str().as_bytes().escape_ascii();
        return Err(Usage(format!("folder `{name}`: expected a path in UTF-8, as manifests name it")));
    }
    Ok(())
}

/// Whether a folder can be made there, with those above it.
///
/// # Errors
/// What is there instead.
pub fn check_place(folder: &Path) -> Result<(), String> {
    let real = places::real(folder);
    match real.ancestors().find(|path| path.symlink_metadata().is_ok()).filter(|path| !path.is_dir()) {
        Some(other) => Err(format!("{} is not a folder; expected one, or a name that nothing has", other.display())),
        None => match real.symlink_metadata() {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.to_string()),
            _ => Ok(()),
        },
    }
}

impl Runs {
    /// Makes the folder where it is not there, and takes it.
    ///
    /// # Errors
    /// Another program has it, or the operating system's.
    pub fn open(folder: &Path) -> anyhow::Result<Runs> {
        let named = || format!("folder {}", folder.display());
        check_name(folder)?;
        fs::create_dir_all(folder).with_context(named)?;
        let take = |file: &File| match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => {
                Err(anyhow::anyhow!("{}: another `fadelink run` uses it; end that, or choose another folder", named()))
            }
            taken => Ok(taken.map_err(io::Error::from)),
        };
        let itself = File::open(folder).with_context(named)?;
        // A network file system may lock files alone.
        let _ = take(&itself)?;
        // What a link leads to is not this program's.
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = |more| open(folder.join(LOCK), flags | more, Mode::from_raw_mode(0o666)).map_err(io::Error::from);
        let (lock, is_new) = match open(OFlags::CREATE | OFlags::EXCL) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => (open(OFlags::empty()), false),
            lock => (lock, true),
        };
        let lock = File::from(lock.with_context(|| format!("{}: {LOCK}", named()))?);
        anyhow::ensure!(
            durable::is_alone(&lock.metadata().with_context(named)?),
            "{}: {LOCK}: expected a file of its own, with no other name; remove it",
            named()
        );
        take(&lock)?.with_context(named)?;
        // Absolute, as messages and manifests name it.
        let folder = folder.canonicalize().with_context(named)?;
        check_name(&folder)?;
        let runs = Runs { folder, lock, _folder: itself };
        if is_new {
            // On a full disk this is told when a run begins.
            let _ = runs.note(0);
        }
        runs.tidy().with_context(named)?;
        Ok(runs)
    }

    /// Removes what is left of a program that was killed before it had put anything into the folder of its run, and tells that it is
    /// not known which numbers were given.
    fn tidy(&self) -> io::Result<()> {
        let last = self.last();
        if let Err(text) = &last {
            tracing::warn!(
                "folder {}: {LOCK}: `{}`: expected the number of the last run; numbers go on behind those of the runs that are here",
                self.folder.display(),
                text.escape_default()
            );
        }
        let mut all = self.named()?;
        let newest = all.pop();
        let before = all.last().map_or(0, |run| run.number).max(last.unwrap_or(0));
        // Of one that is not empty the removal fails.
        if let Some(run) = newest.filter(|run| run.number == before + 1 && fs::remove_dir(&run.path).is_ok()) {
            tracing::info!("folder {}: it was empty, and was removed", run.path.display());
        }
        Ok(())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// The folders of all runs, by their numbers. What a link leads to is not this program's.
    ///
    /// # Errors
    /// The operating system's.
    pub fn all(&self) -> anyhow::Result<Vec<RunFolder>> {
        let all = self.named().with_context(|| format!("folder {}", self.folder.display()))?;
        let is_link = |folder: &RunFolder| folder.path.symlink_metadata().is_ok_and(|found| found.is_symlink());
        Ok(all.into_iter().filter(|folder| !is_link(folder)).collect())
    }

    /// Whether the folder is still this program's: another one may take it when the lock is not there.
    fn check_lock(&self) -> io::Result<()> {
        let own = self.lock.metadata()?;
        match identity(&self.folder.join(LOCK)) {
            Ok(found) if found == (own.dev(), own.ino()) => Ok(()),
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Err(io::Error::other(format!(
                "{LOCK} was removed or replaced, so another `fadelink run` may use the folder: end this one, and start it again"
            ))),
        }
    }

    /// All that has the name of a run. Nobody looks for runs, or makes one, without the lock.
    fn named(&self) -> io::Result<Vec<RunFolder>> {
        self.check_lock()?;
        let mut all = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            if let Some(number) = number_of(&path) {
                all.push(RunFolder::at(path, number));
            }
        }
        all.sort_by_key(|folder| folder.number);
        Ok(all)
    }

    /// The number of the last run that has begun; 0: none has.
    ///
    /// # Errors
    /// What is there instead.
    fn last(&self) -> Result<u64, String> {
        let mut text = [0; 32];
        let read = self.lock.read_at(&mut text, 0).unwrap_or(0);
        let text = String::from_utf8_lossy(&text[..read]);
        let text = text.trim_end();
        text.parse().ok().filter(|number| *number <= LAST).ok_or_else(|| text.to_owned())
    }

    /// The number of the last run that has begun is this one.
    fn note(&self, number: u64) -> io::Result<()> {
        let text = format!("{number:012}\n");
        self.lock.write_all_at(text.as_bytes(), 0)?;
        self.lock.set_len(text.len() as u64)
    }

    /// This run has begun.
    ///
    /// # Errors
    /// The operating system's.
    pub fn has_begun(&self, run: &RunFolder) -> anyhow::Result<()> {
        self.note(run.number).with_context(|| format!("folder {}: {LOCK}", self.folder.display()))
    }

    /// This run has not begun after all, and its folder is not there: its number is that of the next one.
    ///
    /// # Errors
    /// The operating system's.
    pub fn give_back(&self, run: &RunFolder) -> io::Result<()> {
        match self.last() == Ok(run.number) {
            true => self.note(run.number - 1),
            false => Ok(()),
        }
    }

    /// Makes the folder of the next run.
    ///
    /// # Errors
    /// The operating system's.
    pub fn next(&self) -> anyhow::Result<RunFolder> {
        let all = self.named().with_context(|| format!("folder {}", self.folder.display()))?;
        let last = all.last().map_or(0, |last| last.number).max(self.last().unwrap_or(0));
        let number = Some(last + 1).filter(|number| *number <= LAST).with_context(|| {
            format!("folder {}: {} has the last number: move it away", self.folder.display(), name_of(last))
        })?;
        let path = self.folder.join(name_of(number));
        fs::create_dir(&path).with_context(|| format!("folder {}", path.display()))?;
        let run = RunFolder::at(path, number);
        run.check().inspect_err(|_| _ = fs::remove_dir(&run.path))?;
        Ok(run)
    }
}

/// Free space where `path` is, in bytes, for this user.
///
/// # Errors
/// The operating system's.
pub fn free_space(path: &Path) -> anyhow::Result<u64> {
    let status = rustix::fs::statvfs(path).with_context(|| format!("folder {}: its free space", path.display()))?;
    Ok(status.f_bavail * status.f_frsize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_not_begin_is_removed_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let runs = Runs::open(folder.path()).unwrap();
        let run = runs.next().unwrap();
        run.begins().unwrap();
        fs::write(run.path.join("manifest.json.part"), "half").unwrap();
        fs::write(run.path.join(EXPERIMENT), "").unwrap();
        run.abandon().unwrap();
        assert!(!run.path.exists());
        let run = runs.next().unwrap();
        run.begins().unwrap();
        assert_eq!(run.gone_on(), Duration::ZERO);
        run.goes_on(Duration::from_millis(90_500)).unwrap();
        assert_eq!(run.gone_on(), Duration::from_secs(90));
        fs::write(run.path.join("left.transmissions"), "[]").unwrap();
        run.abandon().unwrap();
        let run = runs.next().unwrap();
        run.begins().unwrap();
        fs::write(run.path.join("left.dat"), "data").unwrap();
        assert!(run.abandon().unwrap_err().to_string().contains("left.dat"));
        assert_eq!(fs::read_dir(&run.path).unwrap().count(), 2);
    }

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
        for other in
            ["run_18446744073709551615", "run_99999999999999999999", "run_1000000000000", "run_99", "run_0000099"]
        {
            fs::create_dir(path.join(other)).unwrap();
        }
        assert_eq!(runs.next().unwrap().number, 43, "folders of no run");
        let moved = runs.all().unwrap().pop().unwrap();
        runs.has_begun(&moved).unwrap();
        fs::remove_dir(moved.path).unwrap();
        assert_eq!(runs.next().unwrap().number, 44, "that of a run that was moved away is not given again");
        let again = runs.all().unwrap().pop().unwrap();
        runs.has_begun(&again).unwrap();
        fs::remove_dir(&again.path).unwrap();
        runs.give_back(&again).unwrap();
        runs.give_back(&again).unwrap();
        assert_eq!(runs.next().unwrap().number, again.number, "once");
        let last = path.join("run_999999999999");
        fs::create_dir(&last).unwrap();
        let error = runs.next().err().unwrap().to_string();
        assert!(error.contains("run_999999999999 has the last number: move it away"), "{error}");
        fs::remove_dir(last).unwrap();
        let error = Runs::open(&path).err().unwrap().to_string();
        assert!(error.contains("another `fadelink run` uses it"), "{error}");
        drop(runs);
        assert!(Runs::open(&path).is_ok());
        assert!(free_space(&path).unwrap() > 0);
        let runs = Runs::open(&path).unwrap();
        for replaced in [false, true] {
            fs::remove_file(path.join(LOCK)).unwrap();
            let _other = replaced.then(|| fs::write(path.join(LOCK), "").unwrap());
            let error = format!("{:#}", runs.next().err().unwrap());
            assert!(error.contains("lock was removed or replaced") && runs.all().is_err(), "{error}");
            fs::write(path.join(LOCK), "").unwrap();
        }
    }
}

//! What is there before a sink opens it: standard output and standard error of this program, and pipes.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::fs::{fcntl_getfl, fcntl_setfl, fstat, OFlags};
use rustix::io::Errno;

/// How often is looked for a reader of a pipe.
const LOOK: Duration = Duration::from_millis(50);

/// True of what has a content of its own, unlike a terminal or `/dev/null`.
fn has_content(found: &Metadata) -> bool {
    let kind = found.file_type();
    kind.is_file() || kind.is_fifo() || kind.is_socket()
}

fn is_same(found: &Metadata, stream: BorrowedFd<'_>) -> bool {
    fstat(stream).is_ok_and(|stream| (stream.st_dev, stream.st_ino) == (found.dev(), found.ino()))
}

/// True if what is written to this path comes to standard output.
pub fn is_standard_output(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| has_content(&found) && is_same(&found, io::stdout().as_fd()))
}

/// Refuses the files of a sink where one of them is standard output or standard error: a report or a message would be written over
/// its data. A pipe that is one of them is a place for data, if its user wants that.
///
/// # Errors
/// Which file it is.
pub(crate) fn check<'a>(paths: impl IntoIterator<Item = &'a Path>) -> io::Result<()> {
    let (out, err) = (io::stdout(), io::stderr());
    check_against(paths, out.as_fd(), err.as_fd())
}

fn check_against<'a>(
    paths: impl IntoIterator<Item = &'a Path>,
    out: BorrowedFd<'_>,
    err: BorrowedFd<'_>,
) -> io::Result<()> {
    for path in paths {
        let Some(found) = fs::metadata(path).ok().filter(Metadata::is_file) else { continue };
        let name = if is_same(&found, out) {
            "standard output"
        } else if is_same(&found, err) {
            "standard error"
        } else {
            continue;
        };
        let what = format!("the file {} is {name} of this program, too; choose another name", path.display());
        return Err(io::Error::other(what));
    }
    Ok(())
}

/// Refuses standard output as a place for data where standard error is the same file or pipe.
///
/// # Errors
/// That it is.
pub(crate) fn check_output() -> io::Result<()> {
    apart(io::stdout().as_fd(), io::stderr().as_fd())
}

fn apart(out: BorrowedFd<'_>, err: BorrowedFd<'_>) -> io::Result<()> {
    let found = File::from(out.try_clone_to_owned()?).metadata()?;
    if has_content(&found) && is_same(&found, err) {
        return Err(io::Error::other(
            "standard error is the same file or pipe, and messages would be among the data; redirect it elsewhere",
        ));
    }
    Ok(())
}

/// Opens a file for writing. The operating system would wait for a reader of a pipe, whatever the user asks for meanwhile; here that is
/// an error ([`ErrorKind::WouldBlock`]).
pub(crate) fn open(options: &mut OpenOptions, flags: OFlags, path: &Path) -> io::Result<File> {
    match options.custom_flags((flags | OFlags::NONBLOCK).bits() as i32).open(path) {
        Ok(file) => {
            fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
            Ok(file)
        }
        Err(error)
            if error.raw_os_error() == Some(Errno::NXIO.raw_os_error())
                && fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo()) =>
        {
            let what = format!("no reader of the pipe {} came before the end was asked for", path.display());
            Err(io::Error::new(ErrorKind::WouldBlock, what))
        }
        Err(error) => Err(error),
    }
}

/// What `make` opens, as soon as pipes among it have a reader, or the end was asked for.
pub(crate) fn when_read<T>(stopping: &AtomicBool, mut make: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match make() {
            Err(error) if error.kind() == ErrorKind::WouldBlock && !stopping.load(Ordering::Relaxed) => {
                std::thread::sleep(LOOK);
            }
            made => return made,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_file_of_a_sink_is_none_of_the_program() {
        let folder = tempfile::tempdir().unwrap();
        let name = |name: &str| folder.path().join(name);
        let [out, err] = ["out", "err"].map(|stream| File::create(name(stream)).unwrap());
        File::create(name("a")).unwrap();
        fs::hard_link(name("err"), name("link")).unwrap();
        let text = |path: &str| {
            check_against([&*name("a"), &*name(path)], out.as_fd(), err.as_fd()).map_err(|error| error.to_string())
        };
        assert_eq!((text("a"), text("missing")), (Ok(()), Ok(())));
        assert!(text("out").unwrap_err().contains("out is standard output of this program"));
        assert!(text("link").unwrap_err().contains("link is standard error of this program"));
        let null = File::create("/dev/null").unwrap();
        assert!(check_against(["/dev/null".as_ref()], null.as_fd(), null.as_fd()).is_ok(), "it has no content");
        assert!(apart(out.as_fd(), out.as_fd()).is_err() && apart(out.as_fd(), err.as_fd()).is_ok());
        let (_, pipe) = io::pipe().unwrap();
        assert!(apart(pipe.as_fd(), pipe.as_fd()).is_err() && apart(null.as_fd(), null.as_fd()).is_ok());
    }

    #[test]
    fn a_pipe_is_waited_for_until_the_end_is_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
        let stopping = Arc::<AtomicBool>::default();
        let wait = |stopping: &Arc<AtomicBool>| {
            let (stopping, pipe) = (Arc::clone(stopping), pipe.clone());
            std::thread::spawn(move || {
                when_read(&stopping, || open(OpenOptions::new().append(true), OFlags::empty(), &pipe))
            })
        };
        let waiting = wait(&stopping);
        std::thread::sleep(3 * LOOK);
        assert!(!waiting.is_finished());
        let reader = File::open(&pipe).unwrap();
        let file = waiting.join().unwrap().unwrap();
        assert!(!fcntl_getfl(&file).unwrap().contains(OFlags::NONBLOCK), "writing waits for the reader");
        drop((reader, file));
        let waiting = wait(&stopping);
        stopping.store(true, Ordering::Relaxed);
        assert!(waiting.join().unwrap().unwrap_err().to_string().contains("no reader of the pipe"));
    }
}

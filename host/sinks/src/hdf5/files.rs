//! HDF5 files. They roll over, because a crash can leave an open file unreadable. The name of an open file ends in
//! `.part`; it gets its final name when it is closed and on the disk. Attributes of all: `complete` (1: all data of
//! this file is there), `part` (its number, from 0), `last` (1: no file follows).

use std::io;
use std::path::PathBuf;
use std::thread::JoinHandle;

use blake3::{Hash, Hasher};
use bytemuck::NoUninit;
use hdf5_metno::{Dataset, File, H5Type};

use super::columns::Columns;
use super::library::{append, failed, set};
use crate::made::Made;
use crate::output::Output;
use crate::parts::{FileOptions, Parts};

/// The file that is written, and those that follow.
pub struct Files {
    parts: Parts,
    /// The first one, until there is something to be written.
    claimed: Option<Output>,
    open: Option<Open>,
    /// One could not be finished: no other is opened.
    is_broken: bool,
    /// The file before, whose content is read again.
    settling: Option<Settling>,
}

/// A file that is finished, and read again aside: the library writes it in no order, so that only this tells its content.
struct Settling {
    path: PathBuf,
    thread: JoinHandle<io::Result<Hash>>,
}

impl Settling {
    fn begin(made: Made, path: PathBuf, columns: Columns) -> io::Result<Settling> {
        let read = move || {
            let mut hasher = Hasher::new();
            hasher.update_reader(made.open()?)?;
            // What is changed later is found by the hash.
            columns.check(&made)?;
            Ok(hasher.finalize())
        };
        Ok(Settling { path, thread: std::thread::Builder::new().name("hdf5".into()).spawn(read)? })
    }
}

/// One file. The library locks none: it is ours already.
struct Open {
    file: File,
    output: Output,
    /// Its length behind what the library did last.
    bytes: u64,
    /// What was appended, to be found again.
    columns: Columns,
}

impl Files {
    /// Those of the sink whose first file is `path`.
    ///
    /// # Errors
    /// The library's; a second file is there of an earlier run.
    pub fn create(path: &str, options: FileOptions) -> io::Result<Files> {
        let mut parts = Parts::new(path, options);
        let claimed = Some(parts.create_unfinished(&parts.path())?);
        Ok(Files { parts, claimed, open: None, is_broken: false, settling: None })
    }

    /// Number of the file.
    pub fn number(&self) -> u32 {
        self.parts.number()
    }

    /// The files, to be looked at.
    pub fn parts(&self) -> &Parts {
        &self.parts
    }

    fn begin(&mut self) -> io::Result<Open> {
        let mut output = match self.claimed.take() {
            Some(claimed) => claimed,
            None => self.parts.create_unfinished(&self.parts.path())?,
        };
        self.parts.begin(&mut output)?;
        let path = output.path().ok_or(io::ErrorKind::InvalidInput)?;
        let file = File::with_options().with_fapl(|access| access.file_locking(false)).create(path).map_err(failed)?;
        set(&file, "complete", &0u8)?;
        set(&file, "part", &self.parts.number())?;
        set(&file, "last", &0u8)?;
        let bytes = output.file().metadata()?.len();
        Ok(Open { file, output, bytes, columns: Columns::default() })
    }

    /// Changes the file; the next one is made if there is none. The library writes at any place, so that the length of the file
    /// shows what others do to it only from one change to the next.
    ///
    /// # Errors
    /// The library's, or that of `change`; somebody else has changed the file.
    pub fn change<T, E: From<io::Error>>(&mut self, change: impl FnOnce(&File) -> Result<T, E>) -> Result<T, E> {
        if self.is_broken {
            return Err(io::Error::other("the file before could not be finished").into());
        }
        let Open { file, output, bytes, .. } = match self.open.take() {
            Some(open) => self.open.insert(open),
            None => {
                let open = self.begin()?;
                self.open.insert(open)
            }
        };
        self.parts.compare(output, *bytes)?;
        let result = change(file);
        *bytes = output.file().metadata().map_err(E::from)?.len();
        result
    }

    /// Writes rows at the end of a dataset of the file, which are compared with what is there when it is finished. `find` gives the
    /// dataset: to let go of it may write, too.
    ///
    /// # Errors
    /// As [`Self::change`].
    pub fn append<T: H5Type + NoUninit>(
        &mut self,
        find: impl FnOnce() -> io::Result<Dataset>,
        rows: &[T],
    ) -> io::Result<()> {
        let name = self.change(|_| {
            let dataset = find()?;
            append(&dataset, rows)?;
            io::Result::Ok(dataset.name())
        })?;
        if let Some(open) = &mut self.open {
            open.columns.add(name, rows);
        }
        Ok(())
    }

    /// Waits until the content of the file before is known.
    fn settle(&mut self) -> io::Result<()> {
        let Some(Settling { path, thread }) = self.settling.take() else { return Ok(()) };
        let read = thread.join().map_err(|_| io::Error::other("the thread that reads it panicked"));
        let named = |error| io::Error::other(format!("the file {}: {error}", path.display()));
        let hash = read.and_then(|read| read).map_err(named)?;
        if let Some(made) = self.parts.find(&path) {
            made.know(hash);
        }
        Ok(())
    }

    /// True if the file is large or old enough, and has so many bytes of data.
    pub fn is_due(&self, bytes: u64) -> bool {
        self.parts.is_due(bytes)
    }

    /// Closes the file, with all its data on the disk before it says so, and gives it its name. `objects`: what is open of it, and
    /// may have data to be written when it is let go of. `last`: whether no file follows.
    ///
    /// # Errors
    /// The library's, or the operating system's; the file keeps its name of one that is not finished.
    pub fn close<T>(&mut self, objects: T, complete: bool, last: bool) -> io::Result<()> {
        if self.open.is_none() {
            return Ok(());
        }
        let flushed = self.change(|file| {
            drop(objects);
            file.flush().map_err(failed)
        });
        self.is_broken = true;
        flushed?;
        let Some(Open { file, output, columns, .. }) = self.open.take() else { return Ok(()) };
        output.file().sync_all()?;
        let mark = |name: &str, value: bool| file.attr(name)?.write_scalar(&u8::from(value));
        mark("last", last).and_then(|()| mark("complete", complete)).map_err(failed)?;
        file.flush().map_err(failed)?;
        let bytes = file.size();
        file.close().map_err(failed)?;
        self.parts.finish(&output, bytes)?;
        self.settle()?;
        let path = self.parts.path();
        if let Some(made) = self.parts.find(&path) {
            self.settling = Some(Settling::begin(made.clone(), path, columns)?);
        }
        self.parts.advance();
        self.is_broken = false;
        if last {
            self.settle()?;
        }
        Ok(())
    }
}

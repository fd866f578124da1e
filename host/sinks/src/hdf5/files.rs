//! HDF5 files. They roll over, because a crash can leave an open file unreadable. The name of an open file ends in
//! `.part`; it gets its final name when it is closed and on the disk. Attributes of all: `complete` (1: all data of
//! this file is there), `part` (its number, from 0), `last` (1: no file follows).

use std::io;
use std::path::PathBuf;

use hdf5_metno::types::VarLenUnicode;
use hdf5_metno::{Dataset, File, Group, H5Type};

use crate::durable;
use crate::parts::{FileOptions, Parts};

/// The file that is written, and those that follow.
pub struct Files {
    parts: Parts,
    file: Option<File>,
    /// One could not be finished: no other is opened.
    is_broken: bool,
}

/// Sets an attribute of text.
///
/// # Errors
/// The library's.
pub fn set_text(file: &File, name: &str, value: &str) -> io::Result<()> {
    set(file, name, &value.parse::<VarLenUnicode>().unwrap_or_default())
}

/// Sets an attribute of a number.
///
/// # Errors
/// The library's.
pub fn set<T: H5Type>(file: &File, name: &str, value: &T) -> io::Result<()> {
    let attribute = file.new_attr::<T>().create(name);
    attribute.and_then(|attribute| attribute.write_scalar(value)).map_err(failed)
}

/// A dataset of one dimension that grows, in chunks of so many rows.
///
/// # Errors
/// The library's.
pub fn column<T: H5Type>(group: &Group, name: &str, chunk: usize) -> io::Result<Dataset> {
    group.new_dataset::<T>().chunk(chunk).shape(0..).create(name).map_err(failed)
}

/// Writes rows at the end of a dataset.
///
/// # Errors
/// The library's.
pub fn append<T: H5Type>(dataset: &Dataset, rows: &[T]) -> io::Result<()> {
    let begin = dataset.size();
    let end = begin + rows.len();
    dataset.resize(end).and_then(|()| dataset.write_slice(rows, begin..end)).map_err(failed)
}

/// An error of the library; one of the operating system is that, and not the page of text around it.
pub fn failed(error: hdf5_metno::Error) -> io::Error {
    let text = error.to_string();
    let number = text.split_once("errno = ").and_then(|(_, rest)| rest.split(',').next()?.trim().parse().ok());
    match number {
        Some(number) => io::Error::from_raw_os_error(number),
        None => io::Error::other(text.split_whitespace().collect::<Vec<_>>().join(" ")),
    }
}

impl Files {
    /// Those of the sink whose first file is `path`; what is there of this name is replaced when the first is finished.
    ///
    /// # Errors
    /// The library's; a second file is there of an earlier run.
    pub fn create(path: &str, options: FileOptions) -> io::Result<Files> {
        let mut files = Files { parts: Parts::new(path, options)?, file: None, is_broken: false };
        files.open()?;
        Ok(files)
    }

    /// Number of the file.
    pub fn number(&self) -> u32 {
        self.parts.number()
    }

    fn unfinished(&self) -> PathBuf {
        durable::unfinished(&self.parts.path())
    }

    /// The file; the next is opened if there is none.
    ///
    /// # Errors
    /// The library's.
    pub fn open(&mut self) -> io::Result<&File> {
        if self.is_broken {
            return Err(io::Error::other("the file before could not be finished"));
        }
        if self.file.is_none() {
            let file = File::create(self.unfinished()).map_err(failed)?;
            set(&file, "complete", &0u8)?;
            set(&file, "part", &self.parts.number())?;
            set(&file, "last", &0u8)?;
            self.file = Some(file);
        }
        self.file.as_ref().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// True if the file is large or old enough, and has so many bytes of data.
    pub fn is_due(&self, bytes: u64) -> bool {
        self.parts.is_due(bytes)
    }

    /// Closes the file, with all its data on the disk before it says so, and gives it its name. The caller has let go of
    /// its datasets. `last`: whether no file follows.
    ///
    /// # Errors
    /// The library's, or the operating system's; the file keeps its name of one that is not finished.
    pub fn close(&mut self, complete: bool, last: bool) -> io::Result<()> {
        let Some(file) = self.file.take() else { return Ok(()) };
        self.is_broken = true;
        let mark = |name: &str, value: bool| file.attr(name)?.write_scalar(&u8::from(value));
        file.flush().map_err(failed)?;
        std::fs::File::open(self.unfinished())?.sync_all()?;
        mark("last", last).and_then(|()| mark("complete", complete)).map_err(failed)?;
        file.close().map_err(failed)?;
        durable::finish(&self.parts.path())?;
        self.parts.advance();
        self.is_broken = false;
        Ok(())
    }
}

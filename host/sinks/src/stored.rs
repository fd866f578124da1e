//! What sinks have of a board's words, to be read again.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::durable;
use crate::output::{self, DESCRIPTION};
use crate::parts::{FileOptions, Parts};
use crate::sink::Result;

/// Bytes that are read at a time.
const PIECE: usize = 1 << 20;

/// The description of a file of words.
pub fn description(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(DESCRIPTION);
    name.into()
}

/// What a sink has of a board's words.
pub trait Stored: Send {
    /// Bytes of it.
    ///
    /// # Errors
    /// It cannot be found out.
    fn end(&self) -> Result<u64>;

    /// Gives those from byte `from` to byte `to`, which are there, to `take`, until it gives false.
    ///
    /// # Errors
    /// They cannot be read.
    fn each(&self, from: u64, to: u64, take: &mut dyn FnMut(&[u8]) -> bool) -> Result;

    /// Removes those behind byte `end`, for ever, or leaves it to the sink that goes on there.
    ///
    /// # Errors
    /// They cannot be removed.
    fn cut(&self, end: u64) -> Result;

    /// What has byte `byte`, or would have it.
    fn place(&self, byte: u64) -> String;
}

/// Files that have a board's words one after the other.
pub struct Files {
    first: PathBuf,
    options: FileOptions,
}

/// One of them: its first byte, and the byte behind its last.
struct Extent {
    file: PathBuf,
    first: u64,
    end: u64,
}

impl Files {
    /// Those of a sink whose first file is `first`.
    pub fn new(first: impl Into<PathBuf>, options: FileOptions) -> Files {
        Files { first: first.into(), options }
    }

    fn places(&self) -> io::Result<Vec<Extent>> {
        let (mut places, mut first) = (Vec::new(), 0);
        for file in Parts::found(&self.first, self.options) {
            let found = fs::metadata(&file)?;
            if !found.is_file() {
                return Err(io::Error::other(format!("{}: expected a file", file.display())));
            }
            let end = first + found.len();
            places.push(Extent { file, first, end });
            first = end;
        }
        Ok(places)
    }

    /// Number and first byte of the file that goes on behind byte `end`; `None`: there is none.
    pub(crate) fn last(&self, end: u64) -> io::Result<Option<(u32, u64)>> {
        let places = self.places()?.into_iter().zip(0..);
        let last = places.filter(|(place, number)| place.first < end || *number == 0).last();
        Ok(last.map(|(place, number)| (number, place.first)))
    }
}

fn missing_is_none(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

impl Stored for Files {
    fn end(&self) -> Result<u64> {
        Ok(self.places()?.last().map_or(0, |place| place.end))
    }

    fn each(&self, from: u64, to: u64, take: &mut dyn FnMut(&[u8]) -> bool) -> Result {
        let mut piece = vec![0; PIECE];
        for Extent { file, first, end } in self.places()? {
            let part = first.max(from)..end.min(to);
            if part.is_empty() {
                continue;
            }
            let mut open = File::open(&file)?;
            open.seek(SeekFrom::Start(part.start - first))?;
            let mut left = open.take(part.end - part.start);
            loop {
                match left.read(&mut piece)? {
                    0 => break,
                    got if !take(&piece[..got]) => return Ok(()),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    fn cut(&self, end: u64) -> Result {
        for Extent { file, first, end: last } in self.places()? {
            let is_behind = first >= end && first > 0;
            if !is_behind && last <= end {
                continue;
            }
            if !is_behind {
                durable::separate(&file)?;
            }
            let open = OpenOptions::new().write(true).open(&file)?;
            output::lock(&open, &file)?;
            if is_behind {
                missing_is_none(fs::remove_file(description(&file)))?;
                fs::remove_file(file)?;
            } else {
                open.set_len(end - first)?;
                open.sync_all()?;
            }
        }
        Ok(())
    }

    fn place(&self, byte: u64) -> String {
        let places = self.places().unwrap_or_default();
        let has = |place: &&Extent| place.first <= byte && byte < place.end;
        let file = places.iter().find(has).or(places.last()).map_or(&*self.first, |place| Path::new(&place.file));
        file.display().to_string()
    }
}

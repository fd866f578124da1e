//! A plain file of words in the byte order of this computer. Options: direct I/O past the page cache, and reserved
//! disk space. The manifest `PATH.json` describes the words, and says whether all of them are there and on the
//! disk.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use rustix::fs::{fallocate, FallocateFlags, OFlags};
use rustix::io::Errno;
use serde_json::json;

use crate::block::Block;
use crate::durable;
use crate::origin::{Origin, Sender};
use crate::output::Output;
use crate::parts::{FileOptions, Parts};
use crate::pipe::Pipe;
use crate::sink::{End, Result, Sink, Stopping};
use crate::stored::{description, Files, Stored};

/// What direct I/O wants its addresses, lengths and places to be multiples of.
const ALIGNMENT: usize = 4096;

/// Options of plain files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PlainFile {
    /// Write past the page cache.
    pub direct: bool,
    /// Bytes of disk space to reserve at a time; 0: none.
    pub preallocate: u64,
    /// Options of all sinks that write files.
    pub files: FileOptions,
}

/// The files.
pub struct FileSink {
    parts: Parts,
    options: PlainFile,
    file: Writer,
    origin: Origin,
    /// Bytes of the files before this one.
    before: u64,
    /// What is behind this byte of all files was there before, and is cut off when other data comes.
    cut: Option<u64>,
}

/// One file.
struct Writer {
    output: Output,
    /// Where that is not a file of a disk.
    pipe: Option<Pipe>,
    direct: bool,
    preallocate: u64,
    reserved: u64,
    written: u64,
    /// Bytes that a sync has brought to the disk.
    synced: u64,
    /// A sync has failed.
    is_broken: bool,
    /// A write has failed: what it has written of its data is behind `written`.
    has_failed: bool,
    /// Path of the manifest; `None` if this is not a file on a disk.
    manifest: Option<PathBuf>,
    /// The end of the data, shorter than [`ALIGNMENT`].
    rest: Vec<u8>,
}

/// Memory that starts at a multiple of [`ALIGNMENT`].
#[repr(C, align(4096))]
#[derive(Clone, Copy)]
struct Page([u8; ALIGNMENT]);

impl Writer {
    fn create(parts: &mut Parts, options: PlainFile) -> io::Result<Writer> {
        let flags = if options.direct { OFlags::DIRECT } else { OFlags::empty() };
        let output = parts.create(flags).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidInput if options.direct => {
                io::Error::other("this file system has no direct I/O; leave out direct")
            }
            _ => error,
        })?;
        if output.path().is_none() && options.files.rolls() {
            return Err(io::Error::other("this is not a file on a disk: leave out roll and every"));
        }
        Ok(Writer::of(output, options, 0))
    }

    /// Behind what is `written`.
    fn of(output: Output, PlainFile { direct, preallocate, .. }: PlainFile, written: u64) -> Writer {
        Writer {
            manifest: output.path().map(description),
            output,
            pipe: None,
            direct,
            preallocate,
            reserved: written,
            written,
            synced: written,
            is_broken: false,
            has_failed: false,
            rest: Vec::new(),
        }
    }

    fn reserve(&mut self, end: u64) -> io::Result<()> {
        while self.preallocate > 0 && self.reserved < end {
            match fallocate(self.output.file(), FallocateFlags::KEEP_SIZE, self.reserved, self.preallocate) {
                Ok(()) => self.reserved += self.preallocate,
                // The file system has no such thing: the file grows as it is written.
                Err(Errno::OPNOTSUPP) => self.preallocate = 0,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn write(&mut self, data: &[u8]) -> io::Result<()> {
        self.reserve(self.written + data.len() as u64)?;
        let result = match &self.pipe {
            Some(pipe) => pipe.write_all(data),
            None if self.direct => self.write_direct(data),
            None => self.output.file().write_all(data),
        };
        match result {
            Ok(()) => self.written += data.len() as u64,
            Err(_) => self.has_failed = true,
        }
        result
    }

    /// Writes whole pages by direct I/O; what is left waits for more.
    fn write_direct(&mut self, mut data: &[u8]) -> io::Result<()> {
        if !self.rest.is_empty() {
            // The ring's blocks are whole packets but for the last one, so this is rare.
            let take = data.len().min(ALIGNMENT - self.rest.len());
            self.rest.extend_from_slice(&data[..take]);
            data = &data[take..];
            if self.rest.len() < ALIGNMENT {
                return Ok(());
            }
            let rest = std::mem::take(&mut self.rest);
            self.write_copied(&rest)?;
        }
        let whole = data.len() / ALIGNMENT * ALIGNMENT;
        if data.as_ptr().align_offset(ALIGNMENT) == 0 {
            self.output.file().write_all(&data[..whole])?;
        } else {
            self.write_copied(&data[..whole])?;
        }
        self.rest.extend_from_slice(&data[whole..]);
        Ok(())
    }

    /// As direct I/O wants it: from aligned memory, a whole number of pages.
    fn write_copied(&mut self, data: &[u8]) -> io::Result<()> {
        let mut pages = vec![Page([0; ALIGNMENT]); data.len().div_ceil(ALIGNMENT)];
        for (page, part) in pages.iter_mut().zip(data.chunks(ALIGNMENT)) {
            page.0[..part.len()].copy_from_slice(part);
        }
        // SAFETY: pages are plain bytes, one after another.
        let bytes = unsafe { std::slice::from_raw_parts(pages.as_ptr().cast(), pages.len() * ALIGNMENT) };
        self.output.file().write_all(bytes)
    }

    /// Makes the file as long as its data, and waits until it is on the disk.
    fn finish(&mut self, parts: &mut Parts) -> io::Result<()> {
        let mut length = self.whole();
        if !self.rest.is_empty() {
            let rest = std::mem::take(&mut self.rest);
            self.write_copied(&rest)?;
            length += ALIGNMENT as u64;
        }
        if self.manifest.is_some() {
            if !self.has_failed {
                parts.compare(&self.output, length)?;
            }
            // Filler of the last page, what was reserved too much, and the begin of a block that did not fit.
            self.output.file().set_len(self.written)?;
            if self.preallocate > 0 {
                // A length that does not change gives nothing back by itself.
                let excess = self.reserved.saturating_sub(self.written).max(1);
                let flags = FallocateFlags::KEEP_SIZE | FallocateFlags::PUNCH_HOLE;
                let _ = fallocate(self.output.file(), flags, self.written, excess);
            }
        }
        self.sync()?;
        parts.finish(&self.output, self.written)
    }

    /// Waits until what was written is on the disk.
    fn sync(&mut self) -> io::Result<()> {
        let synced = durable::sync(self.output.file());
        match synced {
            Ok(()) => self.synced = self.whole(),
            // The kernel may have dropped what it could not write: a later success would prove nothing of it.
            Err(_) => self.is_broken = true,
        }
        synced
    }

    /// Bytes that were written.
    fn whole(&self) -> u64 {
        self.written - self.rest.len() as u64
    }

    /// Bytes that can be read again.
    fn intact(&self) -> u64 {
        if self.is_broken {
            self.synced
        } else {
            self.whole()
        }
    }
}

impl FileSink {
    /// Opens the first file. It is emptied, and described, when data comes.
    ///
    /// # Errors
    /// The operating system's; a file system without direct I/O is named.
    pub fn create(path: impl AsRef<Path>, options: PlainFile, board: Sender) -> io::Result<FileSink> {
        let mut parts = Parts::new(path.as_ref(), options.files);
        let file = Writer::create(&mut parts, options)?;
        if let Some(described) = file.manifest.as_ref().filter(|path| !options.files.overwrite && path.exists()) {
            let (file, described) = (path.as_ref().display(), described.display());
            let text =
                format!("the file {described} exists, and would describe {file}; move it away, or choose another name");
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
        }
        Ok(FileSink { parts, options, file, origin: Origin::of(board), before: 0, cut: None })
    }

    /// From when the flag is set the reader of a pipe is waited for some seconds alone.
    ///
    /// # Errors
    /// The operating system's.
    pub fn until(mut self, stopping: &Stopping) -> io::Result<FileSink> {
        self.file.pipe = Pipe::of(self.file.output.file(), stopping)?;
        Ok(self)
    }

    /// Data comes, or the end: the file is of this source from now on, and is described.
    fn begin(&mut self) -> io::Result<()> {
        let has_begun = self.file.output.has_begun();
        self.parts.begin(&mut self.file.output)?;
        if has_begun {
            return Ok(());
        }
        self.state(None, false)
    }

    /// Goes on with the files of a program that was ended by force: behind byte `end`, which is certain. What is behind it
    /// is kept until other data comes: it was confirmed if none does.
    ///
    /// # Errors
    /// The operating system's.
    pub fn resume(path: impl AsRef<Path>, options: PlainFile, board: Sender, end: u64) -> io::Result<FileSink> {
        let Some((number, before)) = Files::new(path.as_ref(), options.files).last(end)? else {
            return FileSink::create(path, options, board);
        };
        let mut parts = Parts::numbered(path.as_ref(), options.files, 0);
        for _ in 0..number {
            let output = parts.resume()?;
            let bytes = output.file().metadata()?.len();
            parts.finish(&output, bytes)?;
            let described = description(&parts.path());
            if described.exists() {
                parts.adopt(&described)?;
            }
            parts.advance();
        }
        let output = parts.resume()?;
        let described = description(&parts.path());
        if described.exists() {
            parts.adopt(&described)?;
        }
        let file = Writer::of(output, options, end - before);
        let mut sink = FileSink { parts, options, file, origin: Origin::of(board), before, cut: Some(end) };
        sink.state(None, false)?;
        Ok(sink)
    }

    /// Writes to standard output.
    ///
    /// # Errors
    /// It is closed.
    pub fn stdout(board: Sender) -> io::Result<FileSink> {
        let file = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        let options = PlainFile::default();
        let parts = Parts::numbered("-", options.files, 0);
        let file = Writer::of(Output::stream(file), options, 0);
        Ok(FileSink { parts, options, file, origin: Origin::of(board), before: 0, cut: None })
    }

    /// Writes the manifest. `end`: of the whole, if it is known. `complete`: all that belongs into this file is there.
    fn state(&mut self, end: Option<End>, complete: bool) -> io::Result<()> {
        let Some(path) = &self.file.manifest else { return Ok(()) };
        let mut manifest = self.origin.manifest();
        manifest["bytes"] = self.file.written.into();
        manifest["complete"] = complete.into();
        if self.options.files.rolls() {
            let (number, last) = (self.parts.number(), end.is_some());
            manifest["part"] = json!({ "number": number, "first_byte": self.before, "last": last });
        }
        if let Some(End { dropped: dropped @ 1.., .. }) = end {
            manifest["dropped_bytes"] = dropped.into();
        }
        self.parts.describe(path, format!("{manifest:#}\n").as_bytes())
    }

    /// Cuts off what was there before behind what is certain.
    fn make_room(&mut self) -> Result {
        let Some(end) = self.cut.take() else { return Ok(()) };
        // This file is locked by this sink; those behind it by nobody.
        self.file.output.file().set_len(self.file.written)?;
        self.file.output.file().sync_all()?;
        Files::new(self.parts.first(), self.options.files).cut(end)
    }

    /// Whether the file is what was written. One that has more, which may be cut off, is not looked at before.
    fn compare(&mut self) -> io::Result<()> {
        match self.cut {
            Some(_) => Ok(()),
            None => self.parts.compare(&self.file.output, self.file.whole()),
        }
    }

    /// There is something behind what is certain, from before.
    fn has_more(&self) -> io::Result<bool> {
        let last = Files::new(self.parts.first(), self.options.files).last(u64::MAX)?;
        let is_last = last.is_none_or(|(number, _)| number == self.parts.number());
        Ok(!is_last || self.file.output.file().metadata()?.len() > self.file.written)
    }

    fn roll_over(&mut self) -> io::Result<()> {
        self.file.finish(&mut self.parts)?;
        self.state(None, true)?;
        let next = self.parts.next(|parts| Writer::create(parts, self.options))?;
        self.before += std::mem::replace(&mut self.file, next).written;
        self.state(None, false)
    }
}

impl Sink<Block> for FileSink {
    fn write(&mut self, block: &Block) -> Result {
        let is_other = std::mem::replace(&mut self.origin, block.origin) != block.origin;
        if !self.file.output.has_begun() {
            self.begin()?;
        } else if is_other {
            self.state(None, false)?;
        }
        self.make_room()?;
        if self.parts.is_due(self.file.written) {
            self.roll_over()?;
        }
        self.compare()?;
        Ok(self.file.write(&block.data)?)
    }

    fn tick(&mut self) -> Result {
        if self.cut.is_none() && self.parts.is_due(self.file.written) {
            self.roll_over()?;
        }
        Ok(())
    }

    fn sync(&mut self) -> Result {
        self.file.sync()?;
        Ok(self.compare()?)
    }

    fn finish(&mut self, end: End) -> Result {
        self.begin()?;
        if end.complete {
            self.make_room()?;
        } else if self.cut.is_some() && self.has_more()? {
            return Ok(self.file.sync()?);
        }
        self.file.finish(&mut self.parts)?;
        Ok(self.state(Some(end), end.complete)?)
    }

    fn keeps(&self) -> bool {
        self.file.output.path().is_some()
    }

    fn intact(&self) -> u64 {
        self.before + self.file.intact()
    }

    fn files(&self) -> Option<&Parts> {
        Some(&self.parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fadelink_receiver::Pool;
    use fadelink_wire::MacAddr;
    use std::os::unix::fs::MetadataExt;

    const FEB: Sender = Sender::Feb(MacAddr([2, 0xfa, 0xde, 0, 0, 1]));

    fn write(sink: &mut FileSink, pool: &mut Pool, data: &[u8]) {
        pool.room().0[..data.len()].copy_from_slice(data);
        sink.write(&Block { data: pool.lend(data.len(), 0), origin: Origin::of(FEB) }).unwrap();
    }

    fn manifest(path: &Path) -> serde_json::Value {
        let mut name = path.as_os_str().to_owned();
        name.push(".json");
        serde_json::from_str(&std::fs::read_to_string(name).unwrap()).unwrap()
    }

    const END: End = End { complete: true, dropped: 0 };

    #[test]
    fn pieces_of_any_size_make_the_same_file() {
        let folder = tempfile::tempdir().unwrap();
        let mut pool = Pool::new(2).unwrap();
        let data: Vec<u8> = (0..100_000u32).map(|i| (i * 7) as u8).collect();
        for (direct, preallocate) in [(false, 0), (true, 0), (true, 1 << 20), (false, 30_000)] {
            let path = folder.path().join("data");
            let files = FileOptions { overwrite: true, ..FileOptions::default() };
            let options = PlainFile { direct, preallocate, files };
            let Ok(mut sink) = FileSink::create(&path, options, FEB) else {
                assert!(direct, "plain files work everywhere");
                continue;
            };
            let mut rest = &data[..];
            for step in [8192, 24, 4096, 8, 16384, 5000].into_iter().cycle() {
                let (now, later) = rest.split_at(step.min(rest.len()));
                write(&mut sink, &mut pool, now);
                rest = later;
                if rest.is_empty() {
                    break;
                }
            }
            sink.finish(END).unwrap();
            let manifest = manifest(&path);
            assert_eq!((&manifest["bytes"], &manifest["complete"]), (&100_000.into(), &true.into()));
            assert!(std::fs::read(&path).unwrap() == data, "direct {direct}, preallocate {preallocate}");
            let blocks = std::fs::metadata(&path).unwrap().blocks();
            assert!(blocks * 512 < 200_000, "what was reserved too much is given back: {blocks} blocks");
        }
    }

    #[test]
    fn files_roll_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data.bin");
        let files = FileOptions { roll: Some(16384), ..FileOptions::default() };
        let mut pool = Pool::new(2).unwrap();
        let mut sink = FileSink::create(&path, PlainFile { files, ..PlainFile::default() }, FEB).unwrap();
        for i in 0..5 {
            write(&mut sink, &mut pool, &[i; 8192]);
        }
        sink.finish(END).unwrap();
        assert_eq!(sink.intact(), 5 * 8192);
        for (number, name, bytes) in
            [(0, "data.bin", 16384), (1, "data.000001.bin", 16384), (2, "data.000002.bin", 8192)]
        {
            let path = folder.path().join(name);
            let (data, manifest) = (std::fs::read(&path).unwrap(), manifest(&path));
            assert_eq!(
                (data.len(), data[0], data[data.len() - 1]),
                (bytes, 2 * number, 2 * number + (bytes / 8192) as u8 - 1)
            );
            let part = json!({ "number": number, "first_byte": u32::from(number) * 16384, "last": number == 2 });
            assert_eq!((&manifest["part"], &manifest["complete"]), (&part, &true.into()));
        }
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 6, "three files and their manifests");
    }

    /// A run that goes on and ends without new words: its files are whole, unless there is something behind what is certain.
    #[test]
    fn files_that_go_on_without_words_are_whole() {
        for (roll, more) in [(None, 0), (None, 8), (Some(16384), 0), (Some(16384), 8)] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("data.bin");
            let options = PlainFile { files: FileOptions { roll, ..FileOptions::default() }, ..PlainFile::default() };
            let mut pool = Pool::new(8).unwrap();
            let mut sink = FileSink::create(&path, options, FEB).unwrap();
            (0..5).for_each(|i| write(&mut sink, &mut pool, &[i; 8192]));
            sink.finish(END).unwrap();
            drop(sink);
            let mut sink = FileSink::resume(&path, options, FEB, 5 * 8192 - more).unwrap();
            sink.finish(End { complete: false, dropped: 0 }).unwrap();
            let made = sink.files().unwrap().made();
            let open = made.iter().filter(|made| made.is_open()).count();
            assert_eq!((open, sink.intact()), (usize::from(more > 0), 5 * 8192 - more), "{roll:?} {more}");
            let found: u64 = Parts::found(&path, options.files).iter().map(|path| path.metadata().unwrap().len()).sum();
            assert_eq!(found, 5 * 8192, "what may have been confirmed is kept");
        }
    }
}

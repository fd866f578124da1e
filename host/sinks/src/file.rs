//! A plain file of words as this computer has them; past the page cache (direct I/O) and with its place on the disk
//! reserved ahead, if asked for. Beside it, in `PATH.json`, its manifest: what the words are, and whether all are there.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use fadelink_wire::MacAddr;
use nix::fcntl::{fallocate, FallocateFlags};

use crate::origin::Origin;
use crate::sink::{Block, Sink};

/// What direct I/O wants its addresses, lengths and places to be multiples of.
const ALIGNMENT: usize = 4096;

/// The file.
pub struct FileSink {
    file: File,
    direct: bool,
    /// Step in which the place is reserved; 0: it is not.
    preallocate: u64,
    reserved: u64,
    written: u64,
    /// Of what was written, and where that is stated: nowhere for what is no file on a disk.
    origin: Origin,
    manifest: Option<PathBuf>,
    /// The end of the data, shorter than [`ALIGNMENT`].
    rest: Vec<u8>,
}

/// Memory that starts at a multiple of [`ALIGNMENT`].
#[repr(C, align(4096))]
#[derive(Clone, Copy)]
struct Page([u8; ALIGNMENT]);

impl FileSink {
    /// Creates the file, or empties it.
    ///
    /// # Errors
    /// The operating system's; a file system without direct I/O is named.
    pub fn create(path: impl AsRef<Path>, direct: bool, preallocate: u64, feb: MacAddr) -> io::Result<FileSink> {
        let path = path.as_ref();
        let flags = if direct { libc::O_DIRECT } else { 0 };
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).custom_flags(flags);
        let file = options.open(path).map_err(|error| match error.raw_os_error() {
            Some(libc::EINVAL) if direct => io::Error::other("this file system has no direct I/O; do without `direct`"),
            _ => error,
        })?;
        let manifest = file.metadata()?.is_file().then(|| {
            let mut name = path.as_os_str().to_owned();
            name.push(".json");
            PathBuf::from(name)
        });
        let origin = Origin::of(feb);
        let sink = FileSink { file, direct, preallocate, reserved: 0, written: 0, origin, manifest, rest: Vec::new() };
        sink.state(false)?;
        Ok(sink)
    }

    /// Writes the manifest.
    fn state(&self, complete: bool) -> io::Result<()> {
        let Some(path) = &self.manifest else { return Ok(()) };
        std::fs::write(path, format!("{:#}\n", self.origin.manifest(self.written, complete)))
    }

    fn reserve(&mut self, end: u64) -> io::Result<()> {
        while self.preallocate > 0 && self.reserved < end {
            let (from, step) = (self.reserved as i64, self.preallocate as i64);
            match fallocate(&self.file, FallocateFlags::FALLOC_FL_KEEP_SIZE, from, step) {
                Ok(()) => self.reserved += self.preallocate,
                // The file system has no such thing: the file grows as it is written.
                Err(nix::errno::Errno::EOPNOTSUPP) => self.preallocate = 0,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
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
            self.file.write_all(&data[..whole])?;
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
        self.file.write_all(bytes)
    }
}

impl Sink for FileSink {
    fn write(&mut self, block: &Block<'_>) -> io::Result<()> {
        if self.origin != block.origin {
            self.origin = block.origin;
            self.state(false)?;
        }
        self.reserve(self.written + block.data.len() as u64)?;
        if self.direct {
            self.write_direct(block.data)?;
        } else {
            self.file.write_all(block.data)?;
        }
        self.written += block.data.len() as u64;
        Ok(())
    }

    fn finish(&mut self, complete: bool) -> io::Result<()> {
        if !self.rest.is_empty() {
            let rest = std::mem::take(&mut self.rest);
            self.write_copied(&rest)?;
        }
        let is_file = self.file.metadata()?.is_file();
        if is_file && (self.direct || self.preallocate > 0) {
            // Filler of the last page, and what was reserved too much.
            self.file.set_len(self.written)?;
            if self.preallocate > 0 {
                // A length that does not change gives nothing back by itself.
                let (from, excess) = (self.written as i64, self.reserved.saturating_sub(self.written).max(1) as i64);
                let flags = FallocateFlags::FALLOC_FL_KEEP_SIZE | FallocateFlags::FALLOC_FL_PUNCH_HOLE;
                let _ = fallocate(&self.file, flags, from, excess);
            }
        }
        self.file.sync_data().or_else(|error| match error.raw_os_error() {
            // Pipes and devices have nothing to sync.
            Some(libc::EINVAL) => Ok(()),
            _ => Err(error),
        })?;
        self.state(complete)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::RingPart;
    use std::os::fd::AsFd;
    use std::os::unix::fs::MetadataExt;

    const FEB: MacAddr = MacAddr([2, 0xfa, 0xde, 0, 0, 1]);

    fn write(sink: &mut FileSink, data: &[u8]) {
        let fd = File::open("/dev/null").unwrap();
        let ring = RingPart { fd: fd.as_fd(), bytes: 0, offset: 0 };
        sink.write(&Block { data, ring, origin: Origin::of(FEB) }).unwrap();
    }

    #[test]
    fn pieces_of_any_size_make_the_same_file() {
        let folder = tempfile::tempdir().unwrap();
        let data: Vec<u8> = (0..100_000u32).map(|i| (i * 7) as u8).collect();
        for (direct, preallocate) in [(false, 0), (true, 0), (true, 1 << 20), (false, 30_000)] {
            let path = folder.path().join("data");
            let Ok(mut sink) = FileSink::create(&path, direct, preallocate, FEB) else {
                assert!(direct, "plain files work everywhere");
                continue;
            };
            let mut rest = &data[..];
            for step in [8192, 24, 4096, 8, 16384, 5000].into_iter().cycle() {
                let (now, later) = rest.split_at(step.min(rest.len()));
                write(&mut sink, now);
                rest = later;
                if rest.is_empty() {
                    break;
                }
            }
            sink.finish(true).unwrap();
            let manifest = std::fs::read_to_string(folder.path().join("data.json")).unwrap();
            let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
            assert_eq!((&manifest["bytes"], &manifest["complete"]), (&100_000.into(), &true.into()));
            assert!(std::fs::read(&path).unwrap() == data, "direct {direct}, preallocate {preallocate}");
            let blocks = std::fs::metadata(&path).unwrap().blocks();
            assert!(blocks * 512 < 200_000, "what was reserved too much is given back: {blocks} blocks");
        }
    }
}

//! What is certain of the data in sinks, when the program that wrote them was ended by force or by a power cut.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::file::description;
use crate::hashes::{self, Blocks, Entry, Record, ENTRY_BYTES, HASHED_BYTES};
use crate::output;
use crate::sink::Result;

/// What a sink has of a board's words.
pub trait Stored {
    /// Bytes of it.
    ///
    /// # Errors
    /// It cannot be found out.
    fn end(&self) -> Result<u64>;

    /// Those from byte `from` to byte `to`, which are there.
    ///
    /// # Errors
    /// They cannot be read.
    fn read(&self, from: u64, to: u64) -> Result<Vec<u8>>;

    /// Removes those behind byte `end`, for ever, or leaves it to the sink that goes on there.
    ///
    /// # Errors
    /// They cannot be removed.
    fn cut(&self, end: u64) -> Result;
}

/// Files that have a board's words one after the other.
pub struct Files(pub Vec<PathBuf>);

/// One of them: its first byte, and the byte behind its last.
struct Place<'a> {
    file: &'a Path,
    first: u64,
    end: u64,
}

impl Files {
    fn places(&self) -> io::Result<Vec<Place<'_>>> {
        let (mut places, mut first) = (Vec::new(), 0);
        for file in &self.0 {
            let end = first + fs::metadata(file)?.len();
            places.push(Place { file, first, end });
            first = end;
        }
        Ok(places)
    }
}

impl Stored for Files {
    fn end(&self) -> Result<u64> {
        Ok(self.places()?.last().map_or(0, |place| place.end))
    }

    fn read(&self, from: u64, to: u64) -> Result<Vec<u8>> {
        let mut data = Vec::new();
        for Place { file, first, end } in self.places()? {
            let part = first.max(from)..end.min(to);
            if !part.is_empty() {
                let mut file = File::open(file)?;
                file.seek(SeekFrom::Start(part.start - first))?;
                file.take(part.end - part.start).read_to_end(&mut data)?;
            }
        }
        Ok(data)
    }

    fn cut(&self, end: u64) -> Result {
        for Place { file, first, end: last } in self.places()? {
            let is_behind = first >= end && first > 0;
            if !is_behind && last <= end {
                continue;
            }
            let open = OpenOptions::new().write(true).open(file)?;
            output::lock(&open, file)?;
            if is_behind {
                fs::remove_file(file)?;
                let _ = fs::remove_file(description(file));
            } else {
                open.set_len(end - first)?;
                open.sync_all()?;
            }
        }
        Ok(())
    }
}

/// Hashes the data before byte `end`, from the begin of its block on: the hashes to go on with, and the record of this end.
fn hashed(sink: &dyn Stored, end: u64) -> Result<(Blocks, Option<Record>)> {
    let begin = end.saturating_sub(1) / HASHED_BYTES * HASHED_BYTES;
    let (mut blocks, mut whole) = (Blocks::behind(begin), None);
    blocks.update(&sink.read(begin, end)?, |record| {
        whole = Some(record);
        Ok::<_, io::Error>(())
    })?;
    let record = blocks.rest().or(whole);
    Ok((blocks, record))
}

/// Finds what is certain of a board's data: the longest part that has a hash in the file `hashes` and is the same in all
/// `sinks`. What is behind it is cut off. Returns the hashes of the rest, to go on with.
///
/// # Errors
/// The operating system's, or those of a sink.
pub fn recover(hashes: &Path, sinks: &[Box<dyn Stored>]) -> Result<Blocks> {
    let entries = match hashes::read(hashes) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        entries => entries?,
    };
    let mut there = u64::MAX;
    for sink in sinks {
        there = there.min(sink.end()?);
    }
    let (mut certain, mut kept) = (Blocks::default(), 0);
    'entries: for (index, Entry { record, .. }) in entries.iter().enumerate().rev() {
        if record.end > there {
            continue;
        }
        for sink in sinks {
            let (blocks, found) = hashed(&**sink, record.end)?;
            if found.map(|found| (found.end, found.hash)) != Some((record.end, record.hash)) {
                continue 'entries;
            }
            certain = blocks.with_crc(record.crc);
        }
        kept = index + 1;
        break;
    }
    let end = if kept == 0 { 0 } else { certain.end() };
    if let Ok(file) = OpenOptions::new().write(true).open(hashes) {
        output::lock(&file, hashes)?;
        file.set_len((kept * ENTRY_BYTES) as u64)?;
        file.sync_all()?;
    }
    for sink in sinks {
        sink.cut(end)?;
    }
    Ok(if kept == 0 { Blocks::default() } else { certain })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::{FileSink, PlainFile};
    use crate::hashes::HashSink;
    use crate::origin::{Board, Origin};
    use crate::sink::{End, Sink};
    use crate::{Block, FileOptions, Parts};
    use fadelink_receiver::Pool;
    use fadelink_wire::MacAddr;

    const FEB: Board = Board::Feb(MacAddr([2, 0xfa, 0xde, 0, 0, 1]));
    const END: End = End { complete: true, dropped: 0 };

    /// What is written of a sequence of bytes that no part has twice.
    struct Writer {
        pool: Pool,
        next: u32,
    }

    impl Writer {
        fn write(&mut self, sinks: &mut [&mut dyn Sink<Block>], bytes: usize) {
            let room = &mut self.pool.room().0[..bytes];
            for word in room.chunks_exact_mut(4) {
                word.copy_from_slice(&self.next.to_le_bytes());
                self.next += 1;
            }
            let block = Block { data: self.pool.lend(bytes, 0), origin: Origin::of(FEB) };
            sinks.iter_mut().for_each(|sink| sink.write(&block).unwrap());
        }
    }

    fn found_files(path: &Path, files: FileOptions) -> Box<dyn Stored> {
        Box::new(Files(Parts::found(path, files)))
    }

    fn content(files: &[PathBuf]) -> Vec<u8> {
        files.iter().flat_map(|file| fs::read(file).unwrap()).collect()
    }

    fn is_sequence(data: &[u8]) -> bool {
        data.chunks_exact(4).zip(0u32..).all(|(word, i)| word == i.to_le_bytes())
    }

    #[test]
    fn what_is_certain_is_kept_and_gone_on_with() {
        let folder = tempfile::tempdir().unwrap();
        let (data, hash) = (folder.path().join("a.dat"), folder.path().join("a.hashes"));
        let files = FileOptions { roll: Some(3 << 20), ..FileOptions::default() };
        let plain = PlainFile { files, ..PlainFile::default() };
        let mut writer = Writer { pool: Pool::new(256).unwrap(), next: 0 };
        let mut file = FileSink::create(&data, plain, FEB).unwrap();
        let mut hashes = HashSink::create(&hash, false).unwrap();
        for _ in 0..18 {
            writer.write(&mut [&mut file, &mut hashes], 1 << 20);
            hashes.sync().unwrap();
        }
        // The end of a power cut: a part is not what it should be.
        writer.write(&mut [&mut file, &mut hashes], 1 << 20);
        hashes.sync().unwrap();
        drop((file, hashes));
        let found = Parts::found(&data, files);
        let last = OpenOptions::new().write(true).open(found.last().unwrap()).unwrap();
        last.set_len(500_000).unwrap();
        last.set_len(1 << 20).unwrap();
        let blocks = recover(&hash, &[found_files(&data, files)]).unwrap();
        assert_eq!(blocks.end(), 18 << 20);
        assert_eq!(content(&Parts::found(&data, files)).len(), 18 << 20);

        writer.next = (blocks.end() / 4) as u32;
        let mut file = FileSink::resume(&data, plain, FEB).unwrap();
        let mut hashes = HashSink::resume(&hash, blocks).unwrap();
        for _ in 0..20 {
            writer.write(&mut [&mut file, &mut hashes], 1 << 20);
        }
        file.finish(END).unwrap();
        hashes.finish(END).unwrap();
        drop((file, hashes));
        let all = content(&Parts::found(&data, files));
        assert!(all.len() == 38 << 20 && is_sequence(&all));
        let expected: Vec<_> = all.chunks(HASHED_BYTES as usize).map(blake3::hash).collect();
        assert_eq!(hashes::of_blocks(&hashes::read(&hash).unwrap()), (expected, 38 << 20));
        // Again, of files that are whole.
        assert_eq!(recover(&hash, &[found_files(&data, files)]).unwrap().end(), 38 << 20);
    }

    #[test]
    fn what_one_sink_has_of_several_pieces_is_certain() {
        let folder = tempfile::tempdir().unwrap();
        let (data, hash) = (folder.path().join("a.dat"), folder.path().join("a.hashes"));
        let mut writer = Writer { pool: Pool::new(256).unwrap(), next: 0 };
        let mut file = FileSink::create(&data, PlainFile::default(), FEB).unwrap();
        let mut hashes = HashSink::create(&hash, false).unwrap().with(true);
        writer.write(&mut [&mut file, &mut hashes], 3 * 8192);
        writer.write(&mut [&mut file, &mut hashes], 2 * 8192);
        // The file has made the first two safe, which are confirmed; the hashes have made all safe at once.
        writer.write(&mut [&mut hashes], 4 * 8192);
        file.sync().unwrap();
        hashes.sync().unwrap();
        drop((file, hashes));
        let blocks = recover(&hash, &[found_files(&data, FileOptions::default())]).unwrap();
        assert_eq!((blocks.end(), fs::metadata(&data).unwrap().len()), (5 * 8192, 5 * 8192));
    }

    #[test]
    fn the_end_may_be_at_a_block_or_at_the_begin() {
        let folder = tempfile::tempdir().unwrap();
        let (data, hash) = (folder.path().join("a.dat"), folder.path().join("a.hashes"));
        let files = || found_files(&data, FileOptions::default());
        assert_eq!(recover(&hash, &[Box::new(Files(vec![]))]).unwrap().end(), 0);
        let mut writer = Writer { pool: Pool::new(256).unwrap(), next: 0 };
        let mut file = FileSink::create(&data, PlainFile::default(), FEB).unwrap();
        let mut hashes = HashSink::create(&hash, false).unwrap();
        (0..16).for_each(|_| writer.write(&mut [&mut file, &mut hashes], 1 << 20));
        // What was written behind has no hash.
        writer.write(&mut [&mut file], 1 << 20);
        drop((file, hashes));
        let mut blocks = recover(&hash, &[files()]).unwrap();
        assert_eq!((blocks.end(), blocks.rest()), (HASHED_BYTES, None));
        assert_eq!(fs::metadata(&data).unwrap().len(), HASHED_BYTES);
        let mut next = None;
        blocks.update(&[7; 100], |_| Ok::<_, ()>(())).unwrap();
        next.replace(blocks.rest().unwrap().hash);
        assert_eq!(next, Some(blake3::hash(&[7; 100])));
        // Nothing of it is right.
        fs::write(&data, vec![0; 1 << 20]).unwrap();
        assert_eq!(recover(&hash, &[files()]).unwrap().end(), 0);
        assert_eq!((fs::metadata(&data).unwrap().len(), fs::metadata(&hash).unwrap().len()), (0, 0));
    }
}

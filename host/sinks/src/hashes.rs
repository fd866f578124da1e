//! BLAKE3 hashes of a board's words, in blocks of [`HASHED_BYTES`]. They are appended to a file while data comes: a record
//! for each block that is whole, and about once a second one for what has come of the next. So the file says after a crash
//! how much of the data is certain. Where data is confirmed when it is safe, there is a record behind each piece that may be
//! confirmed by itself: a sink may have had fewer of them than the hashes, and what was confirmed must be certain.
//!
//! A record has the CRC-32 of all data so far, too: who goes on behind it can compare that of the whole with the board's.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::SystemTime;

use blake3::{Hash, Hasher};
use rustix::fs::OFlags;

use crate::block::Block;
use crate::durable;
use crate::output::{self, Output};
use crate::parts::{FileOptions, Parts};
use crate::sink::{End, Result, Sink};

/// Bytes of data that have one hash; fewer in the last block.
pub const HASHED_BYTES: u64 = 16 << 20;
/// Bytes of an entry of the file: of its fields end u64, time u64, both little-endian, hash, and CRC u32 little-endian; then the first
/// bytes of the hash of these. Earlier versions have no CRC, and more bytes of the hash.
pub(crate) const ENTRY_BYTES: usize = 56;
const FIELDS_BYTES: usize = 52;
const EARLIER_FIELDS_BYTES: usize = 48;

/// The hash of data from the begin of its block on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Byte of the board's data behind the data.
    pub end: u64,
    /// BLAKE3, from the last multiple of [`HASHED_BYTES`] before `end`.
    pub hash: Hash,
    /// CRC-32 (IEEE 802.3) of all data before `end`; `None`: a part of it was recorded by an earlier version.
    pub crc: Option<u32>,
}

/// A record in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// The record.
    pub record: Record,
    /// When the data had come, in ns since 1970.
    pub time: u64,
}

impl Entry {
    /// Of data that has come now.
    fn now(record: Record) -> Entry {
        let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Entry { record, time: time.as_nanos() as u64 }
    }

    fn to_bytes(self) -> [u8; ENTRY_BYTES] {
        let mut bytes = [0; ENTRY_BYTES];
        bytes[..8].copy_from_slice(&self.record.end.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.time.to_le_bytes());
        bytes[16..EARLIER_FIELDS_BYTES].copy_from_slice(self.record.hash.as_bytes());
        let fields = match self.record.crc {
            Some(crc) => {
                bytes[EARLIER_FIELDS_BYTES..FIELDS_BYTES].copy_from_slice(&crc.to_le_bytes());
                FIELDS_BYTES
            }
            None => EARLIER_FIELDS_BYTES,
        };
        let check = blake3::hash(&bytes[..fields]);
        bytes[fields..].copy_from_slice(&check.as_bytes()[..ENTRY_BYTES - fields]);
        bytes
    }

    /// `None`: it was not written to its end.
    fn parse(bytes: &[u8; ENTRY_BYTES]) -> Option<Entry> {
        let (end, rest) = bytes.split_first_chunk::<8>()?;
        let (time, rest) = rest.split_first_chunk::<8>()?;
        let (hash, rest) = rest.split_first_chunk::<32>()?;
        let crc = u32::from_le_bytes(*rest.first_chunk()?);
        let entry = |crc| {
            let record = Record { end: u64::from_le_bytes(*end), hash: Hash::from_bytes(*hash), crc };
            Some(Entry { record, time: u64::from_le_bytes(*time) }).filter(|entry| entry.to_bytes() == *bytes)
        };
        entry(Some(crc)).or_else(|| entry(None))
    }
}

impl Record {
    /// Number of the block that it is of.
    pub fn block(&self) -> u64 {
        self.end.saturating_sub(1) / HASHED_BYTES
    }

    /// True of one that may come behind that of the data before `end`: no block is left out.
    fn follows(&self, end: u64) -> bool {
        self.end > end && self.block() == end / HASHED_BYTES
    }
}

/// Reads the entries of a file, up to the first one that was not written to its end.
///
/// # Errors
/// The operating system's.
pub fn read(path: &Path) -> io::Result<Vec<Entry>> {
    Ok(read_whole(path)?.0)
}

/// The same, and the byte of the file where it is damaged: entries are behind it, so that it is not where a program or a disk
/// has ended.
///
/// # Errors
/// The operating system's.
pub fn read_whole(path: &Path) -> io::Result<(Vec<Entry>, Option<u64>)> {
    let mut bytes = Vec::new();
    File::open(path)?.read_to_end(&mut bytes)?;
    let (all, _) = bytes.as_chunks::<ENTRY_BYTES>();
    let mut entries: Vec<Entry> = Vec::new();
    for entry in all {
        let before = entries.last().map_or(0, |entry| entry.record.end);
        match Entry::parse(entry).filter(|entry| entry.record.follows(before)) {
            Some(entry) => entries.push(entry),
            None => break,
        }
    }
    let is_damaged = all[entries.len()..].iter().any(|entry| Entry::parse(entry).is_some());
    let byte = (entries.len() * ENTRY_BYTES) as u64;
    Ok((entries, is_damaged.then_some(byte)))
}

/// Bytes of a file that has the entries of the data before `end`.
fn records_before(path: &Path, end: u64) -> io::Result<u64> {
    let count = read(path)?.partition_point(|entry| entry.record.end <= end);
    Ok((count * ENTRY_BYTES) as u64)
}

/// Cuts off what is not of the data before `end`. A file that is not there has nothing.
///
/// # Errors
/// The operating system's.
pub fn cut(path: &Path, end: u64) -> io::Result<()> {
    durable::separate(path)?;
    let open = match OpenOptions::new().write(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        open => open?,
    };
    output::lock(&open, path)?;
    open.set_len(records_before(path, end)?)?;
    open.sync_all()
}

/// The hash of each block, and the end of the data: of entries as [`read`] gives them.
pub fn of_blocks(entries: &[Entry]) -> (Vec<Hash>, u64) {
    let mut hashes = Vec::new();
    for Entry { record, .. } in entries {
        hashes.truncate(record.block() as usize);
        hashes.push(record.hash);
    }
    (hashes, entries.last().map_or(0, |entry| entry.record.end))
}

/// Hashes of data as it comes, in blocks.
#[derive(Debug, Clone)]
pub struct Blocks {
    hasher: Hasher,
    end: u64,
    /// Of all data.
    crc: Option<crc32fast::Hasher>,
}

impl Default for Blocks {
    /// Of no data yet.
    fn default() -> Blocks {
        Blocks { hasher: Hasher::new(), end: 0, crc: Some(crc32fast::Hasher::new()) }
    }
}

impl Blocks {
    /// Takes the next data; `take` is called with the record of each block that is whole.
    ///
    /// # Errors
    /// That of `take`.
    pub fn update<E>(
        &mut self,
        mut data: &[u8],
        mut take: impl FnMut(Record) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        while !data.is_empty() {
            let left = HASHED_BYTES - self.end % HASHED_BYTES;
            let (now, later) = data.split_at(data.len().min(left as usize));
            self.hasher.update(now);
            if let Some(crc) = &mut self.crc {
                crc.update(now);
            }
            self.end += now.len() as u64;
            data = later;
            if self.end.is_multiple_of(HASHED_BYTES) {
                take(self.record())?;
                self.hasher.reset();
            }
        }
        Ok(())
    }

    /// Of data of which `end` bytes have come, up to the end of a block.
    pub fn behind(end: u64) -> Blocks {
        Blocks { hasher: Hasher::new(), end, crc: None }
    }

    /// With this CRC of all that has come, if it is known.
    #[must_use]
    pub(crate) fn with_crc(self, crc: Option<u32>) -> Blocks {
        Blocks { crc: crc.map(crc32fast::Hasher::new_with_initial), ..self }
    }

    /// CRC-32 (IEEE 802.3) of all that has come, if it is known.
    pub fn crc(&self) -> Option<u32> {
        self.crc.clone().map(crc32fast::Hasher::finalize)
    }

    /// The hash of what has come of the block that is not whole yet; `None`: nothing has.
    pub fn rest(&self) -> Option<Record> {
        (!self.end.is_multiple_of(HASHED_BYTES)).then(|| self.record())
    }

    /// Bytes that have come.
    pub fn end(&self) -> u64 {
        self.end
    }

    fn record(&self) -> Record {
        Record { end: self.end, hash: self.hasher.finalize(), crc: self.crc() }
    }
}

/// Writes the hashes.
pub struct HashSink {
    parts: Parts,
    output: Output,
    /// Bytes of the file, and their hash.
    bytes: u64,
    written: Hasher,
    blocks: Blocks,
    /// Data up to here has a record.
    recorded: u64,
    /// Records up to here are on the disk.
    safe: u64,
    each_piece: bool,
    /// The file has records behind these bytes, which are cut off when other data comes.
    has_more: bool,
}

impl HashSink {
    /// Opens the file. It is emptied when the first record comes.
    ///
    /// # Errors
    /// The operating system's; of a file that exists.
    pub fn create(path: &Path, overwrite: bool) -> io::Result<HashSink> {
        let mut parts = Parts::new(path, FileOptions { overwrite, ..FileOptions::default() });
        let output = parts.create(OFlags::empty())?;
        Ok(HashSink::of(parts, output, Blocks::default()))
    }

    /// Goes on behind the data of `blocks`, whose records are in the file. Those behind are kept until other data comes.
    ///
    /// # Errors
    /// The operating system's.
    pub fn resume(path: &Path, blocks: Blocks) -> io::Result<HashSink> {
        let mut parts = Parts::new(path, FileOptions::default());
        let output = parts.resume()?;
        let bytes = records_before(path, blocks.end())?;
        let mut written = Hasher::new();
        written.update_reader(File::open(path)?.take(bytes))?;
        Ok(HashSink { bytes, written, has_more: true, ..HashSink::of(parts, output, blocks) })
    }

    fn of(parts: Parts, output: Output, blocks: Blocks) -> HashSink {
        let end = blocks.end();
        let written = Hasher::new();
        HashSink {
            parts,
            output,
            bytes: 0,
            written,
            recorded: end,
            safe: end,
            blocks,
            each_piece: false,
            has_more: false,
        }
    }

    /// `each_piece`: each piece that is written gets a record.
    #[must_use]
    pub fn with(self, each_piece: bool) -> HashSink {
        HashSink { each_piece, ..self }
    }

    /// Cuts off the records of data that is not certain.
    fn make_room(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.has_more) {
            self.output.file().set_len(self.bytes)?;
        }
        Ok(())
    }

    fn append(&mut self, record: Record) -> io::Result<()> {
        self.parts.begin(&mut self.output)?;
        let entry = Entry::now(record).to_bytes();
        self.output.file().write_all(&entry)?;
        self.written.update(&entry);
        self.bytes += ENTRY_BYTES as u64;
        Ok(())
    }

    fn record_rest(&mut self) -> io::Result<()> {
        if self.recorded < self.blocks.end() {
            if let Some(record) = self.blocks.rest() {
                self.append(record)?;
            }
            self.recorded = self.blocks.end();
        }
        Ok(())
    }

    fn make_safe(&mut self) -> Result {
        self.record_rest()?;
        if self.safe < self.recorded {
            durable::sync(self.output.file())?;
            self.parts.compare(&self.output, self.bytes)?;
            self.safe = self.recorded;
        }
        Ok(())
    }
}

impl Sink<Block> for HashSink {
    fn write(&mut self, block: &Block) -> Result {
        self.make_room()?;
        let mut blocks = std::mem::take(&mut self.blocks);
        let recorded = blocks.update(&block.data, |record| self.append(record));
        self.blocks = blocks;
        recorded?;
        if self.each_piece {
            self.record_rest()?;
        }
        Ok(())
    }

    fn tick(&mut self) -> Result {
        self.make_safe()
    }

    fn sync(&mut self) -> Result {
        self.make_safe()
    }

    fn finish(&mut self, end: End) -> Result {
        if end.complete {
            self.make_room()?;
        }
        self.make_safe()?;
        if self.has_more {
            return Ok(());
        }
        self.parts.begin(&mut self.output)?;
        self.parts.finish(&self.output, self.bytes)?;
        if let Some(made) = self.output.path().and_then(|path| self.parts.find(path)) {
            made.know(self.written.finalize());
        }
        Ok(())
    }

    fn keeps(&self) -> bool {
        false
    }

    fn intact(&self) -> u64 {
        self.safe
    }

    fn files(&self) -> Option<&Parts> {
        Some(&self.parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(bytes: u64) -> Vec<u8> {
        (0..bytes).map(|i| ((i * 31) >> 3) as u8).collect()
    }

    #[test]
    fn blocks_do_not_depend_on_the_pieces() {
        let data = data(2 * HASHED_BYTES + 1000);
        let mut all: Vec<Vec<Record>> = Vec::new();
        for piece in [8192, 1 << 20, HASHED_BYTES as usize, data.len()] {
            let (mut blocks, mut records) = (Blocks::default(), Vec::new());
            for part in data.chunks(piece) {
                blocks
                    .update(part, |record| {
                        records.push(record);
                        Ok::<_, ()>(())
                    })
                    .unwrap();
            }
            records.extend(blocks.rest());
            all.push(records);
        }
        assert!(all.iter().all(|records| *records == all[0]));
        let entries: Vec<Entry> = all[0].iter().map(|record| Entry { record: *record, time: 0 }).collect();
        let (hashes, end) = of_blocks(&entries);
        assert_eq!(end, data.len() as u64);
        let expected: Vec<Hash> = data.chunks(HASHED_BYTES as usize).map(blake3::hash).collect();
        assert_eq!(hashes, expected);
        assert_eq!(all[0].last().unwrap().crc, Some(crc32fast::hash(&data)));
    }

    #[test]
    fn entries_of_earlier_versions_are_read() {
        for crc in [None, Some(0), Some(u32::MAX)] {
            let entry = Entry { record: Record { end: 8192, hash: blake3::hash(b"a"), crc }, time: 7 };
            assert_eq!(Entry::parse(&entry.to_bytes()), Some(entry));
        }
        let fields = [&8192u64.to_le_bytes()[..], &7u64.to_le_bytes(), blake3::hash(b"a").as_bytes()].concat();
        let earlier = [&fields[..], &blake3::hash(&fields).as_bytes()[..8]].concat();
        let record = Record { end: 8192, hash: blake3::hash(b"a"), crc: None };
        assert_eq!(Entry::parse(earlier.first_chunk().unwrap()), Some(Entry { record, time: 7 }));
    }

    #[test]
    fn a_record_that_is_cut_or_damaged_ends_the_list() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let entry = |end| Entry::now(Record { end, hash: blake3::hash(&[end as u8]), crc: Some(end as u32) });
        let entries = [entry(8192), entry(16384), entry(HASHED_BYTES), entry(HASHED_BYTES + 8)];
        let bytes: Vec<u8> = entries.iter().flat_map(|entry| entry.to_bytes()).collect();
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(read(&path).unwrap(), entries);
        let (hashes, end) = of_blocks(&entries);
        assert_eq!((hashes, end), (vec![entries[2].record.hash, entries[3].record.hash], HASHED_BYTES + 8));
        for cut in [1, ENTRY_BYTES - 1] {
            std::fs::write(&path, &bytes[..bytes.len() - cut]).unwrap();
            assert_eq!(read(&path).unwrap(), entries[..3], "cut {cut}");
        }
        for damaged in [ENTRY_BYTES, ENTRY_BYTES + 12, 2 * ENTRY_BYTES - 1] {
            let mut bytes = bytes.clone();
            bytes[damaged] ^= 1;
            std::fs::write(&path, &bytes).unwrap();
            assert_eq!(read(&path).unwrap(), entries[..1], "byte {damaged}");
        }
        assert_eq!(of_blocks(&[]), (vec![], 0));
    }
}

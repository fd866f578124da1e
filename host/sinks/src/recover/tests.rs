use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};

use fadelink_receiver::Pool;
use fadelink_wire::MacAddr;

use super::*;
use crate::file::{FileSink, PlainFile};
use crate::hashes::{HashSink, ENTRY_BYTES};
use crate::origin::{Origin, Sender};
use crate::sink::{End, Sink};
use crate::{differences, Block, FileOptions, Files, Parts};

const FEB: Sender = Sender::Feb(MacAddr([2, 0xfa, 0xde, 0, 0, 1]));
const END: End = End { complete: true, dropped: 0 };
const MIB: usize = 1 << 20;

/// What is written of a sequence of bytes that no part has twice.
struct Writer {
    pool: Pool,
    next: u32,
}

impl Writer {
    fn at(byte: u64) -> Writer {
        Writer { pool: Pool::new(256).unwrap(), next: (byte / 4) as u32 }
    }

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

/// A folder with the words of a board in two sinks, and their hashes.
struct Kept {
    folder: tempfile::TempDir,
    files: FileOptions,
}

impl Kept {
    fn new() -> Kept {
        let files = FileOptions { roll: Some(3 << 20), ..FileOptions::default() };
        Kept { folder: tempfile::tempdir().unwrap(), files }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn plain(&self) -> PlainFile {
        PlainFile { files: self.files, ..PlainFile::default() }
    }

    /// Writes so many bytes, each piece safe before the next.
    fn write(&self, pieces: usize, bytes: usize) {
        let mut writer = Writer::at(0);
        let mut parts = FileSink::create(self.path("a.dat"), self.plain(), FEB).unwrap();
        let mut one = FileSink::create(self.path("b.dat"), PlainFile::default(), FEB).unwrap();
        let mut hashes = HashSink::create(&self.path("a.hashes"), false).unwrap().with(true);
        for _ in 0..pieces {
            writer.write(&mut [&mut parts, &mut one, &mut hashes], bytes);
            hashes.sync().unwrap();
        }
    }

    fn sinks(&self) -> Vec<Box<dyn Stored>> {
        vec![
            Box::new(Files::new(self.path("a.dat"), self.files)),
            Box::new(Files::new(self.path("b.dat"), FileOptions::default())),
        ]
    }

    fn recover(&self) -> Recovered {
        recover(&self.path("a.hashes"), &self.sinks()).unwrap()
    }

    /// Goes on behind what is certain, with so many bytes.
    fn go_on(&self, bytes: usize) {
        let end = self.recover().blocks.end();
        let mut writer = Writer::at(end);
        let mut parts = FileSink::resume(self.path("a.dat"), self.plain(), FEB, end).unwrap();
        let mut one = FileSink::resume(self.path("b.dat"), PlainFile::default(), FEB, end).unwrap();
        let mut hashes = HashSink::resume(&self.path("a.hashes"), self.recover().blocks).unwrap();
        (0..bytes / 8192).for_each(|_| writer.write(&mut [&mut parts, &mut one, &mut hashes], 8192));
        for sink in [&mut parts as &mut dyn Sink<Block>, &mut one, &mut hashes] {
            sink.finish(END).unwrap();
        }
    }

    fn content(&self) -> [Vec<u8>; 2] {
        let parts = Parts::found(self.path("a.dat"), self.files);
        [parts.iter().flat_map(|file| fs::read(file).unwrap()).collect(), fs::read(self.path("b.dat")).unwrap()]
    }

    /// All that is in the folder.
    fn all(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let entries = fs::read_dir(self.folder.path()).unwrap().map(|entry| entry.unwrap().path());
        let mut all: Vec<_> = entries.map(|path| (path.clone(), fs::read(path).unwrap())).collect();
        all.sort();
        all
    }

    fn restore(&self, all: &[(PathBuf, Vec<u8>)]) {
        self.all().iter().for_each(|(path, _)| fs::remove_file(path).unwrap());
        all.iter().for_each(|(path, content)| fs::write(path, content).unwrap());
    }
}

fn is_sequence(data: &[u8]) -> bool {
    data.chunks_exact(4).zip(0u32..).all(|(word, i)| word == i.to_le_bytes())
}

fn set_len(path: &Path, end: u64) {
    OpenOptions::new().write(true).open(path).unwrap().set_len(end).unwrap();
}

fn flip(path: &Path, at: usize) {
    let mut content = fs::read(path).unwrap();
    content[at] ^= 1;
    fs::write(path, content).unwrap();
}

#[test]
fn what_is_certain_is_gone_on_with() {
    let kept = Kept::new();
    kept.write(18, MIB);
    // The end of a power cut: what is not confirmed is not what it should be.
    let end = 18 * MIB as u64;
    let mut writer = Writer::at(end);
    let mut hashes = HashSink::resume(&kept.path("a.hashes"), kept.recover().blocks).unwrap();
    writer.write(&mut [&mut hashes], 8192);
    hashes.finish(END).unwrap();
    drop(hashes);
    let mut file = OpenOptions::new().append(true).open(kept.path("b.dat")).unwrap();
    std::io::Write::write_all(&mut file, &[0; 8192]).unwrap();
    let before = kept.all();
    let found = kept.recover();
    assert_eq!((found.blocks.end(), found.lost, found.hashes.len()), (end, None, 2));
    assert_eq!(kept.all(), before, "nothing is changed");
    kept.go_on(20 * MIB);
    for content in kept.content() {
        assert!(content.len() == 38 * MIB && is_sequence(&content));
        let expected: Vec<_> = content.chunks(HASHED_BYTES as usize).map(blake3::hash).collect();
        assert_eq!(hashes::of_blocks(&hashes::read(&kept.path("a.hashes")).unwrap()), (expected, 38 << 20));
    }
    // Again, of files that are whole.
    let found = kept.recover();
    assert_eq!((found.blocks.end(), found.lost), (38 << 20, None));
    for sink in kept.sinks() {
        assert_eq!(differences(&*sink, (&found.hashes, found.blocks.end()), &mut |_| true), [""; 0]);
    }
}

#[test]
fn what_may_have_been_confirmed_is_kept_until_other_data_comes() {
    let kept = Kept::new();
    kept.write(100, 8192);
    // Somebody has cut the hashes.
    set_len(&kept.path("a.hashes"), 90 * ENTRY_BYTES as u64);
    let before = kept.all();
    let found = kept.recover();
    assert_eq!((found.blocks.end(), found.lost), (90 * 8192, None), "it may not have been confirmed");
    let end = found.blocks.end();
    let not = End { complete: false, dropped: 0 };
    FileSink::resume(kept.path("b.dat"), PlainFile::default(), FEB, end).unwrap().finish(not).unwrap();
    HashSink::resume(&kept.path("a.hashes"), found.blocks).unwrap().finish(not).unwrap();
    assert_eq!(kept.content().map(|content| content.len()), [100 * 8192; 2]);
    kept.restore(&before);
    kept.go_on(20 * 8192);
    assert!(kept.content().iter().all(|content| content.len() == 110 * 8192 && is_sequence(content)));
}

#[test]
fn nothing_goes_on_without_what_was_confirmed() {
    let kept = Kept::new();
    kept.write(20, MIB);
    let whole = kept.all();
    let end = 20 * MIB as u64;
    let least = end - UNCONFIRMED;
    let path = |name: &str| kept.path(name);
    type Harm<'a> = Box<dyn Fn() + 'a>;
    let cases: Vec<(Harm<'_>, &str, String)> = vec![
        (Box::new(|| fs::remove_file(path("a.hashes")).unwrap()), "a.hashes", "it is missing".into()),
        (Box::new(|| set_len(&path("a.hashes"), 0)), "a.hashes", "it ends with byte 0 of the words".into()),
        (Box::new(|| set_len(&path("a.hashes"), 1000)), "a.hashes", format!("expected {least} or more")),
        (Box::new(|| flip(&path("a.hashes"), 57)), "a.hashes", "byte 56: expected the record of a hash".into()),
        (Box::new(|| fs::remove_file(path("b.dat")).unwrap()), "b.dat", format!("end at byte 0, expected {least}")),
        (Box::new(|| set_len(&path("b.dat"), least - 1)), "b.dat", format!("end at byte {}, expected", least - 1)),
        (Box::new(|| fs::remove_file(path("a.000003.dat")).unwrap()), "a.000002.dat", "end at byte 9437184".into()),
        (Box::new(|| fs::write(path("b.dat"), vec![7; 20 * MIB]).unwrap()), "b.dat", "bytes 0 to 1048576 of".into()),
        (Box::new(|| flip(&path("b.dat"), 17 * MIB + 5)), "b.dat", "bytes 17825792 to 18874368 of".into()),
        (Box::new(|| flip(&path("a.000005.dat"), 2 * MIB + 5)), "a.000005.dat", "bytes 17825792 to 18874368".into()),
    ];
    for (harm, file, what) in cases {
        harm();
        let found = kept.recover();
        let lost = found.damaged.or(found.lost).unwrap_or_else(|| panic!("{file}: {what}"));
        assert!(lost.contains(file) && lost.contains(&what), "{lost}: {file}: {what}");
        kept.restore(&whole);
        assert_eq!(kept.recover().lost, None);
    }
}

/// One byte or all bytes behind one, in any file: what is certain is what was written, and what is earlier is compared.
#[test]
fn whatever_is_changed_is_told() {
    let kept = Kept::new();
    kept.write(18, MIB);
    let whole = kept.all();
    let words = whole.iter().filter(|(path, _)| path.extension().is_some_and(|is| is == "dat" || is == "hashes"));
    let mut random = fastrand::Rng::with_seed(7);
    for (path, content) in words {
        for _ in 0..6 {
            let at = random.usize(..content.len());
            if random.bool() {
                flip(path, at);
            } else {
                set_len(path, at as u64);
            }
            let Recovered { blocks, hashes, damaged, lost } = kept.recover();
            let compare = |sink: Box<dyn Stored>| differences(&*sink, (&hashes, blocks.end()), &mut |_| true);
            let differences: Vec<_> = kept.sinks().into_iter().flat_map(compare).collect();
            let is_told = damaged.or(lost).is_some() || !differences.is_empty();
            let is_unconfirmed = blocks.end() < 18 << 20 && blocks.end() >= (18 << 20) - UNCONFIRMED;
            assert!(is_told || is_unconfirmed, "{}: byte {at}", path.display());
            kept.restore(&whole);
        }
    }
}

#[test]
fn what_one_sink_has_of_several_pieces_is_certain() {
    let kept = Kept::new();
    let (data, hash) = (kept.path("b.dat"), kept.path("a.hashes"));
    let mut writer = Writer::at(0);
    let mut file = FileSink::create(&data, PlainFile::default(), FEB).unwrap();
    let mut hashes = HashSink::create(&hash, false).unwrap().with(true);
    writer.write(&mut [&mut file, &mut hashes], 3 * 8192);
    writer.write(&mut [&mut file, &mut hashes], 2 * 8192);
    // The file has made the first two safe, which are confirmed; the hashes have made all safe at once.
    writer.write(&mut [&mut hashes], 4 * 8192);
    hashes.sync().unwrap();
    let found = recover(&hash, &kept.sinks()[1..]).unwrap();
    assert_eq!((found.blocks.end(), found.lost), (5 * 8192, None));
    drop(hashes);
    hashes::cut(&hash, found.blocks.end()).unwrap();
    assert_eq!(fs::metadata(&hash).unwrap().len(), 2 * ENTRY_BYTES as u64);
}

#[test]
fn the_end_may_be_at_a_block_or_at_the_begin() {
    let kept = Kept::new();
    assert_eq!(kept.recover().lost, None, "nothing was written");
    kept.write(16, MIB);
    // What was written behind has no hash.
    for sink in kept.sinks() {
        let file = PathBuf::from(sink.place(u64::MAX));
        std::io::Write::write_all(&mut OpenOptions::new().append(true).open(file).unwrap(), &[7; 8192]).unwrap();
    }
    let Recovered { mut blocks, lost, .. } = kept.recover();
    assert_eq!((blocks.end(), blocks.rest(), lost), (HASHED_BYTES, None, None));
    kept.sinks().iter().for_each(|sink| sink.cut(HASHED_BYTES).unwrap());
    assert_eq!(kept.content().map(|content| content.len() as u64), [HASHED_BYTES; 2]);
    let mut next = None;
    blocks.update(&[7; 100], |_| Ok::<_, ()>(())).unwrap();
    next.replace(blocks.rest().unwrap().hash);
    assert_eq!(next, Some(blake3::hash(&[7; 100])));
}

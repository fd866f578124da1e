//! Words of a board: the dataset `words` (unsigned, 64 or 32 bits, one dimension, in chunks of 1 MiB). Attributes:
//! `feb` or `stream`, `start_time` (of the file, seconds since 1970), `first_word` (number of words in the earlier
//! files); for the words `word_bits`, `word_order`, `wire_word_order`, `firmware`, `protocol`; at the end
//! `dropped_bytes`.

use std::time::{SystemTime, UNIX_EPOCH};

use hdf5_metno::{Dataset, H5Type};

use super::files::Files;
use super::library::{column, set, set_text};
use crate::block::Block;
use crate::origin::{Origin, Sender};
use crate::parts::{FileOptions, Parts};
use crate::sink::{End, Result, Sink};

/// Bytes of a chunk.
const CHUNK: usize = 1 << 20;

/// The files.
pub struct WordsSink {
    files: Files,
    words: Option<Dataset>,
    origin: Origin,
    /// Bytes in the file.
    written: u64,
    /// Bytes in the files before it, which are finished.
    finished: u64,
}

impl WordsSink {
    /// Opens the first file. It has its structure when data comes.
    ///
    /// # Errors
    /// The library's; files of an earlier run.
    pub fn create(path: &str, options: FileOptions, board: Sender) -> Result<WordsSink> {
        let files = Files::create(path, options)?;
        Ok(WordsSink { files, words: None, origin: Origin::of(board), written: 0, finished: 0 })
    }

    /// The dataset, made for the words that come.
    fn words(&mut self) -> Result<Dataset> {
        if self.words.is_none() {
            let origin = self.origin;
            let (bits, first) = (origin.word_bits(), self.finished * 8 / u64::from(origin.word_bits()));
            let words = self.files.change(|file| {
                set_text(file, origin.board.key(), &origin.board.to_string())?;
                for (name, value) in origin.entries() {
                    set_text(file, name, &value)?;
                }
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
                set(file, "start_time", &now)?;
                set(file, "first_word", &first)?;
                set(file, "word_bits", &bits)?;
                if bits == 32 {
                    column::<u32>(file, "words", CHUNK / 4)
                } else {
                    column::<u64>(file, "words", CHUNK / 8)
                }
            })?;
            self.words = Some(words);
        }
        self.words.clone().ok_or_else(|| "no dataset".into())
    }

    fn append<T: H5Type + bytemuck::Pod>(&mut self, data: &[u8]) -> Result {
        let rows: &[T] = bytemuck::try_cast_slice(data).map_err(|error| error.to_string())?;
        let words = self.words()?;
        self.files.append(|| Ok(words), rows)?;
        self.written += data.len() as u64;
        Ok(())
    }

    fn close(&mut self, complete: bool, last: bool) -> Result {
        self.files.close(self.words.take(), complete, last)?;
        self.finished += std::mem::take(&mut self.written);
        Ok(())
    }
}

impl Sink<Block> for WordsSink {
    fn write(&mut self, block: &Block) -> Result {
        self.tick()?;
        self.origin = block.origin;
        if block.origin.word_bits() == 32 {
            self.append::<u32>(&block.data)
        } else {
            self.append::<u64>(&block.data)
        }
    }

    fn tick(&mut self) -> Result {
        if self.files.is_due(self.written) {
            self.close(true, false)?;
        }
        Ok(())
    }

    fn finish(&mut self, end: End) -> Result {
        // Of a transmission without a word too.
        self.words()?;
        self.files.change(|file| set(file, "dropped_bytes", &end.dropped))?;
        self.close(end.complete, true)
    }

    fn intact(&self) -> u64 {
        self.finished
    }

    fn files(&self) -> Option<&Parts> {
        Some(self.files.parts())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fadelink_receiver::Pool;
    use fadelink_wire::MacAddr;

    #[test]
    fn each_file_is_whole_when_it_has_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data.h5");
        let board = Sender::Feb(MacAddr([2, 0xfa, 0xde, 0, 0, 1]));
        let options = FileOptions { roll: Some(8192), ..FileOptions::default() };
        let mut sink = WordsSink::create(path.to_str().unwrap(), options, board).unwrap();
        let mut pool = Pool::new(1).unwrap();
        for i in 0..3u8 {
            assert_eq!(sink.intact(), 8192 * u64::from(i.saturating_sub(1)));
            pool.room().0.fill(i);
            sink.write(&Block { data: pool.lend(8192, 0), origin: Origin::of(board) }).unwrap();
        }
        assert!(folder.path().join("data.000002.h5.part").exists());
        sink.finish(End { complete: false, dropped: 5 }).unwrap();
        assert_eq!(sink.intact(), 3 * 8192);
        for (number, name) in ["data.h5", "data.000001.h5", "data.000002.h5"].iter().enumerate() {
            let file = hdf5_metno::File::open(folder.path().join(name)).unwrap();
            let words = file.dataset("words").unwrap().read_1d::<u64>().unwrap();
            assert!(words.len() == 1024 && words.iter().all(|word| *word == 0x0101_0101_0101_0101 * number as u64));
            let number_of = |name: &str| file.attr(name).unwrap().read_scalar::<u64>().unwrap();
            let last = number == 2;
            assert_eq!((number_of("part"), number_of("first_word")), (number as u64, number as u64 * 1024));
            assert_eq!((number_of("last"), number_of("complete")), (u64::from(last), u64::from(!last)));
        }
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 3, "no other file is left");
    }

    /// What another program writes into a file before it is finished is not taken for what the board has sent.
    #[test]
    fn words_that_were_changed_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data.h5");
        let board = Sender::Feb(MacAddr([2, 0xfa, 0xde, 0, 0, 1]));
        let mut sink = WordsSink::create(path.to_str().unwrap(), FileOptions::default(), board).unwrap();
        let mut pool = Pool::new(1).unwrap();
        pool.room().0.fill(7);
        sink.write(&Block { data: pool.lend(8192, 0), origin: Origin::of(board) }).unwrap();
        let part = folder.path().join("data.h5.part");
        sink.files.change(|file| file.flush().map_err(super::super::failed)).unwrap();
        let content = std::fs::read(&part).unwrap();
        let at = content.windows(16).rposition(|words| words == [7; 16]).unwrap();
        let other = std::fs::File::options().write(true).open(&part).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&other, &[8], at as u64).unwrap();
        let error = sink.finish(End { complete: true, dropped: 0 }).unwrap_err().to_string();
        assert!(error.contains("/words is not what was written: another program has changed it"), "{error}");
    }
}

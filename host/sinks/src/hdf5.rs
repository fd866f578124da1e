//! An HDF5 file: the dataset `words` (unsigned, of 64 bits or 32, one dimension, in chunks of 1 MiB) grows as data comes;
//! it is there from the first block on. Attributes of the file: `feb`, `start_time` (seconds since 1970), `complete` (0
//! until the end was seen), and of the words `word_bits`, `word_order`, `wire_word_order`, `firmware`, `protocol`.

use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

use fadelink_wire::MacAddr;
use hdf5_metno::types::VarLenUnicode;
use hdf5_metno::{Dataset, File, H5Type};

use crate::origin::Origin;
use crate::sink::{Block, Sink};

/// Bytes of a chunk.
const CHUNK: usize = 1 << 20;

/// The file.
pub struct Hdf5Sink {
    file: File,
    feb: MacAddr,
    words: Option<Dataset>,
    written: usize,
}

fn error(error: hdf5_metno::Error) -> io::Error {
    io::Error::other(error.to_string())
}

fn text(file: &File, name: &str, value: &str) -> hdf5_metno::Result<()> {
    let value: VarLenUnicode = value.parse().unwrap_or_default();
    file.new_attr::<VarLenUnicode>().create(name)?.write_scalar(&value)
}

impl Hdf5Sink {
    /// Creates the file, or empties it.
    ///
    /// # Errors
    /// The HDF5 library's.
    pub fn create(path: &str, feb: MacAddr) -> io::Result<Hdf5Sink> {
        let create = || -> hdf5_metno::Result<Hdf5Sink> {
            let file = File::create(path)?;
            text(&file, "feb", &feb.to_string())?;
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
            file.new_attr::<f64>().create("start_time")?.write_scalar(&now)?;
            file.new_attr::<u8>().create("complete")?.write_scalar(&0u8)?;
            Ok(Hdf5Sink { file, feb, words: None, written: 0 })
        };
        create().map_err(error)
    }

    /// The dataset, made for the words that come.
    fn words(&mut self, origin: &Origin) -> hdf5_metno::Result<Dataset> {
        if let Some(words) = &self.words {
            return Ok(words.clone());
        }
        for (name, value) in origin.entries() {
            text(&self.file, name, &value)?;
        }
        self.file.new_attr::<u32>().create("word_bits")?.write_scalar(&origin.word_bits())?;
        let words = if origin.word_bits() == 32 {
            self.file.new_dataset::<u32>().chunk(CHUNK / 4).shape(0..).create("words")?
        } else {
            self.file.new_dataset::<u64>().chunk(CHUNK / 8).shape(0..).create("words")?
        };
        self.words = Some(words.clone());
        Ok(words)
    }

    fn append<T: H5Type + bytemuck::AnyBitPattern>(&mut self, words: &Dataset, data: &[u8]) -> io::Result<()> {
        let data: &[T] = bytemuck::try_cast_slice(data).map_err(|e| io::Error::other(e.to_string()))?;
        let end = self.written + data.len();
        words.resize(end).and_then(|()| words.write_slice(data, self.written..end)).map_err(error)?;
        self.written = end;
        Ok(())
    }
}

impl Sink for Hdf5Sink {
    fn write(&mut self, block: &Block<'_>) -> io::Result<()> {
        let words = self.words(&block.origin).map_err(error)?;
        if block.origin.word_bits() == 32 {
            self.append::<u32>(&words, block.data)
        } else {
            self.append::<u64>(&words, block.data)
        }
    }

    fn finish(&mut self, complete: bool) -> io::Result<()> {
        // Of a transmission without a word too.
        self.words(&Origin::of(self.feb)).map_err(error)?;
        let attribute = self.file.attr("complete").and_then(|attribute| attribute.write_scalar(&u8::from(complete)));
        attribute.and_then(|()| self.file.flush()).map_err(error)
    }
}

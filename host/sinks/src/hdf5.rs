//! An HDF5 file: the dataset `words` (64-bit unsigned, one dimension, in chunks of 1 MiB) grows as data comes.
//! Attributes of the file: `feb`, `start_time` (seconds since 1970), `complete` (0 until the end was seen).

use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

use fadelink_wire::MacAddr;
use hdf5_metno::types::VarLenUnicode;
use hdf5_metno::{Dataset, File};

use crate::sink::{Block, Sink};

/// Words of a chunk.
const CHUNK: usize = 128 * 1024;

/// The file.
pub struct Hdf5Sink {
    file: File,
    words: Dataset,
    written: usize,
}

fn error(error: hdf5_metno::Error) -> io::Error {
    io::Error::other(error.to_string())
}

impl Hdf5Sink {
    /// Creates the file, or empties it.
    ///
    /// # Errors
    /// The HDF5 library's.
    pub fn create(path: &str, feb: MacAddr) -> io::Result<Hdf5Sink> {
        let create = || -> hdf5_metno::Result<Hdf5Sink> {
            let file = File::create(path)?;
            let name: VarLenUnicode = feb.to_string().parse().unwrap_or_default();
            file.new_attr::<VarLenUnicode>().create("feb")?.write_scalar(&name)?;
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
            file.new_attr::<f64>().create("start_time")?.write_scalar(&now)?;
            file.new_attr::<u8>().create("complete")?.write_scalar(&0u8)?;
            let words = file.new_dataset::<u64>().chunk(CHUNK).shape(0..).create("words")?;
            Ok(Hdf5Sink { file, words, written: 0 })
        };
        create().map_err(error)
    }
}

impl Sink for Hdf5Sink {
    fn write(&mut self, block: &Block<'_>) -> io::Result<()> {
        let data: &[u64] = bytemuck::try_cast_slice(block.data).map_err(|e| io::Error::other(e.to_string()))?;
        let end = self.written + data.len();
        self.words.resize(end).and_then(|()| self.words.write_slice(data, self.written..end)).map_err(error)?;
        self.written = end;
        Ok(())
    }

    fn finish(&mut self, complete: bool) -> io::Result<()> {
        let attribute = self.file.attr("complete").and_then(|attribute| attribute.write_scalar(&u8::from(complete)));
        attribute.and_then(|()| self.file.flush()).map_err(error)
    }
}

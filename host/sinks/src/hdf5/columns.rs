//! Columns of a file, to be found in it as they were written.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

use bytemuck::NoUninit;
use crc32fast::Hasher;
use hdf5_metno::{Dataset, H5Type};

use super::library::{failed, open};
use crate::made::Made;

/// Rows that are read at a time.
const PIECE: usize = 1 << 17;

/// One of them.
struct Column {
    rows: usize,
    /// CRC of them, which costs less than a hash: it is not written anywhere.
    crc: Hasher,
    /// Adds rows that are read.
    read: fn(&Dataset, Range<usize>, &mut Hasher) -> hdf5_metno::Result<()>,
}

fn read<T: H5Type + NoUninit>(dataset: &Dataset, rows: Range<usize>, crc: &mut Hasher) -> hdf5_metno::Result<()> {
    let rows = dataset.read_slice_1d::<T, _>(rows)?;
    crc.update(bytemuck::cast_slice(rows.as_slice().unwrap_or_default()));
    Ok(())
}

/// Those of a file, by name.
#[derive(Default)]
pub struct Columns(BTreeMap<String, Column>);

impl Columns {
    /// These rows are behind those before.
    pub fn add<T: H5Type + NoUninit>(&mut self, name: String, rows: &[T]) {
        let column = self.0.entry(name).or_insert_with(|| Column { rows: 0, crc: Hasher::new(), read: read::<T> });
        column.rows += rows.len();
        column.crc.update(bytemuck::cast_slice(rows));
    }

    /// Whether a file has them.
    ///
    /// # Errors
    /// The library's; one is not as it was written.
    pub fn check(&self, made: &Made) -> io::Result<()> {
        if self.0.is_empty() {
            return Ok(());
        }
        let file = open(made.path())?;
        for (name, Column { rows, crc, read }) in &self.0 {
            let dataset = file.dataset(name).map_err(failed)?;
            let mut found = Hasher::new();
            let (mut begin, size) = (0, dataset.size());
            while begin < size {
                let end = (begin + PIECE).min(size);
                read(&dataset, begin..end, &mut found).map_err(failed)?;
                begin = end;
            }
            // Rows that somebody has added would be read, too.
            if size != *rows || found.finalize() != crc.clone().finalize() {
                let text = format!("{name} is not what was written: another program has changed it");
                return Err(io::Error::other(text));
            }
        }
        Ok(())
    }
}

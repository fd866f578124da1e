//! An HDF5 file: group `hits` and group `windows`, each column a dataset of one dimension (see `table`). Attributes of
//! the file: `window_ns`, `complete` (0 until the end was seen).

use hdf5_metno::{Dataset, File, Group, H5Type};

use super::table::Table;
use super::writer::{Result, Run, Sink};
use crate::Event;

/// Rows of a chunk; so many are written at once.
const CHUNK: usize = 64 * 1024;

/// The file.
pub struct Hdf5Sink {
    file: File,
    hits: Group,
    windows: Group,
    table: Table,
    window_ticks: u32,
}

fn column<T: H5Type>(group: &Group, name: &str) -> hdf5_metno::Result<Dataset> {
    group.new_dataset::<T>().chunk(CHUNK).shape(0..).create(name)
}

fn append<T: H5Type>(group: &Group, name: &str, rows: &mut Vec<T>) -> hdf5_metno::Result<()> {
    let dataset = group.dataset(name)?;
    let begin = dataset.size();
    dataset.resize(begin + rows.len())?;
    dataset.write_slice(&rows[..], begin..begin + rows.len())?;
    rows.clear();
    Ok(())
}

impl Hdf5Sink {
    /// Creates the file, or empties it.
    pub fn create(path: &str, run: Run) -> Result<Hdf5Sink> {
        let file = File::create(path)?;
        let window_ns = run.window_ticks * fadelink_wire::fadc::TICK_NS;
        file.new_attr::<u32>().create("window_ns")?.write_scalar(&window_ns)?;
        file.new_attr::<u8>().create("complete")?.write_scalar(&0u8)?;
        let (hits, windows) = (file.create_group("hits")?, file.create_group("windows")?);
        column::<u64>(&hits, "window")?;
        column::<i64>(&hits, "time_ns")?;
        column::<u32>(&hits, "source")?;
        column::<u8>(&hits, "slot")?;
        column::<u8>(&hits, "channel")?;
        column::<u32>(&hits, "tick")?;
        column::<u16>(&hits, "charge")?;
        column::<u64>(&windows, "window")?;
        column::<i64>(&windows, "time_ns")?;
        for name in ["sources", "missing", "hits", "lost"] {
            column::<u32>(&windows, name)?;
        }
        Ok(Hdf5Sink { file, hits, windows, table: Table::default(), window_ticks: run.window_ticks })
    }

    fn write_rows(&mut self) -> Result<()> {
        if self.table.rows() == 0 {
            return Ok(());
        }
        let hits = &mut self.table.hits;
        append(&self.hits, "window", &mut hits.window)?;
        append(&self.hits, "time_ns", &mut hits.time_ns)?;
        append(&self.hits, "source", &mut hits.source)?;
        append(&self.hits, "slot", &mut hits.slot)?;
        append(&self.hits, "channel", &mut hits.channel)?;
        append(&self.hits, "tick", &mut hits.tick)?;
        append(&self.hits, "charge", &mut hits.charge)?;
        let windows = &mut self.table.windows;
        append(&self.windows, "window", &mut windows.window)?;
        append(&self.windows, "time_ns", &mut windows.time_ns)?;
        append(&self.windows, "sources", &mut windows.sources)?;
        append(&self.windows, "missing", &mut windows.missing)?;
        append(&self.windows, "hits", &mut windows.hits)?;
        append(&self.windows, "lost", &mut windows.lost)?;
        Ok(())
    }
}

impl Sink for Hdf5Sink {
    fn write(&mut self, event: &Event) -> Result<()> {
        self.table.add(event, self.window_ticks)?;
        if self.table.rows() >= CHUNK {
            self.write_rows()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        self.write_rows()?;
        self.file.flush()?;
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        self.write_rows()?;
        self.file.attr("complete")?.write_scalar(&1u8)?;
        self.file.flush()?;
        Ok(())
    }
}

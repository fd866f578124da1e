//! HDF5 files: groups `hits` and `windows`, with a one-dimensional dataset for each column (see `table`).
//! Attributes, in addition to those of all HDF5 files: `window_ns`; at the end `dropped_events`, `wrong_messages`.

use fadelink_sinks::hdf5::{column, failed, set, Files, NoUninit};
use fadelink_sinks::{End, FileOptions, Parts, Result, Sink};
use fadelink_wire::fadc::TICK_NS;
use hdf5_metno::{Group, H5Type};

use super::item::{Run, SharedEvent};
use super::table::Table;

/// Rows of a chunk; so many are written at once.
const CHUNK: usize = 64 * 1024;
/// Bytes of a row of either table, about.
const ROW_BYTES: u64 = 28;

/// The files.
pub struct Hdf5Sink {
    files: Files,
    columns: Option<Columns>,
    table: Table,
    window_ticks: u32,
    /// Events and rows of the file; events of those before it, which are finished.
    events: u64,
    rows: u64,
    finished: u64,
}

/// The groups `hits` and `windows`.
struct Columns {
    hits: Group,
    windows: Group,
}

fn write<T: H5Type + NoUninit>(files: &mut Files, group: &Group, name: &str, rows: &mut Vec<T>) -> Result {
    files.append(|| group.dataset(name).map_err(failed), rows)?;
    rows.clear();
    Ok(())
}

impl Columns {
    fn create(file: &hdf5_metno::File, window_ticks: u32) -> Result<Columns> {
        set(file, "window_ns", &(window_ticks * TICK_NS))?;
        let group = |name| file.create_group(name).map_err(failed);
        let (hits, windows) = (group("hits")?, group("windows")?);
        column::<u64>(&hits, "window", CHUNK)?;
        column::<i64>(&hits, "time_ns", CHUNK)?;
        column::<u32>(&hits, "source", CHUNK)?;
        column::<u8>(&hits, "slot", CHUNK)?;
        column::<u8>(&hits, "channel", CHUNK)?;
        column::<u32>(&hits, "tick", CHUNK)?;
        column::<u16>(&hits, "charge", CHUNK)?;
        column::<u64>(&windows, "window", CHUNK)?;
        column::<i64>(&windows, "time_ns", CHUNK)?;
        for name in ["sources", "missing", "hits", "lost"] {
            column::<u32>(&windows, name, CHUNK)?;
        }
        Ok(Columns { hits, windows })
    }

    fn append(&self, files: &mut Files, table: &mut Table) -> Result {
        let hits = &mut table.hits;
        write(files, &self.hits, "window", &mut hits.window)?;
        write(files, &self.hits, "time_ns", &mut hits.time_ns)?;
        write(files, &self.hits, "source", &mut hits.source)?;
        write(files, &self.hits, "slot", &mut hits.slot)?;
        write(files, &self.hits, "channel", &mut hits.channel)?;
        write(files, &self.hits, "tick", &mut hits.tick)?;
        write(files, &self.hits, "charge", &mut hits.charge)?;
        let windows = &mut table.windows;
        write(files, &self.windows, "window", &mut windows.window)?;
        write(files, &self.windows, "time_ns", &mut windows.time_ns)?;
        write(files, &self.windows, "sources", &mut windows.sources)?;
        write(files, &self.windows, "missing", &mut windows.missing)?;
        write(files, &self.windows, "hits", &mut windows.hits)?;
        write(files, &self.windows, "lost", &mut windows.lost)
    }
}

impl Hdf5Sink {
    /// Opens the first file.
    pub fn create(path: &str, options: FileOptions, run: &Run) -> Result<Hdf5Sink> {
        let files = Files::create(path, options)?;
        let (table, window_ticks) = (Table::default(), run.window_ticks);
        Ok(Hdf5Sink { files, columns: None, table, window_ticks, events: 0, rows: 0, finished: 0 })
    }

    fn write_rows(&mut self) -> Result {
        let Hdf5Sink { files, columns, table, window_ticks, rows, .. } = self;
        let columns = match columns {
            Some(columns) => columns,
            none => none.insert(files.change(|file| Columns::create(file, *window_ticks))?),
        };
        *rows += table.rows() as u64;
        if table.rows() > 0 {
            columns.append(files, table)?;
        }
        Ok(())
    }

    fn close(&mut self, complete: bool, last: bool) -> Result {
        self.files.close(self.columns.take(), complete, last)?;
        self.finished += std::mem::take(&mut self.events);
        self.rows = 0;
        Ok(())
    }
}

impl Sink<SharedEvent> for Hdf5Sink {
    fn write(&mut self, event: &SharedEvent) -> Result {
        self.table.add(&event.0, self.window_ticks);
        self.events += 1;
        if self.table.rows() >= CHUNK {
            self.write_rows()?;
        }
        Ok(())
    }

    fn tick(&mut self) -> Result {
        if self.table.rows() > 0 {
            self.write_rows()?;
        }
        if self.files.is_due(self.rows * ROW_BYTES) {
            self.close(true, false)?;
        }
        Ok(())
    }

    fn finish(&mut self, end: End) -> Result {
        self.write_rows()?;
        let wrong = self.table.wrong;
        self.files.change(|file| {
            set(file, "dropped_events", &end.dropped)?;
            set(file, "wrong_messages", &wrong)
        })?;
        self.close(end.complete, true)
    }

    fn intact(&self) -> u64 {
        self.finished
    }

    fn files(&self) -> Option<&Parts> {
        Some(self.files.parts())
    }
}

//! An Apache Parquet file of the hits, a row each, and beside it one of the windows: `x.parquet`, `x.windows.parquet`.
//! Columns: see `table`. The files can be read when they were finished.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::data_type::{DataType, Int32Type, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use super::table::Table;
use super::writer::{Result, Run, Sink};
use crate::Event;

/// Rows of a row group.
const GROUP: usize = 1 << 18;

const HITS: &str = "message hits {
    required int64 window (INTEGER(64,false));
    required int64 time_ns (TIMESTAMP(NANOS,true));
    required int32 source (INTEGER(32,false));
    required int32 slot (INTEGER(8,false));
    required int32 channel (INTEGER(8,false));
    required int32 tick (INTEGER(32,false));
    required int32 charge (INTEGER(16,false));
}";
const WINDOWS: &str = "message windows {
    required int64 window (INTEGER(64,false));
    required int64 time_ns (TIMESTAMP(NANOS,true));
    required int32 sources (INTEGER(32,false));
    required int32 missing (INTEGER(32,false));
    required int32 hits (INTEGER(32,false));
    required int32 lost (INTEGER(32,false));
}";

/// The files.
pub struct ParquetSink {
    hits: Option<SerializedFileWriter<File>>,
    windows: Option<SerializedFileWriter<File>>,
    table: Table,
    window_ticks: u32,
}

fn create(path: &Path, schema: &str) -> Result<SerializedFileWriter<File>> {
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let schema = Arc::new(parse_message_type(schema)?);
    Ok(SerializedFileWriter::new(File::create(path)?, schema, Arc::new(properties))?)
}

fn column<T: DataType>(group: &mut SerializedRowGroupWriter<'_, File>, rows: &[T::T]) -> Result<()> {
    let mut column = group.next_column()?.ok_or("a column more than the schema has")?;
    column.typed::<T>().write_batch(rows, None, None)?;
    column.close()?;
    Ok(())
}

/// Parquet's integers are signed; the schema tells which are not.
fn int64(rows: &mut Vec<u64>) -> Vec<i64> {
    rows.drain(..).map(u64::cast_signed).collect()
}

fn int32<T: Into<u32>>(rows: &mut Vec<T>) -> Vec<i32> {
    rows.drain(..).map(|value| value.into().cast_signed()).collect()
}

impl ParquetSink {
    /// Creates the files, or empties them.
    pub fn create(path: &str, run: Run) -> Result<ParquetSink> {
        let path = Path::new(path);
        Ok(ParquetSink {
            hits: Some(create(path, HITS)?),
            windows: Some(create(&path.with_extension("windows.parquet"), WINDOWS)?),
            table: Table::default(),
            window_ticks: run.window_ticks,
        })
    }

    fn write_group(&mut self) -> Result<()> {
        if let Some(writer) = self.hits.as_mut().filter(|_| !self.table.hits.window.is_empty()) {
            let rows = &mut self.table.hits;
            let mut group = writer.next_row_group()?;
            column::<Int64Type>(&mut group, &int64(&mut rows.window))?;
            column::<Int64Type>(&mut group, &std::mem::take(&mut rows.time_ns))?;
            column::<Int32Type>(&mut group, &int32(&mut rows.source))?;
            column::<Int32Type>(&mut group, &int32(&mut rows.slot))?;
            column::<Int32Type>(&mut group, &int32(&mut rows.channel))?;
            column::<Int32Type>(&mut group, &int32(&mut rows.tick))?;
            column::<Int32Type>(&mut group, &int32(&mut rows.charge))?;
            group.close()?;
        }
        if let Some(writer) = self.windows.as_mut().filter(|_| !self.table.windows.window.is_empty()) {
            let rows = &mut self.table.windows;
            let mut group = writer.next_row_group()?;
            column::<Int64Type>(&mut group, &int64(&mut rows.window))?;
            column::<Int64Type>(&mut group, &std::mem::take(&mut rows.time_ns))?;
            column::<Int32Type>(&mut group, &int32(&mut rows.sources))?;
            column::<Int32Type>(&mut group, &int32(&mut rows.missing))?;
            column::<Int32Type>(&mut group, &int32(&mut rows.hits))?;
            column::<Int32Type>(&mut group, &int32(&mut rows.lost))?;
            group.close()?;
        }
        Ok(())
    }
}

impl Sink for ParquetSink {
    fn write(&mut self, event: &Event) -> Result<()> {
        self.table.add(event, self.window_ticks)?;
        if self.table.rows() >= GROUP {
            self.write_group()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        // Small row groups would make the file slow to read, and it cannot be read before its end anyway.
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        self.write_group()?;
        for writer in [self.hits.take(), self.windows.take()].into_iter().flatten() {
            writer.close()?;
        }
        Ok(())
    }
}

//! Apache Parquet files: hits in `x.parquet`, windows in `x.windows.parquet`, one row for each. Columns: see
//! `table`. A file can be read when it is finished; before that its name ends in `.part`. Metadata: `part` (its
//! number) and `last` (no file follows) in all files, `complete` (the whole run is there) in the last one.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fadelink_sinks::{End, FileOptions, Output, Parts, Places, Result, Sink, WINDOWS_END};
use parquet::basic::Compression;
use parquet::data_type::{DataType, Int32Type, Int64Type};
use parquet::file::metadata::{FileMetaData, KeyValue, ParquetMetaData, ParquetMetaDataWriter, RowGroupMetaData};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::SchemaDescriptor;

use super::item::{Run, SharedEvent};
use super::table::Table;

/// Rows of a row group.
const GROUP: usize = 1 << 18;
/// Row groups of a file: its format numbers them with 15 bits.
const GROUPS: usize = 32_000;

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
    parts: Parts,
    /// The first ones, until there is something to be written.
    claimed: Option<Outputs>,
    tables: Option<Tables>,
    table: Table,
    window_ticks: u32,
    /// Rows of a row group, row groups of a file: smaller in tests.
    limits: (usize, usize),
    /// Events of the file, of its row groups, and of the files before it, which are finished.
    events: u64,
    grouped: u64,
    finished: u64,
    /// A file could not be finished.
    is_broken: bool,
}

/// The files of hits and of windows of one part.
type Outputs = [Output; 2];

/// What is written into them.
struct Tables {
    hits: Writer,
    windows: Writer,
}

/// One file.
struct Writer {
    /// None when it has failed.
    writer: Option<SerializedFileWriter<fadelink_sinks::Writer>>,
    /// The same file, for what the writer cannot do.
    output: Output,
    schema: Arc<parquet::schema::types::Type>,
    /// The row groups that are in the file, and its length up to their end.
    groups: Vec<RowGroupMetaData>,
    bytes: u64,
}

/// Names of both.
pub fn places(path: &str, options: FileOptions) -> [Places; 2] {
    let hits = Places::new(path, options.rolls());
    [hits.beside(WINDOWS_END), hits]
}

/// The file of windows beside one of hits.
pub fn windows(hits: &Path) -> PathBuf {
    Places::new(hits, false).beside(WINDOWS_END).path(0)
}

fn column<T: DataType>(group: &mut SerializedRowGroupWriter<'_, fadelink_sinks::Writer>, rows: &[T::T]) -> Result {
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

impl Writer {
    fn begin(parts: &mut Parts, mut output: Output, schema: &str) -> Result<Writer> {
        parts.begin(&mut output)?;
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let schema = Arc::new(parse_message_type(schema)?);
        let mut writer = SerializedFileWriter::new(output.writer()?, schema.clone(), Arc::new(properties))?;
        writer.flush()?;
        let bytes = writer.bytes_written() as u64;
        Ok(Writer { writer: Some(writer), output, schema, groups: Vec::new(), bytes })
    }

    /// Writes a row group with the columns that `fill` gives; it is in the file then.
    fn group(
        &mut self,
        fill: impl FnOnce(&mut SerializedRowGroupWriter<'_, fadelink_sinks::Writer>) -> Result,
    ) -> Result {
        let writer = self.writer.as_mut().ok_or("the file has failed before")?;
        let write = || -> Result {
            let mut group = writer.next_row_group()?;
            fill(&mut group)?;
            let metadata = group.close()?;
            writer.flush()?;
            self.groups.push((*metadata).clone());
            self.bytes = writer.bytes_written() as u64;
            Ok(())
        };
        let result = write();
        if result.is_err() {
            self.writer = None;
        }
        result
    }

    /// Ends the file. One that has failed ends behind the row groups that are in it.
    fn finish(&mut self, parts: &mut Parts, notes: &[(&str, String)]) -> Result {
        let notes = notes.iter().map(|(key, value)| KeyValue::new((*key).to_owned(), value.clone()));
        match self.writer.take() {
            Some(mut writer) => {
                notes.for_each(|note| writer.append_key_value_metadata(note));
                writer.finish()?;
                self.bytes = writer.bytes_written() as u64;
            }
            None => {
                self.output.file().set_len(self.bytes)?;
                let rows = self.groups.iter().map(RowGroupMetaData::num_rows).sum();
                let schema = Arc::new(SchemaDescriptor::new(self.schema.clone()));
                let metadata = FileMetaData::new(1, rows, None, Some(notes.collect()), schema, None);
                let metadata = ParquetMetaData::new(metadata, std::mem::take(&mut self.groups));
                let mut footer = Vec::new();
                ParquetMetaDataWriter::new(&mut footer, &metadata).finish()?;
                self.output.writer()?.write_all(&footer)?;
                self.bytes += footer.len() as u64;
            }
        }
        Ok(parts.finish(&self.output, self.bytes)?)
    }
}

fn claim(parts: &mut Parts) -> std::io::Result<Outputs> {
    let hits = parts.path();
    Ok([parts.create_unfinished(&hits)?, parts.create_unfinished(&windows(&hits))?])
}

impl Tables {
    fn begin(parts: &mut Parts, [hits, windows]: Outputs) -> Result<Tables> {
        Ok(Tables { hits: Writer::begin(parts, hits, HITS)?, windows: Writer::begin(parts, windows, WINDOWS)? })
    }

    fn append(&mut self, table: &mut Table) -> Result {
        let rows = &mut table.hits;
        if !rows.window.is_empty() {
            self.hits.group(|group| {
                column::<Int64Type>(group, &int64(&mut rows.window))?;
                column::<Int64Type>(group, &std::mem::take(&mut rows.time_ns))?;
                column::<Int32Type>(group, &int32(&mut rows.source))?;
                column::<Int32Type>(group, &int32(&mut rows.slot))?;
                column::<Int32Type>(group, &int32(&mut rows.channel))?;
                column::<Int32Type>(group, &int32(&mut rows.tick))?;
                column::<Int32Type>(group, &int32(&mut rows.charge))
            })?;
        }
        let rows = &mut table.windows;
        if !rows.window.is_empty() {
            self.windows.group(|group| {
                column::<Int64Type>(group, &int64(&mut rows.window))?;
                column::<Int64Type>(group, &std::mem::take(&mut rows.time_ns))?;
                column::<Int32Type>(group, &int32(&mut rows.sources))?;
                column::<Int32Type>(group, &int32(&mut rows.missing))?;
                column::<Int32Type>(group, &int32(&mut rows.hits))?;
                column::<Int32Type>(group, &int32(&mut rows.lost))
            })?;
        }
        Ok(())
    }

    /// Bytes of both files.
    fn bytes(&self) -> u64 {
        self.hits.bytes + self.windows.bytes
    }

    /// Row groups of the one that has more.
    fn groups(&self) -> usize {
        self.hits.groups.len().max(self.windows.groups.len())
    }
}

impl ParquetSink {
    /// Opens the first files.
    pub fn create(path: &str, options: FileOptions, run: &Run) -> Result<ParquetSink> {
        let mut parts = Parts::new(path, options).and_beside(WINDOWS_END);
        let claimed = Some(claim(&mut parts)?);
        Ok(ParquetSink {
            parts,
            claimed,
            tables: None,
            table: Table::default(),
            window_ticks: run.window_ticks,
            limits: (GROUP, GROUPS),
            events: 0,
            grouped: 0,
            finished: 0,
            is_broken: false,
        })
    }

    /// Begins the files, if they have not.
    fn begin(&mut self) -> Result {
        if self.tables.is_none() {
            let outputs = self.claimed.take().map_or_else(|| claim(&mut self.parts), Ok)?;
            self.tables = Some(Tables::begin(&mut self.parts, outputs)?);
        }
        Ok(())
    }

    fn write_group(&mut self) -> Result {
        if self.is_broken {
            return Ok(());
        }
        self.begin()?;
        if let Some(tables) = &mut self.tables {
            tables.append(&mut self.table)?;
        }
        self.grouped = self.events;
        Ok(())
    }

    /// Ends both files, also if one of them fails.
    fn close(&mut self, complete: bool, end: Option<End>) -> Result {
        let Some(mut tables) = self.tables.take() else { return Ok(()) };
        let mut notes = vec![
            ("complete", complete.to_string()),
            ("part", self.parts.number().to_string()),
            ("last", end.is_some().to_string()),
        ];
        if let Some(end) = end {
            notes.push(("dropped_events", end.dropped.to_string()));
            notes.push(("wrong_messages", self.table.wrong.to_string()));
        }
        let parts = &mut self.parts;
        let (hits, windows) = (tables.hits.finish(parts, &notes), tables.windows.finish(parts, &notes));
        self.is_broken = hits.is_err() || windows.is_err();
        hits.and(windows)?;
        self.finished += std::mem::take(&mut self.grouped);
        self.events = 0;
        self.parts.advance();
        Ok(())
    }
}

impl Sink<SharedEvent> for ParquetSink {
    fn write(&mut self, event: &SharedEvent) -> Result {
        if self.claimed.is_some() {
            self.begin()?;
        }
        self.table.add(&event.0, self.window_ticks);
        self.events += 1;
        if self.table.rows() >= self.limits.0 {
            self.write_group()?;
        }
        if self.tables.as_ref().is_some_and(|tables| tables.groups() >= self.limits.1) {
            self.close(true, None)?;
        }
        Ok(())
    }

    fn tick(&mut self) -> Result {
        let bytes = self.tables.as_ref().map_or(0, Tables::bytes);
        // Small row groups would make the file slow to read: what waits is written when it ends.
        if self.events > 0 && self.parts.is_due(bytes.max(1)) {
            self.write_group()?;
            self.close(true, None)?;
        }
        Ok(())
    }

    fn finish(&mut self, end: End) -> Result {
        // The file is ended also if the rows that wait cannot be written.
        let written = self.write_group();
        let closed = self.close(end.complete && written.is_ok(), Some(end));
        written.and(closed)
    }

    fn intact(&self) -> u64 {
        self.finished
    }

    fn files(&self) -> Option<&Parts> {
        Some(&self.parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Event;
    use fadelink_wire::fadc::{Header, FORMAT_VERSION};
    use std::fs::File;

    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;

    const END: End = End { complete: true, dropped: 0 };

    /// An event with a hit a word.
    fn event(record: u64, words: &[u32]) -> SharedEvent {
        let header = Header::new(1, FORMAT_VERSION, record, (1, 0), words.len() * 4);
        let mut message = header.emit().to_vec();
        message.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        message.resize(header.total_length as usize, 0);
        let parts = vec![message.into_boxed_slice()];
        SharedEvent(Arc::new(Event { record, time: (1, 0), parts, missing: Vec::new(), is_late: false }))
    }

    fn sink(path: &Path, limits: (usize, usize)) -> ParquetSink {
        let run = Run { builder_id: 1, window_ticks: 1024, stopping: Arc::default(), turned_away: |_| {} };
        let mut sink = ParquetSink::create(path.to_str().unwrap(), FileOptions::default(), &run).unwrap();
        sink.limits = limits;
        sink
    }

    /// The windows of the rows, and what the metadata say.
    fn read(path: &Path) -> (Vec<u64>, Vec<String>) {
        let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
        let windows = reader.get_row_iter(None).unwrap().map(|row| row.unwrap().get_ulong(0).unwrap()).collect();
        let notes = reader.metadata().file_metadata().key_value_metadata().unwrap();
        let notes = notes.iter().filter(|note| note.key != "ARROW:schema");
        (windows, notes.map(|note| format!("{}={}", note.key, note.value.as_deref().unwrap())).collect())
    }

    #[test]
    fn a_file_never_has_more_row_groups_than_its_format_numbers() {
        let folder = tempfile::tempdir().unwrap();
        let mut sink = sink(&folder.path().join("x.parquet"), (2, 3));
        (0..8).for_each(|i| sink.write(&event(i, &[])).unwrap());
        sink.finish(END).unwrap();
        assert_eq!(sink.intact(), 8);
        let (windows, notes) = read(&folder.path().join("x.windows.parquet"));
        assert_eq!(
            (windows, &notes[..3]),
            (vec![0, 1, 2, 3, 4, 5], &["complete=true", "part=0", "last=false"].map(str::to_owned)[..])
        );
        let (windows, notes) = read(&folder.path().join("x.000001.windows.parquet"));
        assert_eq!((windows, &notes[2]), (vec![6, 7], &"last=true".to_owned()));
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 4, "no other file is left");
    }

    /// Also when the sink is ended after that: no other file takes its place.
    #[test]
    fn nothing_of_a_file_that_could_not_be_finished_is_intact() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.parquet");
        let run = Run { builder_id: 1, window_ticks: 1024, stopping: Arc::default(), turned_away: |_| {} };
        let options = FileOptions { overwrite: true, ..FileOptions::default() };
        let mut sink = ParquetSink::create(path.to_str().unwrap(), options, &run).unwrap();
        sink.limits = (1, 2);
        sink.write(&event(0, &[])).unwrap();
        std::fs::remove_file(folder.path().join("x.windows.parquet.part")).unwrap();
        assert!(sink.write(&event(1, &[])).is_err());
        let _ = sink.finish(END);
        assert_eq!(sink.intact(), 0);
        assert!(!folder.path().join("x.windows.parquet").exists());
    }

    #[test]
    fn a_wrong_word_ends_its_message_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.parquet");
        let mut sink = sink(&path, (1000, 3));
        // The header of slot 3, then hits.
        sink.write(&event(0, &[0x8000_8003, 5, u32::MAX, 6])).unwrap();
        sink.write(&event(1, &[0x8000_8003, 7])).unwrap();
        sink.finish(END).unwrap();
        assert_eq!((sink.table.wrong, sink.intact(), read(&path).0), (1, 2, vec![0, 1]));
    }

    #[test]
    fn a_file_that_failed_ends_behind_what_is_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.parquet");
        let mut sink = sink(&path, (2, 100));
        (0..4).for_each(|i| sink.write(&event(i, &[])).unwrap());
        let windows = &mut sink.tables.as_mut().unwrap().windows;
        let failed = windows.group(|group| {
            column::<Int64Type>(group, &[7])?;
            Err("the disk is full".into())
        });
        assert!(failed.is_err());
        sink.write(&event(4, &[])).unwrap();
        assert!(sink.write(&event(5, &[])).is_err());
        assert!(sink.finish(END).is_err());
        assert_eq!(sink.intact(), 4);
        let (windows, notes) = read(&folder.path().join("x.windows.parquet"));
        assert_eq!((windows, &notes[0]), (vec![0, 1, 2, 3], &"complete=false".to_owned()));
        assert_eq!(read(&path).0, Vec::<u64>::new());
    }
}

//! Plain files of the crates' messages, as they came: those of each event one after the other, in the order of their sources. It
//! is the format of a crate's connection, so each message has its length in its header.

use std::io::{self, Write};

use fadelink_sinks::{End, FileOptions, Output, Parts, Result, Sink};

use super::item::SharedEvent;

/// Bytes that are written at once.
const BUFFER: usize = 1 << 20;

/// The files.
pub struct MessagesSink {
    parts: Parts,
    /// `None`: it is finished, and there is no other one.
    output: Option<Output>,
    /// What is not written yet. No `BufWriter`, which writes it when it is dropped, also behind what has failed.
    buffer: Vec<u8>,
    /// Bytes of the file, and how many of them are surely in it.
    bytes: u64,
    kept: u64,
    /// Events that were written, and how many of them are surely in files.
    events: u64,
    intact: u64,
    /// Events of the files before.
    finished: u64,
    /// A write has failed: some of what it has written is behind `kept`.
    has_failed: bool,
}

impl MessagesSink {
    /// Opens the first file.
    pub fn create(path: &str, options: FileOptions) -> Result<MessagesSink> {
        let mut parts = Parts::new(path, options);
        let output = Some(parts.create_unfinished(&parts.path())?);
        Ok(MessagesSink {
            parts,
            output,
            buffer: Vec::new(),
            bytes: 0,
            kept: 0,
            events: 0,
            intact: 0,
            finished: 0,
            has_failed: false,
        })
    }

    /// Writes the buffer. After an error the file counts only up to where it was whole before.
    fn write_buffer(&mut self) -> io::Result<()> {
        let Some(output) = &mut self.output else { return Ok(()) };
        self.parts.begin(output)?;
        let result = output.writer().and_then(|mut writer| writer.write_all(&self.buffer));
        self.buffer.clear();
        if result.is_err() {
            self.has_failed = true;
            (self.bytes, self.events) = (self.kept, self.intact);
        }
        result
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.output.is_none() {
            return Ok(());
        }
        self.write_buffer()?;
        (self.kept, self.intact) = (self.bytes, self.events);
        Ok(())
    }

    /// Ends the file; one that could not be written ends behind what is surely in it.
    fn close(&mut self) -> io::Result<()> {
        let flushed = self.flush();
        let Some(output) = self.output.take() else { return Ok(()) };
        if flushed.is_err() || self.has_failed {
            output.file().set_len(self.kept)?;
        }
        if let Err(error) = self.parts.finish(&output, self.kept) {
            // What the kernel could not write may be any part of the file.
            self.intact = self.finished;
            return Err(error);
        }
        self.finished = self.intact;
        flushed
    }
}

impl Sink<SharedEvent> for MessagesSink {
    fn write(&mut self, event: &SharedEvent) -> Result {
        for part in &event.0.parts {
            self.buffer.extend_from_slice(part);
            self.bytes += part.len() as u64;
        }
        self.events += 1;
        if self.buffer.len() >= BUFFER {
            self.write_buffer()?;
        }
        Ok(())
    }

    fn tick(&mut self) -> Result {
        self.flush()?;
        if self.parts.is_due(self.bytes) {
            self.close()?;
            self.output = Some(self.parts.next(|parts| parts.create_unfinished(&parts.path()))?);
            (self.bytes, self.kept) = (0, 0);
        }
        Ok(())
    }

    fn finish(&mut self, _end: End) -> Result {
        Ok(self.close()?)
    }

    fn intact(&self) -> u64 {
        self.intact
    }

    fn files(&self) -> Option<&Parts> {
        Some(&self.parts)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::Event;

    #[test]
    fn messages_are_there_as_they_came() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("messages.dat");
        let options = FileOptions { roll: Some(1), ..FileOptions::default() };
        let mut sink = MessagesSink::create(path.to_str().unwrap(), options).unwrap();
        let event = |parts: &[&[u8]]| {
            let parts = parts.iter().map(|part| (*part).into()).collect();
            SharedEvent(Arc::new(Event { record: 0, time: (0, 0), parts, missing: vec![], is_late: false }))
        };
        sink.write(&event(&[b"ab", b"cde"])).unwrap();
        sink.write(&event(&[])).unwrap();
        assert_eq!(sink.intact(), 0);
        sink.tick().unwrap();
        assert_eq!((sink.intact(), std::fs::read(&path).unwrap()), (2, b"abcde".to_vec()));
        sink.write(&event(&[b"f"])).unwrap();
        sink.finish(End { complete: true, dropped: 0 }).unwrap();
        let files = Parts::found(&path, options);
        assert_eq!(
            files.iter().map(|file| std::fs::read(file).unwrap()).collect::<Vec<_>>(),
            [b"abcde".to_vec(), b"f".to_vec()]
        );
        assert_eq!(sink.intact(), 3);
    }

    /// Also when the sink is ended after that.
    #[test]
    fn nothing_of_a_file_that_could_not_be_finished_is_intact() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("messages.dat");
        let options = FileOptions { roll: Some(1), ..FileOptions::default() };
        let mut sink = MessagesSink::create(path.to_str().unwrap(), options).unwrap();
        let event = Event { record: 0, time: (0, 0), parts: vec![[1; 8].into()], missing: vec![], is_late: false };
        let event = SharedEvent(Arc::new(event));
        sink.write(&event).unwrap();
        sink.tick().unwrap();
        sink.write(&event).unwrap();
        std::fs::remove_file(folder.path().join("messages.000001.dat.part")).unwrap();
        assert!(sink.tick().is_err());
        sink.write(&event).unwrap();
        let _ = sink.finish(End { complete: false, dropped: 0 });
        assert_eq!(sink.intact(), 1, "of the file before");
    }

    #[test]
    fn a_file_that_could_not_be_written_ends_with_a_whole_event() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("messages.dat");
        let mut sink = MessagesSink::create(path.to_str().unwrap(), FileOptions::default()).unwrap();
        let event = |byte: u8| {
            let parts = vec![vec![byte; 1000].into()];
            SharedEvent(Arc::new(Event { record: 0, time: (0, 0), parts, missing: vec![], is_late: false }))
        };
        sink.write(&event(1)).unwrap();
        sink.tick().unwrap();
        // What is written behind the longest file of a file system fails.
        let longest = [i64::MAX as u64, (1 << 44) - 4096];
        let file = sink.output.as_ref().unwrap().file();
        assert!(longest.iter().any(|length| file.set_len(*length).is_ok()));
        sink.write(&event(2)).unwrap();
        assert!(sink.tick().is_err());
        assert_eq!((sink.kept, sink.intact()), (1000, 1));
        sink.finish(End { complete: false, dropped: 0 }).unwrap();
        drop(sink);
        assert_eq!(std::fs::read(&path).unwrap(), [1; 1000]);
    }
}

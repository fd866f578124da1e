//! Plain files of the crates' messages, as they came: those of each event one after the other, in the order of their sources. It
//! is the format of a crate's connection, so each message has its length in its header.

use std::fs::File;
use std::io::{BufWriter, Write};

use fadelink_sinks::{durable, End, FileOptions, Parts, Result, Sink};

use super::item::SharedEvent;

/// Bytes that are written at once.
const BUFFER: usize = 1 << 20;

/// The files.
pub struct MessagesSink {
    parts: Parts,
    file: BufWriter<File>,
    /// Bytes of the file, and how many of them are surely in it.
    bytes: u64,
    kept: u64,
    /// Events that were written, and how many of them are surely in files.
    events: u64,
    intact: u64,
}

fn create(parts: &Parts) -> Result<BufWriter<File>> {
    Ok(BufWriter::with_capacity(BUFFER, File::create(durable::unfinished(&parts.path()))?))
}

impl MessagesSink {
    /// Creates the first file.
    pub fn create(path: &str, options: FileOptions) -> Result<MessagesSink> {
        let parts = Parts::new(path, options)?;
        let file = create(&parts)?;
        Ok(MessagesSink { parts, file, bytes: 0, kept: 0, events: 0, intact: 0 })
    }

    fn flush(&mut self) -> Result {
        self.file.flush()?;
        (self.kept, self.intact) = (self.bytes, self.events);
        Ok(())
    }

    /// Ends the file; one that could not be written ends behind what is surely in it.
    fn close(&mut self) -> Result {
        let flushed = self.flush();
        self.file.get_ref().set_len(self.kept)?;
        durable::finish(&self.parts.path())?;
        flushed
    }
}

impl Sink<SharedEvent> for MessagesSink {
    fn write(&mut self, event: &SharedEvent) -> Result {
        for part in &event.0.parts {
            self.file.write_all(part)?;
            self.bytes += part.len() as u64;
        }
        self.events += 1;
        Ok(())
    }

    fn tick(&mut self) -> Result {
        self.flush()?;
        if self.parts.is_due(self.bytes) {
            self.close()?;
            self.parts.advance();
            self.file = create(&self.parts)?;
            (self.bytes, self.kept) = (0, 0);
        }
        Ok(())
    }

    fn finish(&mut self, _end: End) -> Result {
        self.close()
    }

    fn intact(&self) -> u64 {
        self.intact
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
}

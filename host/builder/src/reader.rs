//! Splits a stream of bytes into messages.

use std::io::{self, Read};

use fadelink_wire::fadc::{Error, Header, FORMAT_VERSION, HEADER_BYTES};

use crate::event::Bytes;

/// Bytes that are read at once.
const BLOCK: usize = 256 * 1024;

/// What a stream held.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Counts {
    /// Whole messages.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes that belonged to no message, as the stream began or went on inside one.
    pub skipped_bytes: u64,
    /// Times that no message began where the one before had ended.
    pub resyncs: u64,
    /// Bytes of a message whose end did not come.
    pub cut_bytes: u64,
}

/// Reads messages.
pub struct MessageReader<R> {
    input: R,
    buffer: Vec<u8>,
    begin: usize,
    end: usize,
    in_sync: bool,
    counts: Counts,
    /// Messages may be missing before those that come next.
    has_gap: bool,
    /// Where what was skipped first began, and why no message begins there.
    skipped: Option<(u64, Error)>,
}

impl<R: Read> MessageReader<R> {
    /// Reads from `input`.
    pub fn new(input: R) -> MessageReader<R> {
        MessageReader {
            input,
            buffer: vec![0; BLOCK],
            begin: 0,
            end: 0,
            in_sync: true,
            counts: Counts::default(),
            has_gap: false,
            skipped: None,
        }
    }

    /// Whether messages may be missing before those that the last call has given.
    pub fn take_gap(&mut self) -> bool {
        std::mem::take(&mut self.has_gap)
    }

    /// Byte where what was skipped first began, and why no message begins there.
    pub fn skipped(&self) -> Option<(u64, Error)> {
        self.skipped
    }

    /// What came so far.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Makes `need` bytes be there; false: the stream has ended before.
    fn fill(&mut self, need: usize) -> io::Result<bool> {
        while self.end - self.begin < need {
            if self.begin > 0 && self.buffer.len() - self.begin < need.max(BLOCK / 2) {
                self.buffer.copy_within(self.begin..self.end, 0);
                self.end -= self.begin;
                self.begin = 0;
            }
            if self.end == self.buffer.len() {
                // As it comes: a header may tell any length.
                self.buffer.resize(need.min(2 * self.buffer.len()), 0);
            }
            match self.input.read(&mut self.buffer[self.end..]) {
                Ok(0) => return Ok(false),
                Ok(got) => self.end += got,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Waits for a message and adds it, and all that have come with it, to `out`; false: the stream has ended. What is
    /// not a message is skipped and counted; then [`Self::take_gap`] is true of the messages behind it. After an error it may be
    /// called again.
    ///
    /// # Errors
    /// The input's.
    pub fn next_messages(&mut self, out: &mut Vec<Bytes>) -> io::Result<bool> {
        let before = out.len();
        loop {
            let there = self.end - self.begin;
            let whole = out.len() > before;
            if whole && there < HEADER_BYTES {
                return Ok(true);
            }
            if !self.fill(HEADER_BYTES)? {
                self.give_up();
                return Ok(false);
            }
            let header = Header::parse(&self.buffer[self.begin..self.end]);
            let header = header.and_then(|header| match header.format_version {
                FORMAT_VERSION => Ok(header),
                other => Err(Error::Version(other)),
            });
            let header = match header {
                Ok(header) => header,
                // Those before it belong to no gap.
                Err(_) if whole => return Ok(true),
                Err(error) => {
                    // A connection that goes on after another begins with any byte of a message.
                    self.counts.resyncs += u64::from(self.in_sync);
                    self.skipped.get_or_insert((self.counts.bytes + self.counts.skipped_bytes, error));
                    self.in_sync = false;
                    self.has_gap = true;
                    self.begin += 1;
                    self.counts.skipped_bytes += 1;
                    continue;
                }
            };
            let total = header.total_length as usize;
            if whole && there < total {
                return Ok(true);
            }
            if !self.fill(total)? {
                self.give_up();
                return Ok(false);
            }
            out.push(self.buffer[self.begin..self.begin + total].into());
            self.begin += total;
            self.in_sync = true;
            self.counts.messages += 1;
            self.counts.bytes += total as u64;
        }
    }

    /// The stream has ended: what is left is not a message, and is counted.
    pub fn give_up(&mut self) {
        self.counts.cut_bytes += (self.end - self.begin) as u64;
        self.begin = self.end;
    }
}

#[cfg(test)]
mod tests {
    use fadelink_wire::fadc::Message;

    use super::*;

    fn message(record: u64, words: &[u32]) -> Vec<u8> {
        let header = Header::new(1, FORMAT_VERSION, record, (1, 0), words.len() * 4);
        let mut out = header.emit().to_vec();
        out.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        out.resize(header.total_length as usize, 0);
        out
    }

    /// Gives bytes in pieces of a size that changes.
    struct Pieces<'a>(&'a [u8], usize);

    impl Read for Pieces<'_> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            self.1 = self.1 % 13 + 1;
            let size = self.1.min(self.0.len()).min(out.len());
            out[..size].copy_from_slice(&self.0[..size]);
            self.0 = &self.0[size..];
            Ok(size)
        }
    }

    fn records(reader: &mut MessageReader<impl Read>) -> Vec<u64> {
        let mut found = Vec::new();
        while reader.next_messages(&mut found).unwrap() {}
        found.iter().map(|data| Message::parse(data).unwrap().header().record_counter).collect()
    }

    #[test]
    fn messages_of_any_size() {
        let sizes = [0, 1, 2, 3, 100_000, 0, 7];
        let stream: Vec<u8> =
            sizes.iter().zip(0..).flat_map(|(size, record)| message(record, &vec![0x8000_8003; *size])).collect();
        let mut reader = MessageReader::new(Pieces(&stream, 0));
        assert_eq!(records(&mut reader), [0, 1, 2, 3, 4, 5, 6]);
        assert_eq!(*reader.counts(), Counts { messages: 7, bytes: stream.len() as u64, ..Counts::default() });
    }

    #[test]
    fn a_stream_that_begins_and_ends_inside_a_message() {
        let mut stream = message(0, &[0x8000_8003; 50])[16..].to_vec();
        stream.extend(message(1, &[1, 2]));
        stream.extend([0xFF; 24]);
        stream.extend(message(2, &[]));
        stream.extend(&message(3, &[5; 10])[..60]);
        let mut reader = MessageReader::new(&stream[..]);
        assert_eq!(records(&mut reader), [1, 2]);
        let counts = reader.counts();
        assert_eq!((counts.skipped_bytes, counts.resyncs, counts.cut_bytes), (32 + 200 + 24, 2, 60));
        assert!(matches!(reader.skipped(), Some((0, Error::Magic(_)))), "{:?}", reader.skipped());
    }

    /// A header with one field that cannot be, between good messages: they come, and the gap between them is told.
    #[test]
    fn a_message_that_cannot_be_swallows_no_other() {
        let bad = |at: usize, value: u32| {
            let mut bad = message(2, &[7; 3]);
            bad[at..at + 4].copy_from_slice(&value.to_le_bytes());
            bad
        };
        let cases = [
            bad(4, 48 + 12 + 4 + 64),
            bad(4, 1 << 27),
            bad(4, u32::MAX),
            bad(4, 0),
            bad(8, 1 << 30),
            bad(12, 5),
            bad(20, 9),
            bad(40, u32::MAX),
            bad(16, fadelink_wire::fadc::MAGIC.swap_bytes()),
        ];
        for bad in &cases {
            let stream = [message(1, &[1, 2]), bad.clone(), message(3, &[]), message(4, &[1])].concat();
            let mut reader = MessageReader::new(&stream[..]);
            let mut found = Vec::new();
            let record = |data: &Bytes| Message::parse(data).unwrap().header().record_counter;
            assert!(reader.next_messages(&mut found).unwrap() && !reader.take_gap());
            assert_eq!(found.drain(..).map(|data| record(&data)).collect::<Vec<_>>(), [1]);
            while reader.next_messages(&mut found).unwrap() {}
            assert!(reader.take_gap() && !reader.take_gap());
            assert_eq!(found.iter().map(record).collect::<Vec<_>>(), [3, 4], "{bad:?}");
            assert_eq!(reader.counts().skipped_bytes, bad.len() as u64);
            assert_eq!(reader.skipped().unwrap().0, 56, "where it began");
        }
    }

    #[test]
    fn a_slip_of_any_number_of_bytes_costs_no_message_behind_it() {
        for slip in 1..48 {
            let stream = [message(1, &[1, 2]), vec![0xA5; slip], message(2, &[7; 3]), message(3, &[])].concat();
            let mut reader = MessageReader::new(Pieces(&stream, slip));
            assert_eq!(records(&mut reader), [1, 2, 3], "{slip}");
            assert_eq!((reader.counts().skipped_bytes, reader.counts().resyncs), (slip as u64, 1));
        }
    }

    #[test]
    fn a_length_that_is_only_told_takes_no_memory() {
        let mut stream = message(1, &[]);
        stream[4..8].copy_from_slice(&((1u32 << 28) - 8).to_le_bytes());
        stream[8..12].copy_from_slice(&((1u32 << 28) - 8 - 48).to_le_bytes());
        let mut reader = MessageReader::new(&stream[..]);
        assert!(records(&mut reader).is_empty() && reader.buffer.len() <= 2 * BLOCK);
        assert_eq!(reader.counts().cut_bytes, 48);
    }
}

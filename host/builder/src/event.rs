//! The messages of one time window.

use fadelink_wire::fadc::{Header, Item, Message, WordError, EVENT_VERSION, HEADER_BYTES};

/// A message that was found to be whole.
pub type Bytes = Box<[u8]>;

/// The messages of one time window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Number of the window, by which its messages were joined: their record counter, or their time divided by its length.
    pub record: u64,
    /// Begin of the window, seconds since 1970 and nanoseconds.
    pub time: (i64, u32),
    /// The messages, in order of their sources; of a source that had nothing to tell, none.
    pub parts: Vec<Bytes>,
    /// Sources whose part is not known.
    pub missing: Vec<u32>,
    /// True: came when its window had been given away already.
    pub is_late: bool,
}

impl Event {
    /// Of a message of window `record`, which has been given away, or is none that can be.
    pub(crate) fn late(record: u64, header: &Header, data: Bytes) -> Event {
        let time = (header.seconds, header.nanoseconds);
        Event { record, time, parts: vec![data], missing: Vec::new(), is_late: true }
    }

    /// The messages, as they can be read.
    pub fn messages(&self) -> impl Iterator<Item = Message<'_>> {
        self.parts.iter().filter_map(|part| Message::parse(part).ok())
    }

    /// Everything the messages tell, with its source.
    pub fn items(&self, window_ticks: u32) -> impl Iterator<Item = (u32, Result<Item, WordError>)> + '_ {
        self.messages().flat_map(move |message| {
            let source = message.header().source_id;
            message.items(window_ticks).map(move |item| (source, item))
        })
    }

    /// The event as one message, from the builder `source_id`.
    pub fn emit(&self, source_id: u32) -> Vec<u8> {
        let payload: usize = self.parts.iter().map(|part| part.len()).sum();
        let header = Header::new(source_id, EVENT_VERSION, self.record, self.time, payload);
        let mut out = Vec::with_capacity(HEADER_BYTES + payload + 4);
        out.extend(header.emit());
        for part in &self.parts {
            out.extend(part.iter());
        }
        out.resize(header.total_length as usize, 0);
        out
    }
}

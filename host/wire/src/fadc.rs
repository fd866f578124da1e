//! Messages of FADC250 streaming (docs/fadc.md): the stream_buffer of the JLab slides, little-endian.
//!
//! A message is one time window of one link of a crate. An event joins the messages of all crates. It is a message,
//! too; its payload are those messages, one after the other.

/// Marks a message.
pub const MAGIC: u32 = 0xC0DA_2019;
/// Version of a message whose payload are hit words.
pub const FORMAT_VERSION: u32 = 1;
/// Version of a message whose payload are messages.
pub const EVENT_VERSION: u32 = 257;
/// Bytes of a message before its payload.
pub const HEADER_BYTES: usize = 48;
/// Largest message in bytes; a longer one is an error.
pub const MESSAGE_BYTES_MAX: usize = 1 << 28;

/// Payload type: hits of the slot follow; slot 0: the next slice of the window begins.
pub const TYPE_HITS: u16 = 1;
/// Payload type: hits of the slot were lost.
pub const TYPE_LOST: u16 = 2;
/// Payload type: the module did not end the window in time.
pub const TYPE_TIMEOUT: u16 = 3;
/// Payload type: windows before this one were lost.
pub const TYPE_WINDOWS_LOST: u16 = 4;

/// Slots of modules, in words: 11 and 12 are those of the crate's switches.
const SLOTS: &str = "3 to 10 or 13 to 20";

/// Whether a module can be in this slot.
pub fn is_of_module(slot: u8) -> bool {
    matches!(slot, 3..=10 | 13..=20)
}

/// Nanoseconds of a tick, which is a sample.
pub const TICK_NS: u32 = 4;
/// Samples that make a hit's charge, and least distance of two hits of a channel.
pub const PULSE_TICKS: u32 = 8;
/// Ticks of a slice.
pub const SLICE_TICKS: u32 = 16384;
/// Ticks of the shortest window.
pub const WINDOW_TICKS_MIN: u32 = 8;
/// Ticks of the longest window.
pub const WINDOW_TICKS_MAX: u32 = 131_072;
/// A count of losses that stands for this many or more.
pub const LOST_MAX: u16 = 1023;

/// Why bytes are not a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Fewer bytes than a header has, or than it tells.
    #[error("message of {have} bytes: expected {need}")]
    Short {
        /// Bytes there are.
        have: usize,
        /// Bytes there should be.
        need: usize,
    },
    /// No message begins here.
    #[error("magic {0:#010x}: expected {MAGIC:#010x}")]
    Magic(u32),
    /// Neither hits nor an event.
    #[error("format_version {0}: expected {FORMAT_VERSION} or {EVENT_VERSION}")]
    Version(u32),
    /// Compressed payloads are not known.
    #[error("compressed_length {0}: expected 0, no compression")]
    Compressed(u32),
    /// The payload is not whole words.
    #[error("payload_length {0}: expected a multiple of 4")]
    PayloadLength(u32),
    /// The lengths contradict each other.
    #[error(
        "total_length {total}: expected payload_length {payload} and {HEADER_BYTES}, filled up to a multiple of 8"
    )]
    TotalLength {
        /// As told.
        total: u32,
        /// As told.
        payload: u32,
    },
    /// No such nanoseconds.
    #[error("timestamp nanoseconds {0}: expected 0 to 999999999")]
    Nanoseconds(i64),
}

/// Why a payload word cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WordError {
    /// A hit before the header of its slot.
    #[error("word {index}: a hit without a slot, expected a header word before it")]
    NoSlot {
        /// Place in the payload.
        index: usize,
    },
    /// A header of a payload type that is not known.
    #[error("word {index}: payload type {kind}, expected 1 to 4")]
    Type {
        /// Place in the payload.
        index: usize,
        /// As told.
        kind: u16,
    },
    /// A header whose reserved bits are set.
    #[error("word {index}: reserved bits {bits:#x}, expected 0")]
    Reserved {
        /// Place in the payload.
        index: usize,
        /// As told.
        bits: u16,
    },
    /// A slot where no module can be, or that of a module where the word is of none.
    #[error("word {index}: slot {slot}, expected {expected}")]
    Slot {
        /// Place in the payload.
        index: usize,
        /// As told.
        slot: u8,
        /// Of a header of this type.
        expected: &'static str,
    },
    /// A loss of nothing: such a header is not sent.
    #[error("word {index}: payload type {kind} with count 0, expected 1 to {LOST_MAX}")]
    Nothing {
        /// Place in the payload.
        index: usize,
        /// As told.
        kind: u16,
    },
    /// A time outside the window.
    #[error("word {index}: time {tick} ticks, expected less than the window's {window}")]
    Tick {
        /// Place in the payload.
        index: usize,
        /// As told, from the window's begin.
        tick: u32,
        /// Of the window.
        window: u32,
    },
}

/// The header of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Which link of which crate.
    pub source_id: u32,
    /// Bytes of the whole message.
    pub total_length: u32,
    /// Bytes of the payload.
    pub payload_length: u32,
    /// [`FORMAT_VERSION`] or [`EVENT_VERSION`].
    pub format_version: u32,
    /// Number of the window.
    pub record_counter: u64,
    /// Begin of the window in seconds since 1970.
    pub seconds: i64,
    /// And nanoseconds.
    pub nanoseconds: u32,
}

fn u32_at(data: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([data[at], data[at + 1], data[at + 2], data[at + 3]])
}

fn u64_at(data: &[u8], at: usize) -> u64 {
    u64::from(u32_at(data, at)) | u64::from(u32_at(data, at + 4)) << 32
}

impl Header {
    /// The header of a payload of `payload` bytes, whole words.
    pub fn new(source_id: u32, format_version: u32, record_counter: u64, time: (i64, u32), payload: usize) -> Header {
        let payload_length = payload as u32;
        Header {
            source_id,
            total_length: HEADER_BYTES as u32 + payload_length.next_multiple_of(8),
            payload_length,
            format_version,
            record_counter,
            seconds: time.0,
            nanoseconds: time.1,
        }
    }

    /// The header at the begin of `data`.
    ///
    /// # Errors
    /// See [`Error`]; that the payload is there is not looked at.
    pub fn parse(data: &[u8]) -> Result<Header, Error> {
        if data.len() < HEADER_BYTES {
            return Err(Error::Short { have: data.len(), need: HEADER_BYTES });
        }
        let (total_length, payload_length) = (u32_at(data, 4), u32_at(data, 8));
        match (u32_at(data, 16), u32_at(data, 12), u32_at(data, 20)) {
            (magic, _, _) if magic != MAGIC => return Err(Error::Magic(magic)),
            (_, compressed, _) if compressed != 0 => return Err(Error::Compressed(compressed)),
            (_, _, FORMAT_VERSION | EVENT_VERSION) => {}
            (_, _, version) => return Err(Error::Version(version)),
        }
        if payload_length % 4 != 0 {
            return Err(Error::PayloadLength(payload_length));
        }
        let least = HEADER_BYTES as u64 + u64::from(payload_length);
        let total = u64::from(total_length);
        // More would be words of the message behind it.
        let is_filled = total == least || total == least.next_multiple_of(8);
        if !is_filled || total > MESSAGE_BYTES_MAX as u64 {
            return Err(Error::TotalLength { total: total_length, payload: payload_length });
        }
        let ns = u64_at(data, 40) as i64;
        let nanoseconds = u32::try_from(ns).ok().filter(|ns| *ns < 1_000_000_000).ok_or(Error::Nanoseconds(ns))?;
        Ok(Header {
            source_id: u32_at(data, 0),
            total_length,
            payload_length,
            format_version: u32_at(data, 20),
            record_counter: u64_at(data, 24),
            seconds: u64_at(data, 32) as i64,
            nanoseconds,
        })
    }

    /// The bytes of the header.
    pub fn emit(&self) -> [u8; HEADER_BYTES] {
        let mut out = [0; HEADER_BYTES];
        let words = [self.source_id, self.total_length, self.payload_length, 0, MAGIC, self.format_version];
        for (place, word) in out.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        out[24..32].copy_from_slice(&self.record_counter.to_le_bytes());
        out[32..40].copy_from_slice(&self.seconds.to_le_bytes());
        out[40..48].copy_from_slice(&i64::from(self.nanoseconds).to_le_bytes());
        out
    }

    /// Nanoseconds since 1970.
    pub fn time_ns(&self) -> i128 {
        i128::from(self.seconds) * 1_000_000_000 + i128::from(self.nanoseconds)
    }
}

/// A pulse that a module found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hit {
    /// Place of the module in its crate.
    pub slot: u8,
    /// Of the module.
    pub channel: u8,
    /// Time of the leading edge from the window's begin.
    pub tick: u32,
    /// Charge, in counts times gain.
    pub charge: u16,
}

/// What a payload tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Item {
    /// A pulse.
    Hit(Hit),
    /// Hits of this module in this window that are not there, [`LOST_MAX`]: or more.
    Lost {
        /// Of the module.
        slot: u8,
        /// Hits.
        count: u16,
    },
    /// The module did not end the window in time; it may have had more hits, `count` of which were seen.
    Timeout {
        /// Of the module.
        slot: u8,
        /// Hits.
        count: u16,
    },
    /// Windows right before this one that were not read out.
    WindowsLost {
        /// Windows.
        count: u16,
    },
}

/// A whole message.
#[derive(Debug, Clone, Copy)]
pub struct Message<'a> {
    header: Header,
    data: &'a [u8],
}

impl<'a> Message<'a> {
    /// The message at the begin of `data`.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn parse(data: &'a [u8]) -> Result<Message<'a>, Error> {
        let header = Header::parse(data)?;
        let need = header.total_length as usize;
        if data.len() < need {
            return Err(Error::Short { have: data.len(), need });
        }
        Ok(Message { header, data: &data[..need] })
    }

    /// Its header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// All of it.
    pub fn bytes(&self) -> &'a [u8] {
        self.data
    }

    /// Its payload.
    pub fn payload(&self) -> &'a [u8] {
        &self.data[HEADER_BYTES..HEADER_BYTES + self.header.payload_length as usize]
    }

    /// What the payload of hit words tells; `window_ticks` is the length of the window.
    pub fn items(&self, window_ticks: u32) -> Items<'a> {
        Items { words: self.payload(), index: 0, slot: None, base: 0, window_ticks }
    }

    /// The messages of an event.
    pub fn parts(&self) -> Parts<'a> {
        Parts { data: self.payload() }
    }
}

/// See [`Message::items`]. Ends behind the first error.
#[derive(Debug, Clone)]
pub struct Items<'a> {
    words: &'a [u8],
    index: usize,
    slot: Option<u8>,
    base: u32,
    window_ticks: u32,
}

impl Items<'_> {
    /// The item of a header word, if it is one.
    fn header(&mut self, word: u32, index: usize) -> Result<Option<Item>, WordError> {
        let (slot, count, kind) = ((word & 31) as u8, (word >> 5 & 0x3FF) as u16, (word >> 15) as u16);
        let expected = match kind {
            TYPE_HITS if count != 0 => return Err(WordError::Reserved { index, bits: count }),
            TYPE_LOST | TYPE_WINDOWS_LOST if count == 0 => return Err(WordError::Nothing { index, kind }),
            TYPE_HITS if slot == 0 => return self.slice(index).map(|()| None),
            TYPE_WINDOWS_LOST => (slot != 0).then_some("0"),
            TYPE_HITS | TYPE_LOST | TYPE_TIMEOUT => (!is_of_module(slot)).then_some(SLOTS),
            kind => return Err(WordError::Type { index, kind }),
        };
        if let Some(expected) = expected {
            return Err(WordError::Slot { index, slot, expected });
        }
        Ok(match kind {
            TYPE_LOST => Some(Item::Lost { slot, count }),
            TYPE_TIMEOUT => Some(Item::Timeout { slot, count }),
            TYPE_WINDOWS_LOST => Some(Item::WindowsLost { count }),
            _ => {
                self.slot = Some(slot);
                None
            }
        })
    }

    /// The next slice begins.
    fn slice(&mut self, index: usize) -> Result<(), WordError> {
        let base = self.base.saturating_add(SLICE_TICKS);
        if base >= self.window_ticks {
            return Err(WordError::Tick { index, tick: base, window: self.window_ticks });
        }
        (self.base, self.slot) = (base, None);
        Ok(())
    }
}

impl Iterator for Items<'_> {
    type Item = Result<Item, WordError>;

    fn next(&mut self) -> Option<Self::Item> {
        while let Some((word, rest)) = self.words.split_first_chunk::<4>() {
            let (word, index) = (u32::from_le_bytes(*word), self.index);
            self.words = rest;
            self.index += 1;
            let item = if word >> 31 == 1 {
                match self.header(word, index) {
                    Ok(None) => continue,
                    Ok(Some(item)) => Ok(item),
                    Err(error) => Err(error),
                }
            } else {
                let (charge, channel) = ((word & 0x1FFF) as u16, (word >> 13 & 15) as u8);
                let tick = self.base + (word >> 17 & 0x3FFF);
                match self.slot {
                    None => Err(WordError::NoSlot { index }),
                    Some(_) if tick >= self.window_ticks => {
                        Err(WordError::Tick { index, tick, window: self.window_ticks })
                    }
                    Some(slot) => Ok(Item::Hit(Hit { slot, channel, tick, charge })),
                }
            };
            if item.is_err() {
                self.words = &[];
            }
            return Some(item);
        }
        None
    }
}

/// See [`Message::parts`]. Ends behind the first error.
#[derive(Debug, Clone)]
pub struct Parts<'a> {
    data: &'a [u8],
}

impl<'a> Iterator for Parts<'a> {
    type Item = Result<Message<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.data.is_empty() {
            return None;
        }
        let part = Message::parse(self.data);
        self.data = part.as_ref().map_or(&[], |part| &self.data[part.data.len()..]);
        Some(part)
    }
}

/// The header word of a slot's hits, or of a loss.
pub fn header_word(kind: u16, count: u16, slot: u8) -> u32 {
    1 << 31 | u32::from(kind) << 15 | u32::from(count & 0x3FF) << 5 | u32::from(slot & 31)
}

/// The word of a hit; its tick counts from the begin of its slice.
pub fn hit_word(hit: &Hit) -> u32 {
    u32::from(hit.charge & 0x1FFF) | u32::from(hit.channel & 15) << 13 | (hit.tick % SLICE_TICKS) << 17
}

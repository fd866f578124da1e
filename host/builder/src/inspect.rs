//! What a message tells against itself, before it is joined: losses, words that cannot be, a window that cannot follow. Each kind of
//! what messages tell has its place in the counts here, whatever is done with the message then.

use fadelink_wire::fadc::{Header, Item, Message, FORMAT_VERSION, LOST_MAX, TICK_NS};

use crate::counts::SourceCounts;
use crate::event::Bytes;
use crate::key::Key;

/// Windows that a crate may pass over, at most: its register `keepalive` has 24 bits.
const AHEAD_MAX: u64 = 1 << 24;
/// Part of the time since the message before by which times and numbers of windows may differ: the clocks of crates may be wrong.
const DRIFT: i128 = 100;

/// A message, and what was found in it.
#[derive(Debug)]
pub struct Inspected {
    pub(crate) data: Bytes,
    pub(crate) header: Header,
    /// By which it is joined; `None`: no window has that number or time.
    pub(crate) key: Option<u64>,
    /// Windows right before it that its crate has lost.
    pub(crate) lost: u16,
    /// What it tells, and what is wrong with it.
    pub(crate) told: SourceCounts,
    /// That a word cannot be.
    pub(crate) wrong: Option<String>,
}

impl Inspected {
    /// The number by which it is joined, if it has one.
    pub fn key(&self) -> Option<u64> {
        self.key
    }

    /// Its header.
    pub fn header(&self) -> &Header {
        &self.header
    }
}

/// Windows right before a message that its crate has lost. The first word tells them.
pub fn windows_lost(message: &Message<'_>) -> u16 {
    match message.items(0).next() {
        Some(Ok(Item::WindowsLost { count })) => count,
        _ => 0,
    }
}

/// A message that was inspected before.
#[derive(Debug, Clone, Copy)]
struct Before {
    key: u64,
    time_ns: i128,
}

/// Inspects the messages of one source, in their order.
#[derive(Debug, Clone)]
pub struct Inspector {
    key: Key,
    window_ns: u32,
    before: Option<Before>,
}

impl Inspector {
    /// From the begin of a session on.
    pub fn new(key: Key, window_ns: u32) -> Inspector {
        Inspector { key, window_ns, before: None }
    }

    /// Inspects the next message; `None`: these bytes have no message.
    pub fn inspect(&mut self, data: Bytes) -> Option<Inspected> {
        let message = Message::parse(&data).ok()?;
        let (header, lost) = (*message.header(), windows_lost(&message));
        let (mut told, wrong) = self.read(&message);
        let key = self.key.of(&header);
        match key {
            Some(key) => self.follow(key, lost, header.time_ns(), &mut told),
            None => told.wrong_number = 1,
        }
        Some(Inspected { data, header, key, lost, told, wrong })
    }

    /// What the words tell.
    fn read(&self, message: &Message<'_>) -> (SourceCounts, Option<String>) {
        let Header { source_id, record_counter, format_version, .. } = *message.header();
        let (mut told, mut wrong) = (SourceCounts::default(), None);
        let mut note = |told: &mut SourceCounts, what: String| {
            told.wrong_messages = 1;
            wrong = Some(format!("window {record_counter}, source {source_id:#010x}: {what}"));
        };
        if format_version != FORMAT_VERSION {
            note(&mut told, format!("format_version {format_version}: expected {FORMAT_VERSION} of a crate"));
            return (told, wrong);
        }
        for item in message.items(self.window_ns / TICK_NS) {
            match item {
                Ok(Item::Hit(_)) => {}
                Ok(Item::Lost { count, .. }) => told.hits_lost += u64::from(count),
                Ok(Item::Timeout { count, .. }) => {
                    told.timeouts += 1;
                    told.hits_lost += u64::from(count);
                }
                Ok(Item::WindowsLost { count }) => told.windows_lost += u64::from(count),
                Err(error) => note(&mut told, error.to_string()),
            }
        }
        (told, wrong)
    }

    /// Compares number and time with those of the message before.
    fn follow(&mut self, key: u64, lost: u16, time_ns: i128, told: &mut SourceCounts) {
        let Some(before) = self.before.replace(Before { key, time_ns }) else { return };
        let is_ahead = lost < LOST_MAX && key.saturating_sub(before.key) > AHEAD_MAX + u64::from(lost) + 1;
        told.wrong_number = u64::from(key < before.key || is_ahead);
        // Where windows are joined by their time, numbers may count something else.
        if self.key == Key::Counter {
            let expected = (i128::from(key) - i128::from(before.key)) * i128::from(self.window_ns);
            let tolerance = i128::from(self.window_ns / 2) + expected.abs() / DRIFT;
            told.wrong_time = u64::from((time_ns - before.time_ns - expected).abs() > tolerance);
        }
    }
}

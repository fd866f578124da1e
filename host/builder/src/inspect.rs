//! What a message tells against itself, before it is joined: losses, words that cannot be, a time that cannot follow. Each kind of
//! what messages tell has its place in the counts here, whatever is done with the message then.

use std::sync::atomic::{AtomicU64, Ordering};

use fadelink_wire::fadc::{Header, Item, Message, FORMAT_VERSION, TICK_NS};

use crate::counts::SourceCounts;
use crate::event::Bytes;
use crate::key::Key;

/// Part of the time since the message before by which times and numbers of windows may differ: the clocks of crates may be wrong.
const DRIFT: i128 = 100;

/// A message, and what was found in it.
#[derive(Debug)]
pub struct Inspected {
    /// Over which it came: a number of the inspector.
    pub(crate) stream: u64,
    /// Where it stands, for who can read it again.
    pub(crate) place: i64,
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

    /// Nanoseconds from 1970 to window 0, if this is window `key`.
    pub(crate) fn origin(&self, key: u64, window_ns: u32) -> i128 {
        self.header.time_ns() - i128::from(key) * i128::from(window_ns)
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
    record: u64,
    time_ns: i128,
}

/// What is wrong with a message, and with which: that of this window.
pub(crate) fn in_words(window: u64, header: &Header, what: &str) -> String {
    let Header { source_id, .. } = header;
    format!("window {window}, source {source_id:#010x}: {what}")
}

/// Inspects the messages of one source, in their order.
#[derive(Debug, Clone)]
pub struct Inspector {
    /// Each has another.
    pub(crate) stream: u64,
    key: Key,
    window_ns: u32,
    before: Option<Before>,
    /// The first one, or the first behind one whose time did not fit: a wrong length of windows shows over many of them.
    first: Option<Before>,
}

impl Inspector {
    /// From the begin of a session on.
    pub fn new(key: Key, window_ns: u32) -> Inspector {
        static STREAMS: AtomicU64 = AtomicU64::new(0);
        let stream = STREAMS.fetch_add(1, Ordering::Relaxed);
        Inspector { stream, key, window_ns, before: None, first: None }
    }

    /// Inspects the next message; `None`: these bytes have no message.
    pub fn inspect(&mut self, data: Bytes) -> Option<Inspected> {
        let message = Message::parse(&data).ok()?;
        let (header, lost) = (*message.header(), windows_lost(&message));
        let (mut told, mut wrong) = self.read(&message);
        let key = self.key.of(&header);
        let against = match key {
            Some(_) => self.follow(&header),
            None => {
                told.wrong_number = 1;
                None
            }
        };
        let against = against.or_else(|| self.beyond(&header));
        if let Some(what) = against {
            told.wrong_time = 1;
            wrong.get_or_insert_with(|| in_words(key.unwrap_or(header.record_counter), &header, &what));
        }
        Some(Inspected { stream: self.stream, place: 0, data, header, key, lost, told, wrong })
    }

    /// What the words tell.
    fn read(&self, message: &Message<'_>) -> (SourceCounts, Option<String>) {
        let Header { format_version, record_counter, .. } = *message.header();
        let window = self.key.of(message.header()).unwrap_or(record_counter);
        let (mut told, mut wrong) = (SourceCounts::default(), None);
        let mut note = |told: &mut SourceCounts, what: String| {
            told.wrong_messages = 1;
            wrong = Some(in_words(window, message.header(), &what));
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

    /// Compares the time with those of the messages before; what is wrong with it, in words.
    fn follow(&mut self, header: &Header) -> Option<String> {
        let now = Before { record: header.record_counter, time_ns: header.time_ns() };
        let Some(before) = self.before.replace(now) else {
            self.first = Some(now);
            return None;
        };
        let wrong = [Some(before), self.first].into_iter().flatten().find_map(|earlier| self.misfit(earlier, now))?;
        self.first = Some(now);
        Some(wrong)
    }

    /// Whether the time between two messages is that of the windows between them: crates count them, also where they are joined by
    /// their time and each crate counts from another begin.
    fn misfit(&self, earlier: Before, now: Before) -> Option<String> {
        let windows = i128::from(now.record) - i128::from(earlier.record);
        let (expected, found) = (windows * i128::from(self.window_ns), now.time_ns - earlier.time_ns);
        let tolerance = i128::from(self.window_ns / 2) + expected.abs() / DRIFT;
        ((found - expected).abs() > tolerance).then(|| {
            let length = self.window_ns;
            format!("its time is {found} ns behind that of window {}, expected {expected}: windows of {length} ns (--window-ns)", earlier.record)
        })
    }

    /// A time that files of hits cannot have, or that hits in the window cannot: 64 bits of nanoseconds end in 1677 and 2262.
    fn beyond(&self, header: &Header) -> Option<String> {
        let begin = header.time_ns();
        let is_there = |ns: i128| i64::try_from(ns).is_ok();
        let is_whole = is_there(begin) && is_there(begin + i128::from(self.window_ns));
        (!is_whole).then(|| format!("its time is {} s since 1970: expected one from 1677 to 2262", header.seconds))
    }
}

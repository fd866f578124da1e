//! Events as rows, one for each hit and one for each window. Files of all formats have these columns.

use fadelink_wire::fadc::{Item, TICK_NS};

use crate::Event;

/// Columns of hits.
#[derive(Debug, Default)]
pub struct Hits {
    /// Number of the window.
    pub window: Vec<u64>,
    /// Nanoseconds since 1970 of the leading edge.
    pub time_ns: Vec<i64>,
    /// Source of the message.
    pub source: Vec<u32>,
    /// Of the module.
    pub slot: Vec<u8>,
    /// Of the module.
    pub channel: Vec<u8>,
    /// Ticks of 4 ns from the window's begin.
    pub tick: Vec<u32>,
    /// Counts times gain.
    pub charge: Vec<u16>,
}

/// Columns of windows.
#[derive(Debug, Default)]
pub struct Windows {
    /// Number of the window.
    pub window: Vec<u64>,
    /// Nanoseconds since 1970 of its begin.
    pub time_ns: Vec<i64>,
    /// Sources that sent a message.
    pub sources: Vec<u32>,
    /// Sources that are missing.
    pub missing: Vec<u32>,
    /// Hits.
    pub hits: Vec<u32>,
    /// Hits that modules report as lost, modules that timed out, messages with an invalid word; 0: the window is
    /// whole.
    pub lost: Vec<u32>,
}

/// Rows that were not written yet.
#[derive(Debug, Default)]
pub struct Table {
    /// Of hits.
    pub hits: Hits,
    /// Of windows.
    pub windows: Windows,
    /// Messages with an invalid word: the rows after it are missing.
    pub wrong: u64,
}

impl Table {
    /// Adds an event. A message has rows up to a word that cannot be.
    pub fn add(&mut self, event: &Event, window_ticks: u32) {
        // What does not fit was counted when it came (`inspect`).
        let begin = event.time.0.saturating_mul(1_000_000_000).saturating_add(i64::from(event.time.1));
        let (mut hits, mut lost) = (0, 0);
        for (source, item) in event.items(window_ticks) {
            match item {
                Ok(Item::Hit(hit)) => {
                    hits += 1;
                    self.hits.window.push(event.record);
                    self.hits.time_ns.push(begin.saturating_add(i64::from(hit.tick * TICK_NS)));
                    self.hits.source.push(source);
                    self.hits.slot.push(hit.slot);
                    self.hits.channel.push(hit.channel);
                    self.hits.tick.push(hit.tick);
                    self.hits.charge.push(hit.charge);
                }
                Ok(Item::Lost { count, .. }) => lost += u32::from(count),
                Ok(Item::Timeout { count, .. }) => lost += u32::from(count).max(1),
                Ok(Item::WindowsLost { .. }) => {}
                Err(_) => {
                    self.wrong += 1;
                    lost += 1;
                }
            }
        }
        self.windows.window.push(event.record);
        self.windows.time_ns.push(begin);
        self.windows.sources.push(event.parts.len() as u32);
        self.windows.missing.push(event.missing.len() as u32);
        self.windows.hits.push(hits);
        self.windows.lost.push(lost);
    }

    /// Rows of both.
    pub fn rows(&self) -> usize {
        self.hits.window.len() + self.windows.window.len()
    }
}

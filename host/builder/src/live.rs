//! The data of the web page: rates, hit maps, the charge spectrum, time differences.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use fadelink_wire::fadc::{Hit, Item, TICK_NS};
use serde::Serialize;

use crate::Event;

/// Bins of the charge spectrum, over 13 bits.
pub const CHARGE_BINS: usize = 128;
/// Counts of a bin.
pub const CHARGE_STEP: usize = 8192 / CHARGE_BINS;
/// Bins of the differences of time, a tick each.
pub const DIFFERENCE_BINS: usize = 128;
/// Slots of a crate, from 0 on.
pub const SLOTS: usize = 21;
/// Channels of a module.
pub const CHANNELS: usize = 16;
/// Seconds of the rates that are kept.
pub const HISTORY: usize = 120;
/// Sources of one crate differ in these bits only: its links.
pub const LINK_MASK: u32 = 0xFF;

/// Counts of a source.
#[derive(Debug, Default, Clone, Serialize)]
pub struct SourceView {
    /// Hits.
    pub hits: u64,
    /// Messages.
    pub messages: u64,
    /// Windows in which it is missing.
    pub missing: u64,
    /// Hits, as the modules tell, that were lost.
    pub lost: u64,
    /// Hits a second in the last whole second.
    pub hits_per_second: f64,
    #[serde(skip)]
    counted: u64,
}

/// Hits by slot and channel.
pub type Map = [[u64; CHANNELS]; SLOTS];

/// Counts of all sources.
#[derive(Debug)]
pub struct Live {
    window_ticks: u32,
    begun: Instant,
    second: Instant,
    events: u64,
    counted: u64,
    incomplete: u64,
    wrong_words: u64,
    last_window: u64,
    sources: BTreeMap<u32, SourceView>,
    maps: BTreeMap<u32, Box<Map>>,
    charges: [u64; CHARGE_BINS],
    differences: [u64; DIFFERENCE_BINS],
    rates: VecDeque<f64>,
    scratch: Vec<(u32, u32, Hit)>,
    joiner: serde_json::Value,
}

/// Numbers of the page, as JSON.
#[derive(Debug, Serialize)]
pub struct View {
    /// Since the begin.
    pub seconds: f64,
    /// Events.
    pub events: u64,
    /// In the last whole second.
    pub events_per_second: f64,
    /// With sources missing.
    pub incomplete: u64,
    /// Messages whose words were not what they should be.
    pub wrong_words: u64,
    /// Number of the last window.
    pub last_window: u64,
    /// By source, in hexadecimal.
    pub sources: BTreeMap<String, SourceView>,
    /// By crate: hits by slot (3 to 20) and channel.
    pub maps: BTreeMap<String, Vec<Vec<u64>>>,
    /// Hits by charge, [`CHARGE_STEP`] counts a bin.
    pub charges: Vec<u64>,
    /// Pairs of hits that follow each other in different crates (with one crate: modules), by ns / 4.
    pub differences: Vec<u64>,
    /// Events a second, the last second last.
    pub rates: Vec<f64>,
    /// What the joiner counts: `windows`, and by source `sources`, as in the report at the end; null where none told it.
    pub joiner: serde_json::Value,
}

impl Live {
    /// Nothing came.
    pub fn new(window_ticks: u32) -> Live {
        let now = Instant::now();
        Live {
            window_ticks,
            begun: now,
            second: now,
            events: 0,
            counted: 0,
            incomplete: 0,
            wrong_words: 0,
            last_window: 0,
            sources: BTreeMap::new(),
            maps: BTreeMap::new(),
            charges: [0; CHARGE_BINS],
            differences: [0; DIFFERENCE_BINS],
            rates: VecDeque::from(vec![0.0; HISTORY]),
            scratch: Vec::new(),
            joiner: serde_json::Value::Null,
        }
    }

    /// Takes what the joiner counts, for the view.
    pub fn set_joiner(&mut self, counts: serde_json::Value) {
        self.joiner = counts;
    }

    /// Adds an event.
    pub fn add(&mut self, event: &Event) {
        self.events += 1;
        self.incomplete += u64::from(!event.missing.is_empty());
        self.last_window = event.record;
        for source in &event.missing {
            self.sources.entry(*source).or_default().missing += 1;
        }
        self.scratch.clear();
        for message in event.messages() {
            let id = message.header().source_id;
            let source = self.sources.entry(id).or_default();
            source.messages += 1;
            let map = self.maps.entry(id & !LINK_MASK).or_insert_with(|| Box::new([[0; CHANNELS]; SLOTS]));
            for item in message.items(self.window_ticks) {
                match item {
                    Ok(Item::Hit(hit)) => {
                        source.hits += 1;
                        map[usize::from(hit.slot)][usize::from(hit.channel)] += 1;
                        self.charges[usize::from(hit.charge) / CHARGE_STEP] += 1;
                        self.scratch.push((hit.tick, id & !LINK_MASK, hit));
                    }
                    Ok(Item::Lost { count, .. }) => source.lost += u64::from(count),
                    Ok(_) => {}
                    Err(_) => self.wrong_words += 1,
                }
            }
        }
        self.scratch.sort_unstable();
        let one_crate = self.maps.len() == 1;
        for pair in self.scratch.windows(2) {
            let ((tick, source, hit), (next_tick, next_source, next)) = (&pair[0], &pair[1]);
            let apart = (next_tick - tick) as usize;
            if apart < DIFFERENCE_BINS && (source != next_source || one_crate && hit.slot != next.slot) {
                self.differences[apart] += 1;
            }
        }
    }

    /// Renews the rates, each second.
    pub fn tick(&mut self, now: Instant) {
        let past = now.saturating_duration_since(self.second);
        if past < Duration::from_secs(1) {
            return;
        }
        let seconds = past.as_secs_f64();
        self.second = now;
        self.rates.pop_front();
        self.rates.push_back((self.events - self.counted) as f64 / seconds);
        self.counted = self.events;
        for source in self.sources.values_mut() {
            source.hits_per_second = (source.hits - source.counted) as f64 / seconds;
            source.counted = source.hits;
        }
    }

    /// The numbers of now.
    pub fn view(&self) -> View {
        let map = |map: &Map| map[3..].iter().map(|channels| channels.to_vec()).collect();
        View {
            seconds: self.begun.elapsed().as_secs_f64(),
            events: self.events,
            events_per_second: self.rates.back().copied().unwrap_or(0.0),
            incomplete: self.incomplete,
            wrong_words: self.wrong_words,
            last_window: self.last_window,
            sources: self.sources.iter().map(|(id, source)| (format!("{id:#010x}"), source.clone())).collect(),
            maps: self.maps.iter().map(|(id, hits)| (format!("{id:#010x}"), map(hits))).collect(),
            charges: self.charges.to_vec(),
            differences: self.differences.to_vec(),
            rates: self.rates.iter().copied().collect(),
            joiner: self.joiner.clone(),
        }
    }
}

/// Nanoseconds of a bin of the differences of time.
pub const DIFFERENCE_STEP_NS: u32 = TICK_NS;

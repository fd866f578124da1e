//! A joiner, what it is given, and what comes out of it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use fadelink_builder::counts::SourceCounts;
use fadelink_builder::inspect::Inspector;
use fadelink_builder::join::Before;
use fadelink_builder::{Event, Joiner, Policy};
use fadelink_wire::fadc::{Header, FORMAT_VERSION};

pub fn message(source: u32, record: u64, words: &[u32]) -> Box<[u8]> {
    let ns = u128::from(record) * 1000;
    let time = ((ns / 1_000_000_000) as i64, (ns % 1_000_000_000) as u32);
    let header = Header::new(source, FORMAT_VERSION, record, time, words.len() * 4);
    let mut out = header.emit().to_vec();
    out.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    out.resize(header.total_length as usize, 0);
    out.into()
}

pub struct Bench {
    pub joiner: Joiner,
    pub now: Instant,
    /// Of the sessions of each source.
    inspectors: BTreeMap<(u32, u64), Inspector>,
}

impl Bench {
    pub fn new(policy: Policy) -> Bench {
        Bench { joiner: Joiner::new(policy), now: Instant::now(), inspectors: BTreeMap::new() }
    }

    pub fn push(&mut self, source: u32, record: u64) {
        self.give(message(source, record, &[]), None);
    }

    /// A message over the last connection of its source, which is inspected by itself.
    pub fn give(&mut self, message: Box<[u8]>, before: Option<Before>) {
        let source = Header::parse(&message).unwrap().source_id;
        let sessions = self.joiner.joined().sources.get(&source).map_or(0, |counts| counts.sessions);
        let inspector = self.inspectors.entry((source, sessions)).or_insert_with(|| self.joiner.inspector());
        let inspected = inspector.clone().inspect(message).unwrap();
        self.joiner.push(inspected, before, self.now);
    }

    pub fn wait(&mut self, seconds: u64) {
        self.now += Duration::from_secs(seconds);
        self.joiner.tick(self.now);
    }

    pub fn events(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.joiner.pop(self.now, false)).collect()
    }

    /// Windows with the sources that they have.
    pub fn windows(&mut self) -> Vec<(u64, Vec<u32>)> {
        let sources = |event: &Event| event.messages().map(|message| message.header().source_id).collect();
        self.events().iter().map(|event| (event.record, sources(event))).collect()
    }

    pub fn source(&self, id: u32) -> SourceCounts {
        self.joiner.joined().sources[&id].clone()
    }
}

pub fn two() -> Policy {
    Policy { sources: vec![1, 2], ..Policy::default() }
}

//! The report of a stream at its end, for all protocols.

use std::fmt::Display;

use fadelink_sinks::Report;
use serde_json::{json, Value};

use crate::number;
use crate::pattern::Verifier;

/// A stream that has ended, or was given up.
pub struct Summary<'a, Name> {
    pub name: Name,
    pub bytes: u64,
    pub seconds: f64,
    pub complete: bool,
    pub verifier: Option<&'a Verifier>,
    pub sinks: &'a [Report],
}

impl<Name: Display> Summary<'_, Name> {
    /// All of it is there, and right where that was to be verified.
    pub fn is_good(&self) -> bool {
        self.complete && self.verifier.is_none_or(|v| v.wrong == 0)
    }

    /// The part of the report that is the same for all; `more` is joined to it. `address` of the sender is there as `key`.
    pub fn json(&self, key: &str, address: &impl Display, more: Value) -> Value {
        let first_wrong = self.verifier.and_then(|v| v.first_wrong);
        let mut all = json!({
            key: address.to_string(),
            "name": self.name.to_string(),
            "complete": self.complete,
            "bytes": self.bytes,
            "words": self.bytes / 8,
            "verified": self.verifier.map(|v| v.wrong == 0 && self.complete),
            "wrong_words": self.verifier.map(|v| v.wrong),
            "first_wrong": first_wrong.map(|(index, word, expected)| json!({ "index": index, "word": number::json(word), "expected": number::json(expected) })),
            "seconds": self.seconds,
            "sinks": self.sinks,
        });
        if let (Value::Object(all), Value::Object(more)) = (&mut all, more) {
            all.extend(more);
        }
        all
    }

    /// Names the first wrong word; then, unless nobody is to read it, a line of the whole, with what else is to be said
    /// of where its words begin and how it ended.
    pub fn tell(&self, silent: bool, from: &str, end: &str) {
        let name = &self.name;
        if let Some((index, word, expected)) = self.verifier.and_then(|v| v.first_wrong) {
            tracing::error!("{name}: word {index} is {word:#018x}, expected {expected:#018x}");
        }
        for Report { sink, dropped, .. } in self.sinks.iter().filter(|sink| sink.dropped > 0) {
            tracing::warn!("{name}: {sink}: {dropped} bytes DROPPED, it was too slow or had failed");
        }
        if silent {
            return;
        }
        let verdict = match self.verifier {
            _ if !self.complete => "INCOMPLETE".into(),
            None => "complete".into(),
            Some(v) if v.wrong == 0 => "complete, every word verified".into(),
            Some(v) => format!("complete, {} WORDS WRONG", v.wrong),
        };
        let (words, seconds) = (self.bytes / 8, self.seconds);
        let rate = self.bytes as f64 / seconds.max(1e-9) / 1e6;
        eprintln!("{name}: {verdict}: {words} words{from} in {seconds:.2} s, {rate:.2} MB/s{end}");
    }
}

/// The number of streams that were expected and did not come. Warns of them, or that none came at all.
pub fn missing(wanted: Option<u32>, came: usize) -> usize {
    let missing = wanted.map_or(0, |n| (n as usize).saturating_sub(came));
    if missing > 0 || came == 0 {
        tracing::warn!(
            "{came} streams came, expected {}; check the boards, and the address and port that they send to",
            wanted.unwrap_or(1)
        );
    }
    missing
}

//! What is done with the words of a stream, by whatever wire they come: they are verified, given to the sinks, counted
//! and reported.

use std::fmt::Display;
use std::thread::JoinHandle;
use std::time::Instant;

use crc32fast::Hasher;
use fadelink_sinks::hashes::Blocks;
use fadelink_sinks::{Block, Outlets, Report, Sender};
use fadelink_wire::Protocol;
use serde_json::{json, Value};

use super::plan::Plan;
use crate::interrupts::Interrupts;
use crate::metrics::{self, Meter};
use crate::number;
use crate::pattern::Verifier;
use crate::verdict::{Evidence, Verdict};

/// Said of words that no sink has.
pub const NOT_KEPT: &str = ", not kept by any output";

/// The same of what these sinks were given; nothing where one was to keep it and has failed, for the verdict tells that.
pub fn not_kept(sinks: &[Report]) -> &'static str {
    let was_to_keep = |sink: &Report| sink.is_kept() || (sink.keeps && sink.error.is_some());
    if sinks.iter().any(was_to_keep) {
        ""
    } else {
        NOT_KEPT
    }
}

/// Names the optional sinks that have failed, with what of them can be read.
pub fn without(sinks: &[Report]) -> String {
    let failed = sinks.iter().filter(|report| report.optional && report.error.is_some());
    failed.map(|report| format!(", {} has failed ({} of it are intact)", report.sink, report.intact)).collect()
}

/// A stream that is recorded.
pub struct Recorder {
    begun: Instant,
    seen: Snapshot,
    verifier: Option<Verifier>,
    /// CRC of the words of the transmission, if it is known.
    crc: Option<Hasher>,
    /// Somebody wants it.
    sums: bool,
    outlets: Outlets<Block>,
    interrupts: Interrupts,
}

/// What was recorded so far.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// Its board.
    pub name: String,
    /// Bytes of words.
    pub bytes: u64,
    /// Words that differ from the pattern, if they are verified.
    pub wrong_words: Option<u64>,
    /// What the sinks have done.
    pub sinks: Vec<Report>,
}

/// What was recorded of a stream of which nothing more comes.
#[derive(Debug, Default)]
pub struct Ended {
    pub name: String,
    /// Bytes of words.
    pub bytes: u64,
    pub seconds: f64,
    pub verifier: Option<Verifier>,
    /// What the sinks have done; each is finished.
    pub sinks: Vec<Report>,
    /// Why the first of them failed, and what of it can be read.
    pub error: Option<String>,
}

impl Snapshot {
    /// Adds what was recorded of another stream, with the same sinks.
    pub fn add(&mut self, other: &Snapshot) {
        self.bytes += other.bytes;
        if let Some(more) = other.wrong_words {
            *self.wrong_words.get_or_insert(0) += more;
        }
        for (index, report) in other.sinks.iter().enumerate() {
            match self.sinks.get_mut(index) {
                Some(sum) => sum.add(report.clone()),
                None => self.sinks.push(report.clone()),
            }
        }
    }

    /// Updates its metrics, by what receiving has `known` so far.
    pub fn measure(&self, meter: &mut Meter, known: Evidence<'_>) {
        meter.board(&self.name, self.bytes, self.wrong_words);
        meter.sinks(&self.name, &self.sinks);
        let evidence = Evidence { wrong_words: self.wrong_words.unwrap_or(0), sinks: &self.sinks, ..known };
        metrics::set_verdict(&self.name, &Verdict::so_far(evidence), false);
    }
}

impl Recorder {
    /// Opens the sinks for the words of `board`, which is `name` to its user. They change nothing before the [begin](Self::begin), unless
    /// this goes on.
    ///
    /// # Errors
    /// A sink cannot be opened.
    pub fn open(
        plan: &Plan,
        name: String,
        board: Sender,
        interrupts: &Interrupts,
    ) -> Result<Recorder, fadelink_sinks::Error> {
        let outlets = plan.open(board, interrupts.stopping()).inspect_err(|_| interrupts.fail_to_begin())?;
        let (verifier, crc) = (plan.verifier(), plan.crc());
        let bytes = plan.resumed.as_ref().map_or(0, Blocks::end);
        let seen = Snapshot { name, bytes, ..Snapshot::default() };
        let interrupts = interrupts.clone();
        let recorder = Recorder { begun: Instant::now(), seen, verifier, crc, sums: false, outlets, interrupts };
        if plan.resumed.is_some() {
            recorder.begin();
        }
        Ok(recorder)
    }

    /// The source has begun. Without this nothing is left of its outputs at the end, and what they would have replaced is as it was.
    pub fn begin(&self) {
        self.outlets.begin();
        self.interrupts.begin();
    }

    /// Takes the next words. It waits for sinks that are slow, where they may make it wait.
    pub fn take(&mut self, block: &Block) {
        // Who has data has begun at the latest.
        self.interrupts.begin();
        self.outlets.offer(block);
        if let Some(verifier) = &mut self.verifier {
            verifier.check(&block.data);
        }
        if let Some(crc) = self.crc.as_mut().filter(|_| self.sums) {
            crc.update(&block.data);
        }
        self.seen.bytes += block.data.len() as u64;
    }

    /// From the begin of a transmission on, or where it goes on: the CRC of its words is wanted.
    pub fn sum(&mut self) {
        self.sums = true;
    }

    /// The CRC of the words of the transmission, if it was wanted and is known.
    pub fn crc(&self) -> Option<u32> {
        self.crc.clone().filter(|_| self.sums).map(Hasher::finalize)
    }

    /// So many bytes are missing here; the pattern goes on behind them.
    pub fn skip(&mut self, bytes: u64) {
        if let Some(verifier) = &mut self.verifier {
            verifier.skip(bytes / 8);
        }
        self.crc = None;
    }

    /// The source begins anew.
    pub fn restart(&mut self) {
        if let Some(verifier) = &mut self.verifier {
            verifier.restart();
        }
        self.crc = Some(Hasher::new());
    }

    /// Bytes of words so far.
    pub fn bytes(&self) -> u64 {
        self.seen.bytes
    }

    /// False: a sink has failed.
    pub fn is_well(&self) -> bool {
        self.outlets.are_well()
    }

    /// What was recorded so far.
    pub fn look(&self) -> Snapshot {
        Snapshot {
            wrong_words: self.verifier.as_ref().map(|verifier| verifier.wrong),
            sinks: self.outlets.reports(),
            ..self.seen.clone()
        }
    }

    /// Nothing more comes: waits until the sinks are finished. They call the words complete if the verdict is, by what is `known`
    /// and by the pattern. `protocol`: of a FEB.
    pub fn end(self, known: &Evidence<'_>, protocol: Option<Protocol>) -> Ended {
        let Recorder { begun, seen, mut verifier, mut outlets, .. } = self;
        let seconds = begun.elapsed().as_secs_f64();
        if let Some(verifier) = &mut verifier {
            verifier.finish(protocol);
        }
        let wrong_words = verifier.as_ref().map_or(0, |verifier| verifier.wrong);
        let whole = Verdict::of(&Evidence { wrong_words, ..known.clone() }).is_complete();
        let error = outlets.finish(whole).err().map(|error| error.to_string());
        Ended { name: seen.name, bytes: seen.bytes, seconds, verifier, sinks: outlets.reports(), error }
    }

    /// The same in a thread of its own, so that other streams are not waited for meanwhile.
    pub fn end_aside(self, known: Evidence<'static>) -> Ending {
        let last = self.look();
        let seconds = self.begun.elapsed().as_secs_f64();
        let thread = std::thread::Builder::new().name("finish".into()).spawn(move || self.end(&known, None));
        Ending { last, seconds, thread }
    }
}

/// A stream whose sinks finish.
pub struct Ending {
    last: Snapshot,
    seconds: f64,
    thread: std::io::Result<JoinHandle<Ended>>,
}

impl Ending {
    /// True if [`Self::join`] does not wait.
    pub fn is_done(&self) -> bool {
        self.thread.as_ref().map_or(true, JoinHandle::is_finished)
    }

    /// What was recorded.
    pub fn look(&self) -> Snapshot {
        self.last.clone()
    }

    /// Bytes of words.
    pub fn bytes(&self) -> u64 {
        self.last.bytes
    }

    /// Waits until the sinks are finished.
    pub fn join(self) -> Ended {
        let Ending { last, seconds, thread } = self;
        let what = match thread.map(JoinHandle::join) {
            Ok(Ok(ended)) => return ended,
            Ok(Err(_)) => "finishing it panicked".to_owned(),
            Err(error) => format!("finishing it: {error}"),
        };
        let lost = |report: Report| Report { error: Some(what.clone()), ..report };
        let sinks = last.sinks.into_iter().map(lost).collect();
        Ended { name: last.name, bytes: last.bytes, seconds, verifier: None, sinks, error: Some(what) }
    }
}

impl Ended {
    /// As of a stream that is still recorded.
    pub fn look(&self) -> Snapshot {
        Snapshot {
            name: self.name.clone(),
            bytes: self.bytes,
            wrong_words: self.verifier.as_ref().map(|verifier| verifier.wrong),
            sinks: self.sinks.clone(),
        }
    }

    /// The verdict, with what receiving has `known`. The files of the sinks are looked at again, and the metrics have all of it.
    pub fn verdict(&mut self, known: Evidence<'static>, meter: &mut Meter) -> Verdict {
        self.sinks.iter_mut().for_each(Report::look_again);
        let failed = self.sinks.iter().filter(|report| report.is_fatal());
        let failed = failed.filter_map(|report| Some(format!("{}: {}", report.sink, report.error.as_ref()?))).next();
        self.error = self.error.take().or(failed);
        let wrong_words = self.verifier.as_ref().map_or(0, |verifier| verifier.wrong);
        let verdict = Verdict::of(&Evidence { wrong_words, sinks: &self.sinks, ..known });
        meter.board(&self.name, self.bytes, self.verifier.as_ref().map(|verifier| verifier.wrong));
        meter.sinks(&self.name, &self.sinks);
        metrics::set_verdict(&self.name, &verdict, true);
        verdict
    }

    /// A sink has all words, and keeps them.
    fn is_kept(&self) -> bool {
        self.sinks.iter().any(Report::is_kept)
    }

    /// The part of the report that is the same for all; `more` is joined to it. `address` of the sender is there as `key`.
    pub fn json(&self, verdict: &Verdict, key: &str, address: &impl Display, more: Value) -> Value {
        let first_wrong = self.verifier.as_ref().and_then(|verifier| verifier.first_wrong);
        let mut all = json!({
            key: address.to_string(),
            "name": self.name,
            "bytes": self.bytes,
            "words": self.bytes / 8,
            "verified": self.verifier.as_ref().map(|_| verdict.is_complete()),
            "wrong_words": self.verifier.as_ref().map(|verifier| verifier.wrong),
            "first_wrong": first_wrong.map(|(index, word, expected)| json!({ "index": index, "word": number::json(word), "expected": number::json(expected) })),
            "seconds": self.seconds,
            "kept": self.is_kept(),
            "sinks": self.sinks,
        });
        for more in [json!(verdict), more] {
            if let (Value::Object(all), Value::Object(more)) = (&mut all, more) {
                all.extend(more);
            }
        }
        all
    }

    /// Names the first wrong word and what sinks have lost; then, unless nobody is to read it, a line of the whole, with
    /// what else is to be said of where its words begin.
    pub fn tell(&self, verdict: &Verdict, silent: bool, from: &str) {
        let name = &self.name;
        if let Some((index, word, expected)) = self.verifier.as_ref().and_then(|verifier| verifier.first_wrong) {
            tracing::error!("{name}: word {index} is {word:#018x}, expected {expected:#018x}");
        }
        for Report { sink, dropped, .. } in self.sinks.iter().filter(|sink| sink.dropped > 0) {
            tracing::warn!("{name}: {sink}: {dropped} bytes DROPPED, it was too slow or had failed");
        }
        if silent {
            return;
        }
        let verified = if verdict.is_complete() && self.verifier.is_some() { ", every word verified" } else { "" };
        let kept = format!("{}{}", not_kept(&self.sinks), without(&self.sinks));
        let (words, seconds) = (self.bytes / 8, self.seconds);
        let rate = self.bytes as f64 / seconds.max(1e-9) / 1e6;
        tell!("{name}: {verdict}{verified}{kept}: {words} words{from} in {seconds:.2} s, {rate:.2} MB/s");
    }
}

/// The number of streams that were expected and did not come: one at least is expected. Warns of them.
pub fn missing(wanted: Option<u32>, came: usize) -> u64 {
    let wanted = wanted.unwrap_or(1);
    let missing = u64::from(wanted).saturating_sub(came as u64);
    if missing > 0 {
        tracing::warn!(
            "{came} streams came, expected {wanted}; check the boards, and the address and port that they send to"
        );
    }
    missing
}

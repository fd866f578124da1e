//! Whether a stream is complete: one type for boards, crates and Kafka, judged in one function from one struct of evidence
//! (docs/reliability.md, "What complete means").

use std::fmt;

use clap::ValueEnum;
use fadelink_builder::counts::{Counts, Joined, SourceCounts};
use fadelink_sinks::Report;
use schemars::JsonSchema;
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{json, Value};

use crate::checksum::Checksum;

mod reason;

pub use reason::{Absent, BySource, Reason};

/// How the end of a stream is known, the surest last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// It has not come.
    #[default]
    Missing,
    /// Nothing tells it: the board is silent after it was asked to stop, or cannot be stopped and sends on; a builder on Kafka
    /// has not read the ends of all sources.
    Silence,
    /// A frame or FIN told it that nobody had asked for: it may be forged, or another program has stopped the board.
    Told,
    /// The board or the crate told it because it was asked to, or feeds wrote that all of theirs did.
    Confirmed,
}

/// The least sure end that the user takes for the end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Accept {
    /// One that the board confirms
    #[default]
    Confirmed,
    /// Also one that a frame or FIN tells, though nobody asked for it
    Told,
    /// Any: also silence after the board was asked to stop, and a UDP board that sends on; not of a board with FADE that can prove its end
    Silence,
}

impl From<Accept> for End {
    fn from(accept: Accept) -> End {
        match accept {
            Accept::Confirmed => End::Confirmed,
            Accept::Told => End::Told,
            Accept::Silence => End::Silence,
        }
    }
}

/// All that is known of a stream when nothing more comes of it.
#[derive(Debug, Clone, Default)]
pub struct Evidence<'a> {
    /// How its end is known.
    pub end: End,
    /// What the user takes for the end.
    pub accept: Accept,
    /// Why receiving ended early.
    pub error: Option<String>,
    /// What the board was asked and did not do, or tells otherwise than what has come.
    pub board: Option<String>,
    /// What did not come at all.
    pub absent: Absent,
    /// Datagrams that were sent, by the numbers of the others, and not recorded.
    pub missing: u64,
    /// Bytes for which no sink had room when the end was asked for twice.
    pub given_up: u64,
    /// Parts that came again with other content.
    pub contradictions: u64,
    /// Parts that cannot be of this stream, though they say so.
    pub foreign: u64,
    /// Times that a transmission was begun again, of which the board may have taken words.
    pub begun_again: u64,
    /// Byte behind which another transmission was recorded.
    pub restarted: Option<u64>,
    /// What an earlier program has recorded, and is not as it was.
    pub changed: Vec<String>,
    /// CRC of the words, as the board says and as they have come.
    pub checksum: Option<Checksum>,
    /// Words that differ from the pattern.
    pub wrong_words: u64,
    /// Windows and messages of crates.
    pub joined: Joined,
    /// Bytes of crates that belong to no whole message.
    pub skipped_bytes: u64,
    /// Messages of a topic that cannot be read.
    pub malformed: u64,
    /// Messages that a topic had, and that nobody can read any more.
    pub gone: u64,
    /// Windows and messages with which something is wrong, of builders that did not report.
    pub unreported: u64,
    /// Messages of crates that could not be delivered to the brokers.
    pub undelivered: u64,
    /// Messages of which nothing confirms that their events were written, and why.
    pub unwritten: Option<(u64, String)>,
    /// What has not ended, in words.
    pub open: Vec<String>,
    /// What the sinks have done.
    pub sinks: &'a [Report],
}

/// A verdict in one word, the worse the greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    Complete,
    EndNotConfirmed,
    Incomplete,
}

impl State {
    /// Each of them.
    pub const ALL: [State; 3] = [State::Complete, State::EndNotConfirmed, State::Incomplete];

    /// As in reports and metrics.
    pub fn name(self) -> &'static str {
        match self {
            State::Complete => "complete",
            State::EndNotConfirmed => "end_not_confirmed",
            State::Incomplete => "incomplete",
        }
    }

    /// The worst of all; of nothing, incomplete.
    pub fn worst(states: impl Iterator<Item = State>) -> State {
        states.max().unwrap_or(State::Incomplete)
    }
}

/// What is to be said of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// All that the board or the crates have sent is recorded by every sink, and this is proven.
    Complete,
    /// Something is missing, wrong or foreign.
    Incomplete(Vec<Reason>),
    /// Nothing is known to be missing, but nobody knows whether there was more: the end is known by this alone. What has not
    /// ended, where that is known.
    EndNotConfirmed(End, Vec<String>),
}

impl Verdict {
    /// From all that is known.
    pub fn of(evidence: &Evidence<'_>) -> Verdict {
        let Evidence {
            end,
            accept,
            error,
            board,
            absent,
            missing,
            given_up,
            contradictions,
            foreign,
            begun_again,
            restarted,
            changed,
            checksum,
            wrong_words,
            joined: Joined { windows, sources, others, first_wrong: _ },
            skipped_bytes,
            malformed,
            gone,
            unreported,
            undelivered,
            unwritten,
            open,
            sinks,
        } = evidence;
        let Counts { complete: _, incomplete, dropped, late: _ } = windows;
        let by_source = |count: fn(&SourceCounts) -> u64, reason: fn(BySource) -> Reason| {
            let counts = sources.iter().map(|(source, counts)| (*source, count(counts)));
            let by_source = BySource { each: counts.filter(|(_, count)| *count > 0).collect(), others: count(others) };
            (by_source.total() > 0).then(|| reason(by_source))
        };
        let count = |count: u64, reason: fn(u64) -> Reason| (count > 0).then(|| reason(count));
        // One that is optional may fail where another one keeps the data.
        let is_kept = sinks.iter().any(|report| report.is_kept() && !report.optional);
        let counts = |report: &&Report| !(report.optional && is_kept);
        let failed = sinks.iter().filter(counts).filter_map(|report| {
            let why = report.error.as_ref()?;
            Some(Reason::SinkFailed(report.sink.clone(), why.clone()))
        });
        let has_failed = sinks.iter().any(Report::is_fatal);
        let lost = sinks.iter().filter(|report| report.error.is_none() && report.dropped > 0 && !report.may_drop);
        let unconfirmed = sinks
            .iter()
            .filter(counts)
            .filter(|report| report.error.is_none() && report.handed_over > 0 && !report.may_drop);
        let reasons: Vec<Reason> = [
            error.clone().map(Reason::Error),
            board.clone().map(Reason::Board),
            (*end == End::Missing && error.is_none() && !has_failed).then_some(Reason::NoEnd),
            (absent.streams > 0).then(|| Reason::Absent(absent.clone())),
            count(*missing, Reason::Missing),
            count(*given_up, Reason::GivenUp),
            count(*contradictions, Reason::Contradictions),
            count(*foreign, Reason::Foreign),
            count(*begun_again, Reason::BegunAgain),
            restarted.map(Reason::Restarted),
            checksum.filter(|checksum| !checksum.is_right()).map(Reason::Checksum),
            count(*wrong_words, Reason::WrongWords),
            count(incomplete + dropped, Reason::Windows),
            by_source(|of| of.late, Reason::Late),
            by_source(|of| of.duplicate, Reason::Duplicate),
            by_source(|of| of.unknown, Reason::Unknown),
            by_source(|of| of.windows_lost, Reason::WindowsLost),
            by_source(|of| of.hits_lost, Reason::HitsLost),
            by_source(|of| of.timeouts, Reason::Timeouts),
            by_source(|of| of.wrong_time, Reason::WrongTime),
            by_source(|of| of.wrong_number, Reason::WrongNumber),
            by_source(|of| of.anew, Reason::Anew),
            by_source(|of| of.wrong_messages, Reason::WrongMessages),
            by_source(|of| of.unlisted, Reason::Unlisted),
            by_source(|of| of.two_senders, Reason::TwoSenders),
            count(*skipped_bytes, Reason::Skipped),
            count(*malformed, Reason::Malformed),
            count(*gone, Reason::Gone),
            count(*unreported, Reason::Unreported),
            count(*undelivered, Reason::Undelivered),
        ]
        .into_iter()
        .flatten()
        .chain(unwritten.clone().map(|(count, why)| Reason::Unwritten(count, why)))
        .chain(changed.iter().cloned().map(Reason::Changed))
        .chain(failed)
        .chain(lost.map(|report| Reason::SinkLost(report.sink.clone(), report.dropped)))
        .chain(unconfirmed.map(|report| Reason::Unconfirmed(report.sink.clone(), report.handed_over)))
        .collect();
        if !reasons.is_empty() {
            Verdict::Incomplete(reasons)
        } else if *end < End::from(*accept) {
            Verdict::EndNotConfirmed(*end, open.clone())
        } else {
            Verdict::Complete
        }
    }

    /// True of what is proven alone.
    pub fn is_complete(&self) -> bool {
        *self == Verdict::Complete
    }

    /// In one word.
    pub fn state(&self) -> State {
        match self {
            Verdict::Complete => State::Complete,
            Verdict::Incomplete(_) => State::Incomplete,
            Verdict::EndNotConfirmed(..) => State::EndNotConfirmed,
        }
    }

    /// What speaks against it.
    pub fn reasons(&self) -> &[Reason] {
        match self {
            Verdict::Incomplete(reasons) => reasons,
            Verdict::Complete | Verdict::EndNotConfirmed(..) => &[],
        }
    }

    /// Of a stream that goes on: by what is known, as if its end had come.
    pub fn so_far(evidence: Evidence<'_>) -> Verdict {
        Verdict::of(&Evidence { end: End::Confirmed, ..evidence })
    }

    /// Why it is not complete, for a report.
    fn told(&self) -> Value {
        match self {
            Verdict::Complete => json!([]),
            Verdict::Incomplete(reasons) => reasons.iter().map(Reason::json).collect(),
            Verdict::EndNotConfirmed(..) => json!([{ "reason": self.state().name(), "text": self.to_string() }]),
        }
    }
}

/// As in reports: `complete`, `verdict`, `reasons`.
impl Serialize for Verdict {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(3))?;
        map.serialize_entry("complete", &self.is_complete())?;
        map.serialize_entry("verdict", self.state().name())?;
        map.serialize_entry("reasons", &self.told())?;
        map.end()
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Complete => f.write_str("complete"),
            Verdict::Incomplete(reasons) => {
                f.write_str("NOT COMPLETE: ")?;
                for (index, reason) in reasons.iter().enumerate() {
                    write!(f, "{}{reason}", if index > 0 { "; " } else { "" })?;
                }
                Ok(())
            }
            Verdict::EndNotConfirmed(End::Silence, open) => {
                f.write_str("END NOT CONFIRMED: nothing tells what was sent in all")?;
                for (what, between) in open.iter().zip(std::iter::once(": ").chain(std::iter::repeat("; "))) {
                    write!(f, "{between}{what}")?;
                }
                f.write_str(" (--end silence accepts that of boards that cannot tell it)")
            }
            Verdict::EndNotConfirmed(..) => f.write_str(
                "END NOT CONFIRMED: the end came, but nobody here had asked for it (--end told accepts that)",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole() -> Evidence<'static> {
        Evidence { end: End::Confirmed, ..Evidence::default() }
    }

    fn reasons(evidence: &Evidence<'_>) -> Vec<&'static str> {
        match Verdict::of(evidence) {
            Verdict::Incomplete(reasons) => reasons.iter().map(Reason::name).collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn only_what_is_proven_is_complete() {
        assert!(Verdict::of(&whole()).is_complete());
        assert!(!Verdict::of(&Evidence::default()).is_complete(), "of nothing that is known");
        for (end, accept, is_complete) in [
            (End::Silence, Accept::Confirmed, false),
            (End::Silence, Accept::Told, false),
            (End::Silence, Accept::Silence, true),
            (End::Told, Accept::Confirmed, false),
            (End::Told, Accept::Told, true),
            (End::Told, Accept::Silence, true),
            (End::Confirmed, Accept::Silence, true),
        ] {
            let verdict = Verdict::of(&Evidence { end, accept, ..Evidence::default() });
            assert_eq!(verdict.is_complete(), is_complete, "{end:?} {accept:?}");
            assert_eq!(verdict == Verdict::EndNotConfirmed(end, Vec::new()), !is_complete);
        }
        let missing = Evidence { accept: Accept::Silence, ..Evidence::default() };
        assert_eq!(reasons(&missing), ["no_end"]);
    }

    /// Each field of the evidence has a reason of its own.
    #[test]
    fn each_evidence_against_is_told() {
        let failed = [Report { sink: "file:a".into(), error: Some("the disk is full".into()), ..Report::default() }];
        let lost = [Report { sink: "file:a".into(), dropped: 7, ..Report::default() }];
        let handed_over = [Report { sink: "zmq-push:a".into(), handed_over: 7, ..Report::default() }];
        let windows = |windows| Evidence { joined: Joined { windows, ..Joined::default() }, ..whole() };
        let source = |counts| {
            let sources = [(1, counts), (2, SourceCounts::default())].into();
            Evidence { joined: Joined { sources, ..Joined::default() }, ..whole() }
        };
        let cases = [
            ("error", Evidence { error: Some("no data for 3 s".into()), ..whole() }),
            ("board", Evidence { board: Some("it has sent 8 datagrams".into()), ..whole() }),
            ("absent", Evidence { absent: Absent { streams: 1, boards: Vec::new() }, ..whole() }),
            ("missing", Evidence { missing: 1, ..whole() }),
            ("given_up", Evidence { given_up: 8, ..whole() }),
            ("begun_again", Evidence { begun_again: 1, ..whole() }),
            ("contradictions", Evidence { contradictions: 1, ..whole() }),
            ("foreign", Evidence { foreign: 1, ..whole() }),
            ("restarted", Evidence { restarted: Some(0), ..whole() }),
            ("changed", Evidence { changed: vec!["a.dat: bytes 0 to 8".into()], ..whole() }),
            ("checksum", Evidence { checksum: Some(Checksum { told: None, received: 0 }), ..whole() }),
            ("wrong_words", Evidence { wrong_words: 1, ..whole() }),
            ("windows", windows(Counts { incomplete: 1, ..Counts::default() })),
            ("windows", windows(Counts { dropped: 1, ..Counts::default() })),
            ("late", source(SourceCounts { late: 1, ..SourceCounts::default() })),
            ("duplicate", source(SourceCounts { duplicate: 1, ..SourceCounts::default() })),
            ("unknown", source(SourceCounts { unknown: 1, ..SourceCounts::default() })),
            ("windows_lost", source(SourceCounts { windows_lost: 1, ..SourceCounts::default() })),
            ("hits_lost", source(SourceCounts { hits_lost: 1, ..SourceCounts::default() })),
            ("timeouts", source(SourceCounts { timeouts: 1, ..SourceCounts::default() })),
            ("wrong_time", source(SourceCounts { wrong_time: 1, ..SourceCounts::default() })),
            ("wrong_number", source(SourceCounts { wrong_number: 1, ..SourceCounts::default() })),
            ("wrong_messages", source(SourceCounts { wrong_messages: 1, ..SourceCounts::default() })),
            ("anew", source(SourceCounts { anew: 1, ..SourceCounts::default() })),
            ("unlisted", source(SourceCounts { unlisted: 1, ..SourceCounts::default() })),
            (
                "unlisted",
                Evidence {
                    joined: Joined {
                        others: SourceCounts { unlisted: 1, ..SourceCounts::default() },
                        ..Joined::default()
                    },
                    ..whole()
                },
            ),
            ("two_senders", source(SourceCounts { two_senders: 1, ..SourceCounts::default() })),
            ("skipped", Evidence { skipped_bytes: 8, ..whole() }),
            ("malformed", Evidence { malformed: 1, ..whole() }),
            ("gone", Evidence { gone: 1, ..whole() }),
            ("unreported", Evidence { unreported: 1, ..whole() }),
            ("undelivered", Evidence { undelivered: 1, ..whole() }),
            ("unwritten", Evidence { unwritten: Some((1, "no broker answers".into())), ..whole() }),
            ("sink_failed", Evidence { sinks: &failed, ..whole() }),
            ("sink_lost", Evidence { sinks: &lost, ..whole() }),
            ("unconfirmed", Evidence { sinks: &handed_over, ..whole() }),
        ];
        for (name, evidence) in &cases {
            assert_eq!(reasons(evidence), [*name]);
        }
        let both = Evidence { missing: 2, wrong_words: 3, ..whole() };
        assert_eq!(Verdict::of(&both).to_string(), "NOT COMPLETE: 2 datagrams are missing; 3 words are wrong");
    }

    /// A sink that may fail says nothing of the others, where one of them keeps the data.
    #[test]
    fn a_sink_that_is_optional_may_fail() {
        let failed =
            Report { error: Some("the disk is full".into()), optional: true, keeps: true, ..Report::default() };
        let pushed = Report { sink: "zmq-push:a".into(), handed_over: 7, optional: true, ..Report::default() };
        let kept = Report { sink: "file:a".into(), keeps: true, ..Report::default() };
        let of = |sinks: &[Report]| Verdict::of(&Evidence { sinks, ..whole() }).is_complete();
        assert!(of(&[failed.clone(), kept.clone()]) && of(&[kept.clone(), pushed.clone()]));
        assert!(!of(std::slice::from_ref(&failed)) && !of(&[failed.clone(), Report::default()]));
        assert!(!of(&[pushed]));
        assert!(!of(&[failed.clone(), Report { optional: true, ..kept.clone() }]), "nothing was to keep it");
        assert!(!of(&[Report { optional: false, ..failed }, kept]));
    }

    /// A sink that the user lets drop says nothing of the others.
    #[test]
    fn a_sink_that_may_drop_may() {
        let may_drop = Report { sink: "share:a".into(), may_drop: true, ..Report::default() };
        let sinks = [Report { dropped: 7, ..may_drop.clone() }, Report { handed_over: 7, ..may_drop }];
        assert!(Verdict::of(&Evidence { sinks: &sinks, ..whole() }).is_complete());
    }
}

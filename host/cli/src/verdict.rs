//! Whether a stream is complete: one type for boards, crates and Kafka, judged in one function from one struct of evidence
//! (docs/reliability.md, "What complete means").

use std::fmt;

use clap::ValueEnum;
use fadelink_builder::join::{Counts, Joined, SourceCounts};
use fadelink_sinks::Report;
use schemars::JsonSchema;
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{json, Value};

use crate::checksum::Checksum;

/// How the end of a stream is known, the surest last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// It has not come.
    #[default]
    Missing,
    /// Nothing tells it: the board is silent after it was asked to stop, or cannot be stopped and sends on; a builder on Kafka
    /// has not read the ends of all sources.
    Silence,
    /// A frame told it that nobody had asked for: it may be forged, or another program has stopped the board.
    Told,
    /// The board told it because it was asked to, or TCP did, or a feed wrote behind the messages that TCP did.
    Confirmed,
}

/// The least sure end that the user takes for the end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Accept {
    /// One that the board confirms
    #[default]
    Confirmed,
    /// Also one that a frame tells, though nobody asked for it
    Told,
    /// Any: also silence after the board was asked to stop, and a board that sends on
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
    /// Datagrams that were sent, by the numbers of the others, and not recorded.
    pub missing: u64,
    /// Bytes for which no sink had room when the end was asked for twice.
    pub given_up: u64,
    /// Parts that came again with other content.
    pub contradictions: u64,
    /// Parts that cannot be of this stream, though they say so.
    pub foreign: u64,
    /// Byte behind which another transmission was recorded.
    pub restarted: Option<u64>,
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
    /// Messages of crates that the brokers do not have.
    pub undelivered: u64,
    /// What the sinks have done.
    pub sinks: &'a [Report],
}

/// Why a stream is not complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// Receiving ended early.
    Error(String),
    /// The board says otherwise.
    Board(String),
    /// Its end has not come.
    NoEnd,
    /// Datagrams were not recorded.
    Missing(u64),
    /// Bytes for which no sink had room.
    GivenUp(u64),
    /// Parts that came again with other content.
    Contradictions(u64),
    /// Parts that cannot be of this stream.
    Foreign(u64),
    /// Another transmission was recorded behind this byte.
    Restarted(u64),
    /// The CRC of the words is not that of the board.
    Checksum(Checksum),
    /// Words that differ from the pattern.
    WrongWords(u64),
    /// Windows without one of their sources, given away or dropped.
    Windows(u64),
    /// Messages of windows that had been given away.
    Late(u64),
    /// Messages of a window and a source that had one.
    Duplicate(u64),
    /// Windows that no source sent, and of which nobody knows whether they were empty.
    Unknown(u64),
    /// Windows that crates tell they have lost.
    WindowsLost(u64),
    /// Messages whose time is not that of their window.
    WrongTime(u64),
    /// Bytes that belong to no whole message.
    Skipped(u64),
    /// Messages of a topic that cannot be read.
    Malformed(u64),
    /// Messages that a topic does not have any more.
    Gone(u64),
    /// What is wrong with windows and messages of builders that did not report.
    Unreported(u64),
    /// Messages that the brokers do not have.
    Undelivered(u64),
    /// A sink has failed: its name, and why.
    SinkFailed(String, String),
    /// A sink that may not drop anything has lost so much: its name, amount.
    SinkLost(String, u64),
    /// A sink has met so many messages with an invalid word: its name, amount.
    WrongMessages(String, u64),
}

impl Reason {
    /// Why, where more is known than the summary says.
    fn detail(&self) -> Option<&str> {
        match self {
            Reason::Error(error) => Some(error),
            Reason::SinkFailed(_, why) => Some(why),
            _ => None,
        }
    }

    /// How much, in the unit that its text names; of `restarted` the byte.
    fn amount(&self) -> Option<u64> {
        match *self {
            Reason::Error(_) | Reason::Board(_) | Reason::NoEnd | Reason::Checksum(_) | Reason::SinkFailed(..) => None,
            Reason::Missing(amount)
            | Reason::GivenUp(amount)
            | Reason::Contradictions(amount)
            | Reason::Foreign(amount)
            | Reason::Restarted(amount)
            | Reason::WrongWords(amount)
            | Reason::Windows(amount)
            | Reason::Late(amount)
            | Reason::Duplicate(amount)
            | Reason::Unknown(amount)
            | Reason::WindowsLost(amount)
            | Reason::WrongTime(amount)
            | Reason::Skipped(amount)
            | Reason::Malformed(amount)
            | Reason::Gone(amount)
            | Reason::Undelivered(amount)
            | Reason::Unreported(amount)
            | Reason::SinkLost(_, amount)
            | Reason::WrongMessages(_, amount) => Some(amount),
        }
    }

    /// Its name in reports.
    fn name(&self) -> &'static str {
        match self {
            Reason::Error(_) => "error",
            Reason::Board(_) => "board",
            Reason::NoEnd => "no_end",
            Reason::Missing(_) => "missing",
            Reason::GivenUp(_) => "given_up",
            Reason::Contradictions(_) => "contradictions",
            Reason::Foreign(_) => "foreign",
            Reason::Restarted(_) => "restarted",
            Reason::Checksum(_) => "checksum",
            Reason::WrongWords(_) => "wrong_words",
            Reason::Windows(_) => "windows",
            Reason::Late(_) => "late",
            Reason::Duplicate(_) => "duplicate",
            Reason::Unknown(_) => "unknown",
            Reason::WindowsLost(_) => "windows_lost",
            Reason::WrongTime(_) => "wrong_time",
            Reason::Skipped(_) => "skipped",
            Reason::Malformed(_) => "malformed",
            Reason::Gone(_) => "gone",
            Reason::Unreported(_) => "unreported",
            Reason::Undelivered(_) => "undelivered",
            Reason::SinkFailed(..) => "sink_failed",
            Reason::SinkLost(..) => "sink_lost",
            Reason::WrongMessages(..) => "wrong_messages",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Error(_) => f.write_str("receiving ended early"),
            Reason::Board(what) => f.write_str(what),
            Reason::NoEnd => f.write_str("its end has not come"),
            Reason::Missing(count) => write!(f, "{count} datagrams are missing"),
            Reason::GivenUp(bytes) => write!(f, "no sink had room for {bytes} bytes"),
            Reason::Contradictions(count) => write!(f, "{count} parts came again with other content"),
            Reason::Foreign(count) => write!(f, "{count} parts of another sender or another transmission came"),
            Reason::Restarted(byte) => write!(f, "another transmission was recorded behind byte {byte}"),
            Reason::Checksum(checksum) => f.write_str(&checksum.words()),
            Reason::WrongWords(count) => write!(f, "{count} words are wrong"),
            Reason::Windows(count) => write!(f, "{count} windows miss a source"),
            Reason::Late(count) => write!(f, "{count} messages came after their windows were given away"),
            Reason::Duplicate(count) => write!(f, "{count} messages came for a window that their source had sent"),
            Reason::Unknown(count) => write!(f, "of {count} windows nobody knows whether they were empty"),
            Reason::WindowsLost(count) => write!(f, "crates have lost {count} windows"),
            Reason::WrongTime(count) => write!(f, "{count} messages have another time than their windows"),
            Reason::Skipped(bytes) => write!(f, "{bytes} bytes belong to no whole message"),
            Reason::Malformed(count) => write!(f, "{count} messages of the topic cannot be read"),
            Reason::Gone(count) => write!(f, "{count} messages were deleted or compacted before they were read"),
            Reason::Unreported(count) => {
                write!(f, "builders before have not reported {count} windows and messages that are missing or wrong")
            }
            Reason::Undelivered(count) => write!(f, "the brokers do not have {count} messages"),
            Reason::SinkFailed(sink, _) => write!(f, "{sink} has failed"),
            Reason::SinkLost(sink, amount) => write!(f, "{sink} has lost {amount}"),
            Reason::WrongMessages(sink, count) => write!(f, "{sink} met {count} messages with an invalid word"),
        }
    }
}

/// A verdict in one word, the worse the greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    Complete,
    EndNotConfirmed,
    Incomplete,
}

impl State {
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

    /// Of something of which only this is known.
    pub fn of(is_complete: bool) -> State {
        if is_complete {
            State::Complete
        } else {
            State::Incomplete
        }
    }
}

/// What is to be said of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// All that the board or the crates have sent is recorded by every sink, and this is proven.
    Complete,
    /// Something is missing, wrong or foreign.
    Incomplete(Vec<Reason>),
    /// Nothing is known to be missing, but nobody knows whether there was more: the end is known by this alone.
    EndNotConfirmed(End),
}

impl Verdict {
    /// From all that is known.
    pub fn of(evidence: &Evidence<'_>) -> Verdict {
        let Evidence {
            end,
            accept,
            error,
            board,
            missing,
            given_up,
            contradictions,
            foreign,
            restarted,
            checksum,
            wrong_words,
            joined: Joined { windows, sources: _ },
            skipped_bytes,
            malformed,
            gone,
            unreported,
            undelivered,
            sinks,
        } = evidence;
        let Counts { complete: _, incomplete, dropped, late: _ } = windows;
        // Missing messages make windows incomplete; what else its sessions and absences cost is `unknown`.
        let SourceCounts {
            messages: _,
            late,
            duplicate,
            missing: _,
            unknown,
            windows_lost,
            wrong_time,
            absences: _,
            sessions: _,
        } = evidence.joined.of_all_sources();
        let count = |count: u64, reason: fn(u64) -> Reason| (count > 0).then(|| reason(count));
        let failed = sinks.iter().filter_map(|report| {
            let why = report.error.as_ref()?;
            Some(Reason::SinkFailed(report.sink.clone(), why.clone()))
        });
        let has_failed = sinks.iter().any(|report| report.error.is_some());
        let lost = sinks.iter().filter(|report| report.error.is_none() && report.dropped > 0 && !report.may_drop);
        let wrong = sinks.iter().filter(|report| report.wrong.count > 0);
        let reasons: Vec<Reason> = [
            error.clone().map(Reason::Error),
            board.clone().map(Reason::Board),
            (*end == End::Missing && error.is_none() && !has_failed).then_some(Reason::NoEnd),
            count(*missing, Reason::Missing),
            count(*given_up, Reason::GivenUp),
            count(*contradictions, Reason::Contradictions),
            count(*foreign, Reason::Foreign),
            restarted.map(Reason::Restarted),
            checksum.filter(|checksum| !checksum.is_right()).map(Reason::Checksum),
            count(*wrong_words, Reason::WrongWords),
            count(incomplete + dropped, Reason::Windows),
            count(late, Reason::Late),
            count(duplicate, Reason::Duplicate),
            count(unknown, Reason::Unknown),
            count(windows_lost, Reason::WindowsLost),
            count(wrong_time, Reason::WrongTime),
            count(*skipped_bytes, Reason::Skipped),
            count(*malformed, Reason::Malformed),
            count(*gone, Reason::Gone),
            count(*unreported, Reason::Unreported),
            count(*undelivered, Reason::Undelivered),
        ]
        .into_iter()
        .flatten()
        .chain(failed)
        .chain(lost.map(|report| Reason::SinkLost(report.sink.clone(), report.dropped)))
        .chain(wrong.map(|report| Reason::WrongMessages(report.sink.clone(), report.wrong.count)))
        .collect();
        if !reasons.is_empty() {
            Verdict::Incomplete(reasons)
        } else if *end < End::from(*accept) {
            Verdict::EndNotConfirmed(*end)
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
            Verdict::EndNotConfirmed(_) => State::EndNotConfirmed,
        }
    }

    /// Why it is not complete, for a report.
    fn reasons(&self) -> Value {
        match self {
            Verdict::Complete => json!([]),
            Verdict::Incomplete(reasons) => {
                let json = |reason: &Reason| {
                    let text = reason.to_string();
                    let text = reason.detail().map_or(text.clone(), |why| format!("{text}: {why}"));
                    let mut told = json!({ "reason": reason.name(), "text": text });
                    if let Some(amount) = reason.amount() {
                        told["amount"] = amount.into();
                    }
                    told
                };
                reasons.iter().map(json).collect()
            }
            Verdict::EndNotConfirmed(_) => json!([{ "reason": self.state().name(), "text": self.to_string() }]),
        }
    }
}

/// As in reports: `complete`, `verdict`, `reasons`.
impl Serialize for Verdict {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(3))?;
        map.serialize_entry("complete", &self.is_complete())?;
        map.serialize_entry("verdict", self.state().name())?;
        map.serialize_entry("reasons", &self.reasons())?;
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
            Verdict::EndNotConfirmed(End::Silence) => {
                f.write_str("END NOT CONFIRMED: nothing tells what was sent in all (--end silence accepts that)")
            }
            Verdict::EndNotConfirmed(_) => f.write_str(
                "END NOT CONFIRMED: the end came, but nobody here had asked for it (--end told accepts that)",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use fadelink_sinks::WrongMessages;

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
            assert_eq!(verdict == Verdict::EndNotConfirmed(end), !is_complete);
        }
        let missing = Evidence { accept: Accept::Silence, ..Evidence::default() };
        assert_eq!(reasons(&missing), ["no_end"]);
    }

    /// Each field of the evidence has a reason of its own.
    #[test]
    fn each_evidence_against_is_told() {
        let failed = [Report { sink: "file:a".into(), error: Some("the disk is full".into()), ..Report::default() }];
        let lost = [Report { sink: "file:a".into(), dropped: 7, ..Report::default() }];
        let wrong = WrongMessages { count: 2, first: None };
        let wrong = [Report { sink: "hdf5:a".into(), wrong, ..Report::default() }];
        let windows = |windows| Evidence { joined: Joined { windows, ..Joined::default() }, ..whole() };
        let source = |counts| {
            let sources = [(1, counts), (2, SourceCounts::default())].into();
            Evidence { joined: Joined { sources, ..Joined::default() }, ..whole() }
        };
        let cases = [
            ("error", Evidence { error: Some("no data for 3 s".into()), ..whole() }),
            ("board", Evidence { board: Some("it has sent 8 datagrams".into()), ..whole() }),
            ("missing", Evidence { missing: 1, ..whole() }),
            ("given_up", Evidence { given_up: 8, ..whole() }),
            ("contradictions", Evidence { contradictions: 1, ..whole() }),
            ("foreign", Evidence { foreign: 1, ..whole() }),
            ("restarted", Evidence { restarted: Some(0), ..whole() }),
            ("checksum", Evidence { checksum: Some(Checksum { told: None, received: 0 }), ..whole() }),
            ("wrong_words", Evidence { wrong_words: 1, ..whole() }),
            ("windows", windows(Counts { incomplete: 1, ..Counts::default() })),
            ("windows", windows(Counts { dropped: 1, ..Counts::default() })),
            ("late", source(SourceCounts { late: 1, ..SourceCounts::default() })),
            ("duplicate", source(SourceCounts { duplicate: 1, ..SourceCounts::default() })),
            ("unknown", source(SourceCounts { unknown: 1, ..SourceCounts::default() })),
            ("windows_lost", source(SourceCounts { windows_lost: 1, ..SourceCounts::default() })),
            ("wrong_time", source(SourceCounts { wrong_time: 1, ..SourceCounts::default() })),
            ("skipped", Evidence { skipped_bytes: 8, ..whole() }),
            ("malformed", Evidence { malformed: 1, ..whole() }),
            ("gone", Evidence { gone: 1, ..whole() }),
            ("unreported", Evidence { unreported: 1, ..whole() }),
            ("undelivered", Evidence { undelivered: 1, ..whole() }),
            ("wrong_messages", Evidence { sinks: &wrong, ..whole() }),
            ("sink_failed", Evidence { sinks: &failed, ..whole() }),
            ("sink_lost", Evidence { sinks: &lost, ..whole() }),
        ];
        for (name, evidence) in &cases {
            assert_eq!(reasons(evidence), [*name]);
        }
        let both = Evidence { missing: 2, wrong_words: 3, ..whole() };
        assert_eq!(Verdict::of(&both).to_string(), "NOT COMPLETE: 2 datagrams are missing; 3 words are wrong");
    }

    /// A sink that the user lets drop says nothing of the others.
    #[test]
    fn a_sink_that_may_drop_may() {
        let sinks = [Report { sink: "share:a".into(), dropped: 7, may_drop: true, ..Report::default() }];
        assert!(Verdict::of(&Evidence { sinks: &sinks, ..whole() }).is_complete());
    }
}

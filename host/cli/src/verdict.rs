//! Whether a stream is complete: one type for every wire, judged in one function from one struct of evidence
//! (docs/reliability.md, "What complete means").

use std::fmt;

use clap::ValueEnum;
use fadelink_sinks::Report;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{json, Value};

/// How the end of a stream is known, the surest last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// It has not come.
    #[default]
    Missing,
    /// Nothing tells it: the board is silent after it was asked to stop, or cannot be stopped and sends on.
    Silence,
    /// A frame told it that nobody had asked for: it may be forged, or another program has stopped the board.
    Told,
    /// The board told it because it was asked to, or TCP did.
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
    /// Words that differ from the pattern.
    pub wrong_words: u64,
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
    /// Words that differ from the pattern.
    WrongWords(u64),
    /// A sink has failed: its name, and why.
    SinkFailed(String, String),
    /// A sink that may not drop anything has lost so much: its name, amount.
    SinkLost(String, u64),
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
            Reason::WrongWords(_) => "wrong_words",
            Reason::SinkFailed(..) => "sink_failed",
            Reason::SinkLost(..) => "sink_lost",
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
            Reason::WrongWords(count) => write!(f, "{count} words are wrong"),
            Reason::SinkFailed(sink, _) => write!(f, "{sink} has failed"),
            Reason::SinkLost(sink, amount) => write!(f, "{sink} has lost {amount}"),
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
    /// Each word that the board has sent is recorded by every sink, and this is proven.
    Complete,
    /// Something is missing, wrong or foreign.
    Incomplete(Vec<Reason>),
    /// Nothing is known to be missing, but nobody knows whether the board had more: its end is known by this alone.
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
            wrong_words,
            sinks,
        } = evidence;
        let count = |count: u64, reason: fn(u64) -> Reason| (count > 0).then(|| reason(count));
        let failed = sinks.iter().filter_map(|report| {
            let why = report.error.as_ref()?;
            Some(Reason::SinkFailed(report.sink.clone(), why.clone()))
        });
        let has_failed = sinks.iter().any(|report| report.error.is_some());
        let lost = sinks.iter().filter(|report| report.error.is_none() && report.dropped > 0 && !report.may_drop);
        let reasons: Vec<Reason> = [
            error.clone().map(Reason::Error),
            board.clone().map(Reason::Board),
            (*end == End::Missing && error.is_none() && !has_failed).then_some(Reason::NoEnd),
            count(*missing, Reason::Missing),
            count(*given_up, Reason::GivenUp),
            count(*contradictions, Reason::Contradictions),
            count(*foreign, Reason::Foreign),
            restarted.map(Reason::Restarted),
            count(*wrong_words, Reason::WrongWords),
        ]
        .into_iter()
        .flatten()
        .chain(failed)
        .chain(lost.map(|report| Reason::SinkLost(report.sink.clone(), report.dropped)))
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
    pub fn reasons(&self) -> Value {
        match self {
            Verdict::Complete => json!([]),
            Verdict::Incomplete(reasons) => {
                let json = |reason: &Reason| {
                    let text = reason.to_string();
                    let text = reason.detail().map_or(text.clone(), |why| format!("{text}: {why}"));
                    json!({ "reason": reason.name(), "text": text })
                };
                reasons.iter().map(json).collect()
            }
            Verdict::EndNotConfirmed(_) => json!([{ "reason": self.state().name(), "text": self.to_string() }]),
        }
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
            Verdict::EndNotConfirmed(End::Silence) => f.write_str(
                "END NOT CONFIRMED: nothing tells what the board has sent in all (--end silence accepts that)",
            ),
            Verdict::EndNotConfirmed(_) => f.write_str(
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
        let cases = [
            ("error", Evidence { error: Some("no data for 3 s".into()), ..whole() }),
            ("board", Evidence { board: Some("it has sent 8 datagrams".into()), ..whole() }),
            ("missing", Evidence { missing: 1, ..whole() }),
            ("given_up", Evidence { given_up: 8, ..whole() }),
            ("contradictions", Evidence { contradictions: 1, ..whole() }),
            ("foreign", Evidence { foreign: 1, ..whole() }),
            ("restarted", Evidence { restarted: Some(0), ..whole() }),
            ("wrong_words", Evidence { wrong_words: 1, ..whole() }),
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

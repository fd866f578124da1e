//! Metrics for Prometheus, by its naming rules (docs/monitoring.md).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use anyhow::Context;
use fadelink_builder::counts::{Joined, SourceCounts};
use fadelink_builder::tcp::Came;
use fadelink_receiver::counters::{FebCounts, LinkCounts};
use fadelink_receiver::udp;
use fadelink_sinks::Report;
use metrics::{counter, describe_counter, describe_gauge, gauge, Label};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use metrics_process::Collector;
use metrics_util::MetricKindMask;
use strum::VariantNames;

use crate::verdict::{Reason, State, Verdict};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Counter,
    Gauge,
}
use Kind::{Counter, Gauge};

/// All metrics, beside those of the process.
const METRICS: &[(&str, Kind, &str)] = &[
    ("fadelink_build_info", Gauge, "Always 1, with the version and the command of the program."),
    ("fadelink_healthy", Gauge, "1 while the program does what it should, as GET /health tells."),
    ("fadelink_received_bytes_total", Counter, "Bytes of words that came from a board, or of messages from a crate."),
    ("fadelink_wrong_words_total", Counter, "Words that differ from the pattern that they are verified against."),
    ("fadelink_ring_used_bytes", Gauge, "Bytes of a board's ring that hold data."),
    ("fadelink_ring_size_bytes", Gauge, "Bytes of a board's ring."),
    ("fadelink_fade_packets_total", Counter, "Packets of FADE that were stored."),
    ("fadelink_fade_duplicate_frames_total", Counter, "Data frames of packets that were confirmed before."),
    (
        "fadelink_fade_contradictions_total",
        Counter,
        "Data frames of packets that were stored before with other content.",
    ),
    ("fadelink_fade_repaired_frames_total", Counter, "Data frames that filled a gap."),
    ("fadelink_fade_missing_frames_total", Counter, "Frames of a board that never came."),
    ("fadelink_fade_dropped_frames_total", Counter, "Data frames that were dropped, by reason."),
    ("fadelink_fade_sent_frames_total", Counter, "Frames that were sent to a board, by type."),
    ("fadelink_fade_responses_total", Counter, "Responses to commands, and whether a command waited for them."),
    ("fadelink_fade_interrupted_transmissions_total", Counter, "Transmissions that a START found running."),
    (
        "fadelink_fade_begun_again_total",
        Counter,
        "Times that a transmission was begun again, as its first packet did not come.",
    ),
    (
        "fadelink_fade_delay_cycles",
        Gauge,
        "Delay between packets that the board has told last, in cycles of its clock.",
    ),
    ("fadelink_link_frames_total", Counter, "Frames that came over an interface."),
    ("fadelink_link_dropped_frames_total", Counter, "Frames that belong to no open board, by reason."),
    ("fadelink_link_resets_total", Counter, "RESET frames that were sent to boards that nobody has opened."),
    ("fadelink_link_send_errors_total", Counter, "Frames that could not be sent."),
    (
        "fadelink_link_interruptions_total",
        Counter,
        "Times that the interface could not receive: down, port of a bridge, another address.",
    ),
    ("fadelink_port_connections_total", Counter, "Connections to a port that no data was taken of, by reason."),
    ("fadelink_udp_datagrams_total", Counter, "Datagrams of a board that came in time."),
    ("fadelink_udp_lost_datagrams_total", Counter, "Datagrams that did not come."),
    ("fadelink_udp_late_datagrams_total", Counter, "Datagrams that came after they were given up for lost."),
    ("fadelink_udp_duplicate_datagrams_total", Counter, "Datagrams that had come before."),
    ("fadelink_udp_reordered_datagrams_total", Counter, "Datagrams that came behind a later one."),
    ("fadelink_crate_messages_total", Counter, "Whole messages over the connections of a crate."),
    (
        "fadelink_crate_skipped_bytes_total",
        Counter,
        "Bytes over the connections of a crate that belong to no whole message.",
    ),
    ("fadelink_builder_events_total", Counter, "Events that were emitted."),
    ("fadelink_builder_windows_total", Counter, "Windows by result."),
    ("fadelink_builder_messages_total", Counter, "Messages of a source by result."),
    ("fadelink_builder_missing_windows_total", Counter, "Windows without a source, by reason."),
    ("fadelink_builder_lost_hits_total", Counter, "Hits that a crate has lost, as it tells."),
    ("fadelink_builder_module_timeouts_total", Counter, "Times that a module did not end a window in time."),
    ("fadelink_builder_epochs_total", Counter, "Times that a source has counted its windows anew."),
    ("fadelink_builder_absences_total", Counter, "Times that a source was silent for too long."),
    ("fadelink_builder_sessions_total", Counter, "Times that a source has connected."),
    ("fadelink_builder_aborted_transactions_total", Counter, "Transactions of Kafka that were done again."),
    ("fadelink_builder_unread_messages_total", Counter, "Messages of a topic that could not be read, by reason."),
    ("fadelink_feed_delivered_messages_total", Counter, "Messages that the brokers have."),
    ("fadelink_verdict_state", Gauge, "1 for the verdict on a stream, or what is known of it so far."),
    ("fadelink_verdict_reason", Gauge, "Amount of what speaks against a stream being complete, by reason."),
    ("fadelink_sink_written_bytes_total", Counter, "Bytes that a sink has taken."),
    ("fadelink_sink_dropped_bytes_total", Counter, "Bytes that a sink has lost."),
    ("fadelink_sink_written_events_total", Counter, "Events that a sink has taken."),
    ("fadelink_sink_handed_over_events_total", Counter, "Events that a sink has given away, which nobody confirms."),
    ("fadelink_sink_dropped_events_total", Counter, "Events that a sink has lost."),
    ("fadelink_sink_queued_bytes", Gauge, "Bytes of memory that wait for a sink."),
    ("fadelink_sink_failed", Gauge, "1 if a sink has failed."),
    ("fadelink_run_number", Gauge, "Number of the run that goes on, or of the last one."),
    ("fadelink_run_active", Gauge, "1 while a run goes on."),
    ("fadelink_run_start_time_seconds", Gauge, "When the run has begun, in seconds since 1970."),
    ("fadelink_run_held", Gauge, "1 while the boards wait because the disk is full."),
    ("fadelink_runs_total", Counter, "Runs that have ended, by result."),
    ("fadelink_disk_free_bytes", Gauge, "Free bytes on the disk of the runs."),
    ("fadelink_disk_reserve_bytes", Gauge, "Bytes that stay free on the disk of the runs."),
];

/// A board or stream that is no more measured is left out after this time.
const KEPT: Duration = Duration::from_secs(300);

/// What renders them; nothing is recorded without it.
static RECORDER: OnceLock<Recorder> = OnceLock::new();

struct Recorder {
    handle: PrometheusHandle,
    process: Collector,
    command: &'static str,
}

/// Records metrics of `command` from now on.
///
/// # Errors
/// There is another recorder.
pub fn record(command: &'static str) -> anyhow::Result<()> {
    if RECORDER.get().is_some() {
        return Ok(());
    }
    let kinds = MetricKindMask::COUNTER | MetricKindMask::GAUGE;
    let handle = PrometheusBuilder::new().idle_timeout(kinds, Some(KEPT)).install_recorder().context("metrics")?;
    for (name, kind, help) in METRICS {
        match kind {
            Counter => describe_counter!(*name, *help),
            Gauge => describe_gauge!(*name, *help),
        }
    }
    let process = Collector::default();
    process.describe();
    let _ = RECORDER.set(Recorder { handle, process, command });
    Ok(())
}

/// Gauges of the program, which are kept without being set again.
static PROGRAM: Mutex<BTreeMap<&str, f64>> = Mutex::new(BTreeMap::new());

/// Sets a gauge of the program.
pub fn set_of_program(name: &'static str, value: f64) {
    PROGRAM.lock().unwrap_or_else(PoisonError::into_inner).insert(name, value);
}

/// A run has ended with one of these.
pub const RESULTS: [&str; 5] = ["complete", "incomplete", "end_not_confirmed", "failed", "stopped"];

/// Counts a run; without a result, all are shown as they are.
pub fn count_run(result: Option<&'static str>) {
    for known in RESULTS {
        counter!("fadelink_runs_total", "result" => known).increment(u64::from(result == Some(known)));
    }
}

const PORT_CONNECTIONS: &str = "fadelink_port_connections_total";

/// A connection to the HTTP server at this port made room for another.
pub fn count_displaced(port: u16) {
    count_connection(port, "displaced");
}

/// A connection to a sink at this port was closed at once: there are too few file descriptors.
pub fn count_turned_away(port: u16) {
    count_connection(port, "turned_away");
}

fn count_connection(port: u16, reason: &'static str) {
    counter!(PORT_CONNECTIONS, "port" => port.to_string(), "reason" => reason).increment(1);
}

/// The metrics, in the text format of Prometheus.
pub fn render() -> String {
    let Some(Recorder { handle, process, command }) = RECORDER.get() else { return String::new() };
    process.collect();
    let program = PROGRAM.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if program.contains_key("fadelink_run_active") {
        count_run(None);
    }
    program.into_iter().for_each(|(name, value)| set(name, &[], value));
    gauge!("fadelink_build_info", "version" => env!("CARGO_PKG_VERSION"), "command" => *command).set(1.0);
    handle.render()
}

/// The verdict on a stream that goes on, as far as nothing speaks against it.
const OPEN: &str = "open";

/// Stands for the name of a stream at what is said of all together.
const WHOLE: &str = "(whole)";

/// Streams of which a verdict is shown.
static JUDGED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// A run begins: of the streams of the one before nothing is known, and nothing speaks against the whole.
pub fn begin_verdicts() {
    let before = std::mem::take(&mut *JUDGED.lock().unwrap_or_else(PoisonError::into_inner));
    before.iter().for_each(|stream| show_verdict(stream, None, [].iter()));
    show_verdict(WHOLE, Some(OPEN), [].iter());
}

/// Shows the verdict on a stream; `is_over`: the last one.
pub fn set_verdict(stream: &str, verdict: &Verdict, is_over: bool) {
    let state = if verdict.is_complete() && !is_over { OPEN } else { verdict.state().name() };
    show_verdict(stream, Some(state), verdict.reasons().iter());
}

/// Shows the last verdict on all streams together, with the reasons that are of none of them.
pub fn set_whole<'a>(state: State, reasons: impl Iterator<Item = &'a Reason> + Clone) {
    show_verdict(WHOLE, Some(state.name()), reasons);
}

/// All states and reasons that there are have a value.
fn show_verdict<'a>(stream: &str, state: Option<&str>, reasons: impl Iterator<Item = &'a Reason> + Clone) {
    if RECORDER.get().is_none() {
        return;
    }
    JUDGED.lock().unwrap_or_else(PoisonError::into_inner).insert(stream.to_owned());
    for known in State::ALL.iter().map(|state| state.name()).chain([OPEN]) {
        let value = if Some(known) == state { 1.0 } else { 0.0 };
        set("fadelink_verdict_state", &[("stream", stream), ("state", known)], value);
    }
    for name in Reason::VARIANTS {
        let of_name = reasons.clone().filter(|reason| reason.name() == *name);
        let amount: u64 = of_name.map(|reason| reason.amount().unwrap_or(1)).sum();
        set("fadelink_verdict_reason", &[("stream", stream), ("reason", name)], amount as f64);
    }
}

type Labels<'a> = [(&'static str, &'a str)];

/// Sets a gauge.
pub fn set(name: &'static str, labels: &Labels<'_>, value: f64) {
    debug_assert!(METRICS.contains(&(name, Gauge, help(name))), "{name}");
    gauge!(name, of(labels)).set(value);
}

fn of(labels: &Labels<'_>) -> Vec<Label> {
    labels.iter().map(|(name, value)| Label::new(*name, (*value).to_owned())).collect()
}

fn help(name: &str) -> &'static str {
    METRICS.iter().find(|(known, ..)| *known == name).map_or("", |(.., help)| help)
}

/// Counts what receivers have counted, which begin at 0 with each transmission. With what is wrong meanwhile.
#[derive(Default)]
pub struct Meter {
    before: HashMap<String, u64>,
    troubles: Vec<String>,
}

impl Meter {
    /// What is counted is `value` now.
    pub fn count(&mut self, name: &'static str, labels: &Labels<'_>, value: u64) {
        debug_assert!(METRICS.contains(&(name, Counter, help(name))), "{name}");
        let mut key = name.to_owned();
        labels.iter().for_each(|(_, label)| key.extend(["\0", label]));
        let before = self.before.insert(key, value).unwrap_or(0);
        // A smaller value has begun anew.
        counter!(name, of(labels)).increment(if value < before { value } else { value - before });
    }

    /// Something is wrong.
    pub fn trouble(&mut self, what: String) {
        self.troubles.push(what);
    }

    /// What is wrong since the last call.
    pub fn take_troubles(&mut self) -> Vec<String> {
        std::mem::take(&mut self.troubles)
    }

    /// What has come from a board so far.
    pub fn board(&mut self, board: &str, bytes: u64, wrong_words: Option<u64>) {
        let labels = [("board", board)];
        self.count("fadelink_received_bytes_total", &labels, bytes);
        if let Some(wrong) = wrong_words {
            self.count("fadelink_wrong_words_total", &labels, wrong);
        }
    }

    /// What was counted of a board with FADE, with its ring's fill and size in bytes.
    pub fn fade(&mut self, board: &str, counts: &FebCounts, fill: (u64, u64)) {
        let labels = [("board", board)];
        set("fadelink_ring_used_bytes", &labels, fill.0 as f64);
        set("fadelink_ring_size_bytes", &labels, fill.1 as f64);
        set("fadelink_fade_delay_cycles", &labels, counts.delay as f64);
        for (name, value) in [
            ("fadelink_fade_packets_total", counts.packets),
            ("fadelink_fade_duplicate_frames_total", counts.duplicates),
            ("fadelink_fade_contradictions_total", counts.contradictions),
            ("fadelink_fade_repaired_frames_total", counts.repaired),
            ("fadelink_fade_missing_frames_total", counts.missing_frames),
            ("fadelink_fade_interrupted_transmissions_total", counts.interrupted),
            ("fadelink_fade_begun_again_total", counts.begun_again),
        ] {
            self.count(name, &labels, value);
        }
        let mut by = |name, label, values: &[(&'static str, u64)]| {
            values.iter().for_each(|(of, value)| self.count(name, &[("board", board), (label, *of)], *value));
        };
        by(
            "fadelink_fade_dropped_frames_total",
            "reason",
            &[
                ("no_space", counts.no_space),
                ("not_started", counts.not_started),
                ("protocol_error", counts.protocol_errors),
                ("wrong_length", counts.wrong_length),
                ("wrong_valid_words", counts.wrong_valid_words),
            ],
        );
        let sent = [("ack", counts.acks), ("command", counts.commands), ("reset", counts.resets)];
        by("fadelink_fade_sent_frames_total", "type", &sent);
        let responses = [("yes", counts.responses), ("no", counts.unexpected_responses)];
        by("fadelink_fade_responses_total", "expected", &responses);
    }

    /// Frames that belong to no open board.
    pub fn link(&mut self, interface: &str, counts: &LinkCounts) {
        let labels = [("interface", interface)];
        self.count("fadelink_link_frames_total", &labels, counts.frames);
        self.count("fadelink_link_resets_total", &labels, counts.resets);
        self.count("fadelink_link_send_errors_total", &labels, counts.send_errors);
        self.count("fadelink_link_interruptions_total", &labels, counts.interruptions);
        for (reason, value) in counts.entries() {
            if !["frames", "resets", "send_errors", "interruptions"].contains(&reason) {
                let labels = [("interface", interface), ("reason", reason)];
                self.count("fadelink_link_dropped_frames_total", &labels, value);
            }
        }
    }

    /// Connections to a port that no data was taken of, by reason.
    pub fn port(&mut self, port: u16, reasons: &[(&'static str, u64)]) {
        let port = port.to_string();
        for (reason, value) in reasons {
            self.count(PORT_CONNECTIONS, &[("port", &port), ("reason", reason)], *value);
        }
    }

    /// Datagrams of a board.
    pub fn datagrams(&mut self, board: &str, counts: &udp::Counts) {
        for (name, value) in [
            ("fadelink_udp_datagrams_total", counts.received),
            ("fadelink_udp_lost_datagrams_total", counts.lost),
            ("fadelink_udp_late_datagrams_total", counts.late),
            ("fadelink_udp_duplicate_datagrams_total", counts.duplicates),
            ("fadelink_udp_reordered_datagrams_total", counts.reordered),
        ] {
            self.count(name, &[("board", board)], value);
        }
    }

    /// What came over the connections of crates.
    pub fn connections(&mut self, came: &Came) {
        came.error().into_iter().for_each(|error| self.trouble(error));
        for (source, counts) in &came.by_source {
            let source = source.map_or_else(|| "unknown".into(), |source| format!("{source:#010x}"));
            let labels = [("board", &*source)];
            self.count("fadelink_received_bytes_total", &labels, counts.bytes);
            self.count("fadelink_crate_messages_total", &labels, counts.messages);
            self.count("fadelink_crate_skipped_bytes_total", &labels, counts.skipped_bytes + counts.cut_bytes);
        }
    }

    /// What a builder has joined so far.
    pub fn builder(&mut self, builder: &str, events: u64, joined: &Joined) {
        self.count("fadelink_builder_events_total", &[("builder", builder)], events);
        let windows = &joined.windows;
        for (result, value) in [
            ("complete", windows.complete),
            ("incomplete", windows.incomplete),
            ("dropped", windows.dropped),
            ("late", windows.late),
        ] {
            self.count("fadelink_builder_windows_total", &[("builder", builder), ("result", result)], value);
        }
        for (source, counts) in joined.by_name() {
            let SourceCounts {
                messages,
                late,
                duplicate,
                missing,
                unknown,
                windows_lost,
                hits_lost,
                timeouts,
                wrong_time,
                wrong_number,
                set_aside,
                anew,
                wrong_messages,
                unlisted,
                two_senders,
                absences,
                sessions,
            } = counts;
            let mut by = |name, label, of, value: &u64| {
                self.count(name, &[("builder", builder), ("source", &source), (label, of)], *value);
            };
            for (result, value) in [
                ("joined", messages),
                ("late", late),
                ("duplicate", duplicate),
                ("wrong_time", wrong_time),
                ("wrong_number", wrong_number),
                ("set_aside", set_aside),
                ("wrong_messages", wrong_messages),
                ("unlisted", unlisted),
                ("two_senders", two_senders),
            ] {
                by("fadelink_builder_messages_total", "result", result, value);
            }
            for (reason, value) in [("missing", missing), ("unknown", unknown), ("lost_by_crate", windows_lost)] {
                by("fadelink_builder_missing_windows_total", "reason", reason, value);
            }
            let labels = [("builder", builder), ("source", &*source)];
            self.count("fadelink_builder_lost_hits_total", &labels, *hits_lost);
            self.count("fadelink_builder_module_timeouts_total", &labels, *timeouts);
            self.count("fadelink_builder_epochs_total", &labels, *anew);
            self.count("fadelink_builder_absences_total", &labels, *absences);
            self.count("fadelink_builder_sessions_total", &labels, *sessions);
        }
    }

    fn sink(&mut self, labels: &Labels<'_>, report: &Report) {
        set("fadelink_sink_queued_bytes", labels, report.queued_bytes as f64);
        set("fadelink_sink_failed", labels, if report.error.is_some() { 1.0 } else { 0.0 });
        if let Some(error) = &report.error {
            self.trouble(format!("{}: {error}", report.sink));
        } else if let Some(trouble) = &report.trouble {
            self.trouble(format!("{}: {trouble}", report.sink));
        }
    }

    /// What the sinks of a board have written and dropped so far.
    pub fn sinks(&mut self, board: &str, reports: &[Report]) {
        for report in reports {
            let labels = [("board", board), ("sink", &*report.sink)];
            self.count("fadelink_sink_written_bytes_total", &labels, report.written);
            self.count("fadelink_sink_dropped_bytes_total", &labels, report.dropped);
            self.sink(&labels, report);
        }
    }

    /// What the sinks of a builder have written and dropped so far.
    pub fn event_sinks(&mut self, builder: &str, reports: &[Report]) {
        for report in reports {
            let labels = [("builder", builder), ("sink", &*report.sink)];
            self.count("fadelink_sink_written_events_total", &labels, report.written);
            self.count("fadelink_sink_handed_over_events_total", &labels, report.handed_over);
            self.count("fadelink_sink_dropped_events_total", &labels, report.dropped);
            self.sink(&labels, report);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_rules() {
        for (index, (name, kind, help)) in METRICS.iter().enumerate() {
            assert!(name.starts_with("fadelink_") && help.ends_with('.'), "{name}");
            assert_eq!(name.ends_with("_total"), *kind == Counter, "{name}");
            assert!(METRICS[..index].iter().all(|(other, ..)| other != name), "{name} is there twice");
        }
    }

    #[test]
    fn counters_go_on_over_transmissions() {
        record("test").unwrap();
        let mut meter = Meter::default();
        let mut board = |bytes| meter.board("a", bytes, Some(0));
        [100, 250, 40, 50].into_iter().for_each(&mut board);
        Meter::default().board("a", 7, None);
        let text = render();
        assert!(text.contains("fadelink_received_bytes_total{board=\"a\"} 307"), "{text}");
        assert!(text.contains("fadelink_wrong_words_total{board=\"a\"} 0"), "{text}");
        assert!(text.contains("# HELP fadelink_received_bytes_total Bytes of words"), "{text}");
    }
}

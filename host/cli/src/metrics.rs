//! Counters for Prometheus.

use std::net::SocketAddr;
use std::sync::OnceLock;

use anyhow::Context;
use fadelink_receiver::counters::{FebCounts, LinkCounts};
use fadelink_receiver::udp;
use fadelink_sinks::{Board, Report};
use fadelink_wire::MacAddr;
use metrics::{counter, gauge};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

/// What renders them; nothing is recorded without it.
static RECORDER: OnceLock<PrometheusHandle> = OnceLock::new();

/// Records metrics from now on.
///
/// # Errors
/// There is another recorder.
pub fn record() -> anyhow::Result<()> {
    if RECORDER.get().is_none() {
        let handle = PrometheusBuilder::new().install_recorder().context("metrics")?;
        RECORDER.get_or_init(|| handle);
    }
    Ok(())
}

/// The metrics, in the text format of Prometheus.
pub fn render() -> String {
    RECORDER.get().map(PrometheusHandle::render).unwrap_or_default()
}

/// What has come from a FEB so far, with its ring's fill in bytes.
pub fn feb(mac: MacAddr, bytes: u64, counts: &FebCounts, fill: (u64, u64)) {
    let labels = [("feb", mac.to_string())];
    counter!("fadelink_bytes_total", &labels).absolute(bytes);
    gauge!("fadelink_ring_used_bytes", &labels).set(fill.0 as f64);
    gauge!("fadelink_ring_bytes", &labels).set(fill.1 as f64);
    gauge!("fadelink_transmission_delay_cycles", &labels).set(counts.delay as f64);
    for (name, value) in counts.entries() {
        if name != "delay" {
            counter!(format!("fadelink_{name}_total"), &labels).absolute(value);
        }
    }
}

/// Frames that belong to no open FEB.
pub fn link(interface: &str, counts: &LinkCounts) {
    let labels = [("interface", interface.to_owned())];
    for (name, value) in counts.entries() {
        counter!(format!("fadelink_link_{name}_total"), &labels).absolute(value);
    }
}

/// What the sinks of a board have written and dropped so far.
pub fn sinks(board: Board, reports: &[Report]) {
    for report in reports {
        let labels = [(board.key(), board.to_string()), ("sink", report.sink.clone())];
        counter!("fadelink_sink_bytes_total", &labels).absolute(report.written);
        counter!("fadelink_sink_dropped_bytes_total", &labels).absolute(report.dropped);
        gauge!("fadelink_sink_queued_bytes", &labels).set(report.queued_bytes as f64);
    }
}

/// What has come over a TCP stream so far.
pub fn stream(peer: SocketAddr, bytes: u64) {
    counter!("fadelink_tcp_bytes_total", "stream" => peer.to_string()).absolute(bytes);
}

/// What has come of a UDP stream so far.
pub fn datagrams(peer: SocketAddr, bytes: u64, counts: &udp::Counts) {
    let labels = [("stream", peer.to_string())];
    counter!("fadelink_udp_bytes_total", &labels).absolute(bytes);
    for (name, value) in [
        ("received", counts.received),
        ("lost", counts.lost),
        ("late", counts.late),
        ("duplicates", counts.duplicates),
        ("reordered", counts.reordered),
    ] {
        counter!(format!("fadelink_udp_{name}_total"), &labels).absolute(value);
    }
}

/// Events that a builder has made so far, and what its sinks have done with them.
pub fn events(builder: &str, events: u64, reports: &[Report]) {
    counter!("fadelink_events_total", "builder" => builder.to_owned()).absolute(events);
    for report in reports {
        let labels = [("builder", builder.to_owned()), ("sink", report.sink.clone())];
        counter!("fadelink_sink_events_total", &labels).absolute(report.written);
        counter!("fadelink_sink_dropped_events_total", &labels).absolute(report.dropped);
        gauge!("fadelink_sink_queued_bytes", &labels).set(report.queued_bytes as f64);
    }
}

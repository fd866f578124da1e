//! The software FEB behaves like the RTL: tests/vectors/fade10g_traces.json (tests/rtl/test_trace.py).

use std::time::Duration;

use fadelink_feb::example::Example;
use fadelink_feb::{BoardSettings, Fade10gBoard, Fade1Board, Status, User};
use fadelink_vectors::{unhex, vectors};
use fadelink_wire::fade1;
use fadelink_wire::fade10g::{self, FebFrame, Request, Response, FILLER, PACKET_BYTES, REQUEST_LEN};
use fadelink_wire::MacAddr;
use serde_json::Value;

const FEB: MacAddr = MacAddr([2, 0xfa, 0xde, 0, 0, 1]);
const PC: MacAddr = MacAddr([2, 0xfa, 0xde, 0, 0, 0xf0]);
/// Time stands still: nothing becomes overdue by itself.
const NOW: Duration = Duration::from_secs(1);

/// A source in the RTL takes its time to fill a packet, and other frames may go meanwhile. Here it gives
/// what the trace says was there.
struct Gate {
    example: Example,
    bytes: usize,
}

impl User for Gate {
    fn begin(&mut self) {
        self.example.begin();
    }

    fn fill(&mut self, out: &mut [u8]) -> usize {
        let bytes = out.len().min(self.bytes);
        let filled = self.example.fill(&mut out[..bytes]);
        self.bytes -= filled;
        filled
    }

    fn command(&mut self, code: u16, argument: u32, status: &Status) -> u64 {
        self.example.command(code, argument, status)
    }
}

fn request(hex: &str) -> Vec<u8> {
    let mut frame = unhex(hex);
    frame.resize(REQUEST_LEN, FILLER);
    frame
}

fn response(value: &Value) -> Option<Response> {
    let field = |i: usize| value[i].as_u64().unwrap();
    (!value.is_null()).then(|| Response { code: field(0) as u16, csn: field(1) as u16, value: field(2) })
}

fn replay(trace: &Value) -> usize {
    let number = |value: &Value| value.as_u64().unwrap() as u32;
    let settings = BoardSettings {
        window: number(&trace["window"]),
        first_packet: number(&trace["first_packet"]),
        ..BoardSettings::default()
    };
    let mut feb = Fade10gBoard::new(FEB, settings, Gate { example: Example::default(), bytes: 0 });
    let (mut overdue, mut fresh) = (0, 0);
    let events = trace["events"].as_array().unwrap();
    let mut left_over = events.iter().find_map(|event| event["out"]["last"].as_u64()).unwrap() as usize * 8;
    for (at, event) in events.iter().enumerate() {
        let place = format!("seed {} event {at}: {event}", trace["seed"]);
        if let Some(hex) = event["in"].as_str() {
            if fade10g::parse_request(&request(hex)).is_ok_and(|(header, body)| {
                header.src == PC && matches!(body, Request::Command { code: fade10g::CMD_STOP, .. })
            }) {
                // The packet that STOP finds partly filled.
                feb.user.bytes = std::mem::take(&mut left_over);
            }
            assert_eq!(feb.give(NOW), None, "nothing more than the RTL sent, before {place}");
            feb.take(&request(hex), NOW);
            continue;
        }
        let out = &event["out"];
        if out["packet"].as_u64() == Some(settings.first_packet.wrapping_add(fresh).into()) {
            feb.user.bytes += if out["last"].is_null() { PACKET_BYTES } else { 0 };
            fresh += 1;
        }
        let mut frame = feb.give(NOW).map(<[u8]>::to_vec);
        if frame.is_none() {
            // The cyclic scan works by the clock, which the trace does not have.
            assert!(feb.mark_overdue(number(&out["packet"])), "{place}");
            overdue += 1;
            frame = feb.give(NOW).map(<[u8]>::to_vec);
        }
        let frame = frame.unwrap_or_else(|| panic!("no frame at {place}"));
        match fade10g::parse_feb(&frame).unwrap().1 {
            FebFrame::Response(r) => {
                assert_eq!((r, out["packet"].is_null()), (response(&out["response"]), true), "{place}")
            }
            FebFrame::Data(data) => {
                assert_eq!(u64::from(data.packet), out["packet"].as_u64().unwrap_or(u64::MAX), "{place}");
                assert_eq!(u64::from(data.sequence), out["sequence"].as_u64().unwrap(), "{place}");
                assert_eq!(u64::from(data.delay), out["delay"].as_u64().unwrap(), "{place}");
                assert_eq!(data.last, out["last"].as_u64(), "{place}");
                assert_eq!(data.response, response(&out["response"]), "{place}");
                let word = u64::from_le_bytes(*data.payload.first_chunk().unwrap());
                assert!(out["first_word"].as_u64().is_none_or(|first| first == word), "{place}");
            }
        }
    }
    overdue
}

/// The same of FADE v1.
fn replay1(trace: &Value) -> usize {
    let words = trace["words"].as_u64().unwrap() as usize;
    let mut feb =
        Fade1Board::new(FEB, BoardSettings::default(), Gate { example: Example::default(), bytes: words * 8 });
    let mut overdue = 0;
    for (at, event) in trace["events"].as_array().unwrap().iter().enumerate() {
        let place = format!("seed {} event {at}: {event}", trace["seed"]);
        if let Some(hex) = event["in"].as_str() {
            assert_eq!(feb.give(NOW), None, "nothing more than the RTL sent, before {place}");
            feb.take(&request(hex), NOW);
            continue;
        }
        let out = &event["out"];
        if out.get("state").is_some() {
            let frame = feb.give(NOW).unwrap_or_else(|| panic!("no frame at {place}")).to_vec();
            let Ok((_, fade1::FebFrame::State(state))) = fade1::parse_feb(&frame) else {
                panic!("{frame:?} at {place}")
            };
            let got = [state.phase as u64, state.transmission.into(), state.packets.into()];
            assert_eq!(got, ["state", "transmission", "packets"].map(|name| out[name].as_u64().unwrap()), "{place}");
            continue;
        }
        let number = out["packet"].as_u64().unwrap();
        if number < feb.fresh() {
            // The cyclic scan works by the clock, which the trace does not have.
            assert!(feb.mark_overdue(number), "{place}");
            overdue += 1;
        }
        let frame = feb.give(NOW).unwrap_or_else(|| panic!("no frame at {place}")).to_vec();
        let Ok((_, fade1::FebFrame::Data(data))) = fade1::parse_feb(&frame) else { panic!("{frame:?} at {place}") };
        assert_eq!(u64::from(data.set) * 32 + u64::from(data.packet), number, "{place}");
        assert_eq!(u64::from(data.delay), out["delay"].as_u64().unwrap(), "{place}");
        let (first, last) = (data.payload.first_chunk().unwrap(), data.payload.last_chunk().unwrap());
        assert_eq!(u64::from_le_bytes(*first), out["first_word"].as_u64().unwrap(), "{place}");
        assert!(out["final_word"].as_u64().is_none_or(|last_word| last_word == u64::from_le_bytes(*last)), "{place}");
    }
    let (status, last) = (feb.status(), &trace["final"]);
    let got = (u64::from(status.running), status.sent, status.retransmitted);
    let number = |name: &str| last[name].as_u64().unwrap();
    assert_eq!(got, (number("running"), number("sent"), number("retransmitted")));
    overdue
}

#[test]
fn the_traces_of_fade1() {
    let traces = vectors("fade1_traces");
    let overdue: usize = traces.as_array().unwrap().iter().map(replay1).sum();
    assert!(overdue > 50, "{overdue} frames of the cyclic scan");
}

#[test]
fn the_traces_of_the_rtl() {
    let traces = vectors("fade10g_traces");
    let overdue: usize = traces.as_array().unwrap().iter().map(replay).sum();
    println!("{overdue} frames of the cyclic scan");
}

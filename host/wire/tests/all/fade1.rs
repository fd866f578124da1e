//! The shared frames of `tests/vectors/fade1.json`, parsed and built again.

use fadelink_vectors::{frame, vectors};
use fadelink_wire::fade1::{self, Data, Error, FebFrame, Phase, Request};
use fadelink_wire::{fade10g, Checksum, Permit, Protocol, Resets};
use serde_json::Value;

fn of_direction<'a>(vectors: &'a Value, list: &str, direction: &str) -> Vec<&'a Value> {
    let found: Vec<_> = vectors[list].as_array().unwrap().iter().filter(|v| v["direction"] == direction).collect();
    assert!(found.len() >= 4);
    found
}

fn permit(fields: &Value) -> Option<Permit> {
    fields["permit"].as_u64().map(|bits| Permit::new(bits as u32))
}

#[test]
fn constants_agree() {
    let vectors = vectors("fade1");
    let here: &[(&str, u64)] = &[
        ("ETHERTYPE", fade1::ETHERTYPE.into()),
        ("FILLER", fade1::FILLER.into()),
        ("TYPE_START", fade1::TYPE_START.into()),
        ("TYPE_STOP", fade1::TYPE_STOP.into()),
        ("TYPE_ACK", fade1::TYPE_ACK.into()),
        ("TYPE_RESET", fade1::TYPE_RESET.into()),
        ("TYPE_DATA", fade1::TYPE_DATA.into()),
        ("TYPE_STATE", fade1::TYPE_STATE.into()),
        ("STATE_NONE", Phase::None as u64),
        ("STATE_RUNNING", Phase::Running as u64),
        ("STATE_STOPPING", Phase::Stopping as u64),
        ("STATE_ENDED", Phase::Ended as u64),
        ("STATE_RESET", Phase::Reset as u64),
        ("STATE_RESETS", fade1::STATE_RESETS.into()),
        ("CHECKSUM_MARK", fade1::CHECKSUM_MARK.into()),
        ("PERMIT_MARK", fade1::PERMIT_MARK.into()),
        ("PACKET_BYTES", fade1::PACKET_BYTES as u64),
        ("SET_PACKETS", fade1::SET_PACKETS.into()),
        ("RETRY_BITS", fade1::RETRY_BITS.into()),
        ("RETRY_FADELINK", fade1::RETRY_FADELINK.into()),
        ("BLOCK_MARK", fade1::BLOCK_MARK.into()),
        ("TAKES_BLOCK_ACKS", fade1::TAKES_BLOCK_ACKS.into()),
        ("SAME_WORDS", fade1::SAME_WORDS.into()),
        ("DATA_HEADER_LEN", fade1::DATA_HEADER_LEN as u64),
        ("DATA_FRAME_LEN", fade1::DATA_FRAME_LEN as u64),
        ("STATE_FRAME_LEN", fade1::STATE_FRAME_LEN as u64),
        ("REQUEST_LEN", fade1::REQUEST_LEN as u64),
    ];
    let shared = vectors["constants"].as_object().unwrap();
    assert_eq!(shared.len(), here.len(), "every shared constant is checked");
    for (name, value) in here {
        assert_eq!(shared[*name].as_u64(), Some(*value), "{name}");
    }
}

#[test]
fn requests_parse_and_build() {
    let vectors = vectors("fade1");
    for vector in of_direction(&vectors, "frames", "request") {
        let (bytes, fields) = (frame(&vectors, vector), &vector["fields"]);
        let number = |name: &str| fields[name].as_u64().unwrap();
        let expected = match fields["kind"].as_str().unwrap() {
            "start" => Request::Start { transmission: number("transmission") as u16, permit: permit(fields) },
            "stop" => Request::Stop,
            "reset" => Request::Reset,
            _ => Request::Ack {
                set: number("set") as u16,
                packet: number("packet") as u8,
                stored: fields["stored"].as_u64(),
            },
        };
        let (header, parsed) = fade1::parse_request(&bytes).unwrap();
        assert_eq!(parsed, expected, "{}", vector["name"]);
        assert_eq!(parsed.to_frame(header.dst, header.src)[..bytes.len()], bytes[..], "{}", vector["name"]);
        assert_eq!(Protocol::of(&bytes), Protocol::Fade1);
    }
}

#[test]
fn frames_of_a_feb_parse_and_build() {
    let vectors = vectors("fade1");
    for vector in of_direction(&vectors, "frames", "feb") {
        let (bytes, fields) = (frame(&vectors, vector), &vector["fields"]);
        let (header, body) = fade1::parse_feb(&bytes).unwrap();
        let number = |name: &str| fields[name].as_u64().unwrap();
        assert_eq!(Protocol::of(&bytes), Protocol::Fade1);
        assert!(matches!(fade10g::parse_feb(&bytes), Err(fade10g::Error::Version(_))));
        let data = match body {
            FebFrame::Data(data) => data,
            FebFrame::State(state) => {
                let got = [state.phase as u64, state.transmission.into(), state.packets.into()];
                assert_eq!(got, ["state", "transmission", "packets"].map(number), "{}", vector["name"]);
                let resets = fields["resets"].as_object().map(|resets| Resets {
                    count: resets["count"].as_u64().unwrap() as u8,
                    by: crate::mac(&resets["by"]),
                });
                assert_eq!(state.resets, resets, "{}", vector["name"]);
                let checksum = fields["checksum"].as_object().map(|checksum| Checksum {
                    last_words: checksum["last_words"].as_u64().unwrap() as u16,
                    crc: checksum["crc"].as_u64().unwrap() as u32,
                });
                assert_eq!(state.checksum, checksum, "{}", vector["name"]);
                assert_eq!(state.permit, permit(fields), "{}", vector["name"]);
                assert_eq!(state.to_frame(header.dst, header.src)[..], bytes[..], "{}", vector["name"]);
                continue;
            }
        };
        let got = [u64::from(data.set), data.packet.into(), data.retry.into(), data.delay.into()];
        assert_eq!(got, ["set", "packet", "retry", "delay"].map(number), "{}", vector["name"]);
        let told = ["block_acks", "same_words"].map(|name| fields[name].as_bool().unwrap());
        assert_eq!([data.block_acks, data.same_words], told, "{}", vector["name"]);
        assert_eq!(data.payload, &bytes[fade1::DATA_HEADER_LEN..]);
        let mut head = [0; fade1::DATA_HEADER_LEN];
        Data { payload: &[], ..data }.write_header(header.dst, header.src, &mut head);
        assert_eq!(head[..], bytes[..head.len()], "{}", vector["name"]);
    }
}

#[test]
fn malformed_frames_are_refused_by_reason() {
    let vectors = vectors("fade1");
    for vector in vectors["malformed"].as_array().unwrap() {
        let bytes = frame(&vectors, vector);
        let error = if vector["direction"] == "feb" {
            fade1::parse_feb(&bytes).map(drop).unwrap_err()
        } else {
            fade1::parse_request(&bytes).map(drop).unwrap_err()
        };
        let reason = match error {
            Error::Truncated { .. } => "truncated",
            Error::EtherType(_) => "ethertype",
            Error::Version(_) => "version",
            Error::Type(_) => "type",
            Error::Length(_) => "length",
            Error::Packet(_) => "packet",
            Error::State(_) => "state",
        };
        assert_eq!(reason, vector["reason"], "{}: {error}", vector["name"]);
    }
}

/// No input makes the parsers panic.
#[test]
fn every_prefix_of_every_frame_is_parsed_or_refused() {
    let vectors = vectors("fade1");
    for vector in vectors["frames"].as_array().unwrap() {
        let bytes = frame(&vectors, vector);
        for len in 0..bytes.len() {
            let _ = (fade1::parse_feb(&bytes[..len]), fade1::parse_request(&bytes[..len]), Protocol::of(&bytes[..len]));
        }
    }
}

//! The shared frames of `tests/vectors/fade10g.json`, parsed and built again.

use fadelink_vectors::{frame, last_frames, vectors};
use fadelink_wire::ethernet::Header;
use fadelink_wire::fade10g::{self, Data, Error, FebFrame, Identity, Request, ResetBy, Response};
use serde_json::Value;

fn number<T: TryFrom<u64>>(value: &Value) -> T
where
    T::Error: std::fmt::Debug,
{
    value.as_u64().unwrap_or_else(|| panic!("{value} is not a number")).try_into().unwrap()
}

fn response(value: &Value) -> Option<Response> {
    value.is_object().then(|| Response {
        code: number(&value["code"]),
        csn: number(&value["csn"]),
        value: number(&value["value"]),
    })
}

fn identity(value: &Value) -> Option<Identity> {
    let flag = |name: &str| value[name].as_bool().unwrap();
    value.is_object().then(|| Identity {
        window: number(&value["window"]),
        running: flag("running"),
        stopping: flag("stopping"),
        block_acks: flag("block_acks"),
        csn: value["csn"].as_u64().map(|csn| csn as u16),
        transmission: number(&value["transmission"]),
        resets: value["resets"].as_u64().map(|resets| resets as u8),
        checksum: flag("checksum"),
        same_words: flag("same_words"),
    })
}

fn reset_by(value: &Value) -> Option<ResetBy> {
    value
        .is_object()
        .then(|| ResetBy { transmission: number(&value["transmission"]), by: crate::mac(&value["address"]) })
}

fn request(fields: &Value) -> Request {
    match fields["kind"].as_str().unwrap() {
        "command" => Request::Command {
            code: number(&fields["code"]),
            csn: number(&fields["csn"]),
            argument: number(&fields["argument"]),
        },
        kind => Request::Ack {
            negative: kind == "nack",
            sequence: number(&fields["sequence"]),
            packet: number(&fields["packet"]),
            delay: number(&fields["delay"]),
            stored: fields["stored"].as_u64(),
        },
    }
}

#[test]
fn constants_agree() {
    let vectors = vectors("fade10g");
    let here: &[(&str, u64)] = &[
        ("ETHERTYPE", fade10g::ETHERTYPE.into()),
        ("VERSION", fade10g::VERSION.into()),
        ("FILLER", fade10g::FILLER.into()),
        ("TYPE_DATA", fade10g::TYPE_DATA.into()),
        ("TYPE_LAST", fade10g::TYPE_LAST.into()),
        ("TYPE_RESPONSE", fade10g::TYPE_RESPONSE.into()),
        ("CMD_START", fade10g::CMD_START.into()),
        ("CMD_STOP", fade10g::CMD_STOP.into()),
        ("ACK", fade10g::ACK.into()),
        ("NACK", fade10g::NACK.into()),
        ("CMD_RESET", fade10g::CMD_RESET.into()),
        ("CMD_IDENTIFY", fade10g::CMD_IDENTIFY.into()),
        ("CMD_RESET_BY", fade10g::CMD_RESET_BY.into()),
        ("CMD_USER_FIRST", fade10g::CMD_USER_FIRST.into()),
        ("BLOCK_MARK", fade10g::BLOCK_MARK.into()),
        ("IDENTITY_BLOCK_ACKS", fade10g::IDENTITY_BLOCK_ACKS.into()),
        ("IDENTITY_CSN", fade10g::IDENTITY_CSN.into()),
        ("IDENTITY_RESETS", fade10g::IDENTITY_RESETS.into()),
        ("IDENTITY_CHECKSUM", fade10g::IDENTITY_CHECKSUM.into()),
        ("IDENTITY_SAME_WORDS", fade10g::IDENTITY_SAME_WORDS.into()),
        ("START_CHECKSUM", fade10g::START_CHECKSUM.into()),
        ("START_PERMIT", fade10g::START_PERMIT.into()),
        ("PERMIT_SHIFT", fade10g::PERMIT_SHIFT.into()),
        ("STATUS_PERMIT", fade10g::STATUS_PERMIT),
        ("CHECKSUM_MARK", fade10g::CHECKSUM_MARK.into()),
        ("PACKET_BYTES", fade10g::PACKET_BYTES as u64),
        ("DATA_HEADER_LEN", fade10g::DATA_HEADER_LEN as u64),
        ("DATA_FRAME_LEN", fade10g::DATA_FRAME_LEN as u64),
        ("REQUEST_LEN", fade10g::REQUEST_LEN as u64),
        ("LAST_WORDS_MAX", fade10g::LAST_WORDS_MAX),
    ];
    let shared = vectors["constants"].as_object().unwrap();
    assert_eq!(shared.len(), here.len(), "every shared constant is checked");
    for (name, value) in here {
        assert_eq!(number::<u64>(&shared[*name]), *value, "{name}");
    }
}

#[test]
fn requests_parse_and_build() {
    let vectors = vectors("fade10g");
    let mut count = 0;
    for vector in vectors["frames"].as_array().unwrap().iter().filter(|v| v["direction"] == "request") {
        let bytes = frame(&vectors, vector);
        let (header, parsed) = fade10g::parse_request(&bytes).unwrap();
        assert_eq!(parsed, request(&vector["fields"]), "{}", vector["name"]);
        let built = parsed.to_frame(header.dst, header.src);
        assert_eq!(built[..bytes.len()], bytes[..], "{}", vector["name"]);
        count += 1;
    }
    assert!(count >= 10);
}

#[test]
fn feb_frames_parse_and_build() {
    let vectors = vectors("fade10g");
    let mut count = 0;
    for vector in vectors["frames"].as_array().unwrap().iter().filter(|v| v["direction"] == "feb") {
        let bytes = frame(&vectors, vector);
        let fields = &vector["fields"];
        let (Header { dst, src, .. }, parsed) = fade10g::parse_feb(&bytes).unwrap();
        match parsed {
            FebFrame::Response(parsed) => {
                assert_eq!(parsed, response(&fields["response"]), "{}", vector["name"]);
                let parsed = parsed.unwrap();
                assert_eq!(parsed.to_frame(dst, src)[..], bytes[..], "{}", vector["name"]);
                let told = Identity::from_value(parsed.value).filter(|_| parsed.code == fade10g::CMD_IDENTIFY);
                assert_eq!(told, identity(&fields["identity"]), "{}", vector["name"]);
                assert!(told.is_none_or(|told| told.to_value() == parsed.value), "{}", vector["name"]);
                let told = (parsed.code == fade10g::CMD_RESET_BY).then(|| ResetBy::from_value(parsed.value));
                assert_eq!(told, reset_by(&fields["reset_by"]), "{}", vector["name"]);
                assert!(told.is_none_or(|told| told.to_value() == parsed.value), "{}", vector["name"]);
            }
            FebFrame::Data(parsed) => {
                let expected = Data {
                    sequence: number(&fields["sequence"]),
                    packet: number(&fields["packet"]),
                    delay: number(&fields["delay"]),
                    response: response(&fields["response"]),
                    last: fields["last"].as_u64(),
                    payload: &bytes[fade10g::DATA_HEADER_LEN..],
                };
                assert_eq!(parsed, expected, "{}", vector["name"]);
                let crc = fields["crc"].as_u64().map(|crc| crc as u32);
                assert_eq!(parsed.checksum(), crc, "{}", vector["name"]);
                if let Some(words) = parsed.last {
                    assert_eq!(bytes.last_chunk(), Some(&fade10g::final_word(words as u16, crc)));
                }
                let mut built = [0; fade10g::DATA_FRAME_LEN];
                parsed.write(dst, src, &mut built).unwrap();
                assert_eq!(built[..], bytes[..], "{}", vector["name"]);
            }
        }
        count += 1;
    }
    assert!(count >= 8);
}

fn reason(error: Error) -> &'static str {
    match error {
        Error::Truncated { .. } => "truncated",
        Error::EtherType(_) => "ethertype",
        Error::Version(_) => "version",
        Error::Type(_) => "type",
        Error::Code(_) => "code",
        Error::Length(_) => "length",
        Error::ValidWords(_) => "valid_words",
    }
}

#[test]
fn malformed_frames_are_refused_by_reason() {
    let vectors = vectors("fade10g");
    for vector in vectors["malformed"].as_array().unwrap() {
        let bytes = frame(&vectors, vector);
        let error = match vector["direction"].as_str().unwrap() {
            "feb" => fade10g::parse_feb(&bytes).map(|_| ()),
            _ => fade10g::parse_request(&bytes).map(|_| ()),
        }
        .expect_err(vector["name"].as_str().unwrap());
        assert_eq!(reason(error), vector["reason"], "{}: {error}", vector["name"]);
    }
}

#[test]
fn valid_words_are_read_in_either_byte_order() {
    let frames = last_frames();
    assert!(frames.len() > 2 * 1024);
    for (frame, words) in frames {
        let last = match fade10g::parse_feb(&frame) {
            Ok((_, FebFrame::Data(data))) => Some(data.last.unwrap()),
            Err(Error::ValidWords(_)) => None,
            other => panic!("{other:?}"),
        };
        assert_eq!(last, words, "{:02x?}", frame.last_chunk::<8>());
    }
}

#[test]
fn every_truncation_is_refused_or_holds_the_named_fields() {
    let vectors = vectors("fade10g");
    for vector in vectors["frames"].as_array().unwrap() {
        let bytes = frame(&vectors, vector);
        for len in 0..bytes.len().min(100) {
            match fade10g::parse_feb(&bytes[..len]) {
                Ok((_, FebFrame::Response(_))) => assert!(len >= fade10g::RESPONSE_FIELDS_LEN),
                Ok((_, FebFrame::Data(_))) => panic!("data frame cut to {len} bytes was accepted"),
                Err(_) => {}
            }
            if let Ok((_, Request::Ack { .. })) = fade10g::parse_request(&bytes[..len]) {
                assert!(len >= 28);
            }
        }
    }
}

proptest::proptest! {
    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..9100), valid_start in 0usize..4) {
        let mut bytes = bytes;
        let prefix: &[u8] = [&[][..], &[0xFA, 0xDE, 1, 0], &[0xFA, 0xDE, 1, 0, 0xA5, 0xA6], &[0xFA, 0xDE, 1, 0, 0, 3]][valid_start];
        if bytes.len() > 20 {
            bytes[12..12 + prefix.len()].copy_from_slice(prefix);
        }
        let _ = fade10g::parse_feb(&bytes);
        let _ = fade10g::parse_request(&bytes);
        bytes.resize(fade10g::DATA_FRAME_LEN, 0);
        let _ = fade10g::parse_feb(&bytes);
    }
}

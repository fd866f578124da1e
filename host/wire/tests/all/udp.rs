//! The shared payloads of `tests/vectors/udp.json`, parsed and built again.

use fadelink_vectors::{bytes, list, vectors};
use fadelink_wire::udp::{self, Datagram, Error, Reply, Request};

#[test]
fn constants_agree() {
    let vectors = vectors("udp");
    let here: &[(&str, u64)] = &[
        ("STREAM_HEADER_BYTES", udp::STREAM_HEADER_BYTES as u64),
        ("FLAG_END", udp::FLAG_END.into()),
        ("FILLER", udp::FILLER.into()),
        ("PAYLOAD_MAX", udp::PAYLOAD_MAX as u64),
        ("CONTROL_BYTES", udp::CONTROL_BYTES as u64),
        ("CONTROL_PORT", udp::CONTROL_PORT.into()),
        ("CONTROL_READ", udp::CONTROL_READ.into()),
        ("CONTROL_WRITE", udp::CONTROL_WRITE.into()),
        ("CONTROL_REPLY", udp::CONTROL_REPLY.into()),
        ("STATUS_DONE", udp::STATUS_DONE.into()),
        ("STATUS_OPERATION", udp::STATUS_OPERATION.into()),
        ("STATUS_ADDRESS", udp::STATUS_ADDRESS.into()),
        ("REGISTER_IDENTITY", udp::REGISTER_IDENTITY.into()),
        ("REGISTER_ENABLE", udp::REGISTER_ENABLE.into()),
        ("REGISTER_PEER_IP", udp::REGISTER_PEER_IP.into()),
        ("REGISTER_PEER_PORT", udp::REGISTER_PEER_PORT.into()),
        ("REGISTER_PAYLOAD", udp::REGISTER_PAYLOAD.into()),
        ("REGISTER_CHECKSUM", udp::REGISTER_CHECKSUM.into()),
        ("REGISTER_RUN", udp::REGISTER_RUN.into()),
        ("REGISTER_LAST", udp::REGISTER_LAST.into()),
        ("REGISTER_STREAM_BIT", udp::REGISTER_STREAM_BIT.into()),
        ("REGISTER_PTP_ROLE", udp::REGISTER_PTP_ROLE.into()),
        ("REGISTER_PTP_LOCKED", udp::REGISTER_PTP_LOCKED.into()),
        ("REGISTER_PTP_OFFSET", udp::REGISTER_PTP_OFFSET.into()),
        ("REGISTER_PTP_DELAY", udp::REGISTER_PTP_DELAY.into()),
        ("REGISTER_PTP_RATE", udp::REGISTER_PTP_RATE.into()),
        ("REGISTER_PTP_SECONDS", udp::REGISTER_PTP_SECONDS.into()),
        ("REGISTER_PTP_NS", udp::REGISTER_PTP_NS.into()),
        ("REGISTER_PTP_CLOCKS", udp::REGISTER_PTP_CLOCKS.into()),
        ("REGISTER_PTP_LOG", udp::REGISTER_PTP_LOG.into()),
        ("REGISTER_PTP_STATE", udp::REGISTER_PTP_STATE.into()),
        ("REGISTER_PTP_DOMAIN", udp::REGISTER_PTP_DOMAIN.into()),
        ("REGISTER_PTP_TRANSPORT", udp::REGISTER_PTP_TRANSPORT.into()),
        ("REGISTER_PTP_MECHANISM", udp::REGISTER_PTP_MECHANISM.into()),
        ("REGISTER_PTP_PRIORITIES", udp::REGISTER_PTP_PRIORITIES.into()),
        ("REGISTER_PTP_UTC", udp::REGISTER_PTP_UTC.into()),
        ("REGISTER_PTP_QUALITY", udp::REGISTER_PTP_QUALITY.into()),
        ("REGISTER_PTP_UTC_USED", udp::REGISTER_PTP_UTC_USED.into()),
        ("REGISTER_PTP_STEPS", udp::REGISTER_PTP_STEPS.into()),
        ("REGISTER_COUNTERS", udp::REGISTER_COUNTERS.into()),
        ("IDENTITY", udp::IDENTITY.into()),
    ];
    let shared = vectors["constants"].as_object().unwrap();
    assert_eq!(shared.len(), here.len(), "every shared constant is checked");
    for (name, value) in here {
        assert_eq!(shared[*name].as_u64(), Some(*value), "{name}");
    }
}

#[test]
fn datagrams_parse() {
    for vector in list(&vectors("udp"), "stream") {
        let (bytes, fields) = (bytes(vector), &vector["fields"]);
        let found = Datagram::parse(&bytes).unwrap();
        let number = |name: &str| fields[name].as_u64().unwrap();
        let got = (u64::from(found.counter), u64::from(found.run), found.end);
        assert_eq!(got, (number("counter"), number("run"), fields["end"].as_bool().unwrap()), "{}", vector["name"]);
        let words: Vec<u64> = found.words.as_chunks::<8>().0.iter().map(|w| u64::from_le_bytes(*w)).collect();
        let expected: Vec<u64> = (0..number("words")).map(|i| number("first") + i).collect();
        assert_eq!(words, expected, "{}", vector["name"]);
        assert_eq!(found.header()[..], bytes[..udp::STREAM_HEADER_BYTES], "{}", vector["name"]);
    }
}

#[test]
fn malformed_datagrams_have_their_reason() {
    for vector in list(&vectors("udp"), "malformed") {
        let error = Datagram::parse(&bytes(vector)).unwrap_err();
        let name = match error {
            Error::Truncated(..) => "truncated",
            Error::Words { .. } => "words",
            Error::Flags(_) => "flags",
            Error::Operation(_) => "operation",
        };
        assert_eq!(vector["error"], name, "{}: {error}", vector["name"]);
    }
}

#[test]
fn control_messages_build_and_parse() {
    for vector in list(&vectors("udp"), "control") {
        let (bytes, fields) = (bytes(vector), &vector["fields"]);
        let number = |name: &str| fields[name].as_u64().unwrap() as u32;
        let (sequence, address, value) = (number("sequence"), number("address"), number("value"));
        if vector["direction"] == "request" {
            let write = (number("operation") == u32::from(udp::CONTROL_WRITE)).then_some(value);
            let request = Request { sequence, address, write };
            assert_eq!(request.to_bytes()[..], bytes[..], "{}", vector["name"]);
            assert_eq!(Request::parse(&bytes), Ok(request), "{}", vector["name"]);
            assert_eq!(Reply::parse(&bytes), Err(Error::Operation(bytes[4])));
        } else {
            let reply = Reply { sequence, status: number("status") as u8, address, value };
            assert_eq!(Reply::parse(&bytes), Ok(reply), "{}", vector["name"]);
            assert_eq!(Request::parse(&bytes), Err(Error::Operation(bytes[4])));
            let write = (bytes[4] == udp::CONTROL_WRITE | udp::CONTROL_REPLY).then_some(value);
            let request = Request { sequence, address, write };
            assert_eq!(request.reply(reply.status, value)[..], bytes[..], "{}", vector["name"]);
        }
        assert!(matches!(Reply::parse(&bytes[..15]), Err(Error::Truncated(15, 16))));
        assert!(matches!(Request::parse(&bytes[..15]), Err(Error::Truncated(15, 16))));
    }
}

//! The shared messages of `tests/vectors/fadc.json`, parsed and built again.

use fadelink_vectors::{bytes, list, vectors};
use fadelink_wire::fadc::{self, Header, Item, Message};
use serde_json::{json, Value};

fn ticks(vector: &Value) -> u32 {
    u32::try_from(vector["window_ticks"].as_u64().unwrap()).unwrap()
}

#[test]
fn constants_agree() {
    let here: &[(&str, u64)] = &[
        ("magic", fadc::MAGIC.into()),
        ("format_version", fadc::FORMAT_VERSION.into()),
        ("event_version", fadc::EVENT_VERSION.into()),
        ("header_bytes", fadc::HEADER_BYTES as u64),
        ("type_hits", fadc::TYPE_HITS.into()),
        ("type_lost", fadc::TYPE_LOST.into()),
        ("type_timeout", fadc::TYPE_TIMEOUT.into()),
        ("type_windows_lost", fadc::TYPE_WINDOWS_LOST.into()),
        ("tick_ns", fadc::TICK_NS.into()),
        ("pulse_ticks", fadc::PULSE_TICKS.into()),
        ("slice_ticks", fadc::SLICE_TICKS.into()),
        ("window_ticks_min", fadc::WINDOW_TICKS_MIN.into()),
        ("window_ticks_max", fadc::WINDOW_TICKS_MAX.into()),
        ("lost_max", fadc::LOST_MAX.into()),
    ];
    let shared = vectors("fadc")["constants"].as_object().unwrap().clone();
    assert_eq!(here.len(), shared.len());
    for (name, value) in here {
        assert_eq!(shared[*name].as_u64(), Some(*value), "{name}");
    }
}

#[test]
fn messages_are_read_and_built() {
    for vector in list(&vectors("fadc"), "messages") {
        let data = bytes(vector);
        let message = Message::parse(&data).unwrap();
        let header = message.header();
        assert_eq!(u64::from(header.source_id), vector["source_id"]);
        assert_eq!(vector["record_counter"], header.record_counter);
        assert_eq!(vector["seconds"], header.seconds);
        assert_eq!(vector["nanoseconds"], header.nanoseconds);
        let items: Vec<_> = message
            .items(ticks(vector))
            .map(|item| match item.unwrap() {
                Item::Hit(hit) => json!(["hit", hit.slot, hit.channel, hit.tick, hit.charge]),
                Item::Lost { slot, count } => json!(["lost", slot, count]),
                Item::Timeout { slot, count } => json!(["timeout", slot, count]),
                Item::WindowsLost { count } => json!(["windows_lost", count]),
            })
            .collect();
        assert_eq!(json!(items), vector["items"], "{}", vector["name"]);

        let time = (header.seconds, header.nanoseconds);
        let payload = message.payload();
        let again = Header::new(header.source_id, fadc::FORMAT_VERSION, header.record_counter, time, payload.len());
        assert_eq!(again.emit(), data[..fadc::HEADER_BYTES]);
        let words = payload.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap()));
        let hits = message.items(ticks(vector)).filter_map(|item| match item {
            Ok(Item::Hit(hit)) => Some(fadc::hit_word(&hit)),
            _ => None,
        });
        assert!(words.filter(|word| word >> 31 == 0).eq(hits));
    }
}

#[test]
fn what_is_wrong_is_named() {
    let vectors = vectors("fadc");
    for vector in list(&vectors, "malformed") {
        let error = Message::parse(&bytes(vector)).unwrap_err().to_string();
        assert!(error.contains(vector["error"].as_str().unwrap()), "{}: {error}", vector["name"]);
    }
    for vector in list(&vectors, "malformed_words") {
        let data = bytes(vector);
        let items: Vec<_> = Message::parse(&data).unwrap().items(ticks(vector)).collect();
        let error = items.last().unwrap().unwrap_err().to_string();
        assert!(error.contains(vector["error"].as_str().unwrap()), "{}: {error}", vector["name"]);
        assert!(items[..items.len() - 1].iter().all(Result::is_ok));
    }
}

#[test]
fn events_hold_messages() {
    let vectors = vectors("fadc");
    let parts: Vec<_> = list(&vectors, "messages").iter().map(bytes).collect();
    let payload = parts.concat();
    let mut event = Header::new(5, fadc::EVENT_VERSION, 9, (1, 2), payload.len()).emit().to_vec();
    event.extend(&payload);
    let event = Message::parse(&event).unwrap();
    let found: Vec<_> = event.parts().map(|part| part.unwrap().bytes().to_vec()).collect();
    assert_eq!(found, parts);
}

//! What messages tell against themselves: it counts, whatever is done with them.

use std::time::Instant;

use fadelink_builder::counts::SourceCounts;
use fadelink_builder::inspect::Inspector;
use fadelink_builder::join::Standing;
use fadelink_builder::key::Key;
use fadelink_builder::{Joiner, Policy};
use fadelink_wire::fadc::{
    header_word, hit_word, Header, Hit, EVENT_VERSION, FORMAT_VERSION, TYPE_HITS, TYPE_LOST, TYPE_TIMEOUT,
    TYPE_WINDOWS_LOST,
};

const WINDOW_NS: u32 = 1000;

fn policy() -> Policy {
    Policy { window_ns: WINDOW_NS, ..Policy::default() }
}

/// A message of a window, with a time of its own.
fn at(record: u64, (seconds, ns): (i64, u32), version: u32, words: &[u32]) -> Box<[u8]> {
    let header = Header::new(7, version, record, (seconds, ns), words.len() * 4);
    let mut out = header.emit().to_vec();
    out.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    out.resize(header.total_length as usize, 0);
    out.into()
}

fn message(record: u64, words: &[u32]) -> Box<[u8]> {
    let ns = i128::from(record) * i128::from(WINDOW_NS);
    at(record, ((ns / 1_000_000_000) as i64, (ns % 1_000_000_000) as u32), FORMAT_VERSION, words)
}

/// What was counted of messages over one connection, and why the first of them cannot be.
fn counted(policy: &Policy, messages: Vec<Box<[u8]>>) -> (SourceCounts, Option<String>) {
    let (mut joiner, mut inspector) = (Joiner::new(policy.clone()), Inspector::new(policy.key, policy.window_ns));
    joiner.begin_session(7);
    for message in messages {
        joiner.push(inspector.inspect(message).unwrap(), None, Instant::now());
    }
    while joiner.pop(Instant::now(), true).is_some() {}
    let joined = joiner.joined();
    (joined.sources[&7].clone(), joined.first_wrong)
}

fn zero() -> SourceCounts {
    SourceCounts { sessions: 1, ..SourceCounts::default() }
}

/// Each type of words that a message may have.
#[test]
fn what_a_message_tells_is_counted() {
    let hit = hit_word(&Hit { slot: 3, channel: 1, tick: 5, charge: 9 });
    let slot = header_word(TYPE_HITS, 0, 3);
    let one = SourceCounts { messages: 1, ..zero() };
    let wrong = SourceCounts { wrong_messages: 1, ..one.clone() };
    for (words, expected, told) in [
        (vec![], one.clone(), None),
        (vec![slot, hit, hit], one.clone(), None),
        (vec![header_word(TYPE_LOST, 5, 3)], SourceCounts { hits_lost: 5, ..one.clone() }, None),
        (
            vec![slot, hit, header_word(TYPE_LOST, 5, 3), header_word(TYPE_LOST, 1023, 20)],
            SourceCounts { hits_lost: 1028, ..one.clone() },
            None,
        ),
        (vec![header_word(TYPE_TIMEOUT, 0, 4)], SourceCounts { timeouts: 1, ..one.clone() }, None),
        (vec![header_word(TYPE_TIMEOUT, 3, 4)], SourceCounts { timeouts: 1, hits_lost: 3, ..one.clone() }, None),
        (vec![header_word(TYPE_WINDOWS_LOST, 2, 0)], SourceCounts { windows_lost: 2, ..one.clone() }, None),
        (vec![hit], wrong.clone(), Some("word 0: a hit without a slot")),
        (vec![slot, hit, header_word(9, 0, 3)], wrong.clone(), Some("word 2: payload type 9")),
        (vec![header_word(TYPE_HITS, 1, 3)], wrong.clone(), Some("word 0: reserved bits 0x1")),
        (vec![header_word(TYPE_LOST, 1, 21)], wrong.clone(), Some("word 0: slot 21")),
        (
            vec![header_word(TYPE_HITS, 0, 11), hit],
            wrong.clone(),
            Some("word 0: slot 11, expected 3 to 10 or 13 to 20"),
        ),
        (vec![slot, hit, header_word(TYPE_TIMEOUT, 0, 12)], wrong.clone(), Some("word 2: slot 12")),
        (vec![header_word(TYPE_WINDOWS_LOST, 2, 3)], wrong.clone(), Some("word 0: slot 3, expected 0")),
        (vec![header_word(TYPE_LOST, 0, 3)], wrong.clone(), Some("word 0: payload type 2 with count 0")),
        (vec![header_word(TYPE_WINDOWS_LOST, 0, 0)], wrong.clone(), Some("word 0: payload type 4 with count 0")),
        (vec![slot, hit | 250 << 17], wrong.clone(), Some("word 1: time")),
    ] {
        let (counts, first) = counted(&policy(), vec![message(9, &words)]);
        assert_eq!(counts, expected, "{words:x?}");
        let told = told.map(|told| format!("window 9, source 0x00000007: {told}"));
        assert_eq!(first.is_some(), told.is_some(), "{first:?}");
        assert!(first.iter().zip(&told).all(|(first, told)| first.starts_with(told)), "{first:?}");
    }
    let event = at(9, (0, 9000), EVENT_VERSION, &[]);
    let (counts, first) = counted(&policy(), vec![event]);
    assert_eq!(counts, wrong);
    assert!(first.unwrap().ends_with("format_version 257: expected 1 of a crate"));
}

#[test]
fn a_message_tells_the_same_if_it_is_late_or_there_twice() {
    let lost = || message(9, &[header_word(TYPE_LOST, 5, 3)]);
    assert_eq!(
        counted(&policy(), vec![lost(), lost()]).0,
        SourceCounts { messages: 1, duplicate: 1, hits_lost: 10, ..zero() }
    );
    let mut joiner = Joiner::new(policy());
    joiner.resume(&[Standing { next: 10, ..Standing::default() }], Instant::now());
    joiner.push(Inspector::new(Key::Counter, WINDOW_NS).inspect(lost()).unwrap(), None, Instant::now());
    assert_eq!(joiner.joined().sources[&7], SourceCounts { late: 1, hits_lost: 5, ..SourceCounts::default() });
}

/// Counts of what waits are not settled, of each kind.
#[test]
fn what_waits_is_not_settled() {
    let mut joiner = Joiner::new(Policy { sources: vec![1, 7], ..policy() });
    let words =
        [header_word(TYPE_WINDOWS_LOST, 2, 0), header_word(TYPE_LOST, 5, 3), header_word(TYPE_TIMEOUT, 3, 4), 5];
    for _ in 0..2 {
        joiner.push(Inspector::new(Key::Counter, WINDOW_NS).inspect(message(9, &words)).unwrap(), None, Instant::now());
    }
    assert_eq!(joiner.settled().sources[&7], SourceCounts::default());
    assert_eq!(joiner.joined().sources[&7].hits_lost, 16);
}

#[test]
fn windows_and_times_that_cannot_follow_are_counted() {
    let ahead = 1 << 24;
    let good = |record| message(record, &[]);
    let number = |count| SourceCounts { wrong_number: count, ..zero() };
    let aside = || SourceCounts { set_aside: 1, ..number(1) };
    let time = |count| SourceCounts { wrong_time: count, ..zero() };
    for (name, messages, expected) in [
        ("in order", vec![good(5), good(6), good(900)], zero()),
        ("as many as may be withheld", vec![good(5), good(6 + ahead)], zero()),
        ("far ahead", vec![good(5), good(6 + ahead + 1)], aside()),
        ("back", vec![good(5), good(9), good(7)], number(1)),
        ("back to the begin", vec![good(5), good(0)], aside()),
        ("no number", vec![good(5), at(u64::MAX, (0, 6000), FORMAT_VERSION, &[])], number(1)),
        ("another epoch", vec![good(5), at(6, (1_700_000_000, 6000), FORMAT_VERSION, &[])], time(1)),
        ("a time before", vec![good(5), at(6, (-1, 6000), FORMAT_VERSION, &[])], time(1)),
        ("the time stands still", vec![good(5), at(6, (0, 5000), FORMAT_VERSION, &[])], time(1)),
        ("absurd times", vec![good(5), at(6, (i64::MAX, 0), FORMAT_VERSION, &[])], time(1)),
        ("a clock that is a little wrong", vec![good(5), at(105, (0, 105_900), FORMAT_VERSION, &[])], zero()),
    ] {
        let (counts, _) = counted(&policy(), messages);
        assert_eq!(SourceCounts { messages: 0, unknown: 0, ..counts }, expected, "{name}");
    }
    // A loss that has no number may be longer.
    let lost = message(7 + ahead, &[header_word(TYPE_WINDOWS_LOST, 1023, 0)]);
    assert_eq!(counted(&policy(), vec![good(5), lost]).0.wrong_number, 0);
}

/// A length of windows that is a little wrong shows over many of them, of crates that count from anywhere.
#[test]
fn windows_of_another_length_are_counted() {
    for key in [Key::Counter, Key::Time(WINDOW_NS)] {
        for (length, is_right) in [(1000, true), (1005, true), (1030, false), (970, false), (2000, false), (500, false)]
        {
            let message = |n: u64| at(70 + n, (0, n as u32 * length), FORMAT_VERSION, &[]);
            let (counts, first) = counted(&Policy { key, ..policy() }, (0..100).map(message).collect());
            assert_eq!(counts.wrong_time == 0, is_right, "{key} {length}: {counts:?}");
            assert_eq!(first.is_none_or(|first| !first.contains("--window-ns")), is_right, "{key} {length}");
        }
    }
}

/// Files have 64 bits of nanoseconds, for hits too.
#[test]
fn times_that_files_cannot_have_are_counted() {
    let last = i64::MAX / 1_000_000_000;
    let ns = (i64::MAX % 1_000_000_000) as u32;
    for (time, is_there) in [
        ((last, ns - WINDOW_NS), true),
        ((last, ns - WINDOW_NS + 1), false),
        ((last + 1, 0), false),
        ((-last - 2, 0), false),
        ((-last, 0), true),
    ] {
        let (counts, first) = counted(&policy(), vec![at(9, time, FORMAT_VERSION, &[])]);
        assert_eq!((counts.wrong_time == 0, first.is_none()), (is_there, is_there), "{time:?} {first:?}");
    }
}

/// Windows that are joined by time have no others than those.
#[test]
fn times_without_a_window_are_counted() {
    let by_time = Policy { key: Key::Time(WINDOW_NS), ..policy() };
    for (time, wrong) in [((0, 0), 0), ((-1, 0), 1), ((i64::MAX, 0), 1), ((i64::MIN, 999_999_999), 1)] {
        let (counts, _) = counted(&by_time, vec![at(0, time, FORMAT_VERSION, &[])]);
        assert_eq!((counts.wrong_number, counts.messages), (wrong, 1 - wrong), "{time:?}");
    }
}

/// A connection that begins before where the last one was: the crate has begun anew.
#[test]
fn a_crate_that_begins_anew_in_the_same_windows_is_told() {
    for (first, wrong) in [(6, 0), (5, 1), (0, 1)] {
        let mut joiner = Joiner::new(policy());
        for messages in [vec![message(5, &[])], vec![message(first, &[])]] {
            let mut inspector = Inspector::new(Key::Counter, WINDOW_NS);
            joiner.begin_session(7);
            for message in messages {
                joiner.push(inspector.inspect(message).unwrap(), None, Instant::now());
            }
        }
        assert_eq!(joiner.joined().sources[&7].wrong_number, wrong, "{first}");
    }
}

#[test]
fn sources_that_nobody_expects_are_counted() {
    for (expected, unlisted) in [
        (Policy { sources: vec![7, 8], ..policy() }, [0, 0, 2]),
        (Policy { count: 2, ..policy() }, [0, 0, 2]),
        (Policy { count: 3, ..policy() }, [0, 0, 0]),
        (policy(), [0, 0, 0]),
    ] {
        for begins in [false, true] {
            let mut joiner = Joiner::new(expected.clone());
            for (source, record) in [(7, 0), (8, 0), (9, 0), (7, 1), (9, 1)] {
                if begins && record == 0 {
                    joiner.begin_session(source);
                }
                let header = Header::new(source, FORMAT_VERSION, record, (0, record as u32 * WINDOW_NS), 0);
                let inspected = Inspector::new(Key::Counter, WINDOW_NS).inspect(header.emit().into()).unwrap();
                joiner.push(inspected, None, Instant::now());
            }
            let joined = joiner.joined();
            assert_eq!([7, 8, 9].map(|source| joined.sources[&source].unlisted), unlisted, "{expected:?} {begins}");
        }
    }
}

/// Crates that count from different begins: the number of an event is that of its window, whichever crate is heard first, and of what
/// comes late, too.
#[test]
fn the_number_of_an_event_is_what_its_messages_were_joined_by() {
    let policy = Policy { key: Key::Time(WINDOW_NS), sources: vec![7, 8], emit_late: true, ..policy() };
    let mut joiner = Joiner::new(policy.clone());
    let mut inspectors = [7, 8].map(|source| (source, joiner.inspector()));
    let mut push = |joiner: &mut Joiner, window: u64, place: usize| {
        let (source, inspector) = &mut inspectors[place];
        let mut data = at(window + 5 * place as u64, (1, window as u32 * WINDOW_NS), FORMAT_VERSION, &[]);
        data[..4].copy_from_slice(&u32::to_le_bytes(*source));
        joiner.push(inspector.inspect(data).unwrap(), None, Instant::now());
    };
    for window in 0..20 {
        let first = window as usize % 2;
        push(&mut joiner, window, first);
        push(&mut joiner, window, 1 - first);
    }
    let events: Vec<_> = std::iter::from_fn(|| joiner.pop(Instant::now(), true)).collect();
    let first = 1_000_000_000 / u64::from(WINDOW_NS);
    let expected: Vec<_> = (first..first + 20).map(|record| (record, false)).collect();
    assert_eq!(events.iter().map(|event| (event.record, event.is_late)).collect::<Vec<_>>(), expected);
    push(&mut joiner, 6, 1);
    let late = joiner.pop(Instant::now(), true).unwrap();
    assert_eq!((late.record, late.is_late), (first + 6, true));
}

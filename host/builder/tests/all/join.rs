//! The joiner: its rules, and random streams.

use fadelink_builder::counts::{Counts, Joined, SourceCounts};
use fadelink_builder::join::{Before, Standing};
use fadelink_builder::key::Key;
use fadelink_builder::{Joiner, Policy};
use fadelink_wire::fadc::{header_word, Header, Message, FORMAT_VERSION, TYPE_WINDOWS_LOST};
use proptest::prelude::*;

use crate::bench::{message, two, Bench};

fn lost(source: u32, record: u64, count: u16) -> Box<[u8]> {
    message(source, record, &[header_word(TYPE_WINDOWS_LOST, count, 0)])
}

#[test]
fn a_window_leaves_when_all_have_sent_it_or_passed_it() {
    let mut bench = Bench::new(two());
    bench.push(1, 0);
    bench.push(1, 1);
    bench.push(1, 2);
    assert_eq!(bench.windows(), []);
    bench.push(2, 0);
    assert_eq!(bench.windows(), [(0, vec![1, 2])]);
    // Source 2 withheld window 1: it was empty.
    bench.push(2, 2);
    assert_eq!(bench.windows(), [(1, vec![1]), (2, vec![1, 2])]);
    assert_eq!(bench.joiner.joined().windows, Counts { complete: 3, ..Counts::default() });
}

/// Of windows that are large, fewer may be open: who is ahead waits, and who is awaited does not.
#[test]
fn open_windows_have_a_size() {
    let large = |source, record| message(source, record, &[0; 1000]);
    let limit = 10_000;
    let mut bench = Bench::new(Policy { max_bytes: limit, ..two() });
    let inspector = bench.joiner.inspector();
    let waits = |bench: &Bench, source, record| {
        bench.joiner.is_full_for(&inspector.clone().inspect(large(source, record)).unwrap(), bench.now)
    };
    let mut taken = 0;
    while !waits(&bench, 1, taken) {
        bench.give(large(1, taken), None);
        taken += 1;
    }
    assert_eq!(taken, 3, "of 4 kB each");
    // The other one has to say what it has of the first window, though there is no room: that it is empty, too.
    assert!(!waits(&bench, 2, 1));
    bench.give(large(2, 1), None);
    assert_eq!(bench.windows(), [(0, vec![1]), (1, vec![1, 2])]);
    assert!(!waits(&bench, 1, taken), "they have left");
    // One of two messages is kept, and counted.
    for _ in 0..100 {
        bench.give(large(1, 2), None);
    }
    assert!(!waits(&bench, 1, taken));
    bench.give(large(2, 2), None);
    assert_eq!(bench.windows(), [(2, vec![1, 2])]);
}

/// What a source says next is all that it ever says of the windows before, however many these are: none waits for its silence.
#[test]
fn who_is_awaited_does_not_wait() {
    let mut bench = Bench::new(Policy { max_open: 10, ..two() });
    let inspector = bench.joiner.inspector();
    let waits = |bench: &Bench, source, record| {
        bench.joiner.is_full_for(&inspector.clone().inspect(message(source, record, &[])).unwrap(), bench.now)
    };
    bench.push(2, 0);
    for record in 0..10 {
        assert!(!waits(&bench, 1, record));
        bench.push(1, record);
    }
    bench.windows();
    bench.push(1, 10);
    assert!(waits(&bench, 1, 11));
    assert!(!waits(&bench, 2, 11), "all before were empty, or lost");
    bench.push(2, 11);
    assert_eq!(bench.windows().len(), 10);
    assert!(!waits(&bench, 1, 11));
}

#[test]
fn a_silent_source_is_missing_until_it_returns() {
    let mut bench = Bench::new(two());
    bench.push(1, 0);
    bench.push(2, 0);
    bench.wait(1);
    bench.push(1, 1);
    bench.wait(1);
    let events = bench.events();
    assert_eq!(events.iter().map(|event| event.missing.clone()).collect::<Vec<_>>(), [vec![], vec![2]]);
    bench.push(1, 2);
    assert_eq!(bench.windows(), [(2, vec![1])]);
    // It returns, and is waited for again; what it did not see is missing, not empty.
    bench.push(1, 3);
    bench.push(1, 4);
    bench.joiner.begin_session(2);
    bench.push(2, 5);
    bench.push(1, 5);
    let events = bench.events();
    let missing: Vec<_> = events.iter().map(|event| (event.record, event.missing.clone())).collect();
    assert_eq!(missing, [(3, vec![2]), (4, vec![2]), (5, vec![])]);
    let counts = bench.source(2);
    assert_eq!((counts.missing, counts.absences, counts.messages), (4, 1, 2));
}

#[test]
fn late_and_duplicate_messages() {
    for (emit_late, keep_last) in [(false, false), (true, true)] {
        let mut bench = Bench::new(Policy { emit_late, keep_last, ..two() });
        bench.push(1, 0);
        bench.give(message(1, 0, &[0x8000_8003]), None);
        bench.push(2, 0);
        let event = bench.events().remove(0);
        assert_eq!(Message::parse(&event.parts[0]).unwrap().payload().len(), if keep_last { 4 } else { 0 });
        bench.push(2, 0);
        let late = bench.events();
        assert_eq!(late.iter().map(|event| event.is_late).collect::<Vec<_>>(), vec![true; usize::from(emit_late)]);
        assert_eq!((bench.source(1).duplicate, bench.source(2).late), (1, 1));
        assert_eq!(bench.joiner.joined().windows.late, u64::from(emit_late));
    }
}

#[test]
fn windows_that_a_crate_lost_are_missing() {
    let mut bench = Bench::new(two());
    for record in 0..6 {
        bench.push(1, record);
    }
    bench.push(2, 0);
    bench.give(lost(2, 5, 3), None);
    let missing: Vec<_> = bench.events().iter().map(|event| event.missing.len()).collect();
    // 1 was withheld, 2 to 4 are lost.
    assert_eq!(missing, [0, 0, 1, 1, 1, 0]);
    assert_eq!((bench.source(2).windows_lost, bench.source(2).missing), (3, 3));
    assert_eq!(bench.joiner.joined().windows, Counts { complete: 3, incomplete: 3, ..Counts::default() });
}

#[test]
fn what_nobody_sent_and_is_not_known_is_counted() {
    // Both crates are connected again: whatever was sent in between is gone with both connections.
    let mut bench = Bench::new(two());
    bench.push(1, 0);
    bench.push(2, 0);
    for source in [1, 2] {
        bench.joiner.begin_session(source);
        bench.push(source, 10);
    }
    assert_eq!(bench.windows(), [(0, vec![1, 2]), (10, vec![1, 2])]);
    assert_eq!((bench.source(1).unknown, bench.source(2).unknown), (9, 9));
    assert_eq!(bench.joiner.joined().of_all_sources().unknown, 18);
}

#[test]
fn a_window_with_fewer_sources_than_expected_is_not_complete() {
    let mut bench = Bench::new(Policy { count: 2, ..Policy::default() });
    bench.push(1, 0);
    assert_eq!(bench.windows(), []);
    bench.wait(2);
    assert_eq!(bench.windows(), [(0, vec![1])]);
    bench.push(1, 1);
    bench.push(2, 1);
    assert_eq!(bench.windows(), [(1, vec![1, 2])]);
    assert_eq!(bench.joiner.joined().windows, Counts { complete: 1, incomplete: 1, ..Counts::default() });
}

/// The data begins in the middle: at another window of each source, as where the oldest messages were deleted.
#[test]
fn data_that_begins_in_the_middle_begins_with_a_whole_window() {
    let mut bench = Bench::new(two());
    bench.joiner = Joiner::new(two()).from_the_middle();
    let from = |key| Some(Before { since: key, lost: (0, 0) });
    bench.give(message(1, 10, &[]), from(10));
    bench.give(message(1, 11, &[]), from(0));
    bench.give(message(1, 13, &[]), from(0));
    assert_eq!(bench.windows(), []);
    bench.give(message(2, 13, &[]), from(13));
    bench.give(message(2, 15, &[]), from(15));
    bench.give(message(1, 15, &[]), from(0));
    // 10 and 11 may have had messages of the second one. 14 may have been empty or not.
    assert_eq!(bench.windows(), [(13, vec![1, 2]), (15, vec![1, 2])]);
    assert_eq!((bench.source(2).missing, bench.source(2).unknown), (0, 1));
    assert_eq!(bench.joiner.joined().windows, Counts { complete: 2, ..Counts::default() });
    // A source that is silent is missing all the same.
    let mut bench = Bench::new(two());
    bench.joiner = Joiner::new(two()).from_the_middle();
    bench.give(message(1, 10, &[]), from(10));
    bench.wait(2);
    assert_eq!(bench.windows(), [(10, vec![1])]);
    assert_eq!(bench.source(2).missing, 1);
}

#[test]
fn what_is_told_of_the_windows_before_counts() {
    // Every fourth window comes here, those with remainder 2.
    let mut bench = Bench::new(two());
    bench.joiner = Joiner::new(two()).of_share(2, 4);
    let told = |bench: &mut Bench, source, record, since, lost| {
        bench.give(message(source, record, &[]), Some(Before { since, lost }));
    };
    told(&mut bench, 1, 2, 0, (0, 0));
    told(&mut bench, 2, 2, 0, (0, 0));
    // Of source 1, windows 6 and 10 were empty; of source 2, 10 is lost, and of 22 to 28 (22 and 26) nothing is known.
    told(&mut bench, 1, 14, 3, (0, 0));
    told(&mut bench, 2, 14, 3, (8, 12));
    told(&mut bench, 1, 18, 15, (0, 0));
    told(&mut bench, 2, 18, 15, (0, 0));
    told(&mut bench, 1, 26, 19, (0, 0));
    told(&mut bench, 2, 30, 29, (0, 0));
    told(&mut bench, 1, 30, 27, (0, 0));
    let missing: Vec<_> = bench.events().iter().map(|event| (event.record, event.missing.clone())).collect();
    assert_eq!(missing, [(2, vec![]), (14, vec![]), (18, vec![]), (26, vec![2]), (30, vec![])]);
    assert_eq!((bench.source(1).unknown, bench.source(2).unknown), (0, 2));
}

#[test]
fn what_has_not_left_is_not_settled() {
    let mut bench = Bench::new(two());
    bench.push(1, 0);
    bench.push(1, 0);
    bench.push(2, 0);
    assert_eq!(bench.joiner.settled().sources[&1], SourceCounts::default());
    assert_eq!(bench.source(1), SourceCounts { messages: 1, duplicate: 1, ..SourceCounts::default() });
    bench.events();
    assert_eq!(bench.joiner.settled(), bench.joiner.joined());
}

#[test]
fn incomplete_windows_are_dropped_where_that_is_asked_for() {
    let mut bench = Bench::new(Policy { emit_incomplete: false, ..two() });
    bench.push(1, 0);
    bench.push(1, 1);
    bench.joiner.begin_session(2);
    bench.push(2, 1);
    assert_eq!(bench.windows(), [(1, vec![1, 2])]);
    assert_eq!(bench.joiner.joined().windows, Counts { complete: 1, dropped: 1, ..Counts::default() });
}

#[test]
fn sources_are_waited_for_by_their_number() {
    let mut bench = Bench::new(Policy { count: 2, ..Policy::default() });
    bench.push(7, 4);
    assert_eq!(bench.windows(), []);
    bench.push(9, 5);
    assert_eq!(bench.windows(), [(4, vec![7])]);
    bench.push(7, 5);
    assert_eq!(bench.windows(), [(5, vec![7, 9])]);
    // The third is not there in time.
    let mut bench = Bench::new(Policy { count: 3, ..Policy::default() });
    bench.push(7, 4);
    bench.push(9, 4);
    assert_eq!(bench.windows(), []);
    bench.wait(2);
    assert_eq!(bench.windows(), [(4, vec![7, 9])]);
}

#[test]
fn windows_by_time() {
    let mut bench = Bench::new(Policy { key: Key::Time(1000), ..two() });
    let shifted = |source, record: u64, counter: u64| {
        let ns = record * 1000;
        let header = Header::new(source, FORMAT_VERSION, counter, (0, ns as u32), 0);
        Box::from(header.emit())
    };
    bench.give(shifted(1, 7, 0), None);
    bench.give(shifted(2, 7, 7), None);
    let event = bench.events().remove(0);
    assert_eq!((event.parts.len(), event.time), (2, (0, 7000)));
}

#[test]
fn a_time_that_differs_is_told() {
    let mut bench = Bench::new(two());
    bench.push(1, 3);
    let header = Header::new(2, FORMAT_VERSION, 3, (5, 0), 0);
    bench.give(Box::from(header.emit()), None);
    assert_eq!(bench.windows(), [(3, vec![1, 2])]);
    assert_eq!(bench.source(2).wrong_time, 1);
}

#[test]
fn after_a_restart_windows_go_on() {
    let mut bench = Bench::new(two());
    bench.joiner.resume(&[Standing { next: 5, ..Standing::default() }], bench.now);
    bench.push(1, 4);
    bench.push(1, 5);
    bench.push(2, 5);
    assert_eq!(bench.windows(), [(5, vec![1, 2])]);
    assert_eq!(bench.source(1).late, 1);
}

/// A source that has lost its first windows is missing in them, if it is heard first, too.
#[test]
fn the_first_windows_of_a_source_are_missing_in_every_order() {
    for (policy, key) in [(two(), 0), (Policy { count: 2, ..Policy::default() }, 0), (two(), 1 << 40)] {
        for order in [[1, 2], [2, 1]] {
            let mut bench = Bench::new(policy.clone());
            for source in order {
                bench.joiner.begin_session(source);
                let begin = if source == 2 { 5 } else { 0 };
                (begin..10).for_each(|record| bench.push(source, key + record));
            }
            let events = bench.events();
            assert_eq!(events.iter().filter(|event| event.missing == [2]).count(), 5, "{policy:?} {order:?}");
            assert_eq!(bench.joiner.joined().windows, Counts { complete: 5, incomplete: 5, ..Counts::default() });
        }
    }
}

/// What a source sends: windows, and the places among them where it is connected again.
type Sends = (Vec<u64>, Vec<usize>);

/// Joins what sources send, in this order of their turns; what was counted.
fn joined_in(policy: &Policy, sends: &[Sends], order: impl Iterator<Item = usize>) -> Joined {
    let mut bench = Bench::new(policy.clone());
    let mut rest: Vec<_> = sends.iter().map(|(windows, _)| windows.iter().copied().enumerate()).collect();
    for turn in order.chain((0..sends.len()).flat_map(|turn| [turn; 60])) {
        let Some((at, record)) = rest.get_mut(turn).and_then(Iterator::next) else { continue };
        if at == 0 || sends[turn].1.contains(&at) {
            bench.joiner.begin_session(turn as u32);
        }
        bench.push(turn as u32, record);
        bench.events();
    }
    while bench.joiner.pop(bench.now, true).is_some() {}
    bench.joiner.joined()
}

proptest! {
    /// The same messages give the same verdict in each order of the sources; and the right one, if each source may lose its first windows,
    /// and those between two connections.
    #[test]
    fn the_order_of_sources_changes_nothing(
        sends in prop::collection::vec(
            (prop::collection::btree_set(0u64..60, 0..40), prop::collection::vec(0usize..40, 0..3)), 1..5),
        orders in prop::array::uniform2(prop::collection::vec(0usize..5, 0..300)),
        listed in any::<bool>(),
    ) {
        let sends: Vec<Sends> = sends.into_iter().map(|(sent, breaks)| (sent.into_iter().collect(), breaks)).collect();
        let policy = match listed {
            true => Policy { sources: (0..sends.len() as u32).collect(), ..Policy::default() },
            false => Policy { count: sends.len(), ..Policy::default() },
        };
        let [one, other] = orders.map(|order| joined_in(&policy, &sends, order.into_iter()));
        prop_assert_eq!(&one, &other);
        // Sent, or passed over within a connection.
        let is_known = |(sent, breaks): &Sends, window: u64| {
            let at = sent.partition_point(|sent| *sent < window);
            sent.get(at) == Some(&window) || at > 0 && at < sent.len() && !breaks.contains(&at)
        };
        let is_sent = |window: &u64| sends.iter().any(|(sent, _)| sent.contains(window));
        let windows: Vec<_> = (0..60).filter(is_sent).collect();
        let whole = windows.iter().filter(|window| sends.iter().all(|sends| is_known(sends, **window))).count() as u64;
        prop_assert_eq!(one.windows, Counts { complete: whole, incomplete: windows.len() as u64 - whole, ..Counts::default() });
    }

    /// However messages of sources interleave: each is in one event, of its window, and windows leave in order.
    #[test]
    fn every_message_once(
        streams in prop::collection::vec(prop::collection::btree_set(0u64..60, 0..40), 1..5),
        order in prop::collection::vec(0usize..5, 0..300),
    ) {
        let sources: Vec<u32> = (0..streams.len() as u32).collect();
        let mut bench = Bench::new(Policy { sources, ..Policy::default() });
        let mut rest: Vec<_> = streams.iter().map(|stream| stream.iter().copied()).collect();
        let mut windows = Vec::new();
        for turn in order.iter().copied().chain((0..streams.len()).flat_map(|i| [i; 60])) {
            if let Some(record) = rest.get_mut(turn).and_then(Iterator::next) {
                bench.push(turn as u32, record);
                windows.extend(bench.windows());
            }
        }
        while let Some(event) = bench.joiner.pop(bench.now, true) {
            windows.push((event.record, event.messages().map(|m| m.header().source_id).collect()));
        }
        let expected: Vec<(u64, Vec<u32>)> = (0..60)
            .map(|record| (record, (0..streams.len() as u32).filter(|i| streams[*i as usize].contains(&record)).collect()))
            .filter(|(_, sources): &(u64, Vec<u32>)| !sources.is_empty())
            .collect();
        prop_assert_eq!(windows, expected);
    }
}

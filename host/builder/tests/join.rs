//! The joiner: its rules, and random streams.

use std::time::{Duration, Instant};

use fadelink_builder::counts::{Counts, SourceCounts};
use fadelink_builder::inspect::Inspector;
use fadelink_builder::join::{Before, Standing};
use fadelink_builder::key::Key;
use fadelink_builder::{Event, Joiner, Policy};
use fadelink_wire::fadc::{header_word, Header, Message, FORMAT_VERSION, TYPE_WINDOWS_LOST};
use proptest::prelude::*;

fn message(source: u32, record: u64, words: &[u32]) -> Box<[u8]> {
    let ns = u128::from(record) * 1000;
    let time = ((ns / 1_000_000_000) as i64, (ns % 1_000_000_000) as u32);
    let header = Header::new(source, FORMAT_VERSION, record, time, words.len() * 4);
    let mut out = header.emit().to_vec();
    out.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    out.resize(header.total_length as usize, 0);
    out.into()
}

fn lost(source: u32, record: u64, count: u16) -> Box<[u8]> {
    message(source, record, &[header_word(TYPE_WINDOWS_LOST, count, 0)])
}

struct Bench {
    joiner: Joiner,
    now: Instant,
}

impl Bench {
    fn new(policy: Policy) -> Bench {
        Bench { joiner: Joiner::new(policy), now: Instant::now() }
    }

    fn push(&mut self, source: u32, record: u64) {
        self.give(message(source, record, &[]), None);
    }

    /// A message that is inspected by itself.
    fn give(&mut self, message: Box<[u8]>, before: Option<Before>) {
        let inspected = self.joiner.inspector().inspect(message).unwrap();
        self.joiner.push(inspected, before, self.now);
    }

    fn wait(&mut self, seconds: u64) {
        self.now += Duration::from_secs(seconds);
        self.joiner.tick(self.now);
    }

    fn events(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.joiner.pop(self.now, false)).collect()
    }

    /// Windows with the sources that they have.
    fn windows(&mut self) -> Vec<(u64, Vec<u32>)> {
        let sources = |event: &Event| event.messages().map(|message| message.header().source_id).collect();
        self.events().iter().map(|event| (event.record, sources(event))).collect()
    }

    fn source(&self, id: u32) -> SourceCounts {
        self.joiner.joined().sources[&id].clone()
    }
}

fn two() -> Policy {
    Policy { sources: vec![1, 2], ..Policy::default() }
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
    let mut bench = Bench { joiner: Joiner::new(two()).of_share(2, 4), now: Instant::now() };
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

/// A stream over one connection.
struct Crate {
    source: u32,
    inspector: Inspector,
}

impl Crate {
    fn connect(bench: &mut Bench, source: u32) -> Crate {
        bench.joiner.begin_session(source);
        Crate { source, inspector: bench.joiner.inspector() }
    }

    fn send(&mut self, bench: &mut Bench, record: u64) {
        let inspected = self.inspector.inspect(message(self.source, record, &[])).unwrap();
        bench.joiner.push(inspected, None, bench.now);
    }
}

/// Two crates that have sent windows 0 to 99.
fn running(policy: Policy) -> (Bench, Crate, Crate) {
    let mut bench = Bench::new(policy);
    let [mut one, mut two] = [1, 2].map(|source| Crate::connect(&mut bench, source));
    for record in 0..100 {
        one.send(&mut bench, record);
        two.send(&mut bench, record);
    }
    assert_eq!(bench.windows().len(), 100);
    (bench, one, two)
}

/// Whatever its number: a message of a source that is not expected changes no window.
#[test]
fn a_source_that_is_not_expected_is_refused() {
    for record in [0, 50, 1 << 40, u64::MAX - 1] {
        for before in [false, true] {
            let mut bench = Bench::new(two());
            if before {
                bench.push(9, record);
            }
            bench.push(1, 0);
            bench.push(9, record);
            bench.push(2, 0);
            assert_eq!(bench.windows(), [(0, vec![1, 2])], "{record}");
            assert_eq!((bench.source(9).unlisted, bench.source(9).messages), (1 + u64::from(before), 0));
        }
    }
}

/// One wrong number, ahead or back, of a source that goes on.
#[test]
fn a_wrong_number_spoils_no_other_window() {
    for wrong in [0, 3, 110, 90_000, 4_293_529_139, u64::MAX - 1] {
        for policy in [two(), Policy { count: 2, ..Policy::default() }] {
            let (mut bench, mut one, mut two) = running(policy);
            one.send(&mut bench, 100);
            one.send(&mut bench, wrong);
            one.send(&mut bench, 101);
            two.send(&mut bench, 100);
            two.send(&mut bench, 101);
            let windows = bench.windows();
            assert_eq!(windows.iter().filter(|(_, sources)| sources.len() == 2).count(), 2, "{wrong} {windows:?}");
            assert_eq!(bench.source(1).wrong_number, 1, "{wrong}");
        }
    }
}

/// The first number of all, of one of two that are expected.
#[test]
fn a_wrong_first_number_spoils_no_other_window() {
    for wrong in [5, 5000, 1 << 30, u64::MAX - 1] {
        let mut bench = Bench::new(two());
        let [mut one, mut two] = [1, 2].map(|source| Crate::connect(&mut bench, source));
        one.send(&mut bench, wrong);
        let mut whole = 0;
        for record in 0..100 {
            two.send(&mut bench, record);
            one.send(&mut bench, record);
            whole += bench.windows().iter().filter(|(_, sources)| sources.len() == 2).count();
        }
        assert!(whole >= 98, "{wrong}: {whole} {:?}", bench.joiner.joined());
    }
}

/// It is not waited for, and not joined with what others send when it comes to their numbers; both crates may begin anew.
#[test]
fn a_crate_that_counts_anew_has_an_epoch_of_its_own() {
    for connects in [false, true] {
        let (mut bench, mut one, mut two) = running(two());
        bench.wait(3);
        if connects {
            one = Crate::connect(&mut bench, 1);
        }
        for n in 0..300 {
            one.send(&mut bench, n);
            two.send(&mut bench, 100 + n);
            bench.wait(1);
        }
        let windows = bench.windows();
        assert_eq!(windows.len(), 600);
        assert!(windows.iter().all(|(_, sources)| sources.len() == 1));
        assert_eq!((bench.source(1).anew, bench.source(2).anew), (1, 0));
        let joined = bench.joiner.joined();
        assert_eq!(joined.first_wrong.unwrap(), "window 0, source 0x00000001: its source counts anew from there");
        // Both begin anew, one after the other.
        let mut two = Crate::connect(&mut bench, 2);
        let mut one = Crate::connect(&mut bench, 1);
        two.send(&mut bench, 0);
        two.send(&mut bench, 1);
        assert_eq!(bench.windows(), []);
        for n in 0..10 {
            one.send(&mut bench, n);
            two.send(&mut bench, n + 2);
        }
        assert_eq!(bench.windows(), (0..10).map(|n| (n, vec![1, 2])).collect::<Vec<_>>());
    }
}

/// A message that is left on the connection before comes after the first one of the next.
#[test]
fn what_is_left_on_the_connection_before_is_joined() {
    let (mut bench, mut one, mut two) = running(two());
    let mut next = Crate::connect(&mut bench, 1);
    next.send(&mut bench, 102);
    one.send(&mut bench, 100);
    one.send(&mut bench, 101);
    next.send(&mut bench, 103);
    for record in 100..104 {
        two.send(&mut bench, record);
    }
    assert_eq!(bench.windows().iter().filter(|(_, sources)| sources.len() == 2).count(), 4);
}

/// Windows that were withheld: far more than may be open.
#[test]
fn windows_that_were_passed_over_are_empty() {
    let (mut bench, mut one, mut two) = running(two());
    one.send(&mut bench, 1_000_100);
    two.send(&mut bench, 1_000_100);
    one.send(&mut bench, 1_000_101);
    two.send(&mut bench, 1_000_101);
    assert_eq!(bench.windows(), [(1_000_100, vec![1, 2]), (1_000_101, vec![1, 2])]);
    assert_eq!(bench.joiner.joined().wrong(), 0);
    one.send(&mut bench, 3_000_000);
    two.send(&mut bench, 3_000_000);
    bench.wait(2);
    assert_eq!(bench.windows(), [(3_000_000, vec![1, 2])]);
    assert_eq!(bench.joiner.joined().wrong(), 0);
}

/// What happens to a source besides its next message.
#[derive(Debug, Clone)]
enum Mischief {
    /// A single wrong number.
    Wrong(u64),
    /// It counts anew from there, over a connection of its own or not.
    Anew(u64, bool),
    /// It is connected again and goes on.
    Connect,
    /// A second time the same.
    Twice,
    /// Another source.
    Stray(u64),
    Wait,
}

fn mischief() -> impl Strategy<Value = Mischief> {
    let number = || prop_oneof![0u64..2000, Just(4_293_529_139), Just(u64::MAX - 1), 0u64..(1 << 26)];
    prop_oneof![
        number().prop_map(Mischief::Wrong),
        (number(), any::<bool>()).prop_map(|(number, connects)| Mischief::Anew(number, connects)),
        Just(Mischief::Connect),
        Just(Mischief::Twice),
        number().prop_map(Mischief::Stray),
        Just(Mischief::Wait),
    ]
}

proptest! {
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

    /// Whatever bad sources do: each window of the good ones comes out once with all of these, nothing waits for ever, and no
    /// more than one connection may have under way is kept.
    #[test]
    fn good_sources_come_out_whole(
        acts in prop::collection::vec((0u64..400, 0usize..3, mischief()), 0..40),
        listed in any::<bool>(),
    ) {
        const GOOD: [u32; 2] = [1, 2];
        const BAD: [u32; 3] = [3, 4, 5];
        let all = [1, 2, 3, 4, 5];
        let policy = Policy {
            sources: if listed { all.to_vec() } else { Vec::new() },
            count: if listed { 0 } else { 5 },
            ..Policy::default()
        };
        let mut bench = Bench::new(policy);
        let mut good: Vec<_> = GOOD.iter().map(|source| Crate::connect(&mut bench, *source)).collect();
        let mut bad: Vec<_> = BAD.iter().map(|source| (Crate::connect(&mut bench, *source), 0)).collect();
        let mut whole = Vec::new();
        let mut sent = 0;
        let mut take = |bench: &mut Bench, all: bool| while let Some(event) = bench.joiner.pop(bench.now, all) {
            let sources: Vec<_> = event.messages().map(|message| message.header().source_id).collect();
            if GOOD.iter().all(|source| sources.contains(source)) {
                whole.push(event.record);
            } else {
                assert!(GOOD.iter().all(|source| !sources.contains(source)), "{event:?}");
            }
        };
        for record in 0..400 {
            for (crate_, next) in &mut bad {
                crate_.send(&mut bench, *next);
                *next = next.saturating_add(1);
                sent += 1;
            }
            for (_, which, act) in acts.iter().filter(|(at, ..)| *at == record) {
                let (crate_, next) = &mut bad[*which];
                sent += 1;
                match act {
                    Mischief::Wrong(number) => crate_.send(&mut bench, *number),
                    Mischief::Anew(number, connects) => {
                        if *connects {
                            *crate_ = Crate::connect(&mut bench, crate_.source);
                        }
                        *next = *number;
                    }
                    Mischief::Connect => *crate_ = Crate::connect(&mut bench, crate_.source),
                    Mischief::Twice => crate_.send(&mut bench, next.saturating_sub(1)),
                    Mischief::Stray(number) => bench.push(9, *number),
                    Mischief::Wait => bench.now += Duration::from_millis(300),
                }
            }
            for crate_ in &mut good {
                crate_.send(&mut bench, record);
            }
            bench.joiner.tick(bench.now);
            take(&mut bench, false);
        }
        bench.wait(3);
        take(&mut bench, false);
        take(&mut bench, true);
        whole.sort_unstable();
        prop_assert_eq!(whole, (0..400).collect::<Vec<_>>());
        let joined = bench.joiner.joined();
        let counted = BAD.map(|source| {
            let SourceCounts { messages, late, duplicate, set_aside, .. } = joined.sources[&source];
            messages + late + duplicate + set_aside
        });
        prop_assert!(counted.iter().sum::<u64>() <= sent);
        prop_assert!(bench.joiner.oldest().is_none());
    }
}

//! The joiner: numbers that cannot follow, sources that count anew, and whatever bad sources do.

use std::time::Duration;

use fadelink_builder::counts::SourceCounts;
use fadelink_builder::inspect::Inspector;
use fadelink_builder::Policy;
use proptest::prelude::*;

use crate::bench::{message, two, Bench};

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

/// A wrong number that is a little ahead, so that windows leave before the next one shows it. The source goes on with the others.
#[test]
fn a_number_that_is_a_little_ahead_does_not_part_the_sources() {
    for (ahead, between) in [(1, 1), (10, 3), (3000, 50)] {
        let (mut bench, mut one, mut two) = running(two());
        one.send(&mut bench, 99 + ahead);
        for record in 100..100 + between {
            two.send(&mut bench, record);
        }
        bench.windows();
        for record in 100..200 {
            one.send(&mut bench, record);
            if record >= 100 + between {
                two.send(&mut bench, record);
            }
        }
        let whole = bench.windows().iter().filter(|(_, sources)| sources.len() == 2).count();
        assert!(whole as u64 >= 99 - between, "{ahead}: {whole} of {} {:?}", 100 - between, bench.joiner.joined());
        assert_eq!(bench.source(1).anew, 0);
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

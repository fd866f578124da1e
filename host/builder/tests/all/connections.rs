//! The joiner: sources that send over several connections, in any order of these.

use crate::bench;
use fadelink_builder::inspect::Inspector;
use fadelink_builder::Policy;
use proptest::prelude::*;

use crate::bench::{message, Bench};

/// A connection, and the windows that are still to be sent over it.
struct Connection {
    source: u32,
    inspector: Option<Inspector>,
    left: Vec<u64>,
}

impl Connection {
    fn begin(&mut self, bench: &mut Bench) -> &mut Inspector {
        self.inspector.get_or_insert_with(|| {
            bench.joiner.begin_session(self.source);
            bench.joiner.inspector()
        })
    }

    /// Sends the next window, if there is one.
    fn send(&mut self, bench: &mut Bench) {
        let Some(record) = self.left.pop() else { return };
        let data = message(self.source, record, &[]);
        let inspected = self.begin(bench).inspect(data).unwrap();
        bench.joiner.push(inspected, None, bench.now);
    }
}

/// Each source sends all windows from 0 on, over one connection after another, which end at these windows.
fn connections(ends: &[Vec<u64>], windows: u64) -> Vec<Connection> {
    let mut all = Vec::new();
    for (source, ends) in (1..).zip(ends) {
        let mut begin = 0;
        for end in ends.iter().copied().chain([windows]) {
            let left = (begin..end).rev().collect();
            all.push(Connection { source, inspector: None, left });
            begin = begin.max(end);
        }
    }
    all
}

const WINDOWS: u64 = 40;

proptest! {
    /// However the messages of connections are mixed, and whether the older ones of a source come first or not: a window that is called
    /// complete has a message of each source, for each has sent each window. Where the sources are not listed, nobody can name one that
    /// was not heard yet, and the window counts as incomplete.
    #[test]
    fn a_complete_window_has_all_its_sources(
        ends in prop::collection::vec(prop::collection::btree_set(1..WINDOWS, 0..4), 1..4),
        order in prop::collection::vec((0usize..15, 1usize..12), 0..120),
        waits in prop::collection::btree_set(0usize..120, 0..4),
        listed in any::<bool>(),
    ) {
        let ends: Vec<Vec<_>> = ends.into_iter().map(|ends| ends.into_iter().collect()).collect();
        let (sources, count) = if listed { ((1..=ends.len() as u32).collect(), 0) } else { (vec![], ends.len()) };
        let mut bench = Bench::new(Policy { sources, count, ..Policy::default() });
        let mut connections = connections(&ends, WINDOWS);
        let mut events = Vec::new();
        let turns = order.into_iter().chain((0..connections.len()).map(|turn| (turn, WINDOWS as usize)));
        for (number, (turn, messages)) in turns.enumerate() {
            if waits.contains(&number) {
                bench.wait(1);
            }
            let place = turn % connections.len();
            for _ in 0..messages {
                connections[place].send(&mut bench);
                events.extend(bench.events());
            }
        }
        while let Some(event) = bench.joiner.pop(bench.now, true) {
            events.push(event);
        }
        let complete: Vec<_> = events.iter().filter(|event| event.missing.is_empty() && !event.is_late).collect();
        let whole = complete.iter().filter(|event| event.parts.len() == ends.len()).count();
        prop_assert!(!listed || whole == complete.len());
        prop_assert!(bench.joiner.joined().windows.complete <= whole as u64);
    }
}

/// An older connection of a source is read behind a newer one: windows do not leave as if their messages had not been sent.
#[test]
fn what_is_still_to_come_over_an_older_connection_is_missing() {
    let mut bench = Bench::new(bench::two());
    let mut all = connections(&[vec![10]], 20);
    let [older, newer] = &mut all[..2] else { panic!("expected two connections") };
    (0..4).for_each(|_| older.send(&mut bench));
    newer.begin(&mut bench);
    older.send(&mut bench);
    (0..10).for_each(|_| newer.send(&mut bench));
    (0..20).for_each(|record| bench.push(2, record));
    // Windows 0 to 4 came over the first one, 10 to 19 over the second one.
    let sources = |record| if (5..10).contains(&record) { vec![2] } else { vec![1, 2] };
    assert_eq!(bench.windows(), (0..20).map(|record| (record, sources(record))).collect::<Vec<_>>());
    let windows = bench.joiner.joined().windows;
    assert_eq!((windows.complete, windows.incomplete, bench.source(1).missing), (15, 5, 5));
}

//! The datagrams of one run, in the order in which they were sent.

use std::collections::BTreeMap;

use serde::Serialize;
use twox_hash::XxHash3_64;

/// Counts of the datagrams of one run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Delivered, in order.
    pub received: u64,
    /// Never came.
    pub lost: u64,
    /// Came when the ones behind had been given up for and delivered; dropped.
    pub late: u64,
    /// Came again, soon; dropped.
    pub duplicates: u64,
    /// Came again when more than [`Order::WINDOW`] others had come; dropped. The network does not do that: the board has begun anew.
    pub repeated: u64,
    /// Came before one that was sent earlier; delivered in order.
    pub reordered: u64,
    /// Came again with other words; dropped. One of the two is not the board's.
    pub contradictions: u64,
    /// Delivered, though the run had fewer datagrams: not the board's.
    pub beyond: u64,
    /// Sent before the first one that was delivered; never came, or came late.
    pub before: u64,
}

/// Gaps that are remembered one by one.
const GAPS: usize = 1000;

/// A hole in the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Gap {
    /// Counter of the first datagram that is missing.
    pub first: u64,
    /// How many are missing.
    pub count: u64,
}

/// What comes out of [`Order`].
#[derive(Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// The next words.
    Words(&'a [u8]),
    /// Datagrams that are missing here.
    Missing(u64),
}

/// Gaps in which late datagrams are known as such.
const RANGES: usize = 8192;

/// Numbers of datagrams that were given up for: ranges, by their first numbers, with the number behind each.
#[derive(Debug, Default)]
struct Missing(BTreeMap<u64, u64>);

impl Missing {
    fn add(&mut self, first: u64, behind: u64) {
        self.0.insert(first, behind);
        // The oldest ones do not come any more.
        while self.0.len() > RANGES {
            self.0.pop_first();
        }
    }

    /// True if it was among them.
    fn remove(&mut self, number: u64) -> bool {
        let found = self.0.range(..=number).next_back().map(|(first, behind)| (*first, *behind));
        let Some((first, behind)) = found.filter(|(_, behind)| number < *behind) else { return false };
        self.0.remove(&first);
        if first < number {
            self.0.insert(first, number);
        }
        if number + 1 < behind {
            self.0.insert(number + 1, behind);
        }
        true
    }
}

/// Datagrams that were delivered and whose words are known by their hash.
const KNOWN: usize = 1024;

/// Whether the number of a datagram near another one is before that of the first datagram of a run.
fn is_negative(number: u64) -> bool {
    number > u64::MAX / 2
}

/// Puts the datagrams of one run in order; what does not come is a gap once `WINDOW` datagrams behind it are there. Their first has
/// the number 0.
#[derive(Debug, Default)]
pub struct Order {
    /// `None`: whether datagram 0 comes is not known yet.
    next: Option<u64>,
    first: u64,
    /// Hash of the words of the last datagrams, each at its number modulo KNOWN; `None`: it was not delivered.
    hashes: Vec<Option<u64>>,
    ahead: BTreeMap<u64, Vec<u8>>,
    missing: Missing,
    gaps: Vec<Gap>,
    counts: Counts,
}

impl Order {
    /// How far the datagrams may be out of order.
    pub const WINDOW: usize = 64;

    /// Of a run that this receiver has begun: datagram 0 is due.
    pub fn from_the_start() -> Order {
        Order { next: Some(0), ..Order::default() }
    }

    /// The counts so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Datagrams that wait for the ones before.
    pub fn waiting(&self) -> usize {
        self.ahead.len()
    }

    /// Counter of the first datagram that was delivered.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// The gaps, as many as are remembered.
    pub fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    /// Number of the datagram with `counter`, near the one that is due.
    fn extend(&self, counter: u32) -> u64 {
        let next = self.next.or(self.ahead.first_key_value().map(|(first, _)| *first)).unwrap_or(counter.into());
        next.wrapping_add_signed(i64::from(counter.wrapping_sub(next as u32).cast_signed()))
    }

    /// Takes a datagram; `step` is told what is next.
    pub fn push(&mut self, counter: u32, words: &[u8], mut step: impl FnMut(Step<'_>)) {
        let number = self.extend(counter);
        let Some(next) = self.next else { return self.begin(number, words, step) };
        if number < self.first || is_negative(number) {
            // From before this receiver was there.
            self.counts.before = self.counts.before.saturating_sub(1);
            self.counts.late += 1;
        } else if number < next {
            if self.missing.remove(number) {
                self.counts.lost -= 1;
                self.counts.late += 1;
            } else if self.hash(number).is_some_and(|known| known != XxHash3_64::oneshot(words)) {
                self.counts.contradictions += 1;
            } else if number + (Self::WINDOW as u64) < next {
                self.counts.repeated += 1;
            } else {
                self.counts.duplicates += 1;
            }
        } else if number == next {
            self.counts.reordered += u64::from(!self.ahead.is_empty());
            self.next = Some(next);
            self.deliver(words, &mut step);
            self.drain(&mut step);
        } else if self.hold(number, words) {
            self.skip(&mut step);
        }
    }

    /// Number of the datagram that is due; `None`: whether datagram 0 comes is not known yet.
    pub fn due(&self) -> Option<u64> {
        self.next
    }

    /// Waits no longer for what is missing before the first one that is there.
    pub fn pass(&mut self, mut step: impl FnMut(Step<'_>)) {
        match self.next {
            None => self.start(&mut step),
            Some(_) => self.skip(&mut step),
        }
    }

    /// Takes a datagram of which nobody knows whether it is the first one: the run may have been going on, or datagram 0 comes late.
    fn begin(&mut self, number: u64, words: &[u8], mut step: impl FnMut(Step<'_>)) {
        if is_negative(number) {
            self.counts.late += 1;
        } else if number == 0 {
            self.next = Some(0);
            self.push(0, words, step);
        } else if self.hold(number, words) {
            self.start(&mut step);
        }
    }

    /// Keeps a datagram until those before it are there. True: there are too many.
    fn hold(&mut self, number: u64, words: &[u8]) -> bool {
        if let Some(before) = self.ahead.get(&number) {
            *if before == words { &mut self.counts.duplicates } else { &mut self.counts.contradictions } += 1;
        } else {
            self.ahead.insert(number, words.to_vec());
        }
        self.ahead.len() > Self::WINDOW
    }

    /// Begins with the first datagram that is there.
    fn start(&mut self, step: &mut impl FnMut(Step<'_>)) {
        if let Some((first, _)) = self.ahead.first_key_value() {
            self.first = *first;
            self.counts.before = *first;
            self.next = Some(*first);
            self.drain(step);
        }
    }

    /// Whether a datagram is known to be one that was delivered.
    pub fn is_known(&self, counter: u32, words: &[u8]) -> bool {
        self.hash(self.extend(counter)) == Some(XxHash3_64::oneshot(words))
    }

    /// Hash of the words of a datagram that was delivered, if it is still known.
    fn hash(&self, number: u64) -> Option<u64> {
        self.next.filter(|next| number < *next && next - number <= KNOWN as u64)?;
        self.hashes.get(number as usize % KNOWN).copied().flatten()
    }

    /// What was delivered, or not, is the datagram that was due.
    fn note(&mut self, hash: Option<u64>) {
        let Some(next) = self.next.as_mut() else { return };
        self.hashes.resize(KNOWN, None);
        self.hashes[*next as usize % KNOWN] = hash;
        *next += 1;
    }

    fn deliver(&mut self, words: &[u8], step: &mut impl FnMut(Step<'_>)) {
        step(Step::Words(words));
        self.counts.received += 1;
        self.note(Some(XxHash3_64::oneshot(words)));
    }

    fn drain(&mut self, step: &mut impl FnMut(Step<'_>)) {
        while let Some(words) = self.next.and_then(|next| self.ahead.remove(&next)) {
            self.deliver(&words, step);
        }
    }

    /// Gives up for what is missing before the first that is there.
    fn skip(&mut self, step: &mut impl FnMut(Step<'_>)) {
        let first = self.ahead.first_key_value().map(|(first, _)| *first);
        if let (Some(first), Some(next)) = (first, self.next) {
            self.give_up(next, first, step);
            self.drain(step);
        }
    }

    fn give_up(&mut self, from: u64, to: u64, step: &mut impl FnMut(Step<'_>)) {
        let count = to - from;
        self.counts.lost += count;
        if self.gaps.len() < GAPS {
            self.gaps.push(Gap { first: from, count });
        }
        self.missing.add(from, to);
        step(Step::Missing(count));
        self.next = Some(to - count.min(KNOWN as u64));
        (0..count.min(KNOWN as u64)).for_each(|_| self.note(None));
    }

    /// Whether all `total` datagrams of the run, from the first that came, are delivered.
    pub fn has_all(&self, total: u32) -> bool {
        self.ahead.is_empty() && self.next.unwrap_or(0) == self.extend(total)
    }

    /// The run is over, after `total` datagrams if that is known: what is missing is lost.
    pub fn finish(&mut self, total: Option<u32>, mut step: impl FnMut(Step<'_>)) {
        if self.next.is_none() {
            self.start(&mut step);
        }
        while !self.ahead.is_empty() {
            self.skip(&mut step);
        }
        if let Some(total) = total {
            let (total, next) = (self.extend(total), self.next.unwrap_or(0));
            if total > next {
                self.give_up(next, total, &mut step);
            }
            self.counts.beyond = next.saturating_sub(total);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Runs an order of counters; the numbers that came out, with a gap as none.
    fn run(counters: &[u32], total: Option<u32>) -> (Vec<Option<u64>>, Order) {
        let mut out = Vec::new();
        let mut order = Order::default();
        let mut take = |step: Step<'_>| match step {
            Step::Words(words) => out.push(Some(u64::from_le_bytes(words.try_into().unwrap()))),
            Step::Missing(count) => out.extend((0..count).map(|_| None)),
        };
        for counter in counters {
            order.push(*counter, &u64::from(*counter).to_le_bytes(), &mut take);
        }
        order.finish(total, take);
        (out, order)
    }

    #[test]
    fn gaps_are_counted_and_named() {
        let (out, order) = run(&[0, 1, 4, 5], Some(8));
        assert_eq!(out, [Some(0), Some(1), None, None, Some(4), Some(5), None, None]);
        assert_eq!(order.counts(), Counts { received: 4, lost: 4, ..Counts::default() });
        assert_eq!(order.gaps(), [Gap { first: 2, count: 2 }, Gap { first: 6, count: 2 }]);
    }

    #[test]
    fn nothing_at_all_is_all_lost() {
        let (out, order) = run(&[], Some(3));
        assert_eq!((out.len(), order.counts().lost), (3, 3));
    }

    #[test]
    fn late_and_double_ones_are_told_apart() {
        let mut counters: Vec<u32> = (0..200).filter(|n| *n != 10).collect();
        counters.extend([10, 199, 150]);
        let (_, order) = run(&counters, Some(200));
        let counts = Counts { received: 199, late: 1, duplicates: 2, ..Counts::default() };
        assert_eq!(order.counts(), counts);
    }

    /// Also of a gap that is longer than anything that is remembered one by one.
    #[test]
    fn late_ones_of_a_long_gap_are_late() {
        let late = [1, 5_000, 99_999, 5_000, 60_000, 1, 2];
        let counters: Vec<u32> = [0].into_iter().chain(100_000..100_100).chain(late).collect();
        let (_, order) = run(&counters, Some(100_100));
        let counts = order.counts();
        assert_eq!((counts.late, counts.lost, counts.repeated + counts.duplicates), (5, 99_994, 2), "{counts:?}");
    }

    #[test]
    fn what_is_waited_for_too_long_is_given_up_for() {
        let mut out = Vec::new();
        for mut order in [Order::from_the_start(), Order::default()] {
            [1, 2, 4].into_iter().for_each(|counter| order.push(counter, &[0; 8], |_| panic!("it waits")));
            order.pass(|step| out.push(matches!(step, Step::Missing(1))));
            assert_eq!((order.waiting(), order.due()), (1, Some(3)));
            order.pass(|step| out.push(matches!(step, Step::Missing(1))));
            assert_eq!((order.waiting(), order.due(), order.counts().received), (0, Some(5), 3));
            order.pass(|_| panic!("nothing waits"));
        }
        assert_eq!(out, [true, false, false, true, false, false, false, true, false]);
    }

    #[test]
    fn what_comes_again_far_behind_is_no_repetition_by_the_network() {
        let mut counters: Vec<u32> = (0..200).collect();
        counters.extend([199, 136, 135, 0]);
        let (_, order) = run(&counters, Some(200));
        let counts = Counts { received: 200, duplicates: 2, repeated: 2, ..Counts::default() };
        assert_eq!(order.counts(), counts);
    }

    #[test]
    fn what_came_before_the_first_one_is_missing() {
        let (out, order) = run(&[5, 0, 1, 2, 3, 4, 6], Some(7));
        assert_eq!(out, (0..7).map(Some).collect::<Vec<_>>());
        assert_eq!((order.counts().before, order.counts().reordered), (0, 5));
        for total in [None, Some(4)] {
            let (out, order) = run(&[1, 2, 3], total);
            assert_eq!((out.len(), order.first(), order.counts().before), (3, 1, 1));
        }
        // As of a run that was going on already: the first one comes too late, and one before the counter began.
        let counters: Vec<u32> = (7..100).chain([6, 0]).collect();
        let (_, order) = run(&counters, Some(100));
        assert_eq!(order.counts(), Counts { received: 93, before: 5, late: 2, ..Counts::default() });
    }

    #[test]
    fn what_comes_again_with_other_words_is_no_duplicate() {
        let mut order = Order::from_the_start();
        let mut push = |counter, word: u64| order.push(counter, &word.to_le_bytes(), |_| {});
        let came = [(0, 0), (1, 1), (0, 0), (0, 7), (3, 3), (3, 3), (3, 9), (2, 2), (3, 9)];
        came.into_iter().for_each(|(counter, word)| push(counter, word));
        let counts = order.counts();
        assert_eq!((counts.received, counts.duplicates, counts.contradictions), (4, 2, 3));
        assert!(!order.is_known(1, &[2; 8]) && order.is_known(1, &1u64.to_le_bytes()));
        // Far back nothing is known any more.
        let mut push = |counter: u32| order.push(counter, &u64::from(counter).to_le_bytes(), |_| {});
        (4..2000).for_each(&mut push);
        assert!(!order.is_known(1, &1u64.to_le_bytes()) && order.is_known(1500, &1500u64.to_le_bytes()));
        order.finish(Some(1990), |_| {});
        assert_eq!((order.counts().beyond, order.counts().lost), (10, 0));
    }

    #[test]
    fn the_counter_wraps() {
        let first = u32::MAX - 1;
        let (out, order) = run(&[first, u32::MAX, 1, 0, 2], Some(3));
        assert_eq!(out, [first, u32::MAX, 0, 1, 2].map(|n| Some(u64::from(n))));
        assert_eq!((order.counts().lost, order.counts().before, order.first()), (0, first.into(), first.into()));
    }

    proptest! {
        #[test]
        fn what_comes_within_the_window_comes_out_in_order(
            keys in prop::collection::vec((0u32..40, any::<bool>()), 1..300), lost in prop::collection::btree_set(0u32..300, 0..20),
        ) {
            let total = keys.len() as u32;
            let mut sent: Vec<(u32, u32)> = (0..total).map(|n| (n + keys[n as usize].0, n)).collect();
            sent.sort();
            let lost: Vec<u32> = lost.into_iter().filter(|n| *n < total).collect();
            let mut counters = Vec::new();
            for (_, n) in sent.into_iter().filter(|(_, n)| !lost.contains(n)) {
                counters.push(n);
                if keys[n as usize].1 {
                    counters.push(n);
                }
            }
            let (out, order) = run(&counters, Some(total));
            // Those before the first one that comes are not a gap.
            let first = (0..total).find(|n| !lost.contains(n));
            let expected: Vec<_> = (first.unwrap_or(0)..total).map(|n| (!lost.contains(&n)).then_some(u64::from(n))).collect();
            prop_assert_eq!(out, expected);
            prop_assert_eq!((order.counts().before + order.counts().lost) as usize, lost.len());
            prop_assert_eq!(order.counts().duplicates as usize, counters.len() - (total as usize - lost.len()));
        }
    }
}

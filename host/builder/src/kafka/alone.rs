//! Whether a builder is the only one that writes to its partitions of the topic of events.
//!
//! Brokers give the records of a partition one number after the other, and a transaction takes one more for its mark. So there is no room
//! between the last event of a transaction and that of the next one but for the mark and the events. Where there is more, either a
//! transaction that was given up has left records, which nobody reads, or somebody else has written. Such places are read:
//! who reads committed data finds the events of this group there, and no others.
//!
//! What a builder knows of its partitions is committed with its place, so that the next one goes on with it.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

/// Where more was written than this group has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Surplus {
    pub partition: i32,
    pub offsets: Range<i64>,
    /// Events of this group among them.
    pub own: u64,
}

/// What the group has written to a partition behind a record whose number is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tail {
    /// The number behind that record.
    end: i64,
    events: u64,
    /// Of transactions: with that of the record, if it is an event.
    marks: u64,
}

/// As `END+EVENTS/MARKS`.
impl fmt::Display for Tail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{}/{}", self.end, self.events, self.marks)
    }
}

impl FromStr for Tail {
    type Err = ();

    fn from_str(text: &str) -> Result<Tail, ()> {
        let parse = || {
            let (end, more) = text.split_once('+')?;
            let (events, marks) = more.split_once('/')?;
            Some(Tail { end: end.parse().ok()?, events: events.parse().ok()?, marks: marks.parse().ok()? })
        };
        parse().ok_or(())
    }
}

impl Tail {
    /// Nothing is behind the last event of a transaction but its mark.
    fn behind_event(end: i64) -> Tail {
        Tail { end, events: 0, marks: 1 }
    }

    /// Nothing of the group is in a partition that ends there.
    pub fn of_none(end: i64) -> Tail {
        Tail { end, events: 0, marks: 0 }
    }

    /// How many numbers others have taken up to `end`, behind all that the group has written but the last mark, which may be still to come.
    fn surplus(&self, end: i64, marks: u64) -> i64 {
        end - self.end - self.events as i64 - marks as i64
    }
}

/// A transaction of a partition that goes on.
#[derive(Debug, Clone, Copy)]
struct Begun {
    events: u64,
    /// The number behind its last event, where it is known.
    end: Option<i64>,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Alone {
    tails: BTreeMap<i32, Tail>,
    begun: BTreeMap<i32, Begun>,
    /// Places of transactions that were committed.
    suspects: Vec<Surplus>,
}

impl Alone {
    /// Its partitions may be another builder's.
    pub fn forget(&mut self) {
        self.tails.clear();
        self.begun.clear();
        self.suspects.clear();
    }

    /// It goes on in a partition, with what the group has written there, where that is known.
    pub fn begin(&mut self, partition: i32, tail: Option<Tail>) {
        match tail {
            Some(tail) => _ = self.tails.insert(partition, tail),
            None => _ = self.tails.remove(&partition),
        }
    }

    /// A transaction begins: the one before was committed or given up.
    pub fn begin_transaction(&mut self) {
        self.begun.clear();
    }

    /// It has so many events in a partition. `end`: the number behind the last of them, where it is known: those of messages whose
    /// answers did not come are not.
    pub fn sent(&mut self, partition: i32, events: u64, end: Option<i64>) {
        self.begun.insert(partition, Begun { events, end });
    }

    /// What the group has written to a partition when the transaction is committed.
    pub fn tail(&self, partition: i32) -> Option<Tail> {
        let tail = self.tails.get(&partition).copied();
        let Some(Begun { events, end }) = self.begun.get(&partition).copied() else { return tail };
        let Some(tail) = tail else { return end.map(Tail::behind_event) };
        let events = tail.events + events;
        // Of a surplus all is kept until it was looked at.
        let whole = Tail { events, ..tail };
        match end.filter(|end| whole.surplus(*end, tail.marks) <= 0) {
            Some(end) => Some(Tail::behind_event(end)),
            None => Some(Tail { marks: tail.marks + 1, ..whole }),
        }
    }

    /// The transaction was committed.
    pub fn commit(&mut self) {
        for (partition, Begun { end, .. }) in self.begun.clone() {
            let tail = self.tail(partition);
            self.begin(partition, tail);
            // Behind this event there is its mark.
            if let Some((tail, end)) = tail.zip(end).filter(|(tail, end)| tail.surplus(*end, tail.marks - 1) > 0) {
                self.suspects.retain(|suspect| suspect.partition != partition);
                self.suspects.push(Surplus { partition, offsets: tail.end..end, own: tail.events });
            }
        }
        self.begun.clear();
    }

    /// Places of transactions that were committed, to be looked at now: what cannot be is found again later.
    pub fn suspects(&mut self) -> Vec<Surplus> {
        std::mem::take(&mut self.suspects)
    }

    /// It was looked at what is there.
    pub fn looked_at(&mut self, Surplus { partition, offsets, .. }: &Surplus) {
        self.tails.insert(*partition, Tail::behind_event(offsets.end));
    }

    /// Places to be looked at in the end. `end`: asks for the offset behind the last record of a partition.
    ///
    /// # Errors
    /// Those of `end`.
    pub fn at_end<E>(&self, mut end: impl FnMut(i32) -> Result<i64, E>) -> Result<Vec<Surplus>, E> {
        let mut found = Vec::new();
        for (&partition, tail) in &self.tails {
            let end = end(partition)?;
            if tail.surplus(end, tail.marks) > 0 {
                found.push(Surplus { partition, offsets: tail.end..end, own: tail.events });
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Found = Vec<(Range<i64>, u64)>;

    fn of(found: Vec<Surplus>) -> Found {
        found.into_iter().map(|surplus| (surplus.offsets, surplus.own)).collect()
    }

    /// Transactions of one partition, as `(events, number behind the last of them)`, where it is known, and what is to be looked at then
    /// and in a partition that ends at `end`. Whether another builder goes on behind each makes no difference.
    fn places(first: Option<Tail>, transactions: &[(u64, Option<i64>)], end: i64) -> (Found, Found) {
        let [one, other] = [false, true].map(|changes| {
            let (mut alone, mut found) = (Alone::default(), Vec::new());
            alone.begin(0, first);
            for (events, behind) in transactions {
                alone.begin_transaction();
                alone.sent(0, *events, *behind);
                let written = alone.tail(0).map(|tail| tail.to_string());
                alone.commit();
                for suspect in alone.suspects() {
                    alone.looked_at(&suspect);
                    found.push(suspect);
                }
                if changes {
                    alone.forget();
                    alone.begin(0, written.map(|text| text.parse().unwrap()));
                }
            }
            let at_end = alone.at_end(|_| Ok::<_, ()>(end)).unwrap();
            // Nobody knows whether the one before has looked at what it has found: it is found again.
            if changes {
                found.clear()
            }
            (of(found), of(at_end))
        });
        assert!(!one.0.is_empty() || one == other, "{one:?} {other:?}");
        one
    }

    #[test]
    fn who_writes_alone_has_nothing_to_look_for() {
        for (transactions, end) in [
            (&[][..], 50),
            (&[(10, Some(10))], 11),
            // Its mark is still to come.
            (&[(10, Some(10))], 10),
            (&[(10, Some(17)), (3, Some(21)), (4, Some(26))], 27),
            // The number of the last event of the second one was not told.
            (&[(10, Some(10)), (3, None), (4, Some(19)), (2, Some(22))], 23),
            (&[(3, None), (4, Some(19))], 20),
        ] {
            assert_eq!(places(None, transactions, end), Default::default(), "{transactions:?}");
        }
        assert_eq!(places(Some(Tail::of_none(5)), &[(10, Some(15))], 16), Default::default());
    }

    #[test]
    fn what_is_written_between_or_behind_is_looked_for() {
        let [known, unknown] = [|end| Some(Tail::of_none(end)), |_| None];
        let looked = |found: &[(Range<i64>, u64)], at_end: &[(Range<i64>, u64)]| (found.to_vec(), at_end.to_vec());
        assert_eq!(places(unknown(0), &[(10, Some(10))], 12), looked(&[], &[(10..12, 0)]));
        assert_eq!(places(unknown(0), &[(10, Some(10)), (3, Some(15))], 16), looked(&[(10..15, 3)], &[]));
        assert_eq!(
            places(unknown(0), &[(10, Some(10)), (3, None), (4, Some(20))], 21),
            looked(&[(10..20, 7)], &[]),
            "somewhere among both"
        );
        // Before the first one, and in each gap.
        assert_eq!(
            places(known(0), &[(10, Some(11)), (2, Some(15))], 17),
            looked(&[(0..11, 10), (11..15, 2)], &[(15..17, 0)])
        );
        assert_eq!(places(known(4), &[], 5), looked(&[], &[(4..5, 0)]));
    }

    #[test]
    fn what_was_not_looked_at_is_found_again() {
        let mut alone = Alone::default();
        alone.begin(0, Some(Tail::of_none(0)));
        for (end, own) in [(11, 10), (22, 20)] {
            alone.begin_transaction();
            alone.sent(0, 10, Some(end));
            alone.commit();
            assert_eq!(of(alone.suspects()), [(0..end, own)]);
        }
        // One that is given up is not there.
        alone.begin_transaction();
        alone.sent(0, 5, Some(99));
        alone.begin_transaction();
        alone.commit();
        assert_eq!(alone.at_end(|_| Ok::<_, ()>(23)).map(of), Ok(vec![(0..23, 20)]));
        alone.forget();
        assert_eq!(alone.at_end(|_| Ok::<_, ()>(99)).map(of), Ok(Vec::new()), "they are another builder's");
    }

    #[test]
    fn a_tail_is_read_as_it_was_written() {
        let tail = Tail { end: i64::MAX, events: 7, marks: 2 };
        assert_eq!(tail.to_string().parse(), Ok(tail));
        for wrong in ["", "7", "7+", "7+1", "7+1/", "7+1/x", "7+1/2/3"] {
            assert_eq!(wrong.parse::<Tail>(), Err(()), "{wrong}");
        }
    }
}

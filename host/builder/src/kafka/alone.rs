//! Whether a builder is the only one that writes to its partitions of the topic of events.
//!
//! Brokers give the records of a partition one number after the other, and a transaction takes one more for its mark. So there is no room
//! between the last event of a transaction and that of the next one but for the mark and the events. Where there is more, either a
//! transaction that was given up has left records, which nobody reads, or somebody else has written. Such places are read at the end:
//! who reads committed data finds the events of this builder there, and no others.

use std::collections::BTreeMap;
use std::ops::Range;

/// Places that are remembered; that there were more is known.
const PLACES: usize = 1024;

/// Where more was written than this builder has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub partition: i32,
    pub offsets: Range<i64>,
    /// Events of this builder among them.
    pub own: u64,
}

/// What was written to a partition behind an event whose number is known.
#[derive(Debug, Clone, Copy)]
struct Tail {
    /// The number behind that event.
    end: i64,
    events: u64,
    /// Of transactions, with that of the event.
    marks: i64,
}

impl Tail {
    fn at(end: i64) -> Tail {
        Tail { end, events: 0, marks: 1 }
    }

    /// How many numbers others have taken up to `end`, before which `marks` are.
    fn surplus(&self, end: i64, marks: i64) -> i64 {
        end - self.end - self.events as i64 - marks
    }
}

/// See the module.
#[derive(Debug, Default)]
pub struct Alone {
    tails: BTreeMap<i32, Tail>,
    places: Vec<Place>,
    /// There were more places.
    has_more: bool,
}

impl Alone {
    /// Others may write to its partitions from now on, or have.
    pub fn forget(&mut self) {
        self.tails.clear();
    }

    /// A transaction with so many events in a partition was committed. `before`, `now`: what of the partition this builder has written
    /// before and behind it, as far as their numbers are known: those of messages whose answers did not come are not.
    pub fn wrote(&mut self, partition: i32, events: u64, before: Option<&Range<i64>>, now: &Range<i64>) {
        let taken = before.map_or(now.end - now.start, |before| now.end - before.end - 1);
        // Both numbers are known, and nothing is between.
        let is_clean = taken == events as i64;
        let Some(tail) = self.tails.get_mut(&partition) else {
            if is_clean {
                self.tails.insert(partition, Tail::at(now.end));
            }
            return;
        };
        tail.events += events;
        if is_clean {
            let tail = std::mem::replace(tail, Tail::at(now.end));
            if tail.surplus(now.end, tail.marks) > 0 {
                self.remember(Place { partition, offsets: tail.end..now.end, own: tail.events });
            }
        } else {
            tail.marks += 1;
        }
    }

    fn remember(&mut self, place: Place) {
        match self.places.len() < PLACES {
            true => self.places.push(place),
            false => self.has_more = true,
        }
    }

    /// Places to be read at the end, and whether there were more. `end`: asks for the offset behind the last record of a partition.
    ///
    /// # Errors
    /// Those of `end`.
    pub fn places<E>(&self, mut end: impl FnMut(i32) -> Result<i64, E>) -> Result<(Vec<Place>, bool), E> {
        let mut places = self.places.clone();
        for (partition, tail) in &self.tails {
            let end = end(*partition)?;
            if tail.surplus(end, tail.marks) > 0 {
                places.push(Place { partition: *partition, offsets: tail.end..end, own: tail.events });
            }
        }
        Ok((places, self.has_more))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Transactions of one partition, as `(events, number behind the last of them that is known)`, and what is to be read in a
    /// partition that ends at `end`.
    fn places(transactions: &[(u64, i64)], end: i64) -> Vec<(Range<i64>, u64)> {
        let (mut alone, mut before) = (Alone::default(), None);
        for (events, behind) in transactions {
            let now = before.as_ref().map_or(behind - *events as i64, |span: &Range<i64>| span.start)..*behind;
            alone.wrote(0, *events, before.as_ref(), &now);
            before = Some(now);
        }
        let (places, has_more) = alone.places(|_| Ok::<_, ()>(end)).unwrap();
        assert!(!has_more);
        places.into_iter().map(|place| (place.offsets, place.own)).collect()
    }

    #[test]
    fn who_writes_alone_has_nothing_to_look_for() {
        for (transactions, end) in [
            (&[][..], 50),
            (&[(10, 10)], 11),
            // Its mark is still to come.
            (&[(10, 10)], 10),
            (&[(10, 17), (3, 21), (4, 26)], 27),
            // The number of the last event of the second one was not told.
            (&[(10, 10), (3, 13), (4, 19), (2, 22)], 23),
        ] {
            assert_eq!(places(transactions, end), [], "{transactions:?}");
        }
    }

    #[test]
    fn what_is_written_between_or_behind_is_looked_for() {
        assert_eq!(places(&[(10, 10)], 12), [(10..12, 0)]);
        assert_eq!(places(&[(10, 10), (3, 15), (4, 20)], 21), [(10..20, 7)]);
        assert_eq!(places(&[(10, 10), (3, 15)], 16), [(10..16, 3)]);
        // A transaction of 3 that was given up.
        assert_eq!(places(&[(10, 10), (3, 18), (4, 23), (1, 25)], 26), [(10..23, 7)]);
    }

    #[test]
    fn partitions_that_were_another_builders_are_begun_anew() {
        let mut alone = Alone::default();
        alone.wrote(0, 10, None, &(0..10));
        alone.forget();
        alone.wrote(0, 5, Some(&(0..10)), &(0..90));
        assert_eq!(alone.places(|_| Ok::<_, ()>(99)), Ok((Vec::new(), false)));
        alone.wrote(0, 5, Some(&(0..90)), &(0..96));
        assert_eq!(alone.places(|_| Ok::<_, ()>(97)), Ok((Vec::new(), false)));
    }
}

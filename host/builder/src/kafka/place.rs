//! The place of a builder in a partition, as it stands in the metadata of a committed offset.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use super::alone::Tail;
use super::known::Known;
use super::note::Session;
use crate::join::Standing;

/// See the module.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Place {
    /// The first window of each epoch that was not given away, and who counts in it; that of the first one is `next` in the text.
    pub epochs: Vec<Standing>,
    /// The first message that was not read.
    pub read: i64,
    /// Sources that were too far ahead: the first message before `read` that was not taken of them.
    pub left: BTreeMap<u32, i64>,
    /// The last message that was read.
    pub last: Option<Known>,
    /// Offsets of the events of its windows that no builder has reported. Their end is known of those that were reported, too.
    pub events: Option<Range<i64>>,
    /// What the group has written to the partition of the same number of the events, where it is to be the only one.
    pub tail: Option<Tail>,
    /// The group has begun at the oldest messages that were left, behind others that were deleted, which is no loss.
    pub begins_later: bool,
    /// Windows and messages before with which something is wrong, and which no builder has reported: it was killed.
    pub unreported: u64,
    /// Sources whose end has not come, and their newest sessions.
    pub open: BTreeMap<u32, Session>,
    /// Sources of these for which windows that were given away did not wait.
    pub behind: BTreeSet<u32>,
    /// Feeds that have begun, and whose end has not come, by when they began.
    pub feeds: BTreeSet<u64>,
    /// Feeds that have sent something, and whose begin has not come.
    pub unbegun: BTreeSet<u64>,
    /// There are more of them than could be written down.
    pub has_more_open: bool,
}

/// Bytes that the brokers take, as they are set by default (offset.metadata.max.bytes).
const ROOM: usize = 4096;
/// In the place of sources.
const MORE: &str = "more";
/// Among the sources of a feed: it has not ended itself.
const FEED: &str = "feed";
/// The same: its begin has not come.
const UNBEGUN: &str = "unbegun";
/// Behind a source: windows did not wait for it.
const BEHIND: &str = "-";
/// The group has begun there.
const OLDEST: &str = "oldest";

/// As `next=N read=N unreported=N open=EPOCH:feed,SOURCE.NUMBER,...;EPOCH:... left=SOURCE@OFFSET,... events=FIRST..END tail=END+EVENTS/MARKS last=MESSAGE begin=oldest anew=NEXT:SOURCE@OFFSET,...;NEXT:...`, the sources in
/// hexadecimal; `open=more` if there is no room for them, which about 250 of one feed have. `anew` stands there only if sources have
/// counted anew.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { epochs, read, left, last, events, tail, begins_later, unreported, open, behind, .. } = self;
        let Place { feeds: own, unbegun, has_more_open, .. } = self;
        let mut feeds: BTreeMap<u64, Vec<String>> = own.iter().map(|epoch| (*epoch, vec![FEED.into()])).collect();
        unbegun.iter().for_each(|epoch| feeds.entry(*epoch).or_default().push(UNBEGUN.into()));
        for (source, (epoch, number)) in open {
            let behind = if behind.contains(source) { BEHIND } else { "" };
            feeds.entry(*epoch).or_default().push(format!("{source:x}.{number}{behind}"));
        }
        let feeds = feeds.iter().map(|(epoch, sources)| format!("{epoch}:{}", sources.join(",")));
        let feeds: Vec<_> = feeds.chain(has_more_open.then(|| MORE.to_owned())).collect();
        let anew = epochs.iter().map(|Standing { next, since }| {
            let since: Vec<_> = since.iter().map(|(source, offset)| format!("{source:x}@{offset}")).collect();
            format!("{next}:{}", since.join(","))
        });
        let is_plain = epochs.iter().all(|epoch| epoch.since.is_empty());
        let anew = if is_plain { String::new() } else { format!(" anew={}", anew.collect::<Vec<_>>().join(";")) };
        let events = events.as_ref().map_or(String::new(), |Range { start, end }| format!(" events={start}..{end}"));
        let events = events + &tail.map_or(String::new(), |tail| format!(" tail={tail}"));
        let last = events + &last.map_or(String::new(), |last| format!(" last={last}"));
        let last = last + &if *begins_later { format!(" begin={OLDEST}") } else { String::new() };
        let is_left: Vec<_> = left.iter().map(|(source, offset)| format!("{source:x}@{offset}")).collect();
        let is_left = if left.is_empty() { String::new() } else { format!(" left={}", is_left.join(",")) };
        let begin = |read| format!("next={} read={read} unreported={unreported} open=", self.next());
        // Without room for them all that comes behind the first of them is read as if it was not.
        let oldest = left.values().min().filter(|_| begin(read).len() + MORE.len() + is_left.len() + last.len() > ROOM);
        let (begin, is_left) = (begin(oldest.unwrap_or(read)), if oldest.is_some() { "" } else { &is_left });
        let last = format!("{is_left}{last}");
        let open = feeds.join(";");
        let has_room = |open: &str, anew: &str| begin.len() + open.len() + last.len() + anew.len() <= ROOM;
        let open = if has_room(&open, &anew) { &open } else { MORE };
        let anew = if has_room(open, &anew) { &anew } else { "" };
        write!(f, "{begin}{open}{last}{anew}")
    }
}

impl Place {
    /// True if windows were given away.
    pub fn has_given(&self) -> bool {
        self.epochs.iter().any(|epoch| epoch.next > 0)
    }

    /// True if each source and feed has ended, nothing is left to be taken, and nothing to be reported.
    pub fn has_ended(&self) -> bool {
        let has_open =
            !self.open.is_empty() || !self.feeds.is_empty() || !self.unbegun.is_empty() || self.has_more_open;
        !has_open && self.left.is_empty() && self.unreported == 0
    }

    /// The first window of the first epoch that was not given away.
    pub fn next(&self) -> u64 {
        self.epochs.first().map_or(0, |epoch| epoch.next)
    }

    /// The epoch that a message is in which has been read before; `None`: one that has ended.
    pub fn epoch_of(&self, source: u32, offset: i64) -> Option<usize> {
        let since = |epoch: usize| self.epochs[epoch].since.get(&source);
        let later = (1..self.epochs.len()).find(|epoch| since(*epoch).is_some_and(|since| *since <= offset));
        let is_in_first =
            self.epochs.first().is_none_or(|first| first.since.get(&source).is_none_or(|since| *since <= offset));
        later.or(is_in_first.then_some(0))
    }
}

/// Version 0.1 wrote the first two fields.
impl FromStr for Place {
    type Err = ();

    fn from_str(text: &str) -> Result<Place, ()> {
        let mut words = text.split(' ').peekable();
        let mut value = |name: &str| words.next_if(|word| word.starts_with(name)).map(|word| &word[name.len()..]);
        let next: u64 = value("next=").ok_or(())?.parse().map_err(drop)?;
        let read = value("read=").ok_or(())?.parse().map_err(drop)?;
        let unreported = value("unreported=").unwrap_or("0").parse().map_err(drop)?;
        let (mut open, mut feeds, mut unbegun) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
        let (mut behind, mut has_more_open) = (BTreeSet::new(), false);
        for feed in value("open=").unwrap_or("").split(';').filter(|feed| !feed.is_empty()) {
            if feed == MORE {
                has_more_open = true;
                continue;
            }
            let (epoch, sources) = feed.split_once(':').ok_or(())?;
            let epoch = epoch.parse().map_err(drop)?;
            for source in sources.split(',') {
                if source == FEED || source == UNBEGUN {
                    if source == FEED { &mut feeds } else { &mut unbegun }.insert(epoch);
                    continue;
                }
                let (source, number) = source.split_once('.').ok_or(())?;
                let source = u32::from_str_radix(source, 16).map_err(drop)?;
                behind.extend(number.ends_with(BEHIND).then_some(source));
                open.insert(source, (epoch, number.trim_end_matches(BEHIND).parse().map_err(drop)?));
            }
        }
        let range = |text: &str| {
            let (first, end) = text.split_once("..").ok_or(())?;
            Ok(first.parse().map_err(drop)?..end.parse().map_err(drop)?)
        };
        let places = |text: &str| {
            let mut places = BTreeMap::new();
            for place in text.split(',').filter(|place| !place.is_empty()) {
                let (source, offset) = place.split_once('@').ok_or(())?;
                places.insert(u32::from_str_radix(source, 16).map_err(drop)?, offset.parse().map_err(drop)?);
            }
            Ok(places)
        };
        let left = value("left=").map_or(Ok(BTreeMap::new()), places)?;
        let events = value("events=").map(range).transpose()?;
        let tail = value("tail=").map(str::parse).transpose()?;
        let last = value("last=").map(str::parse).transpose()?;
        let begins_later = value("begin=").map(|begin| (begin == OLDEST).then_some(true).ok_or(())).transpose()?;
        let begins_later = begins_later.unwrap_or(false);
        let mut epochs = Vec::new();
        for epoch in value("anew=").unwrap_or("").split(';').filter(|epoch| !epoch.is_empty()) {
            let (next, sources) = epoch.split_once(':').ok_or(())?;
            epochs.push(Standing { next: next.parse().map_err(drop)?, since: places(sources)? });
        }
        if epochs.is_empty() {
            epochs.push(Standing { next, since: BTreeMap::new() });
        }
        let place = Place {
            epochs,
            read,
            left,
            last,
            events,
            tail,
            begins_later,
            unreported,
            open,
            behind,
            feeds,
            unbegun,
            has_more_open,
        };
        words.next().is_none().then_some(place).ok_or(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_as_it_was_written() {
        let open = [(1, (5, 0)), (0xC0DA_0001, (u64::MAX, u64::MAX)), (2, (5, 1))].into();
        let behind = [2].into();
        let (feeds, unbegun, last) = ([5, 9].into(), [4, 5].into(), "16/1700000000000/0123abcd".parse().ok());
        let epochs = [(u64::MAX, vec![]), (7, vec![(1, 40), (0xC0DA_0001, i64::MAX)]), (0, vec![])];
        let mut epochs: Vec<_> =
            epochs.into_iter().map(|(next, since)| Standing { next, since: since.into_iter().collect() }).collect();
        let place = Place {
            epochs: epochs.clone(),
            read: 17,
            left: [(0xC0DA_0001, 12)].into(),
            last,
            events: Some(3..i64::MAX),
            tail: "7+0/1".parse().ok(),
            begins_later: true,
            unreported: 3,
            open,
            behind,
            feeds,
            unbegun,
            has_more_open: true,
        };
        assert_eq!(place.to_string().parse().as_ref(), Ok(&place));
        epochs.truncate(1);
        epochs[0].next = 1;
        let place = Place { epochs, read: 2, ..Place::default() };
        assert_eq!(place.to_string().parse().as_ref(), Ok(&place));
        assert_eq!("next=1 read=2".parse().as_ref(), Ok(&place));
        for wrong in [
            "",
            "next=1",
            "next=x read=1",
            "read=1 next=1",
            "next=1 read=1 unreported=1 open=7",
            "next=1 read=1 more=1",
            "next=1 read=1 unreported=0 open= anew=7",
            "next=1 read=1 unreported=0 open= last=7",
            "next=1 read=1 unreported=0 open= events=7",
            "next=1 read=1 unreported=0 open= tail=7",
            "next=1 read=1 unreported=0 open= left=7",
            "next=1 read=1 unreported=0 open= begin=newest",
            "next=1 read=1 unreported=0 open= anew=7:1@2 last=1/2/3",
            "next=1 read=1 unreported=0 open= anew=7:1",
        ] {
            assert_eq!(wrong.parse::<Place>(), Err(()), "{wrong}");
        }
    }

    #[test]
    fn the_brokers_have_room_for_a_place_with_many_sources() {
        let epoch = 1_764_367_252_000_000_000;
        for (count, has_more_open) in [(250, false), (400, true)] {
            let open: BTreeMap<_, _> = (0..count).map(|n| (0xC0DA_0000 + n, (epoch, u64::from(n)))).collect();
            let feeds = [epoch].into();
            let epochs = vec![Standing { next: 1 << 40, since: BTreeMap::new() }];
            let place = Place { epochs, read: 1 << 40, unreported: 1 << 20, open, feeds, ..Place::default() };
            let text = place.to_string();
            let (open, feeds) =
                if has_more_open { Default::default() } else { (place.open.clone(), place.feeds.clone()) };
            assert!(text.len() <= ROOM);
            assert_eq!(text.parse(), Ok(Place { open, feeds, has_more_open, ..place }));
        }
    }
}

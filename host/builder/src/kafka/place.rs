//! The place of a builder in a partition, as it stands in the metadata of a committed offset.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use super::note::Session;

/// See the module.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Place {
    /// The first window that was not given away.
    pub next: u64,
    /// The first message that was not read.
    pub read: i64,
    /// Windows and messages before with which something is wrong, and which no builder has reported: it was killed.
    pub unreported: u64,
    /// Sources whose end has not come, and their newest sessions.
    pub open: BTreeMap<u32, Session>,
}

/// As `next=N read=N unreported=N open=EPOCH:SOURCE.NUMBER,...;EPOCH:...`, the sources in hexadecimal. The brokers take 4096 bytes:
/// about 250 sources of one feed.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { next, read, unreported, open } = self;
        let mut feeds: BTreeMap<u64, Vec<String>> = BTreeMap::new();
        for (source, (epoch, number)) in open {
            feeds.entry(*epoch).or_default().push(format!("{source:x}.{number}"));
        }
        let feeds: Vec<_> = feeds.iter().map(|(epoch, sources)| format!("{epoch}:{}", sources.join(","))).collect();
        write!(f, "next={next} read={read} unreported={unreported} open={}", feeds.join(";"))
    }
}

/// Version 0.1 wrote the first two fields.
impl FromStr for Place {
    type Err = ();

    fn from_str(text: &str) -> Result<Place, ()> {
        let mut words = text.split(' ');
        let mut value = |name: &str| words.next().map(|word| word.strip_prefix(name).ok_or(()));
        let next = value("next=").ok_or(())??.parse().map_err(drop)?;
        let read = value("read=").ok_or(())??.parse().map_err(drop)?;
        let unreported = value("unreported=").unwrap_or(Ok("0"))?.parse().map_err(drop)?;
        let mut open = BTreeMap::new();
        for feed in value("open=").unwrap_or(Ok(""))?.split(';').filter(|feed| !feed.is_empty()) {
            let (epoch, sources) = feed.split_once(':').ok_or(())?;
            for source in sources.split(',') {
                let (source, number) = source.split_once('.').ok_or(())?;
                let session = (epoch.parse().map_err(drop)?, number.parse().map_err(drop)?);
                open.insert(u32::from_str_radix(source, 16).map_err(drop)?, session);
            }
        }
        words.next().is_none().then_some(Place { next, read, unreported, open }).ok_or(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_as_it_was_written() {
        let open = [(1, (5, 0)), (0xC0DA_0001, (u64::MAX, u64::MAX)), (2, (5, 1))].into();
        let place = Place { next: u64::MAX, read: 17, unreported: 3, open };
        assert_eq!(place.to_string().parse().as_ref(), Ok(&place));
        let place = Place { next: 1, read: 2, ..Place::default() };
        assert_eq!(place.to_string().parse().as_ref(), Ok(&place));
        assert_eq!("next=1 read=2".parse().as_ref(), Ok(&place));
        for wrong in [
            "",
            "next=1",
            "next=x read=1",
            "read=1 next=1",
            "next=1 read=1 unreported=1 open=7",
            "next=1 read=1 more=1",
        ] {
            assert_eq!(wrong.parse::<Place>(), Err(()), "{wrong}");
        }
    }

    #[test]
    fn a_place_with_many_sources_is_short_enough_for_the_brokers() {
        let epoch = 1_764_367_252_000_000_000;
        let open = (0..250).map(|n| (0xC0DA_0000 + n, (epoch, u64::from(n)))).collect();
        assert!(Place { next: 1 << 40, read: 1 << 40, unreported: 1 << 20, open }.to_string().len() < 4096);
    }
}

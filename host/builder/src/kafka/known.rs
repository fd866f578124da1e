//! What a message is known by again: a topic that was made again, or whose end was lost, has another one in its place.

use std::fmt;
use std::str::FromStr;

use rdkafka::message::{Headers, Message};

use super::note::NAME;

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// Where it is.
    pub offset: i64,
    /// The time that the broker gave it, in ms since 1970; -1: none.
    ms: i64,
    /// CRC-32 of its key, its note and its data.
    crc: u32,
}

impl Known {
    /// Of a message.
    pub fn of(message: &impl Message) -> Known {
        let note = message.headers().and_then(|all| all.iter().find(|header| header.key == NAME)?.value);
        let mut crc = crc32fast::Hasher::new();
        [message.key(), note, message.payload()].into_iter().for_each(|part| crc.update(part.unwrap_or_default()));
        let ms = message.timestamp().to_millis().unwrap_or(-1);
        Known { offset: message.offset(), ms, crc: crc.finalize() }
    }
}

/// As `OFFSET/MS/CRC`, the CRC in hexadecimal.
impl fmt::Display for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{:08x}", self.offset, self.ms, self.crc)
    }
}

impl FromStr for Known {
    type Err = ();

    fn from_str(text: &str) -> Result<Known, ()> {
        let mut parts = text.splitn(3, '/');
        let mut next = || parts.next().ok_or(());
        let (offset, ms) = (next()?.parse().map_err(drop)?, next()?.parse().map_err(drop)?);
        Ok(Known { offset, ms, crc: u32::from_str_radix(next()?, 16).map_err(drop)? })
    }
}

#[cfg(test)]
mod tests {
    use rdkafka::message::{Header, OwnedHeaders, OwnedMessage};
    use rdkafka::Timestamp;

    use super::*;

    #[test]
    fn a_message_is_known_by_its_place_its_time_and_its_content() {
        let message = |offset, ms, note, data: &str| {
            let note = OwnedHeaders::new().insert(Header { key: NAME, value: Some(note) });
            let (data, time) = (Some(data.as_bytes().to_vec()), Timestamp::CreateTime(ms));
            Known::of(&OwnedMessage::new(data, None, "t".into(), time, 0, offset, Some(note)))
        };
        let known = message(7, 1_700_000_000_123, "by=counter/4 begin=1", "data");
        assert_eq!(known.to_string().parse(), Ok(known));
        for other in [
            message(8, 1_700_000_000_123, "by=counter/4 begin=1", "data"),
            message(7, 1_700_000_000_124, "by=counter/4 begin=1", "data"),
            message(7, 1_700_000_000_123, "by=counter/4 begin=2", "data"),
            message(7, 1_700_000_000_123, "by=counter/4 begin=1", "date"),
        ] {
            assert_ne!(other, known);
        }
        for wrong in ["", "7", "7/1", "7/1/x", "x/1/0", "7/1/0/0"] {
            assert_eq!(wrong.parse::<Known>(), Err(()), "{wrong}");
        }
    }
}

//! The note that a feeder adds to each message, as a Kafka header: the rule of the partition, the session of the
//! source, and what is known about its windows before this one. A message without data is the end of a session: TCP has confirmed
//! that the crate has sent no more. It shows a builder what a killed feeder had
//! received and not delivered, and which windows in other partitions a crate has lost.

use std::fmt;
use std::str::FromStr;

use rdkafka::message::{Header, Headers, Message, OwnedHeaders};

use crate::join::Before;
use crate::Event;

/// Name of the header.
pub const NAME: &str = "fadelink";

/// A connection of a crate to a feeder: when the feeder began (ns since 1970), and its how many-th connection it is.
pub type Session = (u64, u64);

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// By which the partition was chosen.
    pub rule: String,
    /// Of the source.
    pub session: Session,
    /// Of the windows in this partition.
    pub before: Before,
    /// The source whose session ends here.
    pub end: Option<u32>,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Note { rule, session: (epoch, number), before: Before { since, lost: (first, behind) }, end } = self;
        write!(f, "by={rule} session={epoch}.{number} since={since} lost={first}..{behind}")?;
        end.map_or(Ok(()), |source| write!(f, " end={source:#010x}"))
    }
}

impl FromStr for Note {
    type Err = ();

    fn from_str(text: &str) -> Result<Note, ()> {
        let mut words = text.split(' ');
        let pair = |text: &str, between| {
            let (first, second) = text.split_once(between)?;
            Some((first.parse().ok()?, second.parse().ok()?))
        };
        let mut parse = || {
            let mut value = |name: &str| words.next()?.strip_prefix(name)?.strip_prefix('=');
            let rule = value("by")?.to_owned();
            let session = pair(value("session")?, ".")?;
            let since = value("since")?.parse().ok()?;
            let lost = pair(value("lost")?, "..")?;
            let end = match words.next() {
                Some(word) => Some(u32::from_str_radix(word.strip_prefix("end=0x")?, 16).ok()?),
                None => None,
            };
            Some(Note { rule, session, before: Before { since, lost }, end }).filter(|_| words.next().is_none())
        };
        parse().ok_or(())
    }
}

impl Note {
    /// As headers of a message.
    pub fn headers(&self) -> OwnedHeaders {
        OwnedHeaders::new().insert(Header { key: NAME, value: Some(&self.to_string()) })
    }

    /// Of a message that has one.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn of(message: &impl Message) -> Result<Option<Note>, ()> {
        let Some(headers) = message.headers() else { return Ok(None) };
        let Some(header) = headers.iter().find(|header| header.key == NAME) else { return Ok(None) };
        let text = header.value.and_then(|value| std::str::from_utf8(value).ok()).ok_or(())?;
        text.parse().map(Some)
    }
}

/// Tells with an event which sources are missing, and whether it came late.
pub fn of_event(event: &Event) -> OwnedHeaders {
    let missing: Vec<_> = event.missing.iter().map(|source| format!("{source:#010x}")).collect();
    let text = format!("missing={} late={}", missing.join(","), u8::from(event.is_late));
    OwnedHeaders::new().insert(Header { key: NAME, value: Some(&text) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_read_as_it_was_written() {
        let note = Note {
            rule: "time:4096/8".into(),
            session: (u64::MAX, 3),
            before: Before { since: 17, lost: (20, u64::MAX) },
            end: None,
        };
        let end = Note { end: Some(0xC0DA_0001), ..note.clone() };
        for note in [&note, &end] {
            assert_eq!(note.to_string().parse().as_ref(), Ok(note));
        }
        let good = note.to_string();
        for wrong in ["", "by=counter/4", &good[1..], &good[..good.len() - 25], &format!("{good} more=1")] {
            assert_eq!(wrong.parse::<Note>(), Err(()), "{wrong}");
        }
    }
}

//! The note that a feeder adds to each message, as a Kafka header: the rule of the partition, the session of the
//! source, and what is known about its windows before this one. It shows a builder what a killed feeder had
//! received and not delivered, and which windows in other partitions a crate has lost.
//!
//! Messages without data are marks: a feeder has begun, before it takes anything; a session has ended, because TCP has confirmed
//! that the crate has sent no more; a feeder has ended with all of that.

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
    /// What it is of.
    pub of: Of,
}

/// What a note is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// A message.
    Message(Session, Before),
    /// The end of a source's session.
    End(Session, Before, u32),
    /// The begin of a feeder, which began then.
    FeedBegins(u64),
    /// Its end: it has delivered the messages and ends of all its connections.
    FeedEnds(u64),
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "by={}", self.rule)?;
        match self.of {
            Of::FeedBegins(epoch) => return write!(f, " begin={epoch}"),
            Of::FeedEnds(epoch) => return write!(f, " done={epoch}"),
            Of::Message((epoch, number), before) | Of::End((epoch, number), before, _) => {
                let Before { since, lost: (first, behind) } = before;
                write!(f, " session={epoch}.{number} since={since} lost={first}..{behind}")?;
            }
        }
        if let Of::End(_, _, source) = self.of {
            write!(f, " end={source:#010x}")?;
        }
        Ok(())
    }
}

impl FromStr for Note {
    type Err = ();

    fn from_str(text: &str) -> Result<Note, ()> {
        let mut words = text.split(' ').map(|word| word.split_once('='));
        let pair = |text: &str, between| {
            let (first, second) = text.split_once(between)?;
            Some((first.parse().ok()?, second.parse().ok()?))
        };
        let mut parse = || {
            let mut next = || words.next().flatten();
            let (name, rule) = next()?;
            let rule = (name == "by").then(|| rule.to_owned())?;
            let of = match next()? {
                ("begin", epoch) => Of::FeedBegins(epoch.parse().ok()?),
                ("done", epoch) => Of::FeedEnds(epoch.parse().ok()?),
                ("session", session) => {
                    let mut value = |wanted| next().filter(|(name, _)| *name == wanted).map(|(_, value)| value);
                    let session = pair(session, ".")?;
                    let since = value("since")?.parse().ok()?;
                    let before = Before { since, lost: pair(value("lost")?, "..")? };
                    match words.next() {
                        Some(Some(("end", source))) => {
                            Of::End(session, before, u32::from_str_radix(source.strip_prefix("0x")?, 16).ok()?)
                        }
                        Some(_) => return None,
                        None => Of::Message(session, before),
                    }
                }
                _ => return None,
            };
            Some(Note { rule, of }).filter(|_| words.next().is_none())
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
        let before = Before { since: 17, lost: (20, u64::MAX) };
        let session = (u64::MAX, 3);
        let note = |of| Note { rule: "time:4096/8".into(), of };
        for of in [
            Of::Message(session, before),
            Of::End(session, before, 0xC0DA_0001),
            Of::FeedBegins(u64::MAX),
            Of::FeedEnds(7),
        ] {
            assert_eq!(note(of).to_string().parse(), Ok(note(of)));
        }
        let good = note(Of::Message(session, before)).to_string();
        let marks = ["by=counter/4 begin=", "by=counter/4 done=x", "by=counter/4 begin=1 done=1", "begin=1"];
        let cut = ["", "by=counter/4", &good[1..], &good[..good.len() - 25], &format!("{good} more=1")];
        for wrong in cut.into_iter().chain(marks) {
            assert_eq!(wrong.parse::<Note>(), Err(()), "{wrong}");
        }
    }
}

//! What was written to the partitions of a topic, and whether it is still there.
//!
//! Brokers number the messages of a partition, and never go back. So one that is delivered with a number that was there before is in
//! another topic of the same name, or brokers have lost the end of this one. And at the end a partition has all that was written
//! if it has the first and the last number of it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rdkafka::client::ClientContext;
use rdkafka::error::KafkaError;
use rdkafka::message::Message;
use rdkafka::producer::{DeliveryResult, ProducerContext};

use super::client::{during, insist, Error, PATIENCE};

#[derive(Debug, Default)]
struct State {
    /// Offsets of what was written to each partition.
    spans: BTreeMap<i32, Range<i64>>,
    /// How many messages that have a known number.
    numbered: BTreeMap<i32, u64>,
    /// Why the first message was not delivered of those that were not.
    refused: Option<KafkaError>,
    /// The partition whose numbers went back, and how.
    wrong: Option<(i32, String)>,
}

/// See the module. As the context of a producer it notes what is delivered.
#[derive(Debug, Default)]
pub struct Written(Mutex<State>);

impl Written {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A message was delivered.
    pub fn note(&self, partition: i32, offset: i64) {
        // The library does not know the number of one whose first answer did not come.
        if offset < 0 {
            return;
        }
        let mut state = self.lock();
        *state.numbered.entry(partition).or_default() += 1;
        let span = state.spans.entry(partition).or_insert(offset..offset);
        let end = span.end;
        span.end = end.max(offset + 1);
        if offset < end {
            let what = || (partition, format!("message {offset} was written behind message {}", end - 1));
            state.wrong.get_or_insert_with(what);
        }
    }

    /// A message was not delivered.
    fn refuse(&self, error: &KafkaError) {
        self.lock().refused.get_or_insert_with(|| error.clone());
    }

    /// Why a message was not delivered since the last call, if one was not.
    pub fn take_refusal(&self) -> Option<KafkaError> {
        self.lock().refused.take()
    }

    /// These messages belong to it, too, and what comes behind them: an earlier program has written them.
    pub fn begins_with(&self, partition: i32, offsets: Range<i64>) {
        self.lock().spans.insert(partition, offsets);
    }

    /// Offsets of what was written to a partition, from the first one on.
    pub fn span(&self, partition: i32) -> Option<Range<i64>> {
        self.lock().spans.get(&partition).cloned()
    }

    /// How many messages were delivered to a partition here whose numbers are known.
    pub fn numbered(&self, partition: i32) -> u64 {
        self.lock().numbered.get(&partition).copied().unwrap_or(0)
    }

    /// Whether the numbers of deliveries went back.
    ///
    /// # Errors
    /// They did.
    pub fn check(&self, topic: &str) -> Result<(), Error> {
        let wrong = self.lock().wrong.clone();
        wrong.map_or(Ok(()), |(partition, what)| Err(Error::Gone { topic: topic.to_owned(), partition, what }))
    }

    /// Whether all is there. `offsets`: asks for the first offset of a partition, and that behind its last.
    ///
    /// # Errors
    /// It is not, or the brokers do not tell.
    pub fn look(&self, topic: &str, offsets: impl Fn(i32) -> Result<(i64, i64), KafkaError>) -> Result<(), Error> {
        self.check(topic)?;
        let spans = self.lock().spans.clone();
        spans.into_iter().try_for_each(|(partition, span)| {
            let there = during("looking for what was written", offsets(partition))?;
            compare(topic, partition, &span, there)
        })
    }

    /// The same at the end, where it must be known: asks again while the end of a partition may still come, and while brokers are
    /// away and `go_on`.
    ///
    /// # Errors
    /// As [`Self::look`]. A topic that is not there for long, or too short for long, has lost it.
    pub fn look_at_end(
        &self,
        topic: &str,
        go_on: impl Fn() -> bool,
        offsets: impl Fn(i32) -> Result<(i64, i64), KafkaError>,
    ) -> Result<(), Error> {
        let may_pass = |error: &Error| match error {
            Error::Short { .. } => true,
            error => (error.is_passing() || error.is_absent()) && go_on(),
        };
        match insist(PATIENCE, may_pass, || self.look(topic, &offsets)) {
            Err(Error::Short { topic, partition, what }) => Err(Error::Gone { topic, partition, what }),
            Err(error) if error.is_absent() => {
                let what = "it does not exist".into();
                Err(Error::Gone { topic: topic.to_owned(), partition: 0, what })
            }
            result => result,
        }
    }
}

/// Whether a partition has these messages. `there`: the offset of its first one, and that behind its last.
///
/// # Errors
/// It has not.
pub fn compare(topic: &str, partition: i32, written: &Range<i64>, there: (i64, i64)) -> Result<(), Error> {
    let (low, high) = there;
    if low <= written.start && high >= written.end {
        return Ok(());
    }
    let has = if low < high { format!("it has messages {low} to {}", high - 1) } else { "it is empty".into() };
    let what = format!("{has}, and messages {} to {} were written", written.start, written.end - 1);
    let topic = topic.to_owned();
    Err(if low <= written.start {
        Error::Short { topic, partition, what }
    } else {
        Error::Gone { topic, partition, what }
    })
}

/// The context of a producer that notes what it delivers.
pub struct Noting(pub Arc<Written>);

impl ClientContext for Noting {}

impl ProducerContext for Noting {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        match result {
            Ok(message) => self.0.note(message.partition(), message.offset()),
            Err((error, _)) => self.0.refuse(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deliveries of two partitions, and what these have then.
    fn look(deliveries: &[(i32, i64)], there: [(i64, i64); 2]) -> Result<(), String> {
        let written = Written::default();
        deliveries.iter().for_each(|(partition, offset)| written.note(*partition, *offset));
        written.look("t", |partition| Ok(there[partition as usize])).map_err(|error| error.to_string())
    }

    #[test]
    fn what_was_written_is_there_from_its_first_to_its_last_message() {
        let deliveries = [(0, 7), (1, 3), (0, 8), (0, 11), (1, -1001), (1, 4)];
        for there in [[(0, 12), (0, 5)], [(7, 12), (3, 5)], [(0, 90), (2, 6)]] {
            assert_eq!(look(&deliveries, there), Ok(()), "{there:?}");
        }
        for (there, what) in [
            ([(8, 12), (0, 5)], "it has messages 8 to 11, and messages 7 to 11 were written"),
            ([(0, 11), (0, 5)], "it has messages 0 to 10, and messages 7 to 11 were written"),
            ([(0, 12), (0, 4)], "it has messages 0 to 3, and messages 3 to 4 were written"),
            ([(0, 12), (5, 5)], "it is empty, and messages 3 to 4 were written"),
        ] {
            let error = look(&deliveries, there).unwrap_err();
            assert!(error.contains(what), "{error}");
        }
    }

    #[test]
    fn numbers_do_not_go_back() {
        for deliveries in [[(0, 7), (0, 8), (0, 2)], [(0, 7), (0, 8), (0, 8)]] {
            let error = look(&deliveries, [(0, 100), (0, 0)]).unwrap_err();
            assert!(error.contains(&format!("message {} was written behind message 8", deliveries[2].1)), "{error}");
        }
        assert_eq!(look(&[(0, 0), (1, 0), (0, 1)], [(0, 2), (0, 1)]), Ok(()));
    }

    #[test]
    fn what_an_earlier_program_has_written_is_kept() {
        let written = Written::default();
        written.begins_with(0, 5..5);
        assert!(written.look("t", |_| Ok((5, 5))).is_ok() && written.look("t", |_| Ok((6, 9))).is_err());
        written.note(0, 9);
        assert!(written.look("t", |_| Ok((5, 10))).is_ok() && written.look("t", |_| Ok((5, 9))).is_err());
    }
}

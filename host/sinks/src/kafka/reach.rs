//! Whether the brokers of a topic answer. They are asked again and again: a client that has nothing to do hears nothing of
//! them, and one that writes waits for minutes before it calls that an error.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::metadata::MetadataPartition;

use super::client::{config, during, Error, STEP};
use crate::stall::AWAY;

/// From one question to the next.
const EVERY: Duration = Duration::from_secs(2);

struct Heard {
    last: Instant,
    /// Why there was no answer since.
    error: KafkaError,
}

/// See the module.
pub struct Reach {
    brokers: String,
    heard: Arc<Mutex<Heard>>,
    /// Ends the thread that asks when this is dropped.
    _asks: Sender<()>,
}

/// Asks once: a broker answers, and each partition of the topic has a leader.
fn ask(client: &BaseConsumer, topic: &str) -> Result<(), KafkaError> {
    // What else the client has to tell is of no interest, and takes memory.
    while client.poll(Duration::ZERO).is_some() {}
    let metadata = client.fetch_metadata(Some(topic), STEP)?;
    let has_leader = |partition: &MetadataPartition| partition.leader() >= 0;
    let mut topics = metadata.topics().iter();
    if topics.all(|topic| !topic.partitions().is_empty() && topic.partitions().iter().all(has_leader)) {
        Ok(())
    } else {
        Err(KafkaError::MetadataFetch(RDKafkaErrorCode::LeaderNotAvailable))
    }
}

impl Reach {
    /// Asks from now on.
    ///
    /// # Errors
    /// The client or its thread cannot be started.
    pub fn watch(brokers: &str, topic: &str) -> Result<Reach, Error> {
        // A consumer creates no topic by asking for it.
        let client: BaseConsumer = during("connecting", config(brokers).set("group.id", "fadelink-look").create())?;
        let error = KafkaError::Global(RDKafkaErrorCode::AllBrokersDown);
        let heard = Arc::new(Mutex::new(Heard { last: Instant::now(), error }));
        let (asks, ended) = mpsc::channel();
        let (topic, shared) = (topic.to_owned(), heard.clone());
        let watch = move || {
            while ended.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                let answer = ask(&client, &topic);
                let mut heard = shared.lock().unwrap_or_else(PoisonError::into_inner);
                match answer {
                    Ok(()) => heard.last = Instant::now(),
                    Err(error) => heard.error = error,
                }
            }
        };
        let thread = std::thread::Builder::new().name("brokers".into()).spawn(watch);
        thread.map_err(|error| Error::Delivery(error.to_string()))?;
        Ok(Reach { brokers: brokers.to_owned(), heard, _asks: asks })
    }

    /// No broker has answered for [`AWAY`].
    pub fn trouble(&self) -> Option<Error> {
        let heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let (brokers, error) = (self.brokers.clone(), heard.error.clone());
        (heard.last.elapsed() > AWAY).then(|| Error::Unreachable { brokers, why: error.to_string() })
    }
}

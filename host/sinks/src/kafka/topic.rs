//! Topics: whether they are there, and are as they are to be.

use std::time::{Duration, Instant};

use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, ResourceSpecifier, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use tokio::runtime::Runtime;

use super::client::{config, during, insist, patiently, Error, MESSAGE_BYTES, PATIENCE, RETRY};
use super::connect::connect;

/// Longest wait for a topic to be created: brokers that were away accept none until they have found each other.
const CREATION: Duration = Duration::from_secs(60);
/// Of one request for it. One that is not answered may have been lost; the next one finds the topic, or creates it.
const ATTEMPT: Duration = Duration::from_secs(5);
/// Topics that keep messages for less are told: runs may take as long.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Partitions of a topic, which is created with `partitions` and `settings` where it does not exist.
///
/// # Errors
/// The brokers cannot be reached, or refuse; the topic is compacted.
pub fn topic(brokers: &str, name: &str, partitions: usize, settings: (&str, &str)) -> Result<usize, Error> {
    connect(brokers)?;
    let admin: AdminClient<DefaultClientContext> = during("connecting", config(brokers).create())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let Ok(runtime) = runtime else { return Err(Error::Delivery("no runtime".into())) };
    let new = NewTopic::new(name, partitions as i32, TopicReplication::Fixed(-1))
        .set("max.message.bytes", MESSAGE_BYTES)
        .set(settings.0, settings.1);
    let options = AdminOptions::new().request_timeout(Some(ATTEMPT));
    let create = || {
        let made = runtime.block_on(admin.create_topics([&new], &options))?;
        match made.into_iter().next() {
            Some(Err((_, code))) if code != RDKafkaErrorCode::TopicAlreadyExists => Err(KafkaError::AdminOp(code)),
            _ => Ok(()),
        }
    };
    insist(CREATION, Error::is_passing, || during("creating a topic", create()))?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        let metadata = patiently("asking for a topic", || admin.inner().fetch_metadata(Some(name), PATIENCE))?;
        let found = metadata.topics().first().map_or(0, |topic| topic.partitions().len());
        // A new topic takes a moment to be known to all brokers.
        if found > 0 || Instant::now() >= deadline {
            look_at_settings(&admin, name, &runtime)?;
            return Ok(found);
        }
        std::thread::sleep(RETRY);
    }
}

/// Messages are the data itself: none replaces another, and one that is deleted soon is told before anything is written.
fn look_at_settings(admin: &AdminClient<DefaultClientContext>, name: &str, runtime: &Runtime) -> Result<(), Error> {
    let asked = [ResourceSpecifier::Topic(name)];
    let options = AdminOptions::new().request_timeout(Some(PATIENCE));
    let settings = patiently("asking for the settings of a topic", || {
        let described = runtime.block_on(admin.describe_configs(&asked, &options))?;
        described.into_iter().next().ok_or(KafkaError::Canceled)?.map_err(KafkaError::AdminOp)
    });
    let settings = match settings {
        Ok(settings) => settings,
        Err(error) => {
            // Who may not ask finds by the numbers of the messages what is missing.
            tracing::warn!("topic {name}: {error}; whether it is compacted, or deletes messages soon, is not known");
            return Ok(());
        }
    };
    let value = |setting: &str| settings.get(setting).and_then(|entry| entry.value.clone());
    let policy = value("cleanup.policy").unwrap_or_default();
    if policy.contains("compact") {
        return Err(Error::Compacted { topic: name.to_owned(), policy });
    }
    let limit = |setting| value(setting)?.parse::<u64>().ok();
    if let Some(what) = deletes_soon(limit("retention.ms"), limit("retention.bytes")) {
        tracing::warn!("topic {name}: {what}: messages may be deleted before they are read; `fadelink check` tells which words it has");
    }
    Ok(())
}

/// What a topic is set to, if that deletes messages within a day, or by their size. A limit that is negative is none.
fn deletes_soon(ms: Option<u64>, bytes: Option<u64>) -> Option<String> {
    let ms = ms.filter(|ms| u128::from(*ms) < DAY.as_millis()).map(|ms| format!("retention.ms={ms}"));
    let set: Vec<_> = ms.into_iter().chain(bytes.map(|bytes| format!("retention.bytes={bytes}"))).collect();
    (!set.is_empty()).then(|| set.join(" "))
}

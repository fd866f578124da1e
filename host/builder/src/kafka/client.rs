//! Requests to the brokers that feeders and builders share.

use std::time::{Duration, Instant};

use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};

/// Longest wait for the brokers.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);
/// Longest wait for the first of them.
pub(super) const CONNECT: Duration = Duration::from_secs(10);
/// Between two tries.
const RETRY: Duration = Duration::from_millis(50);
/// Largest message.
pub(super) const MESSAGE_BYTES: &str = "67108864";

/// Why Kafka could not be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The library's or a broker's.
    #[error("Kafka, {what}: {error}")]
    Kafka {
        /// What was tried.
        what: &'static str,
        /// What went wrong.
        error: KafkaError,
    },
    /// No broker answers.
    #[error("Kafka: no broker answers at {brokers} ({error}); check the address, and that the broker runs")]
    Unreachable {
        /// Their addresses.
        brokers: String,
        /// What went wrong.
        error: KafkaError,
    },
    /// The topics do not fit together.
    #[error("topic {topic} has {found} partitions: expected {expected}")]
    Partitions {
        /// Its name.
        topic: String,
        /// As it is.
        found: usize,
        /// As it should be.
        expected: usize,
    },
    /// Messages were put into partitions by another rule than they are to be joined by.
    #[error(
        "topic {topic}, partition {partition}, offset {offset}: the message was put there by {found}, expected \
         {expected}: feed and build need the same --join, --window-ns and number of partitions"
    )]
    Rule {
        /// Its name.
        topic: String,
        /// Of the message.
        partition: i32,
        /// Of the message.
        offset: i64,
        /// How it came to its partition.
        found: String,
        /// By which rule it should have.
        expected: String,
    },
    /// A message could not be delivered.
    #[error("Kafka, delivering a message: {0}")]
    Delivery(String),
}

pub(super) type Result<T> = std::result::Result<T, Error>;

pub(super) fn during<T>(what: &'static str, result: std::result::Result<T, KafkaError>) -> Result<T> {
    result.map_err(|error| Error::Kafka { what, error })
}

/// Errors that brokers and their clients get over by themselves.
pub(super) fn is_passing(code: RDKafkaErrorCode) -> bool {
    use RDKafkaErrorCode as Code;
    matches!(
        code,
        Code::UnknownMemberId
            | Code::IllegalGeneration
            | Code::RebalanceInProgress
            | Code::AllBrokersDown
            | Code::BrokerTransportFailure
            | Code::Resolve
            | Code::OperationTimedOut
            | Code::RequestTimedOut
            | Code::NotCoordinator
            | Code::CoordinatorNotAvailable
            | Code::CoordinatorLoadInProgress
            | Code::LeaderNotAvailable
            | Code::NotLeaderForPartition
            | Code::NetworkException
    )
}

/// Tries again what fails by an error that passes.
pub(super) fn patiently<T>(what: &'static str, action: impl Fn() -> std::result::Result<T, KafkaError>) -> Result<T> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match action() {
            Err(error) if error.rdkafka_error_code().is_some_and(is_passing) && Instant::now() < deadline => {
                std::thread::sleep(RETRY);
            }
            result => return during(what, result),
        }
    }
}

pub(super) fn config(brokers: &str) -> ClientConfig {
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", brokers)
        .set("message.max.bytes", MESSAGE_BYTES)
        // A broker that is back is to be found again at once.
        .set("reconnect.backoff.max.ms", "500")
        .set("socket.connection.setup.timeout.ms", "2000")
        .set("log_level", "4");
    config
}

/// Partitions of a topic, which is created with `partitions` where it does not exist.
pub(super) fn topic(brokers: &str, name: &str, partitions: usize) -> Result<usize> {
    let admin: AdminClient<DefaultClientContext> = during("connecting", config(brokers).create())?;
    admin
        .inner()
        .fetch_metadata(None, CONNECT)
        .map_err(|error| Error::Unreachable { brokers: brokers.to_owned(), error })?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let Ok(runtime) = runtime else { return Err(Error::Delivery("no runtime".into())) };
    let new = NewTopic::new(name, partitions as i32, TopicReplication::Fixed(-1))
        .set("max.message.bytes", MESSAGE_BYTES)
        // A partition's messages have one clock, the broker's: silence is judged by it.
        .set("message.timestamp.type", "LogAppendTime");
    let options = AdminOptions::new().operation_timeout(Some(PATIENCE));
    let made = during("creating a topic", runtime.block_on(admin.create_topics([&new], &options)))?;
    match made.into_iter().next() {
        Some(Err((_, code))) if code != RDKafkaErrorCode::TopicAlreadyExists => {
            return during("creating a topic", Err(KafkaError::AdminOp(code)))
        }
        _ => {}
    }
    let deadline = Instant::now() + PATIENCE;
    loop {
        let metadata = patiently("asking for a topic", || admin.inner().fetch_metadata(Some(name), PATIENCE))?;
        let found = metadata.topics().first().map_or(0, |topic| topic.partitions().len());
        // A new topic takes a moment to be known to all brokers.
        if found > 0 || Instant::now() >= deadline {
            return Ok(found);
        }
        std::thread::sleep(RETRY);
    }
}

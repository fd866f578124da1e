//! Requests to the brokers that all users of Kafka share.

use std::time::{Duration, Instant};

use rdkafka::config::ClientConfig;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};

use super::settings;

/// Longest wait for the brokers.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// Longest wait for the first of them.
pub const CONNECT: Duration = Duration::from_secs(10);
/// Between two tries.
pub(super) const RETRY: Duration = Duration::from_millis(50);
/// A broker gives a transaction up after so long; until then one that was left open by a killed program holds up those
/// who read the topic.
pub const TRANSACTION: Duration = Duration::from_secs(10);
/// Longest wait for one step of a transaction, so that its program gives up before the broker does.
pub const STEP: Duration = Duration::from_secs(3);
/// From one look at deliveries to the next.
pub const POLL: Duration = Duration::from_micros(200);
/// Largest message.
pub const MESSAGE_BYTES: &str = "67108864";

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
    #[error("Kafka: no broker answers at {brokers} ({why}); check the address, and that the broker runs")]
    Unreachable {
        /// Their addresses.
        brokers: String,
        /// What went wrong.
        why: String,
    },
    /// They do not take this client.
    #[error("Kafka: {brokers} and this client do not agree ({why}); look at security.protocol, sasl.* and ssl.* of the client (--kafka-config-file)")]
    Denied {
        /// Their addresses.
        brokers: String,
        /// What went wrong.
        why: String,
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
    /// A topic keeps of several messages of a source the last alone.
    #[error(
        "topic {topic} is compacted (cleanup.policy={policy}), which removes data: expected cleanup.policy=delete; choose another \
         topic"
    )]
    Compacted {
        /// Its name.
        topic: String,
        /// As it is.
        policy: String,
    },
    /// A topic does not have the words that it had.
    #[error(
        "topic {topic}: the words from byte {from} on are missing ({}): expected that they are kept (retention.ms, \
         retention.bytes)",
        begin.map_or("there are none".into(), |begin| format!("those that are there begin at byte {begin}"))
    )]
    Lost {
        /// Its name.
        topic: String,
        /// The first byte that is missing.
        from: u64,
        /// The first one that is there.
        begin: Option<u64>,
    },
    /// A partition ends before what was written to it. That of a transaction is told only when the transaction is over for all.
    #[error("topic {topic}, partition {partition}: {what}")]
    Short {
        /// Its name.
        topic: String,
        /// Of the topic.
        partition: i32,
        /// What shows it.
        what: String,
    },
    /// A topic does not have what was written to it.
    #[error(
        "topic {topic}, partition {partition}: {what}: another program has deleted messages of it, made it again or has a \
         transaction there that goes on, or its brokers have lost them"
    )]
    Gone {
        /// Its name.
        topic: String,
        /// Of the topic.
        partition: i32,
        /// What shows it.
        what: String,
    },
    /// A topic does not take what is written to it, and will not.
    #[error("topic {topic} does not take what is written to it: {error}; look at its settings (max.message.bytes), its partitions and who may write")]
    Refused {
        /// Its name.
        topic: String,
        /// What went wrong.
        error: KafkaError,
    },
    /// Another program has written into a topic of words.
    #[error(
        "topic {topic}: another program writes into it ({what}): expected messages of this one alone; choose a topic for each board"
    )]
    Foreign {
        /// Its name.
        topic: String,
        /// What shows it.
        what: String,
    },
    /// Another program has begun to write into a topic of words.
    #[error("another program writes into {place}, run {run}; end it, or choose another topic")]
    TakenOver {
        /// The topic and its brokers.
        place: String,
        /// What the other program writes.
        run: String,
    },
    /// A message could not be delivered.
    #[error("Kafka, delivering a message: {0}")]
    Delivery(String),
}

impl Error {
    /// True if the brokers may get over it by themselves.
    pub fn is_passing(&self) -> bool {
        match self {
            Error::Kafka { error, .. } => code_of(error).is_some_and(is_passing),
            Error::Unreachable { .. } => true,
            _ => false,
        }
    }

    /// True if a topic, or a partition of it, is not there.
    pub fn is_absent(&self) -> bool {
        let Error::Kafka { error, .. } = self else { return false };
        code_of(error).is_some_and(is_absent)
    }
}

/// Names what was tried in an error.
///
/// # Errors
/// That of `result`.
pub fn during<T>(what: &'static str, result: Result<T, KafkaError>) -> Result<T, Error> {
    result.map_err(|error| Error::Kafka { what, error })
}

/// The code of an error, of whatever request.
pub fn code_of(error: &KafkaError) -> Option<RDKafkaErrorCode> {
    match error {
        // The library leaves out that of an administrator's request.
        KafkaError::AdminOp(code) => Some(*code),
        error => error.rdkafka_error_code(),
    }
}

/// Errors that brokers and their clients get over by themselves.
pub fn is_passing(code: RDKafkaErrorCode) -> bool {
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
            | Code::NotController
            | Code::NotCoordinator
            | Code::CoordinatorNotAvailable
            | Code::CoordinatorLoadInProgress
            | Code::LeaderNotAvailable
            | Code::NotLeaderForPartition
            | Code::NetworkException
            // Brokers that come back hold no new topics until the controller has heard of them.
            | Code::InvalidReplicationFactor
    )
}

/// Errors that no other try gets over: the brokers do not take this data, or not from this client.
pub fn is_permanent(code: RDKafkaErrorCode) -> bool {
    use RDKafkaErrorCode as Code;
    matches!(
        code,
        Code::MessageSizeTooLarge
            | Code::InvalidMessageSize
            | Code::InvalidMessage
            | Code::InvalidRecord
            | Code::MessageBatchTooLarge
            | Code::UnknownPartition
            | Code::InvalidTopic
            | Code::InvalidRequiredAcks
            | Code::PolicyViolation
            | Code::TopicAuthorizationFailed
            | Code::GroupAuthorizationFailed
            | Code::ClusterAuthorizationFailed
            | Code::TransactionalIdAuthorizationFailed
    )
}

/// The topic, or a partition of it, is not there. Brokers that have just come back may say so, too.
pub fn is_absent(code: RDKafkaErrorCode) -> bool {
    use RDKafkaErrorCode as Code;
    matches!(code, Code::UnknownTopic | Code::UnknownPartition | Code::UnknownTopicOrPartition)
}

/// Tries again what fails by an error that passes.
///
/// # Errors
/// Another one, or one that does not pass in [`PATIENCE`].
pub fn patiently<T>(what: &'static str, action: impl Fn() -> Result<T, KafkaError>) -> Result<T, Error> {
    insist(PATIENCE, Error::is_passing, || during(what, action()))
}

/// Tries again for `patience` what fails by an error that may pass.
///
/// # Errors
/// The last one.
pub fn insist<T>(
    patience: Duration,
    may_pass: impl Fn(&Error) -> bool,
    action: impl Fn() -> Result<T, Error>,
) -> Result<T, Error> {
    let deadline = Instant::now() + patience;
    loop {
        match action() {
            Err(error) if Instant::now() < deadline && may_pass(&error) => std::thread::sleep(RETRY),
            result => return result,
        }
    }
}

/// What all clients have in common.
pub fn config(brokers: &str) -> ClientConfig {
    let mut config = ClientConfig::new();
    for (name, value) in settings::of_program() {
        config.set(name, value);
    }
    config
        .set("bootstrap.servers", brokers)
        .set("message.max.bytes", MESSAGE_BYTES)
        // A broker that is back is to be found again at once.
        .set("reconnect.backoff.max.ms", "500")
        .set("socket.connection.setup.timeout.ms", "2000")
        // A small request waits for no acknowledgement by TCP.
        .set("socket.nagle.disable", "true")
        .set("log_level", "4");
    config
}

/// Tries again, while `go_on`, what may be tried again.
///
/// # Errors
/// That of the last attempt.
pub fn until<T>(go_on: impl Fn() -> bool, action: impl Fn() -> Result<T, KafkaError>) -> Result<T, KafkaError> {
    loop {
        match action() {
            Err(KafkaError::Transaction(error)) if error.is_retriable() && go_on() => {}
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever was asked for: a topic, its settings, its place, a transaction's message.
    #[test]
    fn errors_that_pass_pass_for_each_request() {
        use RDKafkaErrorCode as Code;
        let requests =
            [KafkaError::AdminOp, KafkaError::MetadataFetch, KafkaError::OffsetFetch, KafkaError::MessageProduction];
        for (code, passes, absent) in [
            (Code::InvalidReplicationFactor, true, false),
            (Code::OperationTimedOut, true, false),
            (Code::NotController, true, false),
            (Code::UnknownTopicOrPartition, false, true),
            (Code::TopicAuthorizationFailed, false, false),
        ] {
            for request in requests {
                let error = Error::Kafka { what: "asking", error: request(code) };
                assert_eq!((error.is_passing(), error.is_absent()), (passes, absent), "{error:?}");
            }
        }
    }
}

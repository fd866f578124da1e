//! A producer that writes in transactions, and notes what it delivers.

use std::sync::Arc;
use std::time::Instant;

use rdkafka::error::KafkaError;
use rdkafka::producer::{BaseProducer, Producer};

use super::client::{config, during, until, Error, PATIENCE, POLL, STEP, TRANSACTION};
use super::written::{Noting, Written};

/// See the module.
pub type Writer = BaseProducer<Noting>;

/// A producer of transactions; older ones of the same name are shut out, and their open transaction is given up.
///
/// # Errors
/// The brokers cannot be reached, or refuse.
pub fn transactional(brokers: &str, name: &str, written: &Arc<Written>) -> Result<Writer, Error> {
    let mut writing = config(brokers);
    writing.set("transactional.id", name).set("transaction.timeout.ms", TRANSACTION.as_millis().to_string());
    let producer: Writer = during("connecting", writing.create_with_context(Noting(written.clone())))?;
    let deadline = Instant::now() + PATIENCE;
    during("beginning transactions", until(|| Instant::now() < deadline, || producer.init_transactions(STEP)))?;
    Ok(producer)
}

/// Waits until what was sent is delivered, or was refused, or `deadline` has come.
pub fn deliver(producer: &Writer, deadline: Instant) {
    // The client's own way looks for deliveries each 100 ms.
    while producer.in_flight_count() > 0 && Instant::now() < deadline {
        producer.poll(POLL);
    }
}

/// Commits a transaction before `deadline`.
///
/// # Errors
/// It was not committed, or its answer did not come.
pub fn commit(producer: &Writer, deadline: Instant) -> Result<(), KafkaError> {
    deliver(producer, deadline);
    until(|| Instant::now() < deadline, || producer.commit_transaction(STEP))
}

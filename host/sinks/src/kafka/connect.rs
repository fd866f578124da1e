//! The first contact with the brokers: whether they answer, and why they refuse this client.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::client::ClientContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::{BaseProducer, DeliveryResult, Producer, ProducerContext};

use super::client::{code_of, config, during, Error, CONNECT};

/// Longest wait for one answer.
const LOOK: Duration = Duration::from_millis(300);
/// How long another broker is waited for when one has refused.
const OTHERS: Duration = Duration::from_secs(1);

/// What was heard of connections that failed.
#[derive(Default)]
struct Heard(Mutex<Option<(bool, String)>>);

impl Heard {
    /// The last one: whether the broker has refused this client, and why.
    fn last(&self) -> Option<(bool, String)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ClientContext for Heard {
    fn error(&self, error: KafkaError, reason: &str) {
        let refusals = [RDKafkaErrorCode::Authentication, RDKafkaErrorCode::SSL];
        let is_refusal = code_of(&error).is_some_and(|code| refusals.contains(&code));
        let mut heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // That all brokers are away, which is told next, says less.
        if is_refusal || heard.as_ref().is_none_or(|(was_refusal, _)| !was_refusal) {
            *heard = Some((is_refusal, reason.to_owned()));
        }
    }
}

impl ProducerContext for Heard {
    type DeliveryOpaque = ();

    fn delivery(&self, _: &DeliveryResult<'_>, (): ()) {}
}

/// Waits until a broker answers.
///
/// # Errors
/// None does, or they refuse this client.
pub fn connect(brokers: &str) -> Result<(), Error> {
    let client: BaseProducer<Heard> = during("connecting", config(brokers).create_with_context(Heard::default()))?;
    let begin = Instant::now();
    let mut refused: Option<Instant> = None;
    loop {
        let Err(error) = client.client().fetch_metadata(None, LOOK) else { return Ok(()) };
        client.poll(Duration::ZERO);
        let brokers = brokers.to_owned();
        match client.context().last() {
            Some((true, why)) if refused.get_or_insert_with(Instant::now).elapsed() >= OTHERS => {
                return Err(Error::Denied { brokers, why });
            }
            Some((false, why)) if begin.elapsed() >= CONNECT => {
                return Err(Error::Unreachable { brokers, why });
            }
            None if begin.elapsed() >= CONNECT => {
                return Err(Error::Unreachable { brokers, why: error.to_string() });
            }
            _ => {}
        }
    }
}

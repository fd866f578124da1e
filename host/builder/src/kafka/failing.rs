//! Transactions that fail: when the next try is, and whether it helps.

use std::time::{Duration, Instant};

use fadelink_sinks::kafka::{code_of, is_absent, is_permanent, PATIENCE};
use rdkafka::error::KafkaError;

/// Shortest and longest pause between two tries of a transaction.
const PAUSES: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(5)];

/// Transactions that fail, one after the other.
#[derive(Debug)]
pub struct Failing {
    since: Instant,
    pause: Duration,
    /// When it is tried again.
    pub next: Instant,
}

impl Failing {
    /// One more, after those.
    pub fn again(before: Option<Failing>) -> Failing {
        let now = Instant::now();
        let [shortest, longest] = PAUSES;
        let (since, pause) = before.map_or((now, shortest), |before| (before.since, longest.min(2 * before.pause)));
        Failing { since, pause, next: now + pause }
    }

    /// True if no other try helps. Brokers that come back may not know a topic for a moment.
    pub fn is_for_good(&self, why: &KafkaError) -> bool {
        let is_lasting = |code| is_absent(code) && self.since.elapsed() >= PATIENCE;
        code_of(why).is_some_and(|code| is_permanent(code) || is_lasting(code))
    }
}

#[cfg(test)]
mod tests {
    use rdkafka::error::RDKafkaErrorCode as Code;

    use super::*;

    #[test]
    fn pauses_grow_and_some_errors_are_for_good() {
        let mut failing = Failing::again(None);
        let mut last = failing.pause;
        for _ in 0..20 {
            failing = Failing::again(Some(failing));
            assert!(failing.pause == 2 * last || failing.pause == PAUSES[1]);
            last = failing.pause;
        }
        assert_eq!(last, PAUSES[1]);
        let is_for_good = |failing: &Failing, code| failing.is_for_good(&KafkaError::MessageProduction(code));
        for (code, expected) in [
            (Code::MessageSizeTooLarge, true),
            (Code::UnknownPartition, true),
            (Code::TopicAuthorizationFailed, true),
            (Code::UnknownTopicOrPartition, false),
            (Code::BrokerTransportFailure, false),
            (Code::OperationTimedOut, false),
        ] {
            assert_eq!(is_for_good(&failing, code), expected, "{code:?}");
        }
        failing.since -= PATIENCE;
        assert!(is_for_good(&failing, Code::UnknownTopicOrPartition));
        assert!(!is_for_good(&failing, Code::OperationTimedOut));
    }
}

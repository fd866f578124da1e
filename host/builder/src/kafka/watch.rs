//! What a consumer of messages is told by its library.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::client::ClientContext;
use rdkafka::consumer::{BaseConsumer, ConsumerContext, Rebalance};
use rdkafka::statistics::Statistics;
use rdkafka::topic_partition_list::TopicPartitionList;

/// A broker that answers does so at least so often, and tells how it is.
pub const HEARTBEAT: Duration = Duration::from_millis(100);

/// See the module.
#[derive(Default)]
pub struct Watch {
    assigned: Mutex<Vec<Change>>,
    /// When the leaders of its partitions were last seen to answer.
    answered: Mutex<Option<Instant>>,
}

/// What happened to the partitions of a consumer.
pub enum Change {
    /// It was given these.
    Assigned(TopicPartitionList),
    /// It has none any more.
    Revoked,
}

impl Watch {
    /// Changes since the last call, in their order.
    pub fn changes(&self) -> Vec<Change> {
        std::mem::take(&mut *self.assigned.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The leaders of all its partitions answer.
    pub fn answers(&self) -> bool {
        let answered = *self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        answered.is_some_and(|last| last.elapsed() < 3 * HEARTBEAT)
    }

    fn note(&self, change: Change) {
        self.assigned.lock().unwrap_or_else(PoisonError::into_inner).push(change);
    }
}

impl ClientContext for Watch {
    fn stats(&self, statistics: Statistics) {
        // A fetch is answered at least every HEARTBEAT, if only with nothing. All leaders have to answer, as silence
        // in one partition is another's, too.
        let leads = |node| {
            let partitions = statistics.topics.values().flat_map(|topic| topic.partitions.values());
            partitions.into_iter().any(|partition| partition.leader == node && partition.fetch_state == "active")
        };
        let mut leaders = statistics.brokers.values().filter(|broker| leads(broker.nodeid)).peekable();
        let silence_max = 3 * HEARTBEAT.as_micros() as i64;
        if leaders.peek().is_some() && leaders.all(|broker| (0..silence_max).contains(&broker.rxidle)) {
            *self.answered.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        }
    }
}

impl ConsumerContext for Watch {
    fn pre_rebalance(&self, _: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        if let Rebalance::Revoke(_) = rebalance {
            self.note(Change::Revoked);
        }
    }

    fn post_rebalance(&self, _: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        if let Rebalance::Assign(list) = rebalance {
            self.note(Change::Assigned((*list).clone()));
        }
    }
}

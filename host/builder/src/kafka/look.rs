//! Looks at single messages of a topic.

use std::ops::Range;
use std::time::Instant;

use fadelink_sinks::kafka::{config, during, is_passing, Error as Failure, PATIENCE, STEP};
use rdkafka::consumer::{BaseConsumer, Consumer, DefaultConsumerContext};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{BorrowedMessage, Message, OwnedMessage};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

const WHAT: &str = "looking for messages";

/// See the module.
pub struct Look {
    consumer: BaseConsumer<DefaultConsumerContext>,
    topic: String,
}

impl Look {
    /// At this topic.
    ///
    /// # Errors
    /// The client cannot be made.
    pub fn at(brokers: &str, topic: &str) -> Result<Look, Failure> {
        let mut config = config(brokers);
        config.set("group.id", "fadelink-look").set("enable.auto.commit", "false").set("enable.partition.eof", "true");
        // What is deleted meanwhile is behind.
        config.set("auto.offset.reset", "earliest");
        Ok(Look { consumer: during("connecting", config.create())?, topic: topic.to_owned() })
    }

    /// Offsets of the first message of a partition, and behind its last.
    ///
    /// # Errors
    /// The brokers do not tell.
    pub fn offsets(&self, partition: i32) -> Result<(i64, i64), KafkaError> {
        self.consumer.fetch_watermarks(&self.topic, partition, STEP)
    }

    /// The first message of a partition at `offset` or behind; `None`: there is none.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn message(&self, partition: i32, offset: i64) -> Result<Option<OwnedMessage>, Failure> {
        let mut found = None;
        self.read(partition, offset, |message| {
            found = Some(message.detach());
            false
        })?;
        Ok(found)
    }

    /// How many messages of a partition within these offsets were committed.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn count(&self, partition: i32, offsets: &Range<i64>) -> Result<u64, Failure> {
        let mut count = 0;
        self.read(partition, offsets.start, |message| {
            let is_within = message.offset() < offsets.end;
            count += u64::from(is_within);
            is_within
        })?;
        Ok(count)
    }

    /// Gives the messages of a partition from `offset` on to `take`, until it gives false.
    fn read(
        &self,
        partition: i32,
        offset: i64,
        mut take: impl FnMut(&BorrowedMessage<'_>) -> bool,
    ) -> Result<(), Failure> {
        let mut place = TopicPartitionList::new();
        during(WHAT, place.add_partition_offset(&self.topic, partition, Offset::Offset(offset)))?;
        during(WHAT, self.consumer.assign(&place))?;
        let mut deadline = Instant::now() + PATIENCE;
        loop {
            match self.consumer.poll(PATIENCE) {
                Some(Ok(message)) => {
                    if !take(&message) {
                        return Ok(());
                    }
                    deadline = Instant::now() + PATIENCE;
                }
                Some(Err(KafkaError::PartitionEOF(_))) => return Ok(()),
                Some(Err(KafkaError::MessageConsumption(code))) if is_passing(code) && Instant::now() < deadline => {}
                Some(Err(error)) => return during(WHAT, Err(error)),
                None => {
                    return during(WHAT, Err(KafkaError::MessageConsumption(RDKafkaErrorCode::OperationTimedOut)));
                }
            }
        }
    }
}

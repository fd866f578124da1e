//! Records of a topic that are malformed.

use rdkafka::message::Message;

use super::super::error::Result;
use super::super::note::{Note, Of};
use super::super::rule::Rule;
use super::Partition;

impl Partition {
    /// Notes a malformed record, with the note that it has: its feed has sent something.
    pub(super) fn refuse(&mut self, record: &impl Message, note: Option<&Note>, why: &str, rule: Rule) -> Result<()> {
        let offset = record.offset();
        rule.check(record, None, note)?;
        self.look_for_gone(offset, note.is_some());
        if self.is_new(None, offset) {
            self.note_malformed(record, why);
            if let Some(Note { of: Of::Message((epoch, _), _), .. }) = note {
                self.look_for_begin(*epoch);
            }
        }
        Ok(())
    }

    /// The first one is told, all are counted.
    pub(super) fn note_malformed(&mut self, record: &impl Message, why: &str) {
        self.malformed += 1;
        if self.malformed == 1 {
            let (topic, partition, offset) = (record.topic(), record.partition(), record.offset());
            tracing::warn!("topic {topic}, partition {partition}: message {offset} is malformed: {why}");
        }
    }
}

//! Records of a topic that are no message.

use fadelink_wire::fadc::Message as Fadc;
use rdkafka::message::Message;

use super::super::error::Result;
use super::super::note::{Note, Of};
use super::super::rule::Rule;
use super::Partition;

/// The message that a record is, and nothing else; or why it is none.
///
/// What stands behind the end of a message, as where records were put together, would be lost with it.
pub(super) fn whole(data: &[u8]) -> std::result::Result<Fadc<'_>, String> {
    let parsed = Fadc::parse(data).map_err(|error| error.to_string())?;
    match data.len() - parsed.bytes().len() {
        0 => Ok(parsed),
        more => Err(format!("{more} bytes stand behind the end of its message")),
    }
}

impl Partition {
    /// Notes a record that is no message, with the note that it has: its feed has sent something.
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

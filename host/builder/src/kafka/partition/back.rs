//! Goes back to messages that were left, when there is room for them.

use fadelink_wire::fadc::Message as Fadc;

use super::{Partition, Session};

impl Partition {
    /// True if a message has to wait until windows have left.
    pub(super) fn must_wait(&self, message: &Fadc<'_>, key: Option<u64>, session: Session) -> bool {
        let source = message.header().source_id;
        if key.is_none_or(|key| self.joiner.has_room_for(source, key, self.max_open)) {
            return false;
        }
        let its = self.heard.get(&source).and_then(|its| its.iter().find(|heard| heard.session == session));
        let mut inspector = its.map_or_else(|| self.joiner.inspector(), |heard| heard.inspector.clone());
        let inspected = inspector.inspect(message.bytes().into());
        inspected.is_some_and(|message| self.joiner.is_full_for(&message, self.clock.now()))
    }

    /// Where to read again, now that there is room for what was left. Not for each window: all that comes behind is read again, too.
    pub fn goes_back(&self) -> Option<i64> {
        let stands = self.clock.is_at_end() && self.clock.now() - self.moved >= self.silence / 2;
        let span = if stands { self.max_open } else { self.max_open.div_ceil(2) };
        let may = |source, key| self.joiner.has_room_for(source, key, span);
        self.left.may_go_on(may).then(|| self.left.oldest()).flatten()
    }

    /// It is read again from there on.
    pub fn went_back(&mut self, from: i64) {
        self.left.go_on();
        self.again = Some(from..self.read);
        self.is_back = true;
        self.clock.on_message(None);
    }

    /// True if a message is read again. Notes if what was left before it is gone.
    pub(super) fn is_again(&mut self, offset: i64) -> bool {
        let Some(rest) = self.again.take() else { return false };
        if std::mem::take(&mut self.is_back) && offset > rest.start {
            self.note_gone((offset.min(rest.end) - rest.start) as u64);
        }
        // One before it is of another topic.
        let is_again = rest.contains(&offset);
        self.again = Some(offset + 1..rest.end).filter(|rest| is_again && !rest.is_empty());
        is_again
    }

    /// True if no earlier builder has taken a message.
    pub(super) fn is_new(&self, source: Option<u32>, offset: i64) -> bool {
        let left = source.and_then(|source| self.before.left.get(&source));
        offset >= self.before.read || left.is_some_and(|from| offset >= *from)
    }
}

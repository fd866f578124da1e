//! What a builder knows of the end: of its partitions, of its events, and of its group.

use std::collections::BTreeSet;
use std::ops::Range;
use std::time::{Duration, Instant};

use fadelink_sinks::kafka::{during, Error as Failure, STEP, TRANSACTION};
use rdkafka::consumer::Consumer;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList, TopicPartitionListElem};

use super::super::alone::Surplus;
use super::super::partition::Partition;
use super::super::place::Place;
use super::super::report::End;
use super::Builder;

/// Longest wait of a builder that was given nothing for the last reports of the others: so long they read, and may write.
const OTHERS: Duration = STEP.saturating_add(TRANSACTION);
/// How often they are looked for.
const LOOK: Duration = Duration::from_millis(100);

impl Builder {
    /// True if each partition was read up to where it ended when this was asked first. That no message comes does not prove it: the
    /// brokers, or this program, may be slow.
    pub(super) fn has_read_all(&mut self) -> bool {
        self.partitions.iter_mut().all(|(number, partition)| {
            if !partition.knows_its_end() {
                let Ok((oldest, end)) = self.consumer.fetch_watermarks(&self.plan.messages, *number, STEP) else {
                    return false;
                };
                // What nobody can read any more did not come, and is not the end.
                self.changed |= partition.begins_at(oldest);
                partition.ends_at(end);
            }
            partition.has_read_all()
        })
    }

    /// Looks at the end how much is known of it.
    pub(super) fn look_for_end(&mut self) -> End {
        let was_heard = self.report.messages > 0 || self.partitions.values().any(Partition::was_heard);
        let has_none = self.partitions.is_empty();
        let is_done_by_others = (has_none || !was_heard) && self.others_have_ended();
        let has_read_all = if has_none { is_done_by_others } else { self.has_read_all() };
        let unread = (!has_read_all).then(|| match has_none {
            true => "it has no partition, and nothing proves that its group has read all messages".to_owned(),
            false => "not all messages were read".to_owned(),
        });
        let open: BTreeSet<_> = self.partitions.values().flat_map(Partition::open).chain(unread).collect();
        let has_ended = open.is_empty();
        self.report.open = open.into_iter().collect();
        match (was_heard, has_ended) {
            (false, true) if is_done_by_others => End::ByOthers,
            (false, _) => End::NothingCame,
            (true, false) => End::Open,
            (true, true) => End::Told,
        }
    }

    /// Looks at the end whether the events are where they were written, and no others among them.
    pub(super) fn look_at_events(&mut self) {
        let topic = self.plan.events.clone();
        let unknown = |what: String| format!("whether topic {topic} has {what}");
        let looked = match self.output.look() {
            Ok(()) => {
                self.look_for_others().map_err(|error| unknown(format!("events of others is not known: {error}")))
            }
            Err(error @ Failure::Gone { .. }) => {
                self.report.changed.push(error.to_string());
                Ok(())
            }
            Err(error) => Err(unknown(format!("all events is not known: {error}"))),
        };
        if let Err(unknown) = looked {
            self.report.open.push(unknown);
            self.report.end = self.report.end.min(End::Open);
        }
    }

    /// Looks at places of a transaction where others may have written. What cannot be looked at now is found again.
    pub(super) fn look_at_suspects(&mut self) {
        for surplus in self.output.suspects() {
            // Somebody's transaction that is open keeps what is behind its begin from being read.
            if self.look_at(&surplus).is_ok_and(|is_known| is_known) {
                self.output.looked_at(&surplus);
            }
        }
    }

    /// The same in the end.
    fn look_for_others(&mut self) -> std::result::Result<(), String> {
        for surplus in self.output.suspects_at_end().map_err(|error| error.to_string())? {
            if !self.look_at(&surplus).map_err(|error| error.to_string())? {
                let Surplus { partition, offsets: Range { start, end }, own } = surplus;
                return Err(format!(
                    "partition {partition} has {own} events of its builders among messages {start} to {}, and others, and not all of them can \
                     be read: they are deleted, or behind a transaction that goes on",
                    end - 1
                ));
            }
        }
        Ok(())
    }

    /// Looks whether others have written events among these; false: that is not known, for not all of them can be read.
    fn look_at(&mut self, Surplus { partition, offsets, own }: &Surplus) -> std::result::Result<bool, Failure> {
        let (first, _) = during("looking for events of others", self.look_at_events.offsets(*partition))?;
        let found = self.look_at_events.count(*partition, offsets)?;
        if found <= *own {
            // The first of the numbers is that of a mark.
            return Ok(found == *own && first <= offsets.start + 1);
        }
        let (topic, last) = (&self.plan.events, offsets.end - 1);
        let what = format!("among messages {} to {last} are {} of others", offsets.start, found - own);
        let what = format!("topic {topic}, partition {partition}: {what}: expected those of its builders alone");
        tracing::warn!("{what}");
        if !self.report.changed.contains(&what) {
            self.report.changed.push(what);
        }
        // Should this builder be killed, the next one tells that something is wrong.
        if let Some(partition) = self.partitions.get_mut(partition) {
            partition.has_changed = true;
            self.changed = true;
        }
        Ok(true)
    }

    /// The places of the group in all partitions, and where these end; `None`: the brokers do not tell.
    fn group(&self) -> Option<Vec<Standing>> {
        let topic = &self.plan.messages;
        let mut all = TopicPartitionList::new();
        all.add_partition_range(topic, 0, self.rule.partitions as i32 - 1);
        let places = self.consumer.committed_offsets(all, STEP).ok()?;
        let standing = |element: TopicPartitionListElem<'_>| {
            let (_, end) = self.consumer.fetch_watermarks(topic, element.partition(), STEP).ok()?;
            let place = element.metadata().trim_end_matches('\0').parse::<Place>().ok();
            let at = if let Offset::Offset(at) = element.offset() { Some(at) } else { None };
            Some(Standing { place: place.zip(at), end })
        };
        places.elements().into_iter().map(standing).collect()
    }

    /// Notes how far the group is, before this builder is given anything.
    pub(super) fn note_group(&mut self) {
        self.begun = self.group().map(|all| all.iter().map(Standing::read).collect());
    }

    /// The same of those that end at the same time, as all builders of a service do: they have still to report what they have done.
    fn others_have_ended(&self) -> bool {
        let begin = Instant::now();
        while !self.group_has_ended() {
            if self.begun.is_none() || begin.elapsed() >= OTHERS {
                return false;
            }
            std::thread::sleep(LOOK);
        }
        true
    }

    /// True if the places of the group prove that it has ended, and that it has read something since this builder has begun: each
    /// partition was read to its end, its windows were given away, all feeds and sources in it have ended, and nothing is left to report.
    fn group_has_ended(&self) -> bool {
        let Some((begun, all)) = self.begun.as_ref().zip(self.group()) else { return false };
        let has_read = all.iter().zip(begun).any(|(standing, begun)| standing.read() > *begun);
        has_read && all.iter().any(Standing::has_given) && all.iter().all(Standing::has_ended)
    }
}

/// How far a group is in a partition.
struct Standing {
    /// The place, and the message where who goes on begins.
    place: Option<(Place, i64)>,
    end: i64,
}

impl Standing {
    /// The first message that was not read.
    fn read(&self) -> i64 {
        self.place.as_ref().map_or(0, |(place, at)| place.read.max(*at))
    }

    fn has_given(&self) -> bool {
        self.place.as_ref().is_some_and(|(place, _)| place.has_given())
    }

    fn has_ended(&self) -> bool {
        // Where no place is, nothing was ever written.
        self.place.as_ref().map_or(self.end == 0, |(place, at)| place.read.min(*at) >= self.end && place.has_ended())
    }
}

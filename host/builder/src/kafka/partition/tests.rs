//! A partition whose messages are made by hand, and builders that are restarted.

use fadelink_wire::fadc::{Header, FORMAT_VERSION};
use rdkafka::message::OwnedMessage;
use rdkafka::Timestamp;

use super::*;
use crate::key::Key;

const RULE: Rule = Rule { key: Key::Counter, partitions: 1 };
const FEED: u64 = 7;

/// The messages of the partition.
#[derive(Default)]
struct Topic {
    messages: Vec<OwnedMessage>,
}

impl Topic {
    fn add(&mut self, data: &[u8], of: Of) {
        let note = Note { rule: RULE.to_string(), of };
        let offset = self.messages.len() as i64;
        let time = Timestamp::CreateTime(1_700_000_000_000 + offset);
        let message = OwnedMessage::new(Some(data.into()), None, "t".into(), time, 0, offset, Some(note.headers()));
        self.messages.push(message);
    }

    /// Window `record` of a source over connection `number`, which has sent all since `since`.
    fn send(&mut self, source: u32, number: u64, record: u64, since: u64) {
        let header = Header::new(source, FORMAT_VERSION, record, (1, (record % 1000) as u32 * 1000), 0);
        self.add(&header.emit(), Of::Message((FEED, number), Before { since, lost: (0, 0) }));
    }

    fn end(&mut self, source: u32, number: u64, since: u64) {
        self.add(&[], Of::End((FEED, number), Before { since, lost: (0, 0) }, source));
    }
}

/// A builder, and what it has given away.
struct Builder {
    partition: Partition,
    policy: Policy,
    oldest: i64,
    given: Vec<(u64, Vec<u32>)>,
}

impl Builder {
    fn begin(before: Option<(Place, i64)>, oldest: i64, may_begin_later: bool) -> Builder {
        let policy = Policy { sources: vec![1, 2], ..Policy::default() };
        Builder::by(policy, before, oldest, may_begin_later)
    }

    fn by(policy: Policy, before: Option<(Place, i64)>, oldest: i64, may_begin_later: bool) -> Builder {
        let begin = Begin { before, oldest, may_begin_later, has_changed: false };
        Builder { partition: Partition::new(&policy, RULE, 0, begin), policy, oldest, given: Vec::new() }
    }

    /// The next one, in the place that this one has committed as text.
    fn restart(self) -> Builder {
        self.restart_by(false)
    }

    /// The same, which is told whether a group may begin later.
    fn restart_by(mut self, may_begin_later: bool) -> Builder {
        let (first, place) = self.place();
        Builder { given: self.given, ..Builder::by(self.policy, Some((place, first)), self.oldest, may_begin_later) }
    }

    fn place(&mut self) -> (i64, Place) {
        let (first, place) = self.partition.place(None, false);
        (first, place.to_string().parse().unwrap())
    }

    fn pop(&mut self) {
        while let Some(event) = self.partition.pop() {
            let sources = event.messages().map(|message| message.header().source_id).collect();
            self.given.push((event.record, sources));
        }
    }

    /// Reads messages from where it is up to `end`.
    fn read(&mut self, topic: &Topic, end: usize) {
        let from = self.partition.read.max(self.oldest) as usize;
        self.give(&topic.messages[from.min(end)..end]);
    }

    fn give(&mut self, messages: &[OwnedMessage]) {
        for message in messages {
            self.partition.take(message, RULE).unwrap();
            self.pop();
        }
    }

    /// All, and until everything is given away.
    fn finish(&mut self, topic: &Topic) {
        self.read(topic, topic.messages.len());
        self.wait();
    }

    /// Until nothing is waited for.
    fn wait(&mut self) {
        self.partition.on_end();
        for _ in 0..20 {
            self.partition.on_tick(Duration::from_millis(250));
            self.pop();
        }
    }

    fn counts(&self, source: u32) -> crate::counts::SourceCounts {
        self.partition.totals().joined.sources[&source].clone()
    }
}

/// Two crates, of which the first one counts anew in the middle; both end.
fn one_counts_anew() -> Topic {
    let mut topic = Topic::default();
    topic.add(&[], Of::FeedBegins(FEED));
    for record in 0..40 {
        match record {
            0..20 => topic.send(1, 0, record, record),
            20 => topic.send(1, 2, 0, 0),
            _ => topic.send(1, 2, record - 20, record - 20),
        }
        topic.send(2, 1, record, record);
    }
    topic.end(1, 2, 20);
    topic.end(2, 1, 40);
    topic.add(&[], Of::FeedEnds(FEED));
    topic
}

#[test]
fn builders_that_are_restarted_while_a_source_counts_anew_give_each_window_once() {
    let topic = one_counts_anew();
    let mut whole = Builder::begin(None, 0, false);
    whole.finish(&topic);
    assert_eq!((whole.given.len(), whole.counts(1).anew), (60, 1));
    assert_eq!(whole.partition.open(), Vec::<String>::new());
    whole.given.sort();
    for first in 0..=topic.messages.len() {
        for second in [first, (first + 7).min(topic.messages.len())] {
            let mut builder = Builder::begin(None, 0, false);
            for end in [first, second] {
                builder.read(&topic, end);
                builder = builder.restart();
            }
            builder.finish(&topic);
            builder.given.sort();
            assert_eq!(builder.given, whole.given, "restarted at {first} and {second}");
            assert_eq!(builder.partition.open(), Vec::<String>::new());
        }
    }
}

/// It would else begin a session, in which an older window shows that its source counts anew.
#[test]
fn a_late_message_of_a_session_that_was_known_before_stays_late() {
    let mut topic = Topic::default();
    for record in 0..10 {
        topic.send(1, 0, record, record);
        topic.send(2, 1, record, record);
    }
    let mut builder = Builder::begin(None, 0, false);
    builder.read(&topic, topic.messages.len());
    let mut builder = builder.restart();
    topic.send(1, 0, 4, 4);
    topic.send(1, 0, 10, 10);
    topic.send(2, 1, 10, 10);
    builder.read(&topic, topic.messages.len());
    assert_eq!(builder.given.last(), Some(&(10, vec![1, 2])));
    assert_eq!((builder.counts(1).late, builder.counts(1).anew, builder.given.len()), (1, 0, 11));
}

/// It was silent, and windows did not wait for it: what it sends over its next connection is late, and then it is there again.
#[test]
fn a_source_that_was_behind_before_goes_on() {
    let mut topic = Topic::default();
    (0..10).for_each(|record| topic.send(2, 1, record, record));
    (0..4).for_each(|record| topic.send(1, 0, record, record));
    let mut builder = Builder::begin(None, 0, false);
    builder.finish(&topic);
    let mut builder = builder.restart();
    (4..12).for_each(|record| topic.send(1, 2, record, 4));
    (10..12).for_each(|record| topic.send(2, 1, record, record));
    builder.finish(&topic);
    assert_eq!(builder.given[10..], [(10, vec![1, 2]), (11, vec![1, 2])]);
    assert_eq!((builder.counts(1).late, builder.counts(1).anew), (6, 0));
}

#[test]
fn a_message_that_is_not_behind_the_one_before_is_of_another_topic() {
    let topic = one_counts_anew();
    let mut builder = Builder::begin(None, 0, false);
    builder.read(&topic, 20);
    for offset in [19, 3] {
        let error = builder.partition.take(&topic.messages[offset], RULE).unwrap_err().to_string();
        assert!(
            error.contains(&format!("message {offset} came behind message 19: the topic was made again")),
            "{error}"
        );
        builder.partition.newest = Some(19);
    }
}

/// Also for the builders behind it. It may have been deleted where a group may begin later.
#[test]
fn what_a_feed_has_sent_whose_begin_has_not_come_proves_nothing() {
    let topic = one_counts_anew();
    let told = "the begin of feed 7 has not come";
    let read_from = |before, may_begin_later| {
        let mut builder = Builder::begin(before, 1, may_begin_later);
        builder.give(&topic.messages[1..]);
        builder.wait();
        builder
    };
    let builder = read_from(None, false);
    assert_eq!(builder.partition.open(), [told]);
    assert_eq!(builder.restart().partition.open(), [told]);
    // Its end is lost, too.
    let mut builder = Builder::begin(None, 1, false);
    builder.give(&topic.messages[1..topic.messages.len() - 1]);
    assert!(builder.partition.open().iter().any(|open| open == told));
    assert_eq!(read_from(None, true).partition.open(), Vec::<String>::new());
    let known = Place { feeds: [FEED].into(), epochs: vec![Standing::default()], read: 1, ..Place::default() };
    assert_eq!(read_from(Some((known, 1)), false).partition.open(), Vec::<String>::new());
}

/// The feed has delivered windows 3 to 5 of source 1, and they are not there. Wrong numbers tell nothing.
#[test]
fn windows_before_an_end_that_did_not_come_are_unknown() {
    for (last, since, unknown) in [(2, 3, 0), (2, 6, 3), (u64::MAX - 1, u64::MAX, 0)] {
        let mut topic = Topic::default();
        (0..3).for_each(|record| topic.send(2, 1, record, record));
        (0..2).chain([last]).for_each(|record| topic.send(1, 0, record, record.min(2)));
        topic.end(1, 0, since);
        topic.end(2, 1, 3);
        let mut builder = Builder::begin(None, 0, false);
        builder.finish(&topic);
        assert_eq!((builder.counts(1).unknown, builder.counts(2).unknown), (unknown, 0), "{last} {since}");
    }
}

/// All that one source has sent comes before all of the next one, and far fewer windows may be open: it is read again and again, each
/// message is taken once, no more is kept than may be, and a builder that ends meanwhile leaves the rest to the next one.
#[test]
fn a_source_that_is_far_ahead_in_a_partition_waits() {
    const WINDOWS: u64 = 300;
    const ROOM: u64 = 10;
    for (restarts, look) in [(0, 1), (0, 50), (1, 7), (7, 1), (40, 110)] {
        let mut topic = Topic::default();
        topic.add(&[], Of::FeedBegins(FEED));
        for source in [1, 2, 3] {
            for record in 0..WINDOWS {
                topic.send(source, source.into(), record, record);
            }
            topic.end(source, source.into(), WINDOWS);
        }
        topic.add(&[], Of::FeedEnds(FEED));
        let policy = Policy { sources: vec![1, 2, 3], max_open: ROOM, ..Policy::default() };
        let mut builder = Builder::by(policy, None, 0, false);
        let (mut at, mut reads, mut turns) = (0, 0u64, 0);
        while builder.given.len() < WINDOWS as usize {
            if let Some(from) =
                builder.partition.goes_back().filter(|_| reads % look == 0 || at == topic.messages.len())
            {
                builder.partition.went_back(from);
                at = from as usize;
            }
            match topic.messages.get(at) {
                Some(message) => builder.give(std::slice::from_ref(message)),
                None => {
                    builder.partition.on_end();
                    builder.partition.on_tick(Duration::from_millis(100));
                    builder.pop();
                }
            }
            at = (at + 1).min(topic.messages.len());
            reads += 1;
            let open = builder.partition.joiner.joined().of_all_sources().messages
                - builder.partition.joiner.settled().of_all_sources().messages;
            assert!(open <= 3 * ROOM, "{open} messages wait");
            assert!(reads < 200_000, "{restarts}: {:?}", builder.given.len());
            if turns < restarts && reads % 331 == 0 {
                turns += 1;
                let (first, _) = builder.place();
                builder = builder.restart();
                at = first as usize;
            }
        }
        builder.give(&topic.messages[at..]);
        builder.wait();
        assert_eq!(builder.given, (0..WINDOWS).map(|record| (record, vec![1, 2, 3])).collect::<Vec<_>>(), "{restarts}");
        assert_eq!((builder.partition.totals().wrong(), builder.partition.open()), (0, vec![]), "{restarts}");
        assert!(builder.partition.left.is_empty());
    }
}

/// The first source was ahead, and its next message was left; then the second one is, and waits for that message. No time passes.
#[test]
fn what_was_left_is_read_again_when_windows_wait_for_it() {
    let mut topic = Topic::default();
    topic.add(&[], Of::FeedBegins(FEED));
    for (source, records) in [(1, vec![0..10, 40..41]), (2, vec![0..10, 20..60])] {
        records.into_iter().flatten().for_each(|record| topic.send(source, source.into(), record, 0));
    }
    let policy = Policy { sources: vec![1, 2], max_open: 10, ..Policy::default() };
    let mut builder = Builder::by(policy, None, 0, false);
    let mut at = 0;
    loop {
        builder.give(&topic.messages[at..]);
        let Some(from) = builder.partition.goes_back() else { break };
        builder.partition.went_back(from);
        at = from as usize;
    }
    let both = |record| (record, vec![1, 2]);
    let expected: Vec<_> =
        (0..10).map(both).chain((20..40).map(|record| (record, vec![2]))).chain([both(40)]).collect();
    assert_eq!(builder.given, expected);
    assert_eq!(builder.partition.totals().wrong(), 0);
}

/// A group that may begin later leaves windows out only where messages were deleted before it has begun: those behind them that not all
/// sources can have. However often its builders begin before the first event, and whatever the later ones are told.
#[test]
fn builders_that_are_restarted_begin_where_their_group_has_begun() {
    let mut topic = Topic::default();
    topic.add(&[], Of::FeedBegins(FEED));
    (0..12).for_each(|record| topic.send(1, 0, record, record));
    for record in 12..20 {
        // Source 2 begins with window 8, and has nothing to send in window 10.
        [record - 4]
            .iter()
            .filter(|own| **own != 10)
            .for_each(|own| topic.send(2, 1, *own, if *own == 11 { 10 } else { *own }));
        topic.send(1, 0, record, record);
    }
    (16..20).for_each(|record| topic.send(2, 1, record, record));
    topic.end(1, 0, 20);
    topic.end(2, 1, 20);
    topic.add(&[], Of::FeedEnds(FEED));
    for (oldest, first_window, missing) in [(0, 0, 8), (1, 8, 0), (5, 8, 0), (13, 12, 0)] {
        let mut whole = Builder::begin(None, oldest, true);
        whole.finish(&topic);
        let records: Vec<_> = whole.given.iter().map(|(record, _)| *record).collect();
        assert_eq!(records, (first_window..20).collect::<Vec<_>>(), "{oldest}");
        assert_eq!((whole.counts(2).missing, whole.partition.open()), (missing, vec![]), "{oldest}");
        for first in 0..=topic.messages.len() {
            for (second, may_begin_later) in
                [(first, true), (first, false), ((first + 3).min(topic.messages.len()), true)]
            {
                let mut builder = Builder::begin(None, oldest, true);
                for end in [first, second] {
                    builder.read(&topic, end);
                    builder = builder.restart_by(may_begin_later);
                }
                builder.finish(&topic);
                assert_eq!(builder.given, whole.given, "of {oldest}, restarted at {first} and {second}");
                assert_eq!(
                    (builder.partition.open(), builder.partition.totals().gone),
                    (vec![], 0),
                    "{oldest} {first}"
                );
            }
        }
    }
}

/// Bytes behind the end of a message, as where two records were put together: none of it is taken, and the window misses it.
#[test]
fn what_stands_behind_a_message_makes_its_record_malformed() {
    let header = |record| Header::new(1, FORMAT_VERSION, record, (1, 0), 0).emit().to_vec();
    for behind in [header(2), vec![0; 800], vec![0; 8], vec![7]] {
        for is_noted in [true, false] {
            let mut topic = Topic::default();
            (0..4).for_each(|record| topic.send(2, 1, record, record));
            topic.send(1, 0, 0, 0);
            let data = [header(1), behind.clone()].concat();
            topic.add(&data, Of::Message((FEED, 0), Before { since: 1, lost: (0, 0) }));
            if !is_noted {
                let place = topic.messages.len() - 1;
                let time = topic.messages[place].timestamp();
                topic.messages[place] = OwnedMessage::new(Some(data), None, "t".into(), time, 0, place as i64, None);
            }
            (2..4).for_each(|record| topic.send(1, 0, record, record));
            let mut builder = Builder::begin(None, 0, false);
            builder.finish(&topic);
            let counts = builder.counts(1);
            assert_eq!(
                (builder.partition.totals().malformed, counts.messages, counts.missing),
                (1, 3, 1),
                "{is_noted}"
            );
            assert_eq!(builder.given[1], (1, vec![2]));
        }
    }
}

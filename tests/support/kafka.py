"""A feed and builders over a broker, the crates that send to them, and what must come out."""

import random
import signal
import subprocess
import time

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, OffsetSpec, ResourceType

from support import fadc_model as model
from support import offsets
from support.broker import free_ports
from support.crate import WINDOW_NS, Crate, hits_of, report
from support.netns import PATIENCE, wait_for
from support.paths import FADELINK, SEED

PARTITIONS = 4


class Setup:
    """Topics of their own, a feeder and builders."""

    def __init__(self, broker, name, environment=None):
        self.broker, self.environment, self.processes = broker, environment, []
        # How the programs get to it.
        self.kafka = ["--kafka", broker.address]
        # Answers come as long as it lives.
        self.client = AdminClient({"bootstrap.servers": broker.address})
        self.messages, self.events, self.group = f"{name}-messages", f"{name}-events", f"{name}-group"

    def start(self, *words):
        words = [FADELINK, *words, *self.kafka, "--messages", self.messages, "--partitions", PARTITIONS, "--json"]
        process = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env=self.environment)  # fmt: skip
        self.processes.append(process)
        return process

    def feed(self, *words, end="told"):
        """Its crates may close before they are asked to."""
        (self.port,) = free_ports(1)
        self.feeder = self.start("feed", "--tcp", self.port, "--listen", "127.0.0.1", "--end", end, *words)
        return self.feeder

    def begin_anew(self, keep_events=False):
        """Builders are of another group from now on, with a topic of events of its own."""
        self.group += "-next"
        self.events += "" if keep_events else "-next"

    def crate(self, source, address="127.0.0.1"):
        """A crate that has connected to the feed that was begun last."""
        return Crate(self.port, source, self.feeder, address)

    def build(self, name="builder", *words, silence=60):
        """A builder that waits for its crates, however slow the machine is."""
        return self.start("build", "--events-topic", self.events, "--group", self.group, "--name", name, "--window-ns", WINDOW_NS,
                          "--sources", "1,2,3", "--silence", silence, *words)  # fmt: skip

    def finish(self, process, stop=True):
        if stop:
            process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=PATIENCE)
        return report((process.returncode, out, err))

    def close(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.communicate()

    def ends(self):
        """{partition: offset behind its last message} of the messages."""
        newest = self.client.list_offsets({TopicPartition(self.messages, n): OffsetSpec.latest() for n in range(PARTITIONS)})
        try:
            return {partition.partition: found.result().offset for partition, found in newest.items()}
        except KafkaException as error:
            # A broker that stood still has begun anew as the leader; a client that knows it from before does not learn that here.
            if error.args[0].code() != KafkaError.FENCED_LEADER_EPOCH:
                raise
            self.client = AdminClient({"bootstrap.servers": self.broker.address})
            return self.ends()

    def delete(self, before):
        """Deletes the messages before an offset of each partition."""
        places = [TopicPartition(self.messages, n, offset) for n, offset in before.items()]
        for deleted in self.client.delete_records(places).values():
            deleted.result()

    def set(self, **settings):
        """Changes settings of the topic of messages."""
        entries = [ConfigEntry(name, str(value), incremental_operation=AlterConfigOpType.SET) for name, value in settings.items()]
        resource = ConfigResource(ResourceType.TOPIC, self.messages, incremental_configs=entries)
        for changed in self.client.incremental_alter_configs([resource]).values():
            changed.result()

    def places(self):
        """{partition: the first message of the group's open windows, or the next one}."""
        return {partition: place.offset for partition, place in self.committed().items()}

    def committed(self):
        """{partition: Place}, with what the builders have written there for the next one."""
        return offsets.committed(self.broker.address, self.group, self.messages, PARTITIONS)

    def commit(self, places):
        """Moves the group to other places."""
        consumer = Consumer({"bootstrap.servers": self.broker.address, "group.id": self.group})
        consumer.commit(offsets=list(places), asynchronous=False)
        consumer.close()

    def produce(self, data, partition, **options):
        """Puts a message into the topic that no feed has made."""
        producer = Producer({"bootstrap.servers": self.broker.address})
        producer.produce(self.messages, data, partition=partition, **options)
        producer.flush()

    def read_marks(self, kind):
        """The marks of feeds in the first partition, of one kind."""
        end = self.ends_of_topic().get(0, 0)
        consumer = Consumer({"bootstrap.servers": self.broker.address, "group.id": "test", "enable.auto.commit": False,
                             "auto.offset.reset": "earliest"})  # fmt: skip
        consumer.assign([TopicPartition(self.messages, 0, 0)])
        found = []
        while end and (message := consumer.poll(30)).offset() < end:
            note = dict(message.headers() or []).get("fadelink", b"").decode()
            found += [note] if f" {kind}=" in note else []
            if message.offset() == end - 1:
                break
        consumer.close()
        return found

    def ends_of_topic(self):
        """As `ends`; of a topic that does not exist yet, or has no leader yet, none."""
        try:
            return self.ends() if self.messages in self.client.list_topics(timeout=PATIENCE).topics else {}
        except KafkaException:
            return {}

    def first(self, partition):
        """Offset of the first message of a partition that is there."""
        consumer = Consumer({"bootstrap.servers": self.broker.address, "group.id": "test"})
        consumer.assign([TopicPartition(self.messages, partition, 0)])
        message = consumer.poll(30)
        consumer.close()
        return message.offset()

    def busy_builders(self):
        """How many builders have partitions; `None` while the brokers do not tell."""
        try:
            group = self.client.describe_consumer_groups([self.group])[self.group].result()
        except KafkaException as error:
            print("builders of the group:", error)
            return None
        return sum(bool(member.assignment.topic_partitions) for member in group.members)

    def read(self, topic, wanted, quiet=2):
        """What a consumer of committed data reads: at least `wanted` of it, and what comes in `quiet` seconds more."""
        return [(message.partition(), message.value()) for message in self.read_all(topic, wanted, quiet)]

    def read_all(self, topic, wanted, quiet=2):
        """The same as whole messages, with their headers."""
        consumer = Consumer({"bootstrap.servers": self.broker.address, "group.id": "test", "isolation.level": "read_committed",
                             "auto.offset.reset": "earliest", "enable.auto.commit": False})  # fmt: skip
        consumer.assign([TopicPartition(topic, n, 0) for n in range(PARTITIONS)])
        found, end = [], time.monotonic() + PATIENCE
        last = time.monotonic()
        while len(found) < wanted or time.monotonic() - last < quiet:
            assert time.monotonic() < end, f"{len(found)} of {wanted} came"
            message = consumer.poll(0.2)
            if message is None:
                continue
            if message.error():
                assert message.error().code() == KafkaError.UNKNOWN_TOPIC_OR_PART, message.error()
                time.sleep(0.2)
                continue
            # The end of a session has no data.
            if message.value():
                found.append(message)
            last = time.monotonic()
        consumer.close()
        return found


def send(setup, windows, sources=(1, 2, 3), step=20, pause=0.0):
    """All crates send all windows, at paces of their own."""
    r = random.Random(f"{SEED}")
    crates = {source: setup.crate(source) for source in sources}
    place = dict.fromkeys(sources, 0)
    while left := [source for source in sources if place[source] < windows]:
        source = r.choice(left)
        end = min(place[source] + r.randrange(1, step), windows)
        crates[source].send(*range(place[source], end))
        place[source] = end
        time.sleep(pause)
    for crate in crates.values():
        crate.close()


def check(events, windows, sources=(1, 2, 3)):
    """Each window exactly once, in its partition, in order, with all hits of all crates."""
    rows = {n: [] for n in range(PARTITIONS)}
    for partition, data in events:
        event, messages = model.read_event(data)
        assert event.record % PARTITIONS == partition
        rows[partition].append(event.record)
        assert [message.source for message in messages] == list(sources), event.record
        for message in messages:
            assert sorted(model.read_hits(message, WINDOW_NS // 4)[0]) == hits_of(message.source, message.record)
    assert rows == {n: list(range(n, windows, PARTITIONS)) for n in range(PARTITIONS)}


def delete(setup, topic):
    for deleted in setup.client.delete_topics([topic]).values():
        deleted.result()


def make(setup, topic, partitions=PARTITIONS):
    """Also where the broker still removes the one before."""

    def try_once():
        try:
            for made in setup.client.create_topics([NewTopic(topic, partitions, 1)]).values():
                made.result()
            return True
        except Exception as error:
            assert "already exists" in str(error) or "marked for deletion" in str(error), error
            return False

    wait_for(try_once)


def trim(setup, topic, partitions=PARTITIONS):
    """Deletes all messages that it has."""
    newest = setup.client.list_offsets({TopicPartition(topic, n): OffsetSpec.latest() for n in range(partitions)})
    places = [TopicPartition(topic, place.partition, found.result().offset) for place, found in newest.items()]
    for deleted in setup.client.delete_records(places).values():
        deleted.result()


def lose(setup, topic, how, partitions=PARTITIONS):
    if how == "trimmed":
        trim(setup, topic, partitions)
    else:
        delete(setup, topic)
        make(setup, topic, partitions)

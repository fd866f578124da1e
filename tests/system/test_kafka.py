"""FADC streaming through a real Kafka broker: builders share windows, and each window is an event exactly once."""

import random
import signal
import subprocess
import threading
import time

import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition
from support import fadc_model as model
from support.broker import Broker, free_ports
from support.crate import WINDOW_NS, Crate, hits_of, report
from support.paths import FADELINK, SEED

PARTITIONS = 4


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    broker = Broker(tmp_path_factory.mktemp("kafka"))
    yield broker
    broker.close()


class Setup:
    """Topics of their own, a feeder and builders."""

    def __init__(self, broker, name):
        self.broker, self.processes = broker, []
        self.messages, self.events, self.group = f"{name}-messages", f"{name}-events", f"{name}-group"

    def start(self, *words):
        words = [FADELINK, *words, "--kafka", self.broker.address, "--messages", self.messages, "--partitions", PARTITIONS, "--json"]
        process = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.processes.append(process)
        return process

    def feed(self, *words):
        (self.port,) = free_ports(1)
        return self.start("feed", "--tcp", self.port, "--listen", "127.0.0.1", *words)

    def build(self, name="builder"):
        """A builder that waits for its crates, however slow the machine is."""
        return self.start("build", "--events-topic", self.events, "--group", self.group, "--name", name, "--window-ns", WINDOW_NS,
                          "--sources", "1,2,3", "--silence", 60)  # fmt: skip

    def finish(self, process, stop=True, timeout=60):
        if stop:
            process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=timeout)
        return report((process.returncode, out, err))

    def close(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.communicate()

    def read(self, topic, wanted, timeout=60, quiet=2):
        """What a consumer of committed data reads: at least `wanted` of it, and what comes in `quiet` seconds more."""
        consumer = Consumer({"bootstrap.servers": self.broker.address, "group.id": "test", "isolation.level": "read_committed",
                             "auto.offset.reset": "earliest", "enable.auto.commit": False})  # fmt: skip
        consumer.assign([TopicPartition(topic, n, 0) for n in range(PARTITIONS)])
        found, end = [], time.monotonic() + timeout
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
            found.append((message.partition(), message.value()))
            last = time.monotonic()
        consumer.close()
        return found


@pytest.fixture
def setup(broker, request):
    setup = Setup(broker, request.node.name.replace("[", "-").replace("]", ""))
    yield setup
    setup.close()


def send(setup, windows, sources=(1, 2, 3), step=20, pause=0.0):
    """All crates send all windows, at paces of their own."""
    r = random.Random(f"{SEED}")
    crates = {source: Crate(setup.port, source) for source in sources}
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


def test_messages_to_events(setup):
    windows = 400
    feeder = setup.feed("--streams", 3)
    send(setup, windows)
    status, fed, err = setup.finish(feeder, stop=False)
    assert status == 0 and fed["messages"] == fed["delivered"] == 3 * windows, (fed, err)
    messages = setup.read(setup.messages, 3 * windows, quiet=0)
    assert all(model.read_messages(data)[0].record % PARTITIONS == partition for partition, data in messages)
    builder = setup.build()
    check(setup.read(setup.events, windows), windows)
    status, found, err = setup.finish(builder)
    assert status == 0, (found, err)
    assert found["events"] == windows and found["windows"]["complete"] == windows and found["messages"] == 3 * windows
    assert found["replayed"] == found["malformed"] == found["aborts"] == 0


def test_builder_is_killed_and_started_again(setup):
    """Killed at any moment, again and again: no window is lost and none is there twice."""
    windows = 900
    feeder = setup.feed("--streams", 3)
    r = random.Random(f"kill/{SEED}")
    killed = [setup.build()]

    def kill_and_start():
        killed[-1].kill()
        killed[-1].communicate()
        killed.append(setup.build())

    done = threading.Event()

    def killer():
        while not done.is_set():
            time.sleep(1.5 + 1.5 * r.random())
            if not done.is_set():
                kill_and_start()

    thread = threading.Thread(target=killer)
    thread.start()
    send(setup, windows, pause=0.05)
    done.set()
    thread.join()
    assert len(killed) >= 4
    assert setup.finish(feeder, stop=False)[0] == 0
    events = setup.read(setup.events, windows, timeout=90)
    check(events, windows)
    status, found, err = setup.finish(killed[-1])
    assert status in (0, 3), (found, err)


def test_builders_share_the_windows(setup):
    """Two builders of one group; one is killed in the middle, its windows are the other's."""
    windows = 700
    feeder = setup.feed("--streams", 3)
    builders = [setup.build("one"), setup.build("two")]

    sender = threading.Thread(target=send, args=(setup, windows), kwargs={"pause": 0.03})
    sender.start()
    time.sleep(4)
    builders[0].kill()
    builders[0].communicate()
    sender.join()
    assert setup.finish(feeder, stop=False)[0] == 0
    check(setup.read(setup.events, windows, timeout=90), windows)
    status, found, err = setup.finish(builders[1])
    assert 0 < found["events"] <= windows, (found, err)


def test_a_builder_that_is_asked_to_end_leaves_open_windows(setup):
    """What waits for a crate when the builder ends is still there for the next one."""
    feeder = setup.feed("--streams", 3)
    crates = {source: Crate(setup.port, source) for source in (1, 2, 3)}
    for source in (1, 2):
        crates[source].send(*range(40))
    crates[3].send(*range(20))
    builder = setup.build()
    setup.read(setup.events, 20, quiet=1)
    status, first, err = setup.finish(builder)
    assert first["events"] == 20, (first, err)
    crates[3].send(*range(20, 40))
    for crate in crates.values():
        crate.close()
    setup.finish(feeder, stop=False)
    builder = setup.build()
    check(setup.read(setup.events, 40), 40)
    status, second, err = setup.finish(builder)
    assert status == 0 and second["events"] == 20, (second, err)


def test_what_is_no_message_is_counted(setup):
    from confluent_kafka import Producer

    feeder = setup.feed("--streams", 3)
    send(setup, 4)
    setup.finish(feeder, stop=False)
    producer = Producer({"bootstrap.servers": setup.broker.address})
    producer.produce(setup.messages, b"no message", partition=0)
    producer.flush()
    builder = setup.build()
    check(setup.read(setup.events, 4), 4)
    status, found, err = setup.finish(builder)
    assert found["malformed"] == 1 and status == 3, (found, err)


def test_no_broker():
    (port,) = free_ports(1)
    words = [FADELINK, "feed", "--tcp", 1, "--kafka", f"127.0.0.1:{port}"]
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "fadelink: Kafka, " in done.stderr, done.stderr

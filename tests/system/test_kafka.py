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

    def build(self, name="builder", *words, silence=60):
        """A builder that waits for its crates, however slow the machine is."""
        return self.start("build", "--events-topic", self.events, "--group", self.group, "--name", name, "--window-ns", WINDOW_NS,
                          "--sources", "1,2,3", "--silence", silence, *words)  # fmt: skip

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
        return [(message.partition(), message.value()) for message in self.read_all(topic, wanted, timeout, quiet)]

    def read_all(self, topic, wanted, timeout=60, quiet=2):
        """The same as whole messages, with their headers."""
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
            found.append(message)
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


def test_windows_joined_by_time(setup):
    """Crates whose counters do not agree: a window's messages are in one partition, by the rule that they are joined by."""
    windows = 60
    rule = ("--join", "time", "--window-ns", WINDOW_NS)
    feeder = setup.feed("--streams", 3, *rule)
    for source in (1, 2, 3):
        crate = Crate(setup.port, source)
        for record in range(windows):
            data = bytearray(model.message(source, record, hits_of(source, record), WINDOW_NS))
            data[24:32] = (record + source * 7).to_bytes(8, "little")
            crate.send(raw=bytes(data))
        crate.close()
    status, fed, err = setup.finish(feeder, stop=False)
    assert status == 0 and fed["delivered"] == 3 * windows, (fed, err)
    builder = setup.build("builder", "--join", "time")
    events = setup.read(setup.events, windows)
    joined = [[message.source for message in model.read_event(data)[1]] for _, data in events]
    assert joined == [[1, 2, 3]] * windows
    status, found, err = setup.finish(builder)
    assert status == 0 and found["windows"]["complete"] == windows, (found, err)

    # The same messages by another rule: refused, by who reads and by who would add to them.
    for process in (setup.start("build", "--window-ns", WINDOW_NS, "--group", "another", "--duration", 30),
                    setup.start("build", "--window-ns", 2 * WINDOW_NS, "--join", "time", "--group", "third", "--duration", 30),
                    setup.feed("--duration", 30)):  # fmt: skip
        out, err = process.communicate(timeout=60)
        assert process.returncode == 1 and "was put there by the rule time:4096/4, expected " in err, (out, err)
    assert "expected counter/4" in err, err


def test_feeds_are_killed(setup):
    """What a killed feed had received and not delivered is missing in its windows, and in no other."""
    r = random.Random(f"feeds/{SEED}")
    place, ends, sent = 0, [], []
    for turn in range(4):
        feeder = setup.feed()
        crates = [Crate(setup.port, source) for source in (1, 2, 3)]
        for _ in range(20):
            for crate in crates:
                crate.send(*range(place, place + 5))
            place += 5
            time.sleep(0.01)
        if turn < 3:
            time.sleep(r.random())
            # From here on the kernel confirms to the crates what the feed will never read.
            feeder.send_signal(signal.SIGSTOP)
            for crate in crates:
                count = r.randrange(1, 40)
                crate.send(*range(place, place + count))
                sent += [(crate.source, window) for window in range(place, place + count)]
            feeder.kill()
            feeder.communicate()
            place += 40
            ends.append(place)
        for crate in crates:
            crate.close()
    status, fed, err = setup.finish(feeder)
    assert status == 0, (fed, err)
    there = {(m.source, m.record) for _, data in setup.read(setup.messages, 1, quiet=1) for m in model.read_messages(data)}
    lost = {(source, window) for source, window in sent if (source, window) not in there}
    assert lost and len(there) >= 200
    builder = setup.build()
    events = {}
    for message in setup.read_all(setup.events, len({window for _, window in there})):
        event, parts = model.read_event(message.value())
        headers = dict(message.headers())
        missing, late = (word.split("=")[1] for word in headers["fadelink"].decode().split())
        assert late == "0" and event.record not in events
        events[event.record] = {part.source for part in parts}, {int(source, 16) for source in missing.split(",") if source}
    assert set(events) == {window for _, window in there}
    for window, (parts, missing) in events.items():
        assert parts == {source for source in (1, 2, 3) if (source, window) in there}
        assert missing == {1, 2, 3} - parts, window
    status, found, err = setup.finish(builder)
    assert status == 3, (found, err)
    # Windows that no crate's message is left of have no event: they are counted.
    gone = {window for _, window in lost} - set(events)
    for source in ("0x00000001", "0x00000002", "0x00000003"):
        counts = found["sources"][source]
        assert counts["unknown"] >= len(gone) and counts["late"] == 0 and counts["sessions"] == 4, (counts, gone)


def test_broker_that_stands_still(setup):
    """A broker that answers nobody for 10 s costs time, and no data: sources are not silent because nobody could read."""
    windows = 900
    feeder = setup.feed("--streams", 3)
    builder = setup.build(silence=2)
    sender = threading.Thread(target=send, args=(setup, windows), kwargs={"pause": 0.05})
    sender.start()
    time.sleep(3)
    setup.broker.process.send_signal(signal.SIGSTOP)
    time.sleep(10)
    setup.broker.process.send_signal(signal.SIGCONT)
    sender.join()
    status, fed, err = setup.finish(feeder, stop=False)
    assert status == 0 and fed["delivered"] == 3 * windows, (fed, err)
    check(setup.read(setup.events, windows), windows)
    status, found, err = setup.finish(builder)
    assert status == 0, (found, err)
    assert found["windows"]["complete"] == found["events"] == windows
    assert all(source["messages"] == windows and source["absences"] == 0 for source in found["sources"].values()), found


def test_counts_are_of_what_was_committed(setup):
    """Builders come and go: together they report each window and each message once."""
    windows = 700
    feeder = setup.feed("--streams", 3)
    builders = [setup.build("one")]
    sender = threading.Thread(target=send, args=(setup, windows), kwargs={"pause": 0.05})
    sender.start()
    time.sleep(2)
    builders.append(setup.build("two"))
    sender.join()
    assert setup.finish(feeder, stop=False)[0] == 0
    check(setup.read(setup.events, windows), windows)
    reports = [setup.finish(builder) for builder in builders]
    assert [status for status, _, _ in reports] == [0, 0], reports
    founds = [found for _, found, _ in reports]
    assert all(found["events"] == found["windows"]["complete"] > 0 for found in founds)
    assert sum(found["events"] for found in founds) == windows
    for source in ("0x00000001", "0x00000002", "0x00000003"):
        assert sum(found["sources"][source]["messages"] for found in founds) == windows, founds


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

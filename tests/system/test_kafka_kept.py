"""What was written to a topic is there at the end: topics that are made again, trimmed or written by others while programs use them."""

import json
import signal
import socket
import struct
import subprocess
import time

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from support.broker import free_ports
from support.crate import reasons
from support.kafka import PARTITIONS, Setup, check, delete, lose, make, send, trim
from support.netns import PATIENCE, wait_for
from support.paths import FADELINK


@pytest.fixture
def setup(broker, request):
    setup = Setup(broker, request.node.name.replace("[", "-").replace("]", ""))
    yield setup
    setup.close()


def lose_half(setup, topic, count, how):
    """Three crates send twice 40 windows, of which a topic has `count` messages; between them it loses those that it has."""
    crates = [setup.crate(source) for source in (1, 2, 3)]
    for first in (0, 40):
        for crate in crates:
            crate.send(*range(first, first + 40))
        setup.read(topic, count, quiet=0)
        if first == 0:
            lose(setup, topic, how)
    for crate in crates:
        crate.close()


@pytest.mark.parametrize("how", ["again", "trimmed"])
def test_a_feed_looks_whether_its_messages_are_there(setup, how):
    """Half of them are not. It marks no end, and a builder that comes later does not call the other half all."""
    feeder = setup.feed()
    lose_half(setup, setup.messages, 120, how)
    status, found, err = setup.finish(feeder)
    assert status == 3 and "changed" in reasons(found) and f"topic {setup.messages}, partition " in str(found["reasons"]), (found, err)
    assert setup.read_marks("done") == []
    builder = setup.build()
    wait_for(lambda: setup.places() == setup.ends())
    status, found, err = setup.finish(builder)
    assert status == 3 and ("gone" in reasons(found) or "the begin of feed" in str(found["open"])), (found, err)


def test_a_feed_whose_topic_was_deleted_tells_both(setup):
    """What it could not deliver, and that what it had delivered is gone."""
    feeder = setup.feed()
    crates = [setup.crate(source) for source in (1, 2, 3)]
    for crate in crates:
        crate.send(*range(40))
    setup.read(setup.messages, 120, quiet=0)
    delete(setup, setup.messages)
    for crate in crates:
        crate.send(*range(40, 80))
        crate.close()
    status, found, err = setup.finish(feeder)
    assert status == 3 and "changed" in reasons(found) and f"topic {setup.messages}, partition " in str(found["reasons"]), (found, err)
    told = {reason["reason"]: reason for reason in found["reasons"]}
    assert "undelivered" not in told or told["undelivered"]["amount"] == found["messages"] - found["delivered"], found


def test_the_end_of_a_feed_without_its_begin_proves_nothing(setup):
    """The topic was made again before anything else came."""
    feeder = setup.feed("--streams", 3)
    wait_for(lambda: setup.read_marks("begin"))
    begin = setup.read_marks("begin")[0]
    send(setup, 40)
    assert setup.finish(feeder, stop=False)[0] == 0
    messages = setup.read_all(setup.messages, 120)
    delete(setup, setup.messages)
    make(setup, setup.messages)
    for message in messages:
        setup.produce(message.value(), message.partition(), key=message.key(), headers=message.headers())
    rule, epoch = begin.split(" begin=")
    for partition in range(PARTITIONS):
        for source in (1, 2, 3):
            end = f"{rule} session={epoch}.{source - 1} since=40 lost=0..0 end=0x{source:08x}"
            setup.produce(b"", partition, headers=[("fadelink", end.encode())])
        setup.produce(b"", partition, headers=[("fadelink", f"{rule} done={epoch}".encode())])
    builder = setup.build()
    check(setup.read(setup.events, 40), 40)
    wait_for(lambda: setup.places() == setup.ends())
    status, found, err = setup.finish(builder)
    told = f"the begin of feed {epoch} has not come"
    assert reasons(found) == ["end_not_confirmed"] and told in found["open"] and told in found["reasons"][0]["text"], (found, err)


def test_a_topic_that_another_one_has_replaced(setup):
    """It has as many messages as the group has read, and more: they are others. As after the loss of one of the broker's disks."""

    def fed(*windows):
        feeder = setup.feed()
        crates = [setup.crate(source) for source in (1, 2, 3)]
        for crate in crates:
            crate.send(*windows)
            crate.close()
        assert setup.finish(feeder)[0] == 0

    fed(*range(40))
    builder = setup.build()
    wait_for(lambda: setup.places() == setup.ends())
    assert setup.finish(builder)[0] == 0
    places = setup.committed()
    delete(setup, setup.messages)
    # The broker forgets the places of the group, too, and not at once.
    wait_for(lambda: not setup.places())
    make(setup, setup.messages)
    fed(*range(40, 120))
    setup.commit([TopicPartition(setup.messages, number, place.offset, metadata=place.metadata) for number, place in places.items()])
    builder = setup.build()
    out, err = builder.communicate(timeout=PATIENCE)
    assert builder.returncode == 3 and "is not the one that the group has read there: the topic was made again" in err, (out, err)
    # Another group reads all of the new one.
    setup.begin_anew()
    builder = setup.build()
    wait_for(lambda: setup.places() == setup.ends())
    status, found, err = setup.finish(builder)
    assert status == 0 and found["windows"]["complete"] == 80, (found, err)


@pytest.mark.parametrize("how", ["again", "trimmed"])
def test_a_builder_looks_whether_its_events_are_there(setup, how):
    feeder, builder = setup.feed(), setup.build()
    lose_half(setup, setup.events, 40, how)
    assert setup.finish(feeder)[0] == 0
    wait_for(lambda: setup.places() == setup.ends())
    status, found, err = setup.finish(builder)
    assert status == 3 and reasons(found) == ["changed"] and not found["kept"], (found, err)
    assert f"topic {setup.events}, partition " in found["reasons"][0]["text"]


def copy_event(setup, events, partition):
    """Somebody else writes one of the events again."""
    producer = Producer({"bootstrap.servers": setup.broker.address})
    copy = next(event for event in events if event.partition() == partition)
    producer.produce(setup.events, copy.value(), partition=partition, key=copy.key())
    producer.flush()


@pytest.mark.parametrize("when", ["between", "behind"])
def test_events_that_others_write_are_found(setup, when):
    """A copy of one event: the topic has its window twice, and the builder says so."""
    feeder, builder = setup.feed(), setup.build()
    crates = [setup.crate(source) for source in (1, 2, 3)]
    for first in (0, 40):
        for crate in crates:
            crate.send(*range(first, first + 40))
        events = setup.read_all(setup.events, first + 40, quiet=0)
        if (first == 0) == (when == "between"):
            copy_event(setup, events, 1)
    for crate in crates:
        crate.close()
    assert setup.finish(feeder)[0] == 0
    wait_for(lambda: setup.places() == setup.ends())
    status, found, err = setup.finish(builder)
    assert len(setup.read(setup.events, 81, quiet=0)) == 81
    assert status == 3 and reasons(found) == ["changed"] and not found["kept"], (found, err)
    (reason,) = found["reasons"]
    assert f"topic {setup.events}, partition 1: among messages " in reason["text"] and "are 1 of others" in reason["text"], found


@pytest.mark.parametrize("when", ["before", "between", "behind"])
def test_events_that_others_write_are_found_by_who_takes_the_partitions_over(setup, when):
    """Another builder comes, and has some of the partitions from then on."""
    feeder, builders = setup.feed(), [setup.build("a")]
    crates = [setup.crate(source) for source in (1, 2, 3)]
    for first, moment in ((0, "before"), (40, "between")):
        for crate in crates:
            crate.send(*range(first, first + 40))
        events = setup.read_all(setup.events, first + 40, quiet=0)
        if moment == when:
            for partition in range(PARTITIONS):
                copy_event(setup, events, partition)
    if when == "behind":
        for partition in range(PARTITIONS):
            copy_event(setup, events, partition)
    builders.append(setup.build("b"))
    wait_for(lambda: setup.busy_builders() == 2)
    for crate in crates:
        crate.close()
    assert setup.finish(feeder)[0] == 0
    wait_for(lambda: setup.places() == setup.ends())
    reports = [setup.finish(builder) for builder in builders]
    texts = [reason["text"] for _, found, _ in reports for reason in found["reasons"] if reason["reason"] == "changed"]
    for partition in range(PARTITIONS):
        assert any(f"partition {partition}: among messages " in text and "are 1 of others" in text for text in texts), reports
    assert all(status == 3 for status, *_ in reports), reports


def test_events_that_others_write_are_found_behind_a_builder_that_was_killed(setup):
    """Before each of its transactions, also of those before it was killed."""
    feeder, builder = setup.feed(), setup.build()
    crates = [setup.crate(source) for source in (1, 2, 3)]
    for step in range(4):
        for crate in crates:
            crate.send(*range(40 * step, 40 * step + 40))
        events = setup.read_all(setup.events, (40 + PARTITIONS) * step + 40, quiet=0)
        if step == 1:
            wait_for(lambda: setup.places() == setup.ends())
            builder.kill()
            builder.wait()
            builder = setup.build()
        for partition in range(PARTITIONS):
            copy_event(setup, events, partition)
    for crate in crates:
        crate.close()
    assert setup.finish(feeder)[0] == 0
    wait_for(lambda: setup.places() == setup.ends())
    status, found, err = setup.finish(builder)
    # What the one that was killed has found may be known as such alone.
    assert status == 3 and not found["kept"] and {"changed"} <= set(reasons(found)) <= {"changed", "unreported"}, (found, err)
    texts = [reason["text"] for reason in found["reasons"]]
    for partition in range(PARTITIONS):
        assert sum(text.count(f"partition {partition}: among messages ") for text in texts) >= 2, texts


@pytest.mark.parametrize("where", ["first", "last", "both"])
def test_events_that_others_write_are_found_in_a_topic_that_was_trimmed(setup, where):
    """By its retention, between two runs. The next run has nothing to say of what this one has found."""

    def run(first, before=()):
        feeder = setup.feed()
        crates = [setup.crate(source) for source in (1, 2, 3)]
        builder = setup.build()
        for step in (first, first + 20):
            for crate in crates:
                crate.send(*range(step, step + 20))
            wait_for(lambda: setup.places() == setup.ends())
            for partition in before if step == first else ():
                foreign(partition)
        for crate in crates:
            crate.close()
        assert setup.finish(feeder)[0] == 0
        wait_for(lambda: setup.places() == setup.ends())
        return setup.finish(builder)

    def foreign(partition):
        producer = Producer({"bootstrap.servers": setup.broker.address})
        producer.produce(setup.events, b"foreign", partition=partition)
        producer.flush()

    assert run(0)[0] == 0
    trim(setup, setup.events)
    if where != "last":
        foreign(0)
    status, found, err = run(40, (1,) if where != "first" else ())
    assert (status, set(reasons(found))) == (3, {"changed"}), (found, err)
    for partition, moment in enumerate(["first", "last"]):
        assert (f"partition {partition}: among messages " in str(found["reasons"])) == (where in (moment, "both")), (found, err)
    assert run(80)[0] == 0


@pytest.mark.parametrize("ends", ["aborted", "committed", "open"])
def test_a_transaction_of_others_that_goes_on_proves_nothing(setup, ends):
    """Nobody knows how it ends, and what is behind its begin cannot be read."""
    feeder, builder = setup.feed(), setup.build()
    crates = [setup.crate(source) for source in (1, 2, 3)]
    other = Producer({"bootstrap.servers": setup.broker.address, "transactional.id": setup.events})
    other.init_transactions()
    for first in (0, 40):
        for crate in crates:
            crate.send(*range(first, first + 40))
        wait_for(lambda: setup.places() == setup.ends())
        if first == 0:
            other.begin_transaction()
            other.produce(setup.events, b"foreign", partition=0)
            other.flush()
    if ends == "aborted":
        other.abort_transaction()
    if ends == "committed":
        other.commit_transaction()
    for crate in crates:
        crate.close()
    assert setup.finish(feeder)[0] == 0
    wait_for(lambda: setup.places() == setup.ends())
    status, found, err = setup.finish(builder)
    if ends == "open":
        other.abort_transaction()
    expected = {"aborted": (0, []), "committed": (3, ["changed"]), "open": (3, ["changed"])}
    assert (status, reasons(found)) == expected[ends], found["reasons"]


def test_builders_of_two_groups_that_write_to_one_topic_say_so(setup):
    """Both have begun when it was empty: each window is there twice."""
    builders = []
    for _ in range(2):
        setup.begin_anew(keep_events=True)
        builders.append(setup.build())
        wait_for(setup.busy_builders)
    feeder = setup.feed()
    crates = [setup.crate(source) for source in (1, 2, 3)]
    for first in (0, 40):
        for crate in crates:
            crate.send(*range(first, first + 40))
        setup.read(setup.events, 2 * (first + 40), quiet=0)
    for crate in crates:
        crate.close()
    assert setup.finish(feeder)[0] == 0
    wait_for(lambda: setup.places() == setup.ends())
    for builder in builders:
        status, found, err = setup.finish(builder)
        assert status == 3 and found["windows"]["complete"] == 80, (found, err)
        assert set(reasons(found)) == {"changed"} and "of others" in found["reasons"][0]["text"], (found, err)


class Words:
    """`fadelink receive` with a topic of words, and its board."""

    def __init__(self, setup, topic):
        (port,) = free_ports(1)
        self.topic = topic
        words = [FADELINK, "receive", "--tcp", port, "--streams", 1, "--sink", f"kafka:{setup.broker.address}/{topic}", "--json"]
        self.popen = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        setup.processes.append(self.popen)
        end = time.monotonic() + PATIENCE
        while True:
            try:
                self.socket = socket.create_connection(("127.0.0.1", port))
                break
            except OSError:
                assert time.monotonic() < end and self.popen.poll() is None
                time.sleep(0.05)
        self.consumer = Consumer({"bootstrap.servers": setup.broker.address, "group.id": "test", "isolation.level": "read_committed"})
        self.next = 0

    def send(self, words=20_000):
        """Sends words, and waits until they are in the topic; the last message."""
        self.socket.sendall(struct.pack(f"<{words}Q", *range(self.next, self.next + words)))
        self.next += words
        self.consumer.assign([TopicPartition(self.topic, 0, 0)])
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            message = self.consumer.poll(1)
            if message is not None and not message.error() and message.value():
                if int(dict(message.headers())["first_byte"]) + len(message.value()) == 8 * self.next:
                    return message
        raise AssertionError("the words did not come")

    def finish(self):
        self.popen.send_signal(signal.SIGTERM)
        self.socket.settimeout(PATIENCE)
        try:
            assert self.socket.recv(1) == b""
        except ConnectionResetError:
            pass  # it has ended by itself
        self.socket.close()
        self.consumer.close()
        out, err = self.popen.communicate(timeout=PATIENCE)
        (stream,) = json.loads(out)["streams"]
        return self.popen.returncode, stream, err


@pytest.mark.parametrize("how", ["nothing", "again", "trimmed", "at the end", "foreign", "foreign at the end"])
def test_words_are_there_at_the_end(setup, how):
    """From the first one on, and no others. Else nothing is called intact."""
    words = Words(setup, f"{setup.messages}-words".replace(" ", "-"))
    last = words.send()
    if how.startswith("foreign"):
        producer = Producer({"bootstrap.servers": setup.broker.address})
        producer.produce(words.topic, b"\xff" * 80, partition=0, headers=last.headers())
        producer.flush()
    elif how in ("again", "trimmed"):
        lose(setup, words.topic, how, 1)
    try:
        if how not in ("trimmed", "foreign at the end"):
            words.send()
    except OSError:
        pass  # it has found it, and has ended
    except AssertionError:
        assert how != "nothing"
    if how == "at the end":
        trim(setup, words.topic, 1)
    status, found, err = words.finish()
    (sink,) = found["sinks"]
    if how == "nothing":
        assert status == 0 and sink["intact"] == sink["written"] == 8 * words.next, (found, err)
    else:
        assert status == 3 and [reason["reason"] for reason in found["reasons"]][-1] == "sink_failed", (found, err)
        assert sink["intact"] == 0 and f"topic {words.topic}" in sink["error"], (sink, err)


@pytest.mark.parametrize("command", ["build", "feed"])
def test_a_connection_over_which_nothing_comes_is_no_stream(setup, command):
    """The port is scanned before a crate comes, and between two."""
    start = setup.feed if command == "feed" else lambda *words: start_build(setup, *words)
    process = start("--streams", 2, *(["--sources", "1,2", "--silence", 60] if command == "build" else []))
    scan = lambda: socket.create_connection(("127.0.0.1", setup.port)).close()  # noqa: E731
    crates = []
    for source in (1, 2):
        crates.append(setup.crate(source))
        for _ in range(2):
            scan()
        crates[-1].send(0)
        crates[-1].close()
        time.sleep(0.5)
    status, found, err = setup.finish(process, stop=False)
    assert status == 0 and found["complete"], (found, err)
    process = start("--streams", 1, *(["--expect", 1] if command == "build" else []))
    crate = setup.crate(1)
    crate.close()
    time.sleep(0.5)
    crate = setup.crate(1)
    crate.send(1)
    crate.close()
    status, found, err = setup.finish(process, stop=False)
    assert status == 0 and sum(connection["messages"] for connection in found["connections"]) == 1, (found, err)


def start_build(setup, *words):
    """A builder for crates that connect to it."""
    (setup.port,) = free_ports(1)
    words = [FADELINK, "build", "--tcp", setup.port, "--listen", "127.0.0.1", "--window-ns", 4096, "--end", "told", "--json", *words]
    setup.feeder = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    setup.processes.append(setup.feeder)
    return setup.feeder

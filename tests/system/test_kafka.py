"""FADC streaming through a real Kafka broker: builders share windows, and each window is an event exactly once."""

import subprocess
import threading

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from support import fadc_model as model
from support.broker import free_ports
from support.crate import WINDOW_NS, Crate, hits_of
from support.kafka import PARTITIONS, Setup, check, send
from support.netns import PATIENCE, wait_for
from support.paths import FADELINK


@pytest.fixture
def setup(broker, request):
    setup = Setup(broker, request.node.name.replace("[", "-").replace("]", ""))
    yield setup
    setup.close()


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
        out, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 1 and "was put there by the rule time:4096/4, expected " in err, (out, err)
    assert "expected counter/4" in err, err


def test_counts_are_of_what_was_committed(setup):
    """Builders come and go: together they report each window and each message once."""
    windows = 700
    feeder = setup.feed("--streams", 3)
    builders = [setup.build("one")]
    sender = threading.Thread(target=send, args=(setup, windows), kwargs={"pause": 0.05})
    sender.start()
    # The second builder joins the first one's work.
    setup.read(setup.events, 1, quiet=0)
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
    wait_for(lambda: setup.busy_builders() == 2)
    setup.read(setup.events, 50, quiet=0)
    builders[0].kill()
    builders[0].communicate()
    sender.join()
    assert setup.finish(feeder, stop=False)[0] == 0
    check(setup.read(setup.events, windows), windows)
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


@pytest.mark.parametrize("when", ["before", "away"])
def test_messages_that_were_deleted_are_missed(setup, when):
    """The topic keeps messages for a time. What a builder could not read is not complete without it."""
    feeder = setup.feed()
    crates = [Crate(setup.port, source) for source in (1, 2, 3)]
    for crate in crates:
        crate.send(*range(40))
    setup.read(setup.messages, 120)
    if when != "before":
        builder = setup.build()
        setup.read(setup.events, 40)
        assert setup.finish(builder)[0] == 0
        for crate in crates:
            crate.send(*range(40, 80))
        setup.read(setup.messages, 240)
    client = AdminClient({"bootstrap.servers": setup.broker.address})
    newest = client.list_offsets({TopicPartition(setup.messages, n): OffsetSpec.latest() for n in range(PARTITIONS)})
    ends = {partition.partition: found.result().offset for partition, found in newest.items()}
    # All but the last three of each.
    for deleted in client.delete_records([TopicPartition(setup.messages, n, end - 3) for n, end in ends.items()]).values():
        deleted.result()
    builder = setup.build()
    for crate in crates:
        crate.send(*range(80, 100))
    setup.read(setup.events, 20 if when == "before" else 60)
    status, found, err = setup.finish(builder)
    assert status == 3 and found["gone"] == sum(ends.values()) - 3 * PARTITIONS - (0 if when == "before" else 120), (found, err)
    setup.finish(feeder)
    for crate in crates:
        crate.close()


def test_no_broker():
    (port,) = free_ports(1)
    words = [FADELINK, "feed", "--tcp", 1, "--kafka", f"127.0.0.1:{port}"]
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 1 and "fadelink: Kafka: no broker answers" in done.stderr, done.stderr

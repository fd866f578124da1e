"""FADC streaming through a real Kafka broker: builders share windows, and each window is an event exactly once."""

import contextlib
import re
import signal
import subprocess
import threading
import urllib.request

import pytest
from confluent_kafka import TopicPartition
from support import fadc_model as model
from support.broker import free_ports
from support.crate import WINDOW_NS, hits_of, reasons
from support.kafka import PARTITIONS, Setup, check, send
from support.netns import PATIENCE, wait_for
from support.paths import FADELINK


def metrics(port):
    """What a program shows; nothing before it listens."""
    with contextlib.suppress(OSError):
        return urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE).read().decode()
    return ""


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
        crate = setup.crate(source)
        for record in range(windows):
            data = bytearray(model.message(source, record, hits_of(source, record), WINDOW_NS))
            data[24:32] = (record + source * 7).to_bytes(8, "little")
            crate.send(raw=bytes(data))
        crate.close()
    status, fed, err = setup.finish(feeder, stop=False)
    assert status == 0 and fed["delivered"] == 3 * windows, (fed, err)
    builder = setup.build("builder", "--join", "time")
    events = setup.read_all(setup.events, windows)
    read = [model.read_event(event.value()) for event in events]
    assert [[message.source for message in messages] for _, messages in read] == [[1, 2, 3]] * windows
    # Its number is that of the window, by time, whatever its crates count.
    numbers = [(event.sec * 10**9 + event.nsec) // WINDOW_NS for event, _ in read]
    assert [event.record for event, _ in read] == numbers == [int.from_bytes(event.key(), "big") for event in events]
    assert sorted(numbers) == list(range(min(numbers), min(numbers) + windows))
    status, found, err = setup.finish(builder)
    assert status == 0 and found["windows"]["complete"] == windows, (found, err)

    # The same messages by another rule: refused, by who reads and by who would add to them.
    for process in (setup.start("build", "--window-ns", WINDOW_NS, "--expect", 3, "--group", "another", "--duration", 30),
                    setup.start("build", "--window-ns", 2 * WINDOW_NS, "--join", "time", "--expect", 3, "--group", "third", "--duration", 30),
                    setup.feed("--duration", 30)):  # fmt: skip
        out, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == (1 if process is setup.feeder else 3) and "was put there by the rule time:4096/4, expected " in err, (out, err)
    assert "expected counter/4" in err, err


def test_two_feeds_with_crates_of_one_number(setup):
    """By turns, each with windows of its own: all of them are there, and nobody knows whose they are."""
    feeds, crates = [], []
    for _ in range(2):
        feeds.append(setup.feed())
        crates.append(setup.crate(1))
    builder = setup.start("build", "--events-topic", setup.events, "--group", setup.group, "--window-ns", WINDOW_NS, "--sources", 1)
    for turn in range(4):
        crates[turn % 2].send(*range(8 * turn, 8 * turn + 8))
        setup.read(setup.events, 8 * turn + 8)
    for crate, feed in zip(crates, feeds):
        crate.close()
        assert setup.finish(feed)[0] == 0
    status, found, err = setup.finish(builder)
    assert found["windows"]["complete"] == 32 and reasons(found) == ["two_senders"], (found, err)


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
    # The last one is given the partitions of the other at its end, and may not have read that nothing more is in them.
    assert all(status == 0 or reasons(found) == ["end_not_confirmed"] for status, found, _ in reports), reports
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
    crates = {source: setup.crate(source) for source in (1, 2, 3)}
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
    feeder = setup.feed("--streams", 3)
    send(setup, 4)
    setup.finish(feeder, stop=False)
    setup.produce(b"no message", partition=0)
    builder = setup.build()
    check(setup.read(setup.events, 4), 4)
    status, found, err = setup.finish(builder)
    assert found["malformed"] == 1 and reasons(found) == ["malformed"], (found, err)


@pytest.mark.parametrize("when", ["before", "away"])
def test_messages_that_were_deleted_are_missed(setup, when):
    """The topic keeps messages for a time. What a builder could not read is not complete without it."""
    feeder = setup.feed()
    crates = [setup.crate(source) for source in (1, 2, 3)]
    for crate in crates:
        crate.send(*range(40))
    setup.read(setup.messages, 120)
    if when != "before":
        builder = setup.build()
        setup.read(setup.events, 40)
        status, found, err = setup.finish(builder)
        # The crates are still connected.
        assert status == 3 and reasons(found) == ["end_not_confirmed"], (found, err)
        for crate in crates:
            crate.send(*range(40, 80))
        setup.read(setup.messages, 240)
    ends = setup.ends()
    setup.delete({n: end - 3 for n, end in ends.items()})
    builder = setup.build()
    for crate in crates:
        crate.send(*range(80, 100))
    setup.read(setup.events, 20 if when == "before" else 60)
    status, found, err = setup.finish(builder)
    assert status == 3 and found["gone"] == sum(ends.values()) - 3 * PARTITIONS - (0 if when == "before" else 120 + PARTITIONS), (found, err)
    assert "gone" in reasons(found) and f"{found['gone']} messages were deleted" in str(found["reasons"])
    setup.finish(feeder)
    for crate in crates:
        crate.close()


def fed(setup, windows):
    """A topic with all windows of crates that have ended."""
    feeder = setup.feed("--streams", 3)
    send(setup, windows)
    status, found, err = setup.finish(feeder, stop=False)
    assert status == 0 and found["delivered"] == 3 * windows, (found, err)


@pytest.mark.parametrize("left", [0, 200])
def test_a_topic_that_does_not_begin_with_its_first_message(setup, left):
    """Also where nothing is left that could show it. Who takes what is left says so."""
    fed(setup, 400)
    ends = setup.ends()
    setup.delete({n: end - left for n, end in ends.items()})
    builder = setup.build()
    wait_for(lambda: setup.places() == ends)
    status, found, err = setup.finish(builder)
    assert status == 3 and found["verdict"] == "incomplete" and "gone" in reasons(found), (found, err)
    assert found["gone"] == sum(ends.values()) - left * PARTITIONS
    # It is told once.
    builder = setup.build()
    wait_for(setup.busy_builders)
    status, found, err = setup.finish(builder)
    assert status == 3 and found["gone"] == 0, (found, err)

    setup.begin_anew()
    builder = setup.build("builder", "--from-oldest")
    wait_for(lambda: setup.busy_builders() and (not left or setup.places() == ends))
    status, found, err = setup.finish(builder)
    assert found["gone"] == found["windows"]["incomplete"] == 0, (found, err)
    if left:
        assert status == 0 and 0 < found["windows"]["complete"] < left * PARTITIONS // 3, (found, err)
    else:
        assert status == 3 and reasons(found) == ["no_end"], (found, err)


def test_a_compacted_topic_is_refused(setup):
    """It keeps the newest message of each source alone. What is gone from one that was compacted for a while is counted."""
    fed(setup, 400)
    ends = setup.ends()
    setup.set(**{"cleanup.policy": "compact", "segment.ms": 100, "min.cleanable.dirty.ratio": 0, "min.compaction.lag.ms": 0})
    for command in (setup.start("feed", "--tcp", setup.port, "--duration", 30), setup.build()):
        out, err = command.communicate(timeout=PATIENCE)
        assert command.returncode == 1 and f"topic {setup.messages} is compacted (cleanup.policy=compact)" in err, (out, err)
    # Of each crate its end is left, and of the feed its end. A newer segment is begun, and the older one is compacted then.
    setup.produce(b"no message", partition=0, key=b"other")
    wait_for(lambda: setup.first(0) > 0, 120)
    setup.set(**{"cleanup.policy": "delete"})
    builder = setup.build("builder", "--duration", 20, "--events", 400)
    status, found, err = setup.finish(builder, stop=False)
    assert status == 3 and "gone" in reasons(found) and found["gone"] >= ends[0] - 4, (found, err)


def test_a_topic_that_has_lost_what_was_read(setup):
    """The group's place is behind its end: what begins anew there would be treated as what was given away before."""
    fed(setup, 40)
    setup.commit({n: TopicPartition(setup.messages, n, 1000, metadata="next=300 read=1000") for n in range(PARTITIONS)}.values())
    builder = setup.build()
    out, err = builder.communicate(timeout=PATIENCE)
    assert builder.returncode == 3 and "and the group has read up to 1000: the topic was made again, or its brokers have lost" in err, (out, err)


@pytest.mark.parametrize("options", [[], ["--end", "silence"]])
def test_an_end_that_no_feed_has_told_is_not_confirmed(setup, options):
    """A feed that was killed has perhaps not delivered all that TCP had confirmed to the crates."""
    feeder = setup.feed()
    crates = [setup.crate(source) for source in (1, 2, 3)]
    for crate in crates:
        crate.send(*range(40))
    setup.read(setup.messages, 120, quiet=0)
    feeder.kill()
    feeder.communicate()
    builder = setup.build("builder", *options)
    check(setup.read(setup.events, 40), 40)
    status, found, err = setup.finish(builder)
    assert found["windows"]["complete"] == 40 and reasons(found) == ([] if options else ["end_not_confirmed"]), (found, err)
    for crate in crates:
        crate.close()


def test_what_a_builder_has_not_read_is_not_its_end(setup):
    """It was to end before: the others are left for the next one."""
    # More than one transaction takes.
    fed(setup, 1500)
    builder = setup.build("builder", "--events", 1)
    status, found, err = setup.finish(builder, stop=False)
    assert status == 3 and reasons(found) == ["end_not_confirmed"] and found["windows"]["incomplete"] == 0, (found, err)


def test_what_came_while_a_builder_stood_still_is_read_before_its_end(setup):
    """That it had read everything before does not prove it: it reads on, or says that it does not know the end."""
    fed(setup, 40)
    builder = setup.build()
    setup.read(setup.events, 40)
    feeder = setup.feed("--streams", 3)
    crates = [setup.crate(source) for source in (1, 2, 3)]
    builder.send_signal(signal.SIGSTOP)
    for crate in crates:
        crate.send(*range(40, 80))
        crate.close()
    assert setup.finish(feeder, stop=False)[0] == 0
    builder.send_signal(signal.SIGTERM)
    builder.send_signal(signal.SIGCONT)
    status, found, err = setup.finish(builder, stop=False)
    # On a slow machine the brokers may have given its partitions back by then.
    assert reasons(found) == (["end_not_confirmed"] if found["events"] < 80 else []), (found, err)


def test_an_end_that_the_broker_does_not_tell_is_not_confirmed(setup):
    """A builder that had read everything cannot know whether more has come."""
    fed(setup, 40)
    builder = setup.build()
    setup.read(setup.events, 40)
    setup.broker.process.send_signal(signal.SIGSTOP)
    try:
        status, found, err = setup.finish(builder)
    finally:
        setup.broker.process.send_signal(signal.SIGCONT)
    assert found["events"] == 40 and reasons(found) == ["end_not_confirmed"], (found, err)


def test_what_a_killed_builder_has_met_is_reported_by_the_next(setup):
    """Its place tells it, until a builder ends with a report."""
    fed(setup, 40)
    setup.produce(b"no message", partition=0)
    builder = setup.build()
    setup.read(setup.events, 40)
    wait_for(lambda: setup.places() == setup.ends())
    builder.kill()
    builder.communicate()
    for windows, unreported in ((44, 1), (48, 0)):
        feeder = setup.feed("--streams", 3)
        for crate in [setup.crate(source) for source in (1, 2, 3)]:
            crate.send(*range(windows - 4, windows))
            crate.close()
        assert setup.finish(feeder, stop=False)[0] == 0
        builder = setup.build()
        check(setup.read(setup.events, windows), windows)
        wait_for(lambda: setup.places() == setup.ends())
        status, found, err = setup.finish(builder)
        assert found["unreported"] == unreported and found["malformed"] == 0, (found, err)
        assert reasons(found) == (["unreported"] if unreported else []), (found, err)


def test_a_source_whose_end_an_earlier_builder_has_missed_has_none(setup):
    """Also if all that a builder reads itself are the ends of others."""
    first = setup.feed()
    crates = [setup.crate(1)]
    second = setup.feed("--streams", 2)
    crates += [setup.crate(source) for source in (2, 3)]
    for crate in crates:
        crate.send(*range(40))
    builder = setup.build()
    setup.read(setup.events, 40)
    status, found, err = setup.finish(builder)
    assert reasons(found) == ["end_not_confirmed"], (found, err)
    first.kill()
    first.communicate()
    for crate in crates:
        crate.close()
    assert setup.finish(second, stop=False)[0] == 0
    builder = setup.build()
    wait_for(lambda: setup.places() == setup.ends())
    status, found, err = setup.finish(builder)
    assert reasons(found) == ["end_not_confirmed"], (found, err)


def test_a_feed_that_cannot_deliver_is_not_complete(setup):
    """A message that the topic is not let to take."""
    feeder = setup.feed()
    crate = setup.crate(1)
    crate.send(0)
    setup.read(setup.messages, 1, quiet=0)
    setup.set(**{"max.message.bytes": 100})
    crate.send(1, hits=[(3, 0, tick, 1) for tick in range(1000)])
    crate.close()
    status, found, err = setup.finish(feeder)
    assert status == 3 and found["verdict"] == "incomplete" and reasons(found) == ["error", "undelivered"], (found, err)
    assert found["delivered"] == 1 and found["messages"] == 2


def test_no_broker():
    (port,) = free_ports(1)
    words = [FADELINK, "feed", "--tcp", 1, "--kafka", f"127.0.0.1:{port}"]
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 1 and "fadelink: Kafka: no broker answers" in done.stderr, done.stderr


def test_a_feed_that_was_killed_before_it_delivered_anything_is_named(setup):
    """Its mark in the topic says that it may have taken something."""
    killed = setup.feed()
    wait_for(lambda: setup.read_marks("begin"))
    killed.kill()
    killed.communicate()
    fed(setup, 40)
    epochs = [mark.split("begin=")[1] for mark in setup.read_marks("begin")]
    (lost,) = set(epochs) - {mark.split("done=")[1] for mark in setup.read_marks("done")}
    for options, expected in (([], ["end_not_confirmed"]), (["--end", "silence"], [])):
        setup.begin_anew()
        builder = setup.build("builder", *options)
        wait_for(lambda: setup.places() == setup.ends())
        status, found, err = setup.finish(builder)
        assert reasons(found) == expected and found["open"] == [f"feed {lost} has begun and not ended"], (found, err)
        assert options or found["open"][0] in found["reasons"][0]["text"], found
    assert found["windows"]["incomplete"] == 0


def test_a_feed_without_crates_ends(setup):
    """Nothing came, and it has taken nothing."""
    feeder = setup.feed()
    wait_for(lambda: setup.read_marks("begin"))
    status, found, err = setup.finish(feeder)
    assert status == 3 and reasons(found) == ["no_end"], (found, err)
    fed(setup, 40)
    builder = setup.build()
    wait_for(lambda: setup.places() == setup.ends())
    status, found, err = setup.finish(builder)
    assert status == 0, (found, err)


def test_a_feed_whose_crates_were_not_asked_does_not_mark_its_end(setup):
    """They may have been killed: neither the feed nor a builder behind it says that all is there."""
    feeder = setup.feed("--streams", 3, end="confirmed")
    send(setup, 40)
    status, found, err = setup.finish(feeder, stop=False)
    assert status == 3 and found["verdict"] == "end_not_confirmed" and found["delivered"] == found["messages"], (found, err)
    assert len(setup.read_marks("begin")) == 1 and setup.read_marks("done") == []
    builder = setup.build()
    wait_for(lambda: setup.places() == setup.ends())
    status, found, err = setup.finish(builder)
    assert status == 3 and found["verdict"] == "end_not_confirmed" and "has begun and not ended" in str(found["open"]), (found, err)


def test_what_crates_have_lost_is_told_behind_kafka(setup):
    """The messages tell it to the builder; the feed has delivered them all."""
    feeder = setup.feed("--streams", 3)
    for source in (1, 2, 3):
        crate = setup.crate(source)
        for record in range(12):
            lost = {5: "type_lost", 6: "type_timeout"}.get(record) if source == 2 else None
            crate.send(raw=model.message(source, record, words=[1 << 31 | model.C[lost] << 15 | 7 << 5 | 3] if lost else [0x8000_8003, 5]))
        if source == 3:
            crate.send(raw=model.message(9, 12) + model.message(3, 13, words=[5]))
        crate.close()
    assert setup.finish(feeder, stop=False)[0] == 0
    builder = setup.build("builder", silence=2)
    wait_for(lambda: setup.places() == setup.ends())
    status, found, err = setup.finish(builder)
    told = {reason["reason"]: reason["sources"] for reason in found["reasons"] if "sources" in reason}
    second = "0x00000002"
    assert status == 3 and told == {
        "hits_lost": {second: 14}, "timeouts": {second: 1}, "wrong_messages": {"0x00000003": 1}, "unlisted": {"0x00000009": 1},
    }, (found, err)  # fmt: skip


def test_the_second_interrupt_of_a_feed_gives_its_report(setup):
    """The broker takes nothing, and the crate goes on: both are given up at once, and what was delivered is told."""
    (port,) = free_ports(1)
    feeder = setup.feed("--metrics", f"127.0.0.1:{port}")
    crate = setup.crate(1)
    crate.send(*range(20))
    wait_for(lambda: re.search(r"^fadelink_feed_delivered_messages_total.* 20$", metrics(port), re.M))
    setup.broker.process.send_signal(signal.SIGSTOP)
    try:
        crate.send(*range(20, 50))
        wait_for(lambda: re.search(r"^fadelink_crate_messages_total{.*} 50$", metrics(port), re.M))
        feeder.send_signal(signal.SIGINT)
        crate.wait_for_stop()
        assert feeder.poll() is None
        feeder.send_signal(signal.SIGINT)
        status, found, err = setup.finish(feeder, stop=False)
    finally:
        setup.broker.process.send_signal(signal.SIGCONT)
    assert status == 3 and (found["messages"], found["delivered"]) == (50, 20), (found, err)
    assert reasons(found) == ["error", "undelivered"] and "interrupted before the end" in found["reasons"][0]["text"], found
    crate.close()


def test_a_builder_that_is_killed_before_its_report_leaves_it_to_the_next(setup):
    """What was wrong stands in its place until it has printed its report: here it cannot print it."""
    fed(setup, 40)
    setup.produce(b"no message", partition=0)
    builder = setup.build()
    wait_for(lambda: setup.places() == setup.ends())
    builder.stdout.close()
    builder.send_signal(signal.SIGTERM)
    builder.wait(PATIENCE)
    assert builder.returncode == 3, "it has data that is wrong"
    builder.stdout = None
    (port,) = free_ports(1)
    builder = setup.build("builder", "--metrics", f"127.0.0.1:{port}")
    # It has been given its partitions, and has read what stands there.
    wait_for(lambda: re.search(r'fadelink_verdict_reason\{.*reason="unreported".*\} 1', metrics(port)))
    status, found, err = setup.finish(builder)
    assert status == 3 and found["unreported"] == 1, (found, err)

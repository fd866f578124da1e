"""What a builder on Kafka writes: what it cannot write, what it has written before, and whether that is still there."""

import os
import select
import signal
import urllib.error
import urllib.request

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import NewTopic
from support.broker import free_ports
from support.crate import reasons
from support.kafka import PARTITIONS, Setup, check, lose, send
from support.netns import PATIENCE, wait_for


@pytest.fixture
def setup(broker, request):
    setup = Setup(broker, request.node.name.replace("[", "-").replace("]", ""))
    yield setup
    setup.close()


def fed(setup, windows):
    """A topic with all windows of crates that have ended."""
    feeder = setup.feed("--streams", 3)
    send(setup, windows)
    assert setup.finish(feeder, stop=False)[0] == 0


def make_events(setup, partitions=PARTITIONS, **settings):
    config = {name: str(value) for name, value in settings.items()}
    for made in setup.client.create_topics([NewTopic(setup.events, partitions, 1, config=config)]).values():
        made.result()


@pytest.mark.parametrize("options", [[], ["--end", "silence"]])
def test_events_that_their_topic_never_takes_end_the_builder(setup, options):
    """No other try helps. What was read and could not be written is told, whatever the user takes for the end."""
    make_events(setup, **{"max.message.bytes": 300})
    fed(setup, 100)
    builder = setup.build("builder", *options)
    status, found, err = setup.finish(builder, stop=False)
    assert status == 3 and reasons(found) == ["error", "unwritten"] and not found["kept"], (found, err)
    told = {reason["reason"]: reason for reason in found["reasons"]}
    assert f"topic {setup.events} does not take what is written to it" in told["error"]["text"] and "too large" in told["error"]["text"]
    assert told["unwritten"]["amount"] == found["unwritten"] > 0 and "too large" in told["unwritten"]["text"], found


def test_a_topic_with_fewer_partitions_ends_the_builder(setup):
    """It was made again while the builder was at work."""
    feeder, builder = setup.feed(), setup.build()
    crates = [setup.crate(source) for source in (1, 2, 3)]
    for first in (0, 40):
        for crate in crates:
            crate.send(*range(first, first + 40))
        if first == 0:
            setup.read(setup.events, 40, quiet=0)
            lose(setup, setup.events, "again", 2)
    status, found, err = setup.finish(builder, stop=False)
    assert status == 3 and reasons(found)[:2] == ["error", "unwritten"] and not found["kept"], (found, err)
    for crate in crates:
        crate.close()
    setup.finish(feeder)


def test_a_builder_whose_brokers_stand_still_gives_its_report(setup):
    """Asked to end, with messages that it has perhaps read and cannot write."""
    feeder, builder = setup.feed(), setup.build("builder", "--end", "silence")
    crates = [setup.crate(source) for source in (1, 2, 3)]
    for crate in crates:
        crate.send(*range(40))
    setup.read(setup.events, 40, quiet=0)
    for crate in crates:
        crate.send(*range(40, 80))
    setup.read(setup.messages, 240, quiet=0)
    setup.broker.process.send_signal(signal.SIGSTOP)
    try:
        status, found, err = setup.finish(builder)
    finally:
        setup.broker.process.send_signal(signal.SIGCONT)
    committed = len(setup.read(setup.events, 40, quiet=0))
    assert found["events"] <= committed and (status == 0) == (found["unwritten"] == 0 and not found["reasons"]), (found, err)
    assert set(reasons(found)) <= {"error", "unwritten"}, (found, err)
    for crate in crates:
        crate.close()
    setup.finish(feeder)


def test_windows_that_wait_while_the_broker_stands_still_are_written_once(setup):
    """The builder has read them, and its transaction fails; its health tells that while the broker stands still."""
    (port,) = free_ports(1)
    feeder, builder = setup.feed(), setup.build("builder", "--metrics", f"127.0.0.1:{port}")
    crates = [setup.crate(source) for source in (1, 2, 3)]
    for crate in crates:
        crate.send(*range(40))
    setup.read(setup.events, 40, quiet=0)
    for crate in crates[:2]:
        crate.send(*range(40, 80))
    wait_for(lambda: sum(setup.ends().values()) >= 200)

    def health():
        try:
            return urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=PATIENCE).read().decode()
        except urllib.error.HTTPError as error:
            return error.read().decode()

    told = []

    def has_failed():
        if select.select([builder.stderr], [], [], 0)[0]:
            told.append(os.read(builder.stderr.fileno(), 1 << 16).decode())
        return "a transaction was aborted" in "".join(told)

    # It has asked for more: the broker answers with what its windows wait for, and nothing else.
    builder.send_signal(signal.SIGSTOP)
    crates[2].send(*range(40, 80))
    wait_for(lambda: sum(setup.ends().values()) >= 240)
    setup.broker.process.send_signal(signal.SIGSTOP)
    builder.send_signal(signal.SIGCONT)
    try:
        wait_for(has_failed)
        wait_for(lambda: "Kafka" in health())
    finally:
        setup.broker.process.send_signal(signal.SIGCONT)
    for crate in crates:
        crate.send(*range(80, 120))
        crate.close()
    check(setup.read(setup.events, 120), 120)
    assert setup.finish(feeder)[0] == 0
    wait_for(lambda: setup.places() == setup.ends())
    status, found, err = setup.finish(builder)
    assert status == 0 and found["aborts"] > 0 and found["unwritten"] == 0, (found, err)
    assert found["events"] == found["windows"]["complete"] == 120, (found, err)


@pytest.mark.parametrize("how", ["again", "trimmed"])
def test_events_of_a_killed_builder_are_looked_for_by_the_next(setup, how):
    """Nobody has reported them. It is told once."""
    fed(setup, 40)
    builder = setup.build()
    wait_for(lambda: setup.places() == setup.ends())
    builder.kill()
    builder.communicate()
    lose(setup, setup.events, how)
    for first, expected in ((40, ["changed"] * PARTITIONS), (44, [])):
        feeder = setup.feed("--streams", 3)
        for crate in [setup.crate(source) for source in (1, 2, 3)]:
            crate.send(*range(first, first + 4))
            crate.close()
        assert setup.finish(feeder, stop=False)[0] == 0
        builder = setup.build()
        wait_for(lambda: setup.places() == setup.ends())
        status, found, err = setup.finish(builder)
        assert reasons(found) == expected and found["kept"] == (not expected), (found, err)
        assert not expected or f"topic {setup.events}, partition " in str(found["reasons"]), found


@pytest.mark.parametrize("how", ["deleted", "reset"])
def test_a_group_that_lost_its_place_does_not_write_twice(setup, how):
    """It cannot know what it has written, and says what to do."""
    fed(setup, 40)
    builder = setup.build()
    check(setup.read(setup.events, 40), 40)
    assert setup.finish(builder)[0] == 0
    if how == "deleted":
        wait_for(lambda: setup.busy_builders() == 0)
        setup.client.delete_consumer_groups([setup.group])[setup.group].result(PATIENCE)
    else:
        setup.commit([TopicPartition(setup.messages, n, 0) for n in range(PARTITIONS)])
    status, found, err = setup.finish(setup.build(), stop=False)
    assert status == 3 and reasons(found) == ["error"], (found, err)
    for told in (f"topic {setup.events}, partition ", f"group {setup.group} has no place in topic {setup.messages}", "--append"):
        assert told in found["reasons"][0]["text"] and told in err, (found, err)
    check(setup.read(setup.events, 40), 40)
    # Another topic of events, or on purpose the same one.
    for append in (False, True):
        setup.begin_anew(keep_events=append)
        builder = setup.build("builder", *(["--append"] if append else []))
        wait_for(lambda: setup.busy_builders() and setup.places() == setup.ends())
        status, found, err = setup.finish(builder)
        assert status == 0 and found["windows"]["complete"] == 40, (found, err)


def test_a_crate_that_is_far_ahead_waits_in_the_topic(setup):
    """All that one crate has sent stands before all of another: far more windows than may be open. Builders come and go meanwhile."""
    windows = 400
    feeder = setup.feed("--streams", 3)
    for source in (1, 2, 3):
        crate = setup.crate(source)
        crate.send(*range(windows))
        crate.close()
        setup.read(setup.messages, windows * source, quiet=0)
    assert setup.finish(feeder, stop=False)[0] == 0
    builder = setup.build("builder", "--max-open", 20)
    setup.read(setup.events, windows // 4, quiet=0)
    status, found, err = setup.finish(builder)
    assert set(reasons(found)) <= {"end_not_confirmed"} and found["windows"]["incomplete"] == 0, (found, err)
    builder = setup.build("builder", "--max-open", 20)
    check(setup.read(setup.events, windows), windows)
    wait_for(lambda: setup.places() == setup.ends())
    status, found, err = setup.finish(builder)
    assert status == 0 or found["messages"] == 0, (found, err)

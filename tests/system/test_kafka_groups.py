"""Builders of one group that come and go, and how they report each other's work."""

import signal

import pytest
from support import fadc_model as model
from support.crate import WINDOW_NS, hits_of, reasons
from support.kafka import PARTITIONS, Setup, check, make, send, trim
from support.netns import PATIENCE, wait_for


@pytest.fixture
def setup(broker, request):
    setup = Setup(broker, request.node.name.replace("[", "-").replace("]", ""))
    yield setup
    setup.close()


def two_ahead(setup, windows=20):
    """A feed, and three crates of which the third has sent nothing; it begins with window 8."""
    setup.feed()
    crates = [setup.crate(source) for source in (1, 2, 3)]
    for crate in crates[:2]:
        crate.send(*range(windows))
    setup.read(setup.messages, 2 * windows, quiet=0)
    return crates


def end(setup, crates, windows=20):
    crates[2].send(*range(8, windows))
    for crate in crates:
        crate.close()
    assert setup.finish(setup.feeder)[0] == 0


@pytest.mark.parametrize("how", ["second", "restarted"])
def test_no_window_is_left_out_where_nothing_was_deleted(setup, how):
    """A group that may begin at the oldest messages has them all: also builders that join it, or go on, before the first event."""
    crates = two_ahead(setup)
    builders = [setup.build("one", "--from-oldest")]
    wait_for(lambda: len(setup.places()) == PARTITIONS)
    if how == "restarted":
        builders.pop().kill()
    builders.append(setup.build("two", "--from-oldest"))
    wait_for(lambda: setup.busy_builders() == 2 if how == "second" else setup.busy_builders())
    end(setup, crates)
    events = setup.read(setup.events, 20)
    assert sorted(model.read_event(data)[0].record for _, data in events) == list(range(20))
    wait_for(lambda: setup.places() == setup.ends())
    for builder in builders:
        builder.send_signal(signal.SIGTERM)
    found = [setup.finish(builder, stop=False) for builder in builders]
    assert {status for status, _, _ in found} == {3} and all(reasons(report) == ["windows"] for _, report, _ in found), found
    assert sum(report["windows"]["incomplete"] for _, report, _ in found) == 8, found


def test_partitions_that_come_back_are_told_once(setup):
    """What is wrong with them stands in their places, and is this builder's own work when it is given them again."""
    crates = two_ahead(setup)
    end(setup, crates)
    builder = setup.build("one")
    setup.read(setup.events, 20, quiet=0)
    wait_for(lambda: setup.places() == setup.ends())
    other = setup.build("two")
    wait_for(lambda: setup.busy_builders() == 2)
    other.kill()
    other.communicate()
    wait_for(lambda: setup.busy_builders() == 1)
    status, found, err = setup.finish(builder)
    assert status == 3 and reasons(found) == ["windows"] and found["reasons"][0]["amount"] == 8 and found["unreported"] == 0, (found, err)


def test_more_builders_than_partitions(setup):
    """Those that were given nothing are complete where the others have done all. If nothing came while they ran, they are not."""
    setup.feed("--streams", 3)
    builders = [setup.build(f"b{number}") for number in range(PARTITIONS + 2)]
    wait_for(lambda: setup.busy_builders() == PARTITIONS)
    send(setup, 40)
    assert setup.finish(setup.feeder, stop=False)[0] == 0
    check(setup.read(setup.events, 40), 40)
    wait_for(lambda: setup.places() == setup.ends())
    for builder in builders:
        builder.send_signal(signal.SIGTERM)
    found = [setup.finish(builder, stop=False) for builder in builders]
    assert all(status == 0 and report["kept"] for status, report, _ in found), found
    assert sum(report["events"] for _, report, _ in found) == 40
    idle = [report for _, report, _ in found if report["idle"]]
    assert len(idle) >= 2 and all(report["events"] == 0 and "other builders of its group" in report["idle"] for report in idle), found
    builder = setup.build("late")
    wait_for(setup.busy_builders)
    status, report, err = setup.finish(builder)
    assert status == 3 and reasons(report) == ["no_end"] and report["idle"] is None, (report, err)


def test_events_that_were_reported_may_be_deleted(setup):
    """All of them, with the marks of their transactions."""
    for first in (0, 8):
        setup.feed()
        for source in (1, 2, 3):
            crate = setup.crate(source)
            crate.send(*range(first, first + 8))
            crate.close()
        assert setup.finish(setup.feeder)[0] == 0
        builder = setup.build()
        setup.read(setup.events, 8, quiet=0)
        wait_for(lambda: setup.places() == setup.ends())
        status, found, err = setup.finish(builder)
        assert status == 0 and found["kept"] and found["windows"]["complete"] == 8, (found, err)
        trim(setup, setup.events)


@pytest.mark.parametrize("is_noted", [False, True])
def test_a_record_has_one_message_and_nothing_else(setup, is_noted):
    """Bytes behind it, or another message, are not passed over: the record is malformed, and its window misses the source."""
    setup.feed()
    crates = [setup.crate(source) for source in (1, 2, 3)]
    for crate in crates:
        crate.send(*range(20))
        crate.close()
    assert setup.finish(setup.feeder)[0] == 0
    messages = setup.read_all(setup.messages, 60)
    setup.messages += "-copy"
    make(setup, setup.messages)
    behind = {(1, 4): model.message(1, 8, hits_of(1, 8), WINDOW_NS), (1, 19): b"garbage!" * 100, (2, 7): bytes(8)}
    for message in messages:
        header = model.read_messages(message.value())[0]
        data = message.value() + behind.get((header.source, header.record), b"")
        headers = message.headers() if is_noted else None
        setup.produce(data, message.partition(), key=message.key(), headers=headers)
    builder = setup.build("builder", "--end", "silence", silence=3)
    setup.read(setup.events, 20)
    status, found, err = setup.finish(builder)
    assert status == 3 and found["malformed"] == 3 and "malformed" in reasons(found), (found, err)
    assert "bytes stand behind the end of its message" in err, err
    if is_noted:
        assert found["windows"] == {"complete": 17, "incomplete": 3, "dropped": 0, "late": 0}, (found, err)


def test_a_topic_that_deletes_soon_is_told(setup):
    """Before anything is written."""
    make(setup, setup.messages)
    setup.set(**{"retention.ms": 60_000, "retention.bytes": 1_000_000})
    feeder = setup.feed("--duration", 1)
    out, err = feeder.communicate(timeout=PATIENCE)
    assert f"topic {setup.messages}: retention.ms=60000 retention.bytes=1000000: messages may be deleted" in err, (out, err)


def test_a_source_that_sends_to_a_feed_from_another_address(setup):
    """The feed is not complete and does not mark its end, so that a builder does not confirm the end."""
    feeder = setup.feed(end="confirmed")
    crates = [setup.crate(source) for source in (1, 2, 3)]
    for crate, windows in zip(crates, (20, 40, 40)):
        crate.send(*range(windows))
    wait_for(lambda: sum(setup.ends_of_topic().values()) >= 100)
    crates[0].close()
    crates[0] = setup.crate(1, "127.0.0.9")
    crates[0].send(*range(20, 40))
    setup.read(setup.messages, 120, quiet=0)
    feeder.send_signal(signal.SIGTERM)
    for crate in crates:
        crate.wait_for_stop()
        crate.close()
    status, found, err = setup.finish(feeder, stop=False)
    assert status == 3 and reasons(found) == ["two_senders"] and found["delivered"] == 120, (found, err)
    builder = setup.build()
    wait_for(lambda: setup.places() == setup.ends())
    status, found, err = setup.finish(builder)
    assert found["verdict"] == "end_not_confirmed" and found["windows"]["complete"] == 40, (found, err)

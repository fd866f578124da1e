"""Judges the events of a try of `kafka-anything`. It knows nothing of the rules of a verdict: it compares the events with a record of
what the crates have sent, and with what the programs say.
"""

import time
from collections import Counter
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaError, TopicPartition

from support import fadc_model as model
from support.faults.site import SOURCES
from support.kafka import PARTITIONS
from support.netns import PATIENCE


def ends(setup, topic, level="read_uncommitted"):
    """{partition: offset behind its last message}; with read_committed, up to the first open transaction.

    By a consumer: librdkafka 2.16 may crash when an AdminClient asks brokers that go away.
    """
    consumer = Consumer({"bootstrap.servers": setup.broker.address, "group.id": "judge", "isolation.level": level})
    try:
        return {n: consumer.get_watermark_offsets(TopicPartition(topic, n), timeout=10)[1] for n in range(PARTITIONS)}
    finally:
        consumer.close()


def committed(setup):
    """All committed messages of the events, when no transaction is open."""
    limit = time.monotonic() + PATIENCE
    while (last := ends(setup, setup.events, "read_committed")) != ends(setup, setup.events):
        assert time.monotonic() < limit, "a transaction does not end"
        time.sleep(0.1)
    consumer = Consumer({"bootstrap.servers": setup.broker.address, "group.id": "judge", "isolation.level": "read_committed",
                         "auto.offset.reset": "earliest", "enable.auto.commit": False, "enable.partition.eof": True})  # fmt: skip
    consumer.assign([TopicPartition(setup.events, n, 0) for n in range(PARTITIONS)])
    found, left = [], set(last)
    while left:
        assert time.monotonic() < limit, "the events cannot be read"
        message = consumer.poll(0.2)
        if message is not None and message.error():
            assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
            left.discard(message.partition())
        elif message is not None:
            found.append(message)
    consumer.close()
    return found


@dataclass
class Event:
    window: int
    builder: int
    parts: dict
    says_whole: bool
    is_late: bool


def read(message):
    header, parts = model.read_event(message.value())
    missing, late = (word.split("=")[1] for word in dict(message.headers())["fadelink"].decode().split()[:2])
    data, at = {}, model.Header.size
    for part in parts:
        data[part.source] = message.value()[at : at + part.length]
        at += part.length
    assert len(data) == len(parts), "a source is in an event twice"
    return Event(header.record, header.source, data, not missing and late == "0", late != "0")


def judge(trial, last, messages):
    """What is wrong, in words; and how much was compared."""
    record, events = trial.record, [read(message) for message in messages]
    builders = {program.number: program for program in trial.builders}
    wrong = []
    for window, count in Counter(event.window for event in events if not event.is_late).items():
        if count != 1:
            wrong.append(f"window {window} is an event {count} times")
    for event in events:
        program = builders[event.builder]
        if event.parts == record.of(event.window):
            continue
        others = any(source in event.parts and event.parts[source] in data for (source, window), data in record.forged.items()
                     if window == event.window)  # fmt: skip
        ahead = any(source not in event.parts and window > event.window for source, window in record.forged)
        if program.is_complete or event.says_whole and not others and not ahead:
            other = {source for source in SOURCES if event.parts.get(source) != record.of(event.window).get(source)}
            wrong.append(f"window {event.window}, by builder {program.number:#x}: other messages of {other}, it has {sorted(event.parts)}")
    for program in trial.builders:
        own = sum(event.builder == program.number for event in events)
        # Of a transaction whose answer did not come nobody knows whether it was committed.
        is_unsure = program.found and program.found["unwritten"] and own > program.found["events"]
        if program.found and program.found["events"] != own and not is_unsure:
            wrong.append(f"builder {program.number:#x} says {program.found['events']} events, and has written {own}")
        if program.is_complete and program.found["windows"]["incomplete"]:
            wrong.append(f"builder {program.number:#x} is complete with incomplete windows")
    # The last one has seen the end, and none before has said that anything is wrong: then everything is there.
    if last.is_complete and not any(program.is_incomplete for program in trial.builders + trial.feeds):
        found = {event.window: event.parts for event in events}
        for window in sorted(record.windows() | set(found)):
            if found.get(window) != record.of(window):
                wrong.append(f"complete, but window {window} has {sorted(found.get(window, {}))} instead of {sorted(record.of(window))}")
    return wrong, len(record.sent)

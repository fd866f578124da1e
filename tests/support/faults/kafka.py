"""Faults: Kafka, its clients, and the network between them."""

import bisect
import contextlib
import signal
import threading
import time
from collections import Counter

from support import fadc_model as model
from support.broker import Broker
from support.crate import WINDOW_NS, hits_of
from support.faults.site import BROKER, SOURCES, Outcome, clock_file, environment, fault, step
from support.kafka import send
from support.netns import sh


def through_kafka(site, disturb, windows=500, silence=60):
    """From crates over `feed` and a builder to events while `disturb(setup, builders)` does its worst; a builder that ends
    with an error is started again, as a service manager does. Counts windows that are not there once, with all their hits.
    """
    with site.kafka() as setup:
        feeder = setup.feed("--streams", len(SOURCES))
        builders = [setup.build(silence=silence)]
        sender = threading.Thread(target=send, args=(setup, windows), kwargs={"pause": 0.03})
        sender.start()
        try:
            disturb(setup, builders)
        finally:
            sender.join()
        status, fed, err = setup.finish(feeder, stop=False)
        assert status == 0 and fed["delivered"] == len(SOURCES) * windows, (fed, err)
        if builders[-1].poll() is not None:
            builders.append(setup.build(silence=silence))
        events = setup.read(setup.events, windows)
        status, found, err = setup.finish(builders[-1])
        assert status == 0 or len(builders) > 1, (found, err)
    count = Counter()
    for _, data in events:
        event, messages = model.read_event(data)
        whole = [message.source for message in messages] == list(SOURCES) and all(
            sorted(model.read_hits(message, WINDOW_NS // 4)[0]) == hits_of(message.source, message.record) for message in messages
        )
        count[event.record] += whole
        count["wrong"] += not whole
    return Outcome(windows, count["wrong"] + sum(abs(count[window] - 1) for window in range(windows)))


EXACTLY_ONCE = "each window is an event exactly once, complete"


@fault("kafka-builder-killed", "SIGKILL of a builder on Kafka, again and again, and a new one", "windows", EXACTLY_ONCE, kafka=True)
def kafka_builder_killed(site):
    def disturb(setup, builders):
        for _ in range(3):
            site.pause(0.3, 3)
            builders[-1].kill()
            builders[-1].communicate()
            builders.append(setup.build())

    return through_kafka(site, disturb)


@fault("kafka-broker-killed", "SIGKILL of the broker, which comes back", "windows", EXACTLY_ONCE, kafka=True)
def kafka_broker_killed(site):
    def disturb(setup, builders):
        site.pause(0.5, 4)
        setup.broker.kill()
        site.pause(0, 3)
        setup.broker.start()

    return through_kafka(site, disturb)


@fault("kafka-broker-stalled", "the broker stands still for 10 s (SIGSTOP), `--silence 2`", "windows", EXACTLY_ONCE, kafka=True)
def kafka_broker_stalled(site):
    def disturb(setup, builders):
        site.pause(0.5, 4)
        setup.broker.process.send_signal(signal.SIGSTOP)
        time.sleep(10)
        setup.broker.process.send_signal(signal.SIGCONT)

    return through_kafka(site, disturb, silence=2)


@fault("kafka-network-cut", "no way to the broker for up to 5 s, twice", "windows", EXACTLY_ONCE, kafka=True)
def kafka_network_cut(site):
    def disturb(setup, builders):
        for _ in range(2):
            site.pause(0.3, 2)
            sh("ip", "route", "add", "blackhole", f"{BROKER}/32", "table", "local")
            try:
                site.pause(0.5, 5)
            finally:
                sh("ip", "route", "delete", "blackhole", f"{BROKER}/32", "table", "local")

    return through_kafka(site, disturb)


@fault(
    "kafka-clock-stepped", "the time of day is stepped: of the broker by up to an hour, of `feed` and builder by up to an hour "
    "forward and 2 s back; `--silence 2`", "windows", EXACTLY_ONCE, kafka=True,
)  # fmt: skip
def kafka_clock_stepped(site):
    def disturb(setup, builders):
        # A step back holds librdkafka up for as long: it waits by the time of day.
        clocks = {broker_clock: (-3600, 3600), site.folder / "clock": (-2, 3600)}
        now = dict.fromkeys(clocks, 0)
        for _ in range(4):
            site.pause(0.5, 1.5)
            clock = site.random.choice(list(clocks))
            least, most = clocks[clock]
            now[clock] += site.random.choice([least, most]) * site.random.random()
            step(clock, now[clock])

    # A broker of its own: one whose clock was stepped may create no topics any more, even when it was started again.
    folder = site.folder / "broker"
    folder.mkdir()
    broker_clock = clock_file(folder)
    with contextlib.closing(Broker(folder, environment=environment(clock=broker_clock))) as site.broker:
        return through_kafka(site, disturb, silence=2)


@fault(
    "kafka-feed-killed", "SIGKILL of `feed` while crates send, 3 times", "messages",
    "what it had delivered is in the events. What TCP had confirmed and it had not delivered is missing in its windows, and in no "
    "others",
    kafka=True,
)  # fmt: skip
def kafka_feed_killed(site):
    with site.kafka() as setup:
        return feeds_killed(site, setup)


def feeds_killed(site, setup):
    r, place, sent, turns = site.random, 0, [], []
    for turn in range(4):
        turns.append(place)
        feeder = setup.feed()
        crates = [setup.crate(source) for source in SOURCES]
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
        for crate in crates:
            crate.close()
    status, fed, err = setup.finish(feeder)
    assert status == 0, (fed, err)
    there = {(m.source, m.record) for _, data in setup.read(setup.messages, 1, quiet=1) for m in model.read_messages(data)}
    lost = {(source, window) for source, window in sent if (source, window) not in there}
    assert lost and len(there) >= 200
    builder = setup.build()
    events, wrong, told = {}, 0, 0
    for message in setup.read_all(setup.events, len({window for _, window in there})):
        event, parts = model.read_event(message.value())
        missing, late = (word.split("=")[1] for word in dict(message.headers())["fadelink"].decode().split())
        missing = {int(source, 16) for source in missing.split(",") if source}
        found = {part.source for part in parts}
        want = {source for source in SOURCES if (source, event.record) in there}
        wrong += late != "0" or event.record in events
        wrong += len(want ^ found) + len(missing ^ (set(SOURCES) - found))
        told += len(missing)
        events[event.record] = found
    wrong += len({window for _, window in there} - set(events))
    status, found, err = setup.finish(builder)
    assert status == 3, (found, err)
    for source in SOURCES:
        counts = found["sources"][f"0x{source:08x}"]
        delivered = [window for crate, window in there if crate == source]
        # A feed that was killed before it delivered anything of a crate has left no session of it.
        sessions = len({bisect.bisect(turns, window) for window in delivered})
        # Windows that no crate's message is left of have no event: they are counted, from the source's first on.
        gone = {window for _, window in lost if window > min(delivered)} - set(events)
        assert counts["unknown"] >= len(gone) and counts["late"] == 0 and counts["sessions"] == sessions, (counts, gone, sessions)
        told += len(gone)
    return Outcome(len(there), wrong, told)

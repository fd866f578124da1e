"""Fault: anything that can go wrong between crates and events over Kafka, several things at random moments.

`kafka_judge` compares the events with a record of each message that a crate has sent.
"""

import contextlib
import signal
import socket
import struct
import time
from collections import defaultdict
from dataclasses import dataclass, field

from confluent_kafka import Consumer, KafkaException, TopicPartition

from support import fadc_model as model
from support.crate import WINDOW_NS, hits_of, report
from support.faults.kafka_judge import committed, ends, judge
from support.faults.schedule import Schedule
from support.faults.site import BROKER, SOURCES, Outcome, fault
from support.kafka import PARTITIONS
from support.netns import PATIENCE, sh

# A source of the events for each builder, so that they tell by whom they are.
FIRST_BUILDER = 0xB0000000
# Longest wait for a builder to read everything before it is asked to end; what it then has not, it has to say.
READS = 15


@dataclass
class Program:
    """A feed or a builder of this try, and what it said when it ended by itself."""

    process: object
    name: str = ""
    number: int = 0
    port: int = 0
    killed: bool = False
    status: int | None = None
    found: dict | None = None
    said: str = ""

    @property
    def is_complete(self):
        return self.status == 0

    @property
    def is_incomplete(self):
        """It says that something is wrong, not only that it does not know the end."""
        return not self.killed and self.status not in (None, 0) and (self.found is None or self.found["verdict"] == "incomplete")


@dataclass
class Record:
    """What the crates have sent, and what others have put into the topic as if they had."""

    sent: dict = field(default_factory=dict)  # (source, window): message
    forged: dict = field(default_factory=lambda: defaultdict(set))  # the same, of others

    def of(self, window):
        return {source: self.sent[source, window] for source in SOURCES if (source, window) in self.sent}

    def windows(self):
        return {window for _, window in self.sent}


class Trial:
    """One try: programs, crates, and what is wrong at the moment."""

    def __init__(self, site, setup):
        self.site, self.setup, self.random = site, setup, site.random
        self.record, self.feeds, self.builders, self.done = Record(), [], [], []
        # Of each crate the next window, and the first that it has never come to.
        self.crates, self.place, self.newest = {}, dict.fromkeys(SOURCES, 0), dict.fromkeys(SOURCES, 0)
        self.silence = self.random.choice([2, 10])
        # What ends by itself: when, and what is done then. The brokers answer while `away` is 0.
        self.schedule, self.away = Schedule(), 0
        self.start_feed()
        self.start_builder()
        for source in SOURCES:
            self.connect(source)

    def end_of(self, program):
        """Waits until a program has ended, while other things go on."""
        self.schedule.run(lambda: program.process.poll() is not None)
        out, program.said = program.process.communicate()
        program.status = program.process.returncode
        # A signal that came before it took signals has killed it.
        program.killed = program.status < 0
        if out:
            _, program.found, _ = report((program.status, out, program.said))
        # If not complete, a reason is named.
        assert program.status <= 0 or program.found or "fadelink: " in program.said, (program.status, program.said)

    def stop_for_a_while(self, process):
        process.send_signal(signal.SIGSTOP)
        # It may have been killed meanwhile.
        self.schedule.at(self.random.uniform(0.2, 4), "continue", lambda: process.poll() is None and process.send_signal(signal.SIGCONT))

    # Programs.

    def start_feed(self):
        self.feeds.append(Program(self.setup.feed(), port=self.setup.port))
        return self.feeds[-1]

    def start_builder(self, name="one"):
        number = FIRST_BUILDER + len(self.builders)
        process = self.setup.build(name, "--builder-id", number, silence=self.silence)
        self.builders.append(Program(process, name, number))

    def living(self, programs):
        return [program for program in programs if program.process.poll() is None]

    def kill(self, program):
        if program.killed or program.status is not None:
            return
        program.killed = program.process.poll() is None
        if program.killed:
            program.process.kill()
            program.said = program.process.communicate()[1]
        else:
            self.end_of(program)

    # Crates.

    def connect(self, source):
        """To a feed that lives, or a new one; the crate goes on, or sends its last windows again."""
        end, feed = time.monotonic() + PATIENCE, None
        while source not in self.crates:
            assert time.monotonic() < end, "no feed listens"
            feeds = self.living(self.feeds)
            if feed not in feeds:
                feed = self.random.choice(feeds) if feeds else self.start_feed()
            # It listens when the brokers have answered it.
            with contextlib.suppress(OSError):
                crate = socket.create_connection(("127.0.0.1", feed.port))
                self.crates[source] = crate, feed
            if source not in self.crates:
                self.schedule.poll()
                time.sleep(0.05)
        if self.random.random() < 0.1:
            self.place[source] = max(self.place[source] - self.random.randrange(1, 8), 0)

    def send(self, source, count, empty=0.15):
        """Its next windows. Some are empty, and are so again when they are sent again."""
        if source not in self.crates:
            self.connect(source)
        for window in range(self.place[source], self.place[source] + count):
            data = self.record.sent.get((source, window))
            is_new = window >= self.newest[source]
            if data is None and (not is_new or self.random.random() < empty):
                continue
            data = data or model.message(source, window, hits_of(source, window), WINDOW_NS)
            try:
                self.crates[source][0].sendall(data)
            except (OSError, KeyError):
                self.leave(source)
                return
            self.record.sent[source, window] = data
            self.newest[source] = max(self.newest[source], window + 1)
        self.place[source] += count
        self.newest[source] = max(self.newest[source], self.place[source])

    def leave(self, source, how="sloppy"):
        """The crate ends its connection: by FIN, by FIN and waiting until the feed has all, or by RST."""
        if source not in self.crates:
            return
        crate, feed = self.crates.pop(source)
        with contextlib.suppress(OSError):
            if how == "reset":
                crate.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            if how == "patient":
                crate.shutdown(socket.SHUT_WR)
                crate.settimeout(0.05)
                end = time.monotonic() + PATIENCE
                while feed.process.poll() is None and time.monotonic() < end:
                    self.schedule.poll()
                    with contextlib.suppress(TimeoutError):
                        if not crate.recv(1):
                            break
        crate.close()

    def send_on(self):
        """Crates send on; none is far ahead of the others."""
        for _ in range(self.random.randrange(1, 6)):
            source = self.random.choice(SOURCES)
            if self.place[source] < min(self.place.values()) + 30:
                self.send(source, self.random.randrange(1, 8))

    # What goes wrong.

    def builder_killed(self):
        program = self.random.choice(self.living(self.builders) or self.builders)
        self.kill(program)
        self.replace_builder(program.name)

    def builder_ended(self):
        program = self.random.choice(self.living(self.builders) or self.builders)
        if program.process.poll() is None:
            program.process.send_signal(self.random.choice([signal.SIGINT, signal.SIGTERM]))
        if self.random.random() < 0.5:
            self.end_of(program)
        self.replace_builder(program.name)

    def replace_builder(self, name):
        if self.random.random() < 0.7:
            self.start_builder(name)
        else:
            self.schedule.at(self.random.uniform(0, 2), "builder", lambda: self.start_builder(name))

    def second_builder(self):
        """Of the same name, which shuts the first one out, or of another one, with which it shares."""
        if len(self.living(self.builders)) < 3:
            self.start_builder(self.random.choice(["one", "two"]))

    def builder_stalled(self):
        for program in self.living(self.builders):
            self.stop_for_a_while(program.process)

    def feed_killed(self):
        for program in self.living(self.feeds):
            self.kill(program)
            for source in [source for source, (_, feed) in self.crates.items() if feed is program]:
                self.leave(source)

    def feed_ended(self):
        for program in self.living(self.feeds):
            program.process.send_signal(signal.SIGTERM)
            for source in [source for source, (_, feed) in self.crates.items() if feed is program]:
                self.leave(source, self.random.choice(["patient", "sloppy"]))

    def feed_stalled(self):
        for program in self.living(self.feeds):
            self.stop_for_a_while(program.process)

    def second_feed(self):
        if len(self.living(self.feeds)) < 3:
            self.start_feed()

    def crate_comes_again(self):
        self.leave(self.random.choice(SOURCES), self.random.choice(["patient", "sloppy", "reset"]))

    def crate_is_silent(self):
        source = self.random.choice(SOURCES)
        self.place[source] = min(self.place[source] + self.random.randrange(1, 20), max(self.place.values()))
        self.newest[source] = max(self.newest[source], self.place[source])

    def broker_killed(self):
        if self.away:
            return
        self.setup.broker.kill()
        self.away += 1
        self.schedule.at(self.random.uniform(0, 2), "broker", self.broker_back)

    def broker_back(self):
        self.setup.broker.start()
        self.away -= 1

    def broker_stalled(self):
        if self.away:
            return
        self.setup.broker.process.send_signal(signal.SIGSTOP)
        self.away += 1
        self.schedule.at(self.random.uniform(0.2, 4), "broker continues", self.broker_continued)

    def broker_continued(self):
        self.setup.broker.process.send_signal(signal.SIGCONT)
        self.away -= 1

    def network_cut(self):
        if self.away:
            return
        sh("ip", "route", "add", "blackhole", f"{BROKER}/32", "table", "local")
        self.away += 1
        self.schedule.at(self.random.uniform(0.2, 4), "network", self.network_back)

    def network_back(self):
        sh("ip", "route", "delete", "blackhole", f"{BROKER}/32", "table", "local")
        self.away -= 1

    def messages_deleted(self):
        if not self.away and self.topics() >= {self.setup.messages}:
            last = ends(self.setup, self.setup.messages)
            self.setup.delete({n: self.random.randrange(end + 1) for n, end in last.items()})

    def other_producer(self):
        """Data that is not a message, and messages as of a crate."""
        if self.away or self.setup.messages not in self.topics():
            return
        r, known = self.random, sorted(self.record.sent)
        source, window = r.choice(known) if known else (1, 0)
        good = model.message(source, window, hits_of(source, window), WINDOW_NS)
        kind, headers, partition = r.choice(["bytes", "cut", "length", "source", "again", "words", "next", "copy"]), None, window % PARTITIONS
        if kind == "bytes":
            good, partition = r.randbytes(r.randrange(1, 100)), r.randrange(PARTITIONS)
        elif kind == "cut":
            good = good[: r.randrange(1, len(good))]
        elif kind == "length":
            length = r.choice([0, 40, len(good) + 8, 1 << 31])
            good = good[:4] + struct.pack("<I", length) + good[8:]
        elif kind == "copy":
            if not (copied := self.some_message()):
                return
            good, headers, partition = copied.value(), copied.headers(), copied.partition()
        else:
            source = 9 if kind == "source" else source
            window += r.randrange(1, 30) if kind == "next" else 0
            partition = window % PARTITIONS if r.random() < 0.97 else r.randrange(PARTITIONS)
            hits = hits_of(source, window) if kind == "again" else [(3, 0, tick, 1) for tick in range(r.randrange(1, 5))]
            good = model.message(source, window, hits, WINDOW_NS)
            self.record.forged[source, window].add(good)
        self.setup.produce(good, partition, **({"headers": headers} if headers else {}))

    def topics(self):
        return set(self.setup.client.list_topics(timeout=PATIENCE).topics)

    def some_message(self):
        """Any message of the topic, with its headers."""
        partition = self.random.randrange(PARTITIONS)
        consumer = Consumer({"bootstrap.servers": self.setup.broker.address, "group.id": "copy", "auto.offset.reset": "earliest",
                             "enable.auto.commit": False, "enable.partition.eof": True})  # fmt: skip
        consumer.assign([TopicPartition(self.setup.messages, partition, self.random.randrange(ends(self.setup, self.setup.messages)[partition] + 1))])
        message = consumer.poll(5)
        consumer.close()
        return None if message is None or message.error() or not message.value() else message

    # The end.

    def finish(self):
        """Everything is well again; crates and feeds end, and a last builder reads what there is."""
        self.schedule.poll(everything=True)
        last = max(self.place.values())
        for source in SOURCES:
            self.send(source, last - self.place[source])
            self.send(source, PARTITIONS, empty=0)
        for source in SOURCES:
            self.leave(source, self.random.choice(["patient", "patient", "sloppy"]))
        for program in self.living(self.feeds):
            program.process.send_signal(signal.SIGTERM)
        for program in self.feeds:
            if not program.killed:
                self.end_of(program)
        builders = self.living(self.builders)
        for program in builders if self.random.random() < 0.4 else builders[:-1]:
            if self.random.random() < 0.5:
                self.kill(program)
            else:
                program.process.send_signal(signal.SIGTERM)
                self.end_of(program)
        if not self.living(self.builders):
            self.start_builder()
        last = self.living(self.builders)[-1]
        end = time.monotonic() + (READS if self.random.random() < 0.85 else self.random.uniform(0, 5))
        while last.process.poll() is None and time.monotonic() < end and not self.is_read():
            time.sleep(0.3)
        if last.process.poll() is None:
            last.process.send_signal(signal.SIGTERM)
        for program in self.builders:
            if not program.killed and program.status is None:
                self.end_of(program)
        return last

    def is_read(self):
        try:
            last, places = ends(self.setup, self.setup.messages), self.setup.places()
        except KafkaException:
            return False
        return all(places.get(n) == end for n, end in last.items() if end)

    def close(self):
        self.schedule.poll(everything=True)
        for crate, _ in self.crates.values():
            crate.close()


KINDS = [
    Trial.builder_killed, Trial.builder_ended, Trial.second_builder, Trial.builder_stalled, Trial.feed_killed, Trial.feed_ended,
    Trial.feed_stalled, Trial.second_feed, Trial.crate_comes_again, Trial.crate_is_silent, Trial.broker_killed, Trial.broker_stalled,
    Trial.network_cut, Trial.messages_deleted, Trial.other_producer,
]  # fmt: skip


@fault(
    "kafka-anything", "crates, `feed`, builder and broker: killed, stopped, ended, twice, cut off; messages deleted, forged, sent again; "
    "several at random moments", "messages", "no window is an event twice; what is called whole or complete is what the crates sent",
    kafka=True,
)  # fmt: skip
def kafka_anything(site):
    r = site.random
    # The seed says what happens, whatever the programs do meanwhile. Few kinds in a try, so that some tries can end complete.
    kinds = r.sample(KINDS, r.randrange(1, 5))
    steps = [(r.uniform(0, 0.3), r.random() < 0.3 and r.choice(kinds)) for _ in range(r.randrange(6, 25))]
    with site.kafka() as setup, contextlib.closing(Trial(site, setup)) as trial:
        for pause, happens in steps:
            trial.schedule.poll()
            trial.send_on()
            time.sleep(pause)
            if happens:
                trial.done.append(happens.__name__)
                # A broker that has just come back may refuse what the test asks it for.
                with contextlib.suppress(KafkaException):
                    happens(trial)
        last = trial.finish()
        messages = committed(setup) if setup.events in trial.topics() else []
        wrong, count = judge(trial, last, messages)
        if wrong:
            feeds = [(program.killed, program.status, program.said[-300:]) for program in trial.feeds]
            builders = [(hex(program.number), program.killed, program.status, program.found, program.said[-300:]) for program in trial.builders]
            raise AssertionError("\n".join([*wrong[:20], f"{trial.done}", *map(str, feeds), *map(str, builders)]))
    return Outcome(*((count, 0, 0) if last.is_complete else (0, 0, count)))

"""Fault: anything that can go wrong between a board and its topic of words, several things at random moments.

The judge knows nothing of the rules of a verdict. Its record is the counter that a board sends from 0 on; it reads the topic as
docs/sinks.md says, and compares with what the runs say of themselves.
"""

import contextlib
import json
import signal
import time
from dataclasses import dataclass, field

import numpy as np
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from support.broker import Broker
from support.faults.schedule import Schedule
from support.faults.site import BROKER, Outcome, fault
from support.lab import Lab, fade
from support.netns import FEBS, PATIENCE, sh, wait_for

TOPIC = "words"


@dataclass
class Words:
    """The words of a run in the topic."""

    data: bytearray = field(default_factory=bytearray)
    replaced: int = 0
    hole: int = 0  # bytes that are missing
    end: dict | None = None

    def add(self, first, data, end):
        self.hole += max(first - len(self.data), 0)
        self.replaced += max(len(self.data) - first, 0)
        del self.data[first:]
        self.data += data
        self.end = json.loads(end) if end else None


class Trial:
    """One try: broker, boards, runs, and what is wrong at the moment."""

    def __init__(self, site):
        self.site, self.random, self.net = site, site.random, site.net
        self.lab, self.done, self.schedule, self.away = Lab(self.net), [], Schedule(), 0
        folder = site.folder / "broker"
        folder.mkdir()
        self.within = ["ip", "netns", "exec", self.net.pc_ns]
        self.broker = Broker(folder, host=BROKER, within=self.within)
        self.is_durable = self.random.random() < 0.6
        durable = 'confirm = "durable"\n' if self.is_durable else ""
        sinks = [f'"kafka:{self.broker.address}/{TOPIC}"'] + ['"file:left.dat"'] * (self.random.random() < 0.3)
        self.lab.write(durable + fade("left", more=f"sinks = [{', '.join(sinks)}]"))
        self.runs = []
        self.start_board()
        self.start_run()
        self.net.wait_for_frames(20)

    def start_board(self):
        # The cable may be out.
        sh("ip", "-n", self.net.board_ns, "link", "set", "feb0", "up")
        gap, loss = self.random.choice([100, 200]), self.random.choice([0, 0.01])
        self.board = self.net.sim("--boards", 2, "--gap", gap, "--link", f"loss={loss}")

    def start_run(self):
        self.runs.append(self.lab.start())

    def run(self):
        return next((run for run in reversed(self.runs) if run.popen.poll() is None), None)

    def end_of(self, run):
        """Waits until a run has ended, while other things go on."""
        self.schedule.run(lambda: run.popen.poll() is not None)

    # What goes wrong.

    def run_killed(self):
        if run := self.run():
            run.signal(signal.SIGKILL)
            run.popen.wait()
        self.start_run()

    def run_ended(self):
        if run := self.run():
            run.signal(self.random.choice([signal.SIGINT, signal.SIGTERM]))
            self.end_of(run)
        self.start_run()

    def run_stalled(self):
        self.stop_for_a_while(self.run() and self.run().popen)

    def second_program(self):
        """The same run, or a program that writes what another board sends into the topic."""
        if self.random.random() < 0.5:
            self.start_run()
        else:
            self.net.receive("--sink", f"kafka:{self.broker.address}/{TOPIC}", "--packets", 20, feb=FEBS[1])

    def board_killed(self):
        self.board.signal(signal.SIGKILL)
        self.board.popen.wait()
        self.site.pause(0, 1)
        self.start_board()

    def board_stalled(self):
        self.stop_for_a_while(self.board.popen)

    def stop_for_a_while(self, process):
        if process:
            process.send_signal(signal.SIGSTOP)
            self.schedule.at(self.random.uniform(0.2, 4), "continue", lambda: process.poll() is None and process.send_signal(signal.SIGCONT))

    def broker_killed(self):
        if not self.away:
            self.broker.kill()
            self.away += 1
            self.schedule.at(self.random.uniform(0, 2), "broker", lambda: self.back(self.broker.start))

    def broker_stalled(self):
        if not self.away:
            self.broker.process.send_signal(signal.SIGSTOP)
            self.away += 1
            self.schedule.at(
                self.random.uniform(0.2, 12), "broker continues", lambda: self.back(lambda: self.broker.process.send_signal(signal.SIGCONT))
            )

    def network_cut(self):
        if not self.away:
            route = ("blackhole", f"{BROKER}/32", "table", "local")
            sh("ip", "-n", self.net.pc_ns, "route", "add", *route)
            self.away += 1
            self.schedule.at(
                self.random.uniform(0.2, 4), "network", lambda: self.back(lambda: sh("ip", "-n", self.net.pc_ns, "route", "delete", *route))
            )

    def back(self, action):
        action()
        self.away -= 1

    def cable_out(self):
        sh("ip", "-n", self.net.board_ns, "link", "set", "feb0", "down")
        self.schedule.at(self.random.uniform(0.1, 2), "cable", lambda: sh("ip", "-n", self.net.board_ns, "link", "set", "feb0", "up"))

    def other_producer(self):
        """Data without the headers of words, and words of another run."""
        if self.away:
            return
        producer = self.client(Producer, {"message.timeout.ms": 5000})
        headers = self.random.choice([None, {"run": b"other"}, {"run": b"other", "first_byte": b"0"}, {"run": b"\xff", "first_byte": b"x"}])
        producer.produce(TOPIC, self.random.randbytes(self.random.randrange(100)), partition=0, headers=headers)
        producer.flush(5)

    def client(self, kind, settings):
        """Of the brokers, in the network of the computer."""
        return self.net.in_namespace(self.net.pc_ns, lambda: kind({"bootstrap.servers": self.broker.address} | settings))

    # The end.

    def finish(self):
        """Everything is well again; a last run goes on, or begins, and is ended."""
        self.schedule.poll(everything=True)
        if self.run() is None:
            self.start_run()
            with contextlib.suppress(AssertionError):
                wait_for(self.takes_data, 20)
        self.site.pause(0, 1.5)
        while run := self.run():
            run.signal(signal.SIGTERM)
            self.end_of(run)

    def takes_data(self):
        hashes = max(self.lab.runs.glob("run_*/left.hashes"), default=None)
        return self.run() is None or hashes and hashes.stat().st_size > 64

    def words(self):
        """{run: Words} of the topic."""
        consumer = self.client(Consumer, {"group.id": "judge", "isolation.level": "read_committed", "enable.auto.commit": False,
                                          "enable.partition.eof": True})  # fmt: skip
        found, end = {}, time.monotonic() + PATIENCE
        consumer.assign([TopicPartition(TOPIC, 0, 0)])
        while True:
            assert time.monotonic() < end, "the topic cannot be read"
            message = consumer.poll(0.5)
            if message is None:
                continue
            if message.error():
                if message.error().code() == KafkaError._PARTITION_EOF:
                    break
                continue
            headers = dict(message.headers() or ())
            with contextlib.suppress(KeyError, ValueError):
                run, first = headers["run"].decode(), int(headers["first_byte"])
                found.setdefault(run, Words()).add(first, message.value() or b"", headers.get("end"))
        consumer.close()
        return found

    def close(self):
        self.schedule.poll(everything=True)
        self.broker.close()


def judge(trial, words):
    """What is wrong, in words; how many words were compared; and how many of complete runs."""
    wrong, compared, complete = [], 0, 0
    for process in trial.runs:
        status, _, err = process.finish()
        # If not complete, a reason is named. -9: it was killed.
        if status not in (0, -signal.SIGKILL, -signal.SIGTERM, -signal.SIGINT) and "fadelink: " not in err:
            wrong.append(f"status {status} without a reason: {err!r}")
    manifests = [json.loads(path.read_text()) for path in sorted(trial.lab.runs.glob("run_*/manifest.json"))]
    for manifest in manifests:
        name = f"{manifest['computer']} {manifest['run']} {manifest['begin']['utc']}"
        found = words.get(name, Words())
        data = np.frombuffer(bytes(found.data[: len(found.data) // 8 * 8]), "<u8")
        compared += data.size
        if manifest["state"] != "complete":
            if manifest["state"] == "incomplete" and not any(board.get("reasons") for board in manifest["boards"]):
                wrong.append(f"run {manifest['run']} is incomplete without a reason")
            continue
        (board,) = manifest["boards"]
        count = board["bytes"] // 8 - board["filler_words"]
        complete += count
        said = f"run {manifest['run']} is complete with {board['bytes']} bytes, the topic has {len(found.data)}"
        if found.hole or len(found.data) != board["bytes"] or found.end != {"complete": True, "dropped_bytes": 0}:
            wrong.append(f"{said}, {found.hole} are missing, end {found.end}")
        elif not (data[:count] == np.arange(count, dtype="<u8")).all():
            wrong.append(f"{said}, other words from {np.flatnonzero(data[:count] != np.arange(count, dtype='<u8'))[0]} on")
    return wrong, compared, complete


KINDS = [
    Trial.run_killed, Trial.run_ended, Trial.run_stalled, Trial.second_program, Trial.board_killed, Trial.board_stalled,
    Trial.broker_killed, Trial.broker_stalled, Trial.network_cut, Trial.cable_out, Trial.other_producer,
]  # fmt: skip


@fault(
    "topics-anything", "`run` with a topic of words, board and broker: killed, stopped, ended, twice, cut off; other messages in the "
    "topic; several at random moments", "words", "what is called complete is what the board sent, in the topic, each word once",
)  # fmt: skip
def topics_anything(site):
    r = site.random
    kinds = r.sample(KINDS, r.randrange(1, 4))
    steps = [(r.uniform(0, 1.5), r.choice(kinds)) for _ in range(r.randrange(1, 6))]
    with contextlib.closing(Trial(site)) as trial:
        for pause, happens in steps:
            time.sleep(pause)
            trial.schedule.poll()
            trial.done.append(happens.__name__)
            with contextlib.suppress(KafkaException):
                happens(trial)
        trial.finish()
        wrong, compared, complete = judge(trial, trial.words())
        if wrong:
            raise AssertionError("\n".join([*wrong, f"{trial.done}, durable: {trial.is_durable}"]))
    return Outcome(complete, 0, compared - complete)

"""Words of boards in Apache Kafka: each once, also when the broker or the receiver is killed."""

import json
import random
import signal
import sys
import time
from pathlib import Path

import numpy
import pytest
from support.broker import Broker
from support.lab import Lab, fade, words
from support.netns import FEBS, sh, wait_for
from support.paths import SEED
from support.sweep import long
from system.test_monitoring import get

READER = Path(__file__).parents[1] / "support/topic_reader.py"


class Topics:
    """A broker in the computer's namespace, and what its topics have."""

    def __init__(self, bench):
        self.bench = bench
        sh("ip", "-n", bench.pc_ns, "link", "set", "lo", "up")
        self.broker = Broker(bench.tmp, within=["ip", "netns", "exec", bench.pc_ns])
        self.address = self.broker.address

    def read(self, topic):
        """The words of the newest run, and what its messages say."""
        path = self.bench.tmp / f"{topic}.words"
        status, out, err = self.bench.start(self.bench.pc_ns, sys.executable, READER, self.address, topic, path).finish()
        assert status == 0, err
        return words(path), json.loads(out)


@pytest.fixture
def topics(bench):
    topics = Topics(bench)
    yield topics
    topics.broker.close()


def is_counter(found):
    return (found == numpy.arange(found.size, dtype="<u8")).all()


def test_receive_into_topics(topics):
    """Of several boards; a broker that is not there is an error."""
    bench = topics.bench
    bench.sim("--boards", 2, "--link", "loss=0.01")
    sink = f"kafka:{topics.address}/words-{{feb}}"
    status, out, err = bench.receive("--feb", FEBS[1], "--sink", sink, "--verify", "counter", "--packets", 400).finish()
    result = json.loads(out)
    assert status == 0, err
    for feb in result["febs"]:
        found, said = topics.read("words-" + feb["feb"].replace(":", "-"))
        assert found.size * 8 == feb["bytes"] >= 400 * 8192
        assert is_counter(found[: found.size - feb["filler_words"]])
        assert said["largest"] <= 256 << 10 and said["replaced_bytes"] == 0
        assert said["end"] == {"complete": True, "dropped_bytes": 0}
        assert feb["sinks"][0]["written"] == feb["sinks"][0]["intact"] == feb["bytes"]

    status, _, err = bench.receive("--sink", "kafka:127.0.0.1:9/words").finish()
    assert status == 1 and "no broker answers at 127.0.0.1:9" in err, err


@pytest.mark.parametrize("broker", ["up", long("restarted")])
def test_a_second_program_shuts_the_first_one_out(topics, broker):
    """Also when both look for a broker that comes back: the first one, which tries again and again, does not get the topic back."""
    bench = topics.bench
    bench.sim("--boards", 2)
    sink = ("--sink", f"kafka:{topics.address}/shared")
    data = bench.tmp / "first.dat"
    first = bench.receive(*sink, "--out", data)
    wait_for(lambda: data.exists() and data.stat().st_size > 4 << 20)
    if broker == "restarted":
        topics.broker.kill()
        topics.broker.start()
    status, out, err = bench.receive(*sink, "--packets", 10, feb=FEBS[1]).finish()
    assert status == 0, err
    written = json.loads(out)["febs"][0]["bytes"]
    status, _, err = first.finish()
    assert status == 3 and "another program writes into topic shared of" in err, err
    found, said = topics.read("shared")
    assert found.size * 8 == written and said["end"]["complete"] and said["replaced_bytes"] == 0


@pytest.mark.parametrize("source", [[], long(["--words", 10_000])])
def test_a_sink_says_that_its_brokers_are_away(topics, source):
    """Whether it has something to write or not; and is well when they are back."""
    bench = topics.bench
    bench.sim(*source)
    receiver = bench.receive("--sink", f"kafka:{topics.address}/words", "--metrics", "127.0.0.1:9777")
    wait_for(lambda: get(bench, 9777, "/health")[0] == 200)
    topics.broker.kill()
    wait_for(lambda: get(bench, 9777, "/health")[0] == 503)
    troubles = json.loads(get(bench, 9777, "/health")[1])["troubles"]
    assert len(troubles) == 1 and f"kafka:{topics.address}/words: Kafka: no broker answers" in troubles[0]
    topics.broker.start()
    wait_for(lambda: get(bench, 9777, "/health")[0] == 200)
    receiver.signal(signal.SIGINT)
    status, out, err = receiver.finish()
    assert status == 0 and json.loads(out)["verdict"] == "complete", err
    assert topics.read("words")[1]["end"]["complete"]


@pytest.mark.long
@pytest.mark.parametrize("rounds", [1, 8])
def test_durable_in_kafka_alone(topics, rounds):
    """The receiver is killed again and again, and the broker in between: each confirmed word is in the topic, once."""
    moments = random.Random(f"{SEED} {rounds}")
    lab = Lab(topics.bench)
    sim = lab.bench.sim("--link", "loss=0.01")
    sink = f'["kafka:{topics.address}/words-{{board}}"]'
    lab.write('confirm = "durable"\n' + fade("left", more=f"sinks = {sink}"))
    hashes = lab.runs / "run_000001/left.hashes"
    size = lambda: hashes.exists() and hashes.stat().st_size  # noqa: E731
    for number in range(rounds):
        process = lab.start()
        before = size()
        wait_for(lambda: size() > before)
        # The moment of the kill, and how long the broker is away, are random.
        time.sleep(moments.uniform(0, 0.5))
        if rounds == 1 or number % 2:
            topics.broker.kill()
            time.sleep(moments.uniform(0, 1))
            topics.broker.start()
            before = size()
            wait_for(lambda: size() > before)
        process.signal(signal.SIGKILL)
        process.finish()
    process = lab.start()
    before = size()
    wait_for(lambda: size() > before)
    process.signal(signal.SIGTERM)
    status, _, err = process.finish()
    manifest = lab.manifest()
    (board,) = manifest["boards"]
    assert status == 0 and manifest["state"] == "complete" and len(manifest["resumed"]) == rounds, (err, manifest)
    found, said = topics.read("words-left")
    assert said["replaced_bytes"] == 0 and said["end"]["complete"]
    assert found.size * 8 == board["bytes"] == board["hashes"]["bytes"] and board["restarted"] is None
    assert is_counter(found[: found.size - board["filler_words"]])
    assert lab.check() == (0, {"good": True, "run": 1, "state": "complete", "bytes": board["bytes"], "findings": []})
    assert not lab.bench.end_sim(sim)["boards"][0]["running"]

    # Another run in the same topic, and a check that cannot read it.
    lab.bench.sim()
    status, manifest, err = lab.run("--duration", "1")
    assert status == 0, err
    found, said = topics.read("words-left")
    assert is_counter(found[: found.size - manifest["boards"][0]["filler_words"]]) and lab.check()[0] == 0
    topics.broker.kill()
    status, checked = lab.check()
    assert status == 3 and "its words cannot be checked: Kafka: no broker answers" in checked["findings"][0]


def test_a_board_that_was_reset_replaces_what_was_not_confirmed(topics):
    """The topic has words that the file has not: when other words come, they replace them."""
    lab = Lab(topics.bench)
    sim = lab.bench.sim()
    lab.write('confirm = "durable"\n' + fade("left", more=f'sinks = ["file:left.dat", "kafka:{topics.address}/left"]'))
    process = lab.start()
    data = lab.runs / "run_000001/left.dat"
    wait_for(lambda: data.exists() and data.stat().st_size > 2 << 20)
    process.signal(signal.SIGKILL)
    process.finish()
    lab.bench.end_sim(sim)
    # As after a power cut that cost the file its end, of what the board may not know yet that it is safe.
    certain = min(data.stat().st_size, topics.read("left")[0].nbytes) - (64 << 10)
    with open(data, "r+b") as file:
        file.truncate(certain)
    lab.bench.sim()
    status, _, err = lab.start("--duration", "2").finish()
    (board,) = lab.manifest(1)["boards"]
    assert status == 3 and "a new one begins behind byte" in err, err
    found, said = topics.read("left")
    restarted = board["restarted"]
    assert restarted <= certain and said["replaced_bytes"] > 0 and board["verdict"] == "incomplete"
    assert (found == words(data)).all() and is_counter(found[: restarted // 8]) and found[restarted // 8] == 0
    assert lab.check(1)[1]["findings"] == ["the run is incomplete: data of it is missing, see boards in its manifest"]


def test_a_topic_that_never_takes_the_words_ends_the_run_at_once(topics):
    """No other try helps: what is written is larger than the topic is let to take."""
    bench = topics.bench
    bench.sim()
    make = f"""
from confluent_kafka.admin import AdminClient, NewTopic
client = AdminClient({{"bootstrap.servers": "{topics.address}"}})
for made in client.create_topics([NewTopic("small", 1, 1, config={{"max.message.bytes": "20000"}})]).values():
    made.result()
"""
    assert bench.start(bench.pc_ns, sys.executable, "-c", make).finish()[0] == 0
    begun = time.monotonic()
    status, out, err = bench.receive("--sink", f"kafka:{topics.address}/small").finish()
    (feb,) = json.loads(out)["febs"]
    assert status == 3 and [reason["reason"] for reason in feb["reasons"]] == ["sink_failed"], (feb, err)
    assert "topic small does not take what is written to it" in err and "too large" in err, err
    assert time.monotonic() - begun < 15

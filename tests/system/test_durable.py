"""`confirm = "durable"`: a packet is confirmed when it is on the disk, and a run goes on after its program was killed."""

import random
import signal
import time

import numpy
import pytest
from support.netns import report, wait_for
from support.paths import SEED
from system.test_run import Lab, fade, words

CORES = {"fade10g": [], "fade1": ["--protocol", "fade1"]}


@pytest.fixture
def lab(bench):
    return Lab(bench)


def is_counter(found):
    return (found == numpy.arange(found.size, dtype="<u8")).all()


@pytest.mark.parametrize("protocol", CORES)
def test_every_word_is_confirmed_when_it_is_on_the_disk(bench, protocol):
    sim = bench.sim(*CORES[protocol], "--link", "loss=0.01")
    out = bench.tmp / "data"
    receiver = bench.receive("--out", out, "--verify", "counter", "--packets", 300, "--confirm", "durable")
    status, result = report(receiver.finish())
    assert status == 0 and result["febs"][0]["verified"], result
    assert not bench.end_sim(sim)["boards"][0]["running"]


@pytest.mark.parametrize("protocol", CORES)
def test_a_run_goes_on_after_it_was_killed(lab, protocol):
    """Killed again and again at random moments: no confirmed word is missing, and none is there twice."""
    moments = random.Random(f"{SEED} {protocol}")
    sim = lab.bench.sim(*CORES[protocol], "--link", "loss=0.01")
    lab.write('confirm = "durable"\nsinks = ["file:{board}.dat,roll=1M"]\n' + fade("left"))
    data = lab.runs / "run_000001"
    size = lambda: sum(path.stat().st_size for path in data.glob("left*.dat"))  # noqa: E731
    for _ in range(5):
        process = lab.start()
        before = size()
        wait_for(lambda: size() > before)
        time.sleep(moments.uniform(0, 0.5))
        process.signal(signal.SIGKILL)
        process.finish()
    lab.write(lab.file.read_text())
    process = lab.start()
    before = size()
    wait_for(lambda: size() > before)
    process.signal(signal.SIGTERM)
    status, _, err = process.finish()
    manifest = lab.manifest()
    board = manifest["boards"][0]
    assert status == 0 and manifest["state"] == "complete", (err, manifest)
    assert manifest["run"] == 1 and len(manifest["resumed"]) == 5 and board["restarted"] is None
    parts = [data / "left.dat", *sorted(data.glob("left.0*.dat"))]
    found = numpy.concatenate([words(part) for part in parts])
    assert is_counter(found[: found.size - board["filler_words"]]) and found.size * 8 == board["bytes"]
    assert board["verified"] and lab.check()[0] == 0
    assert not lab.bench.end_sim(sim)["boards"][0]["running"]

"""`confirm = "durable"`: a packet is confirmed when it is on the disk, and a run goes on after its program was killed."""

import errno
import json
import os
import random
import signal
import time

import numpy
import pytest
from support import faults
from support.netns import FEBS, report, wait_for
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
        # The moment of the kill is random.
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


def test_a_run_of_confirmation_in_memory_is_closed_after_a_crash(lab):
    """What is certain of it is kept, and the next run begins."""
    lab.bench.sim()
    lab.write('sinks = ["file:{board}.dat,roll=4M", "hdf5:{board}.h5"]\n' + fade("left"))
    process = lab.start()
    # What is certain of it: the number in front of the last record of hashes, which are 56 bytes long.
    certain = lambda: int.from_bytes((lab.runs / "run_000001/left.hashes").read_bytes()[-56:][:8], "little")  # noqa: E731
    wait_for(lambda: len(list(lab.runs.glob("run_000001/left.0*.dat"))) > 2 and certain() >= 8 << 20)
    process.signal(signal.SIGKILL)
    process.finish()
    assert lab.check(1)[1]["findings"][0].startswith("the run is running: it goes on, or its program was ended by force")
    status, out, err = lab.start("--duration", "1").finish()
    assert status == 0 and "run 1 was ended by force" in err, err
    first, second = lab.manifest(1), lab.manifest(2)
    board = first["boards"][0]
    assert (first["state"], first["ended_by"], second["state"]) == ("crashed", "crash", "complete")
    data = lab.runs / "run_000001"
    found = numpy.concatenate([words(part) for part in [data / "left.dat", *sorted(data.glob("left.0*.dat"))]])
    assert is_counter(found) and found.size * 8 == board["bytes"] == board["hashes"]["bytes"] >= 8 << 20
    status, checked = lab.check(1)
    assert status == 3 and [finding for finding in checked["findings"] if "crashed" not in finding] == ["left.h5.part: it was not finished"]


def test_a_board_that_was_reset_begins_anew_in_the_same_run(lab):
    sim = lab.bench.sim()
    lab.write('confirm = "durable"\n' + fade("left"))
    process = lab.start()
    data = lab.runs / "run_000001/left.dat"
    wait_for(lambda: data.exists() and data.stat().st_size > 1 << 20)
    process.signal(signal.SIGKILL)
    process.finish()
    lab.bench.end_sim(sim)
    before = data.stat().st_size
    lab.bench.sim()
    status, _, err = lab.start("--duration", "2").finish()
    manifest = lab.manifest(1)
    board = manifest["boards"][0]
    # What the board had not sent when it was reset is lost.
    assert status == 3 and "a new one begins behind byte" in err, err
    assert [reason["reason"] for reason in board["reasons"]] == ["restarted"] and manifest["state"] == "incomplete"
    restarted = board["restarted"]
    assert 0 < restarted <= before and manifest["resumed"][0]["bytes"] == {"left": restarted}
    found = words(data)
    assert is_counter(found[: restarted // 8]) and is_counter(found[restarted // 8 :]) and found.size * 8 > restarted
    assert board["wrong_words"] == 0 and lab.check(1)[1]["findings"] == ["the run is incomplete: data of it is missing, see boards in its manifest"]


@pytest.mark.parametrize("protocol", ["fade10g", "fade1"])
@pytest.mark.parametrize("only_sync, error", [(False, errno.ENOSPC), (True, errno.EIO), (True, errno.EROFS)])
def test_a_run_goes_on_after_its_sink_has_failed(lab, protocol, only_sync, error):
    """What no file has is not confirmed: the boards keep it, and the same run goes on when the disk is well again."""
    lab.bench.sim("--protocol", protocol, "--phy", "gmii", "--boards", 2)
    more = f'protocol = "{protocol}"\n'
    lab.write('confirm = "durable"\n' + fade("left", 0, more) + fade("right", 1, more))
    failing = faults.environment(disk=lab.runs / "run_000001/left.dat", after=3 << 20, only_sync=only_sync, error=error)
    status, _, err = lab.bench.fadelink("run", lab.file, "--quiet", env=failing).finish()
    manifest = lab.manifest(1)
    assert status == 3 and manifest["state"] == "running" and "run 1 goes on when this is started again" in err, (err, manifest)
    (left,) = (board for board in manifest["boards"] if board["name"] == "left")
    assert left["verdict"] == "incomplete" and "sink_failed" in [reason["reason"] for reason in left["reasons"]]
    assert os.strerror(error) in left["error"]
    status, _, err = lab.start("--duration", "2").finish()
    manifest = lab.manifest()
    assert status == 0 and manifest["run"] == 1 and manifest["state"] == "complete" and len(manifest["resumed"]) == 1, err
    for board in manifest["boards"]:
        found = words(lab.folder(1) / f"{board['name']}.dat")
        assert board["restarted"] is None and board["verified"]
        assert is_counter(found[: found.size - board["filler_words"]]) and found.size * 8 == board["bytes"] > 3 << 20
    assert lab.check(1)[0] == 0


def test_a_run_goes_on_after_its_sink_has_failed_at_the_end(lab):
    """Its last packets are not confirmed either: the description of the file cannot be written a second time."""
    lab.bench.sim()
    lab.write('confirm = "durable"\n' + fade("left"))
    failing = faults.environment(disk=lab.runs / "run_000001/left.dat.json", after=400, error=errno.EIO)
    status, _, err = lab.bench.fadelink("run", lab.file, "--quiet", "--duration", "1", env=failing).finish()
    manifest = lab.manifest(1)
    assert status == 3 and manifest["state"] in ("running", "stopping"), (err, manifest)
    assert [reason["reason"] for reason in manifest["boards"][0]["reasons"]] == ["sink_failed"], manifest["boards"]
    status, _, err = lab.start("--duration", "1").finish()
    (board,) = lab.manifest()["boards"]
    found = words(lab.folder(1) / "left.dat")
    assert status == 0 and lab.manifest()["run"] == 1 and board["restarted"] is None, (err, board)
    assert is_counter(found) and found.size * 8 == board["bytes"]


def test_an_end_that_nobody_has_seen_is_not_confirmed(lab):
    """STOP was sent, the program was killed, and the board was reset before the next one asks for its last packet."""
    sim = lab.bench.sim()
    lab.write('confirm = "durable"\n' + fade("left"))
    process = lab.start()
    data = lab.runs / "run_000001/left.dat"
    wait_for(lambda: data.exists() and data.stat().st_size > 1 << 20)
    process.signal(signal.SIGKILL)
    process.finish()
    lab.bench.end_sim(sim)
    manifest = lab.folder(1) / "manifest.json"
    content = json.loads(manifest.read_text())
    content["state"] = "stopping"
    manifest.write_text(json.dumps(content))
    lab.bench.sim()
    status, _, err = lab.start().finish()
    (board,) = lab.manifest(1)["boards"]
    assert status == 3 and lab.manifest(1)["state"] == board["verdict"] == "end_not_confirmed", (err, board)
    assert "END NOT CONFIRMED" in err


def test_another_experiment_does_not_go_on_with_the_run(lab):
    lab.bench.sim()
    lab.write('confirm = "durable"\n' + fade("left"))
    process = lab.start()
    data = lab.runs / "run_000001/left.dat"
    wait_for(lambda: data.exists() and data.stat().st_size > 1 << 20)
    process.signal(signal.SIGKILL)
    process.finish()
    lab.write('title = "other"\nconfirm = "durable"\n' + fade("left"))
    status, _, err = lab.start("--duration", "1").finish()
    assert status == 0 and lab.manifest(1)["state"] == "crashed" and lab.manifest(2)["state"] == "complete", err


def test_errors_of_receive(bench):
    for words_, expected in [
        (["--iface", "eth0", "--feb", FEBS[0]], "--confirm durable: expected a file or kafka with policy=wait"),
        (["--iface", "eth0", "--feb", FEBS[0], "--sink", "hdf5:x"], "--confirm durable: `hdf5:x`: expected file or kafka, or share"),
        (["--tcp", 10000], "--confirm durable: not with --tcp"),
        (["--udp", 10000], "--confirm durable: not with --tcp"),
    ]:
        status, _, err = bench.run("receive", "--confirm", "durable", *words_)
        assert status == 2 and expected in err, err

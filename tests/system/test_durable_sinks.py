"""`confirm = "durable"`: what is confirmed is on the disk, and sinks that fail."""

import errno
import os

import pytest
from support import faults
from support.crate import reasons
from support.lab import end, fade, is_counter, words
from support.netns import FEBS, report, wait_for

CORES = {"fade10g": [], "fade1": ["--protocol", "fade1"]}


@pytest.mark.parametrize("protocol", CORES)
def test_every_word_is_confirmed_when_it_is_on_the_disk(bench, protocol):
    sim = bench.sim(*CORES[protocol], "--link", "loss=0.01")
    out = bench.tmp / "data"
    receiver = bench.receive("--out", out, "--verify", "counter", "--packets", 300, "--confirm", "durable")
    status, result = report(receiver.finish())
    assert status == 0 and result["febs"][0]["verified"], result
    assert not bench.end_sim(sim)["boards"][0]["running"]


@pytest.mark.parametrize("protocol", ["fade10g", "fade1"])
@pytest.mark.parametrize("only_sync, error", [(False, errno.ENOSPC), (True, errno.EIO), (True, errno.EROFS)])
def test_a_run_goes_on_after_its_sink_has_failed(lab, protocol, only_sync, error):
    """What no file has is not confirmed: the boards keep it, and the same run goes on when the disk is well again."""
    lab.bench.sim("--protocol", protocol, "--phy", "gmii", "--boards", 2)
    more = f'protocol = "{protocol}"\n'
    lab.write('confirm = "durable"\n' + fade("left", 0, more) + fade("right", 1, more))
    room, enough = (3 << 20, 4 << 20) if protocol == "fade10g" else (3 << 18, 4 << 18)
    failing = faults.environment(disk=lab.runs / "run_000001/left.dat", after=room, only_sync=only_sync, error=error)
    status, _, err = lab.bench.fadelink("run", lab.file, "--quiet", env=failing).finish()
    manifest = lab.manifest(1)
    assert status == 3 and manifest["state"] == "running" and "run 1 goes on when this is started again" in err, (err, manifest)
    (left,) = (board for board in manifest["boards"] if board["name"] == "left")
    assert left["verdict"] == "incomplete" and "sink_failed" in reasons(left)
    assert os.strerror(error) in left["error"]
    process = lab.start()
    wait_for(lambda: all((lab.folder(1) / f"{name}.dat").stat().st_size > enough for name in ("left", "right")))
    status, err = end(process)
    manifest = lab.manifest()
    assert status == 0 and manifest["run"] == 1 and manifest["state"] == "complete" and len(manifest["resumed"]) == 1, err
    for board in manifest["boards"]:
        found = words(lab.folder(1) / f"{board['name']}.dat")
        assert board["restarted"] is None and board["verified"]
        assert is_counter(found[: found.size - board["filler_words"]]) and found.size * 8 == board["bytes"] > enough
    assert lab.check(1)[0] == 0


def test_a_run_goes_on_after_its_sink_has_failed_at_the_end(lab):
    """The description of the file cannot be written a second time: nothing is lost, and nothing is called complete that may not be."""
    lab.bench.sim()
    lab.write('confirm = "durable"\n' + fade("left"))
    failing = faults.environment(disk=lab.runs / "run_000001/left.dat.json", after=300, error=errno.EIO)
    status, _, err = lab.bench.fadelink("run", lab.file, "--quiet", "--duration", "1", env=failing).finish()
    manifest = lab.manifest(1)
    assert status == 3 and manifest["state"] in ("running", "stopping"), (err, manifest)
    assert reasons(manifest["boards"][0]) == ["sink_failed"], manifest["boards"]
    status, _, err = lab.start("--duration", "1").finish()
    (board,) = lab.manifest()["boards"]
    found = words(lab.folder(1) / "left.dat")
    assert lab.manifest()["run"] == 1 and board["restarted"] is None, (err, board)
    # If the board had its last confirmation before the sink failed, nobody has recorded that it was at its end.
    assert (status, board["verdict"]) in ((0, "complete"), (3, "end_not_confirmed")), (err, board)
    assert is_counter(found) and found.size * 8 == board["bytes"]


def test_errors_of_receive(bench):
    for words_, expected in [
        (["--iface", "eth0", "--feb", FEBS[0]], "--confirm durable: expected a file or kafka with policy=wait"),
        (["--iface", "eth0", "--feb", FEBS[0], "--sink", "hdf5:x"], "--confirm durable: `hdf5:x`: expected file or kafka, or share"),
        (["--tcp", 10000], "--confirm durable: the kernel confirms the data of TCP; expected memory"),
        (["--udp", 10000], "--confirm durable: nothing confirms the data of UDP; expected memory"),
    ]:
        status, _, err = bench.run("receive", "--confirm", "durable", *words_)
        assert status == 2 and expected in err, err

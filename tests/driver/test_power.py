"""Power cuts: the virtual machine of a receiver is ended at random moments, and its run goes on after the next boot."""

import json
import os
import random
import shutil
import subprocess
import time

import numpy
import pytest
from support.guest import Guest
from support.netns import FEBS, Bench
from support.paths import SEED

EXPERIMENT = f"""
folder = "/data/runs"
confirm = "durable"
sinks = ["file:{{board}}.dat,roll=8M"]
disk = {{ reserve = "32M" }}
[[fade]]
name = "left"
interface = "eth0"
mac = "{FEBS[0]}"
verify = "counter"
PROTOCOL
"""
MOUNT = "mkdir -p /data; mount -t ext4 /dev/vda /data"
RUN = "fadelink run /data/experiment.toml --quiet"


class Computer:
    """A computer with a disk, and boards on its cable."""

    def __init__(self, bench):
        self.bench, self.disk, self.guest = bench, bench.tmp / "disk", None
        with open(self.disk, "wb") as file:
            file.truncate(512 << 20)
        subprocess.run([shutil.which("mkfs.ext4", path="/usr/sbin:/sbin:/usr/bin"), "-q", "-F", self.disk], check=True)

    def boot(self):
        self.guest = Guest(self.bench, disk=self.disk)

    def cut(self):
        """Ends it as a power cut does: what its kernel had not written to the disk is gone."""
        self.guest.close()
        self.guest = None

    def files(self):
        """The files of the disk, as they are on it."""
        out = self.bench.tmp / "files"
        out.mkdir()
        debugfs = shutil.which("debugfs", path="/usr/sbin:/sbin:/usr/bin")
        subprocess.run([debugfs, "-R", f"rdump runs {out}", self.disk], check=True, capture_output=True)
        return out / "runs"


@pytest.fixture
def computer(tmp_path):
    bench = Bench(tmp_path)
    computer = Computer(bench)
    yield computer
    if computer.guest:
        computer.guest.close()
    bench.close()


@pytest.mark.skipif(os.environ.get("FADELINK_KERNEL") == "debug", reason="that kernel has no file system for disks")
@pytest.mark.long
@pytest.mark.parametrize("protocol", ["fade10g", "fade1"])
def test_a_run_goes_on_after_power_cuts(computer, protocol, cuts=8):
    """No confirmed word is missing and none is there twice, whenever the power was cut."""
    moments = random.Random(f"{SEED} {protocol} {cuts}")
    experiment = EXPERIMENT.replace("PROTOCOL", f'protocol = "{protocol}"')
    computer.boot()
    computer.guest.run(f"{MOUNT}\ncat >/data/experiment.toml <<EOF\n{experiment}\nEOF\nsync\numount /data")
    # At 1 Gb/s: the delays of a board that was alone for long last hundreds of times longer in a simulation of 10 Gb/s.
    sim = ["--packet-socket", "--protocol", protocol, "--phy", "gmii", "--link", "loss=0.01"]
    boards = computer.bench.sim(*sim, iface="fade0")
    for _ in range(cuts):
        computer.guest.start(f"set -e; {MOUNT}; {RUN}")
        computer.guest.wait("run 1 ")
        time.sleep(moments.uniform(0, 4))
        assert computer.guest.is_busy()
        computer.cut()
        computer.boot()
    run = "/data/runs/run_000001"
    size = f"$(du -sk {run} | cut -f1)"
    out = computer.guest.run(f"""set -e
        {MOUNT}
        before={size}
        {RUN} & R=$!
        until [ {size} -gt $((before + 800)) ]; do sleep 0.2; done
        kill -INT $R; wait $R
        fadelink check {run}
        umount /data""")
    assert "complete, and as it was received" in out
    folder = computer.files() / "run_000001"
    manifest = json.loads((folder / "manifest.json").read_text())
    board = manifest["boards"][0]
    assert manifest["state"] == "complete" and len(manifest["resumed"]) == cuts and board["verified"]
    assert board["restarted"] is None
    parts = [folder / "left.dat", *sorted(folder.glob("left.0*.dat"))]
    found = numpy.concatenate([numpy.fromfile(part, dtype="<u8") for part in parts])
    found = found[: found.size - board["filler_words"]]
    assert found.size > 100_000 and (found == numpy.arange(found.size, dtype="<u8")).all()
    assert not computer.bench.end_sim(boards)["boards"][0]["running"]

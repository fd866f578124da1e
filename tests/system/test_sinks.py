"""Sinks of `fadelink receive`: files, HDF5, other programs, and what a slow one does to the board."""

import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import h5py
import numpy as np
import pytest
from support import ring_reader
from support.netns import FEBS, report, sh, wait_for

READER = ring_reader.__file__


def assert_counter(path, words):
    data = np.fromfile(path, dtype="<u8")
    assert len(data) == words and (data == np.arange(words, dtype="u8")).all(), path


def reader(socket, *options):
    return subprocess.Popen([sys.executable, READER, socket, *map(str, options)], stdout=subprocess.PIPE, text=True)


@pytest.fixture
def folder(bench):
    """A folder on a real disk, for direct I/O."""
    folder = Path(os.environ.get("FADELINK_DISK", Path(__file__).parents[2] / "build")) / f"sinks-{os.getpid()}"
    folder.mkdir(parents=True)
    yield folder
    sh("rm", "-r", folder)


def test_several_sinks_at_once(bench, folder):
    """All get the same words, the last packet partly filled (nearly always); two readers share the ring."""
    bench.sim("--link", "loss=0.01")
    share = folder / "share"
    sinks = [f"file:{folder}/plain", f"file:{folder}/direct,direct,preallocate=16M", f"hdf5:{folder}/data.h5", f"share:{share},wait"]
    process = bench.receive("--packets", 1500, "--ring", 128, "--out", folder / "out", "--verify", "counter", "--quiet",
                            *[word for sink in sinks for word in ("--sink", sink)])  # fmt: skip
    wait_for(share.exists)
    readers = [reader(share) for _ in range(2)]
    status, result = report(process.finish())
    words = result["febs"][0]["words"]
    assert status == 0, result
    for name in ["out", "plain", "direct"]:
        assert_counter(folder / name, words)
    with h5py.File(folder / "data.h5") as file:
        assert (file["words"][:] == np.arange(words, dtype="u8")).all() and len(file["words"]) == words
        assert (file.attrs["feb"], file.attrs["complete"]) == (FEBS[0], 1)
        assert abs(file.attrs["start_time"] - time.time()) < 300
    # The first of them was waited for; the other may have come a little later.
    counts = [int(r.communicate(timeout=20)[0]) for r in readers]
    assert max(counts) == words and all(r.returncode == 0 for r in readers)
    assert not share.exists()


def test_a_place_for_each_feb(bench, folder):
    bench.sim("--boards", 2)
    status, result = report(bench.receive("--feb", FEBS[1], "--packets", 200, "--quiet", "--sink", f"file:{folder}/{{feb}}.dat").finish())
    assert status == 0
    for feb in result["febs"]:
        assert_counter(folder / f"{feb['feb'].replace(':', '-')}.dat", feb["words"])


def test_a_slow_sink_holds_the_board_up(bench, folder):
    """A pipe that is read slowly: the ring fills, the board waits, and nothing is lost."""
    sim = bench.sim()
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    got = bytearray()

    def slow():
        with open(pipe, "rb", buffering=0) as file:
            for i in range(1 << 30):
                piece = file.read(65536)
                if not piece:
                    return
                got.extend(piece)
                time.sleep(0.03 if i < 60 else 0)

    thread = threading.Thread(target=slow)
    thread.start()
    status, result = report(bench.receive("--packets", 800, "--ring", 64, "--verify", "counter", "--quiet", "--sink", f"file:{pipe}").finish())
    thread.join()
    feb = result["febs"][0]
    assert status == 0 and feb["verified"], result
    assert np.array_equal(np.frombuffer(got, dtype="<u8"), np.arange(feb["words"], dtype="u8"))
    assert feb["counters"]["no_space"] > 0, "the ring was full, and the board sent again"
    assert bench.end_sim(sim)["boards"][0]["retransmitted"] >= feb["counters"]["no_space"]


def test_readers_of_the_ring_that_are_slow_or_leave(bench, folder):
    bench.sim()
    share = folder / "share"
    process = bench.receive("--packets", 3000, "--ring", 64, "--verify", "counter", "--quiet", "--sink", f"share:{share},wait")
    wait_for(share.exists)
    slow, leaving = reader(share, 20), reader(share, 0, 5)
    killed = reader(share, 1000)
    time.sleep(1.5)
    killed.kill()
    killed.communicate()
    status, result = report(process.finish())
    assert status == 0 and result["febs"][0]["verified"], result
    total, left = int(slow.communicate(timeout=20)[0]), int(leaving.communicate(timeout=20)[0])
    assert slow.returncode == 0 and leaving.returncode == 0
    assert 0 < left < total <= result["febs"][0]["words"]


def test_a_full_disk_is_told(bench, folder):
    """The sink and the reason are named; what was written before is intact."""
    bench.sim()
    disk = folder / "disk"
    disk.mkdir()
    sh("mount", "-t", "tmpfs", "-o", "size=2m", "none", disk)
    try:
        status, out, err = bench.receive("--packets", 2000, "--quiet", "--sink", f"file:{disk}/data", "--sink", f"file:{folder}/data").finish()
        assert status == 3 and re.search(rf"file:{disk}/data: No space left.*make space.*bytes before are intact", err), err
        words = os.path.getsize(disk / "data") // 8
        assert words > 100_000
        assert (np.fromfile(disk / "data", dtype="<u8", count=words) == np.arange(words, dtype="u8")).all()
    finally:
        sh("umount", disk)


@pytest.mark.parametrize(
    ("sinks", "named"),
    [
        (["tape:x"], "tape"),
        (["file:x,fast"], "fast"),
        (["file:x,preallocate=lots"], "lots"),
        (["share:"], "share:PATH"),
        (["file:/no/such/folder/x"], "/no/such/folder/x"),
        (["hdf5:/no/such/folder/x"], "/no/such/folder/x"),
        (["share:/no/such/folder/x"], "/no/such/folder/x"),
    ],
)
def test_wrong_sinks(bench, sinks, named):
    status, out, err = bench.receive("--sink", *sinks).finish()
    assert status == (1 if "/no/" in sinks[0] else 2) and not out and named in err, err


def test_several_febs_need_several_places(bench):
    status, out, err = bench.receive("--feb", FEBS[1], "--sink", "file:x").finish()
    assert status == 2 and "{feb}" in err and not Path("x").exists()

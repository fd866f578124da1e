"""Faults: disks that are full or fail."""

import contextlib
import re

import h5py

from support.crate import report
from support.faults.site import Outcome, environment, fault
from support.faults.written import building, closed_windows, closed_words, plain_words, process_end
from support.files import wrong_words
from support.netns import sh


def failing_disk(site, kind, how):
    """A sink of `receive` on a disk that fails, beside one on a good disk."""
    net = site.net
    net.sim()
    disk = net.tmp / "disk"
    disk.mkdir()
    room = site.random.randrange(2 << 20, 6 << 20)
    sink, good = f"{kind}:{disk}/x.{dict(file='bin', hdf5='h5')[kind]},roll=1M", net.tmp / "good.h5"
    # Without an end of its own: the failure is what ends the run, however far the sink is behind the data.
    words = ("--quiet", "--sink", sink, "--sink", f"hdf5:{good}")
    with contextlib.ExitStack() as stack:
        env = environment(disk=disk, after=room, only_sync=how == "sync")
        told = "Input/output error"
        if how == "full":
            env, told = None, "No space left.*make space"
            sh("mount", "-t", "tmpfs", "-o", f"size={room >> 10}k", "none", disk)
            stack.callback(sh, "umount", disk)
        process = net.fadelink("receive", "--iface", "eth0", "--feb", "02:fa:de:00:00:01", "--json", *words, env=env)
        status, out, err = process.finish()
        found = re.search(rf"{re.escape(sink)}: .*{told}.*; the (\d+) bytes before are intact", err, re.S)
        assert status == 3 and found, err
        intact = int(found[1]) // 8
        if kind == "hdf5":
            words, wrong = closed_words(disk, "x")
            complete = words
        else:
            words, wrong, complete = plain_words(disk, "x")
        lost = max(intact - words, 0) + wrong
        # What could not be synced is neither complete nor intact.
        assert how == "full" or max(complete, intact) <= room // 8, (complete, intact, room)
    with h5py.File(good) as file:
        data = file["words"][:]
        assert file.attrs["complete"] == 0
    # The source goes on to the sink that failed a little longer than the sink went on writing.
    return Outcome(intact + len(data), lost + wrong_words(data) + max(intact - len(data), 0))


DISKS = {
    "full": "the disk is full",
    "eio": "each write and sync fails (EIO) from a random byte on",
    "sync": "writes succeed and each sync fails (EIO) from a random byte on",
}
for _kind in ("file", "hdf5"):
    for _how, _what in DISKS.items():
        fault(
            f"disk-{_how}-{_kind}", f"`receive --sink {_kind}:`: {_what}", "words",
            "what the error calls intact is right; what was not synced is not called complete; the other sink has every word",
        )(lambda site, kind=_kind, how=_how: failing_disk(site, kind, how))  # fmt: skip


@fault(
    "disk-eio-parquet", "`build --sink parquet:`: each write and sync fails (EIO) from a random byte on", "windows",
    "closed files have every window; the other sink has every window that was emitted",
)  # fmt: skip
def disk_error_parquet(site):
    disk = site.folder / "disk"
    disk.mkdir()
    env = environment(disk=disk, after=site.random.randrange(20_000, 200_000))
    sinks = ("--sink", f"parquet:{disk}/x.parquet,every=0.2", "--sink", f"hdf5:{site.folder}/good.h5")
    with building(*sinks, env=env) as process:
        status, found, err = report((*process_end(process),))
    assert status == 3 and "Input/output error" in err, err
    windows, wrong = closed_windows(disk, "x")
    good, wrong_good = closed_windows(site.folder, "good")
    return Outcome(windows + found["events"], wrong + wrong_good + max(found["events"] - good, 0))

"""Faults: programs that are killed."""

import signal
import subprocess
import sys

import numpy as np

from support import ring_reader
from support.faults.site import PORT, Outcome, fault
from support.faults.written import building, closed_windows, closed_words, plain_words
from support.files import wrong_words
from support.netns import PATIENCE, wait_for
from support.netns import report as report_of


@fault(
    "receiver-killed", "SIGKILL of `receive`, FADE-10G, at a random moment", "words",
    "HDF5 files that were closed, and plain files up to where they end, are right from the first word on; the next run begins",
)  # fmt: skip
def receiver_killed(site):
    net = site.net
    net.sim("--link", "loss=0.01")
    process = net.receive("--quiet", "--sink", f"hdf5:{net.tmp}/data.h5,every=0.3", "--sink", f"file:{net.tmp}/data.bin,roll=1M")
    net.wait_for_frames(10)  # more than answers to commands: the transmission has begun
    site.pause(0, 2.5)
    process.signal(signal.SIGKILL)
    process.finish()
    closed, wrong = closed_words(net.tmp, "data")
    plain, wrong_plain, _ = plain_words(net.tmp, "data")
    finished = net.receive("--packets", 20, "--verify", "counter").finish()
    status, result = report_of(finished)
    assert status == 0 and "earlier transmission was still running" in finished[2], finished
    return Outcome(closed + plain, wrong + wrong_plain)


@fault(
    "receiver-killed-tcp", "SIGKILL of `receive --tcp` at a random moment", "words",
    "what is in its file is right; the next one goes on behind it, no word twice. Lost is what the kernel had confirmed and "
    "`receive` had not read",
)  # fmt: skip
def receiver_killed_tcp(site):
    net = site.net
    net.sim("--protocol", "tcp", "--words", 0)
    first = net.fadelink("receive", "--tcp", PORT, "--json", "--quiet", "--out", net.tmp / "first-{stream}.bin")
    net.wait_for_frames(1)
    site.pause(0, 1.5)
    first.signal(signal.SIGKILL)
    first.finish()
    second = net.fadelink("receive", "--tcp", PORT, "--json", "--quiet", "--packets", 100, "--streams", 1, "--out", net.tmp / "second-{stream}.bin")
    status, result = report_of(second.finish())
    assert status == 0, result
    data = [
        np.concatenate([np.zeros(0, "<u8"), *(np.fromfile(path, "<u8") for path in net.tmp.glob(f"{name}-*.bin"))]) for name in ("first", "second")
    ]
    begin = int(data[1][0])
    wrong = wrong_words(data[0]) + wrong_words(data[1], begin) + max(len(data[0]) - begin, 0)
    return Outcome(sum(map(len, data)), wrong, max(begin - len(data[0]), 0))


@fault(
    "reader-killed", "SIGKILL of a program that reads the shared ring", "words",
    "the run goes on; all other sinks have every word",
)  # fmt: skip
def reader_killed(site):
    net = site.net
    net.sim()
    share, out = net.tmp / "share", net.tmp / "out"
    process = net.receive("--packets", 1000, "--ring", 64, "--quiet", "--out", out, "--sink", f"share:{share},wait")
    wait_for(share.exists)

    def read(*pace):
        return subprocess.Popen([sys.executable, ring_reader.__file__, share, *pace], stdout=subprocess.PIPE, text=True)

    # More than fits the ring comes only when the first reader is there; another sees what comes from then on.
    first = read()
    wait_for(lambda: out.exists() and out.stat().st_size > 2 * 64 * 8192)
    slow = read("1")
    site.pause(0.3, 1.5)
    slow.kill()
    slow.communicate()
    status, result = report_of(process.finish())
    data = np.fromfile(out, dtype="<u8")
    seen = int(first.communicate(timeout=PATIENCE)[0])
    words = result["febs"][0]["words"]
    assert status == 0 and first.returncode == 0 and words >= 1000 * 1024, result
    return Outcome(2 * words, wrong_words(data) + words - len(data) + words - seen)


@fault(
    "builder-killed", "SIGKILL of `build --tcp` at a random moment", "windows",
    "HDF5 and Parquet files that were closed have every window, from the first of the run on",
)  # fmt: skip
def builder_killed(site):
    sinks = [word for kind in ("h5", "parquet")
             for word in ("--sink", f"{kind.replace('h5', 'hdf5')}:{site.folder}/data.{kind},every=0.3")]  # fmt: skip
    with building(*sinks) as process:
        wait_for((site.folder / "data.h5").exists)
        site.pause(0, 2)
        process.kill()
        process.communicate()
    return Outcome(*closed_windows(site.folder, "data"))

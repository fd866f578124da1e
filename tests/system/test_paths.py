"""Paths of any length work, also of UNIX sockets; names that are not UTF-8 work or are refused in one line."""

import json
import os
import shutil
import signal
import sys
from pathlib import Path

import fadelink
import numpy as np
import pytest
from support import ring_reader
from support.lab import Lab, fade
from support.netns import FEBS, add_address, wait_for

ODD = os.fsdecode(b"odd\xff")


def long_folder(base, size):
    """A folder whose path has so many bytes and more."""
    while len(str(base)) < size:
        base /= "x" * 100
    base.mkdir(parents=True, exist_ok=True)
    return base


def refused(finished, *texts):
    """In one line, which says what was expected."""
    status, _, err = finished
    assert status in (1, 2) and len(err.splitlines()) == 1 and "panicked" not in err, err
    assert all(text in err for text in texts), err


def replays(bench, run):
    """The run is read, and would be played back if the interface were an Ethernet."""
    status, _, err = bench.run("replay", run, "--iface", "lo")
    return status == 1 and "1 boards are played back" in err and "interface lo is not an Ethernet interface" in err


@pytest.mark.parametrize("size", [200, 1000])
def test_a_run_in_a_folder_with_a_long_path(bench, size):
    """Asked to start and to stop by its socket, with a reader at the socket of a sink; checked, replayed, read by Python."""
    bench.sim()
    lab = Lab(bench)
    folder = long_folder(bench.tmp, size)
    lab.file, lab.runs = folder / "experiment.toml", folder / "runs"
    lab.write('start = "command"\n' + fade("left", 0, f'sinks = ["file:left.dat", "share:left.socket,wait", "share:{"n" * 200}"]'))
    process = lab.start()
    wait_for(lambda: (lab.runs / "control.socket").exists())
    assert lab.ask("start")["state"] == "running"
    wait_for(lambda: (lab.folder(1) / ("n" * 200)).exists())
    reader = bench.start(bench.pc_ns, sys.executable, ring_reader.__file__, "left.socket", cwd=lab.folder(1))
    assert reader.popen.stderr.readline() == "reading\n"
    assert lab.ask("stop")["complete"]
    status, out, err = reader.finish()
    count = (lab.folder(1) / "left.dat").stat().st_size // 8
    assert status == 0 and int(out.split()[0]) == count, err
    process.signal(signal.SIGTERM)
    status, _, err = process.finish()
    assert status == 0, err
    assert sorted(path.name for path in lab.folder(1).iterdir() if path.is_socket()) == [] and not (lab.runs / "control.socket").exists()
    refused(bench.run("start", lab.file), "no `fadelink run` of this experiment is there")
    assert lab.check(1)[0] == 0
    (run,) = fadelink.runs(lab.runs)
    assert (run["left"].numpy() == np.arange(count, dtype="u8")).all()
    assert replays(bench, lab.folder(1))


@pytest.mark.parametrize("size", [200, 1000])
def test_files_and_events_in_a_folder_with_a_long_path(bench, size):
    add_address(bench)
    folder = long_folder(bench.tmp, size)
    bench.sim()
    status, out, err = bench.receive("--packets", 20, "--out", folder / "left.dat", "--sink", f"hdf5:{folder}/left.h5", "--quiet").finish()
    assert status == 0, out + err
    bench.sim("--feb", FEBS[3], "--protocol", "fadc", "--small", "--phy", "gmii", "--ip", "10.9.0.4", "--port", 10002, "--windows", 50)
    words = ["build", "--tcp", 10002, "--window-ns", 65536, "--expect", 1, "--sink", f"hdf5:{folder}/e.h5", "--sink", f"parquet:{folder}/e.parquet"]
    builder = bench.fadelink(*words, "--quiet")
    wait_for(lambda: (folder / "e.h5.part").exists() and (folder / "e.h5.part").stat().st_size > 0)
    builder.signal(signal.SIGINT)
    status, out, err = builder.finish()
    assert status in (0, 3) and (folder / "e.h5").exists() and (folder / "e.parquet").exists(), out + err
    refused(bench.run("build", "--tcp", 10003, "--window-ns", 65536, "--expect", 1, "--sink", f"zmq-pub:ipc://{folder}/s"), "expected at most 107")


def test_a_run_in_a_folder_that_is_not_utf8_is_refused(bench):
    """Before anything is made. A whole run that was moved there can be checked and read."""
    bench.sim()
    lab = Lab(bench)
    odd = bench.tmp / ODD
    odd.mkdir()
    text = fade("left")
    for file, runs in [(odd / "experiment.toml", "runs"), (bench.tmp / "linked.toml", "link")]:
        (bench.tmp / "link").unlink(missing_ok=True)
        (bench.tmp / "link").symlink_to(odd)
        file.write_text(f'folder = "{runs}"\n' + text)
        refused(bench.run("run", file, "--duration", 1), r"odd\xff", "expected a path in UTF-8")
    assert {path.name for path in odd.iterdir()} == {"experiment.toml", "lock"}
    refused(bench.run("run", odd / "experiment.toml", "--check"), r"odd\xff", "expected a path in UTF-8")
    refused(bench.run("start", odd / "experiment.toml"), "no `fadelink run` of this experiment is there")
    # From a current folder with such a name; the file of the experiment may have one.
    refused(bench.start(bench.pc_ns, *bench.fadelink_words("run", "experiment.toml"), cwd=odd).finish(), r"odd\xff", "expected a path in UTF-8")
    lab.file = bench.tmp / os.fsdecode(b"experiment\xff.toml")
    lab.write(text)
    assert lab.run("--duration", 1)[0] == 0
    shutil.copytree(lab.folder(1), odd / "run_000001")
    for folder in (odd / "run_000001", "run_000001"):
        status, out, err = bench.start(bench.pc_ns, *bench.fadelink_words("check", folder, "--json"), cwd=odd).finish()
        assert status == 0, out + err
    (run,) = fadelink.runs(odd)
    assert run["left"].numpy().size * 8 == (odd / "run_000001/left.dat").stat().st_size
    assert replays(bench, odd / "run_000001")
    # What is not of the run is named.
    (odd / "run_000001" / ODD).write_text("")
    status, out, err = bench.run("check", odd / "run_000001", "--json")
    assert status == 3 and "does not belong to the run" in out, out + err


def test_names_that_are_not_utf8_on_the_command_line(bench):
    add_address(bench)
    bench.sim()
    odd = bench.tmp / ODD
    odd.mkdir()
    refused(bench.receive("--packets", 5, "--out", odd / "left.dat").finish(), "--out: `", r"odd\xff/left.dat`: expected a name in UTF-8")
    assert list(odd.iterdir()) == []
    for words in (
        ["receive", "--iface", ODD, "--feb", FEBS[0]],
        ["receive", "--iface", "eth0", "--feb", FEBS[0], "--sink", f"file:{odd}/x.dat"],
        ["build", "--tcp", 10000, "--window-ns", 65536, "--expect", 1, "--sink", f"hdf5:{odd}/x.h5"],
        ["top", "--iface", ODD],
        ["cmd", "--iface", "eth0", "--feb", FEBS[0], ODD],
        [ODD],
    ):
        refused(bench.run(*words), "UTF-8" if words != [ODD] else "")
    # Files by path, and relative ones from such a folder.
    registers = odd / "registers.toml"
    refused(bench.run("top", "--iface", "eth0", "--registers", registers), "registers.toml")
    refused(bench.run("dissect", registers), "registers.toml")
    program = bench.start(bench.pc_ns, *bench.fadelink_words(*RECEIVED), cwd=odd)
    status, out, err = program.finish()
    assert status == 0, out + err
    assert json.loads((odd / "left.dat.json").read_text())["complete"] and (odd / "left.h5").exists()


RECEIVED = ["receive", "--iface", "eth0", "--feb", FEBS[0], "--packets", 5, "--out", "left.dat", "--sink", "hdf5:left.h5", "--quiet"]


def test_an_environment_that_is_not_utf8(bench):
    bench.sim()
    names = ("HOME", "USER", "LANG", "TERM", "TZ", "XDG_RUNTIME_DIR", "COLUMNS", "NO_COLOR", "RUST_LOG", "NOTIFY_SOCKET", ODD)
    environment = os.environ | dict.fromkeys(names, os.fsdecode(b"/\xff"))
    status, out, err = bench.start(bench.pc_ns, *bench.fadelink_words(*RECEIVED), cwd=bench.tmp, env=environment).finish()
    assert status == 0, out + err
    assert Path(bench.tmp / "left.dat").stat().st_size

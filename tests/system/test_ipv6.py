"""Runs of senders with IPv6 addresses: the files of their streams are found by all that read runs."""

import json
import sys

import fadelink
import numpy as np
import pytest
from support.lab import Lab, end, is_counter, sealed
from support.netns import sh, wait_for
from support.paths import FADELINK

WORDS = 20000
# Streams of one sender: as many words each, and the second one has other words.
SENDER = f"""
import numpy, socket, sys
sockets = [socket.create_connection((sys.argv[1], 10000)) for _ in range(2)]
for first, connection in enumerate(sockets):
    connection.sendall((numpy.arange({WORDS}, dtype="<u8") + first * 1000000).tobytes())
for connection in sockets:
    connection.shutdown(socket.SHUT_WR)
    assert connection.recv(1) == b""
"""


@pytest.fixture
def lab(bench):
    for namespace, name, address in [(bench.board_ns, "feb0", "fd00::2/64"), (bench.pc_ns, "eth0", "fd00::1/64")]:
        bench.run_in(namespace, "sysctl", "-qw", f"net.ipv6.conf.{name}.disable_ipv6=0")
        sh("ip", "-n", namespace, "address", "add", address, "dev", name, "nodad")
    return Lab(bench)


def without_names(lab):
    """The manifest of a program that was ended before it could tell the names of its files."""
    path = lab.folder() / "manifest.json"
    manifest = json.loads(path.read_text())
    for board in manifest["boards"]:
        for sink in board["sinks"]:
            sink.pop("files", None)
    path.write_text(sealed(manifest))


@pytest.mark.parametrize("sink", ["file:{board}-{stream}.dat", "file:{stream}.dat,roll=50000", "hdf5:{board}-{stream}.h5"])
def test_streams_of_ipv6_are_found(lab, sink):
    lab.write(f'end = "told"\n[[tcp]]\nname = "sender"\naddress = "fd00::2"\nlisten = "fd00::1"\nport = 10000\nstreams = 2\nsinks = ["{sink}"]\n')
    process = lab.start()
    wait_for(lambda: "fd00::1" in lab.bench.run_in(lab.bench.pc_ns, "ss", "-tln"))
    status, out, err = lab.bench.start(lab.bench.board_ns, sys.executable, "-c", SENDER, "fd00::1").finish()
    assert status == 0, err
    status, err = end(process)
    assert status == 0, err
    boards = lab.manifest()["boards"]
    assert len(boards) == 2 and all(board["peer"].startswith("[fd00::2]:") for board in boards), boards
    for names_are_told in (True, False):
        if not names_are_told:
            without_names(lab)
        run = fadelink.Run(lab.folder())
        assert len(run.boards) == 2
        found = {}
        for board in run.boards.values():
            port = board.report["peer"].rsplit(":")[-1]
            files = board.files
            assert files and all(f"fd00::2-{port}" in file.name and file.exists() for file in files), (names_are_told, files)
            words = board.numpy()
            found[int(words[0])] = words - words[0]
        assert sorted(found) == [0, 1000000] and all(is_counter(words) and words.size == WORDS for words in found.values())
        if names_are_told:
            assert run.complete and run.verify() == []
            status, checked = lab.check()
            assert status == 0, checked
            if sink.startswith("file"):
                replay(lab)


def replay(lab):
    """What is played back is what was recorded."""
    bench = lab.bench
    out = bench.tmp / "again"
    out.mkdir(exist_ok=True)
    for old in out.iterdir():
        old.unlink()
    received = bench.fadelink("receive", "--tcp", 10000, "--listen", "fd00::1", "--streams", 2, "--end", "told",
                              "--sink", f"file:{out}/{{stream}}.dat")  # fmt: skip
    wait_for(lambda: "fd00::1" in bench.run_in(bench.pc_ns, "ss", "-tln"))
    status, _, err = bench.start(bench.board_ns, FADELINK, "replay", lab.folder(), "--to", "fd00::1", "--speed", "max").finish()
    assert status == 0, err
    status, said, err = received.finish()
    assert status == 0, said + err
    again = [np.fromfile(path, dtype="<u8") for path in out.glob("*.dat")]
    assert sorted(int(words[0]) for words in again) == [0, 1000000] and all(words.size == WORDS for words in again)

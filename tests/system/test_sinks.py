"""Sinks of `fadelink receive`: files, HDF5, other programs, and what a slow one does to the board."""

import fcntl
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
import time
import tty
from pathlib import Path

import h5py
import numpy as np
import pytest
from support import ring_reader
from support.files import in_order
from support.netns import FEBS, PATIENCE, report, sh, wait_for
from support.paths import FADELINK

READER = ring_reader.__file__


def assert_counter(path, words):
    data = np.fromfile(path, dtype="<u8")
    assert len(data) == words and (data == np.arange(words, dtype="u8")).all(), path


def reader(socket, *options):
    command = [sys.executable, READER, socket, *map(str, options)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


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
    counts = [int(r.communicate(timeout=PATIENCE)[0]) for r in readers]
    assert max(counts) == words and all(r.returncode == 0 for r in readers)
    assert not share.exists()


def test_a_place_for_each_feb(bench, folder):
    bench.sim("--boards", 2)
    status, result = report(bench.receive("--feb", FEBS[1], "--packets", 200, "--quiet", "--sink", f"file:{folder}/{{feb}}.dat").finish())
    assert status == 0
    for feb in result["febs"]:
        assert_counter(folder / f"{feb['feb'].replace(':', '-')}.dat", feb["words"])


def test_a_slow_sink_holds_the_board_up(bench, folder):
    """A pipe that nobody reads for a while: the ring fills, the board waits, and nothing is lost."""
    sim = bench.sim()
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    process = bench.receive("--packets", 800, "--ring", 64, "--verify", "counter", "--quiet", "--sink", f"file:{pipe}")
    with open(pipe, "rb", buffering=0) as file:
        # More than pipe and ring hold.
        bench.wait_for_frames(200)
        got = b"".join(iter(lambda: file.read(1 << 20), b""))
    status, result = report(process.finish())
    feb = result["febs"][0]
    assert status == 0 and feb["verified"], result
    assert np.array_equal(np.frombuffer(got, dtype="<u8"), np.arange(feb["words"], dtype="u8"))
    assert feb["counters"]["no_space"] > 0, "the ring was full, and the board sent again"
    assert bench.end_sim(sim)["boards"][0]["retransmitted"] >= feb["counters"]["no_space"]


def test_a_slow_sink_holds_no_other_board_up(bench, folder):
    """While the sink of one board takes nothing, commands reach that board and the other's data comes."""
    words = [word for mac in FEBS[:2] for word in ("--feb", mac)]
    boards = bench.start(bench.board_ns, *bench.fadelink_words("feb", "--iface", "feb0", *words, "--rate", 50))
    assert "in software" in boards.popen.stderr.readline()
    pipe, file = (folder / f"{mac}.bin" for mac in (name.replace(":", "-") for name in FEBS[:2]))
    os.mkfifo(pipe)
    process = bench.receive("--feb", FEBS[1], "--ring", 64, "--verify", "counter", "--quiet", "--sink", f"file:{folder}/{{feb}}.bin")
    with open(pipe, "rb", buffering=0) as held:
        # The pipe, the queue of the sink, the ring and the board are full when the other board has sent this.
        wait_for(lambda: file.exists() and file.stat().st_size > 20e6)
        assert bench.command(0x0110, feb=FEBS[0]) is not None
        at_hold = file.stat().st_size
        wait_for(lambda: file.stat().st_size > at_hold + 10e6)
        process.signal(signal.SIGINT)
        taken = 0
        while piece := held.read(1 << 20):
            taken += len(piece)
    status, result = report(process.finish())
    slow, other = result["febs"]
    assert status == 0 and slow["verified"] and other["verified"], result
    assert (taken, file.stat().st_size) == (slow["bytes"], other["bytes"])
    assert slow["counters"]["no_space"] > 0 and slow["bytes"] < other["bytes"]


@pytest.mark.parametrize("option", ["--out={}", "--sink=hashes:{}"])
def test_a_pipe_without_a_reader_is_left_at_the_first_interrupt(bench, folder, option):
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    process = bench.receive(option.format(pipe))
    caught = lambda: int(open(f"/proc/{process.popen.pid}/status").read().split("SigCgt:")[1].split()[0], 16)  # noqa: E731
    wait_for(lambda: caught() >> (signal.SIGINT - 1) & 1)
    process.signal(signal.SIGINT)
    status, _, err = process.finish()
    assert status == 1 and f"no reader of the pipe {pipe} came before the end was asked for" in err, err


@pytest.mark.parametrize("where", ["named pipe", "pipe", "pipe of another user", "socket", "terminal"])
def test_a_reader_that_takes_nothing_is_not_waited_for_at_the_end(bench, folder, where):
    bench.sim()
    words, out = ["receive", "--iface", "eth0", "--feb", FEBS[0], "--ring", 64, "--out"], "-"
    if where == "named pipe":
        out = folder / "pipe"
        os.mkfifo(out)
        held, to = os.open(out, os.O_RDONLY | os.O_NONBLOCK), os.open(os.devnull, os.O_WRONLY)
    elif where == "socket":
        held, to = (end.detach() for end in socket.socketpair())
    elif where == "terminal":
        held, to = os.openpty()
        tty.setraw(to)
    else:
        held, to = os.pipe()
    before = []
    if where == "pipe of another user":
        os.fchown(to, 65534, 65534)
        before = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
    process = bench.start(bench.pc_ns, *before, FADELINK, *words, out, stdout_to=to)
    os.close(to)
    wait_for(lambda: struct.unpack("i", fcntl.ioctl(held, termios.FIONREAD, bytes(4)))[0] > (3_000 if where == "terminal" else 30_000))
    process.signal(signal.SIGINT)
    status, _, err = process.finish()
    os.close(held)
    assert status == 3 and "its reader has taken nothing for 5 s since the end was asked for" in err, (status, err)


@pytest.mark.parametrize("where", ["pipe of another user", "socket"])
def test_all_words_come_over(bench, where):
    """Also where no more than a part can be written at a time."""
    bench.sim("--packets", 300)
    held, to = (end.detach() for end in socket.socketpair()) if where == "socket" else os.pipe()
    os.fchown(to, 65534, 65534)
    words = ["receive", "--iface", "eth0", "--feb", FEBS[0], "--packets", 300, "--out", "-"]
    process = bench.start(bench.pc_ns, "setpriv", "--bounding-set=-dac_override,-dac_read_search", FADELINK, *words, stdout_to=to)
    os.close(to)
    with open(held, "rb") as file:
        data = np.frombuffer(file.read(), dtype="<u8")
    status, _, err = process.finish()
    assert status == 0 and data.size > 100_000 and (data == np.arange(data.size, dtype="u8")).all(), (status, err)


def test_readers_of_the_ring_that_are_slow_or_leave(bench, folder):
    bench.sim()
    share = folder / "share"
    process = bench.receive("--packets", 3000, "--ring", 64, "--verify", "counter", "--quiet", "--sink", f"share:{share},wait")
    wait_for(share.exists)
    slow, leaving = reader(share, 20), reader(share, 0, 5)
    killed = reader(share, 1000)
    assert killed.stderr.readline() == "reading\n"
    killed.kill()
    killed.communicate()
    status, result = report(process.finish())
    assert status == 0 and result["febs"][0]["verified"], result
    total, left = int(slow.communicate(timeout=PATIENCE)[0]), int(leaving.communicate(timeout=PATIENCE)[0])
    assert slow.returncode == 0 and leaving.returncode == 0
    assert 0 < left < total <= result["febs"][0]["words"]


def test_a_slow_sink_that_may_drop_holds_nobody_up(bench, folder):
    """It loses what its queue has no room for, says how much, and what it has is right; the others have all."""
    bench.sim()
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    got = bytearray()

    def slow():
        with open(pipe, "rb", buffering=0) as file:
            # Several times as much as its queue and the pipe hold.
            wait_for(lambda: (folder / "all").exists() and (folder / "all").stat().st_size > 8 << 20)
            while piece := file.read(65536):
                got.extend(piece)

    thread = threading.Thread(target=slow)
    thread.start()
    status, result = report(bench.receive("--packets", 1500, "--ring", 64, "--verify", "counter", "--quiet", "--out", folder / "all",
                                          "--sink", f"file:{pipe},policy=drop,queue=2M").finish())  # fmt: skip
    thread.join()
    feb = result["febs"][0]
    assert status == 0 and feb["complete"] and feb["verified"], result
    assert_counter(folder / "all", feb["words"])
    whole, slow = feb["sinks"]
    assert (whole["written"], whole["dropped"], slow["sink"]) == (feb["bytes"], 0, f"file:{pipe},policy=drop,queue=2M")
    assert slow["dropped"] > 0 and slow["written"] + slow["dropped"] == feb["bytes"] and slow["written"] == len(got)
    words = np.frombuffer(got, dtype="<u8").astype("i8")
    steps = np.diff(words)
    assert words[0] == 0 and (steps > 0).all() and int((steps - 1).sum()) + feb["words"] - 1 - int(words[-1]) == slow["dropped"] // 8


def test_files_roll_over_and_a_kill_costs_the_last(bench, folder):
    """HDF5: every file that has its name can be read, from the first word on without a gap. Plain files say where they begin."""
    bench.sim()
    process = bench.receive("--ring", 64, "--quiet", "--sink", f"hdf5:{folder}/data.h5,every=0.4", "--sink", f"file:{folder}/data.bin,roll=1M")
    wait_for(lambda: (folder / "data.000002.h5").exists() and (folder / "data.000002.bin").exists())
    process.signal(signal.SIGKILL)
    process.finish()
    expected = 0
    for number, path in enumerate(in_order(folder.glob("data*.h5"))):
        with h5py.File(path) as file:
            words = file["words"][:]
            assert [int(file.attrs[name]) for name in ("part", "first_word", "complete", "last")] == [number, expected, 1, 0], path
        assert (words == np.arange(expected, expected + len(words), dtype="u8")).all()
        expected += len(words)
    assert number >= 2 and expected > 0
    manifests = in_order(folder.glob("data*.bin.json"))
    finished = [json.loads(path.read_text()) for path in manifests][:-1]
    for number, manifest in enumerate(finished):
        assert manifest["complete"] and manifest["bytes"] >= 1 << 20
        assert manifest["part"] == {"number": number, "first_byte": sum(m["bytes"] for m in finished[:number]), "last": False}
    # The next run would mix its files with these.
    (folder / "data.h5").unlink()
    status, _, err = bench.receive("--sink", f"hdf5:{folder}/data.h5").finish()
    assert status == 1 and "data.000001.h5 exists; choose another name" in err, err


@pytest.mark.parametrize("readers", ["none", "stuck"])
def test_the_end_does_not_wait_for_a_reader(bench, folder, readers):
    """One interrupt ends a run whose only sink waits for a first reader, or for one that is not done with its block."""
    bench.sim()
    share = folder / "share"
    process = bench.receive("--ring", 64, "--quiet", "--sink", f"share:{share},wait")
    wait_for(share.exists)
    stuck = reader(share, 1e6) if readers == "stuck" else None
    if stuck:
        assert stuck.stderr.readline() == "reading\n"
    else:
        # More than the answers to commands: data that the sink has.
        wait_for(lambda: bench.frames() > 20)
    process.signal(signal.SIGINT)
    status, out, err = process.finish()
    told = {"none": "no reader came before the end was asked for", "stuck": "a reader was not done with a block 5 s after the end"}
    assert status == 3 and f"share:{share},wait: {told[readers]}" in err, err
    assert json.loads(out)["febs"][0]["sinks"][0]["error"]
    if stuck:
        stuck.kill()
        stuck.communicate()


@pytest.mark.parametrize("side", ["tcp", "udp"])
def test_every_sink_takes_streams_too(net, tmp_path, side):
    """HDF5, plain files with manifests and a shared ring, of two boards at once."""
    net.sim("--protocol", side, "--boards", 2, "--words", 30000, *(["--stopped"] if side == "udp" else []))
    boards = [word for n in (2, 3) for word in ("--board", f"10.9.0.{n}")] if side == "udp" else []
    process = net.fadelink("receive", f"--{side}", 10000, "--json", "--verify", "counter", "--streams", 2, "--end", "told", *boards,
                           "--sink", f"hdf5:{tmp_path}/{{stream}}.h5", "--sink", f"file:{tmp_path}/{{stream}}.dat",
                           "--sink", f"share:{tmp_path}/{{stream}}.share,wait")  # fmt: skip
    wait_for(lambda: len(list(tmp_path.glob("*.share"))) == 2)
    readers = [reader(path) for path in tmp_path.glob("*.share")]
    status, out, err = process.finish()
    assert status == 0, err
    assert [reader.communicate(timeout=PATIENCE)[0].strip() for reader in readers] == ["30000"] * 2
    for stream in json.loads(out)["streams"]:
        assert stream["verified"] and [sink["written"] for sink in stream["sinks"]] == [240000] * 3
        name = tmp_path / stream["peer"].replace(":", "-")
        with h5py.File(f"{name}.h5") as file:
            assert (file["words"][:] == np.arange(30000, dtype="u8")).all()
            assert [file.attrs[key] for key in ("stream", "protocol", "complete")] == [stream["peer"], side, 1]
        assert_counter(f"{name}.dat", 30000)
        manifest = json.loads(Path(f"{name}.dat.json").read_text())
        assert (manifest["stream"], manifest["protocol"], manifest["complete"]) == (stream["peer"], side, True)


@pytest.mark.parametrize(
    ("sinks", "named"),
    [
        (["tape:x"], "tape"),
        (["file:x,fast"], "fast"),
        (["file:x,preallocate=lots"], "lots"),
        (["share:"], "share:PATH"),
        (["file:x,policy=hope"], "policy `hope`: expected wait or drop"),
        (["file:x,queue=4M"], "policy=drop"),
        (["hdf5:x,every=soon"], "every `soon`"),
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

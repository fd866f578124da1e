"""Somebody else has put something at a name that a program will use: it is neither followed nor written, nor removed at the end."""

import os
import signal
import socket
import struct

import pytest
from support.lab import end, fade
from support.netns import BOARD, PC, sh, wait_for

SLOW = ["--gap", 200]
VICTIM = b"data of somebody else\n"


def victim(bench, content=VICTIM):
    path = bench.tmp / "victim"
    path.write_bytes(content)
    return path


WAYS = {
    "link": lambda bench, name: name.symlink_to(victim(bench)),
    "dangling link": lambda bench, name: name.symlink_to(bench.tmp / "elsewhere"),
    "hard link": lambda bench, name: os.link(victim(bench), name),
    "hard link of an empty file": lambda bench, name: os.link(victim(bench, b""), name),
    "pipe": lambda bench, name: os.mkfifo(name),
}
EACH_WAY = pytest.mark.parametrize("way", WAYS)


def is_untouched(bench):
    there = bench.tmp / "victim"
    return not (bench.tmp / "elsewhere").exists() and (not there.exists() or there.read_bytes() in (VICTIM, b""))


@EACH_WAY
@pytest.mark.parametrize("sink, name", [("file:{board}.dat,roll=100K", "left.000002.dat"), ("hdf5:{board}.h5,roll=100K", "left.000002.h5.part")])
def test_numbered_files_are_new(lab, way, sink, name):
    lab.bench.sim(*SLOW)
    lab.write(f"sinks = ['{sink}']\n" + fade("left"))
    process = lab.start()
    wait_for(lambda: list(lab.runs.glob("run_000001/left.*")))
    WAYS[way](lab.bench, lab.folder() / name)
    status, _, err = process.finish()
    manifest = lab.manifest()
    assert status == 3 and manifest["state"] != "complete" and f"{name} exists" in err, (manifest, err)
    assert is_untouched(lab.bench)


@EACH_WAY
def test_the_mark_of_a_run_that_goes_on_is_its_own(lab, way):
    lab.bench.sim(*SLOW)
    lab.write('confirm = "durable"\n' + fade("left"))
    process = lab.start()
    data = lab.runs / "run_000001/left.dat"
    wait_for(lambda: data.exists() and data.stat().st_size > 50_000)
    mark = data.with_name("unfinished")
    mark.unlink()
    WAYS[way](lab.bench, mark)
    before = data.stat().st_size
    wait_for(lambda: data.stat().st_size > before + 50_000)
    end(process)
    assert is_untouched(lab.bench)


def test_the_lock_of_the_runs_has_no_other_name(lab):
    lab.write(fade("left"))
    lab.runs.mkdir()
    WAYS["hard link"](lab.bench, lab.runs / "lock")
    status, _, err = lab.start().finish()
    assert status == 1 and "lock: expected a file of its own" in err and is_untouched(lab.bench), err


def test_what_is_at_the_path_of_the_ring_at_the_end_stays(bench):
    bench.sim(*SLOW)
    ring = bench.tmp / "ring"
    receiving = bench.receive("--sink", f"share:{ring}")
    wait_for(ring.exists)
    ring.rename(bench.tmp / "moved")
    ring.write_bytes(VICTIM)
    end(receiving)
    assert ring.read_bytes() == VICTIM


def test_a_control_socket_that_is_none_stays(lab):
    lab.write(fade("left"))
    lab.runs.mkdir()
    path = lab.runs / "control.socket"
    path.write_bytes(VICTIM)
    status, _, err = lab.start().finish()
    assert status != 0 and "control.socket" in err and path.read_bytes() == VICTIM, err


@pytest.mark.parametrize("sink", ["file:{tmp}/{stream}.dat,overwrite", "hdf5:{tmp}/{stream}.dat,overwrite"])
def test_two_streams_of_one_name_do_not_replace_each_other(net, sink):
    """A board is switched off and on again, and connects from the same port. A file of an earlier program is replaced."""
    name = net.tmp / f"{BOARD}-49152.dat"
    name.write_bytes(VICTIM)
    sh("ip", "-n", net.board_ns, "addr", "add", f"{BOARD}/24", "dev", "feb0")
    receiving = net.fadelink("receive", "--tcp", 10000, "--streams", 2, "--end", "told", "--json", "--sink", sink.replace("{tmp}", str(net.tmp)))

    def connect():
        made = socket.socket()
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        made.bind((BOARD, 49152))
        try:
            made.connect((PC, 10000))
        except OSError:
            made.close()
            return None
        return made

    def send(words):
        made = []
        wait_for(lambda: made.append(net.in_namespace(net.board_ns, connect)) or made[-1])
        made[-1].sendall(struct.pack(f"<{words}Q", *range(words)))
        return made[-1]

    first = send(20_000)
    first.shutdown(socket.SHUT_WR)
    wait_for(lambda: name.exists() and name.stat().st_size >= 160_000)
    size = name.stat().st_size
    first.close()
    second = send(2_000)
    status, err = end(receiving)
    second.close()
    assert status == 3 and "is being written by another sink" in err, err
    assert name.stat().st_size == size


def test_hashes_that_the_user_wants_are_files_of_the_run(lab):
    lab.bench.sim("--boards", 2)
    text = "sinks = ['file:{board}.dat', 'hashes:{board}.hsh']\n[stop]\nsize = \"1M\"\n" + fade("left") + fade("right", 1)
    lab.write(text)
    status, manifest, err = lab.run()
    assert (status, manifest["state"]) == (0, "complete"), err
    status, found = lab.check()
    assert status == 0 and manifest["files"]["left.hsh"]["blake3"], found
    with open(lab.folder() / "left.hsh", "r+b") as file:
        file.write(b"x")
    status, found = lab.check()
    assert status == 3 and "left.hsh: its content is not what was written" in str(found), found


def test_a_file_that_may_be_replaced_is_replaced_by_the_next_run_of_the_same_program(lab):
    """Not by another stream of the same run."""
    lab.bench.sim()
    latest = lab.bench.tmp / "latest.dat"
    lab.write(f'start = "command"\nsinks = [\'file:{latest},overwrite\']\n[stop]\nsize = "200K"\n' + fade("left"))
    process = lab.start()
    wait_for((lab.runs / "control.socket").exists)
    for number in (1, 2, 3):
        lab.ask("start")
        wait_for(lambda number=number: (lab.runs / f"run_{number:06}/manifest.json").exists() and lab.manifest(number)["state"] != "running")
        wait_for(lambda number=number: lab.manifest(number)["state"] == "complete")
    end(process)
    assert latest.stat().st_size > 200_000


@pytest.mark.parametrize("confirm", ["memory", "durable"])
def test_copies_by_hard_links_stay_as_they_are(lab, confirm):
    """Of a run whose program was killed: it is closed, or goes on, and neither is done to the copy (cp -al)."""
    lab.bench.sim(*SLOW)
    lab.write(f'confirm = "{confirm}"\n' + fade("left"))
    process = lab.start()
    data = lab.runs / "run_000001/left.dat"
    wait_for(lambda: data.exists() and data.stat().st_size > 100_000)
    process.signal(signal.SIGKILL)
    process.finish()
    copies = {path: lab.bench.tmp / f"copy-{path.name}" for path in (data, data.with_name("left.hashes"))}
    for path, copy in copies.items():
        os.link(path, copy)
    before = {copy: copy.read_bytes() for copy in copies.values()}
    process = lab.start()
    newest = data if confirm == "durable" else lab.runs / "run_000002/left.dat"
    size = data.stat().st_size if confirm == "durable" else 0
    wait_for(lambda: newest.exists() and newest.stat().st_size > size + 50_000)
    status, err = end(process)
    assert status == 0 and lab.check()[0] == 0, err
    assert {copy: copy.read_bytes() for copy in before} == before


def test_a_run_folder_that_is_a_link_is_left_alone(lab):
    """What it leads to is not closed, and its number is not given again."""
    lab.bench.sim(*SLOW)
    lab.write('confirm = "durable"\n' + fade("left"))
    process = lab.start()
    data = lab.runs / "run_000001/left.dat"
    wait_for(lambda: data.exists() and data.stat().st_size > 100_000)
    process.signal(signal.SIGKILL)
    process.finish()
    elsewhere = lab.bench.tmp / "elsewhere"
    lab.folder(1).rename(elsewhere)
    lab.folder(1).symlink_to(elsewhere)
    before = {path.name: path.read_bytes() for path in elsewhere.iterdir()}
    process = lab.start()
    data = lab.runs / "run_000002/left.dat"
    wait_for(lambda: data.exists() and data.stat().st_size > 50_000)
    end(process)
    assert {path.name: path.read_bytes() for path in elsewhere.iterdir()} == before

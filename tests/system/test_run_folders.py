"""Folders of runs: what comes to their place is not touched, and what is said of a run is that of this run."""

import contextlib
import json
import os
import signal
import socket
import subprocess

import pytest
from support.control import ask, state
from support.lab import Lab, fade
from support.netns import sh, wait_for

WORDS = bytes(8000)


@pytest.fixture
def lab(bench):
    return Lab(bench)


@pytest.fixture
def mounted(lab):
    """Where small disks are mounted until the end."""
    mounted = []
    yield mounted
    lab.bench.close()
    for path in mounted:
        sh("umount", path)


def tcp(lab, *sinks, more="", start="now"):
    """An experiment with one TCP board, `a`."""
    sinks = json.dumps([str(sink) for sink in sinks or ["file:{board}.dat"]])
    lab.write(f'start = "{start}"\nend = "told"\nhttp = "127.0.0.1:9470"\n{more}\n'
              f'[[tcp]]\nname = "a"\naddress = "127.0.0.1"\nport = 10000\nsinks = {sinks}\n')  # fmt: skip


def board(lab, data=WORDS):
    """Its board, which has connected and sent something."""
    found = []

    def connected():
        with contextlib.suppress(OSError):
            found.append(lab.bench.in_namespace(lab.bench.pc_ns, lambda: socket.create_connection(("127.0.0.1", 10000), timeout=60)))
        return found

    wait_for(connected)
    found[0].sendall(data)
    return found[0]


def has_come(lab, data=WORDS):
    # A word that is not whole is not counted.
    wait_for(lambda: state(lab)["bytes"] == len(data) // 8 * 8)


def is_asked(lab, path):
    """True if the program is there, and does it."""
    with contextlib.suppress(OSError):
        return ask(lab, "POST", path)[0] == 202


def whole_run(lab, data=WORDS):
    """A run whose board sends its words and ends: its exit status and messages."""
    process = lab.start()
    board(lab, data).close()
    status, _, err = process.finish()
    return status, err


@pytest.mark.parametrize(("data", "status"), [(WORDS, 0), (WORDS + b"half", 3)])
def test_a_stop_tells_how_its_run_has_ended(lab, data, status):
    """Though the program ends with its run, and before it is asked again."""
    tcp(lab)
    process = lab.start()
    feb = board(lab, data)
    has_come(lab, data)
    stop = lab.bench.fadelink("stop", lab.file)
    wait_for(lambda: state(lab)["state"] == "stopping")
    stop.signal(signal.SIGSTOP)
    feb.close()
    assert process.finish()[0] == status
    stop.signal(signal.SIGCONT)
    found, out, err = stop.finish()
    assert found == status, (out, err)
    told = json.loads(out)
    assert told["complete"] == (status == 0) and told["run"] == 1 and told["state"] == lab.manifest()["state"], told


def test_a_stop_does_not_speak_of_the_next_run(lab):
    tcp(lab, start="command")
    process = lab.start()
    wait_for(lambda: is_asked(lab, "/start"))
    feb = board(lab, WORDS + b"half")
    has_come(lab, WORDS + b"half")
    stop = lab.bench.fadelink("stop", lab.file)
    wait_for(lambda: state(lab)["state"] == "stopping")
    stop.signal(signal.SIGSTOP)
    feb.close()
    wait_for(lambda: is_asked(lab, "/start"))
    wait_for(lambda: state(lab)["run"] == 2)
    stop.signal(signal.SIGCONT)
    found, out, err = stop.finish()
    told = json.loads(out)
    assert (found, told["run"], told["complete"], told["state"]) == (3, 1, False, "incomplete"), (told, err)
    process.signal(signal.SIGTERM)
    process.finish()


def test_a_stop_calls_no_run_ended_that_goes_on(lab):
    """Its program does not answer any more, and is killed then: neither is an end of the run."""
    tcp(lab)
    process = lab.start()
    feb = board(lab)
    has_come(lab)
    for end in (signal.SIGSTOP, signal.SIGKILL):
        stop = lab.bench.fadelink("stop", lab.file)
        wait_for(lambda: state(lab)["state"] == "stopping")
        process.signal(end)
        status, out, err = stop.finish()
        assert status == 1 and not out and "control.socket: " in err, (status, out, err)
        process.signal(signal.SIGCONT)
    feb.close()
    process.finish()


@pytest.mark.parametrize("wish", ["start", "stop"])
def test_a_program_that_does_not_answer_is_told(lab, wish):
    tcp(lab, start="command")
    process = lab.start()
    wait_for(lambda: (lab.runs / "control.socket").exists())
    process.signal(signal.SIGSTOP)
    status, _, err = lab.bench.run(wish, lab.file)
    assert status == 1 and "control.socket: `fadelink run` does not answer in 10 s" in err, err
    process.signal(signal.SIGCONT)
    process.signal(signal.SIGTERM)
    process.finish()


@pytest.mark.parametrize("wish", ["start", "stop"])
@pytest.mark.parametrize("answer", [b"", b"220 mail.example\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{", b"HTTP/1.1 200 OK\r\n\r\n<p>"])
def test_an_answer_that_is_none_is_told_with_its_socket(lab, wish, answer):
    """The program ends, or is killed, while it is asked; or another one has its socket."""
    tcp(lab)
    lab.runs.mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        at = os.open(lab.runs, os.O_PATH)
        listener.bind(f"/proc/self/fd/{at}/control.socket")
        os.close(at)
        listener.listen()
        asked = lab.bench.fadelink(wish, lab.file)
        with listener.accept()[0] as connection:
            connection.recv(1 << 16)
            connection.sendall(answer)
        status, out, err = asked.finish()
    assert status == 1 and not out and "control.socket: `fadelink run` gave no answer: " in err, (status, out, err)


def test_no_run_begins_where_the_disk_is_full(lab, mounted):
    lab.runs.mkdir()
    sh("mount", "-t", "tmpfs", "-o", "size=20m", "small", lab.runs)
    mounted.append(lab.runs)
    tcp(lab, start="command")
    process = lab.start()
    for _ in range(3):
        wait_for(lambda: is_asked(lab, "/start"))
        wait_for(lambda: state(lab)["state"] == "waiting" and state(lab)["error"])
        assert "bytes are free on its disk, less than disk.reserve (1073741824)" in state(lab)["error"]
        assert ask(lab, "GET", "/health")[0] == 503 and not list(lab.runs.glob("run_*"))
    process.signal(signal.SIGTERM)
    assert process.finish()[0] == 3
    tcp(lab)
    status, _, err = lab.start().finish()
    assert status == 1 and "make space, or reserve less" in err and not list(lab.runs.glob("run_*")), err
    tcp(lab, more='disk = { reserve = "1M" }')
    assert whole_run(lab)[0] == 0


NAMES = ["manifest.json", "manifest.json.part", "unfinished", "log.jsonl", "a.dat", "a.hashes", "a.transmissions", "experiment.toml"]


@pytest.mark.parametrize("moment", ["waits", "receives"])
@pytest.mark.parametrize("how", ["link", "folder"])
def test_what_comes_to_the_place_of_a_folder_is_not_touched(lab, moment, how):
    tcp(lab)
    process = lab.start()
    wait_for(lambda: (lab.runs / "run_000001/manifest.json").exists())
    if moment == "receives":
        feb = board(lab)
        has_come(lab)
    precious = lab.bench.tmp / "precious"
    precious.mkdir()
    for name in NAMES:
        (precious / name).write_text(f"precious {name}")
    (lab.runs / "run_000001").rename(lab.runs / "moved")
    if how == "link":
        (lab.runs / "run_000001").symlink_to(precious)
    else:
        precious.rename(lab.runs / "run_000001")
    if moment == "receives":
        feb.close()
    else:
        process.signal(signal.SIGTERM)
    status, _, err = process.finish()
    told = ("the folder of the run was moved, removed or replaced", "was replaced by another one", "or a folder of its path was")
    assert status == 1 and any(text in err for text in told), err
    found = {path.name: path.read_text() for path in (lab.runs / "run_000001").iterdir()}
    assert found == {name: f"precious {name}" for name in NAMES}, err


@pytest.mark.parametrize("sink", ["file:../../x.dat", "file:../{run}-{board}.dat,roll=3K", "hdf5:../../x.h5", "file:{tmp}/y.dat"])
def test_files_outside_the_folder_can_be_checked(lab, sink):
    tcp(lab, sink.replace("{tmp}", str(lab.bench.tmp)))
    status, err = whole_run(lab)
    assert status == 0, err
    status, out, err = lab.bench.run("check", lab.folder())
    assert status == 3 and "it is outside the folder of the run, and was not read (--outside reads it)" in err + out, (out, err)
    status, out, err = lab.bench.run("check", "--outside", lab.folder())
    assert status == 0 and "complete, and as it was received" in out + err, (out, err)


@pytest.mark.parametrize("sink", ["file:{name}", "file:{name},roll=1K", "hdf5:{name}", "hdf5:{name},roll=16K", "hashes:{name}"])
def test_the_longest_names_can_be_written(lab, sink):
    for length, is_taken in ((230, True), (231, False)):
        tcp(lab, sink.replace("{name}", "x" * length), *(["file:a.dat"] if sink.startswith("hashes") else []))
        status, _, err = lab.bench.run("run", "--check", lab.file)
        assert (status == 0) == is_taken and (is_taken or "its name has 231 bytes; expected at most 230" in err), err
        if is_taken:
            status, err = whole_run(lab)
            assert status == 0 and lab.check()[0] == 0, err


def test_what_is_left_of_a_begin_is_removed_and_a_lock_without_a_number_is_told(lab):
    tcp(lab)
    assert whole_run(lab)[0] == 0
    (lab.runs / "run_000002").mkdir()
    assert "run_000002: it was empty, and was removed" in whole_run(lab)[1]
    assert lab.folder().name == "run_000002"
    for text in ("garbage", "1000000000000", "7 8", ""):
        (lab.runs / "lock").write_text(text)
        process = lab.start()
        board(lab).close()
        status, _, err = process.finish()
        assert status == 0 and f"lock: `{text}`: expected the number of the last run" in err, err
    assert lab.folder().name == "run_000006"
    (lab.runs / "lock").write_text("9" * 12)
    status, _, err = lab.start().finish()
    assert status == 1 and "has the last number: move it away" in err, err


def test_the_files_of_the_program_are_no_sinks(lab):
    lab.file = lab.file.with_name("e.toml")
    for name in ("registers.toml", "kafka.conf"):
        (lab.bench.tmp / name).write_text("")
    registers = fade("b", 0, 'registers = "registers.toml"')
    for sink in ("file:../../e.toml,overwrite", "file:../lock,overwrite", "hashes:../control.socket", f"file:{lab.file},overwrite",
                 "file:../../registers.toml,overwrite", "hdf5:../../kafka.conf,overwrite"):  # fmt: skip
        tcp(lab, sink, "file:{board}.dat", more='kafka_config_file = "kafka.conf"')
        lab.write(lab.file.read_text() + registers)
        status, _, err = lab.bench.run("run", "--check", lab.file)
        assert status == 2 and "it is a file that `fadelink run` reads itself; expected another name" in err, err


@pytest.mark.parametrize("name", ["a.hashes", "log.jsonl"])
def test_what_others_write_into_the_files_of_a_run_is_told(lab, name):
    """Of the same length, and in place."""
    tcp(lab)
    process = lab.start()
    feb = board(lab)
    has_come(lab)
    path = lab.runs / "run_000001" / name
    wait_for(lambda: path.stat().st_size > 0)
    with open(path, "r+b") as file:
        file.seek(path.stat().st_size // 2)
        byte = file.read(1)[0]
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte ^ 1]))
    feb.close()
    status, _, err = process.finish()
    assert status in (1, 3) and "another program has changed it" in err, err
    manifest = lab.manifest()
    assert manifest["state"] == "failed" and "another program has changed it" in manifest["error"], manifest["error"]
    assert lab.check()[0] == 3


def test_a_run_in_the_folder_of_another_one_is_told(lab):
    tcp(lab)
    for _ in range(2):
        assert whole_run(lab)[0] == 0
    subprocess.run(["rm", "-r", lab.runs / "run_000002"], check=True)
    subprocess.run(["cp", "-r", lab.runs / "run_000001", lab.runs / "run_000002"], check=True)
    status, out, err = lab.bench.run("check", lab.runs / "run_000002")
    assert status == 3 and "it is of run 1: expected that of its folder" in out + err, (out, err)
    # Under another name it is an archive.
    (lab.runs / "run_000002").rename(lab.runs / "archive")
    assert lab.bench.run("check", lab.runs / "archive")[0] == 0


def test_what_a_failed_optional_sink_has_left_is_known_by_its_names(lab, mounted):
    small = lab.bench.tmp / "small"
    small.mkdir()
    sh("mount", "-t", "tmpfs", "-o", "size=100k", "small", small)
    mounted.append(small)
    tcp(lab, f"file:{small}/l.dat,optional", "file:{board}.dat")
    status, err = whole_run(lab, bytes(800_000))
    assert status == 0, err
    assert lab.bench.run("check", "--outside", lab.folder())[0] == 0
    for name in ("left_of_another_run.dat", "left.dat.part", "l", "l.dat"):
        (lab.folder() / name).write_text("foreign")
        status, out, err = lab.bench.run("check", "--outside", lab.folder())
        assert status == 3 and f"{name}: it " in out + err, (name, out, err)
        (lab.folder() / name).unlink()
    for name, make in (("lost+found", os.mkdir), ("link", lambda path: os.symlink("/etc/passwd", path))):
        make(lab.folder() / name)
        status, out, err = lab.bench.run("check", "--outside", lab.folder())
        assert status == 3 and "does not belong to the run" in out + err, (name, out, err)
        sh("rm", "-r", lab.folder() / name)

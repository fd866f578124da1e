"""Folders of runs: what comes to their place is not touched, and what is said of a run is that of this run."""

import os
import signal
import socket
import subprocess

import pytest
from support.control import ask, state, waits
from support.lab import Lab
from support.netns import sh, wait_for
from support.tcp_run import board, has_come, is_asked, tcp, whole_run


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


@pytest.mark.parametrize("what", ["file", "folder", "link"])
def test_what_is_in_the_place_of_the_socket_is_told(lab, what):
    tcp(lab)
    lab.runs.mkdir()
    place = lab.runs / "control.socket"
    {"file": place.touch, "folder": place.mkdir, "link": lambda: place.symlink_to("/dev/null")}[what]()
    status, _, err = lab.start().finish()
    assert status == 1 and "control.socket: it is not a socket; remove it, or choose another folder" in err, err
    assert place.is_symlink() == (what == "link") and place.is_dir() == (what == "folder")


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


@pytest.mark.parametrize("removed", [["lock"], ["lock", "control.socket"]])
def test_a_folder_whose_lock_was_removed_is_of_one_program(lab, removed):
    tcp(lab, start="command")
    process = lab.start()
    wait_for(lambda: (lab.runs / "control.socket").exists())
    for name in removed:
        (lab.runs / name).unlink()
    status, _, err = lab.start().finish()
    assert status == 1 and "runs: another `fadelink run` uses it; end that, or choose another folder" in err, err
    assert not any((lab.runs / name).exists() for name in removed)
    if "control.socket" not in removed:
        status, _, err = lab.bench.run("start", lab.file)
        told = "lock was removed or replaced, so another `fadelink run` may use the folder: end this one, and start it again"
        assert status == 1 and told in err and not list(lab.runs.glob("run_*")), err
    process.signal(signal.SIGTERM)
    process.finish()
    assert not (lab.runs / "control.socket").exists()
    tcp(lab)
    assert whole_run(lab)[0] == 0


def test_the_socket_of_another_program_is_left(lab):
    tcp(lab, start="command")
    process = lab.start()
    path = lab.runs / "control.socket"
    wait_for(lambda: path.exists())
    path.unlink()
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(path))
        other.listen()
        process.signal(signal.SIGTERM)
        _, _, err = process.finish()
        assert path.is_socket() and "control.socket: it is of another program now, and is left" in err, err
        status, _, err = lab.start().finish()
        assert status == 1 and "control.socket: another program listens there" in err and path.is_socket(), err
    # Of a program that is not there any more.
    process = lab.start()
    wait_for(lambda: is_asked(lab, "/start"))
    process.signal(signal.SIGTERM)
    process.finish()
    assert not path.exists()


def test_a_disk_without_room_for_a_name_is_told_with_the_file(lab, mounted):
    lab.runs.mkdir()
    sh("mount", "-t", "tmpfs", "-o", "size=20m,nr_inodes=60", "small", lab.runs)
    mounted.append(lab.runs)
    tcp(lab, start="command", more='disk = { reserve = "1M" }')
    process = lab.start()
    wait_for(lambda: is_asked(lab, "/start"))
    feb = board(lab)
    has_come(lab)
    with pytest.raises(OSError, match="No space left"):
        for number in range(60):
            (lab.runs / f"other-{number}").touch()
    assert is_asked(lab, "/stop")
    assert feb.recv(1) == b"", "it is asked for its end"
    feb.close()
    wait_for(lambda: waits(lab))
    assert "run_000001: the manifest: No space left on device" in state(lab)["error"], state(lab)
    process.signal(signal.SIGTERM)
    process.finish()


def test_connections_that_are_more_than_expected_are_told_once_and_counted(lab):
    tcp(lab)
    process = lab.start()
    boards = [board(lab)]
    has_come(lab)
    process.signal(signal.SIGSTOP)
    boards += [board(lab) for _ in range(20)]
    process.signal(signal.SIGCONT)
    wait_for(lambda: 'reason="unrecorded"} 20' in ask(lab, "GET", "/metrics")[1])
    for feb in boards:
        feb.close()
    process.signal(signal.SIGTERM)
    status, _, err = process.finish()
    assert status == 3 and lab.manifest()["groups"][0]["unrecorded_connections"] == 20, err
    assert err.count("data of one more connection is not recorded") == 1, err


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

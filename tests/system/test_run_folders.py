"""Folders of runs: what comes to their place is not touched, and what is said of a run is that of this run."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import threading
from pathlib import Path

import pytest
from support.control import ask, state, waits
from support.lab import Lab, fade
from support.netns import sh, wait_for
from support.tcp_run import WORDS, board, has_come, is_asked, tcp, whole_run


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


def test_a_stop_tells_of_its_run_though_the_next_one_cannot_begin(lab):
    tcp(lab, start="command")
    process = lab.start()
    wait_for(lambda: is_asked(lab, "/start"))
    feb = board(lab)
    has_come(lab)
    stop = lab.bench.fadelink("stop", lab.file)
    wait_for(lambda: state(lab)["state"] == "stopping")
    stop.signal(signal.SIGSTOP)
    feb.close()
    wait_for(lambda: waits(lab))
    (lab.runs / "run_999999999999").mkdir()
    assert is_asked(lab, "/start")
    wait_for(lambda: state(lab)["error"])
    stop.signal(signal.SIGCONT)
    status, out, err = stop.finish()
    assert status == 0 and json.loads(out) == {"complete": True, "folder": str(lab.folder(1)), "run": 1, "state": "complete"}, (out, err)
    process.signal(signal.SIGTERM)
    process.finish()


@contextlib.contextmanager
def between(lab, asked):
    """An experiment whose program is that of the lab. Before it is asked to start a run, `asked` is called, and with the answer again."""
    file = lab.file.with_name("between.toml")
    file.write_text('folder = "between"\n' + lab.file.read_text())
    folder = lab.bench.tmp / "between"
    folder.mkdir()

    def serve(listener):
        while True:
            try:
                connection = listener.accept()[0]
            except OSError:
                return
            with connection:
                method, path, *_ = connection.recv(1 << 16).decode().split()
                if method == "POST":
                    asked("before")
                status, answer = ask(lab, method, path)
                if method == "POST":
                    asked("behind")
                text = json.dumps(answer)
                connection.sendall(f"HTTP/1.1 {status} \r\ncontent-length: {len(text)}\r\n\r\n{text}".encode())

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "control.socket"))
        listener.listen()
        thread = threading.Thread(target=serve, args=(listener,), daemon=True)
        thread.start()
        yield file
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.mark.parametrize("begins", [True, False])
def test_a_start_tells_of_the_run_that_it_has_asked_for(lab, begins):
    """The run before is withdrawn meanwhile, so there is one less, and then as many as before."""
    tcp(lab, start="command")
    process = lab.start()
    wait_for(lambda: is_asked(lab, "/start"))
    wait_for(lambda: state(lab)["state"] == "running")

    def asked(moment):
        if moment == "before":
            ask(lab, "POST", "/stop")
            wait_for(lambda: waits(lab))
            if not begins:
                (lab.runs / "run_999999999999").mkdir()
        else:
            wait_for(lambda: state(lab)["state"] == "running" or "last number" in str(state(lab)["error"]))

    with between(lab, asked) as file:
        status, out, err = lab.bench.run("start", file)
    if begins:
        assert status == 0 and json.loads(out)["run"] == 1 and json.loads(out)["state"] == "running", (out, err)
    else:
        assert status == 1 and not out and "the run has failed: folder" in err and "has the last number" in err, (out, err)
    process.signal(signal.SIGTERM)
    process.finish()


def test_a_start_whose_run_is_withdrawn_is_an_error(lab):
    tcp(lab, start="command")
    process = lab.start()
    wait_for(lambda: (lab.runs / "control.socket").exists())

    def asked(moment):
        if moment == "behind":
            ask(lab, "POST", "/stop")
            wait_for(lambda: waits(lab))

    with between(lab, asked) as file:
        status, out, err = lab.bench.run("start", file)
    assert status == 1 and not out and "it was stopped before it had begun, and nothing of it is left" in err, (out, err)
    process.signal(signal.SIGTERM)
    process.finish()


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("wish", ["start", "stop"])
def test_a_program_that_does_not_answer_is_told(lab, wish, full):
    """Also if no connection more fits into its queue."""
    tcp(lab, start="command")
    process = lab.start()
    wait_for(lambda: (lab.runs / "control.socket").exists())
    process.signal(signal.SIGSTOP)
    wait_for(lambda: "(stopped)" in Path(f"/proc/{process.popen.pid}/status").read_text())
    waiting = []
    with contextlib.suppress(BlockingIOError):
        while full:
            waiting.append(socket.socket(socket.AF_UNIX))
            waiting[-1].setblocking(False)
            waiting[-1].connect(str(lab.runs / "control.socket"))
    status, _, err = lab.bench.run(wish, lab.file)
    assert status == 1 and "control.socket: `fadelink run` does not answer in 10 s" in err, err
    for connection in waiting:
        connection.close()
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


def test_a_start_waits_until_a_board_obeys(lab):
    """A board that does not answer is an error of the start; one that does is waited for."""
    lab.write('start = "command"\n' + fade("a"))
    process = lab.start()
    wait_for(lambda: (lab.runs / "control.socket").exists())
    status, out, err = lab.bench.run("start", lab.file)
    assert status == 1 and not out and "the run has failed: run 1 has not begun: " in err, (out, err)
    assert state(lab)["run"] is None and not list(lab.runs.glob("run_*"))
    lab.bench.sim()
    status, out, err = lab.bench.run("start", lab.file)
    assert status == 0 and json.loads(out)["state"] == "running" and json.loads(out)["run"] == 1, (out, err)
    status, out, err = lab.bench.run("stop", lab.file)
    assert status == 0 and json.loads(out)["complete"], (out, err)
    process.signal(signal.SIGTERM)
    process.finish()


@pytest.mark.parametrize("how", ["stop", "signal"])
def test_a_start_whose_run_is_stopped_while_it_waits_is_an_error(lab, how):
    """Its interface is not there."""
    lab.write('start = "command"\nwait = 600\n' + fade("a").replace("eth0", "later0"))
    process = lab.start()
    wait_for(lambda: (lab.runs / "control.socket").exists())
    started = lab.bench.fadelink("start", lab.file)
    wait_for(lambda: state(lab)["run"] == 1 and state(lab)["state"] == "starting")
    if how == "stop":
        status, out, err = lab.bench.run("stop", lab.file)
        assert status == 1 and "it was stopped before it had begun" in err, (out, err)
    else:
        process.signal(signal.SIGTERM)
    status, out, err = started.finish()
    assert status == 1 and not out and "control.socket" in err + "control.socket" * (how == "stop"), (out, err)
    process.signal(signal.SIGTERM)
    process.finish()


def test_no_run_begins_with_a_file_that_has_changed(lab):
    """Its user would have other settings than those in it."""
    tcp(lab, start="command")
    text = lab.file.read_text()
    process = lab.start()
    wait_for(lambda: (lab.runs / "control.socket").exists())
    for change in (text.replace("10000", "10007"), text + "garbage =", ""):
        lab.file.write_text(change)
        status, out, err = lab.bench.run("start", lab.runs)
        assert status == 1 and f"{lab.file} has changed since `fadelink run` has read it; end that program, and start it again" in err, (out, err)
    lab.file.write_text(text)
    assert lab.bench.run("start", lab.runs)[0] == 0
    feb = board(lab)
    has_come(lab)
    # The next run is prepared meanwhile.
    for change in (text.replace("port = 10000", "port = none"), text + "[stop]\nduration = 'x'"):
        lab.file.write_text(change)
        status, _, err = lab.bench.run("start", lab.runs)
        assert status == 1 and "run 1 goes on; stop it first" in err, err
    lab.file.write_text(text + "[[fade]]\nmac = 5")
    stop = lab.bench.fadelink("stop", lab.file)
    wait_for(lambda: state(lab)["state"] == "stopping")
    feb.close()
    status, out, err = stop.finish()
    assert status == 0 and json.loads(out)["complete"], (out, err)
    lab.file.write_text(text + "garbage =")
    status, _, err = lab.bench.run("stop", lab.file)
    assert status == 2 and "or expected the folder of the runs in its place" in err, err
    process.signal(signal.SIGTERM)
    process.finish()


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


def test_a_folder_whose_lock_was_removed_is_of_one_program(lab):
    tcp(lab, start="command")
    process = lab.start()
    wait_for(lambda: (lab.runs / "control.socket").exists())
    (lab.runs / "lock").unlink()
    status, _, err = lab.start().finish()
    assert status == 1 and "control.socket: another `fadelink run` uses the folder, whose lock was removed" in err, err
    # The second one has made a lock, which the first does not have.
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
        assert status == 1 and "another `fadelink run` uses the folder" in err and path.is_socket(), err
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

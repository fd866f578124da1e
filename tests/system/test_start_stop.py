"""`fadelink start` and `fadelink stop`: what they say is of the run that they have asked for, and of the program that has it."""

import contextlib
import json
import os
import signal
import socket
import threading
from pathlib import Path

import blake3
import pytest
from support.control import ask, state, waits
from support.lab import Lab, fade
from support.netns import sh, wait_for
from support.tcp_run import WORDS, board, has_come, is_asked, tcp
from support.udp_software_board import ADDRESS, UdpBoard


@pytest.fixture
def lab(bench):
    return Lab(bench)


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


@pytest.mark.parametrize("kind", ["fade10g", "fade1", "udp"])
def test_a_start_waits_until_a_board_obeys(lab, kind):
    """A board that does not answer is an error of the start; one that does is waited for."""
    sh("ip", "-n", lab.bench.pc_ns, "link", "set", "lo", "up")
    tables = {
        "fade10g": fade("a"),
        "fade1": fade("a", more='protocol = "fade1"'),
        "udp": f'[[udp]]\nname = "a"\naddress = "{ADDRESS}"\nport = 10000\n',
    }
    lab.write('start = "command"\n' + tables[kind])
    process = lab.start()
    wait_for(lambda: (lab.runs / "control.socket").exists())
    # One with FADE v1 need not answer.
    if kind != "fade1":
        status, out, err = lab.bench.run("start", lab.file)
        assert status == 1 and not out and "the run has failed: run 1 has not begun: " in err, (out, err)
    assert state(lab)["run"] is None and not list(lab.runs.glob("run_*"))
    with contextlib.ExitStack() as stack:
        if kind == "udp":
            board = stack.enter_context(contextlib.closing(UdpBoard(lab.bench)))
        else:
            lab.bench.sim(*(["--protocol", "fade1", "--phy", "gmii", "--gap", 1600] if kind == "fade1" else []))
        status, out, err = lab.bench.run("start", lab.file)
        assert status == 0 and json.loads(out)["state"] == "running" and json.loads(out)["run"] == 1, (out, err)
        if kind == "udp":
            board.words()
        elif kind == "fade1":
            wait_for(lambda: state(lab)["bytes"])
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
    lab.file.unlink()
    for change in (None, text.replace("10000", "10007"), text + "garbage =", "", "\xe9"):
        if change is not None:
            lab.file.write_text(change, encoding="latin-1")
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


@pytest.mark.parametrize(
    ("condition", "begins"),
    [
        ('"{hash}"', True),
        ('"x", "{hash}"', True),
        ("*", True),
        ('"x"', False),
        ('"x", "y"', False),
        ('W/"{hash}"', False),
        ("{hash}", False),
        ('"{hash}', False),
        ("", False),
        (b'"\xff"', False),
        (b"\xff", False),
    ],
)
def test_a_start_has_conditions(lab, condition, begins):
    """`If-Match` (RFC 9110 section 13.1.1). What cannot be read is not the file either."""
    tcp(lab, start="command")
    process = lab.start()
    wait_for(lambda: (lab.runs / "control.socket").exists())
    if isinstance(condition, str):
        condition = condition.format(hash=blake3.blake3(lab.file.read_bytes()).hexdigest())
    status, answer = ask(lab, "POST", "/start", **{"If-Match": condition})
    if begins:
        assert status == 202, answer
        board(lab).close()
        assert ask(lab, "POST", "/stop")[0] == 202
    else:
        assert status in (400, 412) and answer["error"] and not list(lab.runs.glob("run_*")), (status, answer)
    process.signal(signal.SIGTERM)
    process.finish()


def test_no_run_begins_for_another_file(lab):
    """Of the same folder: a copy, in which the next run is prepared."""
    tcp(lab, start="command")
    process = lab.start()
    wait_for(lambda: (lab.runs / "control.socket").exists())
    text, other = lab.file.read_text(), lab.file.with_name("other.toml")
    for change in ("title = 'another'\n" + text, text.replace("{board}.dat", "b.dat")):
        other.write_text(change)
        status, out, err = lab.bench.run("start", other)
        assert status == 1 and not out and f"has read {lab.file}, which differs from this file" in err and not list(lab.runs.glob("run_*")), err
    other.write_text(text)
    assert lab.bench.run("start", other)[0] == 0
    board(lab).close()
    # To end a run any of them will do.
    other.write_text("title = 'another'\n" + text)
    assert lab.bench.run("stop", other)[0] == 0
    process.signal(signal.SIGTERM)
    process.finish()

"""Boards that do not end when they are asked to: one time limit, whether they are silent or send on, and the disk keeps its reserve."""

import contextlib
import json
import signal
import socket
import threading

from support import fadc_model as model
from support.control import COUNTER, ask, state, waits
from support.crate import WINDOW_NS
from support.netns import PATIENCE, sh, wait_for

HEAD = 'start = "command"\nend = "silence"\n[stop]\nduration = 1\n'
TCP = '[[tcp]]\nname = "sender"\naddress = "127.0.0.1"\nport = 10001\nsinks = ["file:{board}.dat"]\n'
CRATES = f'[[crates]]\nname = "crate"\nport = 10002\nwindow_ns = {WINDOW_NS}\nexpect = 1\nsinks = ["file:{{board}}.dat"]\n'


def words():
    while True:
        yield COUNTER


def windows():
    record = 0
    while True:
        yield b"".join(model.message(1, record + i, [], WINDOW_NS) for i in range(10))
        record += 10


def connect(bench, port, count=1):
    """Connections of boards, when the program has opened the port."""
    made = []

    def has_connected():
        with contextlib.suppress(ConnectionRefusedError):
            while len(made) < count:
                made.append(bench.in_namespace(bench.pc_ns, lambda: socket.create_connection(("127.0.0.1", port), timeout=60)))
        return len(made) == count

    wait_for(has_connected)
    return made


class Sender:
    """A board that sends on, also when it is asked for the end, until its connection is reset."""

    def __init__(self, bench, port, data, pause=0.1):
        (self.connection,) = connect(bench, port)
        self.over, self.error = threading.Event(), None
        self.thread = threading.Thread(target=self.send, args=(data, pause))
        self.thread.start()

    def send(self, data, pause):
        try:
            with self.connection:
                for part in data:
                    self.connection.sendall(part)
                    if self.over.wait(pause):
                        return
        except OSError as error:
            self.error = error

    def is_cut_off(self):
        """It has learned that its connection is broken."""
        self.thread.join(PATIENCE)
        self.over.set()
        self.thread.join()
        return isinstance(self.error, ConnectionError)


def test_boards_that_send_on_are_cut_off(lab):
    """However `fadelink` receives them. Health tells it while it lasts, and all have one time limit, those that are silent too."""
    bench = lab.bench
    lab.write(HEAD + TCP + CRATES)
    run = lab.start()
    receive = [
        bench.fadelink("receive", "--tcp", port, "--json", "--sink", f"file:{bench.tmp}/{port}-{{stream}}.dat", *words)
        for port, words in [(10003, ["--duration", 1]), (10004, ["--streams", 1, "--packets", 2]), (10005, [])]
    ]
    build = bench.fadelink(
        "build", "--tcp", 10006, "--window-ns", WINDOW_NS, "--expect", 1, "--json", "--duration", 1, "--sink", f"file:{bench.tmp}/x.dat"
    )
    silent = connect(bench, 10005, 30)
    for one in silent[:20]:
        one.sendall(COUNTER)
    wait_for(lambda: (lab.runs / "control.socket").exists())
    assert ask(lab, "POST", "/start")[0] == 202
    sent = {10001: words(), 10002: windows(), 10003: words(), 10004: words(), 10005: words(), 10006: windows()}
    senders = {port: Sender(bench, port, data) for port, data in sent.items()}
    wait_for(lambda: sum(path.stat().st_size > 0 for path in bench.tmp.glob("10005-*.dat")) == 21)
    receive[2].signal(signal.SIGTERM)
    told = []

    def has_ended():
        status, found = ask(lab, "GET", "/health")
        told.extend(found["troubles"])
        return waits(lab)

    wait_for(lambda: state(lab)["run"])
    wait_for(has_ended)
    assert len({trouble.split(":")[1] for trouble in told if "its end was asked for" in trouble}) == 2, set(told)
    for board in lab.manifest()["boards"]:
        text = json.dumps(board["reasons"])
        assert board["verdict"] == "incomplete" and "the board sent on" in text, board
    run.signal(signal.SIGTERM)
    assert run.finish()[0] == 3
    for process in [*receive, build]:
        status, out, err = process.finish()
        found = json.loads(out)
        assert status == 3 and found["verdict"] == "incomplete" and "the board sent on" in out, (found, err)
        if process is receive[2]:
            ends = [stream["error"] for stream in found["streams"]]
            assert len(ends) == 31 and all(" for 3" in end or "the board sent on" in end for end in ends), found
    for port, sender in senders.items():
        assert sender.is_cut_off(), port
    for one in silent:
        one.close()


def test_boards_that_send_on_leave_a_part_of_the_reserve(lab):
    """What comes after the end is bounded by the disk before it is bounded by time."""
    lab.runs.mkdir()
    sh("mount", "-t", "tmpfs", "-o", "size=96M", "tmpfs", lab.runs)
    try:
        lab.write(HEAD.replace("duration = 1", "duration = 600") + '[disk]\nreserve = "48M"\n' + TCP)
        run = lab.start()
        wait_for(lambda: (lab.runs / "control.socket").exists())
        assert ask(lab, "POST", "/start")[0] == 202
        sender = Sender(lab.bench, 10001, iter(lambda: bytes(1 << 20), None), pause=0.05)
        wait_for(lambda: waits(lab) and state(lab)["run"])
        manifest = lab.manifest()
        (board,) = manifest["boards"]
        free = int(sh("stat", "-f", "-c", "%a", lab.runs)) * int(sh("stat", "-f", "-c", "%S", lab.runs))
        assert manifest["ended_by"] == "disk" and board["verdict"] == "incomplete", manifest
        assert "disk.reserve" in json.dumps(board["reasons"]) and sender.is_cut_off(), board
        assert free > 8 << 20, "half of the reserve, and what was read by then"
        run.signal(signal.SIGTERM)
        run.finish()
    finally:
        sh("umount", "-l", lab.runs)

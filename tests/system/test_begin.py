"""What cannot begin changes nothing: files that were there are as they were, and nothing new is left."""

import contextlib
import json
import signal
import socket
import struct

import pytest
from support import fadc_model as model
from support.control import ask, state, waits
from support.crate import WINDOW_NS
from support.lab import fade
from support.netns import BOARD, FEBS, PC, add_address, sh, wait_for

PORT = 10000
KINDS = ["fade10g", "fade1", "tcp", "udp", "crates"]
BEFORE = b"of the run before\n"
NOT_HERE = "10.77.0.1"
# A board that never answers is asked for some seconds.
WAIT = 600
WORDS = struct.pack("<20000Q", *range(20000))
WINDOWS = b"".join(model.message(1, record, [], WINDOW_NS) for record in range(20))
EACH = pytest.mark.parametrize("kind", KINDS)
# A run has files of its own that end in .hashes.
ENDS = {"hashes": "hsh"}
IS_FADE = {"fade10g", "fade1"}


def sinks(kind, folder, options=""):
    """Each kind of sink that makes files."""
    kinds = ["file", "hdf5", "parquet"] if kind == "crates" else ["file", "hdf5", "hashes"]
    rolls = lambda name: "" if name == "hashes" else ",roll=1G"  # noqa: E731
    return [f"{name}:{folder}/run.{ENDS.get(name, name)}{rolls(name)}{options}" for name in kinds]


def fill(folder):
    """Files of a run before, those with numbers too."""
    for kind in ("file", "hdf5", "hsh", "parquet", "windows.parquet"):
        (folder / f"run.{kind}").write_bytes(BEFORE)
        (folder / f"run.000003.{kind}").write_bytes(BEFORE)
    (folder / "run.file.json").write_bytes(BEFORE)
    (folder / "run.hdf5.part").write_bytes(BEFORE)


def snapshot(folder):
    """Content, times and identity of all files."""
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_ino) for path in folder.iterdir()}


class Said:
    """A program; what it says is read while it runs."""

    def __init__(self, bench, *words):
        self.path = bench.tmp / f"said-{len(bench.processes)}"
        with open(self.path, "w") as said:
            self.process = bench.fadelink(*words, stderr_to=said)

    def says(self, *texts):
        """Waits until it says one of these."""
        wait_for(lambda: self.process.popen.poll() is not None or any(text in self.path.read_text() for text in texts))
        assert any(text in self.path.read_text() for text in texts), self.path.read_text()

    def finish(self):
        """Its exit status, and what it has said."""
        status, _, _ = self.process.finish()
        return status, self.path.read_text()

    def stop(self):
        self.process.signal(signal.SIGINT)
        return self.finish()


class Site:
    """Boards of a kind, and what receives from them."""

    def __init__(self, bench, kind):
        self.bench, self.kind, self.is_missing, self.is_declared = bench, kind, False, True
        self.out = bench.tmp / "out"
        self.out.mkdir()
        sh("ip", "-n", bench.pc_ns, "link", "set", "lo", "up")
        add_address(bench)

    def options(self):
        if self.kind in IS_FADE:
            declared = ["--protocol", self.kind] if self.is_declared else []
            return ["receive", "--iface", "eth7" if self.is_missing else "eth0", "--feb", FEBS[0], *declared]
        listen = ["--listen", NOT_HERE] if self.is_missing else []
        if self.kind == "crates":
            return ["build", "--tcp", PORT, "--window-ns", WINDOW_NS, "--expect", 1, "--end", "told", *listen]
        if self.kind == "tcp":
            return ["receive", "--tcp", PORT, "--streams", 1, "--end", "told", *listen]
        return ["receive", "--udp", PORT, "--streams", 1, "--board", BOARD, *listen]

    def receive(self, *options, overwrite=False):
        words = [word for sink in sinks(self.kind, self.out, ",overwrite" if overwrite else "") for word in ("--sink", sink)]
        return Said(self.bench, *self.options(), "--json", *words, *options)

    def board(self):
        """Its table in the file of an experiment."""
        if self.kind in IS_FADE:
            declared = f'protocol = "{self.kind}"' if self.is_declared else ""
            return fade("left", 0, declared).replace("eth0", "eth7" if self.is_missing else "eth0")
        listen = f'listen = "{NOT_HERE}"\n' if self.is_missing else ""
        if self.kind == "crates":
            return f'[[crates]]\nname = "left"\nport = {PORT}\nwindow_ns = {WINDOW_NS}\nexpect = 1\n{listen}'
        address = PC if self.kind == "tcp" else BOARD
        return f'[[{self.kind}]]\nname = "left"\naddress = "{address}"\nport = {PORT}\n{listen}'

    def experiment(self, lab, head):
        """Sinks in the folder of the run, and elsewhere, where they replace what is there."""
        inside = [sink.replace("/run.", "{board}-x.") for sink in sinks(self.kind, "")]
        named = json.dumps([*inside, *sinks(self.kind, self.out, ",overwrite")])
        board = self.board()
        text = f'end = "told"\n{head}\n' + (f"sinks = {named}\n{board}" if self.kind != "crates" else f"{board}sinks = {named}\n")
        lab.write(text)

    def answers(self):
        """A board that has some words, and waits for who receives them."""
        if self.kind in IS_FADE:
            self.bench.sim("--protocol", self.kind, *(["--phy", "gmii"] if self.kind == "fade1" else []))
        elif self.kind == "udp":
            self.bench.sim("--protocol", "udp", "--stopped", "--words", 20000)

    def sends(self):
        """Those that begin by themselves send what they have, and end."""
        if self.kind not in ("tcp", "crates"):
            return

        def connect():
            with contextlib.suppress(OSError):
                return socket.create_connection((PC, PORT), timeout=60)

        made = []
        wait_for(lambda: made.append(self.bench.in_namespace(self.bench.pc_ns, connect)) or made[-1])
        made[-1].sendall(WORDS if self.kind == "tcp" else WINDOWS)
        made[-1].close()

    def takes_the_place(self):
        """Another program has the port, or the board."""
        if self.kind in IS_FADE:
            self.answers()
            other = self.bench.fadelink("receive", "--iface", "eth0", "--feb", FEBS[0], "--protocol", self.kind)
            self.bench.wait_for_frames()
            return other
        kind = socket.SOCK_DGRAM if self.kind == "udp" else socket.SOCK_STREAM

        def bind():
            taken = socket.socket(socket.AF_INET, kind)
            taken.bind(("0.0.0.0", PORT))
            if kind == socket.SOCK_STREAM:
                taken.listen()
            return taken

        return self.bench.in_namespace(self.bench.pc_ns, bind)


@pytest.fixture
def site(bench, request):
    return Site(bench, request.getfixturevalue("kind"))


def silent(site, start):
    """No board answers, or comes."""
    return start("--duration", 0.3).finish()


def taken(site, start):
    there = site.takes_the_place()
    status, err = start().finish()
    assert "already" in err, err
    del there
    return status, err


def missing(site, start):
    site.is_missing = True
    status, err = start().finish()
    assert ("eth7 does not exist" in err) if site.kind in IS_FADE else ("address" in err), err
    return status, err


def stopped(site, start):
    """While it waits for its board. One that is known to speak FADE v1 need not answer, so nothing is said about it."""
    site.is_declared = False
    process = start(*(["--wait", WAIT] if site.kind in (*IS_FADE, "udp") else []))
    # A run is there when it begins, and listens soon.
    process.says("asked again", "waiting for", "run 1 begins")
    return process.stop()


WAYS = pytest.mark.parametrize("way", [silent, taken, missing, stopped], ids=lambda way: way.__name__)


@WAYS
@EACH
@pytest.mark.parametrize("overwrite", [False, True], ids=["new", "overwrite"])
def test_outputs_of_what_does_not_begin(site, kind, way, overwrite):
    if overwrite:
        fill(site.out)
    before = snapshot(site.out)
    status, err = way(site, lambda *options: site.receive(*options, overwrite=overwrite))
    assert status in (1, 3), err
    assert snapshot(site.out) == before, err


@EACH
def test_what_begins_replaces_what_it_may_replace(site, kind):
    fill(site.out)
    before = snapshot(site.out)
    # The first name is taken, and so is one with a number.
    status, err = site.receive("--duration", 0.3).finish()
    if kind in (*IS_FADE, "crates"):
        assert status == 1 and "run.file exists; choose another name" in err, err
        (site.out / "run.file").unlink()
        (site.out / "run.file.json").unlink()
        status, err = site.receive("--duration", 0.3).finish()
        assert status == 1 and "run.000003.file exists; choose another name" in err, err
    assert all(snapshot(site.out)[name] == before[name] for name in snapshot(site.out))
    site.answers()
    process = site.receive(*([] if kind in ("tcp", "udp") else ["--duration", 3]), overwrite=True)
    site.sends()
    status, err = process.finish()
    assert status == 0, err
    names = ["run.file", "run.hdf5", *(["run.parquet", "run.windows.parquet"] if kind == "crates" else ["run.hsh", "run.file.json"])]
    now = snapshot(site.out)
    for name in names:
        assert now[name][0] != BEFORE and now[name][0], name
    rolled = ["file", "hdf5", *(["parquet", "windows.parquet"] if kind == "crates" else [])]
    assert not any(f"run.000003.{end}" in now for end in rolled), "they would look like files of this run"
    assert now["run.000003.hsh"] == before["run.000003.hsh"] and "run.hdf5.part" not in now


@WAYS
@EACH
def test_a_run_that_does_not_begin_is_none(site, lab, kind, way):
    fill(site.out)
    before = snapshot(site.out)

    def start(*options):
        site.experiment(lab, "")
        return Said(lab.bench, "run", lab.file, "--quiet", *options)

    status, err = way(site, start)
    assert status == (3 if way is stopped else 1) and "nothing of it is left" in err, err
    assert sorted(path.name for path in lab.runs.iterdir()) == ["lock"], err
    assert snapshot(site.out) == before, err
    if way in (taken, missing):
        return
    site.answers()
    process = start(*([] if kind in ("tcp", "udp") else ["--duration", 3]))
    site.sends()
    status, err = process.finish()
    assert lab.manifest(1)["run"] == 1 and status == 0, err
    status, found = lab.check(1)
    assert (lab.folder() / "left-x.file").stat().st_size > 0
    # Files that are not in the folder of the run are not read.
    assert all(str(site.out) in finding for finding in found["findings"]), found
    assert (site.out / "run.file").stat().st_size > len(BEFORE)
    assert len(list(lab.runs.glob("run_*"))) == 1


@pytest.mark.parametrize("end", ["stop", "POST /stop", "SIGTERM"])
@pytest.mark.parametrize("what", ["board", "interface"])
@pytest.mark.parametrize("kind", ["fade10g"])
def test_a_wait_is_ended_at_once(site, lab, kind, what, end):
    """By whatever ends a run. The one before stays that of `GET /run`, and the number is given to the next one."""
    site.experiment(lab, f'start = "command"\nwait = {WAIT}')
    board = site.bench.sim()
    process = Said(lab.bench, "run", lab.file, "--quiet")
    wait_for(lambda: (lab.runs / "control.socket").exists())
    lab.ask("start")
    wait_for(lambda: state(lab)["bytes"] > 0)
    lab.ask("stop")
    first, before = state(lab), snapshot(site.out)
    site.bench.end_sim(board)
    if what == "interface":
        sh("ip", "-n", site.bench.pc_ns, "link", "set", "eth0", "down")
    assert ask(lab, "POST", "/start")[0] == 202
    process.says("asked again" if what == "board" else "eth0 is down; set it up: ip link set eth0 up; it is looked for again")
    assert state(lab)["run"] == 2 and (lab.runs / "run_000002").exists()
    if end == "SIGTERM":
        process.process.signal(signal.SIGTERM)
        assert process.finish()[0] == 3
    else:
        if end == "stop":
            status, _, err = lab.bench.run("stop", lab.file)
            assert status == 1 and "stopped before it had begun" in err, err
        else:
            assert ask(lab, "POST", "/stop")[0] == 202
        wait_for(lambda: waits(lab))
        now = state(lab)
        assert (now["run"], now["complete"], now["runs"]) == (first["run"], first["complete"], first["runs"]), now
        assert 'fadelink_runs_total{result="stopped"} 1' in ask(lab, "GET", "/metrics")[1]
    assert not (lab.runs / "run_000002").exists() and snapshot(site.out) == before
    if end == "SIGTERM":
        return
    sh("ip", "-n", site.bench.pc_ns, "link", "set", "eth0", "up")
    site.bench.sim()
    lab.ask("start")
    wait_for(lambda: state(lab)["bytes"] > 0)
    lab.ask("stop")
    assert lab.manifest(2)["state"] == "complete" and lab.folder().name == "run_000002"


@pytest.mark.parametrize("kind", ["fade10g"])
def test_an_error_of_a_run_that_does_not_begin_is_told_and_counted(site, lab, kind):
    site.experiment(lab, 'start = "command"')
    process = lab.start()
    wait_for(lambda: (lab.runs / "control.socket").exists())
    status, _, err = lab.bench.run("start", lab.file)
    wait_for(lambda: waits(lab))
    assert "START" in state(lab)["error"] and state(lab)["run"] is None and state(lab)["runs"] == 0, state(lab)
    status, health = ask(lab, "GET", "/health")
    assert status == 503 and any("no response to command" in trouble for trouble in health["troubles"]), health
    assert 'fadelink_runs_total{result="failed"} 1' in ask(lab, "GET", "/metrics")[1]
    process.signal(signal.SIGTERM)
    status, _, err = process.finish()
    assert status == 3 and sorted(path.name for path in lab.runs.iterdir()) == ["lock"], err


@pytest.mark.parametrize("kind", ["fade10g"])
def test_what_one_board_has_sent_is_kept_when_another_does_not_answer(site, lab, kind):
    """Of the other one nothing is left."""
    site.bench.sim()
    for name in ("left", "right"):
        (site.out / f"{name}.dat").write_bytes(BEFORE)
    before = snapshot(site.out)
    lab.write(f"sinks = ['file:{site.out}/{{board}}.dat,overwrite', 'hdf5:{{board}}.h5']\n" + fade("left") + fade("right", 1))
    status, manifest, err = lab.run("--duration", 2)
    assert status == 3 and manifest["state"] == "incomplete", err
    now = snapshot(site.out)
    assert now["right.dat"] == before["right.dat"] and "right.dat.json" not in now and len(now["left.dat"][0]) > 8192
    assert [path.name for path in lab.folder().glob("*.h5*")] == ["left.h5"]
    # It has taken the number.
    assert lab.run("--duration", 1)[1]["run"] == 2


@pytest.mark.parametrize("kind", ["fade10g", "udp", "tcp", "crates"])
@pytest.mark.parametrize("command", ["receive", "run"])
def test_what_boards_are_reached_by_may_come_later(site, lab, kind, command):
    """An interface that is down, one that does not exist, an address of this computer."""
    site.is_missing = kind != "udp"
    eth0 = ["ip", "-n", site.bench.pc_ns, "link", "set", "eth0"]
    if kind == "udp":
        sh("ip", "-n", site.bench.pc_ns, "addr", "flush", "dev", "eth0")
    site.answers()
    limits = ["--wait", WAIT, *([] if kind in ("tcp", "udp") else ["--duration", 3])]
    if command == "receive":
        if kind == "crates":
            pytest.skip("fadelink build has no --wait")
        process = site.receive(*limits, overwrite=True)
    else:
        site.experiment(lab, "")
        process = Said(lab.bench, "run", lab.file, "--quiet", *limits)
    process.says("looked for again")
    assert not list(site.out.iterdir())
    if kind == "fade10g":
        sh(*eth0, "down")
        sh(*eth0, "name", "eth7")
        sh("ip", "-n", site.bench.pc_ns, "link", "set", "eth7", "up")
    else:
        sh("ip", "-n", site.bench.pc_ns, "addr", "add", f"{PC if kind == 'udp' else NOT_HERE}/24", "dev", "eth0")
    if kind in ("tcp", "crates"):
        connect_from(site)
    status, err = process.finish()
    assert status == 0, err
    assert (site.out / "run.file").stat().st_size > 0


def connect_from(site):
    """The board of this address sends."""

    def connect():
        with contextlib.suppress(OSError):
            return socket.create_connection((NOT_HERE, PORT), timeout=60, source_address=(PC, 0))

    made = []
    wait_for(lambda: made.append(site.bench.in_namespace(site.bench.pc_ns, connect)) or made[-1])
    made[-1].sendall(WORDS if site.kind == "tcp" else WINDOWS)
    made[-1].close()


@pytest.mark.parametrize("kind", ["fade10g"])
def test_no_sink_has_a_name_that_another_one_may_come_to(site, lab, kind):
    """In one program, and in two: also when the first file of the other one is finished."""
    site.bench.sim("--boards", 2, "--gap", 200)
    out = site.out
    status, _, err = site.bench.receive("--sink", f"file:{out}/a.dat,roll=1M", "--sink", f"hdf5:{out}/a.000007.dat").finish()
    assert status == 2 and "a.000007.dat: file:" in err and "has files with the same names; expected another name" in err, err
    lab.write(fade("left", 0, f"sinks = ['file:{out}/a.dat,roll=1M']") + fade("right", 1, f"sinks = ['file:{out}/a.000007.dat']"))
    status, _, err = lab.bench.run("run", lab.file, "--check")
    assert status == 2 and "`left` has a sink that makes files with the same names" in err, err
    assert not list(out.iterdir())
    first = site.bench.receive("--sink", f"file:{out}/a.dat,roll=100K")
    wait_for(lambda: (out / "a.000002.dat").exists())
    for sink, what in [("a.000900.dat,overwrite", "is one of those that follow"), ("a.dat,roll=1M,overwrite", "is being written by another sink")]:
        status, _, err = site.bench.receive("--sink", f"file:{out}/{sink}", feb=FEBS[1]).finish()
        assert status == 1 and what in err, err
    first.signal(signal.SIGINT)
    assert first.finish()[0] == 0

"""The life of runs: no error ends it but by a word about it, and none blocks the next run."""

import contextlib
import errno
import json
import random
import shutil
import signal
import socket
import struct

import pytest
from support.control import COUNTER, CRATES, DATA, TCP, ask, state, waits
from support.faults.site import clock_file, environment, step
from support.lab import fade
from support.netns import BOARD, FEBS, add_address, report, wait_for
from support.paths import FADELINK, SEED
from support.relay import Obeyed, Relayed


class Calls:
    """The calls of a program with files below a folder: which of them fail (tests/support/faults.c)."""

    def __init__(self, lab):
        self.path = lab.bench.tmp / "calls"
        self.path.write_bytes(bytes(32))
        self.environment = environment() | {"FADELINK_CALLS": str(self.path), "FADELINK_CALLS_PATH": str(lab.runs / "run_")}

    def fail(self, number, error, all_behind=False):
        with open(self.path, "r+b") as file:
            file.write(struct.pack("<qqq", number, error, all_behind))

    def count(self):
        return struct.unpack("<4q", self.path.read_bytes())[3]


def put_away(lab):
    """Moves runs that have ended elsewhere: the next one does not look at them."""
    for folder in lab.runs.glob("run_*"):
        # What could not begin leaves no folder.
        manifest = json.loads((folder / "manifest.json").read_text())
        if not (folder / "unfinished").exists():
            assert manifest["state"] in ("complete", "incomplete", "end_not_confirmed", "failed", "crashed"), (folder, manifest)
            shutil.move(folder, lab.bench.tmp / folder.name)


def sends(lab, data):
    """A board sends its words, and ends; false: nobody listens yet."""
    with contextlib.suppress(OSError):
        board = lab.bench.in_namespace(lab.bench.pc_ns, lambda: socket.create_connection(("127.0.0.1", 10000), timeout=60))
        with contextlib.closing(board):
            board.sendall(data)
            board.shutdown(socket.SHUT_WR)
            return True
    return False


def one_run(lab, data=COUNTER):
    """A run whose board sends its words, if it begins: how it ended."""
    assert ask(lab, "POST", "/start")[0] == 202
    wait_for(lambda: waits(lab) or sends(lab, data))
    # Crates may come again, so their run goes on; so does one that waits for a board.
    wait_for(lambda: waits(lab) or state(lab)["bytes"] > 0 or "sender: " in str(ask(lab, "GET", "/health")[1]["troubles"]))
    ask(lab, "POST", "/stop")
    wait_for(lambda: waits(lab))
    return state(lab)


def begin(lab, text=TCP, **options):
    lab.write(text)
    process = lab.bench.fadelink("run", lab.file, "--quiet", stderr_to=open(lab.bench.tmp / "err", "w"), **options)
    wait_for(lambda: (lab.runs / "control.socket").exists())
    return process


@pytest.mark.parametrize("text", [TCP, CRATES], ids=["tcp", "crates"])
@pytest.mark.parametrize("error, all_behind", [(errno.EIO, False), (errno.EMFILE, False), (errno.ENOSPC, True)])
def test_an_error_of_any_call_is_told_and_the_next_run_begins(lab, text, error, all_behind):
    """Of those of the file system, from the begin of a run to its end, in disorder (FADELINK_SEED)."""
    calls, data = Calls(lab), DATA[text]
    process = begin(lab, text, env=calls.environment)
    before = calls.count()
    calls.fail(0, error)
    assert one_run(lab, data)["complete"] is True
    number = calls.count() - before
    assert number > 30, "calls are not seen"
    chosen = list(range(1, number + 1))
    random.Random(f"{SEED}/{error}").shuffle(chosen)
    told, runs_before = 0, 1
    for at in chosen:
        calls.fail(at, error, all_behind)
        found = one_run(lab, data)
        calls.fail(0, 0)
        where = f"call {at} of {number}: {found}"
        healthy, health = ask(lab, "GET", "/health")
        if found["error"]:
            told += 1
            assert healthy == 503 and any(found["error"] in trouble for trouble in health["troubles"]), (where, health)
            assert not found["complete"] or found["run"] == runs_before, where
        else:
            assert healthy == 200, (where, health)
        runs_before = found["run"]
        if found["complete"] and not found["error"]:
            status, checked = lab.check(found["run"])
            assert status == 0, (where, checked)
            assert (lab.folder(found["run"]) / "sender.dat").read_bytes() == data, where
        put_away(lab)
    assert told > 5, "nothing was told"
    assert one_run(lab, data)["complete"] is True and ask(lab, "GET", "/health")[0] == 200
    put_away(lab)
    assert not list(lab.runs.glob("run_*")), "what could not end was closed by the next run"
    metrics = ask(lab, "GET", "/metrics")[1]
    (failed,) = (line for line in metrics.splitlines() if line.startswith("fadelink_runs_total") and '"failed"' in line)
    assert float(failed.split()[-1]) == told, failed
    process.signal(signal.SIGTERM)
    assert process.finish()[0] == 3


def test_an_error_while_a_board_is_waited_for_is_told(lab):
    """Of any call, as above. What is wrong is not told as a board that is waited for."""
    calls = Calls(lab)
    process = begin(lab, "wait = 1000\n" + TCP + fade("late").replace("eth0", "later0"), env=calls.environment)
    before = calls.count()
    calls.fail(0, errno.EIO)
    assert one_run(lab)["complete"] is False
    number = calls.count() - before
    assert number > 30, "calls are not seen"
    told = 0
    for at in range(1, number + 1):
        calls.fail(at, errno.EIO)
        found = one_run(lab)
        calls.fail(0, 0)
        assert (ask(lab, "GET", "/health")[0] == 503) == bool(found["error"]), (at, number, found)
        told += bool(found["error"])
        for folder in lab.runs.glob("run_*"):
            manifest = json.loads((folder / "manifest.json").read_text())
            if manifest["state"] == "incomplete":
                assert manifest["ended_by"] == "command" and "later0" in str(manifest["groups"]), (at, number, manifest)
            else:
                assert found["error"] and manifest["state"] in ("failed", "crashed", "running", "stopping"), (at, number, manifest)
        put_away(lab)
    assert told > 5, "nothing was told"
    process.signal(signal.SIGTERM)
    assert process.finish()[0] == 3


def test_a_full_disk_leaves_no_folders(lab):
    calls = Calls(lab)
    process = begin(lab, env=calls.environment)
    calls.fail(2, errno.ENOSPC, True)
    for _ in range(3):
        found = one_run(lab)
        assert "No space" in found["error"] and found["run"] is None, found
    assert not list(lab.runs.glob("run_*"))
    calls.fail(0, 0)
    assert one_run(lab)["complete"] is True
    assert len(list(lab.runs.glob("run_*"))) == 1
    process.signal(signal.SIGTERM)
    assert process.finish()[0] == 3


@pytest.mark.parametrize("words", [["receive", "--udp", 10000], ["build", "--tcp", 10000, "--window-ns", 4096, "--expect", 1]])
def test_a_terminal_that_is_closed_ends_every_command_with_its_report(lab, words):
    process = lab.bench.fadelink(*words, "--json")
    assert "waiting" in process.popen.stderr.readline()
    process.signal(signal.SIGHUP)
    status, out, err = process.finish()
    assert status == 3 and json.loads(out)["verdict"] == "incomplete", err


def test_an_old_run_that_cannot_be_read_blocks_none(lab):
    """Each call with its files fails."""
    process = begin(lab)
    assert one_run(lab)["complete"] is True
    process.signal(signal.SIGTERM)
    assert process.finish()[0] == 0
    calls = Calls(lab)
    process = begin(lab, env=calls.environment | {"FADELINK_CALLS_PATH": str(lab.folder(1))})
    calls.fail(1, errno.EIO, True)
    for number in (2, 3):
        found = one_run(lab)
        assert found["run"] == number and found["complete"] is True, found
    process.signal(signal.SIGTERM)
    assert process.finish()[0] == 0
    assert "run 1 was ended by force, and cannot be closed" in (lab.bench.tmp / "err").read_text()


@pytest.mark.parametrize("ignored", [False, True])
def test_a_terminal_that_is_closed_ends_the_run_in_order(lab, ignored):
    """SIGHUP, often: no second one aborts. With nohup it is ignored."""
    lab.bench.sim()
    lab.write(fade("left"))
    word = ["nohup"] if ignored else []
    process = lab.bench.start(lab.bench.pc_ns, *word, FADELINK, "run", lab.file, "--quiet")
    data = lab.runs / "run_000001/left.dat"
    wait_for(lambda: data.exists() and data.stat().st_size > 0)
    for _ in range(3):
        process.signal(signal.SIGHUP)
    if ignored:
        size = data.stat().st_size
        wait_for(lambda: data.stat().st_size > size + (1 << 20))
        process.signal(signal.SIGTERM)
    status, _, err = process.finish()
    assert status == 0 and lab.manifest()["state"] == "complete" and lab.manifest()["ended_by"] == "signal", err
    assert lab.check()[0] == 0


def test_a_run_that_cannot_begin_is_told_and_the_next_one_does(lab):
    """Once: the command that was given is not given again."""
    process = begin(lab)
    last = lab.runs / "run_999999999999"
    last.mkdir()
    status, _, err = lab.bench.run("start", lab.file)
    assert status == 1 and "the run has failed: folder" in err and "run_999999999999 has the last number" in err, err
    last.rmdir()
    assert lab.ask("start")["run"] == 1
    # Its board has not come.
    assert lab.bench.run("stop", lab.file)[0] == 1 and not lab.folder(1).exists()
    process.signal(signal.SIGTERM)
    assert process.finish()[0] == 3
    assert (lab.bench.tmp / "err").read_text().count("has the last number") == 1


def test_old_runs_that_cannot_be_closed_block_none(lab):
    """A newer experiment, a manifest that was cut, links, folders with impossible numbers. Each is told, and left as it is."""
    calls = Calls(lab)
    process = begin(lab, env=calls.environment)
    for _ in range(3):
        assert one_run(lab)["complete"] is True
    process.signal(signal.SIGTERM)
    assert process.finish()[0] == 0
    for number, name, text in [(1, "experiment.toml", "of = 'a newer version'\n" + TCP), (2, "manifest.json", "{"), (3, "manifest.json", None)]:
        folder = lab.folder(number)
        lab.change(number, state="running")
        (folder / "unfinished").write_bytes(b"")
        (folder / "sender.hashes").write_bytes(b"")
        if text is None:
            (folder / name).unlink()
        else:
            (folder / name).write_text(text)
    for name in ["run_18446744073709551615", "run_9", "run_000000000004"]:
        (lab.runs / name).mkdir()
    before = {path: path.read_bytes() for path in lab.runs.glob("run_00000?/*")}
    process = begin(lab)
    found = one_run(lab)
    assert found["run"] == 4 and found["complete"] is True, found
    assert one_run(lab)["run"] == 5
    assert {path: path.read_bytes() for path in before} == before
    process.signal(signal.SIGTERM)
    assert process.finish()[0] == 0
    err = (lab.bench.tmp / "err").read_text()
    for number in (1, 2, 3):
        assert f"run {number} was ended by force, and cannot be closed: " in err, err


def test_the_time_of_a_run_that_goes_on_goes_on(lab):
    """By no clock that is stepped. The run has what was left of its time alone: the test would not see the end of an hour."""
    lab.bench.sim("--user-mhz", 1)
    clock = clock_file(lab.bench.tmp)
    lab.write('confirm = "durable"\n[stop]\nduration = 3600\n' + fade("left"))
    process = lab.bench.fadelink("run", lab.file, "--quiet", env=environment(clock))
    mark = lab.runs / "run_000001/unfinished"
    wait_for(lambda: mark.exists() and int(mark.read_text()) >= 1)
    step(clock, 365 * 86400)
    seconds = int(mark.read_text())
    wait_for(lambda: int(mark.read_text()) > seconds)
    process.popen.kill()
    process.finish()
    assert seconds < int(mark.read_text()) < 300
    # An hour later.
    mark.write_text(f"{3599:012}\n")
    status, _, err = lab.start().finish()
    manifest = lab.manifest(1)
    assert status == 0 and manifest["ended_by"] == "duration" and manifest["state"] == "complete", (err, manifest)
    assert [resumed["gone_on"] for resumed in manifest["resumed"]] == [3599], manifest["resumed"]


@pytest.mark.parametrize("seconds", [365 * 86400, -3600])
def test_a_step_of_the_clock_is_not_waited_for(lab, seconds):
    lab.bench.sim("--user-mhz", 1)
    lab.write("[stop]\nduration = 3\n" + fade("left"))
    clock = clock_file(lab.bench.tmp)
    process = lab.bench.fadelink("run", lab.file, "--quiet", env=environment(clock))
    data = lab.runs / "run_000001/left.dat"
    wait_for(lambda: data.exists() and data.stat().st_size > 0)
    step(clock, seconds)
    assert process.finish()[0] == 0
    lab.bench.end_processes()
    lab.bench.start(lab.bench.board_ns, FADELINK, "replay", lab.folder(), "--iface", "feb0", "--speed", 30)
    again = lab.bench.tmp / "again.dat"
    receiver = lab.bench.receive("--verify", "counter", "--sink", f"file:{again}")
    # The last packet comes behind STOP.
    wait_for(lambda: again.exists() and again.stat().st_size > data.stat().st_size - 8192)
    receiver.signal(signal.SIGTERM)
    assert receiver.finish()[0] == 0
    assert again.read_bytes() == data.read_bytes()


@pytest.mark.parametrize("protocol", ["fade10g", "fade1", "udp"])
def test_a_board_that_is_switched_on_later_is_waited_for(lab, protocol):
    """By `run` and by `receive`."""
    add_address(lab.bench)
    options = ["--protocol", protocol, *(["--stopped", "--phy", "gmii", "--user-mhz", 2] if protocol == "udp" else [])]
    udp = f'[[udp]]\nname = "left"\naddress = "{BOARD}"\nport = 10000\n'
    lab.write("[stop]\nsize = '200K'\n" + (udp if protocol == "udp" else fade("left")))
    where = ["--udp", 10000, "--board", BOARD, "--streams", 1] if protocol == "udp" else ["--iface", "eth0", "--feb", FEBS[0]]
    out = lab.bench.tmp / "{time}.dat"
    receive = lambda: lab.bench.fadelink("receive", *where, "--wait", 200, "--packets", 20, "--json", "--out", out)  # noqa: E731
    for begin in (lambda: lab.start("--wait", 200), receive):
        process = begin()
        wait_for(lambda process=process: "asked again" in process.popen.stderr.readline())
        board = lab.bench.sim(*options)
        status, _, err = process.finish()
        assert status == 0, err
        lab.bench.end_sim(board)
    assert lab.manifest()["state"] == "complete" and lab.check()[0] == 0
    (data,) = lab.bench.tmp.glob("20??????T??????Z.dat")
    assert data.stat().st_size > 100_000


@pytest.mark.parametrize("protocol", ["fade10g", "fade1"])
def test_a_board_that_is_not_heard_is_begun_once(tmp_path, protocol):
    """All that it sends is lost for some seconds, from the START that it has obeyed: what it has taken meanwhile is of the run."""
    with contextlib.closing(Relayed(tmp_path)) as bench:
        record = bench.tmp / "record"
        bench.sim("--protocol", protocol, "--gap", 2000, "--random", "--record", record)
        obeyed = Obeyed(bench)
        receive = bench.receive("--wait", 200, "--out", bench.tmp / "a.dat")
        taken = bench.tmp / "record.1.1"
        wait_for(lambda: taken.exists() and taken.stat().st_size > 8192 and len(obeyed.starts) > 2)
        obeyed.until()
        wait_for(lambda: (bench.tmp / "a.dat").exists() and (bench.tmp / "a.dat").stat().st_size > 0)
        receive.signal(signal.SIGINT)
        status, found = report(receive.finish())
        assert status == 0 and (bench.tmp / "a.dat").read_bytes().startswith(taken.read_bytes()), found


@pytest.mark.parametrize("protocol", ["fade10g", "fade1"])
def test_a_board_that_is_waited_for_is_begun_once(tmp_path, protocol):
    """All that it answers is lost for some seconds, so it is not begun before."""
    with contextlib.closing(Relayed(tmp_path)) as bench:
        record = bench.tmp / "record"
        bench.sim("--protocol", protocol, "--gap", 2000, "--random", "--record", record)
        bench.is_deaf = True
        receive = bench.receive("--wait", 200, "--out", bench.tmp / "a.dat")
        wait_for(lambda: "asked again" in receive.popen.stderr.readline())
        taken = bench.tmp / "record.1.1"
        assert not taken.exists()
        bench.is_deaf = False
        wait_for(lambda: (bench.tmp / "a.dat").exists() and (bench.tmp / "a.dat").stat().st_size > 0)
        receive.signal(signal.SIGINT)
        status, found = report(receive.finish())
        assert not (bench.tmp / "record.1.2").exists(), found
        # The last packet of FADE v1 has filler.
        assert status == 0 and (bench.tmp / "a.dat").read_bytes().startswith(taken.read_bytes()), found


def test_a_run_that_waits_for_its_board_can_be_stopped(lab):
    lab.write(fade("left"))
    process = lab.start("--wait", 200)
    wait_for(lambda: "asked again" in process.popen.stderr.readline())
    process.signal(signal.SIGINT)
    status, _, err = process.finish()
    assert status == 3 and "nothing of it is left" in err and not list(lab.runs.glob("run_*")), err


def test_an_absent_board_does_not_cost_the_verdict_on_the_others(lab):
    """Who asks for the end twice waits for no answer of a board that is off: the manifest has the verdict."""
    add_address(lab.bench)
    absent = '[[udp]]\nname = "absent"\naddress = "10.9.0.99"\nport = 10001\nsinks = ["file:{board}.dat"]\n'
    lab.write(TCP.replace('start = "command"\n', "wait = 60\n") + absent + fade("dark"))
    process = lab.start()
    wait_for(lambda: (lab.runs / "control.socket").exists() and state(lab)["run"] == 1)
    wait_for(lambda: sends(lab, COUNTER))
    wait_for(lambda: state(lab)["bytes"] == len(COUNTER) and state(lab)["state"] == "running")
    process.signal(signal.SIGTERM)
    wait_for(lambda: lab.manifest(1)["state"] == "stopping")
    process.signal(signal.SIGTERM)
    status, _, err = process.finish()
    manifest = lab.manifest(1)
    sender = next(board for board in manifest["boards"] if board["name"].startswith("sender"))
    assert manifest["state"] != "stopping" and sender["verdict"] == "complete" and status in (1, 3), (manifest, err)


def test_sinks_elsewhere_have_the_number_of_the_run(lab):
    lab.bench.sim()
    lab.write(fade("left", 0, f'sinks = ["file:{lab.bench.tmp}/{{board}}-{{run}}.dat"]'))
    for number in (1, 2):
        status, manifest, err = lab.run("--duration", 1)
        assert status == 0, err
        assert (lab.bench.tmp / f"left-{number}.dat").stat().st_size == manifest["boards"][0]["bytes"] > 0

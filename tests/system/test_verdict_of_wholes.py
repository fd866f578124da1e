"""The verdict on all boards together: connections that cannot be served, boards that say nothing, what others change, and where it
is told."""

import contextlib
import json
import re
import resource
import shutil
import signal
import socket
import struct
from pathlib import Path

import fadelink
import numpy
import pytest
from support.lab import Lab, end, fade, fetch
from support.netns import BOARD, add_address, report, wait_for
from support.paths import FADELINK

PORT = 10000
TCP = f'end = "told"\nsinks = ["file:{{board}}.dat"]\n[[tcp]]\nname = "sender"\naddress = "127.0.0.1"\nport = {PORT}\n'
COMMAND = 'start = "command"\nhttp = "127.0.0.1:9470"\n'


@pytest.fixture
def here(bench):
    """An experiment whose boards are this test's sockets."""
    lab = Lab(bench)
    lab.write(TCP)
    return lab


def counter(first, count):
    return struct.pack(f"<{count}Q", *range(first, first + count))


def connect(bench, source="127.0.0.1"):
    return bench.in_namespace(bench.pc_ns, lambda: socket.create_connection(("127.0.0.1", PORT), timeout=60, source_address=(source, 0)))


def is_listening(bench):
    return f":{PORT}" in bench.run_in(bench.pc_ns, "ss", "-Hltn")


def close(board):
    """FIN; the receiver's answer, or what it has not read, is waited for."""
    with contextlib.suppress(OSError):
        board.shutdown(socket.SHUT_WR)
        board.recv(1)
    board.close()


def without_memory(process):
    """A program gets no more address space, which a thread needs; gives it back when it is called."""
    pid = process.popen.pid
    (line,) = (line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmSize"))
    before = resource.prlimit(pid, resource.RLIMIT_AS)
    resource.prlimit(pid, resource.RLIMIT_AS, (int(line.split()[1]) * 1024 + (200 << 10), before[1]))
    return lambda: resource.prlimit(pid, resource.RLIMIT_AS, before)


def reasons(of):
    return [reason["reason"] for reason in of["reasons"]]


def test_a_connection_is_served_or_not_accepted(here):
    """A computer that has no thread for it leaves it in the kernel: what the board sends waits, or it gets no confirmation."""
    bench = here.bench
    process = here.start("--duration", 60)
    wait_for(lambda: is_listening(bench))
    boards = [connect(bench)]
    boards[0].sendall(counter(0, 1000))
    wait_for(lambda: (here.runs / "run_000001/sender.dat").exists())
    give_back = without_memory(process)
    boards += [connect(bench) for _ in range(3)]
    for number, board in enumerate(boards[1:], 1):
        board.sendall(counter(1000 * number, 1000))
    wait_for(lambda: "could not be accepted" in (here.runs / "run_000001/log.jsonl").read_text())
    give_back()
    for board in boards:
        close(board)
    process.signal(signal.SIGTERM)
    status, _, err = process.finish()
    (group,) = here.manifest()["groups"]
    # More connections than the one stream of the board: each had data, and none is forgotten.
    assert status == 3 and group["unrecorded_connections"] == 3 and group["refused"] > 0, (err, group)
    assert reasons(group) == ["foreign"], group


def test_two_interrupts_do_not_make_a_silent_board_whole(bench):
    """Of a board that was asked to send, and says nothing, nobody knows what it had."""
    add_address(bench)
    bench.sim("--protocol", "udp", "--stopped", "--phy", "gmii", "--user-mhz", 2)
    process = bench.fadelink("receive", "--udp", PORT, "--board", BOARD, "--board", "10.9.0.77", "--json", "--out", bench.tmp / "{stream}.dat")
    wait_for(lambda: any(path.stat().st_size > 0 for path in bench.tmp.glob("*.dat")))
    process.signal(signal.SIGINT)
    process.signal(signal.SIGTERM)
    status, found = report(process.finish())
    assert status == 3 and "board" in reasons(found), found
    assert "10.9.0.77" in str(found["reasons"]), found


def test_a_stranger_does_not_take_the_place_of_a_board(bench):
    """Two words of somebody, before those of a board that has connected already."""
    bench.run_in(bench.pc_ns, "ip", "link", "set", "lo", "up")
    process = bench.fadelink("receive", "--tcp", PORT, "--streams", 1, "--json", "--end", "told")
    wait_for(lambda: is_listening(bench))
    board = connect(bench, "127.0.0.2")
    stranger = connect(bench, "127.0.0.5")
    stranger.sendall(counter(0, 2))
    wait_for(lambda: not is_listening(bench))
    board.sendall(counter(0, 1000))
    close(board)
    close(stranger)
    status, found = report(process.finish())
    # The board may have been refused before it sent anything: then it knows that nothing was taken.
    if found["unrecorded_connections"]:
        assert status == 3 and reasons(found) == ["foreign"], found
    else:
        assert status == 0 and found["empty_connections"] == 1, found


def verdicts(bench):
    """The states and reasons above 0 in the metrics: {stream: {names}}."""
    found = {}
    for line in fetch(bench, "/metrics").splitlines():
        is_verdict = re.match(r"fadelink_verdict_(?:state|reason)\{(.*)\} (\S+)$", line)
        if is_verdict and float(is_verdict[2]) > 0:
            labels = dict(re.findall(r'(\w+)="([^"]*)"', is_verdict[1]))
            found.setdefault(labels["stream"], set()).add(labels.get("state") or labels["reason"])
    return found


def command(lab, wish):
    status, out, err = lab.bench.run(wish, lab.file)
    return status, json.loads(out) if out else err


def test_the_metrics_have_the_verdict_on_all(here):
    bench = here.bench
    here.write(COMMAND + TCP)
    process = here.start()
    wait_for(lambda: (here.runs / "control.socket").exists())
    assert command(here, "start")[0] == 0
    board = connect(bench)
    board.sendall(counter(0, 5000))
    wait_for(lambda: json.loads(fetch(bench, "/run"))["bytes"] > 0)
    assert verdicts(bench) == {"(whole)": {"open"}, "sender": {"open"}}
    close(board)
    wait_for(lambda: json.loads(fetch(bench, "/run"))["state"] == "waiting")
    assert verdicts(bench) == {"(whole)": {"complete"}, "sender": {"complete"}}
    metrics = fetch(bench, "/metrics")
    for name, value in [("sink_written_bytes_total", 40000), ("received_bytes_total", 40000), ("sink_queued_bytes", 0)]:
        lines = [line for line in metrics.splitlines() if line.startswith(f"fadelink_{name}{{")]
        assert lines and all(float(line.split()[-1]) == value for line in lines), lines
    # Nobody comes: nothing is said of the board, and all of the whole.
    assert command(here, "start")[0] == 0
    assert verdicts(bench) == {"(whole)": {"open"}}
    status, found = command(here, "stop")
    assert status == 1 and verdicts(bench) == {"(whole)": {"incomplete", "absent"}}, (found, verdicts(bench))
    # One connection more, with data.
    assert command(here, "start")[0] == 0
    boards = [connect(bench), connect(bench)]
    for board in boards:
        board.sendall(counter(0, 5000))
    wait_for(lambda: "one more connection" in (here.folder(2) / "log.jsonl").read_text())
    boards[0].shutdown(socket.SHUT_WR)
    wait_for(lambda: json.loads(fetch(bench, "/run"))["state"] == "waiting")
    assert verdicts(bench)["(whole)"] == {"incomplete", "foreign"}
    for board in boards:
        board.close()
    assert end(process)[0] == 3


def test_a_run_that_was_moved_away_gives_its_number_to_no_other(here):
    here.write(COMMAND + TCP)
    process = here.start()
    wait_for(lambda: (here.runs / "control.socket").exists())
    for number in (1, 2):
        status, found = command(here, "start")
        assert status == 0 and found["run"] == number
        # One that no board has begun would give its number back.
        board = connect(here.bench)
        board.sendall(counter(0, 5000))
        wait_for(lambda: json.loads(fetch(here.bench, "/run"))["bytes"] > 0)
        close(board)
        wait_for(lambda: json.loads(fetch(here.bench, "/run"))["state"] == "waiting")
        shutil.move(here.folder(number), here.bench.tmp / f"moved{number}")
    assert end(process)[0] == 0
    process = here.start()
    wait_for(lambda: (here.runs / "control.socket").exists())
    assert command(here, "start")[1]["run"] == 3
    assert end(process)[0] == 3


def test_the_lock_is_no_link(here):
    """What it leads to is left as it is."""
    here.runs.mkdir()
    other = here.bench.tmp / "other"
    other.write_text("mine")
    (here.runs / "lock").symlink_to(other)
    status, _, err = here.start().finish()
    assert status == 1 and "lock" in err and other.read_text() == "mine", err


@pytest.mark.parametrize("how", ["changed", "removed"])
def test_a_changed_experiment_is_told(bench, how):
    lab = Lab(bench)
    bench.sim()
    lab.write(fade("left"))
    process = lab.start()
    copy = lab.runs / "run_000001/experiment.toml"
    data = lab.runs / "run_000001/left.dat"
    wait_for(lambda: data.exists() and data.stat().st_size > 0)
    if how == "changed":
        copy.write_text(fade("right"))
    else:
        copy.unlink()
    status, err = end(process)
    assert status == 1 and "the experiment: " in err and lab.manifest()["state"] == "failed", err


@pytest.mark.parametrize("protocol", ["fade10g", "fade1"])
def test_a_stop_that_cannot_be_sent_is_told(bench, protocol):
    """Without a thread for it. What was received until then is told, too."""
    bench.sim("--protocol", protocol)
    out = bench.tmp / "a.dat"
    process = bench.receive("--out", out)
    wait_for(lambda: out.exists() and out.stat().st_size > 1 << 20)
    without_memory(process)
    process.signal(signal.SIGINT)
    status, found = report(process.finish())
    (feb,) = found["febs"]
    assert status == 3 and "STOP" in feb["error"] and "error" in reasons(feb), found
    assert feb["bytes"] == out.stat().st_size > 1 << 20


def played(lab, *options):
    return lab.bench.start(lab.bench.pc_ns, FADELINK, "replay", lab.folder(), *options)


@pytest.fixture
def recorded(here):
    """A run of a board, with less than a block of words."""
    process = here.start()
    wait_for(lambda: is_listening(here.bench))
    board = connect(here.bench)
    board.sendall(numpy.arange(2_000_000, dtype="<u8").tobytes())
    close(board)
    assert process.finish()[0] == 0
    return here


def test_a_changed_word_is_told_of_what_was_played_alone(recorded):
    """The receiver asks for the end long before the whole block was played."""
    with open(recorded.folder() / "sender.dat", "r+b") as file:
        file.seek(8 * 100)
        file.write(b"\xff" * 8)
    process = recorded.bench.fadelink("receive", "--tcp", PORT, "--packets", 1, "--streams", 1, "--json")
    wait_for(lambda: is_listening(recorded.bench))
    player = played(recorded, "--speed", "max")
    status, _, err = player.finish()
    assert status == 3 and "bytes 0 to 16000000 of the board's words are not those that were received" in err, err
    process.finish()


def test_a_replay_that_was_interrupted_is_not_whole(recorded):
    """Without a receiver nothing is played."""
    player = played(recorded)
    line = player.popen.stderr.readline()
    assert "played back" in line, line
    player.signal(signal.SIGINT)
    status, _, err = player.finish()
    assert status == 3 and "interrupted" in err, err


def test_python_reads_no_files_of_a_sink_that_failed(here):
    """Another program has changed the first part of one; the other has all words."""
    bench = here.bench
    here.write(TCP.replace('"file:{board}.dat"', '"file:a.dat,roll=1M", "file:c.dat"'))
    process = here.start()
    wait_for(lambda: is_listening(bench))
    board = connect(bench)
    for number in range(20):
        board.sendall(counter(10000 * number, 10000))
    second = here.runs / "run_000001/a.000001.dat"
    wait_for(second.exists)
    with open(here.runs / "run_000001/a.dat", "r+b") as file:
        file.write(b"zzzzzzzz")
    close(board)
    assert process.finish()[0] == 3
    with pytest.warns(fadelink.RunWarning):
        run = fadelink.Run(here.folder())
    assert [path.name for path in run["sender"].files] == ["c.dat"]
    assert (run["sender"].numpy() == numpy.arange(200_000, dtype="u8")).all()


def test_a_sink_that_keeps_nothing_is_no_evidence_against_one_that_does(lab):
    """A device beside a file: the run is complete, and is checked by the file."""
    lab.bench.sim()
    lab.write('sinks = ["file:/dev/null", "file:{board}.dat"]\n' + fade("left"))
    status, manifest, err = lab.run("--duration", "1")
    assert (status, manifest["state"], manifest["boards"][0]["kept"]) == (0, "complete", True), err
    for outside in ([], ["--outside"]):
        status, out, err = lab.bench.run("check", lab.folder(), *outside)
        assert status == 0, (out, err)
    # Without the file nothing is kept.
    lab.write('sinks = ["file:/dev/null"]\n' + fade("left"))
    status, manifest, err = lab.run("--duration", "1")
    assert (status, manifest["boards"][0]["kept"], lab.check()[0]) == (0, False, 3), err

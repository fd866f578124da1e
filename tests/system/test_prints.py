"""Prints that fail: a full disk, a reader that has gone, a terminal that was closed. No work ends for that, and no result is lost silently."""

import fcntl
import json
import os
import pty
import signal
import subprocess
from contextlib import contextmanager

import pytest
from support.lab import fade, is_counter, words
from support.netns import wait_for
from support.paths import FADELINK, SIM

FULL = "standard output: No space left on device (os error 28): the result was not printed whole"


@contextmanager
def full():
    """Where nothing can be written to."""
    with open("/dev/full", "w") as file:
        yield file


@contextmanager
def unread():
    """A pipe whose reader has gone."""
    reader, writer = os.pipe()
    os.close(reader)
    yield writer
    os.close(writer)


@contextmanager
def terminal():
    """A terminal, and what closes it: its other end, which must have a reader until then."""
    window, device = pty.openpty()
    yield device, window
    os.close(device)


@pytest.fixture
def capture(tmp_path):
    """With more than is printed at once."""
    path = tmp_path / "a.pcap"
    subprocess.run([SIM, "--virtual", "--packets", "2000", "--pcap", path], check=True, capture_output=True)
    return path


RESULTS = ["--help", "--version", "run --help", "run --schema", "doctor", "doctor --json", "dissect {}", "dissect --summary {}", ""]


@pytest.mark.parametrize("line", RESULTS)
def test_a_result_that_cannot_be_printed_is_an_error(line, capture):
    command = [FADELINK, *line.format(capture).split()]
    status = subprocess.run(command, capture_output=True).returncode
    assert status == 0 or line.startswith("doctor")
    with full() as out, unread() as pipe:
        found = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, text=True)
        assert found.returncode == 1 and found.stderr == f"fadelink: {FULL}\n", found
        found = subprocess.run(command, stdout=out, stderr=out)
        assert found.returncode == 1, found
        found = subprocess.run(command, stdout=pipe, stderr=subprocess.PIPE, text=True)
        assert (found.returncode, found.stderr) == (status, ""), found


@pytest.mark.parametrize("words", [["fly"], ["check", "/nowhere"], ["receive", "--tcp", "1", "--listen", "192.0.2.1"]])
def test_an_error_that_cannot_be_told_is_one(words):
    status = subprocess.run([FADELINK, *words], capture_output=True).returncode
    for style in ("plain", "json"):
        with full() as out:
            assert subprocess.run([FADELINK, *words, "--log-format", style], stderr=out).returncode == status != 0


def test_a_run_is_finished_where_nothing_can_be_told(lab):
    lab.bench.sim()
    lab.write(fade("left"))
    for number, broken in enumerate((full, unread), 1):
        with broken() as out:
            process = lab.bench.start(lab.bench.pc_ns, FADELINK, "run", lab.file, "--duration", 0.5, stdout_to=out, stderr_to=out)
            assert process.finish()[0] == 0
        assert lab.manifest()["state"] == "complete" and len(list(lab.runs.glob("run_*"))) == number
        status, found = lab.check()
        assert status == 0, found
        with broken() as out:
            expected = 1 if broken is full else 0
            assert lab.bench.run("check", lab.folder(), "--json", stdout_to=out)[0] == expected


def test_a_run_goes_on_when_its_terminal_is_closed(lab):
    lab.bench.sim()
    lab.write(fade("left"))
    with terminal() as (device, window):
        process = lab.bench.start(lab.bench.pc_ns, FADELINK, "run", lab.file, stdout_to=device, stderr_to=device)
        shown = b""
        while b"MB/s" not in shown:
            shown += os.read(window, 4096)
        os.close(window)
        file = lab.folder() / "left.dat"
        size = file.stat().st_size if file.exists() else 0
        wait_for(lambda: file.exists() and file.stat().st_size > size + 5_000_000)
        process.signal(signal.SIGINT)
        assert process.finish()[0] == 0
    assert lab.manifest()["state"] == "complete" and lab.check()[0] == 0


@pytest.mark.parametrize(("broken", "status"), [(full, 1), (unread, 0)])
def test_what_was_received_is_whole_where_no_report_can_be_printed(bench, broken, status):
    bench.sim()
    data = bench.tmp / "data"
    receive = [FADELINK, "receive", "--iface", "eth0", "--feb", "02:fa:de:00:00:01", "--packets", 50, "--json", "--quiet"]
    with broken() as out:
        process = bench.start(bench.pc_ns, *receive, "--out", data, stdout_to=out)
        found, _, err = process.finish()
    assert found == status and ("No space left" in err) == (status == 1), err
    described = json.loads((bench.tmp / "data.json").read_text())
    assert described["complete"] and described["bytes"] == data.stat().st_size >= 50 * 8192 and is_counter(words(data))
    with broken() as out:
        found, _, err = bench.start(bench.pc_ns, *receive, "--verify", "counter:1", stdout_to=out).finish()
    assert found == 3, f"the verdict is told in any case: {err}"


def test_tables_end_when_nobody_reads_them(bench):
    bench.sim()
    reader, writer = os.pipe()
    top = bench.fadelink("top", "--iface", "eth0", "--batch", 1_000_000, "--interval", "0.01", stdout_to=writer)
    os.close(writer)
    assert os.read(reader, 4096).decode().lstrip().startswith("board")
    os.close(reader)
    status, _, err = top.finish()
    assert (status, err) == (0, "")


def test_the_second_interrupt_ends_a_program_that_waits_to_tell(bench):
    """Its messages go to a pipe that is full, and nobody reads."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    os.write(writer, b"x" * 4096)
    process = bench.fadelink("receive", "--tcp", 10000, stderr_to=writer)
    os.close(writer)
    pid = process.popen.pid
    caught = lambda: int(open(f"/proc/{pid}/status").read().split("SigCgt:")[1].split()[0], 16)  # noqa: E731
    wait_for(lambda: caught() >> (signal.SIGINT - 1) & 1)
    process.signal(signal.SIGINT)
    # One that comes before the first was handled is none.
    wait_for(lambda: not int(open(f"/proc/{pid}/status").read().split("ShdPnd:")[1].split()[0], 16))
    process.signal(signal.SIGINT)
    assert process.finish()[0] == 3
    os.close(reader)


@pytest.mark.parametrize("line", ["--help", "--virtual --packets 10 --json", "--virtual --packets 10"])
def test_a_result_of_the_simulator_that_cannot_be_printed_is_an_error(line):
    with full() as out:
        found = subprocess.run([SIM, *line.split()], stdout=out, stderr=subprocess.PIPE, text=True)
    assert found.returncode == 1 and "standard output: the result was not printed whole" in found.stderr, found

"""A test that fails, is interrupted or is killed leaves nothing on the machine."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support import machine
from support.netns import wait_for
from support.paths import TOP

TEST = """
import time
from pathlib import Path
import pytest
from support.netns import Bench

@pytest.fixture
def bench(tmp_path):
    bench = Bench(tmp_path)
    yield bench
    bench.close()

def test_it(bench):
    process = bench.start(bench.board_ns, "sleep", 1000)
    Path("{state}").write_text(bench.board_ns + " " + bench.pc_ns + " " + str(process.popen.pid))
    {end}
"""


def runs(number):
    """A process that has ended may wait for somebody to take note of it."""
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("how", ["failure", "interrupt", "kill"])
def test_nothing_is_left(tmp_path, how):
    state, file = tmp_path / "state", tmp_path / "test_it.py"
    file.write_text(TEST.format(state=state, end="assert False" if how == "failure" else "time.sleep(1000)"))
    words = [sys.executable, TOP / "tests/run.py", "test-boards", "--log", tmp_path / "log", "--tests", file]
    if how == "kill":
        # Nobody cleans up behind pytest itself: the next sweep does.
        words = [sys.executable, "-m", "pytest", "-c", TOP / "tests/pytest.ini", f"--basetemp={tmp_path}/files", file]
    run = os.urandom(8).hex()
    process = subprocess.Popen(words, env=os.environ | {machine.MARK: run}, cwd=TOP, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if how != "failure":
        wait_for(lambda: state.exists() and state.read_text().count(" ") == 2 or process.poll() is not None, timeout=120)
        process.send_signal(signal.SIGKILL if how == "kill" else signal.SIGINT)
    out, _ = process.communicate(timeout=120)
    assert process.returncode != 0, out
    *namespaces, number = state.read_text().split()
    if how == "kill":
        assert machine.processes(run)
        machine.sweep(run)
    assert not set(namespaces) & set(os.listdir("/run/netns")), out
    wait_for(lambda: not runs(number))

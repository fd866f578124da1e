"""What a run makes is found when it stays, and nothing of it stays when the run is ended or killed; what others make is theirs."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from support import sandbox
from support.netns import PATIENCE, sh, wait_for
from support.paths import FADELINK, SIM, TOP

# What leaves something, and how a run names it.
LEAKS = {
    'subprocess.Popen(["sleep", "1234"])': "process {number} sleep 1234",
    'subprocess.Popen(["setsid", "--fork", "sleep", "5678"])': "process {number} sleep 5678",
    'subprocess.run(["ip", "netns", "add", "forgotten"])': "network namespace forgotten",
    'subprocess.run(["ip", "link", "add", "forgotten", "type", "veth", "peer", "name", "other"])': "interface forgotten",
    'subprocess.run(["mount", "-t", "tmpfs", "none", tmp_path])': "mount {mount}",
    'Path(tempfile.gettempdir(), "forgotten").touch()': "temporary file {tmpdir}/forgotten",
    'Path("/dev/shm/forgotten").touch()': "temporary file /dev/shm/forgotten",
}
TEST = """
import subprocess, tempfile, time
from pathlib import Path
import pytest
from support.netns import Bench, wait_for

@pytest.fixture
def bench(tmp_path):
    bench = Bench(tmp_path)
    yield bench
    bench.close()

def test_it(bench, tmp_path):
    bench.start(bench.board_ns, "sleep", 1000)
    with tempfile.NamedTemporaryFile():
        Path({state!r}).touch()
        {end}

def test_leak(tmp_path):
    {leak}
"""


@pytest.fixture
def outer():
    """What a sandbox inside this one must not change: mounts, namespaces, interfaces, temporary files, processes."""

    def look():
        processes, ours = sandbox.processes(), sandbox.descendants()
        # Tests of other workers have namespaces, named by the number of the worker.
        others = {f"-{pid}-" for pid in processes if pid not in ours and pid != os.getpid()}
        return {
            "mounts": set(sandbox.mounts()),
            "namespaces": {name for name in os.listdir("/run/netns") if not any(number in name for number in others)},
            "interfaces": set(socket.if_nameindex()),
            "files": set(os.listdir(sandbox.TEMPORARY)),
            "processes": set(ours),
        }

    before = look()
    return lambda: {kind: found - before[kind] for kind, found in look().items() if found - before[kind]}


def start(words, **more):
    """A program as outside a sandbox, which makes one of its own; `more` are variables of its environment."""
    environment = {name: value for name, value in os.environ.items() if name != sandbox.MARK and not name.startswith("PYTEST_")}
    environment["PYTHONUNBUFFERED"] = "1"
    words = [str(word) for word in words]
    return subprocess.Popen(words, env=environment | more, cwd=TOP, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def run_tests(tmp_path, *, test, end="pass", leak="pass"):
    """`make test` of one file."""
    file = tmp_path / "test_it.py"
    file.write_text(TEST.format(state=str(tmp_path / "state"), end=end, leak=leak))
    words = [sys.executable, TOP / "tests/run.py", "test-boards", "--log", tmp_path / "log", "--tests", f"{file}::{test}"]
    return start(words, PYTEST_ADDOPTS=f"--basetemp={tmp_path / 'files'}", PYTEST_XDIST_AUTO_NUM_WORKERS="0")


def test_what_a_run_leaves_is_named(tmp_path, outer):
    process = run_tests(tmp_path, test="test_leak", leak="\n    ".join(LEAKS))
    out, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1 and "1 passed, 0 failed" in out and "FAILED: test-boards\n" in out, out
    for name in LEAKS.values():
        words = {"number": r"\d+", "mount": re.escape(f"{tmp_path}/files/test_leak0"), "tmpdir": rf"{re.escape(str(sandbox.TEMPORARY))}/\w+"}
        assert re.search(f"^test-boards left behind: {name.format(**words)}$", out, re.M), (name, out)
    assert not outer()


def test_a_test_that_passes_only_alone_is_named(tmp_path):
    process = run_tests(tmp_path, test="test_leak", leak=f"state = Path({str(tmp_path / 'once')!r}); assert state.exists() or state.touch()")
    out, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0 and "UNSTEADY" in out and "1 passed, 0 failed" in out, out
    assert re.search("^  passed only alone: .*test_it.py::test_leak$", out, re.M), out


def test_a_test_that_fails_alone_too_is_not_called_unsteady(tmp_path):
    process = run_tests(tmp_path, test="test_leak", leak="assert False")
    out, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1 and "0 passed, 1 failed" in out and "passed only alone" not in out, out


def test_the_tree_is_read_only_for_a_run(tmp_path):
    stray = TOP / "stray"
    process = run_tests(tmp_path, test="test_leak", leak=f"Path({str(stray)!r}).touch()")
    out, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1 and f"Read-only file system: '{stray}'" in out and not stray.exists(), out


def test_what_others_make_meanwhile_does_not_count(tmp_path):
    """A run of the tests in a sandbox of its own, beside which another program leaves one of each kind."""
    state = tmp_path / "state"
    process = run_tests(tmp_path, test="test_it", end=f"wait_for(lambda: not Path({str(state)!r}).exists())")
    wait_for(lambda: state.exists() or process.poll() is not None)
    mount = tmp_path / "mount"
    mount.mkdir()
    other = subprocess.Popen(["sleep", "1000"])
    name = f"others-{os.getpid()}"
    shared = Path("/dev/shm") / name
    temporary = sandbox.TEMPORARY.parent / name
    try:
        sh("ip", "netns", "add", name)
        sh("ip", "link", "add", "others0", "type", "veth", "peer", "name", "others1")
        sh("mount", "-t", "tmpfs", "none", mount)
        shared.touch()
        temporary.touch()
        state.unlink()
        out, _ = process.communicate(timeout=PATIENCE)
    finally:
        other.kill()
        other.wait()
        for words in (["ip", "netns", "delete", name], ["ip", "link", "delete", "others0"], ["umount", mount]):
            subprocess.run(words)
        shared.unlink(missing_ok=True)
        temporary.unlink(missing_ok=True)
    assert "left behind" not in out and process.returncode == 0, out


def test_runs_side_by_side_share_nothing(tmp_path):
    """Two runs that hold the same port, abstract socket, namespace and interface at the same time."""
    states = [tmp_path / name / "there" for name in ("first", "second")]
    runs = []
    for state in states:
        state.parent.mkdir()
        body = [
            "import os, socket",
            "here = socket.create_server(('127.0.0.1', 12345)), socket.socket(socket.AF_UNIX)",
            "here[1].bind('\\0same')",
            "for words in ('netns add same', 'link add same type veth peer name other'):",
            "    subprocess.run(['ip', *words.split()], check=True)",
            f"Path({str(state)!r}).touch()",
            "end = time.monotonic() + 60",
            f"while not all(map(os.path.exists, {[str(other) for other in states]})):",
            "    assert time.monotonic() < end",
            "for words in ('netns delete same', 'link delete same'):",
            "    subprocess.run(['ip', *words.split()], check=True)",
        ]
        runs.append(run_tests(state.parent, test="test_leak", leak="\n    ".join(body)))
    for process in runs:
        out, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0 and "1 passed, 0 failed" in out, out


@pytest.mark.parametrize("how", ["failure", "interrupt", "terminate", "kill"])
def test_nothing_stays(tmp_path, outer, how):
    # A test that sleeps does not end by itself.
    process = run_tests(tmp_path, test="test_it", end="assert False" if how == "failure" else "time.sleep(1000)")
    if how != "failure":
        wait_for(lambda: (tmp_path / "state").exists() or process.poll() is not None)
        assert outer()
        process.send_signal({"interrupt": signal.SIGINT, "terminate": signal.SIGTERM, "kill": signal.SIGKILL}[how])
    out, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode != 0, out
    if how == "failure":
        assert "0 passed, 1 failed" in out and "left behind" not in out
    if how == "kill":
        # Nobody is left to remove the folder of temporary files: the next run does.
        wait_for(lambda: set(outer()) <= {"files"})
        assert run_tests(tmp_path, test="test_leak").communicate(timeout=PATIENCE)
    wait_for(lambda: not outer())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
@pytest.mark.parametrize("program", ["demo", "demo_fadc", "bench"])
def test_demos_and_benches_leave_nothing(outer, program, number):
    words, ready = {
        "demo": ([sys.executable, "tools/demo.py", "--seconds", 60, "--simulator", SIM, "--command", FADELINK], "receives 2 boards"),
        "demo_fadc": ([sys.executable, "tools/demo_fadc.py", "--stay", "--port", 0, "--windows", 1000000], "Ctrl-C ends it"),
        "bench": ([sys.executable, "bench/receive.py", "--seconds", 60], "# Receivers over veth"),
    }[program]
    process = start(words)
    said = ""
    while ready not in said:
        line = process.stdout.readline()
        assert line, said
        said += line
    assert outer()
    process.send_signal(number)
    out, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == (-number if number == signal.SIGKILL else 128 + number), said + out
    if number == signal.SIGKILL:
        wait_for(lambda: set(outer()) <= {"files"})
        assert start(sandbox.words(["true"])).wait(PATIENCE) == 0
    wait_for(lambda: not outer())


def test_a_later_signal_ends_a_program_that_does_not_listen(outer):
    process = start(sandbox.words(["sh", "-c", "trap '' INT; echo ready; sleep 1000"]))
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    # The signals are two wishes if this time is between them.
    time.sleep(sandbox.SAME_WISH + 0.5)
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE) == 128 + signal.SIGTERM and not outer()


def test_a_killed_program_of_an_ordinary_user_is_ended_by_the_next():
    """Without root there are no namespaces: processes are found by their mark."""
    # Neither pytest's folders nor the interpreter of root need be open to others.
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        tree = Path(folder)
        (tree / "tests/support").mkdir(parents=True)
        program = shutil.copy(sandbox.__file__, tree / "tests/support")
        for path in (tree, *tree.rglob("*")):
            os.chown(path, 65534, -1)
        words = ["setpriv", "--reuid", "65534", "--clear-groups", "/usr/bin/python3", program, "--"]
        process = start([*words, "sh", "-c", f"setsid --fork sleep 4321; touch {tree}/state; sleep 4321"])
        wait_for(lambda: (tree / "state").exists() or process.poll() is not None)
        sleeping = lambda: [line for _, line in sandbox.processes().values() if line == "sleep 4321"]
        wait_for(lambda: len(sleeping()) == 2)
        process.kill()
        process.wait()
        assert sleeping() and len(os.listdir(tree / "build/tmpdir")) == 1
        assert start([*words, "true"]).wait(PATIENCE) == 0
        assert not sleeping() and not os.listdir(tree / "build/tmpdir")

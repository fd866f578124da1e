"""What `make` does when it cannot go on, or shall not: it says why, ends what it has started, and leaves what is built."""

import os
import shutil
import signal
import subprocess

import pytest
from support import tree
from support.netns import wait_for
from support.paths import TOP

# Notes its process, and goes on for long.
CARGO = """\
#!/bin/sh
[ "$1" != --version ] || { echo "cargo 1.99.0"; exit; }
echo $$ >"$FAKE_PID"
exec sleep 300
"""


def is_alive(pid):
    """Also where nobody has waited for it: one that has ended is a zombie."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.fixture(scope="module")
def strange(tmp_path_factory):
    """A copy of the tree in a path with a space: cargo is called below tools/plain_path.sh."""
    return tree.copy(tmp_path_factory.mktemp("make") / tree.STRANGE)


@pytest.fixture
def start(strange, tmp_path):
    """Starts `make` with a false cargo: the process, and what tells that of cargo."""
    program, file = tmp_path / "cargo", tmp_path / "pid"
    program.write_text(CARGO)
    program.chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if name not in tree.OF_THIS_TREE}
    environment |= {"PATH": f"{tmp_path}:{os.environ['PATH']}", "FAKE_PID": str(file)}
    processes = []

    def cargo():
        wait_for(lambda: file.exists() and file.read_text().endswith("\n"))
        return int(file.read_text())

    def start(*words):
        process = subprocess.Popen(["make", *words], cwd=strange, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, start_new_session=True)  # fmt: skip
        processes.append(process)
        return process, cargo

    yield start
    for process in processes:
        process.kill()
        process.communicate()
    if file.exists() and is_alive(cargo()):
        os.kill(cargo(), signal.SIGKILL)


@pytest.mark.parametrize("target", ["host", "demo-host", "demo"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_cargo(start, target, number):
    """SIGTERM to make alone; SIGINT to what a terminal hands it to."""
    make, cargo = start(target)
    pid = cargo()
    assert is_alive(pid)
    os.killpg(make.pid, number) if number == signal.SIGINT else make.send_signal(number)
    assert make.wait(timeout=30) != 0
    wait_for(lambda: not is_alive(pid))


def test_an_error_of_the_simulator_ends_the_demo_at_once(start, strange):
    """Verilator fails when cargo has begun."""
    shutil.rmtree(strange / "build/demo", ignore_errors=True)
    tool = strange / "tools/verilator.sh"
    text = tool.read_text()
    tool.write_text('#!/bin/sh\nuntil [ -s "$FAKE_PID" ]; do sleep 0.1; done\necho broken >&2\nexit 1\n')
    try:
        make, cargo = start("demo")
        said, _ = make.communicate(timeout=60)
    finally:
        tool.write_text(text)
    assert make.returncode == 2 and "broken" in said and not is_alive(cargo())


@pytest.mark.parametrize(
    "models, reason",
    [("ulx3s", "no model ulx3s"), ("gmii16 nosuch other", "no model nosuch other"), ("", "no model")],
)
def test_models_that_are_not_there_are_refused(tmp_path, models, reason):
    built = tmp_path / "sim"
    built.mkdir()
    for name in ("fadelink-sim", "models"):
        (built / name).write_text("good")
    words = ["make", "-s", "-f", "sim/Makefile", f"BUILD={built}", f"MODELS={models}"]
    run = subprocess.run(words, cwd=TOP, capture_output=True, text=True)
    assert run.returncode == 2
    assert f"MODELS={models}: {reason}, expected one or more of these models: gmii16 " in run.stderr and " ulx3s_fade10g" in run.stderr
    assert {path.name: path.read_text() for path in built.iterdir()} == {"fadelink-sim": "good", "models": "good"}


def test_models_are_taken_once_in_any_order(tmp_path):
    words = ["make", "-s", "-f", "sim/Makefile", f"BUILD={tmp_path}", "MODELS=xgmii16 gmii16 xgmii16", f"{tmp_path}/models.hpp"]
    subprocess.run(words, cwd=TOP, check=True)
    assert (tmp_path / "models.hpp").read_text() == '#include "Vgmii16.h"\n#include "Vxgmii16.h"\n'

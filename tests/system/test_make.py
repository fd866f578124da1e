"""What `make` does when it cannot go on, or shall not: it says why, ends what it has started, and leaves what is built."""

import os
import shutil
import signal
import subprocess
import sys

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
    headers = [f"V{model}{part}.h" for model in ("gmii16", "xgmii16") for part in ("", "___024root")]
    assert (tmp_path / "models.hpp").read_text() == "".join(f'#include "{header}"\n' for header in headers)


# In the place of what setup calls: nothing is installed, and what would be is noted.
APT = {"dpkg-query": "", "flock": 'shift; exec "$@"', "apt-get": 'for word; do case $word in install) echo "$@" >>"$FAKE_APT" ;; esac; done'}


def test_each_stage_of_setup_installs_what_the_one_before_does(strange, tmp_path):
    """A machine that has the packages of `build` compiles, while the others are installed."""
    for name, text in APT.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    noted = tmp_path / "apt"
    packages = {}
    for stage in ("demo", "build", ""):
        noted.unlink(missing_ok=True)
        said = tree.run(strange, "tools/setup.sh", *filter(None, [stage]), PATH=f"{tmp_path}:{os.environ['PATH']}", FAKE_APT=str(noted))
        words = noted.read_text().partition(" install ")[2].split()
        packages[stage] = {word for word in words if not word.startswith("-")}
        assert said.count("will be installed") == 1 and all(package in said for package in packages[stage])
    assert packages["demo"] < packages["build"] < packages[""]
    assert {"ccache", "libcli11-dev"} <= packages["demo"] and {"libhdf5-dev", "clang"} <= packages["build"] - packages["demo"]
    assert {"qemu-system-x86", "tshark"} <= packages[""] - packages["build"]


@pytest.mark.parametrize("fails", [False, True])
def test_parts_wait_for_what_is_being_installed(tmp_path, fails):
    """But for those that compile. What cannot be installed fails the run."""
    setup, noted = tmp_path / "setup", tmp_path / "noted"
    setup.write_text(f"#!/bin/sh\nuntil [ -e {noted} ]; do sleep 0.1; done\necho installed >>{noted}\nexit {int(fails)}\n")
    setup.chmod(0o755)
    # Without a sandbox, which would not let them write there.
    program = f"""
import pathlib, run
run.SETUP = pathlib.Path({str(setup)!r})
run.PARTS = [(name, ".", "host", []) for name in ("host", "python")]
def note(name, *_):
    with open({str(noted)!r}, "a") as file:
        print(name, file=file)
    return True
run.run = note
raise SystemExit(run.main())
"""
    words = [sys.executable, "-c", program, "--log", tmp_path / "log"]
    (tmp_path / "log").mkdir()
    for name in ("host", "python"):
        (tmp_path / f"log/{name}.log").touch()
    done = subprocess.run(words, cwd=TOP / "tests", capture_output=True, text=True, timeout=60)
    assert noted.read_text().split() == ["host", "installed", *([] if fails else ["python"])], done
    assert done.returncode == int(fails) and ("FAILED: setup" in done.stdout) == fails, done

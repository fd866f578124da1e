"""A run of which one board is waited for: what the others send meanwhile is looked after as ever."""

import contextlib
import datetime
import os
import signal

import pytest
from support import fadc_model as model
from support.control import ask, state
from support.crate import WINDOW_NS
from support.lab import Lab, fade
from support.netns import sh, wait_for
from support.tcp_run import WORDS, board


@pytest.fixture
def lab(bench):
    """Its runs have a small disk."""
    lab = Lab(bench)
    lab.runs.mkdir()
    sh("mount", "-t", "tmpfs", "-o", "size=192m", "small", lab.runs)
    yield lab
    bench.close()
    sh("umount", lab.runs)


def full(lab):
    """Leaves less on the disk than the reserve of the runs."""
    ballast, disk = lab.runs / "ballast", os.statvfs(lab.runs)
    with ballast.open("w") as file:
        os.posix_fallocate(file.fileno(), 0, disk.f_bavail * disk.f_bsize - (8 << 20))
    return ballast


HEAD = 'start = "command"\nend = "told"\nwait = 1000\ndisk = { reserve = "24M" }\n'
TCP = '[[tcp]]\nname = "a"\naddress = "127.0.0.1"\nport = 10000\n'
CRATES = f'[[crates]]\nname = "a"\nport = 10000\nwindow_ns = {WINDOW_NS}\nexpect = 1\nsinks = ["file:{{board}}.dat"]\n'
# What a board sends that a test has connected.
DATA = {"tcp": WORDS, "crates": b"".join(model.message(1, record, [], WINDOW_NS) for record in range(200))}
TABLES = {"tcp": TCP, "crates": CRATES, "fade10g": fade("a"), "fade1": fade("a", more='protocol = "fade1"')}
# What is waited for, and how it is named.
LATE = {
    "interface": (fade("late").replace("eth0", "later0"), "later0"),
    "way": ('[[udp]]\nname = "late"\naddress = "192.0.2.1"\nport = 10001\n', "192.0.2.1"),
}
SIMULATED = {"fade10g": ["--gap", 200], "fade1": ["--protocol", "fade1", "--phy", "gmii", "--gap", 1600]}


@pytest.mark.parametrize(
    ("stop", "by"),
    [
        ('size = "4K"', "size"),
        ("duration = 0.5", "duration"),
        ("time = {soon}", "time"),
        *(("duration = 1000", by) for by in ("command", "signal", "disk")),
    ],
)
@pytest.mark.parametrize(("kind", "late"), [*((kind, "interface") for kind in TABLES), ("tcp", "way"), ("fade1", "way")])
def test_the_end_of_a_run_does_not_wait_for_a_board(lab, kind, late, stop, by):
    sh("ip", "-n", lab.bench.pc_ns, "link", "set", "lo", "up")
    soon = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=3)
    stop = stop.format(soon=soon.strftime("%Y-%m-%dT%H:%M:%S.%fZ"))
    lab.write(HEAD + f"stop = {{ {stop} }}\n" + TABLES[kind] + LATE[late][0])
    process = lab.start()
    wait_for(lambda: (lab.runs / "control.socket").exists())
    with contextlib.ExitStack() as stack:
        if kind in SIMULATED:
            lab.bench.sim(*SIMULATED[kind])
        status, body = ask(lab, "POST", "/start")
        assert status == 202, body
        if kind in DATA:
            stack.enter_context(board(lab, DATA[kind]))
        if by in ("size", "duration", "time"):
            wait_for(lambda: list(lab.runs.glob("run_*/manifest.json")) and lab.manifest()["state"] != "running")
        else:
            wait_for(lambda: state(lab)["receives"] and state(lab)["bytes"] >= 4096)
            assert ask(lab, "POST", "/start")[0] == 409
        if by == "command":
            ask(lab, "POST", "/stop")
        elif by == "signal":
            process.signal(signal.SIGTERM)
        elif by == "disk":
            full(lab)
        if kind in DATA:
            stack.close()
        wait_for(lambda: lab.manifest()["state"] not in ("running", "stopping"))
    process.signal(signal.SIGTERM)
    process.finish()
    found = lab.manifest()
    assert (found["state"], found["ended_by"], found["error"]) == ("incomplete", by, None), found
    assert LATE[late][1] in str(found["groups"]) and [one["name"] for one in found["boards"]] == ["a"], found


def test_the_boards_that_send_wait_for_room(lab):
    lab.write(HEAD.replace('"24M"', '"24M", full = "hold"') + fade("a", more="ring = 256") + LATE["interface"][0])
    process = lab.start()
    wait_for(lambda: (lab.runs / "control.socket").exists())
    lab.bench.sim("--gap", 4000)
    assert ask(lab, "POST", "/start")[0] == 202
    wait_for(lambda: state(lab)["bytes"])
    held = lambda: "\nfadelink_run_held 1\n" in ask(lab, "GET", "/metrics")[1]  # noqa: E731
    assert not held()
    ballast = full(lab)
    wait_for(held)
    ballast.unlink()
    wait_for(lambda: not held())
    before = state(lab)["bytes"]
    wait_for(lambda: state(lab)["bytes"] > before)
    assert ask(lab, "POST", "/stop")[0] == 202
    wait_for(lambda: lab.manifest()["state"] == "incomplete")
    process.signal(signal.SIGTERM)
    process.finish()
    assert lab.manifest()["boards"][0]["verdict"] == "complete", lab.manifest()


def test_what_is_wrong_with_the_boards_that_send_is_told_with_what_is_waited_for(lab):
    """Also in the answer to a stop: it does not say that there was nothing."""
    place = lab.bench.tmp / "a.dat"
    tcp = TCP.replace("[[tcp]]", f"[[tcp]]\nsinks = ['file:{place}']")
    lab.write(HEAD + tcp + LATE["interface"][0])
    process = lab.start()
    wait_for(lambda: (lab.runs / "control.socket").exists())
    assert ask(lab, "POST", "/start")[0] == 202
    wait_for(lambda: list(lab.runs.glob("run_*/manifest.json")))
    # Where its file would be.
    place.mkdir()
    with board(lab):
        wait_for(lambda: len(ask(lab, "GET", "/health")[1]["troubles"]) == 2)
        troubles = ask(lab, "GET", "/health")[1]["troubles"]
        assert "later0" in str(troubles) and f"a: file:{place}: " in str(troubles), troubles
        assert ask(lab, "POST", "/stop")[0] == 202
    wait_for(lambda: state(lab)["state"] == "waiting")
    found = state(lab)
    assert found["complete"] is not True and f"file:{place}: " in found["error"] and ask(lab, "GET", "/health")[0] == 503, found
    process.signal(signal.SIGTERM)
    assert process.finish()[0] == 3

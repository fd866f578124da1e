"""A run of which one board is waited for: what the others send meanwhile is looked after as ever."""

import contextlib
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
    return Lab(bench)


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
    ("stop", "by"), [('size = "4K"', "size"), ("duration = 0.5", "duration"), ("duration = 1000", "command"), ("duration = 1000", "signal")]
)
@pytest.mark.parametrize(("kind", "late"), [*((kind, "interface") for kind in TABLES), ("tcp", "way"), ("fade1", "way")])
def test_the_end_of_a_run_does_not_wait_for_a_board(lab, kind, late, stop, by):
    sh("ip", "-n", lab.bench.pc_ns, "link", "set", "lo", "up")
    lab.write(f'start = "command"\nend = "told"\nwait = 1000\nstop = {{ {stop} }}\n' + TABLES[kind] + LATE[late][0])
    process = lab.start()
    wait_for(lambda: (lab.runs / "control.socket").exists())
    with contextlib.ExitStack() as stack:
        if kind in SIMULATED:
            lab.bench.sim(*SIMULATED[kind])
        status, body = ask(lab, "POST", "/start")
        assert status == 202, body
        if kind in DATA:
            stack.enter_context(board(lab, DATA[kind]))
        if by in ("size", "duration"):
            wait_for(lambda: list(lab.runs.glob("run_*/manifest.json")) and lab.manifest()["state"] != "running")
        else:
            wait_for(lambda: state(lab)["receives"] and state(lab)["bytes"] >= 4096)
            assert ask(lab, "POST", "/start")[0] == 409
        if by == "command":
            ask(lab, "POST", "/stop")
        elif by == "signal":
            process.signal(signal.SIGTERM)
        if kind in DATA:
            stack.close()
        wait_for(lambda: lab.manifest()["state"] not in ("running", "stopping"))
    process.signal(signal.SIGTERM)
    process.finish()
    found = lab.manifest()
    assert (found["state"], found["ended_by"], found["error"]) == ("incomplete", by, None), found
    assert LATE[late][1] in str(found["groups"]) and [one["name"] for one in found["boards"]] == ["a"], found

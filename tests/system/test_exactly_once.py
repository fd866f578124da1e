"""A command is executed exactly once, also beside other programs (docs/protocol/fade10g.md, "Exactly once"); boards count."""

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from support.netns import BOARD, CLAIMS, FEBS, wait_for
from support.paths import FADELINK, SEED

ADD, SUM = "0x0207", "0x0107"  # adds the argument, tells the sum
FEB = ["--iface", "eth0", "--feb", FEBS[0]]
FOLDER = Path("/var/lib/fadelink/csn")


def board(bench, kind, *options):
    """A board in RTL, or one in software with this firmware."""
    if kind == "rtl":
        return bench.sim(*options)
    process = bench.start(bench.board_ns, FADELINK, "feb", "--iface", "feb0", "--feb", FEBS[0], "--firmware", kind, *options)
    wait_for(lambda: bench.run("cmd", *FEB, SUM)[0] == 0)
    return process


def add(bench, *options):
    return bench.fadelink("cmd", *FEB, ADD, 1, "--json", *options)


def value(finished):
    status, out, err = finished
    assert status == 0, err
    return json.loads(out.splitlines()[-1])["value"]


@pytest.mark.parametrize("kind", ["rtl", "fadelink", "published-10g"])
def test_programs_in_turns(bench, kind):
    """Several at the same time, short sessions and long ones: each success is one execution."""
    board(bench, kind, *(["--link", "loss=0.05"] if kind == "rtl" else []))
    # The published core executes a repetition again, so there must be none.
    patience = ["--timeout", 10000] if kind == "published-10g" else []
    programs = [add(bench, "--repeat", repeat, *patience) for repeat in [1, 40, 3, 25, 1, 1, 60, 9] for _ in range(2)]
    for program in programs:
        value(program.finish())
    assert value(bench.run("cmd", *FEB, SUM, "--json")) == 2 * 140


@pytest.mark.parametrize("kind", ["rtl", "fadelink"])
def test_a_killed_program_spoils_no_command_of_the_next(bench, kind):
    """Killed anywhere, also between a command and its answer: at most one more execution, and the next is its own."""
    rng = random.Random(SEED)
    board(bench, kind)
    total = value(bench.run("cmd", *FEB, SUM, "--json"))
    for _ in range(25):
        program = add(bench, "--repeat", 1000)
        for _ in range(rng.randrange(1, 20)):
            program.popen.stdout.readline()
        program.signal(signal.SIGKILL)
        # From where the last line was read; the one that was written in that moment may lack its end.
        out = program.popen.stdout.read()
        program.finish()
        told = [json.loads(line)["value"] for line in out.splitlines() if line.endswith("}")]
        after = value(add(bench).finish())
        assert not told or after in (told[-1] + 1, told[-1] + 2), "the next one is executed, and none twice"
        assert after > total
        total = after
    assert value(bench.run("cmd", *FEB, SUM, "--json")) == total


def test_users_who_cannot_write_the_counter(bench):
    """They ask the board before each command. They are of the group that takes turns."""
    board(bench, "rtl")
    group = "64321"
    CLAIMS.mkdir(exist_ok=True)
    os.chown(CLAIMS, 0, int(group))
    os.chmod(CLAIMS, 0o2775)
    ordinary = ["setpriv", "--reuid", "65534", "--regid", "65534", "--groups", group, "--inh-caps", "+net_raw", "--ambient-caps", "+net_raw"]
    with_right = shutil.copy(FADELINK, bench.tmp)
    os.chmod(with_right, 0o755)
    for folder in [bench.tmp, *bench.tmp.parents][:3]:
        os.chmod(folder, 0o755)
    programs = []
    for repeat in [1, 30, 2, 20, 1]:
        words = ["cmd", *FEB, ADD, 1, "--json", "--repeat", repeat]
        programs += [bench.start(bench.pc_ns, *ordinary, with_right, *words), bench.fadelink(*words)]
    for program in programs:
        value(program.finish())
    assert value(bench.run("cmd", *FEB, SUM, "--json")) == 2 * 54


def test_the_counter_outlives_programs(bench):
    """The file has the number of the last command, and the board says the same."""
    # No other test has a board of this address.
    feb = "02:fa:de:0c:05:01"
    board(bench, "rtl", "--feb", feb)
    value(bench.run("cmd", "--iface", "eth0", "--feb", feb, ADD, 1, "--json", "--repeat", 5))
    number = int((FOLDER / f"eth0-{feb}").read_text())
    status, out, _ = bench.run("discover", "--iface", "eth0", "--json")
    assert status == 0 and json.loads(out.splitlines()[0])["identity"]["csn"] == number


@pytest.mark.parametrize("runs", [12])
def test_a_transmission_begins_and_ends_beside_commands(bench, runs):
    board(bench, "rtl")
    commands = [add(bench, "--repeat", 300) for _ in range(2)]
    for _ in range(runs):
        status, out, err = bench.receive("--packets", 20, "--verify", "counter").finish()
        assert status == 0, err
        assert json.loads(out)["febs"][0]["verified"]
    for program in commands:
        program.signal(signal.SIGINT)
        program.finish()


@pytest.mark.parametrize("beside", ["take over", "killed"])
@pytest.mark.parametrize("kind", ["rtl", "fadelink"])
def test_no_reset_comes_between_a_command_and_its_repetition(bench, kind, beside):
    """Programs that begin, end and are killed send RESET, which makes the board forget what it has executed."""
    rng = random.Random(f"{SEED} {kind} {beside}")
    board(bench, kind, *(["--up", "loss=0.3", "--down", "loss=0.05"] if kind == "rtl" else ["--loss", "0.3"]))
    commands = add(bench, "--repeat", 100, "--timeout", 20, "--retries", 200)
    rounds = 0
    while commands.popen.poll() is None:
        if beside == "killed":
            receiver = bench.receive("--window", 32, "--quiet")
            with contextlib.suppress(subprocess.TimeoutExpired):
                commands.popen.wait(rng.uniform(0.05, 0.5))
            receiver.signal(signal.SIGKILL)
        else:
            receiver = bench.receive("--take-over", "--packets", 2, "--window", 32, "--quiet")
        receiver.finish()
        rounds += 1
    told = len(commands.finish()[1].splitlines())
    assert commands.popen.returncode == 0 and told == 100 and rounds > 0
    assert value(bench.run("cmd", *FEB, SUM, "--json", "--timeout", 20, "--retries", 200)) == 100


def test_slow_control_in_turns(net):
    """The accumulator of the UDP/IP stack's user registers, by programs at the same time over a bad link."""
    net.sim("--protocol", "udp", "--stopped", "--link", "loss=0.1")
    words = ["register", "--board", BOARD, "0x1"]
    programs = [net.fadelink(*words, "1", "--json") for _ in range(40)]
    for program in programs:
        status, _, err = program.finish()
        assert status == 0, err
    status, out, err = net.run(*words, "--json")
    assert status == 0 and json.loads(out)["value"] == 40, err

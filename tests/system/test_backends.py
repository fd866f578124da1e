"""AF_XDP, and boards in software: the same reception as by AF_PACKET."""

import json
import os
import re
import signal
import sys
from pathlib import Path

import pytest
from support.netns import FEBS, report, wait_for

XDP = ["--backend", "xdp"]
QUIET = ["--verify", "counter", "--quiet"]


@pytest.fixture
def soft(bench):
    """Starts boards in software, ends them with their counters."""

    def start(*options, febs=FEBS[:1]):
        words = [word for mac in febs for word in ("--feb", mac)]
        process = bench.start(bench.board_ns, *bench.fadelink_words("feb", "--iface", "feb0", "--json", *words, *options))
        assert "in software" in process.popen.stderr.readline()
        return process

    return start


def end(process):
    process.signal(signal.SIGTERM)
    status, out, err = process.finish()
    assert status == 0, err
    return [json.loads(line) for line in out.splitlines()]


@pytest.mark.parametrize("busy", [[], ["--busy-poll"]])
def test_xdp_receives_from_the_rtl_over_a_bad_line(bench, busy):
    board = bench.sim("--link", "loss=0.02,reorder=0.05,duplicate=0.05")
    process = bench.receive(*XDP, *busy, "--packets", "1500", *QUIET)
    status, result = report(process.finish())
    feb = result["febs"][0]
    assert status == 0 and feb["verified"] and feb["words"] >= 1500 * 1024, result
    summary = bench.end_sim(board)["boards"][0]
    assert not summary["running"] and summary["up"]["lost"] > 0 and feb["counters"]["duplicates"] > 0


@pytest.mark.parametrize("backend", ["packet", "xdp"])
def test_threads_that_receive_are_scheduled_as_asked(bench, soft, backend):
    """CPU and priority are those of the receiving threads alone."""
    board = soft()
    cpu = max(os.sched_getaffinity(0))
    process = bench.receive("--backend", backend, "--cpus", cpu, "--priority", 20, *QUIET)
    wait_for(lambda: bench.command(0x0119) == 1)

    def is_scheduled(thread):
        how = os.sched_getscheduler(thread), os.sched_getparam(thread).sched_priority, os.sched_getaffinity(thread)
        return how == (os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, 20, {cpu})

    pid = process.popen.pid
    threads = [int(task.name) for task in Path(f"/proc/{pid}/task").iterdir()]
    assert sum(map(is_scheduled, threads)) == 2, "the receiver's thread and the FEB's"
    assert os.sched_getscheduler(pid) == os.SCHED_OTHER
    process.signal(signal.SIGINT)
    status, result = report(process.finish())
    assert status == 0 and result["febs"][0]["verified"], result
    end(board)


def test_a_priority_that_is_not_allowed_is_told(bench, soft):
    """No data is asked for then."""
    board = soft()
    words = bench.fadelink_words("receive", "--iface", "eth0", "--feb", FEBS[0], "--priority", 20)
    without = ["setpriv", "--bounding-set=-sys_nice", "--inh-caps=-sys_nice"]
    status, _, err = bench.start(bench.pc_ns, *without, *words).finish()
    assert status == 1 and "real-time priority 20" in err and "give it CAP_SYS_NICE" in err, err
    assert end(board)[0]["sent"] == 0


def test_xdp_takes_its_febs_and_leaves_the_others(bench, soft):
    """One program has a FEB by AF_XDP, another has the next one by AF_PACKET, a third sends commands."""
    boards = soft(febs=FEBS[:3])
    first = bench.receive(*XDP, *QUIET)
    wait_for(lambda: "AF_XDP on eth0" in first.popen.stderr.readline())
    second = bench.receive(*QUIET, feb=FEBS[1])
    wait_for(lambda: bench.command(0x0119, feb=FEBS[1]) == 1)
    for i in range(1, 20):
        assert bench.command(0x0207, 1) == i
    assert bench.command(0x0107, feb=FEBS[2]) == 0
    for process in (first, second):
        process.signal(signal.SIGINT)
        status, result = report(process.finish())
        assert status == 0 and result["febs"][0]["verified"], result
    assert [feb["running"] for feb in end(boards)] == [False] * 3


def test_xdp_is_taken_by_another_program(bench, soft):
    """The second program says so and does without."""
    boards = soft(febs=FEBS[:2])
    first = bench.receive(*XDP, *QUIET)
    wait_for(lambda: "AF_XDP on eth0" in first.popen.stderr.readline())
    status, out, err = bench.receive(*XDP, "--packets", "2000", *QUIET, feb=FEBS[1]).finish()
    assert status == 0, err
    assert re.search(r"AF_XDP is not available on eth0: .*another program.*; using AF_PACKET", err), err
    first.signal(signal.SIGINT)
    status, result = report(first.finish())
    assert status == 0 and result["febs"][0]["verified"], result
    end(boards)


def test_xdp_after_a_killed_reader(bench, soft):
    """Socket and program in the kernel go with their owner, and the next one begins anew."""
    boards = soft()
    first = bench.receive(*XDP, *QUIET)
    wait_for(lambda: "AF_XDP on eth0" in first.popen.stderr.readline())
    wait_for(lambda: bench.command(0x0119) == 1)
    first.signal(signal.SIGKILL)
    first.finish()
    status, out, err = bench.receive(*XDP, "--packets", "3000", *QUIET).finish()
    assert status == 0 and "copy mode" in err, err
    assert json.loads(out)["febs"][0]["verified"]
    end(boards)


def test_boards_in_software(bench, soft):
    """Discovered, commanded, stopped with a partly filled packet, at numbers that wrap."""
    first = 2**32 - 100
    boards = soft("--window", "16", "--first-packet", first, febs=FEBS[:2])
    status, out, err = bench.run("discover", "--iface", "eth0", "--json")
    found = {line["feb"]: line["identity"] for line in map(json.loads, out.splitlines())}
    new = {
        "window": 16,
        "running": False,
        "stopping": False,
        "block_acks": True,
        "csn": None,
        "transmission": 0,
        "resets": 0,
        "checksum": True,
        "same_words": True,
    }
    assert found == {mac: new for mac in FEBS[:2]}, err
    for mac in FEBS[:2]:
        bench.command(0x0205, 1000 * 1024 + 17, feb=mac)  # words of the source
    bench.command(0x0202, 1, feb=FEBS[1])  # random
    bench.command(0x0203, 77, feb=FEBS[1])
    files = [bench.tmp / "a", bench.tmp / "b"]
    process = bench.receive("--feb", FEBS[1], "--out", files[0], "--out", files[1], "--verify", "counter", "--verify", "random:77", "--quiet",
                            "--first-packet", str(first), "--ring", "64")  # fmt: skip
    wait_for(lambda: all(file.exists() and file.stat().st_size >= 1000 * 8192 for file in files))
    process.signal(signal.SIGINT)
    status, result = report(process.finish())
    assert status == 0, result
    assert [(feb["verified"], feb["words"]) for feb in result["febs"]] == [(True, 1000 * 1024 + 17)] * 2
    status, out, err = bench.run("status", "--iface", "eth0", "--feb", FEBS[0], "--json")
    assert json.loads(out)["counters"]["acknowledged"] == 1001, err
    assert all(not feb["running"] and feb["acknowledged"] == 1001 for feb in end(boards))


def test_block_acks_go_to_boards_that_take_them(bench, soft):
    """Of two boards at full speed one takes no block ACKs: it gets an ACK for each frame, the other one for several."""
    soft("--quirk", "no-block-acks", "--loss", 0.01, febs=FEBS[:1])
    soft("--loss", 0.01, febs=FEBS[1:2])
    words = [word for feb in FEBS[:2] for word in ("--feb", feb)]
    status, out, err = bench.run("receive", "--iface", "eth0", *words, "--packets", 5000, "--verify", "counter", "--json")
    assert status == 0, err
    each, block = (feb["counters"] for feb in json.loads(out)["febs"])
    assert each["acks"] == each["packets"] + each["duplicates"]
    assert block["acks"] < block["packets"] >= 5000


@pytest.mark.parametrize(
    "words",
    [["feb0", "--window", "48"], ["feb0", "--feb", "01:00:00:00:00:01"], ["feb0", "--feb", FEBS[0]], ["nothing0"]],
)
def test_boards_in_software_refuse_wrong_arguments(bench, words):
    process = bench.start(bench.board_ns, *bench.fadelink_words("feb", "--feb", FEBS[0], "--iface", *words))
    status, out, err = process.finish()
    assert status == (1 if len(words) == 1 else 2) and not out and words[-1] in err, err


def test_xdp_has_a_socket_for_each_feb(bench, soft):
    """Several FEBs at once; and one that is opened and closed many times gives its memory back each time."""
    soft("--rate", 200, febs=FEBS[:3])
    words = [word for feb in FEBS[:3] for word in ("--feb", feb)]
    status, out, err = bench.run("receive", "--iface", "eth0", "--backend", "xdp", *words, "--packets", 3000,
                                 "--verify", "counter", "--json")  # fmt: skip
    assert status == 0 and "AF_XDP on eth0" in err, err
    assert all(feb["verified"] and feb["counters"]["packets"] >= 3000 for feb in json.loads(out)["febs"])
    program = f"""
import fadelink
with fadelink.Receiver("eth0", "xdp") as receiver:
    for turn in range(60):
        with receiver.open("{FEBS[0]}", ring_packets=128) as feb:
            feb.start()
            for _ in range(4):
                with feb.read(64 * 8192, timeout=60) as words:
                    assert len(words) >= 64 * 1024, turn
                del words  # an array keeps its FEB open
"""
    process = bench.start(bench.pc_ns, sys.executable, "-c", program)
    status, _, err = process.finish()
    assert status == 0, err

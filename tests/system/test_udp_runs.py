"""Runs of a UDP board of which nothing comes: the board knows that they were, and so do the numbers of the others."""

import contextlib
import signal

import pytest
from support.crate import reasons
from support.netns import report, wait_for
from support.udp_software_board import ADDRESS, ENABLE, UdpBoard

PORT = 10000


@pytest.fixture
def board(bench):
    with contextlib.closing(UdpBoard(bench)) as board:
        yield board


def start(bench, *words):
    sink = f"file:{bench.tmp}/{{stream}}.dat"
    return bench.fadelink("receive", "--udp", PORT, "--json", "--metrics", "127.0.0.1:9470", "--sink", sink, *words)


def has_come(bench, datagrams):
    """All datagrams of the streams that are shown."""
    shown = bench.run_in(bench.pc_ns, "curl", "-s", "http://127.0.0.1:9470/metrics")
    lines = [line for line in shown.splitlines() if line.startswith("fadelink_udp_datagrams_total{")]
    return sum(int(line.split()[-1]) for line in lines) == datagrams


@pytest.mark.parametrize("lost", [[], [0], [1], [2], [1, 2], [0, 1, 2]], ids=str)
def test_a_run_of_which_nothing_comes_is_missing(bench, board, lost):
    """The board is started, ends a run and begins the next one by itself; then it is stopped."""
    process = start(bench, "--board", ADDRESS)
    wait_for(lambda: board.registers[ENABLE])
    for run in range(3):
        board.delivers = run not in lost
        board.words()
        board.end()
        # It is asked for the end of a run that has come.
        wait_for(lambda run=run: not board.delivers or run in board.told)
    process.signal(signal.SIGTERM)
    status, found = report(process.finish())
    assert sorted(stream["run"] for stream in found["streams"] if stream["words"]) == [run for run in range(3) if run not in lost], found
    assert (status, found["verdict"]) == ((3, "incomplete") if lost else (0, "complete")), found
    if lost and 0 not in lost:
        assert reasons(found) == ["board"] and f"{ADDRESS} has sent " in str(found["reasons"]), found


def test_a_board_that_does_not_tell_its_runs_is_not_complete(bench, board):
    """It answers until it has been asked for the end of its run."""
    process = start(bench, "--board", ADDRESS)
    wait_for(lambda: board.registers[ENABLE])
    board.words()
    board.end()
    wait_for(lambda: 0 in board.told)
    wait_for(lambda: has_come(bench, 10))
    board.is_silent = True
    process.signal(signal.SIGTERM)
    status, found = report(process.finish())
    assert (status, found["verdict"]) == (3, "incomplete") and reasons(found) == ["board"], found


@pytest.mark.parametrize("end", ["told", "silence"])
@pytest.mark.parametrize("comes", ["end", "nothing"])
def test_a_run_of_a_sender_that_is_not_named(bench, board, end, comes):
    """Of the second of three runs its end comes alone, or nothing."""
    process = start(bench, "--end", end)
    wait_for(lambda: f":{PORT}" in bench.run_in(bench.pc_ns, "ss", "-uln"))
    board.direct(PORT)
    for run in range(3):
        board.delivers = run != 1
        board.words()
        board.delivers |= comes == "end"
        board.end()
    wait_for(lambda: has_come(bench, 20))
    process.signal(signal.SIGTERM)
    status, found = report(process.finish())
    assert (status, found["verdict"]) == (3, "incomplete"), found
    of_streams = [reasons(stream) for stream in found["streams"]]
    assert (reasons(found), of_streams) == (([], [[], ["missing"], []]) if comes == "end" else (["board"], [[], []])), found


def test_the_end_of_a_run_from_before_is_not_of_the_streams(bench, board):
    """It is repeated, and comes behind the begin of the receiver; the next run is whole."""
    process = start(bench, "--end", "told")
    wait_for(lambda: f":{PORT}" in bench.run_in(bench.pc_ns, "ss", "-uln"))
    board.direct(PORT)
    board.delivers = False
    board.words()
    board.delivers = True
    board.end()
    board.words()
    board.end()
    wait_for(lambda: has_come(bench, 10))
    process.signal(signal.SIGTERM)
    status, found = report(process.finish())
    assert (status, found["verdict"], found["dropped"]["other_run"]) == (0, "complete", 4), found

"""Runs of a UDP board of which nothing comes: the board knows that they were, and so do the numbers of the others."""

import contextlib
import os
import signal
import socket
import time

import numpy as np
import pytest
from support.crate import reasons
from support.netns import report, wait_for
from support.udp_software_board import ADDRESS, ENABLE, PEER_IP, PEER_PORT, UdpBoard, datagram

PORT = 10000


@pytest.fixture
def board(bench):
    with contextlib.closing(UdpBoard(bench)) as board:
        yield board


def start(bench, *words):
    sink = f"file:{bench.tmp}/{{stream}}.dat"
    return bench.fadelink("receive", "--udp", PORT, "--json", "--metrics", "127.0.0.1:9470", "--sink", sink, *words)


def started(bench, board):
    """A program whose board has sent a run, and has been asked for its end."""
    process = start(bench, "--board", ADDRESS)
    wait_for(lambda: board.registers[ENABLE])
    board.words()
    board.end()
    wait_for(lambda: 0 in board.told)
    return process


def waiting_datagrams(bench):
    """Bytes of datagrams that the program has not taken."""
    (line,) = (line.split() for line in bench.run_in(bench.pc_ns, "ss", "-uanH", f"sport = :{PORT}").splitlines())
    return int(line[1])


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


@pytest.mark.parametrize("lost", [1, 126, 127, 128, 200, 255])
def test_however_many_runs_are_missing(bench, board, lost):
    """Their numbers have 8 bits."""
    process = started(bench, board)
    board.delivers = False
    for _ in range(lost):
        board.words()
        board.end()
    process.signal(signal.SIGTERM)
    status, found = report(process.finish())
    assert (status, found["verdict"], reasons(found)) == (3, "incomplete", ["board"]), found
    assert f"{ADDRESS} has sent " in str(found["reasons"]), found


@pytest.mark.parametrize("how", ["power", "power behind lost runs", "power, and the run again", "stopped", "directed"])
def test_what_happens_to_a_board_behind_a_run_is_told(bench, board, how):
    """Its first run is whole, and it has said so. What it had behind that, nobody knows."""
    process = started(bench, board)
    if how.startswith("power"):
        board.delivers = False
        for _ in range(3 if "lost" in how else 1):
            board.words()
            board.end()
        to = {name: board.registers[name] for name in (PEER_IP, PEER_PORT)}
        board.lose_power()
        if "again" in how:
            board.delivers = True
            board.registers |= to
            board.words()
            board.end()
    elif how == "stopped":
        board.registers[ENABLE] = 0
    else:
        board.registers[PEER_PORT] += 1
    process.signal(signal.SIGTERM)
    status, found = report(process.finish())
    assert (status, found["verdict"]) == (3, "incomplete") and "board" in reasons(found), found
    told = {"stopped": "was stopped by another program", "directed": f"was told to send to 127.0.0.1:{PORT + 1} instead"}
    assert told.get(how, "was switched off and on") in str(found["reasons"]), found


def test_runs_that_are_too_fast_to_be_asked_for_are_not_confirmed(bench, board):
    """The board knows how many datagrams its last run had, and no other one. Nothing is missing."""
    process = start(bench, "--board", ADDRESS)
    wait_for(lambda: board.registers[ENABLE])
    for _ in range(5):
        board.words()
        board.end()
    wait_for(lambda: 4 in board.told)
    process.signal(signal.SIGTERM)
    status, found = report(process.finish())
    of_streams = [reasons(stream) for stream in found["streams"]]
    assert reasons(found) == [] and of_streams[-1] == [] and {"end_not_confirmed"} == {name for names in of_streams for name in names}, found
    assert (status, found["verdict"]) == (3, "end_not_confirmed"), found


def test_what_waits_in_the_kernel_is_not_late(bench, board):
    """The board tells the end of its run, and no end comes, while a slow sink holds the program up again and again. It is asked, because
    another one is, which does not answer yet.
    """
    other = "127.0.0.3"
    pipe = bench.tmp / f"{ADDRESS}-49152.pipe"
    os.mkfifo(pipe)
    with open(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK), "rb", buffering=0) as file, contextlib.closing(UdpBoard(bench, other)) as silent:
        process = start(bench, "--board", ADDRESS, "--board", other, "--sink", f"file:{bench.tmp}/{{stream}}.pipe", "--ring", 64)
        wait_for(lambda: board.registers[ENABLE] and silent.registers[ENABLE])
        silent.is_silent = True
        silent.words()
        silent.end()
        board.words(3000, size=500)
        # The pipe and the ring are full.
        wait_for(lambda: waiting_datagrams(bench) > 4 << 20)
        board.delivers = False
        board.end()
        process.signal(signal.SIGTERM)
        os.set_blocking(file.fileno(), True)
        data = bytearray()
        while part := file.read(1 << 16):
            data += part
            time.sleep(0.01)
            silent.is_silent = silent.is_silent and 0 not in board.told
    status, found = report(process.finish())
    assert (np.frombuffer(data, dtype="<u8") == np.arange(3000 * 500)).all() and (status, found["verdict"]) == (0, "complete"), found


def test_a_board_that_does_not_tell_its_runs_is_not_complete(bench, board):
    """It answers until it has been asked for the end of its run."""
    process = started(bench, board)
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


@pytest.mark.parametrize("how", ["nothing", "lost", "stopped", "power"])
def test_who_does_not_wait_for_the_boards_has_no_complete_data(bench, board, how):
    """The first run is whole; the second signal comes before the board has told which runs it had."""
    process = started(bench, board)
    wait_for(lambda: has_come(bench, 10))
    if how != "nothing":
        board.delivers = False
        board.words()
        board.end()
    if how == "stopped":
        board.registers[ENABLE] = 0
    elif how == "power":
        board.lose_power()
    board.is_silent, before = True, board.answered
    process.signal(signal.SIGTERM)
    # It is asked by who stops it.
    wait_for(lambda: board.answered != before)
    process.signal(signal.SIGTERM)
    status, found = report(process.finish())
    assert (status, found["verdict"]) == (3, "incomplete") and "board" in reasons(found), found


@pytest.mark.parametrize("first", [True, False])
def test_words_from_another_port_of_a_board_are_foreign(bench, board, first):
    process = start(bench, "--board", ADDRESS)
    wait_for(lambda: board.registers[ENABLE])
    with bench.in_namespace(bench.pc_ns, lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as other:
        other.bind((ADDRESS, 50000))
        if not first:
            board.words(5)
        for counter in range(10):
            other.sendto(datagram(counter, [7] * 4), ("127.0.0.1", PORT))
        wait_for(lambda: has_come(bench, 10 if first else 5))
        board.words(5)
        board.end()
        wait_for(lambda: 0 in board.told)
    process.signal(signal.SIGTERM)
    status, found = report(process.finish())
    (stream,) = found["streams"]
    assert (status, stream["verdict"], found["dropped"]["other_run"]) == (3, "incomplete", 9 if first else 10), found
    assert "foreign" in reasons(stream), found

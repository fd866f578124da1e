"""FIN of a board that was killed has crossed the question for its end on the way: it does not answer it, however late the program looks."""

import contextlib
import json
import re
import signal
import subprocess
import sys

import pytest
from support import fadc_model as model
from support.control import COUNTER
from support.crate import WINDOW_NS
from support.netns import BOARD, PC, add_address, sh, wait_for
from support.relay import Relayed

TCP, FIN, PORT = 6, 1, 10000

#: Sends what is in a file, and closes when it was asked for its end; or then sends what is in another one, and closes when it is told so.
SENDER = f"""
import socket, sys
board = socket.create_connection(("{PC}", {PORT}))
board.sendall(open(sys.argv[1], "rb").read())
board.recv(1)
if len(sys.argv) > 2:
    board.sendall(open(sys.argv[2], "rb").read())
    sys.stdin.readline()
"""

WORDS = ([COUNTER, COUNTER], "fadelink_received_bytes_total", len(COUNTER), ["receive", "--tcp", PORT, "--streams", 1])
MESSAGES = (
    [b"".join(model.message(1, first + i, [], WINDOW_NS) for i in range(10)) for first in (0, 10)],
    "fadelink_crate_messages_total",
    10,
    ["build", "--tcp", PORT, "--window-ns", WINDOW_NS, "--expect", 1],
)


class Questions:
    """FIN of the computer is lost so many times."""

    def __init__(self, cable, times):
        self.times, self.lost = times, 0
        cable.rule = self.rule

    def rule(self, up, frame):
        is_question = not up and frame[12:14] == b"\x08\x00" and frame[23] == TCP and frame[14 + 20 + 13] & FIN
        if is_question and self.lost < self.times:
            self.lost += 1
            return []
        return [(0, up, frame)]


def has_state(bench, state):
    return state in bench.run_in(bench.pc_ns, "ss", "-tan", f"sport = :{PORT}")


def has_come(bench, metric, amount):
    shown = bench.run_in(bench.pc_ns, "curl", "-s", "http://127.0.0.1:9470/metrics")
    return re.search(rf"^{metric}{{.*}} {amount}$", shown, re.M)


@contextlib.contextmanager
def started(tmp_path, case, answers):
    """The bench, the program and its board, which has sent the first part. `answers`: so many parts come behind the question."""
    parts, metric, amount, words = case
    with contextlib.closing(Relayed(tmp_path)) as bench:
        add_address(bench)
        sh("ip", "-n", bench.pc_ns, "link", "set", "lo", "up")
        sh("ip", "-n", bench.board_ns, "addr", "add", f"{BOARD}/24", "dev", "feb0")
        bench.run_in(bench.board_ns, "ethtool", "-K", "feb0", "tx", "off", "tso", "off", "gso", "off", "gro", "off")
        files = [bench.tmp / name for name in ("first", "then")][: 1 + answers]
        for file, part in zip(files, parts, strict=False):
            file.write_bytes(part)
        process = bench.fadelink(*words, "--end", "confirmed", "--json", "--metrics", "127.0.0.1:9470", "--sink", f"file:{bench.tmp}/x.dat")
        wait_for(lambda: has_state(bench, "LISTEN"))
        board = bench.start(bench.board_ns, sys.executable, "-c", SENDER, *files, stdin=subprocess.PIPE)
        wait_for(lambda: has_come(bench, metric, amount))
        yield bench, process, board


def verdict(process):
    status, found, err = process.finish()
    return status, json.loads(found)["verdict"], found + err


CASES = pytest.mark.parametrize("case", [WORDS, MESSAGES], ids=["receive", "build"])


@pytest.mark.parametrize("is_killed", [True, False], ids=["killed", "answers"])
@CASES
def test_an_end_that_crosses_the_question_is_not_confirmed(tmp_path, case, is_killed):
    with started(tmp_path, case, 1) as (bench, process, board):
        questions = Questions(bench, 1 << 30)
        process.signal(signal.SIGTERM)
        wait_for(lambda: questions.lost)
        if is_killed:
            process.signal(signal.SIGSTOP)
            board.signal(signal.SIGKILL)
            wait_for(lambda: has_state(bench, "CLOSING"))
            questions.times = 0
            wait_for(lambda: has_state(bench, "TIME-WAIT"))
            process.signal(signal.SIGCONT)
        else:
            questions.times = 0
            # What comes behind the answer to the question is read: the answer was seen.
            wait_for(lambda: has_come(bench, case[1], 2 * case[2]))
            board.popen.stdin.write("\n")
            board.popen.stdin.flush()
        status, found, told = verdict(process)
        assert (status, found) == ((3, "end_not_confirmed") if is_killed else (0, "complete")), told


@pytest.mark.parametrize("times", [0, 1, 2, 3])
@CASES
def test_a_question_that_was_lost_is_answered_by_an_end(tmp_path, case, times):
    """At once, when it comes again."""
    with started(tmp_path, case, 0) as (bench, process, _):
        questions = Questions(bench, times)
        process.signal(signal.SIGTERM)
        status, found, told = verdict(process)
        assert (status, found, questions.lost) == (0, "complete", times), told

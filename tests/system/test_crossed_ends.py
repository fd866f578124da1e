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

#: Sends what is in a file; when it was asked for its end, what is in another one. Closes when it is told so.
SENDER = f"""
import socket, sys
board = socket.create_connection(("{PC}", {PORT}))
board.sendall(open(sys.argv[1], "rb").read())
board.recv(1)
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
    """FIN of the computer is lost while `are_lost`."""

    def __init__(self, cable):
        self.are_lost, self.lost = True, 0
        cable.rule = self.rule

    def rule(self, up, frame):
        is_question = not up and frame[12:14] == b"\x08\x00" and frame[23] == TCP and frame[14 + 20 + 13] & FIN
        if is_question and self.are_lost:
            self.lost += 1
            return []
        return [(0, up, frame)]


@pytest.mark.parametrize("is_killed", [True, False], ids=["killed", "answers"])
@pytest.mark.parametrize("parts, metric, amount, words", [WORDS, MESSAGES], ids=["receive", "build"])
def test_an_end_that_crosses_the_question_is_not_confirmed(tmp_path, parts, metric, amount, words, is_killed):
    with contextlib.closing(Relayed(tmp_path)) as bench:
        add_address(bench)
        sh("ip", "-n", bench.pc_ns, "link", "set", "lo", "up")
        sh("ip", "-n", bench.board_ns, "addr", "add", f"{BOARD}/24", "dev", "feb0")
        bench.run_in(bench.board_ns, "ethtool", "-K", "feb0", "tx", "off", "tso", "off", "gso", "off", "gro", "off")
        has_state = lambda state: state in bench.run_in(bench.pc_ns, "ss", "-tan", f"sport = :{PORT}")  # noqa: E731
        files = [bench.tmp / name for name in ("first", "then")]
        for file, part in zip(files, parts, strict=True):
            file.write_bytes(part)
        process = bench.fadelink(*words, "--end", "confirmed", "--json", "--metrics", "127.0.0.1:9470", "--sink", f"file:{bench.tmp}/x.dat")
        wait_for(lambda: has_state("LISTEN"))
        board = bench.start(bench.board_ns, sys.executable, "-c", SENDER, *files, stdin=subprocess.PIPE)
        shown = lambda: bench.run_in(bench.pc_ns, "curl", "-s", "http://127.0.0.1:9470/metrics")  # noqa: E731
        has_come = lambda times: re.search(rf"^{metric}{{.*}} {times * amount}$", shown(), re.M)  # noqa: E731
        wait_for(lambda: has_come(1))
        questions = Questions(bench)
        process.signal(signal.SIGTERM)
        wait_for(lambda: questions.lost)
        if is_killed:
            process.signal(signal.SIGSTOP)
            board.signal(signal.SIGKILL)
            wait_for(lambda: has_state("CLOSING"))
            questions.are_lost = False
            wait_for(lambda: has_state("TIME-WAIT"))
            process.signal(signal.SIGCONT)
        else:
            questions.are_lost = False
            # What comes behind the answer to the question is read: the answer was seen.
            wait_for(lambda: has_come(2))
            board.popen.stdin.write("\n")
            board.popen.stdin.flush()
        status, found, err = process.finish()
        found = json.loads(found)
        expected = (3, "end_not_confirmed") if is_killed else (0, "complete")
        assert (status, found["verdict"]) == expected, (found, err)

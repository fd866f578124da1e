"""Experiments with one TCP board, and its connection."""

import contextlib
import json
import socket

from support.control import ask, state
from support.netns import PATIENCE, wait_for

WORDS = bytes(8000)


def tcp(lab, *sinks, more="", start="now"):
    """An experiment with one TCP board, `a`."""
    sinks = json.dumps([str(sink) for sink in sinks or ["file:{board}.dat"]])
    lab.write(f'start = "{start}"\nend = "told"\nhttp = "127.0.0.1:9470"\n{more}\n'
              f'[[tcp]]\nname = "a"\naddress = "127.0.0.1"\nport = 10000\nsinks = {sinks}\n')  # fmt: skip


def board(lab, data=WORDS):
    """Its board, which has connected and sent something."""
    found = []

    def connected():
        with contextlib.suppress(OSError):
            found.append(lab.bench.in_namespace(lab.bench.pc_ns, lambda: socket.create_connection(("127.0.0.1", 10000), timeout=PATIENCE)))
        return found

    wait_for(connected)
    found[0].sendall(data)
    return found[0]


def has_come(lab, data=WORDS):
    # A word that is not whole is not counted.
    wait_for(lambda: state(lab)["bytes"] == len(data) // 8 * 8)


def is_asked(lab, path):
    """True if the program is there, and does it."""
    with contextlib.suppress(OSError):
        return ask(lab, "POST", path)[0] == 202


def whole_run(lab, data=WORDS):
    """A run whose board sends its words and ends: its exit status and messages."""
    process = lab.start()
    board(lab, data).close()
    status, _, err = process.finish()
    return status, err

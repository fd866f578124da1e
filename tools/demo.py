#!/usr/bin/env python3
"""`make demo`: two simulated boards send over a cable that loses frames; every word is received and verified.

Everything runs in two network namespaces of its own; nothing of it stays on the computer.
"""

import argparse
import itertools
import json
import signal
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

from support import sandbox
from support.netns import FEBS, Bench
from support.paths import BUILD, TOP

BOARDS = FEBS[:2]
LOSS = 0.01
RANDOM_SEED = 0xFADE

INTRODUCTION = f"""
Two 10 Gb/s front-end boards send their data to this computer over FADE-10G.
  Boards    the RTL of the core and its MAC, simulated clock by clock, so they are slower than real ones
  Cable     loses {LOSS * 100:g} % of the frames in each direction
  Computer  receives {len(BOARDS)} boards, repairs what was lost, compares every word with what the board sent,
            and sends user commands to the boards at the same time
"""

NEXT = """
Where to go on
  make demo-fadc     two crates of FADC modules, their events on a page with live plots
  make sim host      all simulated boards and the whole command; then try `fadelink --help`
  README.md          the five systems, how to install, and quick starts
"""


class Demo(Bench):
    """A bench whose command is `command`."""

    def __init__(self, folder, command):
        self.command_path = command
        super().__init__(folder)

    def fadelink(self, *words, **options):
        return self.start(self.pc_ns, self.command_path, *words, **options)

    def value(self, feb, code, argument=0, *more):
        """Sends a user command: the value of its response."""
        status, out, error = self.run("cmd", "--iface", "eth0", "--feb", feb, hex(code), argument, *more)
        if status != 0:
            raise RuntimeError(f"user command {code:#06x} to {feb}: {error}")
        return int(out.split()[1]) if not more else None


def run(bench, simulator, seconds):
    """Runs the boards and the receiver: (status of the receiver, its report, the boards' report, commands sent and executed)."""
    simulator = bench.start(bench.board_ns, simulator, "--iface", "feb0", "--boards", len(BOARDS), "--link", f"loss={LOSS}", "--json")
    simulator.popen.stderr.readline()
    # The second board sends random words.
    bench.value(BOARDS[1], 0x0202, 1)
    bench.value(BOARDS[1], 0x0203, RANDOM_SEED)
    febs = itertools.chain.from_iterable(("--feb", feb) for feb in BOARDS)
    receiver = bench.fadelink("receive", "--iface", "eth0", *febs, "--verify", "counter", "--verify", f"random:{RANDOM_SEED}",
                              "--duration", seconds, "--json", stderr_to=None)  # fmt: skip
    # Each write adds 1 to a register: what is executed twice, or never, shows in the sum.
    sent, end = 0, time.monotonic() + max(seconds - 3, 1)
    while time.monotonic() < end:
        for feb in BOARDS:
            bench.value(feb, 0x0207, 1, "--repeat", 10)
        sent += 10
    status, out, _ = receiver.finish(timeout=None)
    executed = [bench.value(feb, 0x0107) for feb in BOARDS]
    simulator.signal(signal.SIGTERM)
    return status, json.loads(out), json.loads(simulator.finish()[1]), sent, executed


def tell(status, report, boards, sent, executed):
    """Prints the result: True if it is as it should be."""
    print(f"{'':17} {'received':>10} {'frames lost':>12} {'repaired':>9} {'words wrong':>12} {'commands':>9}")
    for feb, done in zip(report["febs"], executed):
        counters = feb["counters"]
        print(f"{feb['feb']} {feb['bytes'] / 1e6:7.2f} MB {counters['missing_frames']:12} {counters['repaired']:9} "
              f"{feb['wrong_words']:12} {done:>9}")  # fmt: skip
    words = sum(feb["words"] for feb in report["febs"])
    bits = sum(feb["bytes"] for feb in report["febs"]) * 8
    good = status == 0 and report["complete"] and all(done == sent for done in executed)
    simulated = boards["simulated_us"]
    print("A packet that is lost twice counts twice as lost, and once as repaired.\n")
    print(f"In the boards' own time this took {simulated / 1000:.0f} ms: each sent {bits / len(BOARDS) / simulated / 1000:.1f} Gb/s of data.")
    if good:
        print(f"PASSED: all {words:,} words arrived, and are the words that the boards sent; "
              f"each of {sent * len(BOARDS)} commands was executed exactly once.")  # fmt: skip
    else:
        print(f"FAILED: complete {report['complete']}, status {status}, {sent} commands sent to each board, {executed} executed")
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=20, help="time that the boards send: 20")
    parser.add_argument("--simulator", type=Path, default=BUILD / "demo/sim/fadelink-sim", help="the simulated boards")
    parser.add_argument("--command", type=Path, default=TOP / "host/target/demo/fadelink", help="the fadelink command")
    args = parser.parse_args()
    sandbox.enter(root=True)
    print(INTRODUCTION, flush=True)
    with tempfile.TemporaryDirectory() as folder, closing(Demo(Path(folder), args.command)) as bench:
        good = tell(*run(bench, args.simulator, args.seconds))
    print(NEXT, end="")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

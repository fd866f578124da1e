#!/usr/bin/env python3
"""FADE-10G in cycle-accurate virtual time: link use, goodput under loss, commands per second.

Usage: bench/fade10g.py [--quick]
The simulated board (the RTL) against an ideal receiver that confirms at once; time is counted in
clock cycles, so the figures do not depend on the machine.
"""

import concurrent.futures
import json
import os
import subprocess
import sys

from support import sandbox
from support.paths import SIM

QUICK = "--quick" in sys.argv
NAMES = {"xgmii": "10G", "gmii": "1G"}
LIMIT = 8192 / 8256


def simulate(phy, window, *options, packets=None):
    """The report of one board."""
    packets = packets or {"xgmii": 4000, "gmii": 600}[phy] // (4 if QUICK else 1)
    words = [SIM, "--virtual", "--json", "--phy", phy, "--window", window, "--packets", packets,
             "--warmup", packets // 10, "--limit-ms", 100000, *options]  # fmt: skip
    result = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=True)
    return json.loads(result.stdout)["boards"][0]


POOL = concurrent.futures.ThreadPoolExecutor(os.cpu_count())


def table(head, rows):
    """Prints a table whose cells are futures or text."""
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(cell if isinstance(cell, str) else cell.result() for cell in row) + " |", flush=True)
    print()


def link_use(*arguments, **options):
    def run():
        return f"{100 * simulate(*arguments, **options)['link_use']:.2f} %"

    return POOL.submit(run)


def round_trips():
    print(f"## Link use by round trip, ideal receiver (limit {100 * LIMIT:.2f} %)\n")
    rtts = [3, 10, 30, 100]
    rows = [[NAMES[phy], str(window), *(link_use(phy, window, "--rtt", rtt) for rtt in rtts)] for phy in NAMES for window in (16, 32, 64)]
    table(["core", "M", *(f"{rtt} us" for rtt in rtts)], rows)


def losses():
    print("## Link use by loss of frames in both directions, round trip 3 us\n")
    rates = [0, 0.0001, 0.001, 0.01, 0.05]
    rows = []
    for phy, window in [("xgmii", 16), ("xgmii", 32), ("xgmii", 64), ("gmii", 16)]:
        cells = [
            link_use(phy, window, "--rtt", 3, "--link", f"loss={rate}", packets=(20000 if phy == "xgmii" else 1500) // (4 if QUICK else 1))
            for rate in rates
        ]
        rows.append([NAMES[phy], str(window), *cells])
    table(["core", "M", *(f"{100 * rate:g} %" for rate in rates)], rows)


def commands():
    print("## User commands a second at full data rate, one after another\n")
    rtts = [3, 10, 30]
    paper = {"xgmii": "40,000", "gmii": "2,870"}

    def rate(phy, window, rtt):
        def run():
            result = simulate(phy, window, "--rtt", rtt, "--commands")
            return f"{result['commands_per_second']:,.0f} (link use {100 * result['link_use']:.2f} %)"

        return POOL.submit(run)

    rows = [[NAMES[phy], str(window), *(rate(phy, window, rtt) for rtt in rtts), paper[phy]] for phy, window in [("xgmii", 32), ("gmii", 16)]]
    table(["core", "M", *(f"{rtt} us" for rtt in rtts), "paper"], rows)


if __name__ == "__main__":
    sandbox.enter()
    round_trips()
    losses()
    commands()

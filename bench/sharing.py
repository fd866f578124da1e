#!/usr/bin/env python3
"""Boards that share one port of a switch, by both rules of congestion control, in virtual time.

Usage: bench/sharing.py [--quick]
The RTL of each board behind its own link, a port with a finite queue, an ideal receiver. Each seed draws when the
boards start, within 1 ms, and how wrong their oscillators are, up to 50 ppm. The shares are those from half
of the time on.
"""

import concurrent.futures
import json
import os
import subprocess
import sys

from support import sandbox
from support.measure import jain
from support.paths import SIM

QUICK = "--quick" in sys.argv
RULES = {"fair": [], "the paper's": ["--paper-rule"]}
SEEDS = range(1, 3 if QUICK else 4)
POOL = concurrent.futures.ThreadPoolExecutor(os.cpu_count())


def share(milliseconds, seed, *options):
    """Mb/s of each board, and what the port dropped, over the second half of the time."""
    words = [SIM, "--virtual", "--json", "--seed", seed, "--rtt", 20, "--spread-us", 1000, "--spread-ppm", 50,
             "--share-from-ms", milliseconds / 2, "--limit-ms", milliseconds, *options]  # fmt: skip
    result = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=True)
    report = json.loads(result.stdout)
    assert all(board["wrong_words"] == 0 for board in report["boards"])
    dropped = report["switch"]["queue_full"] / report["switch"]["frames"]
    return [board["goodput_bps"] / 1e6 for board in report["boards"]], dropped


def three_boards():
    print("### Three boards of FADE v1: two of 1 Gb/s, one of 100 Mb/s; a port of 1 Gb/s, queue 32 KiB\n")
    print("| rule | seed | board 1 | board 2 | board 3, 100 Mb/s | total Mb/s | dropped by the port | Jain index, 1 and 2 |")
    print("|---|---|---|---|---|---|---|---|")
    options = ["--protocol", "fade1", "--boards", 3, "--line-mhz", "125,125,12.5", "--switch", "rate=1000,queue=32768"]
    time = 100 if QUICK else 200
    runs = [(rule, seed, POOL.submit(share, time, seed, *options, *RULES[rule])) for rule in RULES for seed in SEEDS]
    for rule, seed, run in runs:
        rates, dropped = run.result()
        cells = " | ".join(f"{rate:.1f}" for rate in rates)
        print(f"| {rule} | {seed} | {cells} | {sum(rates):.1f} | {100 * dropped:.1f} % | {jain(rates[:2]):.4f} |", flush=True)
    print()


def two_boards(title, time, *options):
    print(f"### Two equal boards, {title}\n")
    print("| rule | Jain index by seed | least | total Mb/s |")
    print("|---|---|---|---|")
    runs = {rule: [POOL.submit(share, time, seed, *options, *words) for seed in SEEDS] for rule, words in RULES.items()}
    for rule, shares in runs.items():
        found = [run.result()[0] for run in shares]
        indices = [jain(rates) for rates in found]
        total = sum(map(sum, found)) / len(found)
        print(f"| {rule} | {', '.join(f'{i:.4f}' for i in indices)} | {min(indices):.4f} | {total:.1f} |", flush=True)
    print()


if __name__ == "__main__":
    sandbox.enter()
    three_boards()
    fade1 = ["--protocol", "fade1", "--boards", 2]
    ten = ["--boards", 2, "--window", 32]
    scale = 1 if not QUICK else 0.5
    for queue in (16384, 65536):
        two_boards(f"FADE v1, 1 Gb/s, queue {queue // 1024} KiB", 160 * scale, *fade1, "--switch", f"rate=1000,queue={queue}")
    for queue in (65536, 262144):
        two_boards(f"FADE-10G, 10 Gb/s, M = 32, queue {queue // 1024} KiB", 60 * scale, *ten, "--switch", f"rate=10000,queue={queue}")

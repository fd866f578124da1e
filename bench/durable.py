#!/usr/bin/env python3
"""Durable confirmation: the rate of a board by its window, and the window that a line rate takes on this disk.

Usage: bench/durable.py [--rounds N] [--seconds S] [--folder FOLDER]   (as root; all in one run, interleaved)
FADE-10G from a board in software (`fadelink feb`) over a veth pair with MTU 9000, into a plain file in FOLDER (default: build/tmp):
with `--confirm memory`, and with `--confirm durable`, where a packet is confirmed when its words and their hash are on the disk.

A board sends its window and waits for the confirmation, so a confirmation takes window / rate, and a line rate takes
rate * confirmation packets. For comparison: the time of a write with fdatasync, of as many bytes as a window has.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from pathlib import Path

from support import sandbox
from support.netns import FEBS, Bench
from support.paths import FADELINK, TOP

PACKET = 8192
WINDOWS = [16, 32, 64]
LINES = {"1 Gb/s": 124e6, "10 Gb/s": 1240e6}  # bytes of data in a second


def rate(bench, folder, window, confirm, seconds):
    """Bytes per second."""
    board = bench.start(bench.board_ns, FADELINK, "feb", "--iface", "feb0", "--feb", FEBS[0], "--window", window)
    assert "in software on" in board.popen.stderr.readline()
    out = folder / "data"
    receiver = bench.receive("--out", out, "--overwrite", "--sink", f"hashes:{folder}/hashes,overwrite", "--confirm", confirm,
                             "--duration", seconds)  # fmt: skip
    status, text, err = receiver.finish()
    assert status == 0, err
    board.popen.kill()
    board.finish()
    feb = json.loads(text)["febs"][0]
    return feb["bytes"] / feb["seconds"]


def sync_time(folder, size, count=100):
    """Median seconds of a write of `size` bytes with fdatasync."""
    times, data = [], os.urandom(size)
    with open(folder / "plain", "wb", buffering=0) as file:
        for _ in range(count):
            begin = time.perf_counter()
            file.write(data)
            os.fdatasync(file)
            times.append(time.perf_counter() - begin)
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--folder", type=Path, default=TOP / "build/tmp")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        folder = Path(folder)
        bench = Bench(folder)
        try:
            found = {(window, confirm): [] for window in WINDOWS for confirm in ("memory", "durable")}
            for _ in range(args.rounds):
                for (window, confirm), rates in found.items():
                    rates.append(rate(bench, folder, window, confirm, args.seconds))
            syncs = {window: sync_time(folder, window * PACKET) for window in WINDOWS}
        finally:
            bench.close()
    titles = ["window", "memory", "durable", "ratio", "a confirmation takes", "write + fdatasync", *(f"window for {line}" for line in LINES)]
    print("| " + " | ".join(titles) + " |\n" + "|---" * len(titles) + "|")
    for window in WINDOWS:
        memory, durable = (statistics.median(found[window, confirm]) for confirm in ("memory", "durable"))
        wait = window * PACKET / durable
        needed = [f"{-(-line * wait // PACKET):.0f} packets" for line in LINES.values()]
        print(f"| {window} packets | {memory / 1e6:.0f} MB/s | {durable / 1e6:.1f} MB/s | {durable / memory:.3f} | {wait * 1e3:.2f} ms "
              f"| {syncs[window] * 1e3:.2f} ms | {' | '.join(needed)} |")  # fmt: skip


if __name__ == "__main__":
    sandbox.enter(root=True)
    main()

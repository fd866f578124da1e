#!/usr/bin/env python3
"""Durable confirmation: the rate of a board by its window, and the window that a line rate takes on this disk.

Usage: bench/durable.py [--rounds N] [--seconds S] [--folder FOLDER]   (as root; all in one run, interleaved)
FADE-10G from a board in software (`fadelink feb`) over a veth pair with MTU 9000, into a plain file in FOLDER (default: build/tmp):
with `--confirm memory`, and with `--confirm durable`, where a packet is confirmed when its words and their hash are on the disk; and
into a topic of a Kafka broker on the same computer, where it is confirmed when the broker has it (acks=all) and its hash is on the disk.

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
from support.broker import Broker
from support.netns import FEBS, Bench
from support.paths import FADELINK, TOP

PACKET = 8192
WINDOWS = [16, 32, 64]
LINES = {"1 Gb/s": 124e6, "10 Gb/s": 1240e6}  # bytes of data in a second


def rate(bench, folder, window, place, seconds):
    """Bytes per second."""
    sink, confirm = place
    board = bench.start(bench.board_ns, FADELINK, "feb", "--iface", "feb0", "--feb", FEBS[0], "--window", window)
    assert "in software on" in board.popen.stderr.readline()
    receiver = bench.receive("--sink", sink, "--sink", f"hashes:{folder}/hashes,overwrite", "--confirm", confirm,
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
        bench, broker = Bench(folder), None
        try:
            bench.run_in(bench.pc_ns, "ip", "link", "set", "lo", "up")
            broker = Broker(folder, within=["ip", "netns", "exec", bench.pc_ns])
            places = {
                "memory": (f"file:{folder}/data,overwrite", "memory"),
                "disk": (f"file:{folder}/data,overwrite", "durable"),
                "Kafka": (f"kafka:{broker.address}/words", "durable"),
            }
            found = {(window, place): [] for window in WINDOWS for place in places}
            for _ in range(args.rounds):
                for (window, place), rates in found.items():
                    rates.append(rate(bench, folder, window, places[place], args.seconds))
            syncs = {window: sync_time(folder, window * PACKET) for window in WINDOWS}
        finally:
            if broker:
                broker.close()
            bench.close()
    titles = ["window", "confirmed in", "rate", "ratio to memory", "a confirmation takes", *(f"window for {line}" for line in LINES)]
    print("| " + " | ".join(titles) + " |\n" + "|---" * len(titles) + "|")
    for (window, place), rates in found.items():
        memory, own = (statistics.median(found[window, name]) for name in ("memory", place))
        wait = window * PACKET / own
        needed = [f"{-(-line * wait // PACKET):.0f} packets" for line in LINES.values()]
        print(f"| {window} packets | {place} | {own / 1e6:.1f} MB/s | {own / memory:.3f} | {wait * 1e3:.2f} ms | {' | '.join(needed)} |")
    times = ", ".join(f"{time * 1e3:.2f} ms for {window} packets" for window, time in syncs.items())
    print(f"\nwrite and fdatasync, median: {times}")


if __name__ == "__main__":
    sandbox.enter(root=True)
    main()

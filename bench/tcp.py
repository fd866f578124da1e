#!/usr/bin/env python3
"""The TCP sender in virtual time, against an ideal receiver: throughput by MTU, fragment, round trip and buffer; boards merged,
and boards that share a port by its queue, with and without marks.

Usage: bench/tcp.py [PART ...], of: mtu, fragment, round-trip, merged, queues, marks
"""

import concurrent.futures
import itertools
import json
import os
import subprocess
import sys

from support import sandbox
from support.measure import jain
from support.paths import SIM

# Preamble, Ethernet header, frame check sequence, gap; IP and TCP header.
WIRE, HEADERS = 8 + 14 + 4 + 12, 40
PAPER = {"point to point": 9.70, "merged": 39.68}  # Gb/s


def run(*options, limit):
    """The report of a run: the rates of its second half."""
    words = [SIM, "--virtual", "--json", "--protocol", "tcp", "--share-from-ms", limit / 2, "--limit-ms", limit, *options]
    return json.loads(subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True).stdout)


def goodput(*options, limit):
    report = run(*options, limit=limit)
    assert all(board["wrong_words"] == 0 for board in report["boards"])
    return sum(board["goodput_bps"] for board in report["boards"]) / 1e9


def by_mtu():
    print("## TCP sender: throughput by MTU, one stream, round trip 10 us\n")
    print("| MTU | bytes a segment | 10G | limit | 1G | limit |")
    print("|---|---|---|---|---|---|")
    for mtu in (576, 1500, 4000, 9000):
        size = (mtu - HEADERS) // 8 * 8
        share = size / (size + HEADERS + WIRE)
        ten = goodput("--mtu", mtu, "--rtt", 10, limit=20)
        one = goodput("--phy", "gmii", "--mtu", mtu, "--rtt", 10, limit=50)
        print(f"| {mtu} | {size} | {ten:.3f} Gb/s | {10 * share:.3f} | {one:.4f} Gb/s | {share:.4f} |", flush=True)
    print(f"\nThe paper: {PAPER['point to point']} Gb/s point to point.")


def by_fragment():
    """Limit: each fragment is cut into full segments and the rest; a plain stream's segments are full."""
    full = 8960
    print("\n## TCP sender: throughput at 10 Gb/s by fragment size, MTU 9000, one stream, round trip 10 us\n")
    print("| fragment | each pushed | limit | plain stream | limit |")
    print("|---|---|---|---|---|")
    for size in [2**n for n in range(6, 15)]:
        limit = size / (size + -(-size // full) * (HEADERS + WIRE))
        options = ["--mtu", 9000, "--rtt", 10, "--block", size // 8]
        pushed, plain = goodput(*options, "--push", limit=8), goodput(*options, limit=8)
        print(f"| {size} B | {pushed:.3f} Gb/s | {10 * limit:.3f} | {plain:.3f} Gb/s | {10 * full / (full + HEADERS + WIRE):.3f} |",
              flush=True)  # fmt: skip


def by_round_trip():
    buffers = [(32, 2**15), (256, 2**18), (1024, 2**20)]
    print("\n## TCP sender: throughput at 10 Gb/s by round trip and buffer, MTU 9000 (bound: buffer / round trip)\n")
    print("| round trip | " + " | ".join(f"{name} KiB" for name, _ in buffers) + " |")
    print("|---|---|---|---|")
    for rtt in (10, 30, 60, 100, 300, 1000):
        cells = []
        for _, size in buffers:
            found = goodput("--mtu", 9000, "--rtt", rtt, "--receive-window", size, limit=max(4, 8 * rtt / 1000))
            cells.append(f"{found:.2f} ({min(9.914, size * 8e-3 / rtt):.2f})")
        print(f"| {rtt} us | " + " | ".join(cells) + " |", flush=True)


def merged():
    print("\n## TCP sender: 16 boards of two streams, 10 Gb/s each, through one port of 40 Gb/s, queue 4 MiB\n")
    print("| window a stream | total | dropped by the port | least and most of a board | Jain index |")
    print("|---|---|---|---|---|")
    for kilobytes in (32, 64, 128):
        report = run("--boards", 16, "--streams", 2, "--mtu", 9000, "--rtt", 20, "--receive-window", kilobytes * 1024,
                     "--switch", "rate=40000,queue=4194304", limit=12)  # fmt: skip
        rates = [board["goodput_bps"] / 1e9 for board in report["boards"]]
        port = report["switch"]
        print(f"| {kilobytes} KiB | {sum(rates):.2f} Gb/s | {100 * port['queue_full'] / port['frames']:.2f} % "
              f"| {min(rates):.3f}, {max(rates):.3f} Gb/s | {jain(rates):.4f} |", flush=True)  # fmt: skip
    print(f"\nThe paper: {PAPER['merged']} of 40 Gb/s.")


# Of each queue the time that is simulated, longer where round trips are: KiB: ms.
TIMES = {16: 40, 64: 40, 256: 40, 1024: 60, 4096: 80}
MIDDLE = (64, 256, 1024)  # the queues of the larger ones


def share_port(cases, *options, mark=0):
    """Boards that share a port of 10 Gb/s. cases: boards and queue in KiB; mark: the share of the queue from which on data is marked."""
    print("| boards | queue | port in use | user data | Jain index | time-outs | fast retransmissions | dropped by the port |")
    print("|---|---|---|---|---|---|---|---|")

    def share(boards, queue):
        size = queue * 1024
        return run("--boards", boards, "--mtu", 9000, "--rtt", 20, "--receive-window", 2**20, "--spread-us", 1000, "--spread-ppm", 50,
                   "--switch", f"rate=10000,queue={size},mark={round(mark * size)}", *options, limit=TIMES[queue])  # fmt: skip

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for (boards, queue), report in zip(cases, pool.map(lambda case: share(*case), cases)):
            rates = [board["goodput_bps"] / 1e9 for board in report["boards"]]
            port = report["switch"]
            timeouts, fast = (sum(board[name] for board in report["boards"]) for name in ("timeouts", "early"))
            print(f"| {boards} | {queue} KiB | {100 * port['use']:.1f} % | {sum(rates):.2f} Gb/s | {jain(rates):.4f} "
                  f"| {timeouts} | {fast} | {100 * port['queue_full'] / port['frames']:.1f} % |", flush=True)  # fmt: skip


def queues():
    print("\n## TCP sender: boards of 10 Gb/s that share a port of 10 Gb/s, by its queue; MTU 9000, round trip 20 us beside the queue\n")
    share_port([*itertools.product((2, 4, 8), TIMES), *itertools.product((16, 32), MIDDLE)])


def marks():
    print("\n## TCP sender: the same through a switch that marks (RFC 3168), from half of its queue on\n")
    share_port([*itertools.product((2, 8, 32), MIDDLE)], "--ecn", mark=0.5)


PARTS = {"mtu": by_mtu, "fragment": by_fragment, "round-trip": by_round_trip, "merged": merged, "queues": queues, "marks": marks}

if __name__ == "__main__":
    sandbox.enter()
    for part in sys.argv[1:] or PARTS:
        if part not in PARTS:
            sys.exit(f"bench/tcp.py: part {part}: expected {', '.join(PARTS)}")
        PARTS[part]()

#!/usr/bin/env python3
"""The kernel driver beside the AF_PACKET backend and kernel TCP: ACK latency and CPU time.

Usage: bench/driver.py [--rounds N] [--seconds S]   (as root; N rounds of the three, interleaved)
All three receive and verify in one virtual machine, over one TAP, at the pace of the simulated board.
Latency is taken on the wire side, from a capture of the TAP: from a data frame to the first ACK that
covers it. CPU time is that of the whole guest (/proc/stat, interrupts included).
"""

import argparse
import contextlib
import json
import re
import socket
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from support import guest, measure, sandbox
from support.netns import FEBS, Bench

PORT = 5001
SO_MAX_PACING_RATE = 47  # asm-generic/socket.h; Python has no name for it
METHODS = ["driver", "AF_PACKET", "TCP"]
FEB = {"driver": FEBS[0], "AF_PACKET": FEBS[1]}

SCRIPT = """
ip addr add 10.9.0.2/24 dev eth0
cpu() {{ echo "CPU $1 $2 $(head -1 /proc/stat)"; }}
for round in $(seq {rounds}); do
    cpu begin AF_PACKET
    fadelink receive --backend packet --iface eth0 --feb {packet} --duration {seconds} --verify counter --json --quiet
    cpu end AF_PACKET
    cpu begin TCP
    tcp_reader {port}
    cpu end TCP
    insmod /lib/fadelink.ko
    cpu begin driver
    fadelink receive --backend kernel --iface eth0 --feb {driver} --duration {seconds} --verify counter --json --quiet
    cpu end driver
    rmmod fadelink
done
"""


def send_tcp(bench, rounds, seconds, rate):
    """A sender in the board's namespace: the counter, at `rate` bytes/s, once for each round."""
    for _ in range(rounds):
        while True:
            try:
                connection = bench.in_namespace(bench.board_ns, lambda: socket.create_connection(("10.9.0.2", PORT), timeout=5))
                break
            except OSError:
                time.sleep(0.2)
        connection.settimeout(None)
        connection.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, int(rate))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        word, begin = 0, time.monotonic()
        while time.monotonic() - begin < seconds:
            connection.sendall(np.arange(word, word + 1024, dtype="<u8").tobytes())
            word += 1024
        connection.close()


def cpu_and_bytes(out):
    """CPU seconds and bytes of each method, summed over its rounds."""
    cpu, received = dict.fromkeys(METHODS, 0.0), dict.fromkeys(METHODS, 0)
    for when, method, stat in re.findall(r"CPU (begin|end) (\S+) (cpu [\d ]+)", out):
        cpu[method] += measure.busy(stat) * (1 if when == "end" else -1)
    for report in re.findall(r'(\{"complete".*\})\s*$', out, re.M):
        feb = json.loads(report)["febs"][0]
        assert feb["verified"], feb
        received[next(method for method, mac in FEB.items() if mac == feb["feb"])] += feb["bytes"]
    received["TCP"] = sum(int(words) * 8 for words in re.findall(r"^(\d+) words", out, re.M))
    return cpu, received


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=int, default=8)
    parser.add_argument("--tcp-rate", type=float, default=10.5e6, help="bytes a second; near what the board makes on two cores")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        try:
            with contextlib.closing(guest.Guest(bench)) as machine:
                file = Path(folder) / "wire.pcap"
                script = SCRIPT.format(rounds=args.rounds, seconds=args.seconds, port=PORT, driver=FEB["driver"], packet=FEB["AF_PACKET"])
                bench.sim("--packet-socket", "--boards", 2, iface="fade0")
                machine.start(script)
                dump = measure.capture(bench, "fade0", file)
                sender = threading.Thread(target=send_tcp, args=(bench, args.rounds, args.seconds, args.tcp_rate), daemon=True)
                sender.start()
                out = machine.finish()
                dump.signal(2)
                dump.finish()
                fade, tcp = measure.latencies(file, PORT)
                times = {"TCP": np.array(tcp), **{method: np.array(fade[mac]) for method, mac in FEB.items()}}
        finally:
            bench.close()
    cpu, received = cpu_and_bytes(out)
    accelerated = "KVM" if "-enable-kvm" in guest.accelerator() else "emulation, no KVM: compare the ratios only"
    print(f"# ACK latency and CPU time in a virtual machine ({accelerated}), {args.rounds} rounds of {args.seconds} s\n")
    print("| receiver | data | rate | ACK p50 | p90 | p99 | p99.9 | p50 / driver's | CPU | CPU / driver's |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    per_gb = {method: cpu[method] / received[method] * 1e9 for method in METHODS}
    middle = {method: np.median(times[method]) for method in METHODS}
    for method in METHODS:
        quantiles = " | ".join(f"{q * 1e6:.0f} us" for q in np.quantile(times[method], [0.5, 0.9, 0.99, 0.999]))
        rate = received[method] / args.rounds / args.seconds
        print(f"| {method} | {received[method] / 1e6:.0f} MB | {rate / 1e6:.1f} MB/s | {quantiles} | {middle[method] / middle['driver']:.2f} "
              f"| {per_gb[method]:.1f} s/GB | {per_gb[method] / per_gb['driver']:.2f} |")  # fmt: skip


if __name__ == "__main__":
    sandbox.enter(root=True)
    main()

#!/usr/bin/env python3
"""Receivers at full speed over a veth pair with MTU 9000: FADE by AF_PACKET and AF_XDP, kernel TCP, UDP.

Usage: bench/receive.py [--rounds N] [--seconds S]   (as root; all in one run, interleaved)
Each but iperf3 verifies every word of the 64-bit counter. FADE comes from a board in software (`fadelink feb`), TCP and UDP
from bench/tools/stream.c. Segmentation offload is off, so that every frame is one of a wire; `TCP, offload` has it
on, with segments of 64 KiB that no wire carries. CPU time is that of the receiving process, and of the whole
machine, sender included. ACK latency is taken in runs of its own, from a capture on the sender's side: from a
data frame to the first ACK that covers it. (The kernel driver runs in a virtual machine: bench/driver.py.)
"""

import argparse
import json
import os
import re
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
from support import measure, sandbox
from support.netns import FEBS, Bench
from support.paths import TOP

FEB = FEBS[0]
PORT = 5001
LOSSES = [0, 0.001, 0.01]
RATES = [10, 100, None]  # MB/s
# Options of the receiver, and of the board.
FADE = {"FADE, AF_PACKET": (["--backend", "packet"], []),
        "FADE, AF_PACKET, an ACK a frame": (["--backend", "packet"], ["--quirk", "no-block-acks"]),
        "FADE, AF_XDP": (["--backend", "xdp"], []),
        "FADE, AF_XDP, busy poll": (["--backend", "xdp", "--busy-poll"], [])}  # fmt: skip
METHODS = [*FADE, "TCP", "TCP, iperf3", "TCP, offload", "UDP"]
VERIFIED = [method for method in METHODS if method not in ("UDP", "TCP, offload", "TCP, iperf3")]


def busy():
    """CPU seconds of the machine that were not idle."""
    return measure.busy(Path("/proc/stat").read_text().split("\n")[0])


def measured(process):
    """Waits for a receiver: its output and its CPU seconds."""
    _, status, usage = os.wait4(process.popen.pid, 0)
    out, err = process.popen.stdout.read(), process.popen.stderr.read()
    process.popen.returncode = os.waitstatus_to_exitcode(status)
    assert process.popen.returncode == 0, out + err
    return out, usage.ru_utime + usage.ru_stime


class Race:
    def __init__(self, bench, seconds):
        self.bench, self.seconds = bench, seconds
        self.stream, self.tcp_reader = bench.tmp / "stream", bench.tmp / "tcp_reader"
        for name in ("stream", "tcp_reader"):
            subprocess.run(["gcc", "-O2", "-o", bench.tmp / name, TOP / f"bench/tools/{name}.c"], check=True)
        bench.run_in(bench.board_ns, "ip", "addr", "add", "10.9.0.1/24", "dev", "feb0")
        bench.run_in(bench.pc_ns, "ip", "addr", "add", "10.9.0.2/24", "dev", "eth0")

    def offload(self, state):
        for namespace, name in [(self.bench.board_ns, "feb0"), (self.bench.pc_ns, "eth0")]:
            self.bench.run_in(namespace, "ethtool", "-K", name, "tso", state, "gso", state)

    def loss(self, loss):
        """Drops frames of both directions at random, where they leave."""
        for namespace, name in [(self.bench.board_ns, "feb0"), (self.bench.pc_ns, "eth0")]:
            subprocess.run(["ip", "netns", "exec", namespace, "nft", "delete", "table", "netdev", "loss"], capture_output=True)
            if loss:
                for rule in ["add table netdev loss",
                             f"add chain netdev loss out {{ type filter hook egress device {name} priority 0; }}",
                             f"add rule netdev loss out numgen random mod 10000 < {round(loss * 10000)} drop"]:  # fmt: skip
                    self.bench.run_in(namespace, "nft", rule)

    def fade(self, options, of_board, rate):
        pace = ["--rate", rate] if rate else []
        words = self.bench.fadelink_words("feb", "--iface", "feb0", "--feb", FEB, "--window", 64, *of_board, *pace)
        board = self.bench.start(self.bench.board_ns, *words)
        board.popen.stderr.readline()
        receiver = self.bench.receive("--duration", self.seconds, "--window", 64, "--verify", "counter", "--quiet", *options)
        out, cpu = measured(receiver)
        board.signal(2)
        board.finish()
        result = json.loads(out)
        assert result["complete"] and result["febs"][0]["verified"]
        return result["febs"][0]["bytes"], cpu, 0, result["febs"][0]["counters"]["duplicates"]

    def sockets(self, receive, send, rate):
        receiver = self.bench.start(self.bench.pc_ns, *receive)
        time.sleep(0.3)
        pace = [rate * 1e6] if rate else []
        sender = self.bench.start(self.bench.board_ns, self.stream, send, "10.9.0.2", PORT, self.seconds, *pace)
        out, cpu = measured(receiver)
        status, _, err = sender.finish()
        assert status == 0, err
        words, missing = re.match(r"(\d+) words(?:, (\d+) missing)?", out).groups()
        return int(words) * 8, cpu, int(missing or 0) * 8, 0

    def iperf3(self):
        """The yardstick that everybody has; it does not look at the data."""
        receiver = self.bench.start(self.bench.pc_ns, "iperf3", "-s", "-1", "-J", "-p", PORT)
        time.sleep(0.3)
        words = ["iperf3", "-c", "10.9.0.2", "-p", PORT, "-t", self.seconds]
        status, _, err = self.bench.start(self.bench.board_ns, *words).finish()
        assert status == 0, err
        out, cpu = measured(receiver)
        return json.loads(out)["end"]["sum_received"]["bytes"], cpu, 0, 0

    def run(self, method, rate=None):
        """Bytes received, CPU seconds of the receiver, bytes missing, packets of FADE that came twice, CPU seconds of the machine.
        `rate`: MB/s."""
        self.offload("on" if method == "TCP, offload" else "off")
        before = busy()
        if method in FADE:
            result = self.fade(*FADE[method], rate)
        elif method == "TCP, iperf3":
            result = self.iperf3()
        elif method == "UDP":
            result = self.sockets([self.stream, "udp-receive", PORT], "udp-send", rate)
        else:
            result = self.sockets([self.tcp_reader, PORT], "tcp-send", rate)
        return *result, busy() - before

    def latency(self, method, rate):
        """Seconds from each data frame to its ACK."""
        file = self.bench.tmp / "wire.pcap"
        dump = measure.capture(self.bench, "feb0", file)
        time.sleep(1)
        self.run(method, rate)
        dump.signal(2)
        dump.finish()
        fade, tcp = measure.latencies(file, PORT)
        return np.array(fade.get(FEB, []) if method in FADE else tcp)


def table(race, loss, rounds):
    race.loss(loss)
    totals = {method: np.zeros(5) for method in METHODS}
    for _ in range(rounds):
        for method in METHODS:
            totals[method] += race.run(method)
    print(f"\n## {loss:.1%} of the frames lost, in both directions\n")
    print("| receiver | goodput | lost | receiver's CPU | goodput a CPU second / TCP's | machine's CPU | came twice |")
    print("|---|---|---|---|---|---|---|")
    efficiency = {method: received / cpu for method, (received, cpu, *_) in totals.items()}
    for method, (received, cpu, missing, twice, machine) in totals.items():
        print(f"| {method} | {received * 8 / rounds / race.seconds / 1e9:.2f} Gb/s | {missing / (received + missing):.2%} "
              f"| {cpu / received * 1e9:.2f} s/GB | {efficiency[method] / efficiency['TCP']:.2f} "
              f"| {machine / received * 1e9:.2f} s/GB | {f'{twice:.0f}' if method in FADE else '-'} |", flush=True)  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=3)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        try:
            race = Race(bench, args.seconds)
            print(f"# Receivers over veth, {os.cpu_count()} cores for sender and receiver, {args.rounds} rounds of {args.seconds} s")
            for loss in LOSSES:
                table(race, loss, args.rounds)
            race.loss(0)
            for rate in RATES:
                print(f"\n## ACK latency at {f'{rate} MB/s' if rate else 'full rate'}\n")
                print("| receiver | frames | p50 | p99 | p99.9 | p50 / TCP's | p99 / TCP's |")
                print("|---|---|---|---|---|---|---|")
                times = {method: race.latency(method, rate) for method in VERIFIED}
                for method, values in times.items():
                    quantiles = " | ".join(f"{q * 1e6:.0f} us" for q in np.quantile(values, [0.5, 0.99, 0.999]))
                    ratios = np.quantile(values, [0.5, 0.99]) / np.quantile(times["TCP"], [0.5, 0.99])
                    print(f"| {method} | {len(values)} | {quantiles} | {ratios[0]:.2f} | {ratios[1]:.2f} |", flush=True)
        finally:
            bench.close()


if __name__ == "__main__":
    sandbox.enter(root=True)
    main()

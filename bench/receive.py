#!/usr/bin/env python3
"""Receivers at full speed over a veth pair with MTU 9000: FADE by AF_PACKET and AF_XDP, kernel TCP, UDP.

Usage: bench/receive.py [--rounds N] [--seconds S]   (as root; all in one run, interleaved)
Sender and receiver have a core each, and the same real-time priority (SCHED_FIFO), or runs would stall beside other work.
Each but iperf3 verifies every word of the 64-bit counter. FADE comes from boards in software (`fadelink feb`), TCP and UDP from
bench/tools/stream.c. Segmentation offload is off, so that every frame is one of a wire; `TCP, offload` has it on, with
segments of 64 KiB that no wire carries.

CPU time is that of the receiving process, and of its core. Over veth the interrupts of the receiver (softirq) run on the
sender's core by default, so the process's time is not all that receiving costs. With packet steering (RPS) in both
directions each core does its own side's: then the core's time is. Both are shown. (XDP runs before packet steering: with AF_XDP
the interrupts stay where they are, and what it costs shows in the time of the machine, sender included.)

ACK latency is taken in runs of its own, from a capture on the sender's side: from a data frame to the first ACK that covers it.
(The kernel driver runs in a virtual machine: bench/driver.py.)
"""

import argparse
import dataclasses
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from support import measure, sandbox
from support.netns import FEBS, Bench
from support.paths import TOP

FEB = FEBS[0]
PORT = 5001
PACKET = 8192
WINDOW = 64
LOSSES = [0.001, 0.01]
RATES = [10, 100, None]  # MB/s
BOARDS = [1, 4, 16]
FILE_PACKETS = 250_000
PRIORITY = 10
HOST = TOP / "host/target/release"


@dataclasses.dataclass(frozen=True)
class Fade:
    """How FADE is received: options of the receiver and of the board."""

    options: tuple = ("--backend", "packet")
    board: tuple = ()
    threads: int = 1
    real_time: bool = True


EACH = ("--quirk", "no-block-acks")
FADE = {
    "FADE": Fade(),
    "FADE, two threads": Fade(threads=2),
    "FADE, an ACK a frame": Fade(board=EACH),
    "FADE, an ACK a frame, two threads": Fade(board=EACH, threads=2),
    "FADE, AF_XDP": Fade(("--backend", "xdp")),
    "FADE, AF_XDP, busy poll": Fade(("--backend", "xdp", "--busy-poll")),
}
METHODS = [*FADE, "TCP", "TCP, iperf3", "TCP, offload", "UDP"]
WITH_LOSS = ["FADE", "FADE, an ACK a frame", "TCP", "TCP, iperf3"]
# Beside the methods at a real-time priority, some that have none.
ORDINARY = {"FADE, no priority": Fade(real_time=False),
            "FADE, --slice 100": Fade(("--backend", "packet", "--slice", "100"), real_time=False)}  # fmt: skip
TIMED = ["FADE", "FADE, an ACK a frame", "FADE, AF_XDP", "TCP", *ORDINARY, "TCP, no priority"]


@dataclasses.dataclass(frozen=True)
class Run:
    """What one run came to: bytes, and bytes missing; CPU seconds of the receiving processes, of their core, and of the machine;
    packets of FADE that came twice."""

    received: int
    process: float
    core: float
    machine: float
    missing: int = 0
    twice: int = 0


class Race:
    def __init__(self, bench, seconds):
        self.bench, self.seconds, self.real_time = bench, seconds, True
        cores = sorted(os.sched_getaffinity(0))
        assert len(cores) > 1, "sender and receiver need a core each"
        self.cores = {bench.board_ns: cores[0], bench.pc_ns: cores[1]}
        self.stream, self.tcp_reader = bench.tmp / "stream", bench.tmp / "tcp_reader"
        for name in ("stream", "tcp_reader"):
            subprocess.run(["gcc", "-O3", "-march=native", "-o", bench.tmp / name, TOP / f"bench/tools/{name}.c"], check=True)
        bench.run_in(bench.board_ns, "ip", "addr", "add", "10.9.0.1/24", "dev", "feb0")
        bench.run_in(bench.pc_ns, "ip", "addr", "add", "10.9.0.2/24", "dev", "eth0")

    def start(self, namespace, *words, **options):
        """Starts a program on its side's core."""
        prefix = ["taskset", "-c", self.cores[namespace]]
        if self.real_time:
            prefix += ["chrt", "-f", PRIORITY]
        return self.bench.start(namespace, *prefix, *words, **options)

    def offload(self, state):
        for namespace, name in [(self.bench.board_ns, "feb0"), (self.bench.pc_ns, "eth0")]:
            self.bench.run_in(namespace, "ethtool", "-K", name, "tso", state, "gso", state)

    def steer(self, on):
        """Frames are taken off the wire by the core of the side that they come to."""
        for namespace, name in [(self.bench.board_ns, "feb0"), (self.bench.pc_ns, "eth0")]:
            mask = f"{(1 << self.cores[namespace]) * on:x}"
            self.bench.run_in(namespace, "sh", "-c", f"echo {mask} >/sys/class/net/{name}/queues/rx-0/rps_cpus")

    def loss(self, loss):
        """Drops frames of both directions at random, where they leave."""
        for namespace, name in [(self.bench.board_ns, "feb0"), (self.bench.pc_ns, "eth0")]:
            subprocess.run(["ip", "netns", "exec", namespace, "nft", "delete", "table", "netdev", "loss"], capture_output=True)
            if loss:
                for rule in ["add table netdev loss",
                             f"add chain netdev loss out {{ type filter hook egress device {name} priority 0; }}",
                             f"add rule netdev loss out numgen random mod 10000 < {round(loss * 10000)} drop"]:  # fmt: skip
                    self.bench.run_in(namespace, "nft", rule)

    def busy(self):
        """CPU seconds so far of the receiving core, and of the machine."""
        now = time.monotonic()
        lines = dict(line.split(maxsplit=1) for line in Path("/proc/stat").read_text().splitlines() if line.startswith("cpu"))
        idle = {name: sum(map(int, times.split()[3:5])) / 100 for name, times in lines.items()}
        return np.array([now - idle[f"cpu{self.cores[self.bench.pc_ns]}"], (len(lines) - 1) * now - idle["cpu"]])

    def measured(self, receivers, begin):
        """Waits for receivers that were started when `busy` said `begin`: what they said, CPU seconds of all of them, of the core and of
        the machine."""
        outputs, process = [], 0.0
        for receiver in receivers:
            _, status, usage = os.wait4(receiver.popen.pid, 0)
            receiver.popen.returncode = os.waitstatus_to_exitcode(status)
            process += usage.ru_utime + usage.ru_stime
            if not outputs:
                core, machine = self.busy() - begin
            outputs.append(receiver.popen.stdout.read())
            assert receiver.popen.returncode == 0, receiver.popen.stderr.read()
        return outputs, process, core, machine

    def fade(self, how, rate=None, boards=1, ends=()):
        febs = [f"02:fa:de:00:01:{i:02x}" for i in range(boards)] if boards > 1 else [FEB]
        named = [word for feb in febs for word in ("--feb", feb)]
        pace = ["--rate", rate] if rate else []
        words = ["feb", "--iface", "feb0", *named, "--window", WINDOW, *how.board, *pace]
        board = self.start(self.bench.board_ns, *self.bench.fadelink_words(*words))
        board.popen.stderr.readline()
        begin = self.busy()
        if how.threads == 2:
            program = [HOST / "examples/two_threads", "eth0", FEB, self.seconds, WINDOW]
        else:
            words = ["receive", "--iface", "eth0", *named, "--json", "--window", WINDOW, "--quiet", *how.options]
            program = self.bench.fadelink_words(*words, *(ends or ["--duration", self.seconds, "--verify", "counter"]))
        (out,), *cpu = self.measured([self.start(self.bench.pc_ns, *program)], begin)
        board.signal(2)
        board.finish()
        if how.threads == 2:
            return Run(int(out), *cpu)
        result = json.loads(out)["febs"]
        assert ends or all(feb["verified"] for feb in result)
        return Run(sum(feb["bytes"] for feb in result), *cpu, 0, sum(feb["counters"]["duplicates"] for feb in result))

    def sockets(self, receive, send, rate=None, boards=1):
        begin = self.busy()
        ports = range(PORT, PORT + boards)
        receivers = [self.start(self.bench.pc_ns, *receive, port) for port in ports]
        time.sleep(0.3)
        pace = [rate * 1e6] if rate else []
        senders = [self.start(self.bench.board_ns, self.stream, send, "10.9.0.2", port, self.seconds, *pace) for port in ports]
        outputs, *cpu = self.measured(receivers, begin)
        for sender in senders:
            status, _, err = sender.finish()
            assert status == 0, err
        counts = [re.match(r"(\d+) words(?:, (\d+) missing)?", out).groups() for out in outputs]
        return Run(sum(int(words) for words, _ in counts) * 8, *cpu, sum(int(missing or 0) for _, missing in counts) * 8)

    def iperf3(self):
        """The yardstick that everybody has; it does not look at the data."""
        begin = self.busy()
        receiver = self.start(self.bench.pc_ns, "iperf3", "-s", "-1", "-J", "-p", PORT)
        time.sleep(0.3)
        words = ["iperf3", "-c", "10.9.0.2", "-p", PORT, "-t", self.seconds]
        status, _, err = self.start(self.bench.board_ns, *words).finish()
        assert status == 0, err
        (out,), *cpu = self.measured([receiver], begin)
        return Run(json.loads(out)["end"]["sum_received"]["bytes"], *cpu)

    def run(self, method, rate=None, boards=1):
        """`rate`: MB/s."""
        self.offload("on" if method == "TCP, offload" else "off")
        how = {**FADE, **ORDINARY}.get(method)
        self.real_time = "no priority" not in method and (how is None or how.real_time)
        if how:
            return self.fade(how, rate, boards)
        if method == "TCP, iperf3":
            return self.iperf3()
        if method == "UDP":
            return self.sockets([self.stream, "udp-receive"], "udp-send", rate)
        return self.sockets([self.tcp_reader], "tcp-send", rate, boards)

    def latency(self, method, rate):
        """Seconds from each data frame to its ACK."""
        file = self.bench.tmp / "wire.pcap"
        dump = measure.capture(self.bench, "feb0", file)
        time.sleep(1)
        run = self.run(method, rate)
        dump.signal(2)
        dump.finish()
        fade, tcp = measure.latencies(file, PORT)
        return run, np.array(fade.get(FEB, []) if method.startswith("FADE") else tcp)


def interleaved(race, methods, rounds, **options):
    """The runs of each method."""
    runs = {method: [] for method in methods}
    for _ in range(rounds):
        for method in methods:
            runs[method].append(race.run(method, **options))
    return runs


def median(runs, figure):
    return float(np.median([figure(run) for run in runs]))


def costs(race, runs):
    """Of the methods: goodput in Gb/s, CPU seconds a GB of process and core, both beside TCP's, and of the machine, sender included."""
    process = {method: median(of, lambda run: run.process / run.received * 1e9) for method, of in runs.items()}
    core = {method: median(of, lambda run: run.core / run.received * 1e9) for method, of in runs.items()}
    machine = {method: median(of, lambda run: run.machine / run.received * 1e9) for method, of in runs.items()}
    for method, of in runs.items():
        rate = median(of, lambda run: run.received * 8 / race.seconds / 1e9)
        yield (method, of, f"{rate:.2f} Gb/s | {process[method]:.3f} s/GB | {process['TCP'] / process[method]:.2f} "
               f"| {core[method]:.3f} s/GB | {core['TCP'] / core[method]:.2f} | {machine[method]:.3f} s/GB")  # fmt: skip


COSTS = "goodput | process | per CPU second, of TCP's | core | per CPU second, of TCP's | machine"


def table(title, race, methods, rounds, **options):
    print(f"\n## {title}\n\n| receiver | {COSTS} | lost | came twice |\n|---|---|---|---|---|---|---|---|---|")
    for method, runs, line in costs(race, interleaved(race, methods, rounds, **options)):
        received, missing = sum(run.received for run in runs), sum(run.missing for run in runs)
        twice = sum(run.twice for run in runs) if FADE.get(method, Fade(threads=2)).threads == 1 else "-"
        print(f"| {method} | {line} | {missing / (received + missing):.2%} | {twice} |", flush=True)


def beside_other_work(race, rounds):
    """A program of the lowest priority (SCHED_IDLE) has the receiver's core whenever nobody else wants it: it never sleeps."""
    core = race.cores[race.bench.pc_ns]
    words = ["taskset", "-c", core, "chrt", "-i", 0, sys.executable, "-c", "while True: pass"]
    other = subprocess.Popen(list(map(str, words)))
    try:
        print("\n## Beside other work on the receiver's core\n\n| receiver | goodput | process | per CPU second, of TCP's |\n|---|---|---|---|")
        for method, _, line in costs(race, interleaved(race, WITH_LOSS, rounds)):
            print(f"| {method} | {' |'.join(line.split('|')[:3])}|", flush=True)
    finally:
        other.kill()
        other.wait()


def boards(race, rounds):
    print(f"\n## Several boards\n\n| receiver | boards | {COSTS} |\n|---|---|---|---|---|---|---|---|")
    for count in BOARDS:
        for method, _, line in costs(race, interleaved(race, ["FADE", "TCP"], rounds, boards=count)):
            print(f"| {method} | {count} | {line} |", flush=True)


def file(race, rounds):
    """To a file on the disk of the temporary files, and `dd` of the same size beside it."""
    place = race.bench.tmp / "data"
    ends = ("--packets", FILE_PACKETS)
    ways = {"fadelink receive --out": ("--out", place), "fadelink receive --sink file:,direct": ("--sink", f"file:{place},direct"),
            "dd": (), "dd oflag=direct": ("oflag=direct",)}  # fmt: skip
    print("\n## To a file\n\n| writer | rate | process |\n|---|---|---|")
    figures = {way: [] for way in ways}
    race.offload("off")
    race.real_time = True
    for _ in range(rounds):
        for way, options in ways.items():
            begin, clock = race.busy(), time.monotonic()
            if way.startswith("dd"):
                words = ["dd", "if=/dev/zero", f"of={place}", "bs=1M", f"count={FILE_PACKETS * PACKET >> 20}", "status=none", *options]
                _, process, *_ = race.measured([race.start(race.bench.pc_ns, *words)], begin)
                received = FILE_PACKETS * PACKET
            else:
                run = race.fade(Fade(), ends=(*ends, *options))
                received, process = run.received, run.process
            figures[way].append((received / (time.monotonic() - clock), process / received * 1e9))
            place.unlink()
    for way, values in figures.items():
        rate, process = np.median(values, axis=0)
        print(f"| {way} | {rate / 1e9:.2f} GB/s | {process:.3f} s/GB |", flush=True)


def latencies(race, rate):
    print(f"\n## ACK latency at {f'{rate} MB/s' if rate else 'full rate'}\n")
    print("| receiver | frames | p50 | p99 | p99.9 | of TCP's: p50 | p99 | p99.9 | window lasts |\n|---|---|---|---|---|---|---|---|---|")
    times = {method: race.latency(method, rate) for method in TIMED}
    quantiles = {method: np.quantile(values, [0.5, 0.99, 0.999]) for method, (_, values) in times.items()}
    for method, (run, values) in times.items():
        yardstick = quantiles["TCP, no priority" if method in ORDINARY else "TCP"]
        shown = " | ".join(f"{time * 1e6:.0f} us" for time in quantiles[method])
        ratios = " | ".join(f"{ratio:.2f}" for ratio in quantiles[method] / yardstick)
        window = f"{WINDOW * PACKET / run.received * race.seconds * 1e6:.0f} us" if method.startswith("FADE") and not rate else "-"
        print(f"| {method} | {len(values)} | {shown} | {ratios} | {window} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=int, default=3)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        try:
            race = Race(bench, args.seconds)
            print(f"# Receivers over veth, a core each for sender and receiver, medians of {args.rounds} rounds of {args.seconds} s")
            table("Interrupts on the sender's core", race, METHODS, args.rounds)
            beside_other_work(race, args.rounds)
            race.steer(True)
            table("Interrupts on the core of their side", race, METHODS, args.rounds)
            boards(race, args.rounds)
            race.steer(False)
            for loss in LOSSES:
                race.loss(loss)
                table(f"{loss:.1%} of the frames lost, in both directions", race, WITH_LOSS, args.rounds)
            race.loss(0)
            file(race, args.rounds)
            for rate in RATES:
                latencies(race, rate)
        finally:
            bench.close()


if __name__ == "__main__":
    sandbox.enter(root=True)
    main()

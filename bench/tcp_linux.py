#!/usr/bin/env python3
"""The TCP sender beside a Linux sender, through a link of a given rate, queue, delay and loss.

Usage: bench/tcp_linux.py [PART ...], of: beside, loss

The simulated board is some hundred times slower than a real one, so the link is as much slower: round trip and rate are those of
the computer's clock. In between stands a program that forwards frames (this kernel may have no netem): it queues them for the
rate, drops what the queue does not hold and what is lost at random, and delays the rest.
"""

import contextlib
import heapq
import itertools
import multiprocessing
import random
import select
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from support import sandbox
from support.netns import FEBS, PC, SEED, Bench, add_address, sh

PORT, LINUX = 10000, "10.9.0.3"
WIRE = 24  # preamble, frame check sequence, gap
OUTGOING = 4  # PACKET_OUTGOING of linux/if_packet.h
# Linux's line into the link has about the rate of the simulated board's, bits/s: else its frames would come in bursts.
LINE = 30e6
WARM_UP, MEASURED = 8, 50  # seconds
BOARDS = {"board": [], "board with SACK": ["--sack"]}
SENDER = """
import socket, sys
s = socket.socket()
s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, sys.argv[3].encode())
s.connect((sys.argv[1], int(sys.argv[2])))
while True:
    s.sendall(bytes(65536))
"""


class Network(Bench):
    """Board, Linux sender and receiver, each in a namespace, and the link between them in a fourth."""

    def build(self):
        number = self.pc_ns.removeprefix("fl-pc-")
        self.linux_ns, self.link_ns = f"fl-linux-{number}", f"fl-link-{number}"
        for namespace in (self.board_ns, self.pc_ns, self.linux_ns, self.link_ns):
            sh("ip", "netns", "add", namespace)
        for namespace, name in [(self.board_ns, "feb0"), (self.pc_ns, "eth0"), (self.linux_ns, "eth1")]:
            sh("ip", "link", "add", name, "netns", namespace, "type", "veth", "peer", "name", f"to-{name}", "netns", self.link_ns)
            for where, what in [(namespace, name), (self.link_ns, f"to-{name}")]:
                self.run_in(where, "sysctl", "-qw", f"net.ipv6.conf.{what}.disable_ipv6=1")
                self.run_in(where, "ethtool", "-K", what, "tx", "off", "tso", "off", "gso", "off", "gro", "off")
                sh("ip", "-n", where, "link", "set", what, "up")
        sh("ip", "-n", self.linux_ns, "addr", "add", f"{LINUX}/24", "dev", "eth1")
        add_address(self)

    def close(self):
        super().close()
        for namespace in (self.linux_ns, self.link_ns):
            subprocess.run(["ip", "netns", "delete", namespace], capture_output=True)

    def socket(self, name):
        def make():
            found = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
            found.bind((name, 3))
            return found

        return self.in_namespace(self.link_ns, make)

    def mac(self, namespace, name):
        return bytes.fromhex(self.run_in(namespace, "cat", f"/sys/class/net/{name}/address").strip().replace(":", ""))


def forward(network, rate, queue, delay, loss):
    """The link, until it is killed. rate: bits/s; queue: bytes; delay: seconds, each way; loss: share of the data frames."""
    pc, board, linux = (network.socket(f"to-{name}") for name in ("eth0", "feb0", "eth1"))
    ways = {bytes.fromhex(FEBS[0].replace(":", "")): [board], network.mac(network.linux_ns, "eth1"): [linux]}
    dice, order, waiting = random.Random(SEED), itertools.count(), []
    free_at = dict.fromkeys(("link", "line"), 0.0)

    def at(moment, action, *arguments):
        heapq.heappush(waiting, (moment, next(order), action, arguments))

    def send(to, frame):
        with contextlib.suppress(OSError):
            to.send(frame)

    def passes(wire, rate, frame):
        """When a frame has passed a wire that sends one after another."""
        free_at[wire] = max(time.monotonic(), free_at[wire]) + (len(frame) + WIRE) * 8 / rate
        return free_at[wire]

    def enter(frame):
        if (free_at["link"] - time.monotonic()) * rate / 8 <= queue and dice.random() >= loss:
            at(passes("link", rate, frame) + delay, send, pc, frame)

    while True:
        while waiting and waiting[0][0] <= time.monotonic():
            _, _, action, arguments = heapq.heappop(waiting)
            action(*arguments)
        timeout = max(0, waiting[0][0] - time.monotonic()) if waiting else 1
        for source in select.select([pc, board, linux], [], [], timeout)[0]:
            frame, (_, _, kind, _, _) = source.recvfrom(2048)
            if kind == OUTGOING:
                continue
            if source is pc:
                for to in ways.get(frame[:6], [board, linux]):
                    at(time.monotonic() + delay, send, to, frame)
            elif source is board:
                enter(frame)
            else:
                at(passes("line", LINE, frame), enter, frame)


def measure(senders, rate, queue, delay, loss=0.0):
    """Goodput of each sender in bits/s of the computer's clock. senders: of BOARDS, or a congestion control of Linux."""
    counts = [0] * len(senders)

    def count(connection, place):
        with contextlib.suppress(OSError):
            while block := connection.recv(1 << 18):
                counts[place] += len(block)

    with tempfile.TemporaryDirectory() as folder:
        network = Network(Path(folder))
        link = multiprocessing.get_context("fork").Process(target=forward, args=(network, rate, queue, delay, loss))
        connections = []
        try:
            link.start()
            for place, sender in enumerate(senders):
                listener = network.in_namespace(network.pc_ns, socket.socket)
                with listener:
                    listener.bind((PC, PORT + place))
                    listener.listen()
                    listener.settimeout(60)
                    if sender in BOARDS:
                        network.sim("--protocol", "tcp", "--mtu", 1500, "--port", PORT + place, *BOARDS[sender])
                    else:
                        network.start(network.linux_ns, sys.executable, "-c", SENDER, PC, PORT + place, sender)
                    connections.append(listener.accept()[0])
                threading.Thread(target=count, args=(connections[-1], place), daemon=True).start()
            time.sleep(WARM_UP)
            first, begun = list(counts), time.monotonic()
            time.sleep(MEASURED)
            return [8 * (last - before) / (time.monotonic() - begun) for last, before in zip(counts, first)]
        finally:
            link.kill()
            link.join()
            for connection in connections:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
                connection.close()
            network.close()


def beside():
    rate, delay = 10e6, 0.010
    print(f"## TCP sender: two senders share a link, MTU 1500, {rate / 1e6:g} Mb/s, round trip {2000 * delay:g} ms beside the queue\n")
    print("| first | second | queue | first | second | share of the first |")
    print("|---|---|---|---|---|---|")
    for senders in [("board", "cubic"), ("board", "bbr"), ("cubic", "bbr")]:
        for queue in (32, 64, 128):
            one, two = measure(senders, rate, queue * 1024, delay)
            print(
                f"| {' | '.join(senders)} | {queue} KiB | {one / 1e6:.2f} Mb/s | {two / 1e6:.2f} Mb/s | {100 * one / (one + two):.0f} % |", flush=True
            )


def loss():
    rate, delay = 10e6, 0.025
    print(f"\n## TCP sender: random loss, MTU 1500, {rate / 1e6:g} Mb/s, round trip {2000 * delay:g} ms, queue 128 KiB; one sender at a time\n")
    print("| loss | board | with SACK | Linux, CUBIC | board / Linux | with SACK / Linux |")
    print("|---|---|---|---|---|---|")
    for share in (0, 0.001, 0.01):
        rates = [measure([sender], rate, 128 * 1024, delay, share)[0] / 1e6 for sender in (*BOARDS, "cubic")]
        ratios = [board / rates[-1] for board in rates[:-1]]
        cells = [f"{found:.2f} Mb/s" for found in rates] + [f"{ratio:.2f}" for ratio in ratios]
        print(f"| {100 * share:g} % | " + " | ".join(cells) + " |", flush=True)


PARTS = {"beside": beside, "loss": loss}

if __name__ == "__main__":
    sandbox.enter()
    for part in sys.argv[1:] or PARTS:
        if part not in PARTS:
            sys.exit(f"bench/tcp_linux.py: part {part}: expected {', '.join(PARTS)}")
        PARTS[part]()

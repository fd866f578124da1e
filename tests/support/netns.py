"""Two network namespaces with a cable between them, boards in one and receivers in the other."""

import ctypes
import itertools
import json
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

from support.paths import FADELINK, SEED, SIM

FEBS = [f"02:fa:de:00:00:0{i}" for i in range(1, 5)]
PC, BOARD = "10.9.0.1", "10.9.0.2"  # of the boards that speak IP
# Seconds until something that does not happen fails a test. What happens costs no more for it, however busy the machine is.
PATIENCE = 300
# Claims of boards, by the number of the network namespace.
CLAIMS = Path("/run/fadelink")


def sh(*words):
    return subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True).stdout


class Process:
    """A program in a namespace; its output is kept."""

    def __init__(self, namespace, *words, stdout_to=subprocess.PIPE, stderr_to=subprocess.PIPE, **options):
        self.words = [str(word) for word in words]
        self.popen = subprocess.Popen(
            ["ip", "netns", "exec", namespace, *self.words],
            stdout=stdout_to, stderr=stderr_to, text=True, **options,
        )  # fmt: skip

    def signal(self, number):
        self.popen.send_signal(number)

    def finish(self, timeout=PATIENCE):
        """Waits for the end: (exit status, standard output, standard error)."""
        try:
            out, err = self.popen.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            out, err = self.popen.communicate()
            raise AssertionError(f"{' '.join(self.words)} did not end; it said: {out}{err}")
        return self.popen.returncode, out, err


_numbers = itertools.count()


class Bench:
    """The cable: namespace `board_ns` with interface feb0, namespace `pc_ns` with eth0. Files go to `tmp_path`."""

    def __init__(self, tmp_path):
        self.tmp = tmp_path
        number = f"{os.getpid()}-{next(_numbers)}"
        self.board_ns, self.pc_ns = f"fl-board-{number}", f"fl-pc-{number}"
        self.processes = []
        try:
            self.build()
        except BaseException:
            self.close()
            raise

    def build(self):
        sh("ip", "netns", "add", self.board_ns)
        sh("ip", "netns", "add", self.pc_ns)
        sh("ip", "link", "add", "feb0", "netns", self.board_ns, "type", "veth", "peer", "name", "eth0", "netns", self.pc_ns)
        for namespace, name in [(self.board_ns, "feb0"), (self.pc_ns, "eth0")]:
            # It may have the number of one that is gone, in which a program was killed.
            for left in CLAIMS.glob(f"{os.stat(f'/run/netns/{namespace}').st_ino}-*"):
                left.unlink()
            subprocess.run(["ip", "netns", "exec", namespace, "sysctl", "-qw", f"net.ipv6.conf.{name}.disable_ipv6=1"],
                           capture_output=True)  # fmt: skip
            sh("ip", "-n", namespace, "link", "set", name, "mtu", 9000, "up")

    def end_processes(self):
        """Kills what still runs."""
        for process in self.processes:
            if process.popen.poll() is None:
                process.popen.kill()
                process.popen.wait()
            for output in (process.popen.stdout, process.popen.stderr):
                if output:
                    output.close()
        self.processes.clear()

    def describe(self):
        """What its interfaces, its connections and its programs say, for the report of a test that failed."""
        lines = []
        for namespace in (self.board_ns, self.pc_ns):
            for words in (["ip", "-s", "-br", "link"], ["ip", "neighbour"], ["ss", "-tanoi"], ["nstat", "-a"]):
                found = subprocess.run(["ip", "netns", "exec", namespace, *words], capture_output=True, text=True)
                lines += [f"{namespace}: {' '.join(words)}", found.stdout + found.stderr]
        for process in self.processes:
            status = process.popen.poll()
            lines.append(f"{' '.join(process.words)}: {'runs' if status is None else f'ended with {status}'}")
            if status is None:
                process.signal(signal.SIGTERM)
                try:
                    lines += process.popen.communicate(timeout=5)
                except subprocess.TimeoutExpired:
                    lines.append("it did not end")
        # Names that are not UTF-8 stop neither the report nor the worker.
        return "\n".join(line for line in lines if line).encode(errors="backslashreplace").decode()

    def close(self):
        self.end_processes()
        for namespace in (self.board_ns, self.pc_ns):
            subprocess.run(["ip", "netns", "delete", namespace], capture_output=True)

    def start(self, namespace, *words, **options):
        process = Process(namespace, *words, **options)
        self.processes.append(process)
        return process

    def sim(self, *options, iface="feb0", seed=SEED):
        """Starts boards, waits until they answer."""
        process = self.start(self.board_ns, SIM, "--iface", iface, "--json", "--seed", seed, *options)
        line = process.popen.stderr.readline()
        assert "board(s) on" in line, line + process.popen.stderr.read()
        return process

    def end_sim(self, process):
        """Stops boards: their summary."""
        process.signal(signal.SIGTERM)
        status, out, err = process.finish()
        assert status == 0, err
        return json.loads(out)

    def frames(self):
        """Frames that have come to the computer so far."""
        return int(self.run_in(self.pc_ns, "cat", "/sys/class/net/eth0/statistics/rx_packets"))

    def wait_for_frames(self, count=200):
        """Waits until so many more frames have come to the computer: boards send."""
        first = self.frames()
        wait_for(lambda: self.frames() >= first + count)

    def run_in(self, namespace, *words):
        """Runs a program in a namespace; it must succeed."""
        return sh("ip", "netns", "exec", namespace, *words)

    def fadelink_words(self, *words):
        """The command line of the command."""
        return [FADELINK, *words]

    def fadelink(self, *words, **options):
        return self.start(self.pc_ns, FADELINK, *words, **options)

    def run(self, *words, timeout=PATIENCE, **options):
        return self.fadelink(*words, **options).finish(timeout)

    def receive(self, *words, feb=FEBS[0]):
        return self.fadelink("receive", "--iface", "eth0", "--feb", feb, "--json", *words)

    def command(self, code, argument=0, feb=FEBS[0]):
        status, out, err = self.run("cmd", "--iface", "eth0", "--feb", feb, hex(code), argument, "--json")
        assert status == 0, err
        # A word that a double does not have is a string.
        return int(json.loads(out)["value"])

    def in_namespace(self, namespace, make):
        """What `make` returns, called in the namespace: sockets stay where they were made."""
        libc = ctypes.CDLL(None, use_errno=True)
        with open("/proc/thread-self/ns/net") as here, open(f"/run/netns/{namespace}") as there:
            assert libc.setns(there.fileno(), 0) == 0
            try:
                return make()
            finally:
                assert libc.setns(here.fileno(), 0) == 0

    def raw(self, namespace, iface):
        """A packet socket in a namespace, for frames by hand."""
        raw = self.in_namespace(namespace, lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0xFADE)))
        raw.bind((iface, 0xFADE))
        raw.settimeout(2)
        return raw


def add_address(bench):
    """An address on the computer's side; checksums are made there, as frames are on a wire."""
    sh("ip", "-n", bench.pc_ns, "addr", "add", f"{PC}/24", "dev", "eth0")
    bench.run_in(bench.pc_ns, "ethtool", "-K", "eth0", "tx", "off", "tso", "off", "gso", "off", "gro", "off")


def add_tap(bench):
    """TAP `fade0` in the board's namespace, for a virtual machine; each frame on it is one on a wire."""
    sh("ip", "-n", bench.board_ns, "tuntap", "add", "fade0", "mode", "tap")
    sh("ip", "-n", bench.board_ns, "addr", "add", "10.9.0.1/24", "dev", "fade0")
    sh("ip", "-n", bench.board_ns, "link", "set", "fade0", "mtu", 9000, "up")
    sh("ip", "netns", "exec", bench.board_ns, "ethtool", "-K", "fade0", "tso", "off", "gso", "off", "gro", "off")


def report(finished):
    """Exit status and JSON report of `receive`."""
    status, out, err = finished
    assert out, err
    return status, json.loads(out)


def wait_for(condition, timeout=PATIENCE):
    end = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


def received_datagrams(bench):
    """Datagrams that programs of the computer have taken."""
    names, values = (line.split() for line in bench.run_in(bench.pc_ns, "cat", "/proc/net/snmp").splitlines() if line.startswith("Udp:"))
    return int(dict(zip(names, values, strict=True))["InDatagrams"])

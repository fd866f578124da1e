"""A UDP board in software, with slow control, that a test has send what it likes (docs/protocol/udp.md)."""

import contextlib
import json
import socket
import struct
import threading

from support.netns import sh
from support.paths import VECTORS

C = json.loads((VECTORS / "udp.json").read_text())["constants"]
ADDRESS = "127.0.0.2"
ENABLE, PEER_IP, PEER_PORT, CHECKSUM, RUN, LAST = (
    C[f"REGISTER_{name}"] for name in ("ENABLE", "PEER_IP", "PEER_PORT", "CHECKSUM", "RUN", "LAST")
)
WORDS = 4


def datagram(counter, words=(), run=0, end=False):
    return struct.pack(">IHBB", counter, len(words), run, end) + struct.pack(f"<{len(words)}Q", *words)


class UdpBoard:
    """On loopback of a namespace of the bench."""

    def __init__(self, bench):
        sh("ip", "-n", bench.pc_ns, "link", "set", "lo", "up")
        udp = lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)  # noqa: E731
        self.control, self.stream = (bench.in_namespace(bench.pc_ns, udp) for _ in range(2))
        self.control.bind((ADDRESS, C["CONTROL_PORT"]))
        self.stream.bind((ADDRESS, 49152))
        self.registers = dict.fromkeys([ENABLE, PEER_IP, PEER_PORT, CHECKSUM, RUN, LAST], 0) | {C["REGISTER_IDENTITY"]: C["IDENTITY"]}
        self.sent, self.told, self.delivers, self.is_silent, self.answered = 0, set(), True, False, None
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def close(self):
        with contextlib.suppress(OSError):
            self.control.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.control.close()
        self.stream.close()

    def serve(self):
        while True:
            try:
                request, client = self.control.recvfrom(100)
            except OSError:
                return
            if not request:
                return
            if self.answered is None or self.answered[0] != (request, client):
                self.answered = (request, client), self.answer(*struct.unpack(">IBBHII", request))
            if not self.is_silent:
                self.control.sendto(self.answered[1], client)

    def answer(self, sequence, operation, _status, _reserved, register, value):
        is_known = register in self.registers
        if operation == C["CONTROL_WRITE"] and is_known:
            if register == ENABLE and value == 0 and self.sent:
                self.end()
            self.registers[register] = value
        if register == LAST:
            self.told.add(self.registers[RUN] - 1)
        status = C["STATUS_DONE"] if is_known else C["STATUS_ADDRESS"]
        return struct.pack(">IBBHII", sequence, operation | C["CONTROL_REPLY"], status, 0, register, self.registers.get(register, 0))

    def direct(self, port):
        """Sets the destination, as slow control does."""
        self.registers |= {PEER_IP: 0x7F000001, PEER_PORT: port}

    def send(self, *content, **options):
        if self.delivers:
            to = socket.inet_ntoa(struct.pack(">I", self.registers[PEER_IP])), self.registers[PEER_PORT]
            self.stream.sendto(datagram(*content, run=self.registers[RUN] % 256, **options), to)

    def words(self, count=10):
        """Sends datagrams of the run."""
        for _ in range(count):
            self.send(self.sent, range(WORDS * self.sent, WORDS * (self.sent + 1)))
            self.sent += 1

    def end(self):
        """The run ends."""
        for _ in range(4):
            self.send(self.sent, end=True)
        self.registers[LAST], self.sent = self.sent, 0
        self.registers[RUN] += 1

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
ENABLE, PEER_IP, PEER_PORT, CHECKSUM, RUN, LAST = (C[f"REGISTER_{name}"] for name in ("ENABLE", "PEER_IP", "PEER_PORT", "CHECKSUM", "RUN", "LAST"))
WORDS = 4


def datagram(counter, words=(), run=0, end=False):
    return struct.pack(">IHBB", counter, len(words), run, end) + struct.pack(f"<{len(words)}Q", *words)


class UdpBoard:
    """At an address of a namespace of the bench: on loopback of the computer, or in the board's."""

    def __init__(self, bench, address=ADDRESS, port=49152):
        namespace, interface = (bench.pc_ns, "lo") if address.startswith("127.") else (bench.board_ns, "feb0")
        sh("ip", "-n", namespace, "link", "set", interface, "up")
        if not address.startswith("127."):
            sh("ip", "-n", namespace, "addr", "add", f"{address}/24", "dev", interface)
        udp = lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)  # noqa: E731
        self.control, self.stream = (bench.in_namespace(namespace, udp) for _ in range(2))
        self.control.bind((address, C["CONTROL_PORT"]))
        self.stream.bind((address, port))
        self.registers = dict.fromkeys([ENABLE, PEER_IP, PEER_PORT, CHECKSUM, RUN, LAST], 0) | {C["REGISTER_IDENTITY"]: C["IDENTITY"]}
        self.sent, self.told, self.delivers, self.is_silent, self.answered = 0, set(), True, False, None
        self.thread = threading.Thread(target=self.serve, daemon=True)
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
            # What it is told may make it silent, behind this answer.
            was_silent = self.is_silent
            if self.answered is None or self.answered[0] != (request, client):
                self.answered = (request, client), self.answer(*struct.unpack(">IBBHII", request))
            if not was_silent:
                self.control.sendto(self.answered[1], client)

    def answer(self, sequence, operation, _status, _reserved, register, value):
        is_known = register in self.registers
        if operation == C["CONTROL_WRITE"] and is_known:
            was, self.registers[register] = self.registers[register], value
            if register == ENABLE and was > value:
                self.stop()
        if register == LAST:
            self.told.add(self.registers[RUN] - 1)
        status = C["STATUS_DONE"] if is_known else C["STATUS_ADDRESS"]
        return struct.pack(">IBBHII", sequence, operation | C["CONTROL_REPLY"], status, 0, register, self.registers.get(register, 0))

    def direct(self, port):
        """Sets the destination, as slow control does."""
        self.registers |= {PEER_IP: 0x7F000001, PEER_PORT: port}

    def stop(self):
        """It was told to stop."""
        if self.sent:
            self.end()

    def send(self, *content, ahead=0, **options):
        """Sends a datagram of its run, or of one that is `ahead`."""
        if self.delivers:
            to = socket.inet_ntoa(struct.pack(">I", self.registers[PEER_IP])), self.registers[PEER_PORT]
            self.stream.sendto(datagram(*content, run=(self.registers[RUN] + ahead) % 256, **options), to)

    def words(self, count=10, size=WORDS):
        """Sends datagrams of the run, of so many words each."""
        for _ in range(count):
            self.send(self.sent, range(size * self.sent, size * (self.sent + 1)))
            self.sent += 1

    def lose_power(self):
        """And has it again."""
        self.registers = self.registers | dict.fromkeys([ENABLE, PEER_IP, PEER_PORT, CHECKSUM, RUN, LAST], 0)
        self.sent = 0

    def end(self):
        """The run ends."""
        for _ in range(4):
            self.send(self.sent, end=True)
        self.registers[LAST], self.sent = self.sent, 0
        self.registers[RUN] += 1

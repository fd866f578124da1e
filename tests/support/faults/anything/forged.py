"""Frames of FADE that the board or the computer has not sent.

Nobody can tell a forged packet in the place of one that is lost: FADE has no signatures. So where packets of the window are forged, no
frame of the board is lost, or late.
"""

import json
import socket
import time

from support.netns import FEBS
from support.paths import VECTORS

C = {protocol: json.loads((VECTORS / f"{protocol}.json").read_text())["constants"] for protocol in ("fade10g", "fade1")}
ETHERTYPE = b"\xfa\xde"
BOARD, OTHER = (bytes.fromhex(mac.replace(":", "")) for mac in (FEBS[0], "02:fa:de:00:00:f1"))
# Farther ahead than any window.
FAR = 5000


def words(*fields):
    """Big-endian numbers, given as (value, bytes)."""
    return b"".join((value % 256**size).to_bytes(size, "big") for value, size in fields)


def link(random, is_good):
    """Settings of a link that loses nothing and delays nothing at random, or does."""
    chance = lambda most: round(random.choice([0, random.random() * most]), 4)  # noqa: E731
    settings = f"duplicate={chance(0.2)},delay={random.choice([0, 5, 50])}us"
    if not is_good:
        settings += f",loss={chance(0.2)},reorder={chance(0.2)},corrupt={chance(0.05)}"
    return settings


class Forger:
    """Makes frames by a seed. `computer`: the address of the receiver."""

    def __init__(self, protocol, computer, random):
        self.protocol, self.c, self.random = protocol, C[protocol], random
        self.computer = bytes.fromhex(computer.replace(":", ""))
        self.version = words((C["fade10g"]["VERSION"], 2))

    def number(self, frame):
        """The number of the packet in a frame for the computer, or None."""
        if len(frame) != self.c["DATA_FRAME_LEN"] or frame[:6] != self.computer:
            return None
        if self.protocol == "fade10g":
            return int.from_bytes(frame[20:24], "big")
        return int.from_bytes(frame[16:18], "big") * 32 + (int.from_bytes(frame[18:20], "big") >> 10)

    def near(self, newest):
        return max(newest + self.random.randrange(-3, 9), 0)

    def outside(self, newest):
        """A number that the board has no packet of in its window, nor has soon."""
        before = newest - 32 - self.random.randrange(1, 1000)
        return before if before >= 0 and self.random.random() < 0.5 else newest + FAR + self.random.randrange(1 << 20)

    def ask(self, what, source, newest):
        """A request to the board: reset, start, stop, identify, confirm."""
        random, c = self.random, self.c
        number, packet = random.randrange(1, 1 << 16), max(newest + random.randrange(-2, 3), 0)
        stored = words((c["BLOCK_MARK"], 2), (0, 2), (random.getrandbits(64), 8), (0, 8)) if random.random() < 0.5 else bytes(4)
        head = BOARD + source + ETHERTYPE
        if self.protocol == "fade10g":
            codes = {"reset": c["CMD_RESET"], "start": c["CMD_START"], "stop": c["CMD_STOP"], "identify": c["CMD_IDENTIFY"], "confirm": c["ACK"]}
            argument = packet if what == "confirm" else 0
            frame = head + self.version + words((codes[what], 2), (number, 2), (argument, 4)) + (bytes(4) + stored if what == "confirm" else b"")
        else:
            codes = {
                "reset": c["TYPE_RESET"],
                "identify": c["TYPE_RESET"],
                "start": c["TYPE_START"],
                "stop": c["TYPE_STOP"],
                "confirm": c["TYPE_ACK"],
            }
            fields = {"start": words((number, 2)), "confirm": words((packet // 32, 2), (packet % 32 << 10, 2)) + stored}
            frame = head + words((codes[what], 2)) + fields.get(what, b"")
        return frame.ljust(c["REQUEST_LEN"], b"\xa5")

    def data(self, packet, is_last):
        """A data frame with words of its own, for FADE-10G also as the last one."""
        random, c = self.random, self.c
        payload = random.randbytes(c["PACKET_BYTES"])
        head = self.computer + BOARD + ETHERTYPE
        if self.protocol == "fade1":
            return (
                head
                + words(
                    (c["TYPE_DATA"], 2), (packet // 32, 2), (packet % 32 << 10 | c["RETRY_FADELINK"], 2), (c["TAKES_BLOCK_ACKS"] | c["SAME_WORDS"], 4)
                )
                + payload
            )
        if is_last:
            payload = payload[:-8] + random.randrange(c["LAST_WORDS_MAX"] + 1).to_bytes(8, "little")
        kind = c["TYPE_LAST"] if is_last else c["TYPE_DATA"]
        return head + self.version + words((kind, 2), (random.randrange(1 << 16), 2), (packet, 4), (0, 4)) + bytes(12) + payload

    def answer(self, packets):
        """An answer of the board with a random number: who knows the right one can say what he wants."""
        random, c = self.random, self.c
        head, number = self.computer + BOARD + ETHERTYPE, random.randrange(1 << 16)
        if self.protocol == "fade1":
            state = random.choice([c["STATE_NONE"], c["STATE_RUNNING"], c["STATE_ENDED"], c["STATE_RESET"]])
            return (head + words((c["TYPE_STATE"], 2), (state, 2), (number, 2), (packets, 4))).ljust(c["STATE_FRAME_LEN"], b"\xa5")
        response = words((random.randrange(1, 8), 2), (number, 2), (random.getrandbits(64), 8))
        return (head + self.version + words((c["TYPE_RESPONSE"], 2)) + b"\xa5\xa5" + response).ljust(60, b"\xa5")

    def damage(self, frame, header):
        """A frame that is cut off, or of which nothing is right; with `header` also one with other bits in its header or first word."""
        random = self.random
        how = random.randrange(4 if header else 2)
        if how == 0:
            return frame[: random.randrange(14, len(frame))]
        if how == 1:
            return frame[:14] + random.randbytes(len(frame) - 14)
        changed = bytearray(frame)
        for _ in range(random.randrange(1, 4)):
            changed[random.randrange(self.c["DATA_HEADER_LEN"] + 8)] ^= 1 << random.randrange(8)
        return bytes(changed)


class Wire:
    """Both directions of a cable, for frames by hand. `up`, `down`, `seen`: namespace and interface to send to the computer, to the
    board, and to see what comes from the board."""

    def __init__(self, net, up, down, seen):
        self.up, self.down, self.seen = self.open(net, *up), self.open(net, *down), self.open(net, *seen, protocols=3)

    def open(self, net, namespace, iface, protocols=0):
        """A packet socket that receives nothing, or all protocols."""
        raw = net.in_namespace(namespace, lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(protocols)))
        raw.bind((iface, protocols))
        return raw

    def frames(self, is_wanted, count, seconds=0.3):
        """The next frames of the board that are wanted, as many as come in time."""
        found, end = [], time.monotonic() + seconds
        self.seen.settimeout(0)
        try:
            while True:
                self.seen.recv(10000)  # what waits is old
        except OSError:
            pass
        while len(found) < count and (left := end - time.monotonic()) > 0:
            self.seen.settimeout(left)
            try:
                frame = self.seen.recv(10000)
            except OSError:
                break
            if is_wanted(frame):
                found.append(frame)
        return found

    def send(self, raw, frame):
        try:
            raw.send(frame)
        except OSError:
            pass  # the cable is out

    def close(self):
        for raw in (self.up, self.down, self.seen):
            raw.close()

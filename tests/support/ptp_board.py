"""A board with PTP, and masters made with scapy that share its wire; their times are that of the simulation."""

import struct
from dataclasses import dataclass

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from support.block import package_constants
from support.board import LIB, US
from support.ip_board import PC, PC_MAC
from support.udp_board import BYTE, C, UdpBoard

P = package_constants("ptp/ptp_pkg.sv")
SYNC, DELAY_REQ, PDELAY_REQ, PDELAY_RESP, FOLLOW_UP, DELAY_RESP, PDELAY_FOLLOW, ANNOUNCE, MANAGEMENT = 0, 1, 2, 3, 8, 9, 10, 11, 13
EVENTS = (SYNC, DELAY_REQ, PDELAY_REQ, PDELAY_RESP)
PEER_KINDS = (PDELAY_REQ, PDELAY_RESP, PDELAY_FOLLOW)
TWO_STEP, ALTERNATE = 0x200, 0x100
SLAVE, MASTER, BEST = 1, 2, 3
LISTENING, IS_MASTER, UNCALIBRATED, IS_SLAVE = 4, 6, 8, 9
END_TO_END, PEER_TO_PEER = 1, 2
LOG = -12  # logarithm of the seconds between Sync
INTERVAL = 1e6 * 2.0**LOG  # microseconds
IDENTITY = bytes.fromhex("02fadefffe0000010001")
PEER = bytes.fromhex("02fadefffe0000f00001")
SECOND = 10**9


def message(kind, sequence, stamp=0, requesting=None, source=PEER, flags=0, correction=0, domain=0, version=2, length=None,
            log=LOG, priority=128, quality=0xF8FEFFFF, priority2=128, grandmaster=None, steps=0, utc=0, time_source=0xA0, tail=b""):  # fmt: skip
    """A message; stamp and correction in ns."""
    body = struct.pack(">HII", *(stamp // SECOND >> shift & mask for shift, mask in ((32, 0xFFFF), (0, 0xFFFFFFFF))), stamp % SECOND)
    if kind == ANNOUNCE:
        body += struct.pack(">HBBIB8sHB", utc, 0, priority, quality, priority2, grandmaster or source[:8], steps, time_source)
    if kind == MANAGEMENT:
        body = b""
    if requesting is not None:
        body += requesting
    body += tail
    length = 34 + len(body) if length is None else length
    head = struct.pack(">BBHBBHqI10sHBb", kind, version, length, domain, 0, flags, correction << 16, 0, source, sequence, 0, log)
    return head + body


@dataclass
class Heard:
    """A message from the board; `left`: when its first byte behind the delimiter was on the wire, ns of the simulation."""

    kind: int
    sequence: int
    stamp: int
    payload: bytes
    left: float

    @property
    def requesting(self):
        return self.payload[44:54]


class PtpBoard(UdpBoard):
    def __init__(self, phy, role, ethernet=False):
        super().__init__(phy, stopped=True, ptp=role)
        self.ethernet = False
        self.free = 0  # when the wire to the board is, ps
        self.introduce()
        clocks = INTERVAL * 1000 / (8 if phy == "gmii" else 6.4)
        assert self.setting("CLOCKS", round(clocks)) == self.setting("LOG", LOG % 256) == 0
        if ethernet:
            assert self.setting("TRANSPORT", 1) == 0
        self.ethernet = ethernet

    def setting(self, name, value):
        """Writes a register."""
        return self.write(C["REGISTER_PTP_" + name], value)

    def found(self, name):
        """Reads a register, as a signed number."""
        return (self.read(C["REGISTER_PTP_" + name]) + 2**31) % 2**32 - 2**31

    def send(self, frame):
        """The time at which it is on the wire, ns."""
        begin = max(self.now, self.free)
        # Preamble, frame check sequence, gap.
        self.free = begin + (max(len(frame), 60) + 8 + 4 + 12) * BYTE[self.phy]
        super().send(frame)
        return begin / 1000

    def tell(self, payload, event=False):
        """The time at which it is on the wire, ns."""
        peer = payload[0] & 15 in PEER_KINDS
        if self.ethernet:
            return self.send(bytes(Ether(src=PC_MAC, dst="01:80:c2:00:00:0e" if peer else "01:1b:19:00:00:00", type=P["ETHERTYPE"]) / payload))
        port = P["PORT_EVENT"] if event else P["PORT_GENERAL"]
        group, mac = ("224.0.0.107", "01:00:5e:00:00:6b") if peer else ("224.0.1.129", "01:00:5e:00:01:81")
        return self.send(bytes(Ether(src=PC_MAC, dst=mac) / IP(src=PC, dst=group) / UDP(sport=port, dport=port) / payload))

    def decode(self, frame):
        """Checks where a message goes, and what all have in common."""
        if self.ethernet:
            payload, header = bytes(frame.payload), 14
            assert frame.type == P["ETHERTYPE"]
        else:
            payload, header = bytes(frame[UDP].payload)[: frame[UDP].len - 8], 42
        kind, version, length = payload[0] & 15, payload[1] & 15, int.from_bytes(payload[2:4], "big")
        payload = payload[:length] if self.ethernet else payload
        assert version == 2 and length == len(payload) and payload[20:30] == IDENTITY
        if self.ethernet:
            assert frame.dst == ("01:80:c2:00:00:0e" if kind in PEER_KINDS else "01:1b:19:00:00:00")
        else:
            assert frame[UDP].sport == frame[UDP].dport == (P["PORT_EVENT"] if kind in EVENTS else P["PORT_GENERAL"])
            groups = ("01:00:5e:00:00:6b", "224.0.0.107") if kind in PEER_KINDS else ("01:00:5e:00:01:81", "224.0.1.129")
            assert (frame.dst, frame[IP].dst) == groups
        stamp = int.from_bytes(payload[34:40], "big") * SECOND + int.from_bytes(payload[40:44], "big")
        # `at` is the end of the frame: of GMII the clock behind it, of XGMII the start of its last word.
        size = max(len(payload) + header, 60) + 4
        left = frame.at - (size * 8000 if self.phy == "gmii" else size // 8 * 6400)
        return Heard(kind, int.from_bytes(payload[30:32], "big"), stamp, payload, left / 1000)

    def hear(self, timeout=3 * INTERVAL * US):
        """The next message."""
        return self.decode(self.expect(Raw if self.ethernet else UDP, timeout))

    def hear_kind(self, kind, timeout=3 * INTERVAL * US):
        while (heard := self.hear(timeout)).kind != kind:
            pass
        return heard

    def ns(self):
        return self.now / 1000

    def error(self):
        """Of the board's clock against the simulation's, ns; the board stands at `now` only when nothing left it just now."""
        while self.receive(US) is not None:
            pass
        return LIB.fadelink_board_time(self.handle) - round(self.ns())


class Master:
    """Sync with Follow_Up each interval, Announce each second one, answers to Delay_Req and Pdelay_Req."""

    def __init__(self, board, identity=PEER, origin=1_800_000_000 * SECOND, begin=0.0, **announced):
        self.board, self.identity, self.origin, self.announced = board, identity, origin, announced
        self.sequence, self.next, self.alive = 0, board.now + begin * US, True

    def time(self):
        return self.origin + round(self.board.ns())

    def interval(self):
        common = {"source": self.identity, "domain": self.announced.get("domain", 0)}
        left = self.board.tell(message(SYNC, self.sequence, flags=TWO_STEP, **common), event=True)
        self.board.tell(message(FOLLOW_UP, self.sequence, self.origin + round(left), **common))
        if self.sequence % 2 == 0:
            self.board.tell(message(ANNOUNCE, self.sequence // 2, source=self.identity, log=LOG + 1, **self.announced))
        self.sequence += 1
        self.next += INTERVAL * US

    def answer(self, heard):
        if heard.kind == DELAY_REQ:
            stamp = self.time() - round(self.board.ns() - heard.left)
            self.board.tell(message(DELAY_RESP, heard.sequence, stamp, requesting=IDENTITY, source=self.identity))


def live(board, masters, intervals, each=None):
    """Lets masters and the board talk; `each` is called with every message of the board. All that it said."""
    end = board.now + int(intervals * INTERVAL * US)
    said = []
    while board.now < end:
        alive = [master for master in masters if master.alive]
        until = min([end, *(int(master.next) for master in alive)])
        frame = board.receive(until - board.now) if until > board.now else None
        if frame is not None:
            heard = board.decode(frame)
            said.append(heard)
            for master in alive:
                master.answer(heard)
            if each:
                each(heard)
        else:
            board.now = max(board.now, until)
            for master in alive:
                if int(master.next) <= board.now:
                    master.interval()
    return said

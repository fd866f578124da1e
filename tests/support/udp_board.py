"""A board with the UDP/IP stack, and what its peer asks of it."""

import struct

from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Raw

from support.block import package_constants
from support.board import FEB, LIB, US
from support.ip_board import BOARD, BOARD_MAC, PC, PC_MAC, IpBoard

C = package_constants("udp/udp_pkg.sv")
PORT = 10000
RETRY = 1000  # microseconds, of ARP
PHYS = ["gmii", "xgmii"]
BYTE = {"gmii": 8000, "xgmii": 800}  # ps
BROADCAST = "ff:ff:ff:ff:ff:ff"


def be32(ip):
    return int.from_bytes(bytes(map(int, ip.split("."))), "big")


ME = Ether(src=PC_MAC, dst=BOARD_MAC)
BODY = Raw(struct.pack(">IBBHII", 0x55, 2, 0, 0, 0, 1))
GOOD = ME / IP(src=PC, dst=BOARD) / UDP(sport=5000, dport=C["CONTROL_PORT"]) / BODY


def dropped_frames():
    """Frames that are dropped, by the reason under which they are counted."""

    def spoiled(packet, place):
        data = bytearray(bytes(packet))
        data[place] ^= 0x10
        return bytes(data)

    ping = ME / IP(src=PC, dst=BOARD) / ICMP(type=8)
    return {
        "drop_destination": [bytes(Ether(src=PC_MAC, dst="02:00:00:00:00:09") / GOOD[IP])],
        "drop_ethertype": [bytes(Ether(src=PC_MAC, dst=BOARD_MAC, type=0x86DD) / Raw(bytes(60)))],
        "drop_arp": [bytes(ME / ARP(op=1, hwsrc=PC_MAC, psrc="10.9.0.50", pdst="10.9.0.3")), bytes(ME / ARP(op=3, psrc=PC, pdst=BOARD)),
                     bytes(ME / ARP(hwtype=6, op=1, psrc=PC, pdst=BOARD))],
        "drop_ip_short": [bytes(ME / IP(src=PC, dst=BOARD, len=300) / UDP()), bytes(ME / IP(src=PC, dst=BOARD, len=19) / UDP())],
        "drop_ip_version": [bytes(ME / IP(src=PC, dst=BOARD, options=b"\1\1\1\0") / UDP()),
                            bytes(ME / IP(version=6, src=PC, dst=BOARD) / UDP())],
        "drop_ip_checksum": [spoiled(GOOD, 14 + 8), spoiled(ping, 14 + 12)],
        "drop_ip_destination": [bytes(ME / IP(src=PC, dst="10.9.0.9") / UDP())],
        "drop_fragment": [bytes(ME / IP(src=PC, dst=BOARD, flags=f, frag=o) / UDP()) for f, o in (("MF", 0), (0, 3))],
        "drop_ip_protocol": [bytes(ME / IP(src=PC, dst=BOARD) / TCP())],
        "drop_icmp_type": [bytes(ME / IP(src=PC, dst=BOARD) / ICMP(type=13)), bytes(ME / IP(src=PC, dst=BOARD) / ICMP(type=8, code=1))],
        "drop_icmp_checksum": [spoiled(ping / b"abc", 14 + 20 + 9)],
        "drop_udp_short": [bytes(ME / IP(src=PC, dst=BOARD) / UDP(sport=1, dport=C["CONTROL_PORT"], len=500) / BODY),
                           bytes(ME / IP(src=PC, dst=BOARD) / UDP(sport=1, dport=C["CONTROL_PORT"], len=7) / BODY)],
        "drop_udp_checksum": [spoiled(GOOD, 14 + 20 + 8 + 15), spoiled(GOOD, 14 + 20 + 1)],
        "drop_port": [bytes(ME / IP(src=PC, dst=BOARD) / UDP(sport=1, dport=1) / BODY)],
        "drop_control_short": [bytes(ME / IP(src=PC, dst=BOARD) / UDP(sport=1, dport=C["CONTROL_PORT"]) / Raw(bytes(15)))],
    }  # fmt: skip


class UdpBoard(IpBoard):
    def __init__(self, phy="gmii", payload=1472, checksum=False, stopped=False, words=0, gap=0, block=0, tx=0, rx=0, ptp=0):
        self.phy, self.payload = phy, payload
        super().__init__(phy, LIB.fadelink_udp_board_new(phy.encode(), FEB, payload, checksum, stopped, words, gap, block, tx, rx, ptp))
        self.sequence = 0

    def meet(self):
        """Answers the board's question for the peer."""
        request = self.expect(ARP)
        assert request.dst == BROADCAST and (request[ARP].op, request[ARP].psrc, request[ARP].pdst) == (1, BOARD, PC)
        self.put(ARP(op=2, hwsrc=PC_MAC, psrc=PC, hwdst=BOARD_MAC, pdst=BOARD))
        return self

    def introduce(self):
        """Asks for the board, which remembers who asked."""
        self.send(bytes(Ether(src=PC_MAC, dst=BROADCAST) / ARP(op=1, hwsrc=PC_MAC, psrc=PC, pdst=BOARD)))
        reply = self.expect(ARP)
        assert reply.dst == PC_MAC and (reply[ARP].op, reply[ARP].psrc, reply[ARP].hwsrc) == (2, BOARD, BOARD_MAC)
        return self

    def datagram(self, timeout=10_000 * US):
        """(counter, words, run, flags) of the next one of the stream."""
        frame = self.expect(UDP, timeout)
        assert (frame.dst, frame[IP].src, frame[IP].dst, frame[UDP].dport) == (PC_MAC, BOARD, PC, PORT)
        data = bytes(frame[UDP].payload)[: frame[UDP].len - 8]
        counter, count, run, flags = struct.unpack(">IHBB", data[:8])
        words = list(struct.unpack(f"<{count}Q", data[8 : 8 + 8 * count]))
        assert set(data[8 + 8 * count :]) <= {C["FILLER"]}
        assert len(data) == (self.payload if count == (self.payload - 8) // 8 else 8 + 8 * count)
        self.last = frame
        return counter, words, run, flags

    def control(self, operation, address, value=0, sequence=None, port=5000, behind=None, **fields):
        """A request of the slow control, with the packet `behind` directly behind it: (status, value)."""
        if sequence is None:
            self.sequence += 1
            sequence = self.sequence
        request = struct.pack(">IBBHII", sequence, operation, 0, 0, address, value)
        self.put(IP(src=PC, dst=BOARD) / UDP(sport=port, dport=C["CONTROL_PORT"], **fields) / request)
        if behind is not None:
            self.put(behind)
        while True:
            frame = self.receive(10_000 * US)
            assert frame is not None, "no reply"
            if UDP in frame and frame[UDP].dport == port:
                break
        found = struct.unpack(">IBBHII", bytes(frame[UDP].payload)[:16])
        assert found[0] == sequence and found[1] == operation | C["CONTROL_REPLY"] and found[3:5] == (0, address)
        assert frame[UDP].sport == C["CONTROL_PORT"] and frame[UDP].chksum != 0
        return found[2], found[5]

    def read(self, address):
        status, value = self.control(C["CONTROL_READ"], address)
        assert status == C["STATUS_DONE"]
        return value

    def write(self, address, value):
        return self.control(C["CONTROL_WRITE"], address, value)[0]

"""A board with one of the cores of IP protocols, and a peer made with scapy that verifies every checksum."""

import ctypes

from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.l2 import Ether

from support.board import FEB, LIB, US, Board

PC, BOARD = "10.9.0.1", "10.9.0.2"
PC_MAC, BOARD_MAC = "02:fa:de:00:00:f0", ":".join(f"{b:02x}" for b in FEB)


def parse(frame, at):
    """A frame from the board: dissected, its checksums verified."""
    packet = Ether(frame[:-4])
    packet.at = at
    for layer in (IP, TCP, ICMP, UDP):
        if layer in packet and not (layer is UDP and packet[UDP].chksum == 0):
            told = packet[layer].chksum
            again = Ether(frame[:-4])
            del again[layer].chksum
            again = Ether(bytes(again))
            assert again[layer].chksum == told, f"checksum of {layer.__name__}"
    if IP in packet:
        assert packet[IP].ttl == 64 and len(packet) >= packet[IP].len + 14
    if TCP in packet or UDP in packet:
        assert packet[IP].flags == "DF"
    return packet


class IpBoard(Board):
    def __init__(self, phy, handle):
        super().__init__(phy, parse=parse, handle=handle)

    def counters(self):
        found, value = {}, ctypes.c_uint32()
        while name := LIB.fadelink_board_counter(self.handle, len(found), ctypes.byref(value)):
            found[name.decode()] = value.value
        return found

    def put(self, packet):
        self.send(bytes(Ether(src=PC_MAC, dst=BOARD_MAC) / packet))

    def expect(self, layer, timeout=10_000 * US):
        """The next frame, which must have `layer`."""
        frame = self.receive(int(timeout))
        assert frame is not None and layer in frame, f"expected {layer.__name__}, got {frame!r}"
        return frame

    def silent(self, timeout):
        assert (frame := self.receive(int(timeout * US))) is None, frame.summary()

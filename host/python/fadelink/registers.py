"""The register maps of the cores. Written by tools/registers.py."""

from typing import NamedTuple


class Field(NamedTuple):
    """Bits of a register: `bits` of them from bit `low` on."""

    name: str
    low: int
    bits: int
    description: str

    def get(self, word: int) -> int:
        """Its value in a word of the register."""
        return word >> self.low & (1 << self.bits) - 1


class Register(NamedTuple):
    """A register of 32 bits, at its address in bytes."""

    name: str
    address: int
    writable: bool
    description: str
    fields: tuple[Field, ...]


FADE = (
    Register(
        "version",
        0x000,
        False,
        "Core and version: a byte each for the core, major, minor and patch (link_pkg::STATUS_VERSION).",
        (Field("value", 0, 32, ""),),
    ),
    Register(
        "control",
        0x004,
        True,
        "",
        (
            Field("enable", 0, 1, "The core works; 0: it is in reset."),
            Field("paper_rule", 1, 1, "Congestion control by the rule of the paper."),
        ),
    ),
    Register("status", 0x008, False, "", (Field("running", 0, 1, "A transmission runs."),)),
    Register("mac_low", 0x010, True, "MAC address of the core, its last four bytes.", (Field("value", 0, 32, ""),)),
    Register("mac_high", 0x014, True, "MAC address of the core, its first two bytes.", (Field("value", 0, 16, ""),)),
    Register("counters.transmit.sent", 0x100, False, "Data frames, with those that went again.", (Field("value", 0, 32, ""),)),
    Register("counters.transmit.retransmitted", 0x104, False, "Data frames that went again.", (Field("value", 0, 32, ""),)),
    Register("counters.transmit.acknowledged", 0x108, False, "Packets that are confirmed.", (Field("value", 0, 32, ""),)),
    Register(
        "counters.transmit.early_retransmissions",
        0x10C,
        False,
        "Packets that went again before their time, because a later one was confirmed.",
        (Field("value", 0, 32, ""),),
    ),
    Register("counters.transmit.protocol_errors", 0x110, False, "ACKs that the protocol does not allow.", (Field("value", 0, 32, ""),)),
    Register("counters.transmit.delay", 0x114, False, "Clocks that the congestion control waits after each frame.", (Field("value", 0, 32, ""),)),
    Register("counters.transmit.stale_acks", 0x118, False, "ACKs of packets that were confirmed before.", (Field("value", 0, 32, ""),)),
    Register(
        "counters.transmit.wrong_source",
        0x11C,
        False,
        "Frames from another computer than the one that started the run.",
        (Field("value", 0, 32, ""),),
    ),
    Register(
        "counters.transmit.commands_while_busy",
        0x120,
        False,
        "User commands that came before the last one was answered.",
        (Field("value", 0, 32, ""),),
    ),
    Register("counters.transmit.running", 0x124, False, "1 while a transmission runs.", (Field("value", 0, 32, ""),)),
    Register("counters.transmit.stopping", 0x128, False, "1 from STOP until the end of a run.", (Field("value", 0, 32, ""),)),
    Register("counters.transmit.error", 0x12C, False, "1 after a protocol error, until RESET.", (Field("value", 0, 32, ""),)),
    Register("counters.mac.rx_error", 0x180, False, "Frames that the PHY said are wrong.", (Field("value", 0, 32, ""),)),
    Register("counters.mac.rx_runt", 0x184, False, "Frames shorter than 64 bytes.", (Field("value", 0, 32, ""),)),
    Register("counters.mac.rx_oversize", 0x188, False, "Frames longer than the MAC takes.", (Field("value", 0, 32, ""),)),
    Register("counters.mac.rx_bad_fcs", 0x18C, False, "Frames with a wrong frame check sequence.", (Field("value", 0, 32, ""),)),
    Register("counters.receive.rx_wrong_destination", 0x190, False, "Frames to another address.", (Field("value", 0, 32, ""),)),
    Register("counters.receive.rx_wrong_ethertype", 0x194, False, "Frames of another protocol.", (Field("value", 0, 32, ""),)),
    Register("counters.receive.rx_wrong_version", 0x198, False, "Frames of another version.", (Field("value", 0, 32, ""),)),
    Register("counters.receive.rx_wrong_code", 0x19C, False, "Frames with a code that is not known.", (Field("value", 0, 32, ""),)),
    Register("counters.receive.rx_short", 0x1A0, False, "Frames that end before their fields.", (Field("value", 0, 32, ""),)),
    Register(
        "counters.receive.rx_fifo_full", 0x1A4, False, "Frames that found the FIFO of the commands and ACKs full.", (Field("value", 0, 32, ""),)
    ),
)

TCP = (
    Register(
        "version",
        0x000,
        False,
        "Core and version: a byte each for the core, major, minor and patch (link_pkg::STATUS_VERSION).",
        (Field("value", 0, 32, ""),),
    ),
    Register(
        "control",
        0x004,
        True,
        "",
        (
            Field("enable", 0, 1, "The core works; 0: it is in reset."),
            Field("push", 1, 1, "Each block of the user is sent at once."),
            Field("ecn", 2, 1, "Explicit congestion notification (RFC 3168)."),
            Field("sack", 3, 1, "Selective acknowledgement (RFC 2018)."),
        ),
    ),
    Register("status", 0x008, False, "", (Field("path", 0, 1, "The MAC address of the next hop is known."),)),
    Register("mac_low", 0x010, True, "MAC address of the core, its last four bytes.", (Field("value", 0, 32, ""),)),
    Register("mac_high", 0x014, True, "MAC address of the core, its first two bytes.", (Field("value", 0, 16, ""),)),
    Register("address", 0x018, True, "IPv4 address of the core.", (Field("value", 0, 32, ""),)),
    Register("mask", 0x01C, True, "Mask of its network.", (Field("value", 0, 32, ""),)),
    Register("gateway", 0x020, True, "Router to other networks.", (Field("value", 0, 32, ""),)),
    Register("peer", 0x024, True, "IPv4 address of the receiver.", (Field("value", 0, 32, ""),)),
    Register(
        "ports",
        0x028,
        True,
        "",
        (
            Field("local_port", 0, 16, "TCP port of the core; that of stream i is greater by i."),
            Field("peer_port", 16, 16, "TCP port of the receiver, of every stream."),
        ),
    ),
    Register("mtu", 0x02C, True, "", (Field("value", 0, 14, "Largest packet in bytes, 576 to the parameter MTU."),)),
    Register("streams", 0x030, True, "", (Field("enable", 0, 16, "A bit for each stream: its connection is opened and kept open."),)),
    Register(
        "connections",
        0x034,
        False,
        "",
        (
            Field("connected", 0, 16, "A bit for each stream: its connection is open."),
            Field("active", 16, 16, "A bit for each stream: it is not idle."),
        ),
    ),
    Register("counters.stream0.sent", 0x400, False, "Segments with data, with those that went again.", (Field("value", 0, 32, ""),)),
    Register("counters.stream0.retransmitted", 0x404, False, "Segments that went again.", (Field("value", 0, 32, ""),)),
    Register("counters.stream0.fast_retransmissions", 0x408, False, "Recoveries that duplicate ACKs began.", (Field("value", 0, 32, ""),)),
    Register("counters.stream0.timeouts", 0x40C, False, "Recoveries that the retransmission timer began.", (Field("value", 0, 32, ""),)),
    Register("counters.stream0.probes", 0x410, False, "Probes of a closed window.", (Field("value", 0, 32, ""),)),
    Register("counters.stream0.resets", 0x414, False, "Connections that were broken.", (Field("value", 0, 32, ""),)),
    Register(
        "counters.stream0.unacceptable", 0x418, False, "Segments with a sequence number or an ACK outside the windows.", (Field("value", 0, 32, ""),)
    ),
    Register("counters.stream1.sent", 0x420, False, "Segments with data, with those that went again.", (Field("value", 0, 32, ""),)),
    Register("counters.stream1.retransmitted", 0x424, False, "Segments that went again.", (Field("value", 0, 32, ""),)),
    Register("counters.stream1.fast_retransmissions", 0x428, False, "Recoveries that duplicate ACKs began.", (Field("value", 0, 32, ""),)),
    Register("counters.stream1.timeouts", 0x42C, False, "Recoveries that the retransmission timer began.", (Field("value", 0, 32, ""),)),
    Register("counters.stream1.probes", 0x430, False, "Probes of a closed window.", (Field("value", 0, 32, ""),)),
    Register("counters.stream1.resets", 0x434, False, "Connections that were broken.", (Field("value", 0, 32, ""),)),
    Register(
        "counters.stream1.unacceptable", 0x438, False, "Segments with a sequence number or an ACK outside the windows.", (Field("value", 0, 32, ""),)
    ),
    Register("counters.stream2.sent", 0x440, False, "Segments with data, with those that went again.", (Field("value", 0, 32, ""),)),
    Register("counters.stream2.retransmitted", 0x444, False, "Segments that went again.", (Field("value", 0, 32, ""),)),
    Register("counters.stream2.fast_retransmissions", 0x448, False, "Recoveries that duplicate ACKs began.", (Field("value", 0, 32, ""),)),
    Register("counters.stream2.timeouts", 0x44C, False, "Recoveries that the retransmission timer began.", (Field("value", 0, 32, ""),)),
    Register("counters.stream2.probes", 0x450, False, "Probes of a closed window.", (Field("value", 0, 32, ""),)),
    Register("counters.stream2.resets", 0x454, False, "Connections that were broken.", (Field("value", 0, 32, ""),)),
    Register(
        "counters.stream2.unacceptable", 0x458, False, "Segments with a sequence number or an ACK outside the windows.", (Field("value", 0, 32, ""),)
    ),
    Register("counters.stream3.sent", 0x460, False, "Segments with data, with those that went again.", (Field("value", 0, 32, ""),)),
    Register("counters.stream3.retransmitted", 0x464, False, "Segments that went again.", (Field("value", 0, 32, ""),)),
    Register("counters.stream3.fast_retransmissions", 0x468, False, "Recoveries that duplicate ACKs began.", (Field("value", 0, 32, ""),)),
    Register("counters.stream3.timeouts", 0x46C, False, "Recoveries that the retransmission timer began.", (Field("value", 0, 32, ""),)),
    Register("counters.stream3.probes", 0x470, False, "Probes of a closed window.", (Field("value", 0, 32, ""),)),
    Register("counters.stream3.resets", 0x474, False, "Connections that were broken.", (Field("value", 0, 32, ""),)),
    Register(
        "counters.stream3.unacceptable", 0x478, False, "Segments with a sequence number or an ACK outside the windows.", (Field("value", 0, 32, ""),)
    ),
    Register("counters.stream4.sent", 0x480, False, "Segments with data, with those that went again.", (Field("value", 0, 32, ""),)),
    Register("counters.stream4.retransmitted", 0x484, False, "Segments that went again.", (Field("value", 0, 32, ""),)),
    Register("counters.stream4.fast_retransmissions", 0x488, False, "Recoveries that duplicate ACKs began.", (Field("value", 0, 32, ""),)),
    Register("counters.stream4.timeouts", 0x48C, False, "Recoveries that the retransmission timer began.", (Field("value", 0, 32, ""),)),
    Register("counters.stream4.probes", 0x490, False, "Probes of a closed window.", (Field("value", 0, 32, ""),)),
    Register("counters.stream4.resets", 0x494, False, "Connections that were broken.", (Field("value", 0, 32, ""),)),
    Register(
        "counters.stream4.unacceptable", 0x498, False, "Segments with a sequence number or an ACK outside the windows.", (Field("value", 0, 32, ""),)
    ),
    Register("counters.stream5.sent", 0x4A0, False, "Segments with data, with those that went again.", (Field("value", 0, 32, ""),)),
    Register("counters.stream5.retransmitted", 0x4A4, False, "Segments that went again.", (Field("value", 0, 32, ""),)),
    Register("counters.stream5.fast_retransmissions", 0x4A8, False, "Recoveries that duplicate ACKs began.", (Field("value", 0, 32, ""),)),
    Register("counters.stream5.timeouts", 0x4AC, False, "Recoveries that the retransmission timer began.", (Field("value", 0, 32, ""),)),
    Register("counters.stream5.probes", 0x4B0, False, "Probes of a closed window.", (Field("value", 0, 32, ""),)),
    Register("counters.stream5.resets", 0x4B4, False, "Connections that were broken.", (Field("value", 0, 32, ""),)),
    Register(
        "counters.stream5.unacceptable", 0x4B8, False, "Segments with a sequence number or an ACK outside the windows.", (Field("value", 0, 32, ""),)
    ),
    Register("counters.stream6.sent", 0x4C0, False, "Segments with data, with those that went again.", (Field("value", 0, 32, ""),)),
    Register("counters.stream6.retransmitted", 0x4C4, False, "Segments that went again.", (Field("value", 0, 32, ""),)),
    Register("counters.stream6.fast_retransmissions", 0x4C8, False, "Recoveries that duplicate ACKs began.", (Field("value", 0, 32, ""),)),
    Register("counters.stream6.timeouts", 0x4CC, False, "Recoveries that the retransmission timer began.", (Field("value", 0, 32, ""),)),
    Register("counters.stream6.probes", 0x4D0, False, "Probes of a closed window.", (Field("value", 0, 32, ""),)),
    Register("counters.stream6.resets", 0x4D4, False, "Connections that were broken.", (Field("value", 0, 32, ""),)),
    Register(
        "counters.stream6.unacceptable", 0x4D8, False, "Segments with a sequence number or an ACK outside the windows.", (Field("value", 0, 32, ""),)
    ),
    Register("counters.stream7.sent", 0x4E0, False, "Segments with data, with those that went again.", (Field("value", 0, 32, ""),)),
    Register("counters.stream7.retransmitted", 0x4E4, False, "Segments that went again.", (Field("value", 0, 32, ""),)),
    Register("counters.stream7.fast_retransmissions", 0x4E8, False, "Recoveries that duplicate ACKs began.", (Field("value", 0, 32, ""),)),
    Register("counters.stream7.timeouts", 0x4EC, False, "Recoveries that the retransmission timer began.", (Field("value", 0, 32, ""),)),
    Register("counters.stream7.probes", 0x4F0, False, "Probes of a closed window.", (Field("value", 0, 32, ""),)),
    Register("counters.stream7.resets", 0x4F4, False, "Connections that were broken.", (Field("value", 0, 32, ""),)),
    Register(
        "counters.stream7.unacceptable", 0x4F8, False, "Segments with a sequence number or an ACK outside the windows.", (Field("value", 0, 32, ""),)
    ),
    Register("counters.stream8.sent", 0x500, False, "Segments with data, with those that went again.", (Field("value", 0, 32, ""),)),
    Register("counters.stream8.retransmitted", 0x504, False, "Segments that went again.", (Field("value", 0, 32, ""),)),
    Register("counters.stream8.fast_retransmissions", 0x508, False, "Recoveries that duplicate ACKs began.", (Field("value", 0, 32, ""),)),
    Register("counters.stream8.timeouts", 0x50C, False, "Recoveries that the retransmission timer began.", (Field("value", 0, 32, ""),)),
    Register("counters.stream8.probes", 0x510, False, "Probes of a closed window.", (Field("value", 0, 32, ""),)),
    Register("counters.stream8.resets", 0x514, False, "Connections that were broken.", (Field("value", 0, 32, ""),)),
    Register(
        "counters.stream8.unacceptable", 0x518, False, "Segments with a sequence number or an ACK outside the windows.", (Field("value", 0, 32, ""),)
    ),
    Register("counters.stream9.sent", 0x520, False, "Segments with data, with those that went again.", (Field("value", 0, 32, ""),)),
    Register("counters.stream9.retransmitted", 0x524, False, "Segments that went again.", (Field("value", 0, 32, ""),)),
    Register("counters.stream9.fast_retransmissions", 0x528, False, "Recoveries that duplicate ACKs began.", (Field("value", 0, 32, ""),)),
    Register("counters.stream9.timeouts", 0x52C, False, "Recoveries that the retransmission timer began.", (Field("value", 0, 32, ""),)),
    Register("counters.stream9.probes", 0x530, False, "Probes of a closed window.", (Field("value", 0, 32, ""),)),
    Register("counters.stream9.resets", 0x534, False, "Connections that were broken.", (Field("value", 0, 32, ""),)),
    Register(
        "counters.stream9.unacceptable", 0x538, False, "Segments with a sequence number or an ACK outside the windows.", (Field("value", 0, 32, ""),)
    ),
    Register("counters.stream10.sent", 0x540, False, "Segments with data, with those that went again.", (Field("value", 0, 32, ""),)),
    Register("counters.stream10.retransmitted", 0x544, False, "Segments that went again.", (Field("value", 0, 32, ""),)),
    Register("counters.stream10.fast_retransmissions", 0x548, False, "Recoveries that duplicate ACKs began.", (Field("value", 0, 32, ""),)),
    Register("counters.stream10.timeouts", 0x54C, False, "Recoveries that the retransmission timer began.", (Field("value", 0, 32, ""),)),
    Register("counters.stream10.probes", 0x550, False, "Probes of a closed window.", (Field("value", 0, 32, ""),)),
    Register("counters.stream10.resets", 0x554, False, "Connections that were broken.", (Field("value", 0, 32, ""),)),
    Register(
        "counters.stream10.unacceptable", 0x558, False, "Segments with a sequence number or an ACK outside the windows.", (Field("value", 0, 32, ""),)
    ),
    Register("counters.stream11.sent", 0x560, False, "Segments with data, with those that went again.", (Field("value", 0, 32, ""),)),
    Register("counters.stream11.retransmitted", 0x564, False, "Segments that went again.", (Field("value", 0, 32, ""),)),
    Register("counters.stream11.fast_retransmissions", 0x568, False, "Recoveries that duplicate ACKs began.", (Field("value", 0, 32, ""),)),
    Register("counters.stream11.timeouts", 0x56C, False, "Recoveries that the retransmission timer began.", (Field("value", 0, 32, ""),)),
    Register("counters.stream11.probes", 0x570, False, "Probes of a closed window.", (Field("value", 0, 32, ""),)),
    Register("counters.stream11.resets", 0x574, False, "Connections that were broken.", (Field("value", 0, 32, ""),)),
    Register(
        "counters.stream11.unacceptable", 0x578, False, "Segments with a sequence number or an ACK outside the windows.", (Field("value", 0, 32, ""),)
    ),
    Register("counters.stream12.sent", 0x580, False, "Segments with data, with those that went again.", (Field("value", 0, 32, ""),)),
    Register("counters.stream12.retransmitted", 0x584, False, "Segments that went again.", (Field("value", 0, 32, ""),)),
    Register("counters.stream12.fast_retransmissions", 0x588, False, "Recoveries that duplicate ACKs began.", (Field("value", 0, 32, ""),)),
    Register("counters.stream12.timeouts", 0x58C, False, "Recoveries that the retransmission timer began.", (Field("value", 0, 32, ""),)),
    Register("counters.stream12.probes", 0x590, False, "Probes of a closed window.", (Field("value", 0, 32, ""),)),
    Register("counters.stream12.resets", 0x594, False, "Connections that were broken.", (Field("value", 0, 32, ""),)),
    Register(
        "counters.stream12.unacceptable", 0x598, False, "Segments with a sequence number or an ACK outside the windows.", (Field("value", 0, 32, ""),)
    ),
    Register("counters.stream13.sent", 0x5A0, False, "Segments with data, with those that went again.", (Field("value", 0, 32, ""),)),
    Register("counters.stream13.retransmitted", 0x5A4, False, "Segments that went again.", (Field("value", 0, 32, ""),)),
    Register("counters.stream13.fast_retransmissions", 0x5A8, False, "Recoveries that duplicate ACKs began.", (Field("value", 0, 32, ""),)),
    Register("counters.stream13.timeouts", 0x5AC, False, "Recoveries that the retransmission timer began.", (Field("value", 0, 32, ""),)),
    Register("counters.stream13.probes", 0x5B0, False, "Probes of a closed window.", (Field("value", 0, 32, ""),)),
    Register("counters.stream13.resets", 0x5B4, False, "Connections that were broken.", (Field("value", 0, 32, ""),)),
    Register(
        "counters.stream13.unacceptable", 0x5B8, False, "Segments with a sequence number or an ACK outside the windows.", (Field("value", 0, 32, ""),)
    ),
    Register("counters.stream14.sent", 0x5C0, False, "Segments with data, with those that went again.", (Field("value", 0, 32, ""),)),
    Register("counters.stream14.retransmitted", 0x5C4, False, "Segments that went again.", (Field("value", 0, 32, ""),)),
    Register("counters.stream14.fast_retransmissions", 0x5C8, False, "Recoveries that duplicate ACKs began.", (Field("value", 0, 32, ""),)),
    Register("counters.stream14.timeouts", 0x5CC, False, "Recoveries that the retransmission timer began.", (Field("value", 0, 32, ""),)),
    Register("counters.stream14.probes", 0x5D0, False, "Probes of a closed window.", (Field("value", 0, 32, ""),)),
    Register("counters.stream14.resets", 0x5D4, False, "Connections that were broken.", (Field("value", 0, 32, ""),)),
    Register(
        "counters.stream14.unacceptable", 0x5D8, False, "Segments with a sequence number or an ACK outside the windows.", (Field("value", 0, 32, ""),)
    ),
    Register("counters.stream15.sent", 0x5E0, False, "Segments with data, with those that went again.", (Field("value", 0, 32, ""),)),
    Register("counters.stream15.retransmitted", 0x5E4, False, "Segments that went again.", (Field("value", 0, 32, ""),)),
    Register("counters.stream15.fast_retransmissions", 0x5E8, False, "Recoveries that duplicate ACKs began.", (Field("value", 0, 32, ""),)),
    Register("counters.stream15.timeouts", 0x5EC, False, "Recoveries that the retransmission timer began.", (Field("value", 0, 32, ""),)),
    Register("counters.stream15.probes", 0x5F0, False, "Probes of a closed window.", (Field("value", 0, 32, ""),)),
    Register("counters.stream15.resets", 0x5F4, False, "Connections that were broken.", (Field("value", 0, 32, ""),)),
    Register(
        "counters.stream15.unacceptable", 0x5F8, False, "Segments with a sequence number or an ACK outside the windows.", (Field("value", 0, 32, ""),)
    ),
    Register("counters.mac.rx_error", 0x600, False, "Frames that the PHY said are wrong.", (Field("value", 0, 32, ""),)),
    Register("counters.mac.rx_runt", 0x604, False, "Frames shorter than 64 bytes.", (Field("value", 0, 32, ""),)),
    Register("counters.mac.rx_oversize", 0x608, False, "Frames longer than the MAC takes.", (Field("value", 0, 32, ""),)),
    Register("counters.mac.rx_bad_fcs", 0x60C, False, "Frames with a wrong frame check sequence.", (Field("value", 0, 32, ""),)),
    Register("counters.drop_destination", 0x610, False, "Frames to another address.", (Field("value", 0, 32, ""),)),
    Register("counters.drop_protocol", 0x614, False, "Frames of another protocol.", (Field("value", 0, 32, ""),)),
    Register("counters.drop_fragment", 0x618, False, "Fragments of packets.", (Field("value", 0, 32, ""),)),
    Register("counters.drop_checksum", 0x61C, False, "Packets with a wrong checksum.", (Field("value", 0, 32, ""),)),
    Register("counters.drop_short", 0x620, False, "Frames that end before their fields.", (Field("value", 0, 32, ""),)),
    Register("counters.drop_full", 0x624, False, "Frames that found the memory for answers full.", (Field("value", 0, 32, ""),)),
)

UDP = (
    Register(
        "version",
        0x000,
        False,
        "Core and version: a byte each for the core, major, minor and patch (link_pkg::STATUS_VERSION).",
        (Field("value", 0, 32, ""),),
    ),
    Register(
        "control",
        0x004,
        True,
        "",
        (
            Field("enable", 0, 1, "The core works; 0: it is in reset."),
            Field("checksum", 1, 1, "Datagrams have a checksum."),
            Field("ptp_role", 2, 2, "Role of PTP: 0 off, 1 slave, 2 master, 3 by the best master clock algorithm."),
            Field("start", 8, 8, "A bit for each stream: it starts at once."),
        ),
    ),
    Register(
        "status",
        0x008,
        False,
        "",
        (
            Field("path", 0, 8, "A bit for each stream: the MAC address of its next hop is known."),
            Field("active", 8, 8, "A bit for each stream: a run is under way."),
            Field("enabled", 16, 8, "A bit for each stream: it is enabled."),
            Field("ptp_locked", 24, 1, "The clock follows a PTP master."),
        ),
    ),
    Register("mac_low", 0x010, True, "MAC address of the core, its last four bytes.", (Field("value", 0, 32, ""),)),
    Register("mac_high", 0x014, True, "MAC address of the core, its first two bytes.", (Field("value", 0, 16, ""),)),
    Register("address", 0x018, True, "IPv4 address of the core.", (Field("value", 0, 32, ""),)),
    Register("mask", 0x01C, True, "Mask of its network.", (Field("value", 0, 32, ""),)),
    Register("gateway", 0x020, True, "Router to other networks.", (Field("value", 0, 32, ""),)),
    Register("peer", 0x024, True, "IPv4 address of the receiver.", (Field("value", 0, 32, ""),)),
    Register(
        "ports",
        0x028,
        True,
        "",
        (
            Field("local_port", 0, 16, "UDP port of the core; that of stream i is greater by i."),
            Field("peer_port", 16, 16, "UDP port of the receiver; that of stream i is greater by i."),
        ),
    ),
    Register("payload", 0x02C, True, "", (Field("value", 0, 14, "Bytes of a datagram, a multiple of 4 from 16 to the parameter PAYLOAD_MAX."),)),
    Register("peer_mac_low", 0x030, True, "MAC address of the receiver, its last four bytes; used only without ARP.", (Field("value", 0, 32, ""),)),
    Register("peer_mac_high", 0x034, True, "MAC address of the receiver, its first two bytes.", (Field("value", 0, 16, ""),)),
    Register("counters.datagrams", 0x100, False, "Datagrams of the streams.", (Field("value", 0, 32, ""),)),
    Register("counters.unresolved", 0x104, False, "Answers to an address whose MAC address is not known.", (Field("value", 0, 32, ""),)),
    Register("counters.drop_destination", 0x108, False, "Frames to another address.", (Field("value", 0, 32, ""),)),
    Register("counters.drop_ethertype", 0x10C, False, "Frames of another protocol.", (Field("value", 0, 32, ""),)),
    Register("counters.drop_ethernet_short", 0x110, False, "Frames that end before their header.", (Field("value", 0, 32, ""),)),
    Register("counters.drop_arp", 0x114, False, "ARP messages that are not for Ethernet and IPv4.", (Field("value", 0, 32, ""),)),
    Register("counters.drop_arp_full", 0x118, False, "ARP messages that came before the last one was answered.", (Field("value", 0, 32, ""),)),
    Register("counters.drop_ip_short", 0x11C, False, "Packets shorter than their header says.", (Field("value", 0, 32, ""),)),
    Register("counters.drop_ip_version", 0x120, False, "Packets of another version or with options.", (Field("value", 0, 32, ""),)),
    Register("counters.drop_ip_checksum", 0x124, False, "Packets with a wrong checksum of the header.", (Field("value", 0, 32, ""),)),
    Register("counters.drop_ip_destination", 0x128, False, "Packets to another IPv4 address.", (Field("value", 0, 32, ""),)),
    Register("counters.drop_fragment", 0x12C, False, "Fragments of packets.", (Field("value", 0, 32, ""),)),
    Register("counters.drop_ip_protocol", 0x130, False, "Packets of another protocol.", (Field("value", 0, 32, ""),)),
    Register("counters.drop_icmp_type", 0x134, False, "ICMP messages other than echo requests.", (Field("value", 0, 32, ""),)),
    Register("counters.drop_icmp_checksum", 0x138, False, "ICMP messages with a wrong checksum.", (Field("value", 0, 32, ""),)),
    Register(
        "counters.drop_icmp_full",
        0x13C,
        False,
        "Echo requests that came before the last one was answered, or are too long.",
        (Field("value", 0, 32, ""),),
    ),
    Register("counters.drop_udp_short", 0x140, False, "Datagrams shorter than their header says.", (Field("value", 0, 32, ""),)),
    Register("counters.drop_udp_checksum", 0x144, False, "Datagrams with a wrong checksum.", (Field("value", 0, 32, ""),)),
    Register("counters.drop_port", 0x148, False, "Datagrams to another port.", (Field("value", 0, 32, ""),)),
    Register("counters.drop_control_short", 0x14C, False, "Slow control requests that are too short.", (Field("value", 0, 32, ""),)),
    Register(
        "counters.drop_control_full", 0x150, False, "Slow control requests that came before the last one was answered.", (Field("value", 0, 32, ""),)
    ),
    Register("counters.ptp_offsets", 0x154, False, "Measurements of the clock's offset.", (Field("value", 0, 32, ""),)),
    Register("counters.drop_ptp_malformed", 0x158, False, "PTP messages that are too short or of another version.", (Field("value", 0, 32, ""),)),
    Register(
        "counters.drop_ptp_ignored", 0x15C, False, "PTP messages of another domain or master, or not used in this role.", (Field("value", 0, 32, ""),)
    ),
    Register("counters.drop_ptp_full", 0x160, False, "PTP messages that came before the last one was handled.", (Field("value", 0, 32, ""),)),
    Register("counters.mac.rx_error", 0x180, False, "Frames that the PHY said are wrong.", (Field("value", 0, 32, ""),)),
    Register("counters.mac.rx_runt", 0x184, False, "Frames shorter than 64 bytes.", (Field("value", 0, 32, ""),)),
    Register("counters.mac.rx_oversize", 0x188, False, "Frames longer than the MAC takes.", (Field("value", 0, 32, ""),)),
    Register("counters.mac.rx_bad_fcs", 0x18C, False, "Frames with a wrong frame check sequence.", (Field("value", 0, 32, ""),)),
)

FADC = (
    Register(
        "version",
        0x000,
        False,
        "Core and version: a byte each for the core, major, minor and patch (link_pkg::STATUS_VERSION).",
        (Field("value", 0, 32, ""),),
    ),
    Register(
        "control",
        0x004,
        True,
        "",
        (
            Field("enable", 0, 1, "Windows are made; 0 ends the run."),
            Field("start", 1, 1, "A run begins when 1 is written."),
            Field("follow", 2, 1, "Windows follow the time of PTP, with the parameter FOLLOW."),
        ),
    ),
    Register(
        "status",
        0x008,
        False,
        "",
        (
            Field("running", 0, 4, "A bit for each link: a run is under way."),
            Field("idle", 4, 4, "A bit for each link: no data is in it."),
            Field("bad_window", 8, 1, "window_ticks is not one of those that are allowed."),
        ),
    ),
    Register("source_id", 0x010, True, "Number of the first link's source.", (Field("value", 0, 32, ""),)),
    Register("record_low", 0x014, True, "Number of the first window, lower half.", (Field("value", 0, 32, ""),)),
    Register("record_high", 0x018, True, "Number of the first window, upper half.", (Field("value", 0, 32, ""),)),
    Register("seconds_low", 0x01C, True, "Time of the first window in seconds, lower half.", (Field("value", 0, 32, ""),)),
    Register("seconds_high", 0x020, True, "Time of the first window in seconds, upper half.", (Field("value", 0, 32, ""),)),
    Register("nanoseconds", 0x024, True, "Time of the first window, nanoseconds of the second.", (Field("value", 0, 32, ""),)),
    Register("window_ticks", 0x028, True, "", (Field("value", 0, 18, "Length of a window in ticks of 4 ns."),)),
    Register("timeout", 0x02C, True, "Clocks that the builder waits for a module.", (Field("value", 0, 32, ""),)),
    Register("keepalive", 0x030, True, "", (Field("value", 0, 24, "Empty windows, at most, between two messages; 0: every window has a message."),)),
    Register("limit", 0x034, True, "Windows of a run; 0: no limit.", (Field("value", 0, 32, ""),)),
    Register("modules", 0x038, True, "", (Field("enable", 0, 16, "A bit for each module that takes part."),)),
    Register(
        "configuration",
        0x03C,
        True,
        "Writes an item of a channel (docs/fadc.md).",
        (
            Field("value", 0, 16, "The value."),
            Field("channel", 16, 4, "The channel."),
            Field("item", 20, 2, "Which item."),
            Field("which", 22, 4, "The module."),
            Field("every", 26, 1, "All modules."),
            Field("apply", 31, 1, "1: the item is written."),
        ),
    ),
    Register("counters.link0.hits", 0x100, False, "Hits in messages.", (Field("value", 0, 32, ""),)),
    Register("counters.link0.pileups", 0x104, False, "Pulses that came before the last one of their channel was over.", (Field("value", 0, 32, ""),)),
    Register("counters.link0.losses", 0x108, False, "Hits that found their queue full.", (Field("value", 0, 32, ""),)),
    Register("counters.link0.late", 0x10C, False, "Hits that came after their window was closed.", (Field("value", 0, 32, ""),)),
    Register("counters.link0.over", 0x110, False, "Hits beyond what a window can have.", (Field("value", 0, 32, ""),)),
    Register("counters.link0.timeouts", 0x114, False, "Modules that did not end a window in time.", (Field("value", 0, 32, ""),)),
    Register("counters.link0.windows_lost", 0x118, False, "Windows that found the burst buffer full.", (Field("value", 0, 32, ""),)),
    Register("counters.link0.messages", 0x11C, False, "Messages.", (Field("value", 0, 32, ""),)),
    Register("counters.link0.most_used", 0x120, False, "Largest number of words that were in the burst buffer.", (Field("value", 0, 32, ""),)),
    Register("counters.link1.hits", 0x140, False, "Hits in messages.", (Field("value", 0, 32, ""),)),
    Register("counters.link1.pileups", 0x144, False, "Pulses that came before the last one of their channel was over.", (Field("value", 0, 32, ""),)),
    Register("counters.link1.losses", 0x148, False, "Hits that found their queue full.", (Field("value", 0, 32, ""),)),
    Register("counters.link1.late", 0x14C, False, "Hits that came after their window was closed.", (Field("value", 0, 32, ""),)),
    Register("counters.link1.over", 0x150, False, "Hits beyond what a window can have.", (Field("value", 0, 32, ""),)),
    Register("counters.link1.timeouts", 0x154, False, "Modules that did not end a window in time.", (Field("value", 0, 32, ""),)),
    Register("counters.link1.windows_lost", 0x158, False, "Windows that found the burst buffer full.", (Field("value", 0, 32, ""),)),
    Register("counters.link1.messages", 0x15C, False, "Messages.", (Field("value", 0, 32, ""),)),
    Register("counters.link1.most_used", 0x160, False, "Largest number of words that were in the burst buffer.", (Field("value", 0, 32, ""),)),
    Register("counters.link2.hits", 0x180, False, "Hits in messages.", (Field("value", 0, 32, ""),)),
    Register("counters.link2.pileups", 0x184, False, "Pulses that came before the last one of their channel was over.", (Field("value", 0, 32, ""),)),
    Register("counters.link2.losses", 0x188, False, "Hits that found their queue full.", (Field("value", 0, 32, ""),)),
    Register("counters.link2.late", 0x18C, False, "Hits that came after their window was closed.", (Field("value", 0, 32, ""),)),
    Register("counters.link2.over", 0x190, False, "Hits beyond what a window can have.", (Field("value", 0, 32, ""),)),
    Register("counters.link2.timeouts", 0x194, False, "Modules that did not end a window in time.", (Field("value", 0, 32, ""),)),
    Register("counters.link2.windows_lost", 0x198, False, "Windows that found the burst buffer full.", (Field("value", 0, 32, ""),)),
    Register("counters.link2.messages", 0x19C, False, "Messages.", (Field("value", 0, 32, ""),)),
    Register("counters.link2.most_used", 0x1A0, False, "Largest number of words that were in the burst buffer.", (Field("value", 0, 32, ""),)),
    Register("counters.link3.hits", 0x1C0, False, "Hits in messages.", (Field("value", 0, 32, ""),)),
    Register("counters.link3.pileups", 0x1C4, False, "Pulses that came before the last one of their channel was over.", (Field("value", 0, 32, ""),)),
    Register("counters.link3.losses", 0x1C8, False, "Hits that found their queue full.", (Field("value", 0, 32, ""),)),
    Register("counters.link3.late", 0x1CC, False, "Hits that came after their window was closed.", (Field("value", 0, 32, ""),)),
    Register("counters.link3.over", 0x1D0, False, "Hits beyond what a window can have.", (Field("value", 0, 32, ""),)),
    Register("counters.link3.timeouts", 0x1D4, False, "Modules that did not end a window in time.", (Field("value", 0, 32, ""),)),
    Register("counters.link3.windows_lost", 0x1D8, False, "Windows that found the burst buffer full.", (Field("value", 0, 32, ""),)),
    Register("counters.link3.messages", 0x1DC, False, "Messages.", (Field("value", 0, 32, ""),)),
    Register("counters.link3.most_used", 0x1E0, False, "Largest number of words that were in the burst buffer.", (Field("value", 0, 32, ""),)),
)

PTP = (
    Register(
        "control",
        0x004,
        True,
        "",
        (
            Field("enable", 0, 1, "The port works; 0: it is in reset, and frames pass."),
            Field("role", 2, 2, "Role: 0 off, 1 slave, 2 master, 3 by the best master clock algorithm."),
        ),
    ),
    Register("status", 0x008, False, "", (Field("locked", 0, 1, "The clock follows a master."),)),
    Register("mac_low", 0x010, True, "MAC address of the core, its last four bytes.", (Field("value", 0, 32, ""),)),
    Register("mac_high", 0x014, True, "MAC address of the core, its first two bytes.", (Field("value", 0, 16, ""),)),
    Register("port.role", 0x080, True, "Role, as control.role at reset.", (Field("value", 0, 32, ""),)),
    Register("port.locked", 0x084, True, "1: the clock follows a master.", (Field("value", 0, 32, ""),)),
    Register("port.offset", 0x088, True, "Offset from the master in ns, signed.", (Field("value", 0, 32, ""),)),
    Register("port.delay", 0x08C, True, "Delay of the path in ns, signed.", (Field("value", 0, 32, ""),)),
    Register("port.rate", 0x090, True, "Rate of the clock in 2^-32 ns a clock, signed.", (Field("value", 0, 32, ""),)),
    Register("port.seconds", 0x094, True, "Seconds of the time; a read keeps the nanoseconds.", (Field("value", 0, 32, ""),)),
    Register("port.nanoseconds", 0x098, True, "Nanoseconds of the time that was kept.", (Field("value", 0, 32, ""),)),
    Register("port.sync_clocks", 0x09C, True, "Clocks between two Sync of a master.", (Field("value", 0, 32, ""),)),
    Register("port.sync_log", 0x0A0, True, "Logarithm of the seconds between two Sync, as it is told.", (Field("value", 0, 32, ""),)),
    Register("port.state", 0x0A4, True, "portState (IEEE 1588-2008, table 8).", (Field("value", 0, 32, ""),)),
    Register("port.domain", 0x0A8, True, "domainNumber.", (Field("value", 0, 32, ""),)),
    Register("port.transport", 0x0AC, True, "0 UDP, 1 Ethernet.", (Field("value", 0, 32, ""),)),
    Register("port.mechanism", 0x0B0, True, "Delay mechanism: 1 end to end, 2 peer to peer.", (Field("value", 0, 32, ""),)),
    Register("port.priorities", 0x0B4, True, "priority1 and priority2, 8 bits each.", (Field("value", 0, 32, ""),)),
    Register("port.utc", 0x0B8, True, "timeSource, flags, currentUtcOffset (8, 8, 16 bits).", (Field("value", 0, 32, ""),)),
    Register("port.quality", 0x0BC, True, "clockClass, clockAccuracy, offsetScaledLogVariance (8, 8, 16 bits).", (Field("value", 0, 32, ""),)),
    Register("port.utc_used", 0x0C0, True, "The same as utc, of the master.", (Field("value", 0, 32, ""),)),
    Register("port.steps", 0x0C4, True, "stepsRemoved from the grandmaster.", (Field("value", 0, 32, ""),)),
)

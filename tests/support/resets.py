"""RESET of a computer that is not the one of the test."""

import struct

from support.netns import FEBS
from support.relay import C1, C

OTHER = "02:00:00:00:00:99"


def reset(protocol):
    """The frame, to the first board."""
    feb, other = (bytes.fromhex(mac.replace(":", "")) for mac in (FEBS[0], OTHER))
    kind = struct.pack(">HHHI", C["VERSION"], C["CMD_RESET"], 0, 0) if protocol == "fade10g" else struct.pack(">H", C1["TYPE_RESET"])
    return (feb + other + b"\xfa\xde" + kind).ljust(78, b"\xa5")


def send_reset(bench, protocol):
    with bench.raw(bench.pc_ns, "eth0") as raw:
        raw.send(reset(protocol))

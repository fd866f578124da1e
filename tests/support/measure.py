"""What benches and tests measure: acknowledgements on the wire, CPU time, how fair shares are."""

import json
import struct

from scapy.utils import RawPcapReader

from support.paths import VECTORS

BLOCK_MARK = json.loads((VECTORS / "fade10g.json").read_text())["constants"]["BLOCK_MARK"].to_bytes(2, "big")


def busy(stat):
    """CPU seconds that were not idle, from the first line of /proc/stat; Linux counts in hundredths there."""
    user, nice, system, _idle, _iowait, irq, softirq, *_ = map(int, stat.split()[1:])
    return (user + nice + system + irq + softirq) / 100


def capture(bench, interface, file):
    """Starts a capture of the heads of frames in the board's namespace; a signal ends it."""
    words = ["dumpcap", "-q", "-P", "-B", "256", "-i", interface, "-s", "100", "-w", file]
    return bench.start(bench.board_ns, *words)


def latencies(capture, port):
    """Seconds from each data frame to the first ACK that covers it: of FADE by FEB, and of TCP towards `port`."""
    waiting, segments, fade, tcp = {}, [], {}, []
    first = 0
    for frame, meta in RawPcapReader(str(capture)):
        now = meta.sec + meta.usec * 1e-6
        if frame[12:14] == b"\xfa\xde":
            kind, packet = struct.unpack_from(">H2xI", frame, 16)
            if kind in (0xA5A5, 0xA5A6):
                waiting.setdefault((frame[6:12], packet), now)
            elif kind == 3:
                bits = int.from_bytes(frame[32:40], "big") if frame[28:30] == BLOCK_MARK else 0
                for confirmed in (packet, *(packet - 1 - i for i in range(64) if bits >> i & 1)):
                    sent = waiting.pop((frame[0:6], confirmed & 0xFFFFFFFF), None)
                    if sent is not None:
                        fade.setdefault(frame[0:6].hex(":"), []).append(now - sent)
        elif frame[12:14] == b"\x08\x00" and frame[23] == 6:
            header = 14 + 4 * (frame[14] & 15)
            source, _, sequence, ack = struct.unpack_from(">HHII", frame, header)
            length = struct.unpack_from(">H", frame, 16)[0] - (header - 14) - 4 * (frame[header + 12] >> 4)
            if source != port and length > 0:
                segments.append((sequence + length & 0xFFFFFFFF, now))
            elif source == port:
                while first < len(segments) and (ack - segments[first][0] & 0xFFFFFFFF) < 1 << 31:
                    tcp.append(now - segments[first][1])
                    first += 1
    return fade, tcp


def jain(rates):
    """1: equal shares; 1/n: one has all (Jain, Chiu and Hawe 1984)."""
    return sum(rates) ** 2 / (len(rates) * sum(rate * rate for rate in rates))

"""PTP in simulated time: message by message against a peer made with scapy, and a master and a slave on one cable."""

import json
import struct
import subprocess

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from support.block import SEED, package_constants
from support.board import US
from support.ip_board import PC, PC_MAC
from support.paths import TOP
from support.udp_board import PHYS, C, UdpBoard

P = package_constants("udp/ptp_pkg.sv") | {"SYNC": 0, "DELAY_REQ": 1, "FOLLOW_UP": 8, "DELAY_RESP": 9, "ANNOUNCE": 11}
GROUP, GROUP_MAC = "224.0.1.129", "01:00:5e:00:01:81"
SLAVE, MASTER = 1, 2
INTERVAL = 976.56  # microseconds, of the simulated board
IDENTITY = bytes.fromhex("02fadefffe0000010001")
PEER = bytes.fromhex("02fadefffe0000f00001")
SECOND = 10**9


def message(kind, sequence, stamp=(0, 0), requesting=None, source=PEER, flags=0, correction=0, domain=0, version=2, length=None,
            log=-10):  # fmt: skip
    body = struct.pack(">HII", stamp[0] >> 32, stamp[0] % 2**32, stamp[1])
    if kind == P["ANNOUNCE"]:
        body += struct.pack(">HBBIB8sHB", 0, 0, 128, 0xF8FEFFFF, 128, source[:8], 0, 0xA0)
    if requesting is not None:
        body += requesting
    length = 34 + len(body) if length is None else length
    head = struct.pack(">BBHBBHqI10sHBb", kind, version, length, domain, 0, flags, correction << 16, 0, source, sequence, 0, log)
    return head + body


class PtpBoard(UdpBoard):
    def __init__(self, phy, role):
        super().__init__(phy, stopped=True, ptp=role)

    def tell(self, payload, event=False):
        port = P["PORT_EVENT"] if event else P["PORT_GENERAL"]
        packet = Ether(src=PC_MAC, dst=GROUP_MAC) / IP(src=PC, dst=GROUP) / UDP(sport=port, dport=port) / payload
        self.send(bytes(packet))

    def hear(self, timeout=3 * INTERVAL * US):
        """The next message: (kind, sequence, stamp, payload); when its first byte behind the delimiter was on the wire."""
        frame = self.expect(UDP, timeout)
        payload = bytes(frame[UDP].payload)[: frame[UDP].len - 8]
        kind, version, length = payload[0] & 15, payload[1] & 15, int.from_bytes(payload[2:4], "big")
        event = kind in (P["SYNC"], P["DELAY_REQ"])
        assert version == 2 and length == len(payload) and payload[4] == 0 and payload[20:30] == IDENTITY
        assert frame[UDP].sport == frame[UDP].dport == (P["PORT_EVENT"] if event else P["PORT_GENERAL"])
        assert (frame.dst, frame[IP].dst) == (GROUP_MAC, GROUP)
        seconds = int.from_bytes(payload[34:40], "big")
        stamp = seconds * SECOND + int.from_bytes(payload[40:44], "big")
        # `at` is the end of the frame: of GMII the clock behind it, of XGMII the start of its last word.
        size = len(payload) + 42 + 4
        left = frame.at - (size * 8000 if self.phy == "gmii" else size // 8 * 6400)
        return kind, int.from_bytes(payload[30:32], "big"), stamp, payload, left / 1000

    def pair(self, sequence, seconds, ns, **fields):
        """Sync and Follow_Up with the time of its sending."""
        self.tell(message(P["SYNC"], sequence, flags=P["FLAG_TWO_STEP"]), event=True)
        self.tell(message(P["FOLLOW_UP"], sequence, (seconds, ns), **fields))


@pytest.mark.parametrize("phy", PHYS)
def test_a_master_speaks(phy):
    """Sync each interval, its Follow_Up with the time at which it left, Announce with each second one."""
    board = PtpBoard(phy, MASTER)
    kinds, left, told = [], {}, {}
    for _ in range(25):
        kind, sequence, stamp, payload, at = board.hear()
        kinds.append(kind)
        if kind == P["SYNC"]:
            assert payload[6:8] == b"\2\0" and payload[32] == 0 and payload[33] == 256 - 10 and stamp == 0
            left[sequence] = at
        elif kind == P["FOLLOW_UP"]:
            assert payload[32] == 2
            told[sequence] = stamp
        else:
            assert kind == P["ANNOUNCE"] and payload[33] == 256 - 9 and len(payload) == 64
            assert payload[44:] == struct.pack(">HBBIB8sHB", 0, 0, 128, 0xF8FEFFFF, 128, IDENTITY[:8], 0, 0xA0)
    assert kinds.count(P["ANNOUNCE"]) == -(-kinds.count(P["SYNC"]) // 2)
    assert list(told) == list(range(len(told))) and len(told) >= 9
    # One origin of time for all, and no jitter at all.
    errors = [told[n] - left[n] for n in told]
    assert max(errors) - min(errors) < 2, errors
    gaps = [told[n + 1] - told[n] for n in range(len(told) - 1)]
    assert all(abs(gap - 1000 * INTERVAL) < 100 for gap in gaps), gaps


@pytest.mark.parametrize("phy", PHYS)
def test_a_master_answers(phy):
    board = PtpBoard(phy, MASTER)
    for sequence in (7, 0xFFFF):
        board.tell(message(P["DELAY_REQ"], sequence), event=True)
        while (heard := board.hear())[0] != P["DELAY_RESP"]:
            pass
        assert heard[1] == sequence and heard[3][44:54] == PEER and heard[3][32] == 3 and 0 < heard[2] < SECOND


@pytest.mark.parametrize("phy", PHYS)
def test_a_slave_asks_its_master_and_takes_its_time(phy):
    board = PtpBoard(phy, SLAVE).introduce()
    board.pair(1, 1_800_000_000, 5)
    board.silent(100)  # nobody has announced itself
    board.tell(message(P["ANNOUNCE"], 0))
    base = 1_800_000_000 * SECOND
    begin = board.now / 1000
    for sequence in range(1, 30):
        # The master's time is the simulation's.
        now = base + round(board.now / 1000 - begin)
        board.pair(sequence, now // SECOND, now % SECOND)
        kind, number, _, payload, _ = board.hear(300 * US)
        assert (kind, number, payload[33]) == (P["DELAY_REQ"], sequence, 0x7F)
        now = base + round(board.now / 1000 - begin)
        board.tell(message(P["DELAY_RESP"], number, (now // SECOND, now % SECOND), requesting=IDENTITY))
        board.silent(INTERVAL)
    assert board.read(C["REGISTER_PTP_LOCKED"]) == 1
    seconds = board.read(C["REGISTER_PTP_SECONDS"])
    assert seconds == 1_800_000_000
    assert abs((board.read(C["REGISTER_PTP_OFFSET"]) + 2**31) % 2**32 - 2**31) < 200


def test_what_is_not_for_this_clock_is_counted():
    board = PtpBoard("gmii", SLAVE).introduce()
    board.tell(message(P["ANNOUNCE"], 0))
    other = bytes.fromhex("02fadefffe0000ff0001")
    ignored = [message(P["ANNOUNCE"], 1, source=other), message(P["SYNC"], 1, source=other, flags=0x200),
               message(P["FOLLOW_UP"], 9), message(P["DELAY_RESP"], 1, requesting=other), message(P["DELAY_REQ"], 1),
               message(P["ANNOUNCE"], 2, domain=4), message(13, 1)]  # fmt: skip
    malformed = [message(P["SYNC"], 1, version=1), message(P["SYNC"], 1, length=43), message(P["SYNC"], 1, length=60),
                 message(P["DELAY_RESP"], 1), b"\0\2\0\54"]  # fmt: skip
    for payload in ignored + malformed:
        board.tell(payload, event=True)
    board.silent(400)
    counters = board.counters()
    assert (counters["drop_ptp_ignored"], counters["drop_ptp_malformed"]) == (len(ignored), len(malformed))
    assert counters["ptp_offsets"] == 0


def test_a_step_in_one_message_and_corrections():
    """A one-step Sync carries its time itself; corrections are taken off."""
    board = PtpBoard("gmii", SLAVE).introduce()
    board.tell(message(P["ANNOUNCE"], 0))
    board.silent(20)
    offsets = []
    for sequence, correction in ((1, 0), (2, 0), (3, 700)):
        begin = board.now
        board.tell(message(P["SYNC"], sequence, (50, 1000 + sequence * 1_000_000), correction=correction), event=True)
        assert board.hear(100 * US)[0] == P["DELAY_REQ"]
        found = board.read(C["REGISTER_PTP_OFFSET"])
        offsets.append((found + 2**31) % 2**32 - 2**31)
        board.silent(1000 - (board.now - begin) / US)
    # The first one was stepped away; then the messages are a millisecond apart, and so is the time that they tell.
    assert abs(offsets[1]) < 500 and abs(offsets[2] - offsets[1] + 700) < 400, offsets


def test_another_master_takes_over():
    board = PtpBoard("gmii", SLAVE).introduce()
    other = bytes.fromhex("02fadefffe0000ff0001")
    board.tell(message(P["ANNOUNCE"], 0))
    board.pair(1, 5, 0)
    assert board.hear()[0] == P["DELAY_REQ"]
    board.tell(message(P["ANNOUNCE"], 0, source=other))
    board.silent(12 * INTERVAL)
    board.tell(message(P["ANNOUNCE"], 1, source=other))
    board.tell(message(P["SYNC"], 1, (9, 0), source=other), event=True)
    assert board.hear()[0] == P["DELAY_REQ"]


def test_without_a_role_the_ports_are_closed():
    board = PtpBoard("gmii", 0).introduce()
    board.tell(message(P["SYNC"], 1), event=True)
    board.silent(100)
    assert board.counters()["drop_ip_destination"] == 1


def pair(*options, limit=65, settle=45):
    words = [TOP / "build/sim/fadelink-sim", "--virtual", "--protocol", "udp", "--ptp-pair", "--seed", SEED,
             "--settle-ms", settle, "--limit-ms", limit, *options]  # fmt: skip
    result = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    return json.loads(result.stdout)


PERIOD = {"gmii": 8, "xgmii": 6.4}


@pytest.mark.parametrize("phy,ppm", [pytest.param("gmii", -100, marks=pytest.mark.long), ("gmii", 0), ("gmii", 100), ("xgmii", 100)])
def test_a_slave_holds_its_master(phy, ppm):
    """Inside a clock period; without an error of the oscillator a constant under 8 ns, and no deviation but the reading's.

    A reading is up to a period old, of both clocks: uniform, they deviate by period / sqrt(6).
    """
    found = pair("--phy", phy, "--slave-ppm", ppm, "--rtt", 2)
    assert found["locked"] and abs(found["offset"]["mean"]) < PERIOD[phy]
    assert found["offset"]["deviation"] < PERIOD[phy]
    assert abs(found["rate_ppm"] + found["slave_ppm"]) < 10
    if ppm == 0:
        assert abs(found["own_offset"]["mean"]) < 8 and found["own_offset"]["deviation"] < 2
    for board in found["boards"]:
        assert board["drop_ptp_malformed"] == 0 and board["drop_mac"] == 0


def test_the_path_delay_is_measured():
    """The cable, and what the frame takes from delimiter to end, for the simulated link hands over whole frames."""
    for microseconds, phy in ((2, "gmii"), (20, "xgmii")):
        found = pair("--phy", phy, "--rtt", microseconds, limit=50, settle=30)
        size = 44 + 42 + 4
        transfer = size * 8 + 56 if phy == "gmii" else size // 8 * 6.4
        least = 1000 * microseconds / 2 + transfer
        assert least - 4 <= found["path_delay"]["mean"] <= least + PERIOD[phy] + 4


def test_an_asymmetric_path_shows_as_half_the_difference():
    """No clock can see this; the figure proves that the offset is measured, not assumed."""
    found = pair("--phy", "gmii", "--down", "delay=3us", "--up", "delay=1us", limit=60, settle=40)
    assert abs(found["offset"]["mean"] + 1000) < 8


def test_lost_messages_do_no_harm():
    found = pair("--phy", "gmii", "--link", "delay=1us,loss=0.1", "--slave-ppm", 50)
    assert found["locked"] and abs(found["offset"]["mean"]) < 50

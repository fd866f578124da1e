"""The UDP/IP stack behind its MAC, frame by frame, against a peer made with scapy; time is simulated.

A millisecond of the simulated board's time-outs is a hundredth of one.
"""

import json
import re
import struct

import pytest
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.l2 import ARP, Ether
from support.block import SEED, rng
from support.board import US
from support.ip_board import BOARD, BOARD_MAC, PC, PC_MAC
from support.paths import TOP
from support.udp_board import BROADCAST, BYTE, GOOD, PHYS, PORT, RETRY, C, UdpBoard, be32, dropped_frames

VECTORS = json.loads((TOP / "tests/vectors/udp.json").read_text())


def test_constants_agree_with_the_hosts():
    shared = dict(VECTORS["constants"])
    assert shared.pop("PAYLOAD_MAX") == 8972 and shared == {name: value for name, value in C.items() if name != "COUNTERS"}


def test_counters_have_the_names_of_the_package():
    """The registers, the structure in RTL and what the simulator calls them are in the same order."""
    text = (TOP / "rtl/udp/udp_pkg.sv").read_text()
    network, events = (re.findall(r"(\w+);", body) for body in re.findall(r"struct packed \{(.*?)\}", text, re.S))
    names = [*events[: events.index("network")], *network, "datagrams"][::-1]
    assert [name for name in UdpBoard("gmii", 64).counters() if name != "path"] == [*names, "drop_mac"] and len(names) == C["COUNTERS"]


@pytest.mark.parametrize("phy", PHYS)
def test_shared_vectors(phy):
    """Requests of the shared vectors get the shared replies; the first datagram is the shared one."""
    board = UdpBoard(phy, payload=32, words=12, stopped=True).introduce()
    messages = {vector["name"]: bytes.fromhex(vector["hex"]) for vector in VECTORS["control"]}
    board.write(0, 0x12345678)
    for name in ("read", "write"):
        board.put(IP(src=PC, dst=BOARD) / UDP(sport=5001, dport=C["CONTROL_PORT"]) / messages[name])
        assert bytes(board.expect(UDP)[UDP].payload)[:16] == messages[f"{name}_reply"]
    datagrams = {vector["name"]: bytes.fromhex(vector["hex"]) for vector in VECTORS["stream"]}
    board.datagram()
    assert bytes(board.last[UDP].payload)[:32] == datagrams["first"]
    while not (found := board.datagram())[3]:
        pass
    assert found[0] == 4 and bytes(board.last[UDP].payload)[:8] == datagrams["end"]


@pytest.mark.parametrize("phy", PHYS)
@pytest.mark.parametrize("checksum", [False, True])
@pytest.mark.parametrize("payload", [16, 20, 24, 256, 1024, 1472, 8968, 8972])
def test_the_stream(phy, checksum, payload):
    board = UdpBoard(phy, payload, checksum).meet()
    full = (payload - 8) // 8
    for n in range(6):
        counter, words, run, flags = board.datagram()
        assert (counter, run, flags) == (n, 0, 0) and words == list(range(n * full, (n + 1) * full))
        assert (board.last[UDP].chksum != 0) == checksum


@pytest.mark.parametrize("payload", [16, 256, 512, 1024, 1472, 8972])
def test_frames_follow_each_other_with_the_exact_gap(payload):
    """1 Gb/s: preamble 8, Ethernet 14, IP and UDP 28, check sequence 4 and a gap of 12 bytes are all that is not payload."""
    board = UdpBoard("gmii", payload).meet()
    times = []
    for _ in range(12):
        board.datagram()
        times.append(board.last.at)
    wire = max(60, payload + 42) + 4 + 8 + 12
    assert {later - earlier for earlier, later in zip(times[2:], times[3:])} == {wire * 8000}


@pytest.mark.parametrize("payload", [16, 256, 257, 258, 512, 1024, 1472, 8972])
def test_frames_follow_each_other_at_10g(payload):
    """The MAC's deficit idle count makes the mean gap 12 bytes."""
    board = UdpBoard("xgmii", payload).meet()
    times = []
    for _ in range(40):
        board.datagram()
        times.append(board.last.at)
    wire = max(60, payload + 42) + 4 + 8 + 12
    # A frame is seen in the clock of its end, so a time is up to 8 bytes late; the gaps are up to 3 bytes short.
    for count, later in enumerate(times[4:]):
        assert abs((later - times[4]) / 800 - wire * count) < 8 + 3


@pytest.mark.parametrize("phy", PHYS)
def test_a_run_ends_with_its_count(phy):
    board = UdpBoard(phy, payload=256, words=100).meet()
    found = [board.datagram() for _ in range(4)]
    assert [len(words) for _, words, _, _ in found] == [31, 31, 31, 7]
    for _ in range(4):
        assert board.datagram() == (4, [], 0, C["FLAG_END"])
    board.silent(500)
    # Another one.
    assert board.write(C["REGISTER_ENABLE"], 0) == board.write(C["REGISTER_ENABLE"], 1) == C["STATUS_DONE"]
    counter, words, run, flags = board.datagram()
    assert (counter, words[0], run, flags) == (0, 0, 1, 0)
    assert (board.read(C["REGISTER_RUN"]), board.read(C["REGISTER_LAST"])) == (1, 4)


@pytest.mark.parametrize("phy", PHYS)
@pytest.mark.parametrize("block", [1, 30, 31, 32, 100])
def test_blocks_end_their_datagram(phy, block):
    board = UdpBoard(phy, payload=256, block=block, words=5 * block, checksum=True).meet()
    sizes, words = [], []
    while (found := board.datagram())[3] == 0:
        sizes.append(len(found[1]))
        words += found[1]
    assert words == list(range(5 * block))
    assert sizes == 5 * [*(31 for _ in range(block // 31)), *([block % 31] if block % 31 else [])]


def test_a_stopped_stream_ends_what_was_begun():
    board = UdpBoard(gap=300, payload=1024).meet()
    board.datagram()
    assert board.write(C["REGISTER_ENABLE"], 0) == C["STATUS_DONE"]
    words = 127
    counter = 0
    while (found := board.datagram())[3] == 0:
        counter += 1
        assert found[:2] == (counter, list(range(words, words + len(found[1]))))
        words += len(found[1])
    assert found[0] == counter + 1 and words % 127


@pytest.mark.parametrize("phy", PHYS)
def test_arp_requests_are_repeated(phy):
    board = UdpBoard(phy)
    times = [board.expect(ARP).at for _ in range(4)]
    assert all(abs(later - earlier - RETRY * US) < 30 * US for earlier, later in zip(times, times[1:]))
    assert board.counters()["path"] == 0
    board.put(ARP(op=2, hwsrc=PC_MAC, psrc=PC, hwdst=BOARD_MAC, pdst=BOARD))
    assert board.datagram()[0] == 0, "nothing was lost meanwhile"


def test_a_peer_that_moves_is_followed():
    """RFC 5227: an announcement changes what is in the cache, and only that."""
    board = UdpBoard(gap=200).meet()
    board.datagram()
    moved = "02:fa:de:00:00:f7"
    board.send(bytes(Ether(src=moved, dst=BROADCAST) / ARP(op=1, hwsrc=moved, psrc=PC, pdst=PC)))
    frames = [board.expect(UDP) for _ in range(4)]
    assert frames[-1].dst == moved
    before = board.counters()["drop_arp"]
    board.send(bytes(Ether(src=moved, dst=BROADCAST) / ARP(op=1, hwsrc=moved, psrc="10.9.0.9", pdst="10.9.0.9")))
    board.expect(UDP)
    assert board.counters()["drop_arp"] == before + 1


@pytest.mark.parametrize("phy", PHYS)
@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 18, 19, 100, 1471, 1472, 8972])
def test_echo(phy, size):
    board = UdpBoard(phy, stopped=True).introduce()
    payload = rng("echo", size).randbytes(size)
    for sequence in (1, 0xFFFF, 0xF7FF - size):
        board.put(IP(src=PC, dst=BOARD) / ICMP(type=8, id=7, seq=sequence & 0xFFFF) / payload)
        frame = board.expect(ICMP)
        reply = frame[ICMP]
        assert (reply.type, reply.code, reply.id, reply.seq) == (0, 0, 7, sequence & 0xFFFF) and frame.dst == PC_MAC
        assert (frame[IP].src, frame[IP].dst, frame[IP].len) == (BOARD, PC, 28 + size)
        assert bytes(reply.payload)[:size] == payload


@pytest.mark.parametrize("phy", PHYS)
def test_echo_while_the_stream_runs(phy):
    """Replies go between the datagrams; of requests back to back, those that find no room are counted."""
    board = UdpBoard(phy, payload=1024).meet()
    random = rng("pings")
    sent = {}
    for sequence in range(20):
        sent[sequence] = random.randbytes(random.randrange(1400))
        board.put(IP(src=PC, dst=BOARD) / ICMP(type=8, id=7, seq=sequence) / sent[sequence])
    answered, counter = [], 0
    while counter < 120:
        frame = board.receive(1000 * US)
        if ICMP in frame:
            answered.append(frame[ICMP].seq)
            assert bytes(frame[ICMP].payload)[: len(sent[answered[-1]])] == sent[answered[-1]]
        else:
            assert struct.unpack(">I", bytes(frame[UDP].payload)[:4])[0] == counter
            counter += 1
    assert answered and len(answered) + board.counters()["drop_icmp_full"] == 20


@pytest.mark.parametrize("phy", PHYS)
def test_slow_control(phy):
    board = UdpBoard(phy, stopped=True).introduce()
    assert board.read(C["REGISTER_IDENTITY"]) == C["IDENTITY"]
    assert board.write(0, 0x12345678) == 0 and board.read(0) == 0x12345678
    assert board.read(C["REGISTER_PEER_IP"]) == be32(PC) and board.read(C["REGISTER_PEER_PORT"]) == PORT
    assert board.read(C["REGISTER_PAYLOAD"]) == 1472 and board.read(C["REGISTER_ENABLE"]) == 0
    for address in (6, 77, C["REGISTER_IDENTITY"] + 99, C["REGISTER_COUNTERS"] + C["COUNTERS"]):
        assert board.control(C["CONTROL_READ"], address) == (C["STATUS_ADDRESS"], 0)
        assert board.write(address, 1) == C["STATUS_ADDRESS"]
    assert board.write(C["REGISTER_IDENTITY"], 1) == C["STATUS_ADDRESS"]
    for operation in (0, 3, 0x7F):
        assert board.control(operation, 0, 5)[0] == C["STATUS_OPERATION"]
    assert board.read(0) == 0x12345678
    for payload in (12, 15, 18, 8976, 70000):
        assert board.write(C["REGISTER_PAYLOAD"], payload) == C["STATUS_ADDRESS"]
    assert board.read(C["REGISTER_PAYLOAD"]) == 1472


@pytest.mark.parametrize("phy", PHYS)
def test_a_repeated_request_is_done_once(phy):
    """The accumulator adds what is written: a repetition answers the same, and adds nothing."""
    board = UdpBoard(phy, stopped=True).introduce()
    for _ in range(3):
        assert board.control(C["CONTROL_WRITE"], 1, 5, sequence=77) == (0, 5)
    assert board.read(1) == 5
    assert board.control(C["CONTROL_WRITE"], 1, 5, sequence=77) == (0, 5)
    assert board.read(1) == 10, "another one was between"
    board.control(C["CONTROL_WRITE"], 1, 1, sequence=9, port=5000)
    board.control(C["CONTROL_WRITE"], 1, 1, sequence=9, port=5001)
    assert board.read(1) == 12, "another client"


BEHIND = {
    "echo": IP(src=PC, dst=BOARD) / ICMP(type=8, id=7, seq=1) / b"abc",
    "datagram": IP(src="10.9.0.77", dst=BOARD) / UDP(sport=1, dport=1) / b"abc",
    "another protocol": IP(src="10.9.0.77", dst=BOARD) / TCP(sport=1, dport=1),
    "ARP": ARP(op=1, hwsrc=PC_MAC, psrc=PC, pdst=BOARD),
}


@pytest.mark.parametrize("behind", BEHIND)
@pytest.mark.parametrize("phy,tx,rx", [("gmii", 8000, 8001), ("gmii", 8001, 8000), ("xgmii", 6400, 6401), ("xgmii", 6401, 6400)])
def test_a_frame_directly_behind_a_request_changes_nothing_of_it(phy, behind, tx, rx):
    """The reply goes to where the request came from, and its repetition is known, whatever follows it on the line."""
    board = UdpBoard(phy, stopped=True, tx=tx, rx=rx).introduce()
    for sequence in range(6):
        for _ in range(2):
            assert board.control(C["CONTROL_WRITE"], 1, 5, sequence=sequence, behind=BEHIND[behind]) == (0, 5)
    assert board.read(1) == 6 * 5


def test_requests_without_a_checksum_are_taken():
    board = UdpBoard(stopped=True).introduce()
    assert board.control(C["CONTROL_WRITE"], 0, 9, chksum=0)[0] == 0 and board.read(0) == 9


@pytest.mark.parametrize("phy", PHYS)
def test_the_slow_control_sets_the_stream(phy):
    board = UdpBoard(phy, stopped=True).introduce()
    for register, value in [("PAYLOAD", 512), ("CHECKSUM", 1), ("PEER_PORT", 10000), ("PEER_IP", be32(PC)), ("ENABLE", 1)]:
        assert board.write(C[f"REGISTER_{register}"], value) == 0
    board.payload = 512
    assert board.datagram()[:2] == (0, list(range(63))) and board.last[UDP].chksum != 0
    assert board.write(C["REGISTER_PAYLOAD"], 1024) == C["STATUS_ADDRESS"], "not while it runs"
    assert board.read(C["REGISTER_COUNTERS"]) > 0


def test_to_a_group_and_through_a_gateway():
    board = UdpBoard(stopped=True).introduce()
    board.write(C["REGISTER_PEER_IP"], be32("239.1.130.3"))
    board.write(C["REGISTER_ENABLE"], 1)
    frame = board.expect(UDP)
    assert frame.dst == "01:00:5e:01:82:03" and frame[IP].dst == "239.1.130.3"
    board = UdpBoard(stopped=True).introduce()
    board.write(C["REGISTER_PEER_IP"], be32("10.9.0.255"))
    board.write(C["REGISTER_ENABLE"], 1)
    assert board.expect(UDP).dst == BROADCAST
    board = UdpBoard(stopped=True).introduce()
    board.write(C["REGISTER_PEER_IP"], be32("192.168.7.7"))
    board.write(C["REGISTER_ENABLE"], 1)
    assert board.expect(ARP)[ARP].pdst == "10.9.0.254"
    board.put(ARP(op=2, hwsrc="02:00:00:00:00:fe", psrc="10.9.0.254", hwdst=BOARD_MAC, pdst=BOARD))
    frame = board.expect(UDP)
    assert (frame.dst, frame[IP].dst) == ("02:00:00:00:00:fe", "192.168.7.7")


def test_a_reply_to_a_stranger_waits_for_nobody():
    """The stranger is asked for, its reply is dropped and counted; a repetition finds it known."""
    board = UdpBoard(stopped=True)
    board.put(IP(src=PC, dst=BOARD) / ICMP(type=8, id=7, seq=1) / b"x")
    assert board.expect(ARP)[ARP].pdst == PC
    assert board.counters()["unresolved"] == 1
    board.put(ARP(op=2, hwsrc=PC_MAC, psrc=PC, hwdst=BOARD_MAC, pdst=BOARD))
    board.put(IP(src=PC, dst=BOARD) / ICMP(type=8, id=7, seq=2) / b"x")
    assert board.expect(ICMP)[ICMP].seq == 2


@pytest.mark.parametrize("phy", PHYS)
def test_what_is_dropped_is_counted_under_its_reason(phy):
    board = UdpBoard(phy, stopped=True).introduce()
    frames = dropped_frames()
    before = board.counters()
    for frame in [frame for group in frames.values() for frame in group]:
        board.send(frame)
    board.send_raw(bytes(GOOD).ljust(60, b"\0") + b"\1\2\3\4")
    board.silent(200)
    after = board.counters()
    found = {name: after[name] - before[name] for name in after if after[name] != before[name]}
    assert found == {name: len(group) for name, group in frames.items()} | {"drop_mac": 1}
    assert board.read(0) == 0, "none of them was obeyed"
    board.send(bytes(GOOD))
    board.expect(UDP)
    assert board.read(0) == 1


@pytest.mark.parametrize("phy", PHYS)
def test_malformed_frames_at_the_full_rate_do_not_slow_the_stream(phy):
    """Back to back, and cut, lengthened or spoiled at random: the datagrams keep their distance, and each frame is counted once."""
    random = rng("malformed")
    board = UdpBoard(phy, 1472).meet()
    board.datagram()
    before = board.counters()
    groups, sent = [group for group in dropped_frames().values()], 0
    for _ in range(400):
        frame = bytearray(random.choice(random.choice(groups)))
        change = random.randrange(4)
        if change == 1:
            frame = frame[: random.randrange(14, len(frame))]
        elif change == 2:
            frame += random.randbytes(random.randrange(1, 200))
        elif change == 3 and frame[12:14] != b"\x08\x06":
            # An ARP message may become one that is right.
            frame[random.randrange(14, len(frame))] ^= 1 << random.randrange(8)
        board.send(bytes(frame))
        sent += 1
    gaps, at, answers = set(), None, 0
    while sum(board.counters()[name] - before[name] for name in before if name.startswith("drop")) + answers < sent:
        frame = board.receive(1000 * US)
        assert frame is not None, "a frame is neither counted nor answered"
        if UDP in frame and frame[UDP].dport == PORT:
            if at is not None:
                gaps.add(frame.at - at)
            at = frame.at
        else:
            answers += 1
            at = None
    full = (1472 + 42 + 4 + 8 + 12) * BYTE[phy]
    assert len(gaps) >= 1 and max(gaps) <= full + (0 if phy == "gmii" else 8 * BYTE[phy]), (gaps, full)


@pytest.mark.parametrize("phy,tx,rx", [("gmii", 8000, 8001), ("gmii", 8001, 8000), ("xgmii", 6400, 6401), ("gmii", 7993, 8007)])
def test_clocks_that_differ(phy, tx, rx):
    """A request and its answer across clock domains, whatever the phase."""
    board = UdpBoard(phy, stopped=True, tx=tx, rx=rx).introduce()
    random = rng("clocks")
    for sequence in range(10):
        data = random.randbytes(random.randrange(1, 8972))
        board.put(IP(src=PC, dst=BOARD) / ICMP(type=8, id=1, seq=sequence) / data)
        assert bytes(board.expect(ICMP)[ICMP].payload)[: len(data)] == data


def test_random_frames_change_nothing():
    """Frames of noise behind good headers, then a good request: FADELINK_SEED reproduces."""
    random = rng("noise", SEED)
    for phy in PHYS:
        board = UdpBoard(phy, stopped=True).introduce()
        for _ in range(150):
            packet = bytearray(bytes(Ether(src=PC_MAC, dst=BOARD_MAC) / IP(src=PC, dst=BOARD)
                                     / UDP(sport=5, dport=C["CONTROL_PORT"]) / random.randbytes(random.randrange(64))))  # fmt: skip
            for _ in range(random.randrange(1, 4)):
                packet[random.randrange(12, len(packet))] = random.randrange(256)
            board.send(bytes(packet[: random.randrange(14, len(packet) + 1)]))
        while board.receive(1000 * US) is not None:
            pass
        assert board.write(0, 3) == 0 and board.read(0) == 3

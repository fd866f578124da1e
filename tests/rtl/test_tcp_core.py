"""The TCP sender behind its MAC, segment by segment: what it does with each case of RFC 9293, 5681, 6298 and 7323."""

import pytest
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Raw
from support.block import SEED, rng
from support.board import US
from support.ip_board import BOARD, BOARD_MAC, PC, PC_MAC
from support.tcp_peer import INIT, ISS, MAX, MIN, PORT, RETRY, WORD, Peer, TcpBoard, fill, started


@pytest.mark.parametrize("phy", ["gmii", "xgmii"])
@pytest.mark.parametrize("mtu", [576, 1500, 9000])
def test_segments_fill_the_mtu(phy, mtu):
    peer = started(phy=phy, mtu=mtu, mss=9000, window=40000)
    flight = peer.window_full()
    most = (mtu - 40) // 8 * 8
    assert {len(segment.data) for segment in flight} == {most}
    assert 40000 - most < sum(len(segment.data) for segment in flight) <= 40000


def test_the_peers_mss_is_kept():
    peer = started(mss=1000)
    assert {len(segment.data) for segment in peer.window_full()} == {1000}


def test_without_an_mss_option_it_is_536():
    peer = started(mss=None)
    assert {len(segment.data) for segment in peer.window_full()} == {536}


def test_unknown_options_are_skipped():
    peer = Peer()
    peer.options = [("Timestamp", (1, 0)), ("SAckOK", b""), ("NOP", None), ("MSS", 800), ("NOP", None), ("WScale", 1)]
    peer.open()
    peer.window = 8000
    fill(peer)
    flight = peer.window_full()
    assert {len(segment.data) for segment in flight} == {800} and len(flight) == 20, "the window is doubled"


@pytest.mark.parametrize("scale,window", [(0, 32768), (3, 4096), (14, 2)])
def test_the_window_is_scaled(scale, window):
    peer = started(scale=scale, window=window, mss=1024)
    flight = sum(len(segment.data) for segment in peer.window_full())
    assert 32768 - 1024 < flight <= 32768 == window << scale


def test_the_buffer_bounds_the_flight():
    """A mebibyte, with a window of a gigabyte."""
    peer = started(scale=14, window=65535, mss=9000, mtu=9000)
    assert 2**20 - 8960 < sum(len(segment.data) for segment in peer.window_full()) <= 2**20


def test_nagle_one_small_segment_at_a_time():
    peer = Peer(gap=2000).open()
    first = peer.segment()
    assert len(first.data) == WORD
    peer.silent(100)
    peer.acked = peer.end(first)
    peer.reply()
    second = peer.segment()
    assert len(second.data) > WORD and second.flags.P
    peer.silent(20)


@pytest.mark.parametrize("phy", ["gmii", "xgmii"])
@pytest.mark.parametrize("block", [1, 7, 181, 182, 183, 364, 500])
def test_a_pushed_block_is_in_segments_of_its_own(phy, block):
    """181 words are a segment of 1448 bytes, 182 one of 1456; nothing waits for an answer (Nagle)."""
    peer = Peer(phy=phy, block=block, gap=20, window=40000).open()
    flight = peer.window_full()
    assert len(flight) > 3
    for segment in flight[:-1]:
        start = peer.place(segment) // WORD
        left = block - start % block
        assert len(segment.data) == WORD * min(left, 182)
        assert segment.flags.P or left > 182


def test_pushed_blocks_of_any_size_are_all_there():
    """Loss makes the board go back, where it does not know the ends of blocks any more: the words are the same."""
    peer = Peer(block=3, words=5000, window=3000).open()
    random = rng("blocks")
    while (place := (peer.acked - peer.first) % 2**32) < 5000 * WORD:
        segment = peer.segment(timeout=MAX)
        if random.random() < 0.05:
            continue
        if peer.place(segment) <= place:
            peer.acked = max(peer.acked, peer.end(segment))
        peer.reply()
    assert peer.status()["retransmitted"] > 0


def test_silly_windows_are_not_used():
    """Less than a segment and less than half of the largest window: the board waits."""
    peer = started(window=6000)
    flight = peer.window_full()
    assert sum(len(segment.data) for segment in flight) == 4 * 1456
    peer.acked = peer.end(flight[-1])
    peer.reply(window=500)
    peer.silent(100)
    peer.reply(window=3000)
    assert len(peer.segment().data) == 1456


def test_a_lost_segment_goes_again_after_three_duplicate_acks():
    peer = started(window=30000)
    flight = peer.window_full()
    for n in range(3):
        peer.reply()
        if n < 2:
            peer.silent(5)
    again = peer.segment()
    assert again.seq == flight[0].seq and len(again.data) == 1456
    # More duplicates change nothing.
    peer.reply()
    peer.reply()
    peer.silent(20)
    peer.acked = peer.end(flight[-1])
    peer.reply()
    assert peer.segment().seq == peer.end(flight[-1])
    assert peer.status()["early"] == 1


def test_a_partial_ack_sends_the_next_hole():
    """RFC 6582: two segments of a flight are lost."""
    peer = started(window=30000)
    flight = peer.window_full()
    for _ in range(3):
        peer.reply()
    assert peer.segment().seq == flight[0].seq
    peer.acked = flight[4].seq
    peer.reply()
    assert flight[4].seq in [segment.seq for segment in peer.window_full()]
    assert peer.status()["early"] == 1


def test_a_retransmission_that_is_lost_goes_again_after_two_round_trips():
    """Then, without an ACK, it is the time-out's turn."""
    peer = started(window=30000)
    flight = peer.window_full()
    for _ in range(3):
        peer.reply()
    sent = [peer.segment(timeout=3 * MIN) for _ in range(3)]
    assert {segment.seq for segment in sent} == {flight[0].seq}
    once, twice, late = (segment.at / US for segment in sent)
    assert twice - once < 0.9 * MIN <= late - twice
    assert (peer.status()["early"], peer.counters()["timeouts"]) == (1, 1)


def test_window_updates_are_no_duplicate_acks():
    peer = started(window=30000)
    peer.window_full()
    for n in range(5):
        peer.reply(window=30000 - 8 * n)
        peer.silent(3)


def test_the_timeout_doubles():
    peer = started(window=3000)
    flight = peer.window_full()
    times, before = [], flight[0].at
    for _ in range(5):
        again = peer.segment(timeout=MAX)
        assert again.seq == flight[0].seq
        rest = peer.window_full()
        times.append((again.at - before) / US)
        before = again.at
        assert len(rest) <= 2
    assert all(1.8 < later / earlier < 2.3 for earlier, later in zip(times[1:], times[2:])), times
    # It recovers, and nothing is missing.
    peer.acked = max(peer.end(segment) for segment in flight + rest)
    peer.reply()
    assert peer.segment().seq == peer.acked


def test_the_timeout_follows_the_round_trip():
    peer = started(window=2000)
    for _ in range(20):
        # Answers are late; at first every segment goes again meanwhile, and measures nothing (Karn).
        for frame in peer.frames(3000 * US):
            peer.acked = max(peer.acked, frame[TCP].seq + frame[IP].len - 40)
        peer.reply()
    assert 3000 < peer.status()["delay"] < 16000


def test_zero_window_probes():
    peer = started(window=2000)
    flight = peer.window_full()
    peer.acked = peer.end(flight[-1])
    peer.reply(window=0)
    times = []
    for _ in range(4):
        probe = peer.segment(timeout=MAX)
        assert probe.seq == peer.acked and len(probe.data) == WORD
        times.append(probe.at)
        peer.reply(window=0)
    gaps = [later - earlier for earlier, later in zip(times, times[1:])]
    assert all(1.7 < later / earlier < 2.4 for earlier, later in zip(gaps, gaps[1:])), gaps
    # The last word is taken after all, and the window opens.
    peer.acked += WORD
    peer.reply(window=20000)
    assert len(peer.segment().data) == 1456
    assert peer.counters()["probes"] >= 4 and peer.status()["early"] == 0


def test_a_window_that_shrinks():
    peer = started(window=20000)
    flight = peer.window_full()
    peer.acked = peer.end(flight[2])
    peer.reply(window=100)
    again = peer.segment(timeout=INIT)
    assert again.seq == peer.acked, "what was sent goes again by the time-out"
    peer.acked = peer.end(flight[-1])
    peer.reply(window=20000)
    peer.take_all(5000)


def test_an_ack_of_half_a_word():
    """Nobody's stack does so; the word is sent again whole."""
    peer = started(window=3000)
    flight = peer.window_full()
    peer.reply(ack=peer.acked + 3)
    again = peer.segment()
    assert again.seq == flight[0].seq and peer.place(again) % WORD == 0


@pytest.mark.parametrize("how", ["ahead", "old"])
def test_acks_that_cannot_be(how):
    peer = started(window=3000)
    flight = peer.window_full()
    if how == "ahead":
        peer.reply(ack=peer.end(flight[-1]) + 1)
        answer = peer.segment()
        assert answer.flags == "A" and not answer.data, "RFC 9293 3.10.7.4: an ACK, and nothing else"
        assert peer.counters()["unacceptable"] == 1
    else:
        peer.reply(ack=peer.acked - 8, window=60000)
        peer.silent(20)


def test_sequence_numbers_wrap():
    peer = started(first_sequence=2**11 - 1, window=60000, mtu=9000, mss=8960)
    assert peer.first == 2**32 - 2**21
    peer.take_all(2**18 + 1000)
    assert peer.acked % 2**32 < peer.first


@pytest.mark.parametrize("size", [0, 1, 7, 8, 100, 1472, 8972])
def test_echo(size):
    peer = started(window=3000)
    peer.window_full()
    payload = rng("echo", size).randbytes(size)
    peer.reply()  # right before it on the wire
    peer.put(IP(src=PC, dst=BOARD) / ICMP(type=8, id=7, seq=size) / payload)
    frame = peer.receive(100 * US)
    while frame is not None and ICMP not in frame:
        frame = peer.receive(100 * US)
    reply = frame[ICMP]
    assert (reply.type, reply.id, reply.seq) == (0, 7, size) and frame.dst == PC_MAC
    assert (frame[IP].src, frame[IP].dst) == (BOARD, PC)
    assert bytes(reply.payload)[:size] == payload


def test_one_echo_request_at_a_time():
    peer = started(window=3000)
    peer.window_full()
    for sequence in range(3):
        peer.put(IP(src=PC, dst=BOARD) / ICMP(type=8, id=7, seq=sequence) / bytes(1000))
    replies = [frame[ICMP].seq for frame in peer.frames(100 * US) if ICMP in frame]
    assert replies[0] == 0 and len(replies) + peer.counters()["drop_full"] == 3


def test_arp_requests_are_answered():
    board = TcpBoard()
    board.expect(ARP)
    board.send(bytes(Ether(src=PC_MAC, dst="ff:ff:ff:ff:ff:ff") / ARP(op=1, hwsrc=PC_MAC, psrc="10.9.0.77", pdst=BOARD)))
    frame = board.expect(ARP)
    assert frame.dst == PC_MAC and (frame[ARP].op, frame[ARP].psrc, frame[ARP].hwsrc) == (2, BOARD, BOARD_MAC)
    assert frame[ARP].pdst == "10.9.0.77"
    board.send(bytes(Ether(src=PC_MAC, dst="ff:ff:ff:ff:ff:ff") / ARP(op=1, hwsrc=PC_MAC, psrc=PC, pdst="10.9.0.3")))
    board.silent(50)


def test_arp_requests_are_repeated():
    board = TcpBoard()
    times = [board.expect(ARP, 2 * RETRY * US).at for _ in range(4)]
    assert all(abs(later - earlier - RETRY * US) < 30 * US for earlier, later in zip(times, times[1:]))
    assert board.counters()["path"] == 0


def test_what_is_dropped_is_counted_under_its_reason():
    peer = started(window=3000)
    peer.window_full()
    good = IP(src=PC, dst=BOARD) / TCP(sport=PORT, dport=peer.port, flags="A", seq=peer.sequence, ack=peer.acked)
    before = peer.counters()

    def spoiled(place):
        data = bytearray(bytes(Ether(src=PC_MAC, dst=BOARD_MAC) / good))
        data[place] ^= 0x10
        return bytes(data)

    frames = {
        "drop_checksum": [spoiled(14 + 8), spoiled(14 + 20 + 9)],
        "drop_protocol": [bytes(Ether(src=PC_MAC, dst=BOARD_MAC) / IP(src=PC, dst=BOARD) / UDP() / Raw(b"x" * 20)),
                          bytes(Ether(src=PC_MAC, dst=BOARD_MAC, type=0x86DD) / Raw(bytes(60))),
                          bytes(Ether(src=PC_MAC, dst=BOARD_MAC) / IP(src=PC, dst=BOARD, options=b"\1\1\1\0") / TCP())],
        "drop_fragment": [bytes(Ether(src=PC_MAC, dst=BOARD_MAC) / IP(src=PC, dst=BOARD, flags=f, frag=o) / TCP())
                          for f, o in (("MF", 0), (0, 3))],
        "drop_short": [bytes(Ether(src=PC_MAC, dst=BOARD_MAC) / IP(src=PC, dst=BOARD, len=300) / TCP()),
                       bytes(Ether(src=PC_MAC, dst=BOARD_MAC) / IP(src=PC, dst=BOARD) / TCP(dataofs=4)),
                       bytes(Ether(src=PC_MAC, dst=BOARD_MAC) / IP(src=PC, dst=BOARD) / TCP(dataofs=15))],
        "drop_destination": [bytes(Ether(src=PC_MAC, dst="02:00:00:00:00:09") / good),
                             bytes(Ether(src=PC_MAC, dst=BOARD_MAC) / IP(src=PC, dst="10.9.0.9") / TCP())],
        "drop_port": [bytes(Ether(src=PC_MAC, dst=BOARD_MAC) / IP(src=PC, dst=BOARD) / TCP(sport=PORT, dport=1, flags="A"))],
    }  # fmt: skip
    for frame in [frame for group in frames.values() for frame in group]:
        peer.send(frame)
    peer.silent(60)
    after = peer.counters()
    assert {name: after[name] - before[name] for name in frames} == {name: len(group) for name, group in frames.items()}


def test_streams_take_turns():
    board = TcpBoard(streams=4)
    board.expect(ARP)
    board.put(ARP(op=2, hwsrc=PC_MAC, psrc=PC, hwdst=BOARD_MAC, pdst=BOARD))
    ports = [board.expect(TCP)[TCP].sport for _ in range(4)]
    assert sorted(ports) == [0xC000, 0xC001, 0xC002, 0xC003]
    acked = {}
    for port in ports:
        board.put(IP(src=PC, dst=BOARD) / TCP(sport=PORT, dport=port, flags="SA", seq=ISS, ack=0, window=60000))
    counts = dict.fromkeys(ports, 0)
    for _ in range(1200):
        frame = board.expect(TCP)
        segment, size = frame[TCP], frame[IP].len - 40
        counts[segment.sport] += size
        acked[segment.sport] = max(acked.get(segment.sport, 0), segment.seq + size)
        board.put(IP(src=PC, dst=BOARD) / TCP(sport=PORT, dport=segment.sport, flags="A", seq=ISS + 1,
                                              ack=acked[segment.sport], window=60000))  # fmt: skip
    assert min(counts.values()) > 0.8 * max(counts.values()), counts


@pytest.mark.parametrize("loss", [0, 0.01, 0.1])
def test_every_word_arrives_whatever_is_lost(loss):
    """Segments and ACKs are lost and exchanged at random; the receiver keeps what comes ahead."""
    random = rng("loss", loss)
    words = 20000
    peer = Peer(words=words, mtu=1500, window=50000).open()
    ahead, place = {}, 0
    while place < words * WORD:
        segment = peer.segment(timeout=MAX)
        if random.random() < loss or not segment.data:
            continue
        ahead[peer.place(segment)] = len(segment.data)
        moved = True
        while moved:
            moved = False
            for begin in sorted(ahead):
                if begin <= place:
                    moved |= begin + ahead[begin] > place
                    place = max(place, begin + ahead.pop(begin))
        peer.acked = peer.first + place
        if random.random() >= loss:
            peer.reply()
    assert place == words * WORD, SEED

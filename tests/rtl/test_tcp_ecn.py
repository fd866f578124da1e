"""Explicit congestion notification of the TCP sender, segment by segment (RFC 3168)."""

import pytest
from scapy.layers.inet import TCP
from support.tcp_peer import INIT, MAX, WORD, Peer, started

NOT, ECT_0, MARKED = 0, 2, 3  # the last two bits of the IP header's second byte


def size(flight):
    return sum(len(segment.data) for segment in flight)


def confirm(peer, flight, flags="A"):
    for segment in flight:
        peer.acked = peer.end(segment)
        peer.reply(flags)


def flags_of(flight):
    return [str(segment.flags).replace("P", "") for segment in flight]


def test_new_data_may_be_marked():
    """Not the SYN, nor an ACK."""
    peer = Peer(ecn=True)
    assert peer.syn.ecn == NOT
    peer.open()
    flight = peer.window_full()
    assert flight and all(segment.ecn == ECT_0 for segment in flight)
    peer.reply("PA", data=b"ignored")
    assert [segment.ecn for segment in peer.window_full() if not segment.data] == [NOT]


@pytest.mark.parametrize("ecn,answer", [(True, "SA"), (True, "SAEC"), (False, "SAE"), (False, "SA")])
def test_both_ends_must_agree(ecn, answer):
    """6.1.1: an answer with both flags is a peer that sends back what it gets; a mark says nothing then."""
    peer = Peer(ecn=ecn).open(answer)
    flight = peer.window_full()
    assert flight and all(segment.ecn == NOT for segment in flight)
    before = size(flight)
    confirm(peer, flight, "AE")
    flight = peer.window_full()
    assert size(flight) > before
    assert set(flags_of(flight)) == {"A"}


def test_the_third_syn_does_not_ask():
    """6.1.1.1: there are networks that throw away those which do. An answer that agrees comes too late then."""
    peer = Peer(ecn=True)
    assert [peer.segment(timeout=3 * INIT * 2**n).flags for n in range(3)] == ["SEC", "S", "S"]
    peer.open("SAE")
    assert all(segment.ecn == NOT for segment in peer.window_full())


def test_a_mark_halves_the_window_once():
    """Until the peer has seen the CWR it repeats itself; then the next mark counts. What it allowed before does not open it."""
    peer = started(ecn=True, window=60000)
    flight = peer.window_full()
    full = size(flight)
    confirm(peer, flight, "AE")
    flight = peer.window_full()
    half = size(flight)
    assert 0.4 * full < half <= full / 2 + 1456
    assert flags_of(flight) == ["AC", *["A"] * (len(flight) - 1)]
    peer.acked = peer.end(flight[-1])
    peer.reply()
    flight = peer.window_full()
    assert "AC" not in flags_of(flight)
    again = size(flight)
    assert again >= half
    confirm(peer, flight, "AE")
    flight = peer.window_full()
    assert flags_of(flight)[0] == "AC"
    assert 0.4 * again < size(flight) <= again / 2 + 1456
    assert peer.status()["early"] == 0 and peer.counters()["timeouts"] == 0


def test_a_mark_that_is_repeated_is_the_same_mark():
    """An ACK of just what was under way, and what comes again with that number, was sent before the CWR arrived."""
    peer = started(ecn=True, window=60000)
    flight = peer.window_full()
    confirm(peer, flight[:1], "AE")
    for segment in flight[1:]:
        peer.acked = peer.end(segment)
    peer.reply("AE")
    half = peer.window_full()
    for n in range(3):
        peer.reply("AE", window=peer.window - 8 * (n + 1))
    assert not peer.window_full()
    confirm(peer, half)
    assert size(peer.window_full()) >= size(half)


def test_what_goes_again_may_not_be_marked():
    """6.1.5; and a loss is told to the peer by CWR, too, with the next new data."""
    peer = started(ecn=True, window=30000)
    flight = peer.window_full()
    for _ in range(3):
        peer.reply()
    again = peer.segment()
    assert (again.seq, again.ecn, str(again.flags).replace("P", "")) == (flight[0].seq, NOT, "A")
    peer.acked = peer.end(flight[-1])
    peer.reply()
    fresh = peer.window_full()
    assert flags_of(fresh)[0] == "AC" and "AC" not in flags_of(fresh)[1:]
    assert all(segment.ecn == ECT_0 for segment in fresh)


def test_marks_in_a_recovery_change_nothing():
    """The window has fallen for this round trip. Two connections differ by the marks alone."""

    def recovers(flags):
        peer = started(ecn=True, window=60000)
        flight = peer.window_full()
        for _ in range(3):
            peer.reply(flags)
        peer.window_full()
        peer.acked = peer.end(flight[-1])
        peer.reply(flags)
        return [segment.seq - peer.first for segment in peer.window_full()]

    assert recovers("A") == recovers("AE")


def test_a_loss_after_a_mark_of_the_same_round_trip():
    """6.1.2: the window falls once for both; the segment goes again."""
    peer = started(ecn=True, window=60000)
    flight = peer.window_full()
    full = size(flight)
    confirm(peer, flight[:4], "AE")
    for _ in range(3):
        peer.reply("AE")
    assert flight[4].seq in [segment.seq for segment in peer.window_full()]
    peer.acked = peer.end(flight[-1])
    peer.reply("AE")
    # Slow start to the threshold, then a segment a round trip.
    sizes = []
    for _ in range(6):
        flight = peer.window_full()
        confirm(peer, flight)
        sizes.append(size(flight))
    assert 0.4 * full < sizes[-1] < 0.6 * full, sizes
    assert peer.status()["early"] == 1


def test_a_timeout_is_told_with_new_data():
    peer = started(ecn=True, window=3000)
    flight = peer.window_full()
    again = peer.segment(timeout=MAX)
    assert (again.seq, again.ecn, str(again.flags).replace("P", "")) == (flight[0].seq, NOT, "A")
    rest = peer.window_full()
    assert all(segment.ecn == NOT for segment in rest)
    peer.acked = max(peer.end(segment) for segment in [*flight, again, *rest])
    peer.reply()
    fresh = peer.segment()
    assert (fresh.seq, fresh.ecn, str(fresh.flags).replace("P", "")) == (peer.acked, ECT_0, "AC")


def test_probes_of_a_window_may_not_be_marked():
    """6.1.6."""
    peer = started(ecn=True, window=2000)
    flight = peer.window_full()
    peer.acked = peer.end(flight[-1])
    peer.reply(window=0)
    for _ in range(2):
        probe = peer.segment(timeout=MAX)
        assert (len(probe.data), probe.ecn) == (WORD, NOT)
        peer.reply(window=0)


def test_marks_of_the_peers_data_are_told_until_its_cwr():
    """6.1.3: by ECE in each ACK."""
    peer = started(ecn=True, window=20000)
    confirm(peer, peer.window_full())
    assert set(flags_of(peer.window_full())) == {"A"}

    def say(data, tos, flags="PA"):
        peer.reply(flags, data=data, tos=tos)
        peer.sequence += len(data)
        return str(peer.segment().flags)

    assert say(b"first", ECT_0) == "A"
    assert say(b"second", MARKED) == "AE"
    assert say(b"third", ECT_0) == "AE"
    confirm(peer, [])
    assert say(b"fourth", ECT_0, "PAC") == "A"
    assert say(b"fifth", MARKED, "PAC") == "AE"


def test_the_next_connection_agrees_anew():
    peer = started(ecn=True, window=20000)
    peer.window_full()
    peer.reply("R")
    peer.agrees = False
    while TCP not in (frame := peer.receive(MAX * 1_000_000)) or "S" not in str(frame[TCP].flags):
        pass
    assert str(frame[TCP].flags) == "SEC"
    peer.port = frame[TCP].sport
    peer.reply("SA", options=peer.options)
    peer.sequence += 1
    flight = [segment for segment in peer.window_full() if segment.data]
    assert flight and all(segment.ecn == NOT for segment in flight)

"""The connections of the TCP sender, from pin to pin: how they begin and end, and peers that are gone."""

import pytest
from support.board import US
from support.tcp_peer import INIT, RETRY, WORD, Peer, started


def test_reset_only_with_the_exact_number():
    """RFC 5961 3.2: another one in the window is answered by an ACK, one outside is not."""
    peer = started(window=3000)
    peer.window_full()
    for wrong in (1, 4095):
        peer.reply("R", sequence=peer.sequence + wrong)
        challenge = peer.segment()
        assert (challenge.flags, challenge.ack, challenge.data) == ("A", peer.sequence, b"")
    for wrong in (-1, 4096, 2**31):
        peer.reply("R", sequence=peer.sequence + wrong)
        peer.silent(20)
    assert peer.counters()["unacceptable"] == 5 and peer.counters()["resets"] == 0
    peer.reply("R")
    again = peer.segment(timeout=3 * RETRY)
    assert again.flags == "S" and again.sport == peer.port + 16, "another attempt, another port"
    assert (again.seq + 1) % 2**32 == peer.acked, "it goes on with the first word that was not confirmed"
    assert peer.counters()["resets"] == 1


def test_a_syn_in_a_connection_is_answered_with_an_ack():
    peer = started(window=3000)
    peer.window_full()
    peer.reply("S")
    assert peer.segment().flags == "A"


def test_refused():
    peer = Peer()
    peer.reply("RA", sequence=0, ack=peer.first + 5)
    peer.silent(20)
    peer.reply("RA", sequence=0, ack=peer.first)
    again = peer.segment(timeout=3 * RETRY)
    assert again.flags == "S" and again.sport == peer.port + 16


def test_a_lost_syn_goes_again():
    peer = Peer()
    again = peer.segment(timeout=2 * INIT)
    assert (again.flags, again.seq, again.sport) == ("S", peer.syn.seq, peer.port)
    assert 0.9 * INIT < (again.at - peer.syn.at) / US < 1.2 * INIT


@pytest.mark.parametrize("flags", ["A", "SA"])
def test_a_connection_of_before_is_ended(flags):
    """The answer to the SYN has another connection's number: RST with that number, and the SYN again, at once but once."""
    peer = Peer()
    stale = (peer.first + 77_777) % 2**32
    peer.reply(flags, ack=stale)
    reset = peer.segment(timeout=50)
    assert (reset.flags, reset.seq, reset.data, reset.sport) == ("R", stale, b"", peer.port)
    again = peer.segment(timeout=50)
    assert (again.flags, again.seq, again.sport) == ("S", peer.syn.seq, peer.port)
    peer.reply(flags, ack=stale + 1)
    assert peer.segment(timeout=50).seq == stale + 1
    peer.silent(50)
    assert peer.counters()["unacceptable"] == 2
    peer.reply("R", ack=stale)
    peer.silent(50)  # a RST is never answered
    peer.open()


def test_data_from_the_peer_is_confirmed_and_thrown_away():
    peer = started(window=3000)
    flight = peer.window_full()
    peer.acked = peer.end(flight[-1])
    peer.reply("PA", data=b"hello")
    peer.sequence += 5
    segments = [peer.segment() for _ in range(2)]
    assert all(segment.ack == peer.sequence for segment in segments)
    # Not in order: the number that is expected.
    peer.window_full()
    peer.reply("PA", sequence=peer.sequence + 100, data=b"later")
    assert peer.segment().ack == peer.sequence


def test_the_stream_ends_with_fin():
    peer = Peer(words=1000).open()
    peer.take_all(1000)
    fin = peer.segment()
    assert fin.flags.F and (fin.seq - peer.first) % 2**32 == 8000
    # Lost: it goes again.
    assert peer.segment().seq == fin.seq
    peer.reply("FA", ack=fin.seq + 1)
    last = peer.segment()
    assert last.flags == "A" and last.ack == peer.sequence + 1
    # The last ACK was lost: the peer repeats its FIN.
    peer.reply("FA", ack=fin.seq + 1)
    assert peer.segment().ack == peer.sequence + 1
    peer.silent(3 * INIT)
    assert peer.status()["running"] == 0


def test_the_peer_asks_for_the_end():
    """It closes its direction: what was taken is sent, then FIN."""
    peer = started(window=60000)
    peer.reply("FA")
    peer.sequence += 1
    end = None
    while end is None:
        segment = peer.segment()
        assert segment.ack in (peer.sequence, peer.sequence - 1)
        if segment.flags.F:
            end = segment
        elif segment.data:
            if peer.place(segment) == (peer.acked - peer.first) % 2**32:
                peer.acked = peer.end(segment)
            peer.reply()
    assert end.seq == peer.acked and (peer.acked - peer.first) // WORD <= 2 * 2**17
    peer.reply(ack=end.seq + 1)
    again = peer.segment(timeout=3 * INIT)
    assert again.flags == "S", "the source is still there: the next connection"


def test_a_killed_receiver_is_no_end():
    """Its kernel closes its direction, and answers what comes with RST: the same run goes on in the next connection."""
    peer = started(window=60000)
    for _ in range(3):
        peer.take_all((peer.acked - peer.first) // WORD + 3000)
        peer.reply("FA")
        peer.sequence += 1
        peer.segment()
        peer.reply("R")
        peer.open_again()
    # More than was in the buffer: the source did not begin anew.
    peer.take_all((peer.acked - peer.first) // WORD + 2**17 + 10_000)


KEEPALIVE, KEEPALIVE_INTERVAL, KEEPALIVE_PROBES = 10_000, 2_000, 3  # microseconds, of the simulated board


def resting():
    """A connection whose first block takes its time."""
    return Peer(gap=65535, block=65535).open()


def test_a_peer_that_is_silent_is_asked_and_given_up():
    """RFC 9293 3.8.4: the number before what comes next, without data; each answer begins the time anew."""
    peer = resting()
    heard = peer.now
    for _ in range(2):
        probe = peer.segment(timeout=2 * KEEPALIVE)
        assert (probe.flags, probe.seq, probe.data) == ("A", (peer.acked - 1) % 2**32, b"")
        assert -1001 < (probe.at - heard) / US - KEEPALIVE < 100
        peer.reply()
        heard = peer.now
    times = [peer.segment(timeout=2 * KEEPALIVE).at for _ in range(KEEPALIVE_PROBES)]
    gaps = [(later - earlier) / US for earlier, later in zip(times, times[1:])]
    assert all(-1001 < gap - KEEPALIVE_INTERVAL < 100 for gap in gaps), gaps
    peer.open_again()
    assert peer.now - times[-1] > (KEEPALIVE_INTERVAL + RETRY - 1001) * US
    assert peer.counters()["probes"] == 2 + KEEPALIVE_PROBES and peer.counters()["resets"] == 1


def test_a_peer_that_has_forgotten_the_connection_is_found():
    """Its RST is the answer to the probe."""
    peer = resting()
    assert peer.segment(timeout=2 * KEEPALIVE).seq == (peer.acked - 1) % 2**32
    peer.reply("R")
    peer.open_again()

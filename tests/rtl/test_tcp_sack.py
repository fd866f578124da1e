"""Selective acknowledgments of the TCP sender, segment by segment (RFC 2018, 6675)."""

import pytest
from support.block import SEED, rng
from support.tcp_peer import MAX, MIN, US, WORD, Peer, fill, started

SACK = {"sack": True, "window": 60000}


class Receiver:
    """The other end of a connection: keeps what comes out of order and reports it, the latest block first."""

    def __init__(self, peer):
        self.peer, self.blocks = peer, []

    def take(self, segment):
        place = self.peer.place(segment)
        self.blocks = merged([*self.blocks, (place, place + len(segment.data))])
        confirmed = (self.peer.acked - self.peer.first) % 2**32
        while self.blocks and self.blocks[0][0] <= confirmed:
            confirmed = max(confirmed, self.blocks.pop(0)[1])
        self.peer.acked = (self.peer.first + confirmed) % 2**32
        told = sorted(self.blocks, key=lambda block: not block[0] <= place < block[1])
        self.reply(told[:4])

    def reply(self, blocks, **fields):
        edges = [(self.peer.first + edge) % 2**32 for block in blocks for edge in block]
        options = [("NOP", None), ("NOP", None), ("SAck", tuple(edges))] if edges else []
        self.peer.reply(options=options, **fields)


def merged(blocks):
    found = []
    for begin, end in sorted(blocks):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((begin, end))
    return found


def agreed(**options):
    peer = Peer(**SACK | options)
    assert ("SAckOK", b"") in peer.syn.options
    peer.options = [*peer.options, ("SAckOK", b"")]
    return fill(peer.open())


def again(peer, segments, before):
    """Of segments those that were sent before, as places in the stream."""
    return [place for place in map(peer.place, segments) if place < before]


def lost_and_mended(peer, lost):
    """A flight of which the segments with these numbers are lost: what goes again before the first ACK of something new."""
    flight = peer.window_full()
    receiver, end = Receiver(peer), peer.place(flight[-1]) + len(flight[-1].data)
    for n, segment in enumerate(flight):
        if n not in lost:
            receiver.take(segment)
    return flight, receiver, again(peer, peer.window_full(), end)


@pytest.mark.parametrize("lost", [[0], [0, 1, 2], [0, 2], [0, 3, 7], [0, 1, 4, 5, 9, 13, 14], list(range(0, 26, 2))])
def test_all_holes_are_mended_in_one_round_trip(lost):
    """As many as every other of the duplicate ACKs allows."""
    peer = agreed()
    flight, _, places = lost_and_mended(peer, lost)
    duplicates = len(flight) - len(lost)
    expected = [peer.place(flight[n]) for n in lost][: 1 + (duplicates - 3) // 2]
    assert places == expected
    assert peer.status()["early"] == 1 and peer.counters()["timeouts"] == 0


def test_what_is_left_is_mended_by_the_acks_of_what_came():
    peer = agreed()
    lost = set(range(0, 40, 2)) | set(range(1, 30, 3))
    flight, receiver, places = lost_and_mended(peer, lost)
    sent, counts, end = list(places), peer.counters(), peer.place(flight[-1]) + len(flight[-1].data)
    for place in places:
        receiver.take(next(segment for segment in flight if peer.place(segment) == place))
    while (peer.acked - peer.first) % 2**32 < end:
        segment = peer.segment(timeout=MIN / 2)
        if peer.place(segment) < end:
            sent.append(peer.place(segment))
        receiver.take(segment)
    assert sorted(sent) == sorted({peer.place(flight[n]) for n in lost if n < len(flight)}), "each once"
    assert peer.counters()["timeouts"] == counts["timeouts"] == 0


def test_without_the_option_one_hole_goes_in_each_round_trip():
    """The board asks, the peer does not agree: blocks that come all the same are not read."""
    peer = started(**SACK)
    flight, _, places = lost_and_mended(peer, [0, 3, 7])
    assert places == [peer.place(flight[0])]


def test_who_does_not_ask_reads_no_blocks():
    peer = Peer(window=60000)
    assert not any(name == "SAckOK" for name, _ in peer.syn.options)
    peer.options = [*peer.options, ("SAckOK", b"")]
    fill(peer.open())
    flight, _, places = lost_and_mended(peer, [0, 3, 7])
    assert places == [peer.place(flight[0])]


def test_a_peer_that_agrees_and_tells_nothing():
    """Then the first segment goes again, and at partial ACKs after two round trips."""
    peer = agreed()
    flight = peer.window_full()
    for _ in range(3):
        peer.reply()
    assert peer.segment().seq == flight[0].seq
    peer.window_full()
    peer.acked = flight[4].seq
    peer.reply()
    assert peer.segment(timeout=MIN).seq == flight[4].seq


def test_a_hole_that_is_lost_again_goes_once_more():
    peer = agreed()
    flight, receiver, places = lost_and_mended(peer, [0, 3])
    assert len(places) == 2
    receiver.take(flight[0])
    while peer.segment(timeout=MIN).seq != flight[3].seq:
        pass
    assert peer.counters()["timeouts"] == 0


def test_holes_of_pushed_blocks():
    """Segments of any size."""
    peer = agreed(block=37)
    flight, _, places = lost_and_mended(peer, [0, 4, 5, 11])
    holes = merged([(peer.place(flight[n]), peer.end(flight[n]) - peer.first) for n in (0, 4, 5, 11)])
    # Neighbours go together where a segment has room.
    assert places == [begin for begin, _ in holes]


def test_blocks_that_cannot_be():
    """Of nothing that is under way: nothing goes but the first segment, three times nothing is believed."""
    for left, right in [(-8000, -4000), (10**6, 10**6 + 1456), (-1456, 10**8), (2**31, 2**31 + 8), (60000, 59000)]:
        peer = agreed()
        flight = peer.window_full()
        begin = peer.place(flight[0])
        end = peer.place(flight[-1]) + len(flight[-1].data)
        receiver = Receiver(peer)
        for _ in range(12):
            receiver.reply([(begin + left, begin + right)])
        found = peer.window_full()
        assert {place for place in again(peer, found, end)} == {begin}, (left, right)


@pytest.mark.parametrize("scale", [0, pytest.param(2, marks=pytest.mark.long)])
def test_more_holes_than_the_queue_takes(scale):
    peer = agreed(window=65535, scale=scale, mss=536)
    flight = peer.window_full()
    assert len(flight) > 100
    receiver, end = Receiver(peer), peer.place(flight[-1]) + len(flight[-1].data)
    for n, segment in enumerate(flight):
        if n % 2:
            receiver.take(segment)
    while (peer.acked - peer.first) % 2**32 < end:
        receiver.take(peer.segment(timeout=MAX))
    peer.window_full()


@pytest.mark.parametrize("block", [0, 100])
@pytest.mark.parametrize("loss", [0.02, 0.2])
def test_every_word_arrives_whatever_is_lost(loss, block):
    """Both ways; also what is sent again. Nothing that came is sent again, except after a time-out or by mistaken reordering."""
    random, words = rng(f"{loss} {block}"), 60_000
    peer = Peer(words=words, block=block, **SACK)
    peer.options = [*peer.options, ("SAckOK", b"")]
    peer.open()
    receiver = Receiver(peer)
    while (place := (peer.acked - peer.first) % 2**32) < words * WORD:
        frame = peer.receive(2 * MAX * US)
        assert frame is not None, (SEED, place)
        segment = peer.segment_of(frame)
        if segment.data and random.random() >= loss:
            if random.random() >= loss:
                receiver.take(segment)
            else:
                reply, peer.reply = peer.reply, lambda *_, **__: None
                receiver.take(segment)
                peer.reply = reply

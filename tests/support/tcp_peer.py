"""A board with the TCP sender, and a peer that answers as the script of a test says; time is simulated."""

from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import ARP

from support.board import FEB, LIB, US
from support.ip_board import BOARD, BOARD_MAC, PC, PC_MAC, IpBoard

PORT = 10000
ISS = 0x1000_0000  # of the peer
MIN, INIT, MAX, RETRY = 500, 5000, 100_000, 2000  # microseconds, of the simulated board
WORD = 8


class TcpBoard(IpBoard):
    """A board and what is on its wire."""

    def __init__(self, phy="xgmii", streams=1, mtu=1500, first_sequence=0, words=0, gap=0, block=0, ecn=False, sack=False):
        handle = LIB.fadelink_tcp_board_new(phy.encode(), FEB, streams, mtu, first_sequence, words, gap, block, ecn, sack)
        super().__init__(phy, handle)

    def expect(self, layer, timeout=2 * INIT * US):
        return super().expect(layer, timeout)


class Peer(TcpBoard):
    """A board with one connection, and the other end of it."""

    def __init__(self, window=60000, mss=1460, scale=None, sequence=ISS, **options):
        super().__init__(**options)
        self.quiet = 200 if options.get("phy") == "gmii" else 30  # microseconds without a frame
        request = self.expect(ARP)[ARP]
        assert (request.op, request.psrc, request.pdst) == (1, BOARD, PC)
        self.put(ARP(op=2, hwsrc=PC_MAC, psrc=PC, hwdst=BOARD_MAC, pdst=BOARD))
        self.window, self.sequence, self.shift = window, sequence, 0
        self.syn = self.segment()
        self.agrees = options.get("ecn", False)
        assert self.syn.flags == ("SEC" if self.agrees else "S") and dict(self.syn.options)["WScale"] == 0
        assert dict(self.syn.options)["MSS"] == (options.get("mtu", 1500) - 40) // 8 * 8
        self.port, self.first = self.syn.sport, (self.syn.seq + 1) % 2**32
        self.options = ([("MSS", mss)] if mss else []) + ([("NOP", None), ("WScale", scale)] if scale is not None else [])
        self.acked = self.first

    def receive(self, timeout):
        """The next frame; requests for the peer's address are answered."""
        end = self.now + timeout
        while (frame := super().receive(end - self.now)) is not None:
            if not (hasattr(self, "acked") and ARP in frame):
                return frame
            self.put(ARP(op=2, hwsrc=PC_MAC, psrc=PC, hwdst=BOARD_MAC, pdst=BOARD))
        return None

    def open(self, flags=None):
        """The handshake; the board's ACK may carry data already."""
        # RFC 7323 2.2: the window of a SYN is never scaled.
        window = min(65535, self.window << (dict(self.options).get("WScale") or 0))
        self.reply(flags or ("SAE" if self.agrees else "SA"), ack=self.first, options=self.options, window=window)
        self.sequence += 1
        ack = self.segment()
        assert ack.flags == "A" and (ack.seq, ack.ack) == (self.first, self.sequence)
        return self

    def open_again(self):
        """The handshake of the next attempt, which goes on with the first word that was not confirmed."""
        while (syn := self.segment(timeout=3 * RETRY)).flags != "S":
            pass
        assert (syn.seq + 1) % 2**32 == self.acked and syn.sport == self.port + 16
        self.port = syn.sport
        self.reply("SA", options=self.options)
        self.sequence += 1

    def reply(self, flags="A", ack=None, sequence=None, window=None, data=b"", tos=0, **fields):
        ack = self.acked if ack is None else ack
        window = self.window if window is None else window
        sequence = self.sequence if sequence is None else sequence
        self.put(IP(src=PC, dst=BOARD, tos=tos) / TCP(sport=PORT, dport=self.port, flags=flags, seq=sequence % 2**32,
                                             ack=ack % 2**32, window=window, **fields) / data)  # fmt: skip

    def segment_of(self, frame):
        """The segment in a frame, with its time and its data."""
        segment = frame[TCP]
        segment.at, segment.ecn = frame.at, frame[IP].tos
        segment.data = bytes(segment.payload)[: frame[IP].len - 20 - segment.dataofs * 4]
        return segment

    def segment(self, timeout=2 * INIT):
        """The next segment."""
        frame = self.expect(TCP, timeout * US)
        return self.segment_of(frame)

    def place(self, segment):
        """Where in the stream its data is, in bytes; the words must be the counter."""
        place = (segment.seq - self.first) % 2**32
        assert place % WORD == 0 and len(segment.data) % WORD == 0
        words = [int.from_bytes(segment.data[i : i + WORD], "little") for i in range(0, len(segment.data), WORD)]
        assert words == list(range(place // WORD, place // WORD + len(words)))
        return place

    def end(self, segment):
        return (segment.seq + len(segment.data)) % 2**32

    def window_full(self):
        """Takes segments, without an answer, until no more come for a while."""
        found = []
        while (frame := self.receive(self.quiet * US)) is not None:
            segment = self.segment_of(frame)
            self.place(segment)
            found.append(segment)
        return found

    def take_all(self, words):
        """Confirms what comes until `words` words are in; each once, whatever the order."""
        while (place := (self.acked - self.first) % 2**32) < words * WORD:
            segment = self.segment()
            if self.place(segment) <= place:
                self.acked = max(self.acked, self.end(segment)) if self.end(segment) >= self.first else self.end(segment)
            self.reply()


def started(**options):
    """A connection with an open congestion window and a full buffer: from now on segments are full."""
    return fill(Peer(**options).open())


def fill(peer):
    """Confirms segment by segment until what is under way has not grown for a while; the last flight at once."""
    flight, most, rounds = peer.window_full(), 0, 0
    assert peer.place(flight[0]) == 0
    peer.silent(10 * peer.quiet)
    # In congestion avoidance not each round trip adds a segment.
    while (size := sum(len(segment.data) for segment in flight)) > most or (rounds := rounds + 1) < 3:
        rounds = 0 if size > most else rounds
        most = max(size, most)
        for segment in flight:
            peer.acked = peer.end(segment)
            peer.reply()
        flight = peer.window_full()
    peer.acked = peer.end(flight[-1])
    peer.reply()
    return peer

"""The FADE v1 board and a receiver for it."""

from collections import namedtuple

from support.block import C1
from support.board import FEB, PC, US, Board, with_block, with_fcs

Packet = namedtuple("Packet", "at set packet retry delay words")
State = namedtuple("State", "at state transmission packets resets by checksum permit")
SETS = 2**16


def request(kind, number=None, src=PC, dst=FEB):
    fields = b"" if number is None else (number // 32 % SETS).to_bytes(2, "big") + (number % 32 << 10).to_bytes(2, "big")
    return (dst + src + b"\xfa\xde" + kind.to_bytes(2, "big") + fields).ljust(C1["REQUEST_LEN"], b"\xa5")


def block_ack(number, stored):
    return with_block(request(C1["TYPE_ACK"], number), 20, stored)


def parse(frame, at):
    """A frame from the board, checked against the format byte by byte."""
    assert with_fcs(frame[:-4]) == frame, "frame check sequence"
    frame = frame[:-4]
    assert frame[6:12] == FEB
    if frame[12:16] == b"\xfa\xde" + C1["TYPE_STATE"].to_bytes(2, "big"):
        assert len(frame) == C1["STATE_FRAME_LEN"] and frame[48:] == b"\xa5" * (len(frame) - 48)
        assert frame[24] == C1["STATE_RESETS"]
        number = lambda a, b: int.from_bytes(frame[a:b], "big")
        # Words of the last packet, and CRC.
        checksum = (number(34, 36), number(36, 40)) if number(32, 34) == C1["CHECKSUM_MARK"] else None
        assert checksum or frame[32:40] == b"\xa5" * 8
        assert number(40, 44) == C1["PERMIT_MARK"] << 16
        return State(at, number(16, 18), number(18, 20), number(20, 24), number(25, 26), frame[26:32], checksum, number(44, 48))
    assert len(frame) == C1["DATA_FRAME_LEN"] and frame[:6] == PC
    assert frame[12:16] == b"\xfa\xde\xa5\xa5"
    set_, number = int.from_bytes(frame[16:18], "big"), int.from_bytes(frame[18:20], "big")
    data = frame[24:]
    words = [int.from_bytes(data[i : i + 8], "little") for i in range(0, len(data), 8)]
    delay = int.from_bytes(frame[20:24], "big")
    flags = C1["TAKES_BLOCK_ACKS"] | C1["SAME_WORDS"]
    assert delay & flags == flags
    return Packet(at, set_, number >> 10, number & 0x3FF, delay & ~flags, words)


class Fade1(Board):
    """A FADE v1 board and its receiver: confirms, checks the counter, loses what it is told to.

    batch: packets that come together, at most, and get one block ACK, lost or not as the packet that it names; None: each gets an
    ACK.
    """

    FILLER = int.from_bytes(b"\xa5" * 8, "little")

    def __init__(self, first_set=0, lose=lambda kind, packet: False, batch=None, **options):
        super().__init__("gmii", 32, first_set, protocol="fade1", parse=parse, **options)
        self.first, self.lose, self.batch, self.waiting = first_set * 32, lose, batch, []
        self.next, self.ahead, self.words, self.log, self.tail = 0, {}, [], [], []
        self.states = []

    def start(self, transmission=1, permit=None):
        """permit: with which alone it is to be obeyed."""
        frame = request(C1["TYPE_START"])
        fields = transmission.to_bytes(2, "big")
        if permit is not None:
            fields += C1["PERMIT_MARK"].to_bytes(2, "big") + permit.to_bytes(4, "big")
        self.send(frame[:16] + fields + frame[16 + len(fields) :])

    def receive(self, timeout):
        """The next packet, as Board.receive; states that come before it are kept."""
        end = self.now + timeout
        while isinstance(frame := super().receive(end - self.now), State):
            self.states.append(frame)
        return frame

    def take(self, packet):
        index = (packet.set * 32 + packet.packet - self.first) % (SETS * 32)
        if index >= SETS * 16:
            index -= SETS * 32
        self.log.append(index)
        assert packet.packet < 32 and index < self.next + 32, "inside the window"
        assert packet.retry == C1["RETRY_FADELINK"]
        if self.lose("data", packet):
            return
        if index >= self.next:
            self.ahead[index] = packet
        while self.next in self.ahead:
            self.words += self.ahead.pop(self.next).words
            self.next += 1
        if self.batch is None:
            if not self.lose("ack", packet):
                self.ack(self.first + index)
            return
        self.waiting.append((index, packet))
        if len(self.waiting) == self.batch:
            self.confirm()

    def confirm(self):
        """The block ACK of what waits."""
        if self.waiting:
            index, packet = max(self.waiting, key=lambda waiting: waiting[0])
            self.waiting = []
            if not self.lose("ack", packet):
                before = [i for i in range(max(0, index - 64), index) if i < self.next or i in self.ahead]
                self.ack(self.first + index, sum(1 << index - 1 - i for i in before))

    def ack(self, number, stored=None):
        self.send(request(C1["TYPE_ACK"], number) if stored is None else block_ack(number, stored))

    def run(self, packets):
        while self.next < packets:
            packet = self.receive(20 * US)
            if not packet:
                self.confirm()
                packet = self.receive(60_000 * US)
            assert packet, f"nothing comes; {self.next} packets are in"
            self.take(packet)

    def stop(self):
        """STOP, and all that is left."""
        self.send(request(C1["TYPE_STOP"]))
        self.confirm()
        self.batch = None
        while packet := self.receive(12_000 * US):
            self.take(packet)
        assert self.status()["running"] == 0

    def check(self, words=None):
        """The counter without a gap, then at most filler of the last packet."""
        data = list(self.words)
        while data and data[-1] == self.FILLER:
            data.pop()
        assert len(self.words) - len(data) < 128
        assert data == list(range(len(data))) and (words is None or len(data) == words)

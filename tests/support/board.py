"""The example board, pin by pin under Verilator, as a Python object: frames in and out."""

import ctypes
import json
import zlib

from support.paths import BUILD, VECTORS

C = json.loads((VECTORS / "fade10g.json").read_text())["constants"]
LIB = ctypes.CDLL(str(BUILD / "sim/libfadelink-sim.so"))
LIB.fadelink_board_new.restype = ctypes.c_void_p
LIB.fadelink_board_new.argtypes = [
    ctypes.c_char_p, ctypes.c_char_p, ctypes.c_uint, ctypes.c_char_p, ctypes.c_uint32, ctypes.c_uint16,
    *[ctypes.c_uint64] * 4, ctypes.c_uint32, ctypes.c_int,
]  # fmt: skip
LIB.fadelink_tcp_board_new.restype = ctypes.c_void_p
LIB.fadelink_tcp_board_new.argtypes = [
    ctypes.c_char_p, ctypes.c_char_p, ctypes.c_uint, ctypes.c_uint, ctypes.c_uint32, ctypes.c_uint32, *[ctypes.c_uint] * 2,
]  # fmt: skip
LIB.fadelink_udp_board_new.restype = ctypes.c_void_p
LIB.fadelink_udp_board_new.argtypes = [
    ctypes.c_char_p, ctypes.c_char_p, ctypes.c_uint, ctypes.c_int, ctypes.c_int, ctypes.c_uint32, *[ctypes.c_uint] * 2,
    *[ctypes.c_uint64] * 2, ctypes.c_uint,
]  # fmt: skip
LIB.fadelink_board_close.argtypes = [ctypes.c_void_p]
LIB.fadelink_board_counter.restype = ctypes.c_char_p
LIB.fadelink_board_counter.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER(ctypes.c_uint32)]
LIB.fadelink_board_free.argtypes = [ctypes.c_void_p]
LIB.fadelink_board_send.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t]
LIB.fadelink_board_run.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64]
LIB.fadelink_board_receive.restype = ctypes.c_size_t
LIB.fadelink_board_receive.argtypes = [
    ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.POINTER(ctypes.c_uint64),
]  # fmt: skip
LIB.fadelink_board_time.restype = ctypes.c_int64
LIB.fadelink_board_time.argtypes = [ctypes.c_void_p]
LIB.fadelink_board_status.argtypes = [ctypes.c_void_p, ctypes.c_uint32 * 5]

FEB = bytes.fromhex("02fade000001")
PC = bytes.fromhex("02fade0000f0")
US = 1_000_000  # ps


def with_fcs(frame):
    frame = frame.ljust(60, b"\0")
    return frame + zlib.crc32(frame).to_bytes(4, "little")


def request(code, csn=0, argument=0, src=PC, dst=FEB, version=C["VERSION"], ethertype=C["ETHERTYPE"]):
    head = dst + src + ethertype.to_bytes(2, "big") + version.to_bytes(2, "big")
    fields = code.to_bytes(2, "big") + (csn % 2**16).to_bytes(2, "big") + (argument % 2**32).to_bytes(4, "big")
    return (head + fields + bytes(4) * (code in (C["ACK"], C["NACK"]))).ljust(C["REQUEST_LEN"], b"\xa5")


def with_block(ordinary, fields, stored):
    """An ordinary ACK, whose fields end with byte `fields`, made a block ACK."""
    bits = C["BLOCK_MARK"].to_bytes(2, "big") + bytes(2) + stored.to_bytes(8, "big") + bytes(8)
    return ordinary[:fields] + bits + ordinary[fields + len(bits) :]


def block_ack(sequence, packet, stored):
    return with_block(request(C["ACK"], sequence, packet), 28, stored)


class Parsed:
    """A frame from the board, checked against the format byte by byte."""

    def __init__(self, frame, at):
        self.at = at
        assert with_fcs(frame[:-4]) == frame, "frame check sequence"
        frame = frame[:-4]
        self.dst, self.src = frame[:6], frame[6:12]
        assert frame[12:16] == b"\xfa\xde\x01\x00"
        self.type = int.from_bytes(frame[16:18], "big")
        self.is_data = self.type in (C["TYPE_DATA"], C["TYPE_LAST"])
        if self.is_data:
            assert len(frame) == C["DATA_FRAME_LEN"]
            self.sequence = int.from_bytes(frame[18:20], "big")
            self.packet = int.from_bytes(frame[20:24], "big")
            self.delay = int.from_bytes(frame[24:28], "big")
            response = frame[28:40]
            self.payload = frame[40:]
            self.last = int.from_bytes(frame[-8:], "little") if self.type == C["TYPE_LAST"] else None
            self.crc = None
            if self.last is not None and self.last >> 16 & 0xFFFF == C["CHECKSUM_MARK"]:
                self.last, self.crc = self.last & 0xFFFF, self.last >> 32
            if self.last is not None:
                assert self.last <= C["LAST_WORDS_MAX"]
                assert set(self.payload[8 * self.last : -8]) <= {C["FILLER"]}, "filler behind the valid words"
        else:
            assert self.type == C["TYPE_RESPONSE"] and len(frame) == 60
            assert set(frame[18:20] + frame[32:]) == {C["FILLER"]}
            response = frame[20:32]
        self.response = None
        if response != bytes(12):
            fields = (response[:2], response[2:4], response[4:])
            self.response = tuple(int.from_bytes(field, "big") for field in fields)

    def words(self):
        data = self.payload if self.last is None else self.payload[: 8 * self.last]
        return [int.from_bytes(data[i : i + 8], "little") for i in range(0, len(data), 8)]


class Board:
    def __init__(
        self, phy="xgmii", window=32, first_packet=0, first_sequence=0, user=0, phase=0, tx=0, rx=0, limit=0,
        paper_rule=False, protocol="fade10g", parse=Parsed, handle=None,
    ):  # fmt: skip
        self.handle = handle or LIB.fadelink_board_new(
            protocol.encode(), phy.encode(), window, FEB, first_packet, first_sequence, user, phase, tx, rx, limit,
            paper_rule,
        )  # fmt: skip
        self.parse = parse
        assert self.handle, (phy, window)
        self.now = 0
        self.csn = 0
        self.frame_time = (66 if phy == "gmii" else 7) * US
        self.buffer = ctypes.create_string_buffer(10000)

    def __del__(self):
        LIB.fadelink_board_free(self.handle)

    def send(self, frame):
        """Sends a frame; its frame check sequence is added."""
        self.send_raw(with_fcs(frame))

    def send_raw(self, data):
        LIB.fadelink_board_send(self.handle, data, len(data))

    def receive(self, timeout):
        """The next frame, within `timeout` ps, or None."""
        at = ctypes.c_uint64()
        end = self.now + timeout
        while True:
            length = LIB.fadelink_board_receive(self.handle, self.buffer, 10000, ctypes.byref(at))
            if length:
                self.now = max(self.now, at.value)
                return self.parse(self.buffer.raw[:length], at.value)
            if self.now >= end:
                return None
            # One step more than up to a frame: the library stops there by itself.
            LIB.fadelink_board_run(self.handle, self.now, end)
            length = LIB.fadelink_board_receive(self.handle, self.buffer, 10000, ctypes.byref(at))
            if length:
                self.now = max(self.now, at.value)
                return self.parse(self.buffer.raw[:length], at.value)
            self.now = end

    def frames(self, timeout):
        """All frames of the next `timeout` ps."""
        end = self.now + timeout
        found = []
        while self.now < end and (frame := self.receive(end - self.now)):
            found.append(frame)
        return found

    def status(self):
        values = (ctypes.c_uint32 * 5)()
        LIB.fadelink_board_status(self.handle, values)
        return dict(zip(("running", "sent", "retransmitted", "early", "delay"), values))

    def command(self, code, argument=0, csn=None, take=None, src=PC):
        """Sends a command and waits for its response; `take` gets the data frames meanwhile."""
        if csn is None:
            self.csn = csn = (self.csn + 1) % 2**16
        self.send(request(code, csn, argument, src))
        end = self.now + 40 * self.frame_time
        while self.now < end and (frame := self.receive(end - self.now)):
            if take and frame.is_data:
                take(frame)
            if frame.response and frame.response[:2] == (code, csn):
                return frame.response[2]
        return None

    def ack(self, frame, packet=None, sequence=None, stored=None):
        """`stored`: bits of a block ACK."""
        packet = frame.packet if packet is None else packet
        sequence = frame.sequence if sequence is None else sequence
        self.send(request(C["ACK"], sequence, packet) if stored is None else block_ack(sequence, packet, stored))


def get(register):
    return 0x0100 | register


def put(register):
    return 0x0200 | register


PATTERN, SEED_LOW, SEED_HIGH, LIMIT, GAP, ACCUMULATOR = 2, 3, 4, 5, 6, 7
CORE = 0x1F
COUNTERS = {
    "sent": 0x10, "retransmitted": 0x11, "acknowledged": 0x12, "early": 0x13, "protocol_errors": 0x14, "delay": 0x15,
    "stale_acks": 0x16, "wrong_source": 0x17, "busy": 0x18, "running": 0x19, "stopping": 0x1A, "error": 0x1B,
    "rx_error": 0x20, "runt": 0x21, "oversize": 0x22, "bad_fcs": 0x23, "destination": 0x24, "ethertype": 0x25,
    "version": 0x26, "code": 0x27, "short": 0x28, "full": 0x29,
}  # fmt: skip


class Receiver:
    """The receiver's rules, with the losses that a test wants; checks every word of the counter.

    batch: frames that come together, and get one block ACK, lost or not as the frame that it names; None: each gets an ACK.
    """

    def __init__(self, board, window, first=0, drop_data=None, drop_ack=None, batch=None):
        self.board, self.window, self.first, self.batch = board, window, first, batch
        self.waiting = []  # frames to confirm
        self.drop_data = drop_data or (lambda frame: False)
        self.drop_ack = drop_ack or (lambda frame: False)
        self.next, self.ahead, self.words, self.done = 0, {}, 0, False
        self.crc, self.told = 0, None  # of all words, and as the last packet tells it
        self.log = []  # (packet index, sequence) of each data frame on the wire
        self.sequence = None

    def take(self, frame):
        index = (frame.packet - self.first + 2**31) % 2**32 - 2**31
        self.log.append((index, frame.sequence))
        assert index < self.next + self.window, "inside the window"
        if self.sequence is not None:
            assert frame.sequence == (self.sequence + 1) % 2**16, "one more for each frame"
        self.sequence = frame.sequence
        if self.drop_data(frame):
            return
        if index >= self.next:
            self.ahead[index] = frame
        while self.next in self.ahead:
            packet = self.ahead.pop(self.next)
            assert not self.done, "nothing behind the last packet"
            words = packet.words()
            assert words == list(range(self.words, self.words + len(words))), f"packet {self.next}"
            self.words += len(words)
            self.crc = zlib.crc32(packet.payload[: 8 * len(words)], self.crc)
            self.told = packet.crc
            self.next += 1
            self.done = packet.last is not None
        if self.batch is None:
            if not self.drop_ack(frame):
                self.board.ack(frame)
            return
        self.waiting.append((index, frame))
        if len(self.waiting) == self.batch:
            self.confirm()

    def confirm(self):
        """The block ACK of what waits."""
        index, frame = max(reversed(self.waiting), key=lambda waiting: waiting[0])
        self.waiting = []
        if not self.drop_ack(frame):
            before = [i for i in range(max(0, index - 64), index) if i < self.next or i in self.ahead]
            self.board.ack(frame, stored=sum(1 << index - 1 - i for i in before))

    def run(self, packets, frames=100000):
        """Receives until so many packets are in order, or the end."""
        for _ in range(frames):
            if self.next >= packets or self.done:
                return
            if self.waiting:
                frame = self.board.receive(2 * self.board.frame_time)
                if frame is None:
                    self.confirm()
                    continue
            else:
                frame = self.board.receive(3000 * self.board.frame_time)
            assert frame, f"nothing comes; {self.next} packets are in"
            if frame.is_data:
                self.take(frame)
        raise AssertionError(f"{self.next} of {packets} packets after {frames} frames")

    def start(self, argument=0):
        assert self.board.command(C["CMD_START"], argument, take=self.take) == 0

    def stop(self):
        """STOP, and all that is left."""
        assert self.board.command(C["CMD_STOP"], take=self.take) == 0
        self.run(1 << 40)
        # Lost confirmations make the board send again; it must come to rest.
        for _ in range(3000):
            frame = self.board.receive(2 * self.board.frame_time)
            if frame is not None and frame.is_data:
                self.board.ack(frame)
            elif self.board.status()["running"] == 0:
                return
        raise AssertionError("the board does not come to rest")

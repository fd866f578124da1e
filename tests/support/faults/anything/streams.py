"""Boards with IP: UDP/IP stacks, TCP senders, and crates, which a builder joins."""

import socket
import struct

from support.faults.anything import judge
from support.faults.anything.forged import Wire, link, words
from support.faults.anything.program import Program, Shape, play
from support.faults.anything.world import World
from support.faults.site import PORT, fault
from support.netns import BOARD, FEBS, PC, sh

CONTROL_PORT, STREAM_PORT, OTHER = 10001, 49152, "10.9.0.77"
ENABLE, PEER_IP, PEER_PORT, PAYLOAD = 0x80000001, 0x80000002, 0x80000003, 0x80000004
WRITE, REPLY = 2, 0x82
UDP, TCP = 17, 6
WINDOW_NS = 4096


def address(text):
    return socket.inet_aton(text)


def ip(protocol, payload, source=BOARD, to=PC):
    """An IP packet, with its checksum."""
    head = words((0x4500, 2), (20 + len(payload), 2), (0x4000, 4), (64, 1), (protocol, 1))
    total = sum(struct.unpack(">10H", head + bytes(2) + address(source) + address(to)))
    total = (total & 0xFFFF) + (total >> 16)
    return head + words((~(total + (total >> 16)) & 0xFFFF, 2)) + address(source) + address(to) + payload


def datagram(counter, run, data, is_end):
    """A datagram of the stream of a UDP/IP stack."""
    return words((counter, 4), (len(data) // 8, 2), (run, 1), (is_end, 1)) + data


class Disturbing:
    """What happens to any board with IP. `forges`: nothing of the board's is lost or late, for datagrams of it are forged."""

    def __init__(self, world, program, forges):
        self.world, self.program, self.random, self.forges = world, program, world.random, forges
        self.wire = Wire(world.net, (world.net.board_ns, "feb0"), (world.net.pc_ns, "eth0"), (world.net.pc_ns, "eth0"))
        mac = world.net.run_in(world.net.pc_ns, "cat", "/sys/class/net/eth0/address").strip()
        self.head = bytes.fromhex((mac + FEBS[0]).replace(":", "")) + b"\x08\x00"
        self.kept = []
        # By others, over connections of their own.
        self.sent = []

    def look(self, protocol=UDP):
        """Frames of the board's stream."""
        is_ours = lambda frame: frame[:12] == self.head[:12] and frame[23:24] == bytes([protocol]) and frame[26:30] == address(BOARD)  # noqa: E731
        frames = self.wire.frames(is_ours, 3)
        self.kept = (self.kept + frames)[-20:]
        return frames

    def send(self, packet):
        """A frame to the computer, in the board's name."""
        self.wire.send(self.wire.up, (self.head + packet).ljust(60, b"\0"))

    def replay(self):
        if self.kept:
            self.wire.send(self.wire.up, self.random.choice(self.kept))

    def malformed(self):
        """Frames that are cut, or of which nothing is right behind the addresses."""
        for frame in self.kept or self.look():
            if self.random.random() < 0.5:
                frame = frame[: self.random.randrange(14, len(frame))]
            else:
                frame = frame[: self.random.choice([14, 34])] + self.random.randbytes(len(frame) - 34)
            self.wire.send(self.wire.up, frame)

    def events(self):
        events = {"malformed": self.malformed, "power loss": self.world.power_loss, "the board stands still": lambda: self.world.freeze(self.world.board),
                  "the program stands still": lambda: self.world.freeze(self.program.process), "kill": self.program.kill}  # fmt: skip
        return events if self.forges else events | {"cable out": self.world.cable_out}

    def plan(self, last):
        """Schedules events up to so many seconds."""
        events = self.events()
        for _ in range(self.random.choice([0, 1, 1, 2, 2, 3, 5])):
            name = self.random.choice(list(events))
            self.world.schedule.at(self.random.uniform(0, last), name, events[name])


class DisturbingUdp(Disturbing):
    """The slow control is used by others, and datagrams are forged."""

    def __init__(self, *words):
        super().__init__(*words)
        self.socket = self.world.net.in_namespace(self.world.net.pc_ns, lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))

    def write(self, register, value):
        request = words((self.random.getrandbits(32), 4), (WRITE, 1), (0, 3), (register, 4), (value, 4))
        try:
            self.socket.sendto(request, (BOARD, CONTROL_PORT))
        except OSError:
            pass  # the cable is out

    def control(self):
        """Another program uses the slow control."""
        how = self.random.choice(["stop", "start", "restart", "elsewhere", "elsewhere and back", "payload"])
        self.world.schedule.happened.append(how)
        if how != "start":
            self.write(ENABLE, 0)
        if how == "elsewhere and back" or how == "elsewhere":
            self.write(PEER_PORT, PORT + 5)
            self.write(ENABLE, 1)
        if how == "elsewhere and back":
            self.write(ENABLE, 0)
            self.write(PEER_PORT, PORT)
        if how == "payload":
            self.write(PAYLOAD, 256)
        if how not in ("stop", "elsewhere"):
            self.write(ENABLE, 1)

    def begin_again(self):
        """Another program sets the board up as it was, behind a loss of power."""
        self.write(PEER_IP, int.from_bytes(address(PC), "big"))
        self.write(ENABLE, 1)

    def forge(self):
        """Words or an end of the present run or another one; those of numbers that may come are only forged where none is lost."""
        newest, run = 0, 0
        for frame in self.look():
            if len(frame) >= 50 and frame[36:38] == words((PORT, 2)):
                newest, run = int.from_bytes(frame[42:46], "big"), frame[48]
        random = self.random
        counter = max(newest + random.randrange(-3, 9), 0) if self.forges else newest + 100_000 + random.randrange(1 << 20)
        run = (run + random.choice([0, 0, 0, 1, -1, 127])) % 256
        source, port = random.choice([(BOARD, STREAM_PORT), (BOARD, STREAM_PORT), (BOARD, STREAM_PORT + 1), (OTHER, STREAM_PORT)])
        body = datagram(counter, run, random.randbytes(8 * random.randrange(60)), random.random() < 0.4)
        self.send(ip(UDP, words((port, 2), (PORT, 2), (8 + len(body), 2), (0, 2)) + body, source))

    def reply(self):
        """A reply that the board has not given, to a port that may wait for one."""
        body = words((self.random.getrandbits(8), 4), (REPLY, 1), (0, 3), (ENABLE, 4), (self.random.randrange(2), 4))
        self.send(ip(UDP, words((CONTROL_PORT, 2), (self.random.randrange(32768, 61000), 2), (8 + len(body), 2), (0, 2)) + body))

    def events(self):
        events = super().events() | {"control": self.control, "control ": self.control, "forge": self.forge, "forge ": self.forge,
                                     "reply": self.reply, "begin again": self.begin_again}  # fmt: skip
        return events | {"replay": self.replay} if self.forges else events


class DisturbingTcp(Disturbing):
    """Ports are scanned, and segments are forged."""

    def scan(self):
        """Somebody else connects: closes, resets, or sends something first."""
        with self.world.net.in_namespace(self.world.net.board_ns, lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as scan:
            scan.settimeout(0.5)
            try:
                scan.bind((OTHER, 0))
                scan.connect((PC, PORT))
                if self.random.random() < 0.3:
                    self.sent.append(self.random.randbytes(self.random.choice([1, 8, 100])))
                    scan.send(self.sent[-1])
                if self.random.random() < 0.5:
                    scan.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            except OSError:
                pass  # nobody listens, or the cable is out

    def segment(self):
        """A segment in the board's name: who does not know its numbers can send any."""
        flags = self.random.choice([0x04, 0x11, 0x02, 0x10, 0x18])
        head = words(
            (STREAM_PORT, 2), (PORT, 2), (self.random.getrandbits(32), 4), (self.random.getrandbits(32), 4), (0x50, 1), (flags, 1), (1000, 2), (0, 4)
        )
        body = self.random.randbytes(16) if flags == 0x18 else b""
        pseudo = address(BOARD) + address(PC) + words((TCP, 2), (len(head + body), 2))
        total = sum(struct.unpack(f">{len(pseudo + head + body) // 2}H", pseudo + head + body))
        total = (total & 0xFFFF) + (total >> 16)
        total = ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF
        self.send(ip(TCP, head[:16] + words((total, 2)) + head[18:] + body))

    def board_ends(self):
        """The board closes its connection."""
        if self.world.board:
            self.world.board.signal(15)

    def events(self):
        self.kept = self.look(TCP)
        return super().events() | {
            "scan": self.scan,
            "scan ": self.scan,
            "segment": self.segment,
            "replay": self.replay,
            "the board ends": self.board_ends,
        }


def disturbed(site, options, shape, mode, disturb, forges=False):
    """Receives a board while it is disturbed: the outcome."""
    protocol = options[1]
    sh("ip", "-n", site.net.board_ns, "addr", "add", f"{OTHER}/24", "dev", "feb0")
    world = World(site, *options, start=protocol == "udp")

    def possible(stream, was_killed, size):
        """A TCP sender tells no begin: a program behind a killed one cannot tell that its data begins in the middle."""
        if shape.key and not stream.get("peer", BOARD).startswith(f"{BOARD}:"):
            return disturbing.sent
        if was_killed and protocol != "udp":
            return [data[-size:] if size else b"" for data in world.record.runs().values()]
        return [data for name, data in world.record.runs().items() if name not in program.before]

    program = Program(world, shape, mode, possible)
    disturbing = disturb(world, program, forges)
    return play(program, disturbing, world)


def source(random):
    """Options of a source that ends by itself, or not."""
    return ["--words", random.choice([0, int(10 ** random.uniform(0, 5))]), "--gap", random.choice([0, 20, 500])]


@fault(
    "board-anything-udp",
    "the slow control used by others, datagrams, ends, replies and senders forged and malformed, loss of power, the cable out, programs that stand "
    "still, are killed and begin again, a disk that fails", "words", judge.PROMISE,
)  # fmt: skip
def udp(site):
    random = site.random
    forges = random.random() < 0.5
    # Else hardly any run is whole: nothing is sent again.
    is_good = forges or random.random() < 0.5
    options = ["--protocol", "udp", "--phy", "gmii", "--stopped", "--payload", random.choice([72, 520, 1472]), "--link", link(random, is_good),
               *source(random)]  # fmt: skip
    words = ("receive", "--udp", PORT, "--board", BOARD, *("--streams", 1) * (random.random() < 0.5))
    table = f'[[udp]]\nname = "a"\naddress = "{BOARD}"\nport = {PORT}\n'
    shape = Shape(words, lambda folder: ("--out", folder / "{stream}.dat"), "streams", table)
    return disturbed(site, options, shape, random.choice(["command", "run"]), DisturbingUdp, forges)


@fault(
    "board-anything-tcp",
    "ports scanned, segments forged and malformed, loss of power, the cable out, programs that stand still, are killed and begin again, a disk that "
    "fails", "words", judge.PROMISE,
)  # fmt: skip
def tcp(site):
    random = site.random
    options = ["--protocol", "tcp", "--phy", "gmii", "--link", link(random, random.random() < 0.5), *source(random)]
    words = ("receive", "--tcp", PORT, *("--streams", 1) * (random.random() < 0.5))
    table = f'[[tcp]]\nname = "a"\naddress = "{BOARD}"\nport = {PORT}\n'
    shape = Shape(words, lambda folder: ("--out", folder / "{stream}.dat"), "streams", table)
    return disturbed(site, options, shape, random.choice(["command", "run"]), DisturbingTcp)


@fault("board-anything-crates", "the same, a crate and `build`", "words", judge.PROMISE)
def crates(site):
    random = site.random
    options = ["--protocol", "fadc", "--phy", "gmii", "--small", "--window-ns", WINDOW_NS, "--windows", random.choice([0, 1, 20, 200]),
               "--pulse-rate", random.choice([0, 1e6, 1e7]), "--link", link(random, random.random() < 0.5)]  # fmt: skip
    words = ("build", "--tcp", PORT, "--window-ns", WINDOW_NS, "--expect", 1, *("--streams", 1) * (random.random() < 0.5))
    table = f'[[crates]]\nname = "a"\nport = {PORT}\nwindow_ns = {WINDOW_NS}\nexpect = 1\n'
    shape = Shape(words, lambda folder: ("--sink", f"file:{folder}/a.dat"), None, table)
    return disturbed(site, options, shape, random.choice(["command", "run"]), DisturbingTcp)

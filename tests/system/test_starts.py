"""START that is obeyed and not answered, late, or sent twice: what is called complete is all that the board has taken."""

import json
import random
import signal
import struct

import pytest
from support.netns import BOARD, FEBS, add_address, report, wait_for
from support.paths import FADELINK, SEED, VECTORS
from support.relay import Obeyed, Relayed, permit_of
from support.resets import reset

PROTOCOLS = ["fade10g", "fade1"]
U = json.loads((VECTORS / "udp.json").read_text())["constants"]
SLOW = ["--gap", 2000]


@pytest.fixture
def cable(tmp_path):
    cable = Relayed(tmp_path)
    yield cable
    cable.close()


class Board:
    """A board of a kind; `record`: the files of the words that each of its lives has taken."""

    def __init__(self, cable, kind, protocol, *options):
        self.cable, self.kind, self.protocol, self.options, self.lives = cable, kind, protocol, options, 0
        self.switch_on()

    def switch_on(self):
        self.lives += 1
        if self.kind == "rtl":
            record = self.cable.tmp / f"record{self.lives}"
            self.process = self.cable.sim("--protocol", self.protocol, "--random", "--source-seed", self.lives, "--record", record, *self.options)
        else:
            words = ["feb", "--iface", "feb0", "--feb", FEBS[0], "--protocol", self.protocol]
            self.process = self.cable.start(self.cable.board_ns, FADELINK, *words)

    def switch_off(self):
        self.process.signal(15)
        self.process.finish()

    def taken(self):
        """All words of all lives; the board is switched off."""
        self.switch_off()
        return b"".join(record.read_bytes() for record in sorted(self.cable.tmp.glob("record*")))


def ends(receiver, *files):
    """The receiver, when it has ended, or one of the files has something and it was asked for the end."""
    wait_for(lambda: receiver.popen.poll() is not None or any(file.exists() and file.stat().st_size > 0 for file in files))
    receiver.signal(signal.SIGINT)
    return receiver.finish()


def check(cable, board, receiver, out, *begun):
    """The verdict, and what was received; complete only if that is all that the board has taken. It ends when there is something in `out`,
    or in `begun`."""
    code, found = report(ends(receiver, *(begun or [out])))
    feb, data = found["febs"][0], out.read_bytes()
    assert (code == 0) == (feb["verdict"] == "complete"), found
    if board.kind == "rtl":
        taken = board.taken()
        rest = data[len(taken) :]
        is_all = data[: len(taken)] == taken and rest == b"\xa5" * len(rest)
        assert is_all or code == 3, (len(data), len(taken), found)
    return feb, [reason["reason"] for reason in feb["reasons"]]


@pytest.mark.parametrize("given", ["protocol", "nothing"])
@pytest.mark.parametrize("kind", ["rtl", "software"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("what", ["reset", "power"])
def test_what_was_obeyed_and_is_gone_is_told(cable, what, protocol, kind, given):
    """Before START is answered the board is reset, or loses its power; START is sent again. The words that it had taken are lost."""
    obeyed, out = Obeyed(cable), cable.tmp / "data"
    board = Board(cable, kind, protocol, *SLOW)
    options = ["--protocol", protocol] if given == "protocol" else []
    receiver = cable.receive("--out", out, *options)
    wait_for(lambda: obeyed.starts)
    if kind == "rtl":
        wait_for(lambda: any(record.stat().st_size for record in cable.tmp.glob("record*")))
    if what == "reset":
        raw = cable.raw(cable.pc_ns, "eth0")
        raw.send(reset(protocol))
        raw.close()
    else:
        board.switch_off()
        board.switch_on()
    obeyed.until()
    feb, reasons = check(cable, board, receiver, out)
    assert feb["verdict"] == "incomplete" and "begun_again" in reasons, feb
    assert out.stat().st_size > 0, "and receiving goes on"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_late_copies_of_start_begin_nothing(cable, protocol):
    """RESET while data flows, and then START again, as it was."""
    starts, out = [], cable.tmp / "data"

    def rule(up, frame):
        if not up and permit_of(frame):
            starts.append(frame)
        return [(0, up, frame)]

    cable.rule = rule
    board = Board(cable, "rtl", protocol)
    receiver = cable.receive("--out", out, "--protocol", protocol)
    cable.wait_for_frames(20)
    raw = cable.raw(cable.pc_ns, "eth0")
    for frame in [reset(protocol), *starts * 3]:
        raw.send(frame)
    raw.close()
    feb, reasons = check(cable, board, receiver, out)
    assert "board" in reasons and feb["verdict"] == "incomplete", feb
    # The board has begun nothing more.
    assert len(list(cable.tmp.glob("record*"))) == 1


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_network_that_copies_all(cable, protocol):
    """Each frame comes again, up to 0.2 s later. START is obeyed once; a late RESET of this program ends a transmission of FADE v1."""
    generator, out = random.Random(SEED), cable.tmp / "data"
    cable.rule = lambda up, frame: [(0, up, frame), (generator.uniform(0.001, 0.2), up, frame)]
    board = Board(cable, "rtl", protocol, "--gap", 100)
    receiver = cable.receive("--out", out, "--protocol", protocol)
    # The transmission may be ended before any of its data arrives.
    feb, reasons = check(cable, board, receiver, out, cable.tmp / "record1.1.1")
    assert feb["verdict"] == "complete" or protocol == "fade1", feb


def test_a_udp_board_that_was_switched_off_is_told(cable):
    """The answer to the write that enables its stream, and what it sends, is lost; it loses its power; the write is repeated."""
    add_address(cable)
    state = {"enabled": False, "is_deaf": False}

    def rule(up, frame):
        is_udp = frame[12:14] == b"\x08\x00" and frame[23] == 17
        source, port = struct.unpack(">HH", frame[34:38]) if is_udp else (0, 0)
        request = struct.unpack(">BBHII", frame[46:58]) if is_udp and U["CONTROL_PORT"] in (source, port) else None
        if not up and request and (request[0], *request[3:]) == (U["CONTROL_WRITE"], U["REGISTER_ENABLE"], 1) and not state["enabled"]:
            state.update(enabled=True, is_deaf=True)
        return [] if up and is_udp and state["is_deaf"] else [(0, up, frame)]

    cable.rule = rule
    options = ["--protocol", "udp", "--stopped", "--random", "--gap", 200]
    boards = [cable.sim(*options, "--record", cable.tmp / "record1")]
    sink = f"file:{cable.tmp}/{{stream}}.dat"
    words = ["receive", "--udp", 10000, "--board", BOARD, "--sink", sink, "--json"]
    receiver = cable.fadelink(*words)
    wait_for(lambda: state["enabled"])
    boards[0].signal(15)
    boards[0].finish()
    boards.append(cable.sim(*options, "--record", cable.tmp / "record2"))
    state["is_deaf"] = False
    wait_for(lambda: list(cable.tmp.glob("*.dat")))
    code, found = report(ends(receiver, *cable.tmp.glob("*.dat")))
    boards[1].signal(15)
    boards[1].finish()
    stream = found["streams"][0]
    assert code == 3 and [reason["reason"] for reason in stream["reasons"]] == ["board"], found
    assert "switched off and on" in stream["reasons"][0]["text"] and stream["bytes"] > 0, found
    taken = [sum(record.stat().st_size for record in cable.tmp.glob(f"record{life}*")) for life in (1, 2)]
    assert taken[0] > 0 and taken[1] >= stream["bytes"], "words of the first life are lost"

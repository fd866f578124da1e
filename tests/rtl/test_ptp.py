"""PTP in simulated time: message by message against peers made with scapy, and a master and a slave on one cable."""

import json
import re
import struct
import subprocess

import pytest
from support.block import SEED
from support.paths import TOP
from support.ptp_board import (
    ALTERNATE,
    ANNOUNCE,
    BEST,
    DELAY_REQ,
    DELAY_RESP,
    FOLLOW_UP,
    IDENTITY,
    INTERVAL,
    IS_MASTER,
    IS_SLAVE,
    LISTENING,
    LOG,
    MANAGEMENT,
    MASTER,
    PDELAY_FOLLOW,
    PDELAY_REQ,
    PDELAY_RESP,
    PEER,
    PEER_TO_PEER,
    SECOND,
    SLAVE,
    SYNC,
    TWO_STEP,
    Master,
    PtpBoard,
    live,
    message,
)  # fmt: skip
from support.ptp_machine import PROGRAM, assemble
from support.udp_board import PHYS, C

OTHER = bytes.fromhex("02fadefffe0000ff0001")
ETHERNET = [pytest.param(phy, ethernet, id=f"{phy}-{'ethernet' if ethernet else 'udp'}") for phy in PHYS for ethernet in (False, True)]
ANNOUNCE_INTERVAL = 2  # intervals of Sync


def slave(phy="gmii", ethernet=False, role=SLAVE, intervals=30, **master):
    """A board that follows a master."""
    board = PtpBoard(phy, role, ethernet)
    found = Master(board, **master)
    live(board, [found], intervals + 0.5)
    assert board.found("STATE") == IS_SLAVE
    return board, found


def test_the_programs_registers_are_those_of_the_package():
    found = {f"REGISTER_PTP_{name.upper()}": C["REGISTER_PTP_ROLE"] + i for i, name in enumerate(PROGRAM.registers)}
    assert found == {name: value for name, value in C.items() if name.startswith("REGISTER_PTP_")}


@pytest.mark.parametrize(
    "line,says",
    [
        ("mov t, stamp", "t has 6 words, stamp 3"), ("mov nothing, t", "expected a name"), ("jmp nowhere", "nowhere"),
        ("mov byte, #65536", "65536: expected a number of 1 words"), ("neg t", "neg: expected an instruction"),
        ("mov t[5:2], stamp[0:2]", "t[5:2]: expected at most 6 words"), ("var t 3", "name twice"),
    ],
)  # fmt: skip
def test_the_assembler_says_what_is_wrong(line, says):
    texts = assemble.texts() | {"more.asm": f"; A comment.\n{line}\n"}
    with pytest.raises(assemble.ProgramError, match=re.escape(f"more.asm:2: {line}: ")) as error:
        assemble.Program(texts)
    assert says in str(error.value)


@pytest.mark.parametrize("phy,ethernet", ETHERNET)
def test_a_master_speaks(phy, ethernet):
    """Sync each interval, its Follow_Up with the time at which it left, Announce with each second one."""
    board = PtpBoard(phy, MASTER, ethernet)
    kinds, left, told = [], {}, {}
    for _ in range(25):
        heard = board.hear()
        payload = heard.payload
        kinds.append(heard.kind)
        if heard.kind == SYNC:
            assert payload[6:8] == b"\2\0" and payload[32] == 0 and payload[33] == 256 + LOG and heard.stamp == 0
            left[heard.sequence] = heard.left
        elif heard.kind == FOLLOW_UP:
            assert payload[32] == 2 and heard.sequence in left
            told[heard.sequence] = heard.stamp
        else:
            assert heard.kind == ANNOUNCE and payload[33] == 257 + LOG and len(payload) == 64
            assert payload[44:] == struct.pack(">HBBIB8sHB", 0, 0, 128, 0xF8FEFFFF, 128, IDENTITY[:8], 0, 0xA0)
    assert abs(2 * kinds.count(ANNOUNCE) - kinds.count(SYNC)) <= 2
    first = min(told)
    assert list(told) == list(range(first, first + len(told))) and len(told) >= 9
    # The board's clock is the simulation's: the time is the wire's, half a clock of the crossing apart.
    at_zero = board.error()
    errors = [told[n] - left[n] - at_zero for n in told]
    assert max(errors) - min(errors) < 2 and abs(errors[0]) < 10, errors
    gaps = [told[n + 1] - told[n] for n in list(told)[:-1]]
    assert all(abs(gap - 1000 * INTERVAL) < 20_000 for gap in gaps) and abs(sum(gaps) / len(gaps) - 1000 * INTERVAL) < 2000, gaps


@pytest.mark.parametrize("phy,ethernet", ETHERNET)
def test_a_master_answers(phy, ethernet):
    board = PtpBoard(phy, MASTER, ethernet)
    for sequence in (7, 0xFFFF):
        at = board.ns()
        board.tell(message(DELAY_REQ, sequence, correction=12345), event=True)
        heard = board.hear_kind(DELAY_RESP)
        assert heard.sequence == sequence and heard.requesting == PEER and heard.payload[32] == 3
        # The correction goes back; the stamp is that of the first byte behind the delimiter.
        assert int.from_bytes(heard.payload[8:16], "big") == 12345 << 16
        assert 0 <= heard.stamp - at - board.error() < 200, (heard.stamp, at, board.error())


@pytest.mark.parametrize("phy,ethernet", ETHERNET)
def test_a_slave_asks_its_master_and_takes_its_time(phy, ethernet):
    """Not before the second Announce; then Delay_Req at random times, one an interval in the mean, and the master's time."""
    board = PtpBoard(phy, SLAVE, ethernet)
    master = Master(board)
    live(board, [master], 1.9)
    assert board.found("STATE") == LISTENING
    said = live(board, [master], 45)
    asked = [heard for heard in said if heard.kind == DELAY_REQ]
    assert all(heard.payload[33] == 0x7F and heard.payload[32] == 1 for heard in asked) and 25 < len(asked) < 65
    assert [heard.sequence for heard in asked] == list(range(asked[0].sequence, asked[0].sequence + len(asked)))
    gaps = [(b.left - a.left) / 1000 / INTERVAL for a, b in zip(asked, asked[1:])]
    assert min(gaps) < 0.4 and 1.4 < max(gaps) < 2.2, gaps
    assert board.found("LOCKED") == 1 and board.found("STATE") == IS_SLAVE
    assert board.read(C["REGISTER_PTP_SECONDS"]) == 1_800_000_000
    assert abs(board.error() - master.origin) < 60 and abs(board.found("OFFSET")) < 30
    assert board.counters()["ptp_offsets"] > 35


def test_what_is_not_for_this_clock_is_counted():
    board, _ = slave()
    before = board.counters()
    ignored = [message(ANNOUNCE, 1, source=IDENTITY), message(ANNOUNCE, 1, source=OTHER, flags=ALTERNATE),
               message(ANNOUNCE, 1, source=OTHER, steps=255), message(SYNC, 1, source=OTHER, flags=TWO_STEP),
               message(FOLLOW_UP, 9), message(DELAY_RESP, 1, requesting=OTHER), message(DELAY_RESP, 1, requesting=IDENTITY, source=OTHER),
               message(DELAY_REQ, 1), message(ANNOUNCE, 2, domain=4), message(12, 1),
               message(PDELAY_REQ, 1, requesting=bytes(10)), message(PDELAY_RESP, 1, requesting=IDENTITY),
               message(MANAGEMENT, 1, requesting=OTHER, tail=bytes(10))]  # fmt: skip
    malformed = [message(SYNC, 1, version=1), message(SYNC, 1, length=43), message(SYNC, 1, length=60),
                 message(DELAY_RESP, 1), message(PDELAY_RESP, 1), message(MANAGEMENT, 1), message(ANNOUNCE, 1)[:60],
                 b"\0\2\0\54"]  # fmt: skip
    for payload in ignored + malformed:
        board.tell(payload, event=True)
        live(board, [], 0.05)
    found = {name: value - before[name] for name, value in board.counters().items()}
    assert (found["drop_ptp_ignored"], found["drop_ptp_malformed"]) == (len(ignored), len(malformed))
    assert found["ptp_offsets"] == found["drop_ptp_full"] == 0


def test_messages_that_come_faster_than_they_are_read_are_counted():
    board, _ = slave()
    before = board.counters()
    for sequence in range(100):
        board.tell(message(SYNC, sequence, source=OTHER), event=True)
    live(board, [], 3)
    found = {name: value - before[name] for name, value in board.counters().items()}
    assert found["drop_ptp_ignored"] + found["drop_ptp_full"] == 100 and found["drop_ptp_full"] > 10 and found["drop_ptp_ignored"] >= 4


def test_a_step_in_one_message_and_corrections():
    """A one-step Sync carries its time itself; corrections are taken off."""
    board, master = slave()
    master.alive = False
    offsets = []
    for sequence, correction in ((100, 0), (101, 700)):
        board.tell(message(SYNC, sequence, master.time(), correction=correction), event=True)
        live(board, [], 0.2)
        offsets.append(board.found("OFFSET"))
        live(board, [master], 0.8)
    assert abs(offsets[0]) < 60 and abs(offsets[1] - offsets[0] + 700) < 60, offsets


@pytest.mark.parametrize("better", ["old", "new", "same"])
def test_another_master_takes_over_within_three_announce_intervals(better):
    """Two masters of one time, one ends: whichever was the better one, the other's is followed, and the clock does not jump."""
    board = PtpBoard("gmii", SLAVE)
    priorities = {"old": (100, 110), "new": (110, 100), "same": (128, 128)}[better]
    masters = [Master(board, OTHER, priority=priorities[0]), Master(board, PEER, priority=priorities[1], begin=300)]
    live(board, masters, 30)
    # PEER's number is lower.
    followed, other = masters if better == "old" else masters[::-1]
    errors = []
    followed.alive = False
    died = board.ns()
    asked = []
    other_answers = other.answer

    def answer(heard):
        asked.append(heard)
        other_answers(heard)

    other.answer = answer
    before = board.counters()["ptp_offsets"]
    taken = None
    while board.ns() < died + 60e3 * INTERVAL:
        live(board, [other], 0.25)
        errors.append(board.error() - other.origin)
        if taken is None and board.counters()["ptp_offsets"] > before + 1:
            taken = (board.ns() - died) / 1000 / INTERVAL / ANNOUNCE_INTERVAL
            assert board.found("STATE") in (IS_SLAVE, 8)
    assert taken is not None and taken <= 4, taken
    assert max(errors) - min(errors) < 100 and board.found("LOCKED") == 1, (min(errors), max(errors))


def test_the_best_clock_is_the_master():
    """In the role of the best: master while nobody is heard, or only worse ones; slave of a better one; master again when that gets worse."""
    board = PtpBoard("gmii", BEST)
    live(board, [], 5)
    assert board.found("STATE") == LISTENING
    said = live(board, [], 4)
    assert board.found("STATE") == IS_MASTER and {ANNOUNCE, SYNC, FOLLOW_UP} == {heard.kind for heard in said}
    worse = Master(board, priority=129)
    live(board, [worse], 8)
    assert board.found("STATE") == IS_MASTER
    better = Master(board, OTHER, quality=0x06FEFFFF)
    said = live(board, [worse, better], 12)
    assert board.found("STATE") == IS_SLAVE and all(heard.kind == DELAY_REQ for heard in said[-5:])
    better.announced["priority"] = 200
    live(board, [worse, better], 12)
    assert board.found("STATE") == IS_MASTER
    better.announced.update(priority=128, quality=0xF8FEFFFF, priority2=127)
    live(board, [worse, better], 12)
    assert board.found("STATE") == IS_SLAVE
    # And it is the better one, once its own priority is higher.
    assert board.setting("PRIORITIES", 0x7F80) == 0
    said = live(board, [worse, better], 14)
    assert board.found("STATE") == IS_MASTER
    assert [heard.payload[47] for heard in said if heard.kind == ANNOUNCE][-1] == 0x7F


def test_of_one_grandmaster_the_nearer_way_is_taken():
    grandmaster = bytes(8)
    board = PtpBoard("gmii", SLAVE)
    far, near = Master(board, PEER, grandmaster=grandmaster, steps=3), Master(board, OTHER, grandmaster=grandmaster, steps=2, begin=300)
    live(board, [far, near], 15)
    assert board.found("STEPS") == 2
    near.alive = False
    live(board, [far], 15)
    assert board.found("STEPS") == 3 and board.found("STATE") == IS_SLAVE


def test_utc_is_passed_through():
    """What the master says of it is in a register; as a master, the board says what was written."""
    board, _ = slave(role=BEST, utc=37, flags=0x3C, time_source=0x20, priority=1)
    assert board.read(C["REGISTER_PTP_UTC_USED"]) == 0x203C0025
    assert board.setting("UTC", 0x103E0026) == 0
    board.setting("ROLE", MASTER)
    heard = board.hear_kind(ANNOUNCE)
    assert heard.payload[6:8] == b"\0\x3e" and heard.payload[44:46] == b"\0\x26" and heard.payload[63] == 0x10


def test_another_domain():
    board = PtpBoard("gmii", SLAVE)
    assert board.setting("DOMAIN", 256) == C["STATUS_ADDRESS"] and board.setting("DOMAIN", 200) == 0
    masters = [Master(board, OTHER), Master(board, domain=200)]
    said = live(board, masters, 15)
    assert board.found("STATE") == IS_SLAVE and said and all(heard.payload[4] == 200 for heard in said)


def test_settings_that_are_none_are_refused():
    board = PtpBoard("gmii", 0)
    for name, value in (("ROLE", 4), ("TRANSPORT", 2), ("MECHANISM", 0), ("MECHANISM", 3), ("CLOCKS", 999), ("OFFSET", 1), ("STATE", 6)):
        assert board.setting(name, value) == C["STATUS_ADDRESS"], name
    assert board.control(C["CONTROL_READ"], C["REGISTER_PTP_STEPS"] + 1)[0] == C["STATUS_ADDRESS"]
    assert board.found("LOG") == LOG and board.setting("LOG", 0xFE) == 0 and board.found("LOG") == -2
    assert board.setting("SECONDS", 4_000_000_000) == 0 and board.read(C["REGISTER_PTP_SECONDS"]) == 4_000_000_000
    ns = board.read(C["REGISTER_PTP_NS"])
    assert abs(board.error() + board.ns() - 4_000_000_000 * SECOND - ns) < 200_000


@pytest.mark.parametrize("phy,ethernet", ETHERNET)
def test_peer_delay_is_measured_and_answered(phy, ethernet):
    """Of a peer that takes 40 us, and whose ways are 1000 ns longer than the wire; and the board's own times as the peer."""
    board = PtpBoard(phy, SLAVE, ethernet)
    assert board.setting("MECHANISM", PEER_TO_PEER) == 0
    found = []

    def answer(heard):
        if heard.kind != PDELAY_REQ:
            found.append(heard)
            return
        came = 10**6 + round(heard.left) + 1000
        live(board, [], 40 / INTERVAL)
        left = 10**6 + round(board.ns())
        common = {"requesting": IDENTITY}
        board.tell(message(PDELAY_RESP, heard.sequence, came, flags=TWO_STEP, correction=0, **common), event=True)
        board.tell(message(PDELAY_FOLLOW, heard.sequence, left - 1000, correction=0, **common))

    live(board, [], 20, answer)
    assert not found and abs(board.found("DELAY") - 1000) < 60
    at = board.ns()
    board.tell(message(PDELAY_REQ, 77, requesting=bytes(10), correction=5), event=True)
    found = [heard for heard in live(board, [], 0.5) if heard.kind != PDELAY_REQ]
    response, follow = found
    assert (response.kind, follow.kind) == (PDELAY_RESP, PDELAY_FOLLOW)
    for heard in found:
        assert heard.sequence == 77 and heard.requesting == PEER
    assert response.payload[6] == 2 and int.from_bytes(response.payload[8:16], "big") == 0
    assert int.from_bytes(follow.payload[8:16], "big") == 5 << 16
    assert 0 <= response.stamp - at - board.error() < 200 and abs(follow.stamp - response.left - board.error()) < 10


def managed(board, identifier, target=b"\xff" * 10, action=0, hops=0x0100, tail=b""):
    """The answer to a management message: (TLV type, identifier or error, data); None if there is none."""
    tlv = struct.pack(">BBBBHHH", hops >> 8, hops & 255, action, 0, 1, 2 + len(tail), identifier) + tail
    board.tell(message(MANAGEMENT, 5, requesting=target, tail=tlv, log=0x7F))
    answers = [heard for heard in live(board, [], 0.3) if heard.kind == MANAGEMENT]
    if not answers:
        return None
    payload = answers[0].payload
    assert len(answers) == 1 and payload[30:32] == b"\0\5" and payload[32:34] == b"\x04\x7f" and payload[34:44] == PEER
    assert payload[44:47] == bytes([1, 1, 4 if action == 3 else 2]), payload[44:47]
    kind, length, what = struct.unpack(">HHH", payload[48:54])
    assert length == len(payload) - 52
    return kind, what, payload[54:]


def test_management_describes_the_clock():
    board, master = slave(priority=77, priority2=66, quality=0x06210123, steps=4, utc=37, flags=0x3C, time_source=0x20, grandmaster=bytes(range(8)))
    default = struct.pack(">BBHBIB8sBB", 3, 0, 1, 128, 0xF8FEFFFF, 128, IDENTITY[:8], 0, 0)
    assert managed(board, 0x2000) == (1, 0x2000, default)
    kind, what, current = managed(board, 0x2001)
    steps, offset, delay = struct.unpack(">Hqq", current)
    assert steps == 4 and abs(offset) < 100 << 16 and 0 <= delay < 200 << 16
    parent = PEER + struct.pack(">BBHIBIB8s", 0, 0, 0xFFFF, 0x7FFFFFFF, 77, 0x06210123, 66, bytes(range(8)))
    assert managed(board, 0x2002) == (1, 0x2002, parent)
    assert managed(board, 0x2003) == (1, 0x2003, struct.pack(">HBB", 37, 0x3C, 0x20))
    port = IDENTITY + struct.pack(">BbqbBbBbB", IS_SLAVE, LOG, 0, LOG + 1, 3, LOG, 1, LOG, 2)
    assert managed(board, 0x2004) == (1, 0x2004, port)
    description = (
        b"\x80\0\x09IEEE802.3\0\6" + IDENTITY[:3] + IDENTITY[5:8] + b"\0\1\0\4\x0a\x09\0\2" + bytes(4)
        + b"\x11Fadelink;UDP/IP;-\x03;1;\x03FEB" + bytes.fromhex("001b19000100")
    )  # fmt: skip
    assert managed(board, 0x0001) == (1, 1, description)
    assert managed(board, 0x0000) == (1, 0, b"")
    # By name of this port, or of this clock and all its ports.
    assert managed(board, 0x2003, IDENTITY) == managed(board, 0x2003, IDENTITY[:8] + b"\xff\xff") == managed(board, 0x2003)
    assert managed(board, 0x2003, OTHER) is None and managed(board, 0x2003, IDENTITY[:8] + b"\0\2") is None
    # What there is not, and what cannot be done: MANAGEMENT_ERROR_STATUS.
    assert managed(board, 0x2006) == (2, 2, struct.pack(">HI", 0x2006, 0))
    assert managed(board, 0x2000, action=1) == (2, 6, struct.pack(">HI", 0x2000, 0))
    assert managed(board, 0x2000, action=3) == (2, 6, struct.pack(">HI", 0x2000, 0))
    assert managed(board, 0x2000, action=2) is None and managed(board, 0x2000, action=4) is None


def test_without_a_role_the_ports_are_closed():
    board = PtpBoard("gmii", 0)
    board.tell(message(SYNC, 1), event=True)
    board.silent(100)
    assert board.counters()["drop_ip_destination"] == 1


@pytest.mark.parametrize("ethernet", [False, True])
def test_one_transport_is_open(ethernet):
    board, _ = slave(ethernet=ethernet)
    before = board.counters()
    board.ethernet = not ethernet
    board.tell(message(SYNC, 1), event=True)
    board.ethernet = ethernet
    live(board, [], 0.1)
    after = board.counters()
    assert {name for name in after if after[name] > before[name]} == {"drop_port" if ethernet else "drop_destination"}


def pair(*options, limit=65, settle=45):
    words = [TOP / "build/sim/fadelink-sim", "--virtual", "--protocol", "udp", "--ptp-pair", "--seed", SEED,
             "--settle-ms", settle, "--limit-ms", limit, *options]  # fmt: skip
    result = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    return json.loads(result.stdout)


PERIOD = {"gmii": 8, "xgmii": 6.4}


@pytest.mark.parametrize(
    "phy,ppm",
    [
        pytest.param("gmii", -100, marks=pytest.mark.long),
        pytest.param("gmii", 0, marks=pytest.mark.long),
        pytest.param("gmii", 100, marks=pytest.mark.long),
        pytest.param("xgmii", 100, marks=pytest.mark.long),
    ],
)
def test_a_slave_holds_its_master(phy, ppm):
    """Inside a clock period; without an error of the oscillator a constant under 8 ns, and no deviation but the reading's.

    A reading is up to a period old, of both clocks: uniform, they deviate by period / sqrt(6).
    """
    found = pair("--phy", phy, "--slave-ppm", ppm, "--rtt", 2)
    assert found["locked"] and abs(found["offset"]["mean"]) < PERIOD[phy]
    assert found["offset"]["deviation"] < PERIOD[phy]
    assert abs(found["rate_ppm"] + found["slave_ppm"]) < 10
    if ppm == 0:
        assert abs(found["own_offset"]["mean"]) < 8 and found["own_offset"]["deviation"] < 2
    for board in found["boards"]:
        assert board["drop_ptp_malformed"] == 0 and board["drop_mac"] == 0


@pytest.mark.parametrize("microseconds,phy", [(2, "gmii"), pytest.param(20, "xgmii", marks=pytest.mark.long)])
def test_the_path_delay_is_measured(microseconds, phy):
    """The cable, and what the frame takes from delimiter to end, for the simulated link hands over whole frames."""
    found = pair("--phy", phy, "--rtt", microseconds, limit=50, settle=30)
    size = 44 + 42 + 4
    transfer = size * 8 + 56 if phy == "gmii" else size // 8 * 6.4
    least = 1000 * microseconds / 2 + transfer
    assert least - 4 <= found["path_delay"]["mean"] <= least + PERIOD[phy] + 4


@pytest.mark.long
def test_an_asymmetric_path_shows_as_half_the_difference():
    """No clock can see this; the figure proves that the offset is measured, not assumed."""
    found = pair("--phy", "gmii", "--down", "delay=3us", "--up", "delay=1us", limit=60, settle=40)
    assert abs(found["offset"]["mean"] + 1000) < 8


def test_lost_messages_do_no_harm():
    found = pair("--phy", "gmii", "--link", "delay=1us,loss=0.1", "--slave-ppm", 50)
    assert found["locked"] and abs(found["offset"]["mean"]) < 50

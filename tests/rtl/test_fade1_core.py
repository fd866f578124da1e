"""The FADE v1 core behind its GMII MAC, from pin to pin."""

import random
import zlib

import pytest
from support.block import C1, SEED
from support.board import PC, US, C, with_fcs
from support.board import request as identify
from support.fade1_board import SETS, Fade1, request

OTHER = bytes.fromhex("02fade0000f1")


def test_in_order_without_loss():
    board = Fade1()
    board.start()
    board.run(200)
    board.stop()
    board.check()
    assert board.log == list(range(len(board.log))), "each packet once, in order"
    assert board.status()["retransmitted"] == 0 and board.status()["sent"] == board.next


def test_back_to_back_at_the_limit_of_the_line():
    board = Fade1()
    board.start()
    board.run(10)
    times = []
    while len(times) < 40:
        packet = board.receive(100 * US)
        times.append(packet.at)
        board.take(packet)
    wire = (8 + C1["DATA_FRAME_LEN"] + 4 + 12) * 8000
    assert [b - a for a, b in zip(times, times[1:])] == [wire] * 39, "preamble and gap included"


@pytest.mark.parametrize("words", [1, 127, 128, 129, 33 * 128 + 5])
def test_stop_sends_all_that_was_taken(words):
    """The packet being filled is filled up; one without a word is not sent."""
    board = Fade1(limit=words)
    board.start()
    board.run(words // 128)
    assert board.receive(100 * US) is None
    board.stop()
    board.check(words)
    assert board.next == (words + 127) // 128


@pytest.mark.parametrize("words", [5, 128, 70 * 128 + 5])
def test_the_state_is_told(words):
    """Before, while and after a transmission, to STOP and IDENTIFY: how it has ended, and how many packets it had."""
    board = Fade1(limit=words)
    packets = (words + 127) // 128

    def told(frame=None):
        if frame:
            board.send(frame)
        while not board.states and (packet := board.receive(1000 * US)):
            board.take(packet)
        at, *state, resets, by, checksum, permit = board.states.pop()
        assert resets == permit == 0 and not any(by)
        crc = zlib.crc32(b"".join(i.to_bytes(8, "little") for i in range(words)))
        assert checksum == ((words % 128, crc) if state[0] == C1["STATE_ENDED"] else None)
        return state

    ask = identify(C["CMD_IDENTIFY"])
    assert told(ask) == [C1["STATE_NONE"], 0, 0]
    board.start(0x1234)
    assert told() == [C1["STATE_RUNNING"], 0x1234, 0]
    board.run(words // 128)
    assert told(ask) == [C1["STATE_RUNNING"], 0x1234, words // 128]
    board.start(0x4321)
    assert told() == [C1["STATE_RUNNING"], 0x1234, words // 128], "it runs already"
    board.stop()
    assert board.states.pop().state == C1["STATE_STOPPING"]
    assert told(ask) == [C1["STATE_ENDED"], 0x1234, packets] and board.next == packets
    board.start(0xFFFF)
    assert told()[:2] == [C1["STATE_RUNNING"], 0xFFFF]


def test_who_has_sent_reset_is_told():
    """Since START, from any computer; RESETs before it do not count."""
    board = Fade1()
    board.send(request(C1["TYPE_RESET"]))
    board.start(0xFFFF)
    board.run(3)
    assert board.states.pop()[1:] == (C1["STATE_RUNNING"], 0xFFFF, 0, 0, bytes(6), None, 0)
    for count, source in enumerate((OTHER, PC), 1):
        board.send(request(C1["TYPE_RESET"], src=source))
        board.send(identify(C["CMD_IDENTIFY"]))
        while not board.states:
            board.receive(100 * US)
        _, state, transmission, _, *resets, checksum, _ = board.states.pop()
        assert checksum is None, "it did not end by STOP"
        assert [state, transmission, *resets] == [C1["STATE_RESET"], 0xFFFF, count, source]


@pytest.mark.parametrize("kind", ["data", "ack"])
def test_single_loss(kind):
    """One frame is lost: its packet goes again, and no other; the next set goes on meanwhile."""
    lost = []

    def lose(what, packet):
        if what == kind and packet.set * 32 + packet.packet == 20 and not lost:
            lost.append(packet)
            return True
        return False

    board = Fade1(lose=lose)
    board.start()
    board.run(120)
    board.stop()
    board.check()
    assert [n for i, n in enumerate(board.log) if n in board.log[:i]] == [20] and lost
    assert board.status()["retransmitted"] == 1


def test_a_confirmation_does_not_change_the_frame_that_it_meets():
    """A packet is confirmed while it is sent again, and the source has more: the frame has its words to the end."""
    board = Fade1()
    board.start()
    number = lambda packet: packet.set * 32 + packet.packet
    met, newest, step = 0, -1, 0
    while newest < 31:
        newest = number(board.receive(1000 * US))
    while met < 3:
        again = number(board.receive(60_000 * US))
        step = step % 20 + 1
        if again == newest or board.receive(step * 2 * US):
            continue
        # It may be on its way now.
        board.ack(again + 1, stored=2**32 - 1)
        while newest < again + 1 + 32:
            frame = board.receive(60_000 * US)
            assert frame.words == list(range(128 * number(frame), 128 * number(frame) + 128))
            met += number(frame) == again + 1
            newest = max(newest, number(frame))


def test_block_acks_confirm_all_that_is_stored():
    """Of ten packets 3 and 36 are lost; one ACK confirms the others, and only the two go again, once."""
    lost = {3, 36}

    def lose(what, packet):
        number = packet.set * 32 + packet.packet
        if what == "data" and number in lost:
            lost.remove(number)
            return True
        return False

    board = Fade1(lose=lose, batch=10)
    board.start()
    board.run(120)
    board.stop()
    board.check()
    assert [n for i, n in enumerate(board.log) if n in board.log[:i]] == [3, 36], board.log
    assert board.status()["retransmitted"] == 2


def test_the_next_block_ack_makes_good_for_one_that_was_lost():
    """Three ACKs of four packets each are lost. One packet is overdue before the next ACK comes."""
    lost = iter([True, True, False, True])
    board = Fade1(lose=lambda kind, packet: kind == "ack" and next(lost, False), batch=4)
    board.start()
    board.run(80)
    board.stop()
    board.check()
    assert board.status()["retransmitted"] <= 1 and next(lost, None) is None


@pytest.mark.parametrize("batch", [None, 1, 5])
@pytest.mark.parametrize("loss", [0.05, 0.2])
def test_loss_and_the_wrap_of_the_set_number(loss, batch):
    generator = random.Random(f"{SEED}/{loss}/{batch}")
    board = Fade1(first_set=SETS - 3, lose=lambda kind, packet: generator.random() < loss, batch=batch)
    board.start()
    board.run(150)
    board.lose = lambda kind, packet: False
    board.stop()
    board.check()
    assert board.status()["retransmitted"] > 0


def test_nothing_is_taken_while_nothing_is_confirmed():
    """Silence of the computer: the window, again and again, and not a packet more."""
    board = Fade1()
    board.start()
    packets = board.frames(40_000 * US)
    numbers = {p.set * 32 + p.packet for p in packets}
    assert numbers == set(range(32)) and len(packets) > 64
    for packet in packets[:32]:
        board.take(packet)
    board.run(64)
    board.stop()
    board.check()


def test_retries_in_turn():
    board = Fade1(limit=8 * 128)
    board.start()
    numbers = [p.packet for p in board.frames(20_000 * US)]
    assert numbers[:8] == list(range(8)) and len(numbers) > 32
    for i in range(8, len(numbers)):
        assert numbers[i] == (numbers[i - 1] + 1) % 8, "cyclic"


def test_reset_and_a_new_start():
    board = Fade1()
    board.start()
    board.run(40)
    board.send(request(C1["TYPE_RESET"]))
    board.frames(100 * US)
    assert board.status()["running"] == 0 and board.receive(1000 * US) is None
    again = Fade1.__new__(Fade1)
    again.__dict__ = dict(board.__dict__, next=0, ahead={}, words=[], log=[])
    board.__dict__["handle"] = None
    again.start()
    again.run(70)
    again.stop()
    again.check()


def test_only_the_starter_is_obeyed_and_bad_frames_change_nothing():
    board = Fade1()
    board.start()
    board.run(5)
    other = bytes.fromhex("02fade0000f1")
    good = with_fcs(request(C1["TYPE_STOP"]))
    bad = [
        with_fcs(request(C1["TYPE_STOP"], src=other)),
        with_fcs(request(C1["TYPE_RESET"], dst=bytes.fromhex("02fade000002"))),
        with_fcs(request(0x0100)),
        with_fcs(request(0x0007)),
        good[:-1] + bytes([good[-1] ^ 1]),
    ]
    for frame in bad:
        board.send_raw(frame)
        board.run(board.next + 10)
    assert board.status()["running"] == 1
    board.ack((board.next + 500) % (SETS * 32))  # not sent yet: a protocol error, nothing else
    board.run(board.next + 40)
    board.stop()
    board.check()
    assert board.log == list(range(len(board.log)))


def test_the_delay_grows_with_loss_and_is_told():
    """Each rule over its own period: 256 frames, 10,000 frames."""
    for paper_rule, packets, expected in [(0, 280, 64), (1, 280, 0)]:
        generator = random.Random(SEED)
        board = Fade1(lose=lambda kind, packet: kind == "data" and generator.random() < 0.25, paper_rule=paper_rule)
        board.start()
        seen = []
        take = board.take
        board.take = lambda packet: (seen.append(packet.delay), take(packet))
        board.run(packets)
        assert max(seen) >= expected and (expected or max(seen) == 0), (paper_rule, max(seen))

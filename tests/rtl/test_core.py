"""The FADE-10G core behind its MACs, GMII and XGMII, from pin to pin."""

import os
import random

import pytest
from support.board import ACCUMULATOR, COUNTERS, GAP, LIMIT, Board, C, Receiver, get, put, request, with_fcs

SEED = int(os.environ.get("FADELINK_SEED", "1"))
OTHER = bytes.fromhex("02fade0000f1")
PHYS = [("gmii", 16), ("xgmii", 16), ("xgmii", 32), ("xgmii", 64)]
both = pytest.mark.parametrize("phy,window", [("gmii", 16), ("xgmii", 32)])
every = pytest.mark.parametrize("phy,window", PHYS)


def once(condition):
    """True the first time that the condition holds."""
    seen = []

    def check(frame):
        if not seen and condition(frame):
            seen.append(frame)
            return True
        return False

    check.seen = seen
    return check


def counters(board, *names):
    return {name: board.command(get(COUNTERS[name])) for name in names}


@every
def test_in_order_without_loss(phy, window):
    board = Board(phy, window)
    receiver = Receiver(board, window)
    receiver.start()
    receiver.run(3 * window)
    receiver.stop()
    assert [index for index, _ in receiver.log] == list(range(len(receiver.log))), "each packet once, in order"
    assert receiver.done and receiver.words == receiver.next * 1024 - (1024 - receiver.words % 1024)
    got = counters(board, "retransmitted", "protocol_errors", "acknowledged", "sent", "full")
    assert got == {"retransmitted": 0, "protocol_errors": 0, "acknowledged": receiver.next, "sent": receiver.next,
                   "full": 0}  # fmt: skip


@every
@pytest.mark.parametrize("words", [0, 1, 1023, 1024, 3 * 1024 + 5])
def test_the_last_packet_has_the_crc_that_was_asked_for(phy, window, words):
    """Of a board that has it; with losses, and anew in each transmission."""
    board = limited(phy, window, words or 1)
    lost = random.Random(words)
    for argument in [C["START_CHECKSUM"], 0, C["START_CHECKSUM"] | 0xFFFFFFFF & ~C["START_PERMIT"]]:
        receiver = Receiver(board, window, drop_data=lambda frame: lost.random() < 0.2)
        receiver.start(argument)
        if words:
            receiver.run(words // 1024)
            board.frames(board.frame_time)  # until the source has given the rest
        receiver.stop()
        assert receiver.words == words or not words
        asked = argument & C["START_CHECKSUM"] and window > 16
        assert receiver.told == (receiver.crc if asked else None)


@both
def test_back_to_back_at_the_limit_of_the_line(phy, window):
    board = Board(phy, window)
    receiver = Receiver(board, window)
    receiver.start()
    receiver.run(10)
    times = []
    while len(times) < 20:
        frame = board.receive(3 * board.frame_time)
        times.append(frame.at)
        receiver.take(frame)
    wire = 8256 * (8000 if phy == "gmii" else 800)
    assert [b - a for a, b in zip(times, times[1:])] == [wire] * 19, "8256 byte times, preamble and gap included"


@both
@pytest.mark.parametrize("lost", ["data", "ack"])
def test_single_loss(phy, window, lost):
    """One frame is lost: its packet goes again, early, and no other."""
    drop = once(lambda frame: frame.packet == 20)
    board = Board(phy, window)
    receiver = Receiver(board, window, **{f"drop_{lost}": drop})
    receiver.start()
    receiver.run(60)
    receiver.stop()
    again = [index for i, (index, _) in enumerate(receiver.log) if index in [n for n, _ in receiver.log[:i]]]
    assert again == [20] and drop.seen
    assert counters(board, "early", "retransmitted") == {"early": 1, "retransmitted": 1}


def drain(board, count):
    """The next data frames, not confirmed."""
    frames = []
    while len(frames) < count:
        frame = board.receive(100 * board.frame_time)
        assert frame, "no frame comes"
        if frame.is_data:
            frames.append(frame)
    return frames


def limited(phy, window, words, **options):
    """A board whose source gives so many words, started."""
    board = Board(phy, window, **options)
    board.command(put(LIMIT), words)
    return board


@both
def test_figure_4(phy, window):
    """Packet 2 lost on the way, ACK of 4 lost (paper, figure 4b): 2 goes again, then 4, nothing else."""
    board = limited(phy, window, 5 * 1024)
    board.send(request(C["CMD_START"], 1000))
    frames = drain(board, 5)
    assert [frame.packet for frame in frames] == [0, 1, 2, 3, 4]
    board.ack(frames[0])
    board.ack(frames[1])
    board.ack(frames[3])  # packet 2 was lost
    (again,) = drain(board, 1)
    assert (again.packet, again.sequence) == (2, 5)
    board.ack(frames[4], sequence=frames[4].sequence)
    # Early retransmission has nothing more to do: 2 went after sequence 4.
    assert counters(board, "early", "retransmitted") == {"early": 1, "retransmitted": 1}
    board.ack(again)
    assert counters(board, "early", "retransmitted", "acknowledged") == {
        "early": 1, "retransmitted": 1, "acknowledged": 5,
    }  # fmt: skip


@both
def test_figure_4_lost_ack(phy, window):
    board = limited(phy, window, 6 * 1024)
    board.send(request(C["CMD_START"], 1000))
    frames = drain(board, 6)
    for i in (0, 1, 2, 3):
        board.ack(frames[i])
    board.ack(frames[5])  # the ACK of 4 was lost
    (again,) = drain(board, 1)
    assert (again.packet, again.sequence) == (4, 6)
    board.ack(again)
    assert counters(board, "early", "retransmitted", "acknowledged") == {
        "early": 1, "retransmitted": 1, "acknowledged": 6,
    }  # fmt: skip


@both
def test_a_confirmation_does_not_change_the_frame_that_it_meets(phy, window):
    """A packet is confirmed while it is sent again, and the source has more: the frame has its words to the end."""
    board = Board(phy, window)
    board.send(request(C["CMD_START"], 1000))
    met, newest, step = 0, window - 1, 0
    last = drain(board, window)[-1]
    while met < 3:
        again = board.receive(10_000 * board.frame_time)
        step = step % 20 + 1
        if again.packet == newest or board.receive(step * board.frame_time // 5):
            continue
        # It may be on its way now.
        number = again.packet + 1
        board.ack(last, packet=number, sequence=number, stored=2**64 - 1)
        while newest < number + window:
            frame = board.receive(10_000 * board.frame_time)
            assert frame.words() == list(range(1024 * frame.packet, 1024 * frame.packet + 1024))
            met += frame.packet == number
            newest = max(newest, frame.packet)


@both
def test_numbers_wrap(phy, window):
    first, sequence = 2**32 - 30, 2**16 - 20
    generator = random.Random(SEED)
    board = Board(phy, window, first, sequence)
    receiver = Receiver(board, window, first, lambda f: generator.random() < 0.05, lambda f: generator.random() < 0.05)
    receiver.start()
    receiver.run(90)
    receiver.stop()
    assert receiver.log[0][1] == sequence and any(s < 100 for _, s in receiver.log)
    assert counters(board, "protocol_errors") == {"protocol_errors": 0}


@every
def test_buffer_full_stops_the_source(phy, window):
    """Without a confirmation no packet beyond the window is sent, and none is lost when it goes on."""
    board = Board(phy, window)
    receiver = Receiver(board, window)
    assert board.command(C["CMD_START"]) == 0
    frames = board.frames((2 * window + 4) * board.frame_time)
    assert {frame.packet for frame in frames} <= set(range(window))
    assert max(frame.packet for frame in frames) == window - 1
    receiver.run(3 * window)
    receiver.stop()
    assert receiver.done


@both
@pytest.mark.parametrize("words", [0, 1, 1023, 1024, 1025, 5 * 1024 + 7])
def test_stop_with_a_partly_filled_packet(phy, window, words):
    board = Board(phy, window)
    if words:
        board.command(put(LIMIT), words)
    else:
        board.command(put(GAP), 0xFFFF)
        board.command(put(LIMIT), 1)
    receiver = Receiver(board, window)
    receiver.start()
    if words:
        receiver.run(words // 1024)
        board.frames(3 * board.frame_time)
    receiver.stop()
    expected = words if words else receiver.words
    assert receiver.done and receiver.words == expected
    assert receiver.next == receiver.words // 1024 + 1, "the last packet is there even if it is empty"


@both
def test_stop_before_the_first_word(phy, window):
    """STOP right behind START: a last packet with what the source gave in between, maybe nothing."""
    board = Board(phy, window)
    receiver = Receiver(board, window)
    board.send(request(C["CMD_START"], 1))
    board.send(request(C["CMD_STOP"], 2))
    receiver.run(1 << 40)
    assert receiver.done
    board.frames(100 * board.frame_time)
    assert board.status()["running"] == 0


@both
def test_response_rides_in_data_or_goes_alone(phy, window):
    board = limited(phy, window, 4 * 1024)
    board.send(request(C["CMD_START"], 1000))
    frames = board.frames(6 * board.frame_time)
    assert [frame.is_data for frame in frames].count(True) == 4
    assert sum(frame.response is not None for frame in frames) == 1
    board.send(request(get(0), 2))
    alone = board.frames(board.frame_time // 2)
    assert len(alone) == 1 and not alone[0].is_data, "no data frame waits"
    board = Board(phy, window)
    receiver = Receiver(board, window)
    receiver.start()
    receiver.run(3)
    board.send(request(get(0), 3))
    answered = [frame for frame in board.frames(3 * board.frame_time) if frame.response]
    assert len(answered) == 1 and answered[0].is_data, "the next data frame carries it"


@both
def test_block_acks_confirm_all_that_is_stored(phy, window):
    """Of ten packets 3 and 6 are lost; one ACK confirms the others, and only the two go again, once."""
    board = Board(phy, window)
    receiver = Receiver(board, window, 0, lambda f: receiver.log[-1] in [(3, 3), (6, 6)], batch=10)
    receiver.start()
    receiver.run(30)
    status = board.status()
    again = [index for at, (index, _) in enumerate(receiver.log) if index in (i for i, _ in receiver.log[:at])]
    assert again == [3, 6], receiver.log
    assert (status["retransmitted"], status["early"]) == (2, 2)
    receiver.stop()
    assert board.command(get(COUNTERS["protocol_errors"])) == 0


@both
def test_an_ack_that_was_lost_is_made_good_for_by_the_next(phy, window):
    board = Board(phy, window)
    lost = iter([True, True, False, True])
    receiver = Receiver(board, window, 0, None, lambda f: next(lost, False), batch=4)
    receiver.start()
    receiver.run(40)
    assert board.status()["retransmitted"] == 0 and next(lost, None) is None
    receiver.stop()


@both
def test_bad_frames_are_counted_and_change_nothing(phy, window):
    board = Board(phy, window)
    receiver = Receiver(board, window)
    receiver.start()
    receiver.run(3)
    good = with_fcs(request(put(ACCUMULATOR), 1, 1))
    bad_fcs = good[:-1] + bytes([good[-1] ^ 1])
    cases = {
        "bad_fcs": [bad_fcs] * 3,
        "destination": [with_fcs(request(C["CMD_STOP"], 9, dst=OTHER)), with_fcs(b"\xff" * 6 + good[6:-4])],
        "version": [with_fcs(request(C["CMD_STOP"], 9, version=0x0101)), with_fcs(request(C["CMD_STOP"], 9, version=1))],
        "ethertype": [with_fcs(request(C["CMD_STOP"], 9, ethertype=0x0800))],
        "code": [with_fcs(request(code, 9)) for code in (0, 8, 0xFF)],
        "runt": [good[:n] for n in (1, 4, 5, 7, 8, 9, 20, 63)],
        "oversize": [with_fcs(request(C["CMD_STOP"], 9).ljust(n, b"\xa5")) for n in (9015, 9100, 12000)],
        "wrong_source": [with_fcs(request(C["CMD_STOP"], 9, src=OTHER)), with_fcs(request(0x0100, 9, src=OTHER))],
    }  # fmt: skip
    for frames in cases.values():
        for frame in frames:
            board.send_raw(frame)
            for answer in board.frames(board.frame_time):
                receiver.take(answer)
    receiver.run(receiver.next + 2 * window)
    for name, frames in cases.items():
        assert board.command(get(COUNTERS[name]), take=receiver.take) == len(frames), name
    assert board.command(get(ACCUMULATOR), take=receiver.take) == 0
    assert board.status()["running"] == 1
    receiver.stop()


@both
def test_random_frames_between_valid_ones(phy, window):
    """No random frame, whatever its length, stops the core or spoils a word."""
    generator = random.Random(f"{SEED} {phy} noise")
    board = Board(phy, window)
    receiver = Receiver(board, window)
    receiver.start()
    good = request(C["ACK"], 0, 0)
    for _ in range(150):
        kind = generator.randrange(4)
        length = generator.choice([generator.randrange(1, 80), generator.randrange(60, 1600), 9100])
        junk = generator.randbytes(length)
        if kind == 0:
            board.send_raw(junk)  # wrong frame check sequence
        elif kind == 1:
            board.send(junk)
        elif kind == 2:  # addressed and typed rightly, random from the version on
            board.send(good[:14] + junk)
        else:  # an ACK of anything; far from the window, so that it confirms nothing
            board.send(request(C["ACK"], generator.randrange(2**16), receiver.next + generator.randrange(200, 2**31 - 1)))
        for frame in board.frames(2 * board.frame_time):
            receiver.take(frame)
    receiver.run(receiver.next + window)
    receiver.stop()
    assert counters(board, "protocol_errors")["protocol_errors"] > 0


@pytest.mark.parametrize("phy,window", [("xgmii", 16)])
@pytest.mark.parametrize("paper_rule", [pytest.param(False, marks=pytest.mark.long), True])
def test_delay_grows_with_losses_and_shrinks_without(phy, window, paper_rule):
    generator = random.Random(f"{SEED} delay")
    loss = [0.3]
    board = Board(phy, window, paper_rule=paper_rule)
    receiver = Receiver(board, window, 0, lambda f: generator.random() < loss[0])
    receiver.start()
    delays = []

    def follow(frames):
        for _ in range(frames):
            frame = board.receive(100 * board.frame_time)
            receiver.take(frame)
            if not delays or delays[-1] != frame.delay:
                delays.append(frame.delay)

    follow(3 * 1024 + 100)
    if paper_rule:
        assert delays == [0, 16, 36, 61], "a quarter and 16 more after each period of 1024 frames"
    else:
        steps = [b - a for a, b in zip(delays, delays[1:])]
        assert len(steps) == 12 and sum(steps) > 1000, "after each period of 256 frames"
        assert all(step > 0 and step % 4 == 0 for step in steps), "4 clocks for each retransmission above 32"
    loss[0] = 0
    highest = delays[-1]
    follow(4 * 1024)
    if paper_rule:
        assert [61 - 15, 46 - 11, 35 - 8] in (delays[-3:], delays[-4:-1])
    else:
        falling = delays[delays.index(highest) :]
        assert all(b == a - (a >> 5) for a, b in zip(falling[1:], falling[2:])) and len(falling) >= 14
    assert board.status()["delay"] == delays[-1]


@pytest.mark.parametrize("user,tx,rx", [(10007, 6401, 6397), (3331, 6400, 6407), (6400, 6390, 6410), (20011, 8003, 4999)])
def test_unrelated_clocks(user, tx, rx):
    generator = random.Random(f"{SEED} {user}")
    board = Board("xgmii", 16, user=user, phase=generator.randrange(user), tx=tx, rx=rx)
    receiver = Receiver(board, 16, 0, lambda f: generator.random() < 0.03, lambda f: generator.random() < 0.03)
    for _ in range(3):
        receiver.start()
        receiver.run(60)
        assert board.command(put(ACCUMULATOR), 1, take=receiver.take)
        receiver.stop()
        receiver = Receiver(board, 16)


@pytest.mark.parametrize("phy,window", PHYS)
@pytest.mark.parametrize("seed", range(3))
def test_random_traffic(phy, window, seed):
    """Losses of every kind, late and repeated ACKs, block ACKs, commands meanwhile; every word once, in order."""
    generator = random.Random(f"{SEED} {phy} {window} {seed}")
    p_data, p_ack, p_late = (generator.choice([0, 0.01, 0.1, 0.3]) for _ in range(3))
    board = Board(phy, window, user=generator.choice([0, 5003, 9001]))
    late = []

    def drop_ack(frame):
        if generator.random() < p_late:
            late.append(frame)
            return True
        return generator.random() < p_ack

    batch = [None, 1, 5][seed]
    receiver = Receiver(board, window, 0, lambda f: generator.random() < p_data, drop_ack, batch)
    receiver.start()
    total = 0
    for _ in range(40 if phy == "gmii" else 150):
        receiver.run(receiver.next + generator.randrange(3))
        if late and generator.random() < 0.5:
            frame = late.pop(generator.randrange(len(late)))
            for _ in range(generator.randrange(1, 4)):
                board.ack(frame)
        if generator.random() < 0.2:
            total += 3
            csn = board.csn = board.csn + 1
            sum_ = None
            while sum_ is None:  # the response may be lost with its data frame: here it never is
                sum_ = board.command(put(ACCUMULATOR), 3, csn=csn, take=receiver.take)
            assert sum_ == total
    receiver.stop()
    assert board.command(get(COUNTERS["protocol_errors"])) == 0
    assert board.command(get(ACCUMULATOR)) == total

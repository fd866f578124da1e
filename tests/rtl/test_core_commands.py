"""Commands to the FADE-10G core, from pin to pin: in every state, lost and repeated, and what the core reports of itself."""

import random
import re

import pytest
from support.board import ACCUMULATOR, CORE, PC, Board, C, Receiver, get, put, request
from support.paths import RTL, SEED

OTHER = bytes.fromhex("02fade0000f1")
both = pytest.mark.parametrize("phy,window", [("gmii", 16), ("xgmii", 32)])


@both
def test_start_while_running(phy, window):
    board = Board(phy, window)
    receiver = Receiver(board, window)
    receiver.start()
    receiver.run(5)
    assert board.command(C["CMD_START"], take=receiver.take) == 2, "already running"
    receiver.run(window + 5)
    receiver.stop()
    assert board.command(C["CMD_START"]) == 0
    receiver = Receiver(board, window)
    receiver.run(5)
    receiver.stop()


@both
def test_start_and_stop_are_repeated_without_harm(phy, window):
    board = Board(phy, window)
    receiver = Receiver(board, window)
    for _ in range(3):
        assert board.command(C["CMD_START"], csn=77, take=receiver.take) == 0
    receiver.run(10)
    for _ in range(3):
        assert board.command(C["CMD_STOP"], csn=78, take=receiver.take) == 0
    receiver.run(1 << 40)
    assert receiver.done


@both
@pytest.mark.parametrize("moment", range(12))
def test_reset_at_any_moment(phy, window, moment):
    """After RESET the board is silent, and a new transmission is whole and begins anew."""
    generator = random.Random(f"{SEED} {phy} {moment}")
    board = Board(phy, window)
    receiver = Receiver(board, window, 0, lambda f: generator.random() < 0.1)
    if moment == 0:
        board.send(request(C["CMD_START"], 1))
    else:
        receiver.start()
        receiver.run(generator.randrange(1, 2 * window))
        if moment % 3 == 0:
            board.send(request(C["CMD_STOP"], 500))
        if moment % 4 == 0:
            board.send(request(get(0x10), 501))
        board.frames(generator.randrange(2 * board.frame_time))
    board.send(request(C["CMD_RESET"], src=OTHER if moment % 2 else PC))
    board.frames(3 * board.frame_time)
    assert board.frames(20 * board.frame_time) == [], "silence after the frame under way"
    assert board.status()["running"] == 0
    receiver = Receiver(board, window)
    receiver.start()
    receiver.run(window + 10)
    receiver.stop()
    assert receiver.log[0] == (0, 0)


@both
def test_reset_many_times_while_filling(phy, window):
    generator = random.Random(f"{SEED} {phy} resets")
    board = Board(phy, window)
    for i in range(30):
        board.send(request(C["CMD_START"], 2 * i + 1))
        board.frames(generator.randrange(board.frame_time))
        board.send(request(C["CMD_RESET"]))
        board.frames(generator.randrange(board.frame_time))
    board.frames(3 * board.frame_time)
    receiver = Receiver(board, window)
    receiver.start()
    receiver.run(window + 2)
    receiver.stop()


@both
@pytest.mark.parametrize("running", [False, True])
def test_commands_lost_and_duplicated(phy, window, running):
    """Each command is executed once: sent twice, lost once, its response lost once."""
    board = Board(phy, window)
    receiver = Receiver(board, window)
    take = receiver.take if running else None
    if running:
        receiver.start()
    total = 0
    for csn in range(100, 110):
        total += csn
        copies = csn % 3
        for _ in range(copies):  # copies that come before their response, or whose response is lost
            board.send(request(put(ACCUMULATOR), csn, csn))
        assert board.command(put(ACCUMULATOR), csn, csn=csn, take=take) == total
        assert board.command(put(ACCUMULATOR), csn, csn=csn, take=take) == total, "the stored response"
    assert board.command(get(ACCUMULATOR), take=take) == total
    if running:
        receiver.stop()


@both
def test_core_tells_its_version(phy, window):
    board = Board(phy, window)
    text = (RTL / "fade10g/fade10g_pkg.sv").read_text()
    core, *version = re.search(r"CORE_VERSION = \{8'h(\w+), 8'd(\d+), 8'd(\d+), 8'd(\d+)\}", text).groups()
    assert board.command(get(CORE)) == int.from_bytes([int(core, 16), *map(int, version)], "big")


@both
def test_identify_is_answered_at_full_rate_to_every_one(phy, window):
    """It tells the last command, which IDENTIFY itself is not, and the transmission, also after their end."""
    board = Board(phy, window)
    receiver = Receiver(board, window)
    csn = transmission = None
    # The boards with the smallest buffer have no CRC.
    flags = C["IDENTITY_BLOCK_ACKS"] | C["IDENTITY_RESETS"] | C["IDENTITY_SAME_WORDS"] | (C["IDENTITY_CHECKSUM"] if window > 16 else 0)
    for running in (0, 1, 0):
        board.send(request(C["CMD_IDENTIFY"], 0xBEEF, src=OTHER, dst=b"\xff" * 6))
        answers = []
        for frame in board.frames(5 * board.frame_time):
            if frame.is_data:
                receiver.take(frame)
            else:
                answers.append(frame)
        (answer,) = answers
        known = 0 if csn is None else C["IDENTITY_CSN"] << 40 | csn << 24 | transmission << 8
        value = 1 << 56 | window.bit_length() - 1 << 48 | (running | flags) << 40 | known
        assert answer.dst == OTHER and answer.response == (C["CMD_IDENTIFY"], 0xBEEF, value)
        if running:
            receiver.stop()
            csn = board.csn
        elif csn is None:
            receiver.start()
            csn = transmission = board.csn
            receiver.run(3)


@both
def test_who_has_sent_reset_is_told(phy, window):
    """Since START, from any computer; RESETs before it do not count."""
    board = Board(phy, window)
    receiver = Receiver(board, window)

    def ask(code):
        board.send(request(C[code], 0xBEEF, src=OTHER))
        (answer,) = [frame for frame in board.frames(2 * board.frame_time) if frame.response]
        assert answer.dst == OTHER and answer.response[:2] == (C[code], 0xBEEF)
        return answer.response[2]

    board.send(request(C["CMD_RESET"]))
    receiver.start()
    receiver.run(3)
    transmission = ask("CMD_IDENTIFY") >> 8 & 0xFFFF
    assert transmission and ask("CMD_RESET_BY") == transmission << 48
    for count, source in enumerate((PC, OTHER), 1):
        board.send(request(C["CMD_RESET"], src=source))
        identity = ask("CMD_IDENTIFY")
        assert identity & 0xFF == count and not identity >> 40 & 1 and identity >> 8 & 0xFFFF == transmission
        assert ask("CMD_RESET_BY") == transmission << 48 | int.from_bytes(source, "big")


@both
def test_a_command_is_executed_once_whatever_number_was_the_last(phy, window):
    """Numbers around the wrap, each sent twice; the sum counts."""
    board = Board(phy, window)
    for count, csn in enumerate([0, 1, 2, 0x7FFF, 0x8000, 0xFFFE, 0xFFFF, 0, 1], 1):
        for _ in range(2):
            assert board.command(put(7), 1, csn=csn) == count
        board.send(request(C["CMD_IDENTIFY"], 0xBEEF))
        (answer,) = [frame for frame in board.frames(2 * board.frame_time) if frame.response]
        assert answer.response[2] >> 40 & C["IDENTITY_CSN"] and answer.response[2] >> 24 & 0xFFFF == csn

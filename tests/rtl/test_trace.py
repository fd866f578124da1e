"""Traces of the RTL that the software FEBs (host/feb) must reproduce: tests/vectors/fade10g_traces.json, fade1_traces.json.

A frame goes in when the board has come to rest, so that what comes out follows from the rules alone. The
test fails if the RTL does not do what the file says, and leaves in build/ what it does.
"""

import json
import random

from support import fade1_board as fade1
from support.block import C1
from support.board import LIMIT, PC, US, Board, C, block_ack, get, put, request
from support.paths import TOP

FILE = TOP / "tests/vectors/fade10g_traces.json"
FILE1 = TOP / "tests/vectors/fade1_traces.json"
WINDOW = 16
ON_THE_WIRE = 8256 * 800  # ps: a data frame at 10 Gb/s
ON_THE_WIRE1 = (1072 + 90) * 8000  # the same at 1 Gb/s, which began before the frame to the board was in
OTHER = bytes.fromhex("02fade0000f1")


def trace(seed):
    """Frames in and out of one transmission, with acknowledgements, losses and commands at random."""
    rng = random.Random(seed)
    first_packet = rng.choice([0, 2**32 - 20])
    board = Board("xgmii", WINDOW, first_packet)
    events, sent, unconfirmed, csn, last_command = [], [], {}, rng.randrange(2**16), None

    def step(frame):
        at, begin = len(events), board.now
        events.append({"in": frame.rstrip(b"\xa5").hex()})
        board.send(frame)
        for _ in range(100):
            out = board.receive(20 * US)
            if out is None:
                break
            event = {"response": out.response}
            if out.is_data:
                event |= {"packet": out.packet, "sequence": out.sequence, "delay": out.delay, "last": out.last}
                event["first_word"] = out.words()[0] if out.words() else None
                sent.append(out)
                unconfirmed[out.packet] = out
            # The cyclic scan keeps its own time: its frame may have been under way when this one came.
            earlier = out.is_data and out.at < begin + ON_THE_WIRE
            events.insert(at if earlier else len(events), {"out": event})
            at += earlier

    def command(code, argument=0, src=PC):
        nonlocal csn, last_command
        csn = (csn + 1) % 2**16
        last_command = request(code, csn, argument, src)
        step(last_command)

    words = rng.randrange(20, 60) * 1024 + rng.randrange(1024)
    command(put(LIMIT), words)
    command(C["CMD_START"])
    stopped = False
    for number in range(400):
        if stopped and board.status()["running"] == 0:
            break
        action = rng.randrange(20)
        if not stopped and (number == 150 or rng.randrange(100) == 0):
            command(C["CMD_STOP"])
            stopped = True
        elif action < 3 and unconfirmed:
            # A block ACK whose bits name what was confirmed, and some of the others.
            distance = lambda packet: (packet - first_packet) % 2**32
            frame = unconfirmed.pop(rng.choice(list(unconfirmed)))
            stored = 0
            for i in range(min(64, distance(frame.packet))):
                other = (frame.packet - 1 - i) % 2**32
                if other not in unconfirmed or rng.random() < 0.7:
                    unconfirmed.pop(other, None)
                    stored |= 1 << i
            step(block_ack(frame.sequence, frame.packet, stored))
        elif action < 12 and unconfirmed:
            # Mostly in order; what is passed over is proved lost.
            frame = unconfirmed.pop(rng.choice(sorted(unconfirmed, key=lambda p: (p - first_packet) % 2**32)[:3]))
            step(request(C["ACK"], frame.sequence, frame.packet))
        elif action == 12 and sent:
            frame = rng.choice(sent[-20:])
            step(request(C["ACK"], frame.sequence, frame.packet))
            unconfirmed.pop(frame.packet, None)
        elif action == 13 and unconfirmed:
            frame = unconfirmed[rng.choice(list(unconfirmed))]
            step(request(C["NACK"], frame.sequence, frame.packet))
        elif action == 14 and sent:
            step(request(C["ACK"], sent[-1].sequence, sent[-1].packet + 40))
        elif action == 15:
            step(last_command)
        elif action == 16:
            step(request(C["CMD_STOP"], 7, 0, OTHER))
        elif action == 17:
            command(put(7), rng.randrange(2**32))
        elif action == 18:
            command(C["CMD_START"])
        else:
            command(get(rng.choice([0, 0x10, 0x11, 0x12, 0x13, 0x14, 0x16, 0x17, 0x19, 0x1A, 0x7F])))
    for register in [0x10, 0x11, 0x12, 0x13, 0x14, 0x16, 0x17]:
        command(get(register))
    return {"seed": seed, "window": WINDOW, "first_packet": first_packet, "events": events}


def trace1(seed):
    """The same of FADE v1."""
    rng = random.Random(seed)
    words = rng.randrange(100, 200) * 128 + rng.randrange(128)
    board = fade1.Fade1(limit=words)
    events, sent, unconfirmed = [], [], []

    def step(frame):
        at, begin = len(events), board.now
        events.append({"in": frame.rstrip(b"\xa5").hex()})
        board.send(frame)
        for _ in range(100):
            out = Board.receive(board, 20 * US)
            if out is None:
                break
            if isinstance(out, fade1.State):
                events.append({"out": {"state": out.state, "transmission": out.transmission, "packets": out.packets}})
                continue
            number = out.set * 32 + out.packet
            earlier = out.at < begin + ON_THE_WIRE1
            # While a packet goes again its late ACK may come and the next one take its place: nobody stores it then.
            final = out.words[-1] if number not in sent else None
            event = {"packet": number, "delay": out.delay, "first_word": out.words[0], "final_word": final}
            events.insert(at if earlier else len(events), {"out": event})
            at += earlier
            sent.append(number)
            if number not in unconfirmed:
                unconfirmed.append(number)

    step(fade1.request(C1["TYPE_ACK"], 3))
    step(fade1.request(C1["TYPE_START"]))
    stopped = False
    for number in range(600):
        if stopped and board.status()["running"] == 0:
            break
        action = rng.randrange(20)
        if not stopped and number == 300:
            step(fade1.request(C1["TYPE_STOP"]))
            stopped = True
        elif action < 3 and unconfirmed:
            # A block ACK whose bits name what was confirmed, and some of the others.
            confirmed = unconfirmed.pop(rng.randrange(len(unconfirmed)))
            before = [confirmed - 1 - i for i in range(min(64, confirmed))]
            before = [n for n in before if n not in unconfirmed or rng.random() < 0.7]
            unconfirmed = [n for n in unconfirmed if n not in before]
            step(fade1.block_ack(confirmed, sum(1 << confirmed - 1 - n for n in before)))
        elif action < 15 and unconfirmed:
            unconfirmed.sort()
            step(fade1.request(C1["TYPE_ACK"], unconfirmed.pop(rng.randrange(min(3, len(unconfirmed))))))
        elif action == 15 and sent:
            confirmed = rng.choice(sent[-20:])
            step(fade1.request(C1["TYPE_ACK"], confirmed))
            unconfirmed = [n for n in unconfirmed if n != confirmed]
        elif action == 16:
            step(fade1.request(C1["TYPE_ACK"], max(sent) + rng.randrange(33, 2000)))
        elif action == 17:
            step(fade1.request(C1["TYPE_STOP"], src=OTHER))
        elif action == 18:
            step(request(C["CMD_IDENTIFY"], number, 0, OTHER if number % 2 else PC))
        else:
            step(fade1.request(C1["TYPE_START"]))
    step(request(C["CMD_IDENTIFY"]))
    status = board.status()
    final = {name: status[name] for name in ("running", "sent", "retransmitted")}
    return {"seed": seed, "words": words, "events": events, "final": final}


def check(file, traces, least):
    text = "[\n" + ",\n".join(json.dumps(trace, separators=(",", ":")) for trace in traces) + "\n]\n"
    assert sum("out" in event for trace in traces for event in trace["events"]) > least
    found = TOP / "build" / file.name
    found.write_text(text)
    is_same = file.read_text() == text
    assert is_same, f"{found.relative_to(TOP)} is what the RTL does: if that is right, copy it to {file.relative_to(TOP)}"


def test_the_rtl_does_what_the_traces_say():
    check(FILE, [trace(seed) for seed in range(1, 7)], 500)


def test_fade1_does_what_the_traces_say():
    check(FILE1, [trace1(seed) for seed in range(1, 4)], 500)

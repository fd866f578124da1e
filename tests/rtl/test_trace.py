"""Traces of the RTL that the software FEB (host/feb) must reproduce: tests/vectors/fade10g_traces.json.

A frame goes in when the board has come to rest, so that what comes out follows from the rules alone. The
test fails if the RTL no longer does what the file says; FADELINK_UPDATE=1 writes the file anew.
"""

import json
import os
import random

from board import LIMIT, PC, TOP, US, Board, C, get, put, request

FILE = TOP / "tests/vectors/fade10g_traces.json"
WINDOW = 16
ON_THE_WIRE = 8256 * 800  # ps: a data frame at 10 Gb/s
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


def test_the_rtl_does_what_the_traces_say():
    traces = [trace(seed) for seed in range(1, 7)]
    text = "[\n" + ",\n".join(json.dumps(trace, separators=(",", ":")) for trace in traces) + "\n]\n"
    again = sum("out" in event for trace in traces for event in trace["events"])
    assert again > 500
    if os.environ.get("FADELINK_UPDATE"):
        FILE.write_text(text)
    assert FILE.read_text() == text

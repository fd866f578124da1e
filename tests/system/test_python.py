"""The Python package on live data: arrays in place, commands, asyncio, the example."""

import sys
from pathlib import Path

import pytest
from support.netns import FEBS

EXAMPLE = Path(__file__).parents[2] / "host/python/examples/waveform.py"
PREPARE = f"""
import asyncio, gc, time
import numpy as np
import fadelink
MAC, OTHER = {FEBS[0]!r}, {FEBS[1]!r}
"""


def python(bench, code, *words):
    process = bench.start(bench.pc_ns, sys.executable, "-c", PREPARE + code, *words)
    status, out, err = process.finish()
    assert status == 0, err
    return out


@pytest.mark.parametrize("backend", ["packet", "xdp"])
def test_blocks_are_views_of_the_ring(bench, backend):
    """Every word is right over several turns of the ring, with loss; memory is not copied; views are for reading."""
    bench.sim("--link", "loss=0.02")
    out = python(
        bench,
        f"""
with fadelink.Receiver("eth0", {backend!r}) as receiver, receiver.open(MAC, ring_packets=64) as feb:
    feb.start()
    expected, places, stopped = 0, set(), False
    for words in feb.blocks(timeout=0.1):
        if not len(words):
            continue  # nothing came for so long
        assert (words == np.arange(expected, expected + len(words), dtype="u8")).all(), expected
        assert words.dtype == "<u8" and not words.flags.writeable and not words.flags.owndata
        expected += len(words)
        places.add(words.ctypes.data // 8192)
        if expected > 500 * 1024 and not stopped:
            assert [feb.command(0x0207, i) for i in (3, 4)] == [3, 7]
            feb.stop()
            stopped = True
    # The ring has 64 places, seen twice in a row; data in copies would lie elsewhere.
    assert max(places) - min(places) < 128 and len(places) <= 128, len(places)
    counters = feb.counters()
    assert counters["packets"] >= expected // 1024 and counters["protocol_errors"] == 0
    assert receiver.counters()["frames"] > 500
    print(expected)
""",
    )
    assert int(out) > 500 * 1024


def test_reading_by_asyncio(bench):
    """Two FEBs in one loop, and a task that runs beside them."""
    bench.sim("--boards", 2)
    python(
        bench,
        """
async def main():
    ticks = 0

    async def tick():
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    async def receive(feb):
        expected, stopping = 0, None
        async for words in feb.blocks_async():
            assert (words == np.arange(expected, expected + len(words), dtype="u8")).all()
            expected += len(words)
            if expected > 300 * 1024 and stopping is None:
                stopping = asyncio.get_running_loop().run_in_executor(None, feb.stop)
        await stopping
        return expected

    with fadelink.Receiver("eth0") as receiver, receiver.open(MAC) as a, receiver.open(OTHER) as b:
        a.start(), b.start()
        ticking = asyncio.create_task(tick())
        totals = await asyncio.gather(receive(a), receive(b))
        assert min(totals) > 300 * 1024 and ticks > 0, (totals, ticks)
        ticking.cancel()

asyncio.run(main())
""",
    )


def test_a_silent_detector_keeps_nobody_waiting(bench):
    """While one thread waits for data, others count and reset; Ctrl-C ends the wait, of a block and of a command."""
    bench.sim()
    python(
        bench,
        """
import os, signal, threading

LONG = 60  # seconds: what waits so long, waits to its end

def interrupted(wait):
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    begin = time.monotonic()
    try:
        wait()
    except KeyboardInterrupt:
        assert time.monotonic() - begin < LONG, "the wait went on"
    else:
        raise AssertionError("nothing was interrupted")
    timer.join()

with fadelink.Receiver("eth0") as receiver, receiver.open(MAC) as feb, receiver.open(OTHER) as absent:
    begin = time.monotonic()
    assert len(feb.read(timeout=0.5).__enter__()) == 0 and time.monotonic() - begin >= 0.5
    looked = []
    def look():
        time.sleep(0.2)  # nobody sees from here that the other thread waits
        assert feb.counters()["packets"] == 0 and feb.fill()[0] == 0
        feb.reset()
        looked.append(True)
        os.kill(os.getpid(), signal.SIGINT)
    thread = threading.Thread(target=look)
    thread.start()
    try:
        feb.read(timeout=LONG)
    except KeyboardInterrupt:
        assert looked
    else:
        raise AssertionError("the wait of one thread has kept the other waiting")
    thread.join()
    interrupted(lambda: absent.read())
    interrupted(lambda: absent.command(0x0207, 1, timeout=LONG, retries=1))
    interrupted(lambda: absent.command(0x0207, 1, timeout=LONG, retries=1))
    # It still works.
    feb.start()
    feb.stop()
    assert sum(len(words) for words in feb.blocks(timeout=0.1)) > 0
""",
    )


def test_wrong_use_is_told(bench):
    bench.sim()
    python(
        bench,
        """
def raises(error, text, call, *arguments, **named):
    try:
        call(*arguments, **named)
    except error as e:
        assert text in str(e), e
        return
    raise AssertionError(f"{text}: no error")

raises(ValueError, "tape", fadelink.Receiver, "eth0", "tape")
raises(OSError, "nothing0", fadelink.Receiver, "nothing0")
raises(OSError, "not loaded", fadelink.Receiver, "eth0", "kernel")
with fadelink.Receiver("eth0") as receiver:
    raises(ValueError, "xyz", receiver.open, "xyz")
    raises(ValueError, "ring_packets 100", receiver.open, MAC, ring_packets=100)
    raises(ValueError, "window 65", receiver.open, MAC, window=65)
    with receiver.open(MAC) as feb:
        raises(RuntimeError, "it is open already", receiver.open, MAC)
        raises(ValueError, "timeout -1", feb.read, timeout=-1)
        raises(ValueError, "expected STOP, IDENTIFY", feb.command, 1)
        raises(ValueError, "command 0x10000: expected 0 to 0xffff", feb.command, 0x10000)
        feb.start()
        block = feb.read(8192, 60)
        raises(BufferError, "still held", feb.read)
        raises(BufferError, "still held", feb.start)
        with block as words:
            assert words[0] == 0
        block.__exit__()
        assert len(feb.read(1, 60)._block) > 0  # dropped, so given back
        gc.collect()
        feb.reset()
        while True:
            try:
                feb.read(1, 60).__exit__()
            except RuntimeError as e:
                assert "aborted" in str(e)
                break
    with receiver.open("02:00:00:00:00:99") as silent:
        raises(TimeoutError, "no answer to IDENTIFY after 8 attempts; command 0x0100 was not sent", silent.command, 0x0100, timeout=0.02, retries=1)
""",
    )


def test_the_example(bench):
    bench.sim("--link", "loss=0.01")
    process = bench.start(bench.pc_ns, sys.executable, EXAMPLE, "eth0", FEBS[0], bench.tmp / "waveform.png")
    status, out, err = process.finish()
    assert status == 0, err
    assert "identity 0x4641444531304701" in out and int(out.splitlines()[1].split()[0]) > 4096
    assert (bench.tmp / "waveform.png").read_bytes().startswith(b"\x89PNG")


def test_a_board_tells_who_has_sent_reset(bench):
    """Asked by `inquire`, before a transmission, at its end, and behind a RESET of another computer."""
    bench.sim()
    python(
        bench,
        """
import socket
with fadelink.Receiver("eth0") as receiver, receiver.open(MAC) as feb:
    assert feb.inquire() == (None, None, None)
    feb.start()
    assert feb.inquire() == fadelink.Inquiry(ending=None, resets=0, reset_by=None)
    feb.stop()
    for words in feb.blocks():
        pass
    assert feb.ending() == "confirmed" and feb.inquire() == (None, 0, None)
    addresses = bytes.fromhex((MAC + "020000000099").replace(":", ""))
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as raw:
        raw.bind(("eth0", 0))
        raw.send((addresses + b"\\xfa\\xde\\1\\0\\0\\5" + bytes(6)).ljust(78, b"\\xa5"))
    while feb.inquire().resets == 0:
        time.sleep(0.01)
    assert feb.inquire() == ("reset", 1, "02:00:00:00:00:99"), feb.inquire()
""",
    )

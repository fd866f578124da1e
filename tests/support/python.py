"""Programs in Python that use the package, in the namespace of the receivers."""

import subprocess
import sys

from support.netns import FEBS

PREPARE = f"""
import asyncio, fcntl, gc, multiprocessing, os, signal, struct, sys, threading, time
import numpy as np
import fadelink
MAC, OTHER, THIRD = {FEBS[:3]!r}
FOLDER = "/run/fadelink"

def claims():
    # A namespace may have the number of one that is gone, in which a program was killed: what it has left is not locked.
    network = os.stat("/proc/self/ns/net").st_ino
    names = os.listdir(FOLDER) if os.path.isdir(FOLDER) else []
    return [name for name in names if name.startswith(f"{{network}}-") and is_locked(os.path.join(FOLDER, name))]

def is_locked(path):
    # fcntl(2): F_OFD_GETLK tells the lock of another open file description, of this process too.
    flock = struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    try:
        with open(path) as file:
            return struct.unpack("hhqqi", fcntl.fcntl(file, 36, flock))[0] != fcntl.F_UNLCK
    except FileNotFoundError:
        return False

def sockets():
    # Those of the receivers, by all processes of this namespace: one line says what the columns are.
    return len(open("/proc/net/packet").readlines()) - 1

def raises(error, text, call, *arguments, **named):
    try:
        call(*arguments, **named)
    except error as e:
        assert text in str(e), e
        return e
    raise AssertionError(f"{{text}}: no error")

def first(feb):
    "The first word; what is given back may be written again at once."
    with feb.read() as words:
        return words[0]

def is_closed(feb):
    "All that can be done with it says so."
    assert feb.closed
    for call in (feb.start, feb.stop, feb.reset, lambda: feb.command(0x0207, 1), feb.counters, feb.kind, feb.ending, feb.filler,
                 feb.inquire, feb.against, feb.fill, feb.fileno, feb.read, lambda: next(feb.blocks()), feb.__enter__):
        raises(fadelink.ClosedError, "the FEB is closed", call)
    asyncio.run(async_is_closed(feb))
    feb.close()

async def async_is_closed(feb):
    try:
        async for words in feb.blocks_async():
            raise AssertionError("words of a FEB that is closed")
    except fadelink.ClosedError:
        pass
"""


def start(bench, code, *words):
    return bench.start(bench.pc_ns, sys.executable, "-c", PREPARE + code, *words, stdin=subprocess.PIPE)


def python(bench, code, *words):
    """Runs a program to its end: what it has printed."""
    status, out, err = start(bench, code, *words).finish()
    assert status == 0, out + err
    return out

"""What a fault is, where it is tried, and the shim: a disk that fails, a clock that is stepped."""

import contextlib
import os
import random
import struct
import time
from dataclasses import dataclass

from support.kafka import Setup
from support.netns import sh
from support.paths import BUILD, SEED, TOP

PORT = 10000
# An address of loopback that only the broker has, so that the network to it can be cut.
BROKER = "127.0.0.9"
SOURCES = (1, 2, 3)


@dataclass
class Outcome:
    """Counts of one try, in the fault's unit."""

    promised: int  # what the documents promise
    lost: int = 0  # of it: not there, wrong, or there twice
    told: int = 0  # not promised, lost, and reported as lost


@dataclass
class Fault:
    """A fault: `run(site)` brings it about once and returns the outcome, or raises if something else is wrong."""

    name: str
    what: str
    unit: str
    promise: str
    kafka: bool
    run: object


FAULTS = {}


def fault(name, what, unit, promise, kafka=False):
    def add(run):
        FAULTS[name] = Fault(name, what, unit, promise, kafka, run)
        return run

    return add


class Site:
    """Where a fault is tried: namespaces with a cable (`net`), a folder, a broker for those who want one, random numbers."""

    def __init__(self, name, net, broker=None, seed=SEED):
        self.net, self.broker, self.name, self.folder = net, broker, f"{name}-{seed}", net.tmp
        self.random = random.Random(f"{name}/{seed}")

    def pause(self, least, most):
        time.sleep(self.random.uniform(least, most))

    def kafka(self):
        """Topics of this try, and a process list that ends with it."""
        return contextlib.closing(Setup(self.broker, self.name, environment(clock=clock_file(self.folder))))


def environment(clock=None, disk=None, after=0, only_sync=False, error=None):
    """Environment of a program whose clock goes by the file `clock`, and whose files below `disk` fail after so many bytes (with
    the number `error`: EIO)."""
    shim, source = BUILD / "faults.so", TOP / "tests/support/faults.c"
    if not shim.exists() or shim.stat().st_mtime < source.stat().st_mtime:
        fresh = BUILD / f"faults-{os.getpid()}.so"
        sh("gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", fresh, source)
        fresh.rename(shim)
    words = {"LD_PRELOAD": str(shim)}
    if clock:
        words["FADELINK_CLOCK"] = str(clock)
    if disk:
        words |= {"FADELINK_EIO_PATH": str(disk), "FADELINK_EIO_AFTER": str(after)}
    if only_sync:
        words["FADELINK_EIO_SYNC"] = "1"
    if error:
        words["FADELINK_EIO_ERRNO"] = str(error)
    return os.environ | words


def clock_file(folder):
    """A clock that is right, for `step`."""
    path = folder / "clock"
    path.write_bytes(bytes(8))
    return path


def step(clock, seconds):
    with open(clock, "r+b") as file:
        file.write(struct.pack("<q", int(seconds * 1e9)))

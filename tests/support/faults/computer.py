"""Faults: the clock, the file descriptors and the memory of the computer."""

import contextlib
import json
import os
import resource
import signal
import socket
import struct
import subprocess
import time

from support.broker import free_ports
from support.faults.site import Outcome, clock_file, environment, fault, step
from support.faults.written import building, closed_windows, closed_words, process_end
from support.netns import PATIENCE, sh, wait_for
from support.netns import report as report_of
from support.paths import FADELINK


@fault(
    "clock-stepped", "the time of day is stepped by up to a day, back and forth, `receive` with HDF5 that rolls over", "words",
    "every word arrives and is in the files, which roll over as before",
)  # fmt: skip
def clock_stepped(site):
    net, clock = site.net, clock_file(site.folder)
    net.sim()
    words = ("--iface", "eth0", "--feb", "02:fa:de:00:00:01", "--json", "--verify", "counter", "--quiet")
    begin = time.monotonic()
    process = net.fadelink("receive", *words, "--sink", f"hdf5:{net.tmp}/data.h5,every=0.3", env=environment(clock=clock))
    net.wait_for_frames(1)
    for _ in range(4):
        site.pause(0.1, 0.6)
        step(clock, site.random.choice([-1, 1]) * site.random.choice([1, 60, 3600, 86400]) * site.random.random())
    process.signal(signal.SIGINT)
    status, result = report_of(process.finish())
    words = result["febs"][0]["words"]
    assert status == 0 and result["febs"][0]["verified"], result
    files = len(list(net.tmp.glob("data*.h5")))
    assert files <= (time.monotonic() - begin) / 0.3 + 2, f"{files} files"
    closed, wrong = closed_words(net.tmp, "data")
    return Outcome(words, wrong + abs(words - closed))


@fault(
    "no-descriptor", "`receive --tcp` has no file descriptor left (EMFILE)", "words",
    "connections that run have every word; others are counted, and accepted when descriptors are free",
)  # fmt: skip
def no_descriptor(site):
    limit, (port,) = site.random.randrange(30, 80), free_ports(1)
    words = [FADELINK, "receive", "--tcp", port, "--listen", "127.0.0.1", "--json", "--verify", "counter", "--quiet", "--end", "told"]
    process = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)))  # fmt: skip
    boards = []

    def connect():
        try:
            boards.append(socket.create_connection(("127.0.0.1", port)))
            return True
        except OSError:
            return False

    try:
        wait_for(connect)
        boards[0].sendall(struct.pack("<Q", 0))
        # More than it can have at once: the others wait in the kernel.
        assert all(connect() for _ in range(limit))
        wait_for(lambda: "could not be accepted" in os.read(process.stderr.fileno(), 4096).decode())
        boards[0].sendall(struct.pack("<Q", 1))
        for board in boards:
            board.close()
        # A newcomer is served to its end.
        newcomer = socket.create_connection(("127.0.0.1", port))
        newcomer.sendall(struct.pack("<1000Q", *range(1000)))
        newcomer.shutdown(socket.SHUT_WR)
        newcomer.settimeout(PATIENCE)
        assert newcomer.recv(1) == b"", "it closes when it has all"
        newcomer.close()
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
        process.communicate()
    found = json.loads(out)
    assert found["refused"] > 0
    # In the order in which their threads began.
    counts = sorted(stream["words"] for stream in found["streams"] if stream["complete"])
    wrong = sum(stream["wrong_words"] for stream in found["streams"])
    return Outcome(1002, wrong + abs(1002 - sum(counts[-2:])), found["refused"])


@contextlib.contextmanager
def memory_limit(folder, size):
    """A memory cgroup of version 1 or 2 in a mount of its own: what a child calls to be in it."""
    mounted, group = folder / "cgroup", None
    mounted.mkdir()
    try:
        sh("mount", "-t", "cgroup", "-o", "memory", "none", mounted)
        name = "memory.limit_in_bytes"
    except subprocess.CalledProcessError:
        sh("mount", "-t", "cgroup2", "none", mounted)
        name = "memory.max"
        (mounted / "cgroup.subtree_control").write_text("+memory")
    try:
        group = mounted / f"fadelink-{os.getpid()}"
        group.mkdir()
        (group / name).write_text(str(size))
        yield lambda: (group / "cgroup.procs").write_text(str(os.getpid()))
    finally:
        if group and group.exists():
            # The kernel needs a moment to see that its last process has ended.
            end = time.monotonic() + PATIENCE
            while True:
                try:
                    group.rmdir()
                    break
                except OSError:
                    if time.monotonic() > end:
                        raise
                    time.sleep(0.05)
        sh("umount", mounted)


@fault(
    "no-memory", "`build` in a cgroup with too little memory: its queues grow until the kernel kills it", "windows",
    "files that were closed have every window, from the first of the run on",
)  # fmt: skip
def no_memory(site):
    size = site.random.randrange(24, 64) << 20
    sinks = ("--sink", f"hdf5:{site.folder}/data.h5,every=0.3", "--sink", f"zmq-push:ipc://{site.folder}/push,queue=1G")
    with memory_limit(site.folder, size) as enter, building(*sinks, batch=200, preexec_fn=enter) as process:
        status, _, err = process_end(process)
    assert status == -signal.SIGKILL, (status, err)
    return Outcome(*closed_windows(site.folder, "data"))

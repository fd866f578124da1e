"""Messages that nobody reads: a terminal that was stopped (Ctrl-S), a pipe that is full. They keep no run, and no end of a program."""

import contextlib
import os
import pty
import signal
import termios

import pytest
from support.lab import fade
from support.netns import FEBS, wait_for


@contextlib.contextmanager
def stopped_terminal():
    window, device = pty.openpty()
    termios.tcflow(device, termios.TCOOFF)
    yield device, window
    os.close(device)
    os.close(window)


@contextlib.contextmanager
def full_pipe():
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with contextlib.suppress(BlockingIOError):
        while os.write(writer, bytes(4096)):
            pass
    os.set_blocking(writer, True)
    yield writer, reader
    os.close(writer)
    os.close(reader)


UNREAD = pytest.mark.parametrize("unread", [stopped_terminal, full_pipe])


@UNREAD
@pytest.mark.parametrize("quiet", [True, False])
def test_a_run_ends_though_nobody_reads_its_messages(lab, unread, quiet):
    lab.bench.sim("--gap", 200)
    lab.write("[stop]\nduration = 0.5\n" + fade("left"))
    with unread() as (device, _):
        process = lab.bench.fadelink("run", lab.file, *(["--quiet"] if quiet else []), stderr_to=device)
        assert process.finish()[0] == 0
    assert lab.manifest()["state"] == "complete"


@UNREAD
def test_it_ends_when_it_is_asked_to(bench, unread):
    bench.sim("--gap", 200)
    out = bench.tmp / "data"
    with unread() as (device, _):
        process = bench.fadelink("receive", "--iface", "eth0", "--feb", FEBS[0], "--out", out, "--verify", "counter", stderr_to=device)
        wait_for(lambda: out.exists() and out.stat().st_size > 100_000)
        process.signal(signal.SIGINT)
        assert process.finish()[0] == 0


def test_who_reads_later_has_all(lab):
    """What waits is written as soon as somebody takes it, whether more comes or not."""
    lab.bench.sim("--gap", 200)
    lab.write(fade("left"))
    with full_pipe() as (device, reader):
        process = lab.bench.fadelink("run", lab.file, "--quiet", stderr_to=device)
        wait_for(lambda: any(path.stat().st_size > 100_000 for path in lab.runs.glob("run_*/left.dat")))
        os.set_blocking(reader, False)
        read = b""

        def has(text):
            nonlocal read
            with contextlib.suppress(BlockingIOError):
                read += os.read(reader, 1 << 16)
            return text in read

        wait_for(lambda: has(b"run 1 begins"))
        process.signal(signal.SIGINT)
        assert process.finish()[0] == 0
        wait_for(lambda: has(b"run 1 has ended"))
        assert read.count(b"run 1 begins") == 1 and b"left out" not in read

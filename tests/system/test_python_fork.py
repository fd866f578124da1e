"""The Python package in a process that was forked: it has nothing of its parent's boards, and keeps nothing of them."""

import json

import pytest
from support.netns import FEBS
from support.python import python, start

FORK = """
def forked(child):
    "Runs `child` in a forked process: how it ended, and what it had to say."
    begin, end = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            child()
            os.write(end, b"done")
            sys.stdout.flush()
        except BaseException as error:
            import traceback
            traceback.print_exc()
        os._exit(0)
    os.close(end)
    said = os.read(begin, 100)
    assert os.waitpid(pid, 0)[1] == 0 and said == b"done", said

def descriptors(pid="self"):
    "What a process has open of receivers: sockets, claims, devices."
    found = []
    for number in os.listdir(f"/proc/{pid}/fd"):
        try:
            found.append(os.readlink(f"/proc/{pid}/fd/{number}"))
        except FileNotFoundError:
            pass
    return [name for name in found if name.startswith("socket:") or FOLDER in name or "l3_fpga" in name or "bpf" in name or "eventpoll" in name]

def is_forked(receiver, feb):
    assert receiver.closed and feb.closed
    for call in (feb.start, feb.stop, feb.reset, lambda: feb.command(0x0207, 1), feb.counters, feb.kind, feb.ending, feb.filler,
                 feb.inquire, feb.against, feb.fill, feb.fileno, feb.read, lambda: next(feb.blocks()), feb.__enter__,
                 receiver.counters, lambda: receiver.open(THIRD), receiver.__enter__):
        raises(fadelink.ForkedError, "one of the process that this one was forked from", call)
    feb.close(), receiver.close()
"""


@pytest.mark.parametrize("backend", ["packet", "xdp"])
def test_a_child_has_nothing_of_a_board(bench, backend):
    """It says so, sends nothing, keeps nothing, and does not wait; the parent goes on as before, without a gap."""
    sim = bench.sim()
    python(
        bench,
        FORK
        + f"""
with fadelink.Receiver("eth0", {backend!r}) as receiver, receiver.open(MAC, ring_packets=64) as feb:
    feb.start()
    blocks = feb.blocks(8192)
    expected = 0
    kept = []
    for i in range(30):
        words = next(blocks)
        assert words[0] == expected
        expected += len(words)
        kept.append(words)

        def child():
            assert not descriptors(), descriptors()
            is_forked(receiver, feb)
            raises(fadelink.ForkedError, "forked", lambda: next(blocks))
            # All of it is collected, as what is in the frames of the parent.
            for name in ("receiver", "feb", "blocks", "words", "kept"):
                globals().pop(name, None)
            gc.collect()
        forked(child)
        assert not feb.closed and feb.counters()["packets"] > 0
    threading.Thread(target=feb.stop).start()
    for words in blocks:
        assert (words == np.arange(expected, expected + len(words), dtype="u8")).all(), expected
        expected += len(words)
    assert feb.ending() == "confirmed" and feb.against() == [], "no RESET was sent"
""",
    )
    assert bench.end_sim(sim)["boards"][0]["running"] is False


@pytest.mark.parametrize("keeps", ["an array", "a block", "nothing"])
@pytest.mark.parametrize("backend", ["packet", "xdp"])
def test_a_child_that_lives_keeps_no_board(bench, backend, keeps):
    """Its parent, and another program, have the board again at once; the arrays of the child are readable."""
    bench.sim()
    process = start(
        bench,
        FORK
        + f"""
receiver = fadelink.Receiver("eth0", {backend!r})
feb = receiver.open(MAC)
feb.start()
block = feb.read(8192)
words = block.__enter__()
begin, end = os.pipe()
if {keeps!r} != "an array":
    del words
if {keeps!r} == "nothing":
    block.__exit__()
pid = os.fork()
if pid == 0:
    os.close(end)
    os.read(begin, 1)  # until the parent ends
    if "words" in globals():
        assert words.sum() == np.arange(len(words)).sum()
    os._exit(0)
os.close(begin)
assert sockets() and claims()
feb.close()
receiver.close()
assert not sockets() and not claims(), (sockets(), claims())
with fadelink.Receiver("eth0", {backend!r}) as receiver, receiver.open(MAC) as feb:
    feb.start()
    assert first(feb) == 0
print("closed", flush=True)
sys.stdin.readline()
os.close(end)
assert os.waitpid(pid, 0)[1] == 0
""",
    )
    assert process.popen.stdout.readline() == "closed\n", process.finish()
    status, out, err = bench.receive("--quiet", "--packets", 20).finish()
    assert status == 0, out + err
    process.popen.stdin.write("\n")
    process.popen.stdin.flush()
    status, out, err = process.finish()
    assert status == 0, out + err


def test_a_killed_parent_gives_the_board_back(bench):
    """Though its child lives."""
    bench.sim()
    process = start(
        bench,
        """
receiver = fadelink.Receiver("eth0")
feb = receiver.open(MAC)
feb.start()
if os.fork() == 0:
    sys.stdin.read()
    os._exit(0)
print("forked", flush=True)
os.kill(os.getpid(), signal.SIGKILL)
""",
    )
    assert process.popen.stdout.readline() == "forked\n"
    process.popen.wait()
    status, out, err = bench.receive("--quiet", "--packets", 20).finish()
    assert status == 0, out + err


@pytest.mark.parametrize("end", ["os._exit(7)", "sys.exit(7)", "raise SystemExit(7)"])
def test_a_child_ends_in_every_way(bench, end):
    """Within `with`, while other threads of the parent read, send commands, open and close."""
    sim = bench.sim("--boards", 2)
    python(
        bench,
        f"""
with fadelink.Receiver("eth0") as receiver, receiver.open(MAC) as feb:
    feb.start()
    expected, ended = 0, threading.Event()
    def read():
        global expected
        for words in feb.blocks(8192, 1):
            assert (words == np.arange(expected, expected + len(words), dtype="u8")).all(), expected
            expected += len(words)
    def command():
        while not ended.is_set():
            feb.command(0x0207, 1)
    def reopen():
        while not ended.is_set():
            with receiver.open(OTHER) as other:
                other.start()
    threads = [threading.Thread(target=work) for work in (read, command, reopen)]
    for thread in threads:
        thread.start()
    for i in range(40):
        pid = os.fork()
        if pid == 0:
            {end}
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7, i
    ended.set()
    for thread in threads[1:]:
        thread.join()
    feb.stop()
    threads[0].join()
    assert expected > 0 and feb.ending() == "confirmed" and feb.against() == []
""",
    )
    assert bench.end_sim(sim)["boards"][0]["running"] is False


def test_a_child_opens_its_own(bench):
    """Another board while the parent has one, and the parent's when that has closed it; a child of the child as well."""
    bench.sim("--boards", 2)
    python(
        bench,
        FORK
        + """
def receive(mac):
    with fadelink.Receiver("eth0") as receiver, receiver.open(mac) as feb:
        feb.start()
        assert feb.command(0x0100) == 0x4641444531304701
        assert first(feb) == 0

with fadelink.Receiver("eth0") as receiver, receiver.open(MAC) as feb:
    feb.start()
    def child():
        with fadelink.Receiver("eth0") as mine:
            error = raises(fadelink.HeldError, "it is open already", mine.open, MAC)
            assert error.holder.pid == os.getppid()
        receive(OTHER)
        is_forked(receiver, feb)
        forked(lambda: (is_forked(receiver, feb), receive(OTHER)))
        receive(OTHER)
    forked(child)
    assert first(feb) == 0
forked(lambda: receive(MAC))
receive(MAC)
assert not claims() and not sockets()
""",
    )


def test_multiprocessing(bench):
    """Workers that are forked from a program with boards compute on copies, and end; the pool is closed in any order."""
    sim = bench.sim()
    python(
        bench,
        """
from concurrent.futures import ProcessPoolExecutor

def total(words):
    return int(words.sum())

context = multiprocessing.get_context("fork")
with fadelink.Receiver("eth0") as receiver, receiver.open(MAC) as feb:
    feb.start()
    with context.Pool(2) as pool:
        for words, _ in zip(feb.blocks(8192), range(10)):
            assert pool.apply(total, (words.copy(),)) == words.sum()
    pool.join()
    process = context.Process(target=lambda: raises(fadelink.ForkedError, "forked", feb.start))
    process.start()
    process.join()
    assert process.exitcode == 0
    workers = ProcessPoolExecutor(2, mp_context=context)
    assert workers.submit(total, np.arange(10)).result() == 45
assert not claims() and not sockets(), "while the workers live"
workers.shutdown()
""",
    )
    assert bench.end_sim(sim)["boards"][0]["running"] is False


def test_a_program_is_started_without_descriptors(bench):
    """With and without what makes Python fork rather than spawn."""
    bench.sim()
    out = python(
        bench,
        """
import subprocess
with fadelink.Receiver("eth0") as receiver, receiver.open(MAC) as feb:
    feb.start()
    for options in ({}, {"preexec_fn": lambda: None}, {"close_fds": False}, {"close_fds": False, "preexec_fn": lambda: None}):
        print(subprocess.run(["ls", "-l", "/proc/self/fd"], capture_output=True, text=True, **options).stdout)
    assert first(feb) == 0
""",
    )
    assert "socket:" not in out and "/run/fadelink" not in out and json.dumps(FEBS[0]) not in out

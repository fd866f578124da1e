"""The Python package closes boards: by `with`, by `close`, when nobody has them any more, and when Python ends."""

import json

import pytest
from support.netns import FEBS, wait_for
from support.python import python, start


def identity(bench):
    status, out, _ = bench.run("discover", "--iface", "eth0", "--json", "--timeout", 0.3, "--feb", FEBS[0])
    return (json.loads(out).get("identity") or {}) if status == 0 else {}


def is_idle(bench):
    """The board has obeyed RESET, or never began."""
    return identity(bench).get("running") is False


KEEP = {
    "an array": "kept = next(feb.blocks())",
    "a generator": "kept = feb.blocks(); next(kept)",
    "a block": "kept = feb.read(8192)",
    "a block that is entered": "kept = feb.read(8192); words = kept.__enter__()",
    "a copy of the handle": "kept = [feb, feb.read, feb.blocks()]",
    "a slice of an array": "kept = next(feb.blocks())[5:9]",
    "an array that was released": "blocks = feb.blocks(); kept = next(blocks); next(blocks)",
    "a cycle": "kept = [next(feb.blocks())]; kept.append(kept); kept.append(feb)",
}


@pytest.mark.parametrize("backend", ["packet", "xdp"])
@pytest.mark.parametrize("keep", KEEP)
def test_with_closes_the_board_whatever_is_kept(bench, backend, keep):
    sim = bench.sim()
    out = python(
        bench,
        f"""
with fadelink.Receiver("eth0", {backend!r}) as receiver, receiver.open(MAC, ring_packets=64) as feb:
    feb.start()
    {KEEP[keep]}
    assert claims() and sockets()
is_closed(feb)
assert receiver.closed and not claims() and not sockets(), (claims(), sockets())
raises(fadelink.ClosedError, "the receiver is closed", receiver.counters)
raises(fadelink.ClosedError, "the receiver is closed", receiver.open, MAC)
# Another one has it at once.
with fadelink.Receiver("eth0", {backend!r}) as receiver, receiver.open(MAC) as feb:
    feb.start()
    assert first(feb) == 0
print(hash(repr(kept)) is not None)
""",
    )
    assert out == "True\n"
    assert bench.end_sim(sim)["boards"][0]["running"] is False


def test_arrays_stay_readable(bench):
    """Before and behind the end of the FEB and of its receiver, whatever is closed first, and they do not change then."""
    bench.sim("--boards", 2)
    python(
        bench,
        """
for order in ["feb", "receiver", "neither"]:
    receiver = fadelink.Receiver("eth0")
    feb = receiver.open(MAC, ring_packets=64)
    feb.start()
    with feb.read(30 * 8192) as words:
        expected = words.copy()
    kept = [feb.read(8192), feb.read]
    array = kept[0].__enter__()
    copy = array.copy()
    if order == "feb":
        feb.close(), receiver.close()
    elif order == "receiver":
        receiver.close(), feb.close()
    else:
        del feb, receiver, kept
        gc.collect()
    # What comes into the ring of another one goes elsewhere.
    with fadelink.Receiver("eth0") as other, other.open(MAC) as again:
        again.start()
        for block, _ in zip(again.blocks(), range(20)):
            assert (array == copy).all()
    assert (array == copy).all() and array.sum() == copy.sum(), order
    del array
    gc.collect()
""",
    )


def test_an_exception_closes_the_board(bench):
    """In the loop of the documentation; its traceback keeps all frames, as a notebook does."""
    sim = bench.sim()
    python(
        bench,
        """
class Wrong(Exception): pass

def receive(how):
    with fadelink.Receiver("eth0") as receiver, receiver.open(MAC) as feb:
        feb.start()
        for words in feb.blocks():
            how()

def wrong():
    raise Wrong

kept = []
for how, error in ((wrong, Wrong), (lambda: os.kill(os.getpid(), signal.SIGINT), KeyboardInterrupt), (lambda: sys.exit(3), SystemExit)):
    try:
        receive(how)
    except error as e:
        kept.append(e)
    assert not claims() and not sockets(), error
assert len(kept) == 3
""",
    )
    assert bench.end_sim(sim)["boards"][0]["running"] is False


def test_ctrl_c_anywhere_closes_the_board(bench):
    """It comes at any moment of the loop, also while the board is being closed."""
    bench.sim()
    python(
        bench,
        """
def receive(delay):
    with fadelink.Receiver("eth0") as receiver, receiver.open(MAC) as feb:
        feb.start()
        signal.setitimer(signal.ITIMER_REAL, delay)
        for words, _ in zip(feb.blocks(8192), range(5)):
            pass

def interrupt(*_):
    raise KeyboardInterrupt
signal.signal(signal.SIGALRM, interrupt)

came, kept = 0, []
for i in range(60):
    try:
        receive(0.0002 * (i + 1))
    except KeyboardInterrupt as error:
        kept.append(error)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt as error:
        kept.append(error)
    assert not claims() and not sockets(), i
assert kept
""",
    )


def test_close_ends_what_waits_in_other_threads(bench):
    """A read, a command and START to a board that is not there, a read by asyncio; again and by two threads."""
    bench.sim("--words", 100)
    python(
        bench,
        """
def in_thread(call):
    outcome, waits = [], threading.Event()
    def run():
        waits.set()
        try:
            outcome.append(call())
        except Exception as error:
            outcome.append(error)
    thread = threading.Thread(target=run)
    thread.start()
    waits.wait()
    return thread, outcome

LONG = 3600
async def read(feb):
    async for words in feb.blocks_async():
        raise AssertionError(words)

for which in ("receiver", "feb"):
    with fadelink.Receiver("eth0") as receiver:
        feb, absent = receiver.open(MAC), receiver.open(OTHER)
        feb.start()
        waiting = [
            in_thread(call)
            for call in (
                lambda: feb.read(8192, LONG),
                lambda: list(feb.blocks()),
                lambda: asyncio.run(read(feb)),
                lambda: absent.command(0x0207, 1, timeout=LONG),
                lambda: absent.start(),
            )
        ]
        waits = lambda thread: sys._current_frames()[thread.ident].f_code.co_name in ("read", "select", "command", "start")
        while not all(waits(thread) for thread, _ in waiting):
            time.sleep(0.01)
        closers = [in_thread(call) for call in ([receiver.close] if which == "receiver" else [feb.close, absent.close]) * 3]
        for thread, outcome in closers:
            thread.join()
            assert outcome == [None], outcome
        assert not claims()
        for thread, outcome in waiting:
            thread.join()
            assert isinstance(outcome[0], fadelink.ClosedError), (which, outcome)
""",
    )


def test_asyncio_goes_on_when_a_board_is_closed(bench):
    """The task that reads fails; the loop and its other descriptors are as before."""
    bench.sim("--words", 100)
    python(
        bench,
        """
async def main():
    loop = asyncio.get_running_loop()
    receiver = fadelink.Receiver("eth0")
    feb = receiver.open(MAC)
    feb.start()
    async def read():
        async for words in feb.blocks_async():
            raise AssertionError(words)
    reading = asyncio.create_task(read())
    await asyncio.sleep(0.01)
    before = set(os.listdir("/proc/self/fd"))
    receiver.close()
    # It has the numbers of what was closed.
    pipes = [os.pipe() for _ in range(10)]
    came = [loop.create_future() for _ in pipes]
    for (end, _), future in zip(pipes, came):
        loop.add_reader(end, future.set_result, None)
    try:
        await reading
        raise AssertionError("it has ended")
    except fadelink.ClosedError:
        pass
    for (end, begin), future in zip(pipes, came):
        os.write(begin, b"x")
        await future
        loop.remove_reader(end)
    assert not claims() and not sockets()

asyncio.run(main())
""",
    )


def test_a_board_that_nobody_has_is_closed(bench):
    """As after an exception in a notebook; also one in a cycle, and one of which an array is kept."""
    bench.sim("--boards", 2)
    python(
        bench,
        """
def receive():
    feb = fadelink.Receiver("eth0").open(MAC)
    feb.start()
    return next(feb.blocks())

array = receive()
gc.collect()
assert not claims() and not sockets()
assert array[0] == 0 and array.sum() > 0

receiver = fadelink.Receiver("eth0")
feb, other = receiver.open(MAC), receiver.open(OTHER)
feb.itself = feb
feb.start(), other.start()
del feb
gc.collect()
assert [name[-22:] for name in claims() if name.endswith(".data")] == [OTHER + ".data"]
del receiver
gc.collect()
# It has the receiver.
assert first(other) == 0
del other
gc.collect()
assert not claims() and not sockets()
""",
    )


@pytest.mark.parametrize("end", ["pass", "sys.exit(0)", "raise SystemExit", "asyncio.run(asyncio.sleep(0))"])
def test_the_end_of_python_closes_boards(bench, end):
    """Though something that Python does not collect still has them."""
    sim = bench.sim()
    python(
        bench,
        f"""
import builtins
receiver = fadelink.Receiver("eth0")
feb = builtins.feb = receiver.open(MAC)
feb.start()
builtins.kept = [next(feb.blocks()), feb]
builtins.kept.append(builtins.kept)
threading.Thread(target=lambda: feb.read(1 << 40), daemon=True).start()
{end}
""",
    )
    wait_for(lambda: is_idle(bench))
    assert bench.end_sim(sim)["boards"][0]["running"] is False


def test_a_board_is_not_closed_while_it_is_used(bench):
    """A generator or a method alone has it."""
    bench.sim()
    python(
        bench,
        """
def blocks():
    feb = fadelink.Receiver("eth0").open(MAC)
    feb.start()
    return feb.blocks(8192)

expected = 0
for words in blocks():
    gc.collect()
    assert words[0] == expected
    expected += len(words)
    if expected > 100 * 1024:
        break
del words
gc.collect()
assert not claims() and not sockets()
""",
    )


def test_a_claim_is_free_at_once(bench):
    """The next program has the board as soon as `close` returns, though the first one lives and keeps all."""
    bench.sim()
    process = start(
        bench,
        """
receiver = fadelink.Receiver("eth0")
feb = receiver.open(MAC)
feb.start()
kept = next(feb.blocks())
feb.close()
print("closed", flush=True)
sys.stdin.read()
""",
    )
    assert process.popen.stdout.readline() == "closed\n"
    status, out, err = bench.receive("--quiet", "--packets", 20).finish()
    assert status == 0, out + err
    assert process.popen.poll() is None

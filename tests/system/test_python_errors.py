"""What the Python package raises: a class for each kind of failure, which is also what it was before."""

import inspect

import fadelink
from support.python import python


def test_every_class_has_a_place():
    """Each is an `Error`, is exported and documented, and is what programs catch that do not know it."""
    classes = {name: thing for name, thing in vars(fadelink).items() if inspect.isclass(thing) and issubclass(thing, Exception)}
    classes.pop("RunWarning")
    assert set(classes) <= set(fadelink.__all__) and all(thing.__doc__ for thing in classes.values())
    assert all(issubclass(thing, fadelink.Error) for thing in classes.values())
    for name, known in {
        "ClosedError": ValueError, "ConfigError": ValueError, "CommandCodeError": ValueError, "NoAnswerError": TimeoutError,
        "NotSentError": TimeoutError, "HeldError": RuntimeError, "AbortedError": RuntimeError, "FailedError": RuntimeError,
        "BlockHeldError": BufferError, "BlockReleasedError": BufferError, "OperatingSystemError": OSError, "ForkedError": RuntimeError, "RefusedError": RuntimeError,
    }.items():  # fmt: skip
        assert issubclass(classes[name], known), name
    timeouts = {name for name, thing in classes.items() if issubclass(thing, TimeoutError)}
    assert timeouts == {"NoAnswerError", "NotSentError"}


def test_each_kind_of_failure_has_its_class(bench):
    bench.sim()
    python(
        bench,
        """
import errno
def is_(error, text, known, call, *arguments, **named):
    e = raises(error, text, call, *arguments, **named)
    assert type(e).__name__ == error.__name__ and isinstance(e, known) and isinstance(e, fadelink.Error), repr(e)
    return e

F = fadelink
is_(F.ConfigError, "tape", ValueError, F.Receiver, "eth0", "tape")
e = is_(F.OperatingSystemError, "nothing0", FileNotFoundError, F.Receiver, "nothing0")
assert e.errno == errno.ENOENT and "nothing0" in e.strerror
is_(F.OperatingSystemError, "not loaded", FileNotFoundError, F.Receiver, "eth0", "kernel")
with F.Receiver("eth0") as receiver:
    for address in ("xyz", "ff:ff:ff:ff:ff:ff", "01:00:5e:00:00:01", "00:00:00:00:00:00"):
        is_(F.ConfigError, f"`{address}`: expected a unicast address", ValueError, receiver.open, address)
    is_(F.ConfigError, "window 65", ValueError, receiver.open, MAC, window=65)
    is_(F.ConfigError, "expected fade10g or fade1", ValueError, receiver.open, MAC, protocol="fade2")
    with receiver.open(MAC) as feb:
        e = is_(F.HeldError, "open already", RuntimeError, receiver.open, MAC)
        assert e.holder.pid == os.getpid() and not isinstance(e, TimeoutError)
        is_(F.ConfigError, "timeout -1", ValueError, feb.read, timeout=-1)
        e = is_(F.CommandCodeError, "expected STOP, IDENTIFY", ValueError, feb.command, 1)
        assert e.code == 1 and not isinstance(e, TimeoutError)
        feb.start()
        block = feb.read(8192)
        is_(F.BlockHeldError, "still held", BufferError, feb.read)
        is_(F.BlockHeldError, "still held", BufferError, feb.start)
        block.__exit__()
        is_(F.BlockReleasedError, "released", BufferError, block.__enter__)
        feb.reset()
        while True:
            try:
                feb.read(1).__exit__()
            except F.AbortedError as e:
                assert isinstance(e, RuntimeError) and "aborted" in str(e) and (e.ending, e.reset_by) == (None, None)
                break
    with receiver.open(OTHER) as absent:
        e = is_(F.NotSentError, "was not sent", TimeoutError, absent.command, 0x0100, timeout=0.02, retries=1)
        assert e.code == 0x0100 and e.attempts > 0 and isinstance(e, F.NoAnswerError)
        e = raises(F.NoAnswerError, "", absent.start)
        assert isinstance(e, TimeoutError)
is_(F.ClosedError, "closed", ValueError, receiver.open, MAC)
""",
    )


def test_a_board_that_stops_answering(bench):
    """What was sent may have been executed; what was not, was not."""
    sim = bench.sim()
    python(
        bench,
        """
with fadelink.Receiver("eth0") as receiver, receiver.open(MAC) as feb:
    feb.start()
    feb.command(0x0207, 1)
    os.kill(int(sys.argv[1]), signal.SIGSTOP)
    e = raises(fadelink.NotSentError, "command 0x0207 was not sent", feb.command, 0x0207, timeout=0.02, retries=1)
    e = raises(fadelink.NoAnswerError, "no response to command 0x0006 after 11 attempts", feb.against)
    assert type(e) is fadelink.NoAnswerError and (e.code, e.attempts) == (6, 11)
    os.kill(int(sys.argv[1]), signal.SIGCONT)
""",
        sim.popen.pid,
    )


def test_another_program_has_it(bench):
    bench.sim()
    process = bench.receive("--quiet")
    bench.wait_for_frames()
    python(
        bench,
        """
with fadelink.Receiver("eth0") as receiver:
    e = raises(fadelink.HeldError, "close it there first", receiver.open, MAC)
    assert e.holder == (int(sys.argv[1]), "fadelink") and e.holder.name in str(e)
""",
        process.popen.pid,
    )


def test_another_computer_has_reset_it(bench):
    bench.sim()
    python(
        bench,
        """
import socket
with fadelink.Receiver("eth0") as receiver, receiver.open(MAC) as feb:
    feb.start()
    for words in feb.blocks():
        break
    addresses = bytes.fromhex((MAC + "020000000099").replace(":", ""))
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as raw:
        raw.bind(("eth0", 0))
        raw.send((addresses + b"\\xfa\\xde\\1\\0\\0\\5" + bytes(6)).ljust(78, b"\\xa5"))
    while feb.inquire().resets == 0:
        time.sleep(0.01)
    feb.reset()
    e = raises(fadelink.AbortedError, "aborted", lambda: list(feb.blocks()))
""",
    )


def test_a_board_without_user_commands(bench):
    bench.sim("--protocol", "fade1")
    python(
        bench,
        """
with fadelink.Receiver("eth0") as receiver, receiver.open(MAC, protocol="fade1") as feb:
    feb.start()
    assert first(feb) == 0
    e = raises(fadelink.NoCommandsError, "which has no user commands", feb.command, 0x0207)
    assert isinstance(e, fadelink.RefusedError) and not isinstance(e, TimeoutError) and e.code == 0x0207
""",
    )


def test_an_interface_that_is_removed(bench):
    bench.sim()
    process_code = """
with fadelink.Receiver("eth0") as receiver, receiver.open(MAC) as feb:
    feb.start()
    blocks = feb.blocks(8192)
    next(blocks)
    import subprocess
    subprocess.run(["ip", "link", "delete", "eth0"], check=True)
    e = raises(fadelink.FailedError, "eth0", lambda: list(blocks))
    assert isinstance(e, RuntimeError)
    raises(fadelink.FailedError, "eth0", feb.start)
"""
    python(bench, process_code)

"""The end of Python while threads of it use the package; errors that go to other processes."""

import pytest
from support.python import python

# Each goes on until the process ends; `ready` is set when it uses the board.
THREADS = {
    "reads": """
def work():
    with fadelink.Receiver("eth0") as receiver, receiver.open(MAC) as feb:
        feb.start()
        for words in feb.blocks(8192):
            ready.set()
""",
    "looks": """
receiver = fadelink.Receiver("eth0")
feb = receiver.open(MAC)
def work():
    while True:
        try:
            feb.counters(), receiver.counters()
        except fadelink.Error:
            pass
        ready.set()
""",
    "opens": """
def work():
    while True:
        try:
            with fadelink.Receiver("eth0") as receiver, receiver.open(MAC) as feb:
                feb.start()
                feb.read(8192)
                ready.set()
        except fadelink.Error:
            pass
""",
}


@pytest.mark.parametrize("name", THREADS)
def test_a_process_ends_as_it_should_though_its_threads_go_on(bench, name):
    bench.sim()
    for _ in range(5):
        python(
            bench,
            f"""
ready = threading.Event()
{THREADS[name]}
for _ in range(1 if "{name}" != "looks" else 3):
    threading.Thread(target=work, daemon=True).start()
ready.wait()
""",
        )


def test_an_error_of_the_system_goes_to_another_process(bench):
    python(
        bench,
        """
import pickle
error = raises(FileNotFoundError, "nosuch", fadelink.Receiver, "nosuch")
same = pickle.loads(pickle.dumps(error))
assert isinstance(same, fadelink.OperatingSystemError) and isinstance(same, FileNotFoundError)
assert (same.errno, str(same)) == (error.errno, str(error))
""",
    )


def test_numbers_that_do_not_fit_are_errors_that_name_them(bench):
    bench.sim()
    python(
        bench,
        """
with fadelink.Receiver("eth0") as receiver:
    for name, value in (("window", -1), ("ring_packets", 1 << 64), ("first_packet", 1 << 32)):
        raises(fadelink.ConfigError, f"{name} {value}: expected 0 to", receiver.open, MAC, **{name: value})
    with receiver.open(MAC) as feb:
        for code in (-1, 0x10000):
            assert raises(fadelink.CommandCodeError, "expected 0 to 0xffff", feb.command, code).code == code
        raises(fadelink.ConfigError, "argument 4294967296: expected", feb.command, 0x100, 1 << 32)
        raises(fadelink.ConfigError, "retries -1: expected", feb.command, 0x100, 0, 1.0, -1)
        raises(fadelink.ConfigError, "threshold -1: expected", feb.read, -1)
        for name, call, arguments in (("ring_packets", receiver.open, (OTHER, "x")), ("code", feb.command, ("x",)), ("threshold", feb.read, ("x", 1))):
            raises(TypeError, f"{name} 'x': expected an integer", call, *arguments)
        for timeout in (1.8e19, float("inf"), -1, float("nan")):
            raises(fadelink.ConfigError, "expected 0 to 31622400 seconds, or None", feb.read, 1, timeout)
            raises(fadelink.ConfigError, "expected 0 to 31622400 seconds, or None", feb.command, 0x100, 0, timeout)
        with fadelink.Receiver("eth0") as other:
            holder = raises(fadelink.HeldError, "it is open already", other.open, MAC).holder
            assert holder == (os.getpid(), None), holder
""",
    )


def test_runs_come_in_the_order_of_their_numbers(tmp_path):
    """Those that cannot be read are told, and keep no other back."""
    import fadelink

    for number, text in ((2, None), (1000000, None), (999999, None), (3, "[]"), (4, '{"format": 99}'), (5, "{")):
        folder = tmp_path / f"run_{number:06}"
        folder.mkdir()
        good = f'{{"format": 1, "run": {number}, "state": "running", "boards": []}}'
        (folder / "manifest.json").write_text(text or good)
    with pytest.warns(fadelink.RunWarning) as told:
        assert [run.number for run in fadelink.runs(tmp_path)] == [2, 999999, 1000000]
    assert all(any(f"run_{number:06}" in str(one.message) for one in told) for number in (3, 4, 5))
    with pytest.raises(FileNotFoundError):
        fadelink.runs(tmp_path / "nowhere")

"""The examples in the help of the subcommands and in the README work as they are printed, and progress is for terminals."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
from contextlib import closing

import pytest
from support.netns import wait_for
from support.paths import FADELINK, SIM, TOP

PATH = f"PATH={SIM.parent}:{FADELINK.parent}:{os.environ['PATH']}"


def help_of(*words):
    return subprocess.run([FADELINK, *words, "--help"], capture_output=True, text=True, check=True).stdout


COMMANDS = [name for name in re.findall(r"^  ([a-z]+)  ", help_of().partition("Commands:")[2], re.M) if name != "help"]


def example(name):
    """The command of the first terminal, and those of the second."""
    lines = help_of(name).splitlines()
    assert lines[0] == "Example:", lines[0]
    board, *commands = [line.split(": ", 1) for line in lines[1 : lines.index("")]]
    assert board[0] == "  terminal 1" and {terminal for terminal, _ in commands} == {"  terminal 2"}
    assert any(text.startswith(f"fadelink {name} ") for _, text in [board, *commands])
    return board[1], [text for _, text in commands]


class Terminal:
    """A terminal of 24 lines and 100 columns; `theirs` is the end that a program has."""

    def __init__(self):
        self.ours, self.theirs = pty.openpty()
        fcntl.ioctl(self.theirs, termios.TIOCSWINSZ, struct.pack("4H", 24, 100, 0, 0))
        self.shown = b""

    def read(self):
        """What was shown so far, and comes at once."""
        while select.select([self.ours], [], [], 0.05)[0]:
            try:
                self.shown += os.read(self.ours, 65536)
            except OSError:  # the program has ended
                break
        return self.shown.decode(errors="replace")

    def close(self):
        os.close(self.ours)
        os.close(self.theirs)


@pytest.fixture
def terminal():
    with closing(Terminal()) as terminal:
        yield terminal


def start(bench, namespace, text, **options):
    return bench.start(namespace, "env", PATH, *text.split(), cwd=bench.tmp, **options)


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in ("top", "feed", "start", "stop", "replay", "demo")])
def test_examples_work(bench, name):
    board, commands = example(name)
    first = start(bench, bench.board_ns if name == "feb" else bench.pc_ns, board)
    if "--virtual" in board:
        assert first.finish()[0] == 0
    else:
        assert re.search(r"board\(s\) on|in software on", first.popen.stderr.readline())
    for text in commands:
        status, out, err = start(bench, bench.pc_ns, text).finish()
        assert status == 0, f"{text}: {out}{err}"
        assert out or err or not text.startswith("fadelink")


def quick_starts():
    """{system: the commands of its quick start in the README}"""
    text = (TOP / "README.md").read_text().split("## Quick start")[1].split("## ")[0]
    found = {}
    for block in re.split(r"^(?=\*\*)", text, flags=re.M)[1:]:
        commands = [line.split("#")[0].strip() for line in block.splitlines() if line.startswith("    ")]
        if commands:
            found[re.match(r"\*\*([\w/ -]+)", block)[1]] = commands
    return found


@pytest.mark.parametrize("system", quick_starts())
def test_quick_starts_work(bench, system):
    board, *commands = quick_starts()[system]
    assert "board(s) on" in start(bench, bench.pc_ns, board).popen.stderr.readline()
    bench.run_in(bench.pc_ns, "ip", "link", "set", "lo", "up")
    # The terminal is tested below.
    for text in [text for text in commands if "fadelink top" not in text]:
        # Boards may take a while until they send: the end is an amount of data where a command has that.
        end = "--packets 100" if "fadelink receive" in text else "--events 20" if "fadelink build" in text else "--duration 2"
        # A board that sends TCP connects again when its stream has ended.
        end += " --streams 1" if "receive --tcp" in text else ""
        status, out, err = start(bench, bench.pc_ns, text.replace("--duration 10", end)).finish()
        assert status == 0, f"{text}: {out}{err}"


def test_all_systems_have_a_quick_start():
    assert list(quick_starts()) == ["FADE-10G", "TCP sender", "UDP/IP stack", "FADC streaming"]


def test_example_of_top_works(bench, terminal):
    board, [text] = example("top")
    assert "board(s) on" in start(bench, bench.pc_ns, board).popen.stderr.readline()
    top = start(bench, bench.pc_ns, text, stdout_to=terminal.theirs, stdin=terminal.theirs)
    wait_for(lambda: "02:fa:de:00:00:04" in terminal.read() or top.popen.poll() is not None)
    os.write(terminal.ours, b"q")
    status, _, err = top.finish()
    assert status == 0 and "02:fa:de:00:00:04" in terminal.read(), err


def test_example_of_feed_has_right_arguments(bench):
    """It needs a broker: without one that is what is missing."""
    _, commands = example("feed")
    status, _, err = start(bench, bench.pc_ns, commands[-1]).finish()
    assert status == 1 and "no broker answers at localhost:9092" in err


@pytest.mark.parametrize("limit", [["--packets", 3000], ["--duration", 2]], ids=lambda words: words[0])
def test_progress_is_for_terminals(bench, terminal, limit):
    """Rate, total and time left on a terminal; no line and no control characters where there is none."""
    words = ["receive", "--iface", "eth0", "--feb", "02:fa:de:00:00:01", *limit]
    board = bench.start(bench.board_ns, SIM, "--iface", "feb0", "--status", "--duration", 600)
    first = board.popen.stderr.readline()
    assert "board(s) on" in first
    _, out, err = bench.run(*words)
    assert not out and "\r" not in err and "\x1b" not in err and "complete" in err.splitlines()[0]
    receiver = bench.fadelink(*words, stderr_to=terminal.theirs)
    wait_for(lambda: terminal.read() and receiver.popen.poll() is not None)
    text = terminal.read()
    assert re.search(r"02:fa:de:00:00:01 .* MB/s .* lost, \d+ repaired", text), text
    assert re.search(r"\d+ %  \d+ s, [\d.]+ MB, [\d.]+ MB/s, \d+ (second|minute)s? left", text), text
    board.signal(signal.SIGTERM)
    _, _, err = board.finish()
    assert err == "", "the simulator writes its line to terminals only"


def test_simulator_shows_progress_on_a_terminal(bench, terminal):
    run = bench.start(bench.pc_ns, SIM, "--virtual", "--packets", 8000, stderr_to=terminal.theirs)
    status, out, _ = run.finish()
    assert status == 0 and "complete" in out
    shown = terminal.read()
    assert re.search(r"\d+ s, \d+ s left, [\d.]+ ms simulated, \d+ packets", shown), shown


def test_man_pages(tmp_path):
    """Each command has a page with its examples, exit statuses and files, and the pages that it names are there."""
    subprocess.run([FADELINK, "generate", "--man", tmp_path], check=True)
    pages = {path.stem: path.read_text().replace("\\-", "-") for path in tmp_path.glob("*.1")}
    assert pages.keys() == {"fadelink", *(f"fadelink-{name}" for name in COMMANDS)}
    for name, page in pages.items():
        sections = dict(re.findall(r'^\.SH "?(.*?)"?\n((?:(?!\.SH).*\n)*)', page, re.M))
        assert re.findall(r"^\\fB(\d)\\fR$", sections["EXIT STATUS"], re.M) == ["0", "1", "2", "3"]
        # All that send commands to a board draw their numbers from one counter.
        counts = name in ("fadelink", *(f"fadelink-{name}" for name in ("cmd", "demo", "discover", "receive", "run", "status", "top")))
        assert ("/var/lib/fadelink/csn/" in sections["FILES"]) == counts, name
        assert ("/run/fadelink/" in sections["FILES"]) == (counts or name == "fadelink-register"), name
        assert name == "fadelink" or f"fadelink {name.removeprefix('fadelink-')} " in sections["EXAMPLES"], name
        named = re.findall(r"^\\fB(\S+)\\fR\(1\)", sections["SEE ALSO"], re.M)
        assert len(named) >= 3 and set(named) <= {*pages, "fadelink-sim"} - {name}, (name, named)


def test_help_says_what_fade_v1_lacks():
    listed = dict(re.findall(r"^  ([a-z]+)  +(.*)$", help_of().partition("Commands:")[2], re.M))
    assert [name for name, text in listed.items() if "FADE v1" in text] == ["discover", "cmd", "status", "top"]
    assert listed["status"].endswith("those with FADE v1 have no counters")

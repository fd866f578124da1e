"""An interface that cannot receive for a while, and a board that sends nothing: both are told, and waited for."""

import json
import signal
from pathlib import Path

import pytest
from support.netns import FEBS, sh, wait_for
from support.paths import FADELINK
from support.resets import OTHER, send_reset

# Slow enough that a run goes on while something happens to it.
SLOW = {"fade10g": ["--gap", 200], "fade1": ["--protocol", "fade1", "--phy", "gmii", "--gap", 1600]}
PROTOCOLS = pytest.mark.parametrize("protocol", SLOW)


class Receiving:
    """`fadelink receive` from one board; what it says is read while it runs."""

    def __init__(self, bench, *options):
        self.bench, self.data, self.said = bench, bench.tmp / "data", bench.tmp / "said"
        with open(self.said, "w") as said:
            words = ["receive", "--iface", "eth0", "--feb", FEBS[0], "--json", "--verify", "counter", "--out", self.data]
            self.process = bench.fadelink(*words, *options, stderr_to=said)
        self.comes()

    def comes(self):
        """Waits for data."""
        before = self.data.stat().st_size if self.data.exists() else 0
        wait_for(lambda: self.data.exists() and self.data.stat().st_size > before + 50_000)

    def says(self, text):
        wait_for(lambda: text in self.said.read_text())

    def report(self):
        status, out, _ = self.process.finish()
        return status, json.loads(out)

    def ends_complete(self):
        """It is asked to end, and has each word: the report of the interface."""
        self.process.signal(signal.SIGINT)
        status, result = self.report()
        board = result["febs"][0]
        assert (status, result["complete"], board["verified"]) == (0, True, True), (result, self.said.read_text())
        return result["link"]


def link(bench, *words):
    sh("ip", "-n", bench.pc_ns, "link", *words)


def down(bench):
    link(bench, "set", "eth0", "down")


def port_of_a_bridge(bench):
    link(bench, "add", "br0", "type", "bridge")
    link(bench, "set", "br0", "mtu", 9000, "up")
    link(bench, "set", "eth0", "master", "br0")


def smaller_frames(bench):
    link(bench, "set", "eth0", "mtu", "1000")


def another_address(bench):
    link(bench, "set", "eth0", "down")
    link(bench, "set", "eth0", "address", "02:00:00:00:00:99")
    link(bench, "set", "eth0", "up")


def address_of(bench):
    return json.loads(sh("ip", "-n", bench.pc_ns, "-j", "link", "show", "eth0"))[0]["address"]


# What happens to the interface, what is said, and what undoes it.
OBSTACLES = {
    "down": (down, "interface eth0 is down", ["up"]),
    "port": (port_of_a_bridge, "interface eth0 is a port of br0, which takes the frames that come", ["nomaster"]),
    "MTU": (smaller_frames, "interface eth0 has MTU 1000 now, less than before", ["mtu", "9000"]),
    "address": (another_address, "interface eth0 has another address now, 02:00:00:00:00:99", ["address", None]),
}


@PROTOCOLS
@pytest.mark.parametrize("obstacle", OBSTACLES)
def test_an_interface_that_cannot_receive_is_waited_for(bench, obstacle, protocol):
    happens, said, undone = OBSTACLES[obstacle]
    bench.sim(*SLOW[protocol])
    receiving = Receiving(bench)
    before = address_of(bench)
    happens(bench)
    receiving.says(said)
    link(bench, "set", "eth0", *[before if word is None else word for word in undone])
    receiving.says("interface eth0 receives again, after")
    receiving.comes()
    assert receiving.ends_complete()["interruptions"] > 0


def test_an_interface_that_is_down_for_a_moment_ends_nothing(bench):
    bench.sim(*SLOW["fade10g"])
    receiving = Receiving(bench)
    for _ in range(5):
        down(bench)
        link(bench, "set", "eth0", "up")
        receiving.comes()
    receiving.says("interface eth0 receives again")
    assert receiving.ends_complete()["interruptions"] > 0


def test_an_interface_that_stays_down_does_not_keep_a_program(bench):
    bench.sim(*SLOW["fade10g"])
    receiving = Receiving(bench)
    down(bench)
    receiving.says("interface eth0 is down")
    for number in (signal.SIGINT, signal.SIGTERM):
        receiving.process.signal(number)
    status, result = receiving.report()
    board = result["febs"][0]
    assert (status, result["complete"], board["wrong_words"]) == (3, False, 0) and board["words"] > 0


@pytest.mark.parametrize("stays", [False, True])
def test_a_search_for_boards_outlasts_an_interface_that_is_down(bench, stays):
    """It looks for a board that is not there, then for all: those that answer when the interface is up again are found."""
    bench.sim()
    found = bench.fadelink("discover", "--iface", "eth0", "--feb", "02:fa:de:00:00:99", "--timeout", 2)
    sockets = ["ip", "netns", "exec", bench.pc_ns, "cat", "/proc/net/packet"]
    wait_for(lambda: len(sh(*sockets).splitlines()) > 1)
    down(bench)
    if not stays:
        link(bench, "set", "eth0", "up")
    status, out, err = found.finish()
    assert (status, FEBS[0] in out, "interface eth0: " in err) == ((1, False, True) if stays else (0, True, False)), (out, err)


@pytest.mark.parametrize("program", [["receive", "--feb", FEBS[0]], ["discover"], ["cmd", "--feb", FEBS[0], "0x0100"]])
def test_a_port_of_a_bridge_is_refused(bench, program):
    """With what to do: each of both helps."""
    port_of_a_bridge(bench)
    bench.sim()
    command, *rest = program
    status, _, err = bench.run(command, "--iface", "eth0", *rest)
    assert status == 1
    assert "interface eth0 is a port of br0, which takes the frames that come; receive from br0, or take it out" in err, err
    receive = ["receive", "--feb", FEBS[0], "--packets", 10, "--quiet"]
    assert bench.run(*receive, "--iface", "br0")[0] == 0
    sh("ip", "netns", "exec", bench.pc_ns, *err.rsplit(": ", 1)[1].split())
    assert bench.run(*receive, "--iface", "eth0")[0] == 0


@PROTOCOLS
def test_a_board_that_is_away_for_a_while_is_told(bench, protocol):
    sim = bench.sim(*SLOW[protocol])
    receiving = Receiving(bench)
    sim.signal(signal.SIGSTOP)
    receiving.says("it does not answer: check its power and the cable")
    sim.signal(signal.SIGCONT)
    receiving.says("again, after")
    receiving.comes()
    receiving.ends_complete()


@PROTOCOLS
def test_a_board_whose_source_gives_nothing_is_told(bench, protocol):
    """So many words, and then no more: the board is well."""
    bench.sim(*SLOW[protocol], "--words", 10_000)
    receiving = Receiving(bench)
    receiving.says(f"FEB {FEBS[0]}: no data for")
    receiving.says("it answers, and its transmission runs: its source gives no words")
    receiving.ends_complete()


@PROTOCOLS
@pytest.mark.parametrize("event", ["power", "reset"])
def test_a_board_that_has_begun_anew_ends_the_run(bench, event, protocol):
    """Nobody has asked for the end: nothing more will come, and the reason is told."""
    sim = bench.sim(*SLOW[protocol])
    receiving = Receiving(bench)
    if event == "power":
        sim.signal(signal.SIGKILL)
        sim.finish()
        bench.sim(*SLOW[protocol])
    else:
        send_reset(bench, protocol)
    status, result = receiving.report()
    reasons = [reason["reason"] for reason in result["febs"][0]["reasons"]]
    expected = "the board was switched off, or restarted" if event == "power" else f"RESET was sent to the board by {OTHER}"
    assert status == 3 and "board" in reasons and expected in json.dumps(result["febs"][0]), (result, receiving.said.read_text())


@pytest.mark.parametrize("event", [signal.SIGKILL, signal.SIGSTOP])
def test_the_silence_of_a_board_that_can_prove_its_end_is_none(bench, event):
    """Of FADE v1 the user may take silence for the end, but not that of Fadelink's boards."""
    sim = bench.sim(*SLOW["fade1"])
    receiving = Receiving(bench, "--end", "silence")
    sim.signal(event)
    receiving.process.signal(signal.SIGINT)
    status, result = receiving.report()
    assert (status, result["verdict"], result["febs"][0]["wrong_words"]) == (3, "end_not_confirmed", 0), result


# Of a virtual interface, what comes to its former address reaches the socket.
@pytest.mark.parametrize("obstacle", [obstacle for obstacle in OBSTACLES if obstacle != "address"])
def test_silence_of_an_interface_that_cannot_receive_is_no_end(bench, obstacle):
    """The board cannot prove its end, and the user takes silence for it: only that of a board that could answer."""
    words = ["feb", "--iface", "feb0", "--feb", FEBS[0], "--protocol", "fade1", "--firmware", "published-v1", "--rate", 1]
    bench.start(bench.board_ns, FADELINK, *words)
    receiving = Receiving(bench, "--end", "silence")
    happens, said, undone = OBSTACLES[obstacle]
    before = address_of(bench)
    happens(bench)
    receiving.says(said)
    receiving.process.signal(signal.SIGINT)
    receiving.says("it cannot be asked why")
    assert receiving.process.popen.poll() is None, receiving.said.read_text()
    link(bench, "set", "eth0", *[before if word is None else word for word in undone])
    status, result = receiving.report()
    assert (status, result["complete"], result["febs"][0]["verdict"]) == (0, True, "complete"), result


def test_an_interface_that_was_moved_away_and_back_is_gone(bench):
    """The program stands still meanwhile: all that it sees is an interface as before, and its socket is on none."""
    bench.start(
        bench.board_ns, FADELINK, "feb", "--iface", "feb0", "--feb", FEBS[0], "--protocol", "fade1", "--firmware", "published-v1", "--rate", 1
    )
    receiving = Receiving(bench, "--end", "silence")
    receiving.process.signal(signal.SIGSTOP)
    pc, away = bench.pc_ns, f"{bench.pc_ns}-away"
    sh("ip", "netns", "add", away)
    try:
        link(bench, "set", "eth0", "netns", away)
        sh("ip", "-n", away, "link", "set", "eth0", "netns", pc)
    finally:
        sh("ip", "netns", "delete", away)
    link(bench, "set", "eth0", "mtu", 9000, "up")
    receiving.process.signal(signal.SIGCONT)
    status, result = receiving.report()
    assert status == 3 and not result["complete"], result
    receiving.says("interface eth0 was removed")


def test_who_keeps_the_commands_of_a_board_is_told_and_the_data_goes_on(bench):
    """A program that stands still with its command under way: the board is not asked, and its data is taken as it comes."""
    sim = bench.sim(*SLOW["fade10g"], "--words", 30_000)
    receiving = Receiving(bench)
    sim.signal(signal.SIGSTOP)
    other = bench.fadelink("cmd", "--iface", "eth0", "--feb", FEBS[0], "0x0100")
    wait_for(lambda: any(str(other.popen.pid) in path.read_text() for path in Path("/run/fadelink").glob("*.commands")))
    other.signal(signal.SIGSTOP)
    sim.signal(signal.SIGCONT)
    wait_for(lambda: receiving.data.stat().st_size >= 29 * 8192)
    receiving.says(f"fadelink (pid {other.popen.pid}) keeps sending commands to it")
    other.signal(signal.SIGCONT)
    assert other.finish()[0] == 0
    receiving.ends_complete()

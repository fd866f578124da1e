"""What `fadelink-sim` says of itself: the settings of the link, its man page, and how long a simulation took."""

import json
import re
import signal
import subprocess
import time

import pytest
from support.board import C, request
from support.netns import FEBS
from support.paths import SIM, TOP


def told(*words):
    """(exit status, standard output, standard error)"""
    found = subprocess.run([SIM, *words], capture_output=True, text=True)
    return found.returncode, found.stdout, found.stderr


HELP = told("--help")[1]
# (name, meaning, unit, default)
SETTINGS = re.findall(r"^  ([a-z-]+) +(\S.*) \((.*), default (\S+)\)$", HELP, re.M)


def test_link_settings_are_listed_as_they_are_read():
    """Each name is accepted with its default; the message about another one names them all."""
    assert len(SETTINGS) >= 10 and "loss" in dict(name[:2] for name in SETTINGS)
    all_of_them = ",".join(f"{name}={default}" for name, _, _, default in SETTINGS)
    status, _, err = told("--virtual", "--packets", "2", "--warmup", "0", "--link", all_of_them)
    assert status == 0, err
    status, _, err = told("--virtual", "--link", "lost=1")
    assert status == 2 and f"expected one of {', '.join(name for name, *_ in SETTINGS)}, with =VALUE" in err


def test_the_packets_before_the_measurement_follow_those_of_the_run():
    for words in (["--packets", "20"], ["--packets", "1"], ["--packets", "20", "--warmup", "19"]):
        status, _, err = told("--virtual", "--window", "16", *words)
        assert status == 0, err
    status, _, err = told("--virtual", "--packets", "20", "--warmup", "20")
    assert status == 2 and "--warmup 20: expected less than --packets 20\n" in err
    status, _, err = told("--virtual", "--protocol", "udp", "--ptp-pair", "--limit-ms", "20", "--settle-ms", "20.5")
    assert status == 2 and "--settle-ms 20.5: expected less than --limit-ms 20\n" in err
    status, _, err = told("--virtual", "--protocol", "udp", "--ptp-pair", "--limit-ms", "1")
    assert status != 2, err


def test_a_number_out_of_its_range_is_refused_with_limits_that_can_be_read():
    options = re.findall(r"^  (--[a-z-]+) (?:UINT|FLOAT)", HELP, re.M)
    assert {"--packets", "--seed", "--limit-ms", "--tx-ppm"} < {*options} and len(options) > 40
    for option in options:
        for value in ("-1000000000", "x"):
            status, _, err = told("--virtual", option, value)
            assert status == 2 and err.startswith(f"fadelink-sim: {option}") or f"{option} = {value}" in err, err
            assert value in err and not re.search(r"[0-9]{15}", err), err
    assert "--packets: value -5: expected a whole number of at least 1\n" in told("--virtual", "--packets", "-5")[2]
    assert "--seed: value 1.5: expected a whole number of at least 0\n" in told("--virtual", "--seed", "1.5")[2]


def test_the_document_has_the_link_settings():
    document = (TOP / "docs/simulator.md").read_text()
    rows = re.findall(r"^\| `([a-z-]+)` \| (.*) \| (.*) \| (.*) \|$", document, re.M)
    assert rows == [(name, unit, default, meaning) for name, meaning, unit, default in SETTINGS]


def test_the_man_page_has_every_option_and_setting():
    status, page, _ = told("--man")
    page = page.replace("\\-", "-")
    assert status == 0 and page.startswith(".TH fadelink-sim 1")
    sections = re.findall(r"^\.SH (.*)$", page, re.M)
    assert sections == ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "LINK SETTINGS", "EXIT STATUS", "FILES", "EXAMPLES", "SEE ALSO"]
    entries = re.findall(r"^\.TP\n\\fB(\S+)\\fR", page, re.M)
    options = re.findall(r"^  (-\S+)", HELP, re.M)
    assert len(options) > 50 and entries[: len(options)] == options
    assert entries[len(options) : len(options) + len(SETTINGS)] == [name for name, *_ in SETTINGS]


PACE = r"([\d.]+) ms simulated in ([\d.]+) s: (\d+) times as long as real boards take\n"


def test_simulated_and_real_time_of_a_simulation():
    status, out, _ = told("--virtual", "--packets", "300", "--warmup", "20")
    simulated, real, times = re.search(PACE, out).groups()
    assert status == 0 and float(simulated) > 1 and abs(float(real) * 1e3 / float(simulated) / int(times) - 1) < 0.1
    out = json.loads(told("--virtual", "--packets", "300", "--warmup", "20", "--json")[1])
    assert abs(out["simulated_us"] - float(simulated) * 1e3) < 10
    assert out["wall_seconds"] > 0


def test_simulated_and_real_time_on_an_interface(bench):
    """The time in which boards are idle does not count."""
    begin = time.monotonic()
    board = bench.start(bench.board_ns, SIM, "--iface", "feb0")
    assert "board(s) on" in board.popen.stderr.readline()
    time.sleep(2)
    assert bench.run("receive", "--iface", "eth0", "--feb", FEBS[0], "--packets", 300)[0] == 0
    board.signal(signal.SIGTERM)
    status, out, _ = board.finish()
    elapsed = time.monotonic() - begin
    simulated, real, times = map(float, re.fullmatch(PACE, out).groups())
    assert status == 0 and simulated > 1 and 0 < real < elapsed - 1 and times > 1
    _, out, _ = bench.start(bench.board_ns, SIM, "--iface", "feb0", "--duration", 2, "--json").finish()
    assert json.loads(out)["wall_seconds"] < 1


@pytest.mark.parametrize("link", [[], ["--down", "delay=5ms"]])
def test_boards_obey_what_has_come_before_their_end(bench, link):
    """The program stands still while RESET comes and its end is asked for."""
    board = bench.sim(*link)
    computer = bench.raw(bench.pc_ns, "eth0")
    computer.send(request(C["CMD_START"], csn=1))
    bench.wait_for_frames(10)
    board.signal(signal.SIGSTOP)
    computer.send(request(C["CMD_RESET"], csn=2))
    board.signal(signal.SIGTERM)
    board.signal(signal.SIGCONT)
    status, out, err = board.finish()
    (found,) = json.loads(out)["boards"]
    assert status == 0 and found["sent"] > 0 and not found["running"], (out, err)


def test_a_record_has_what_the_core_took(tmp_path):
    """The same as the receiver has got, over TCP."""
    status, _, err = told("--virtual", "--protocol", "tcp", "--boards", "2", "--words", "1000", "--record", tmp_path / "taken",
                          "--save", tmp_path / "saved")  # fmt: skip
    assert status == 0, err
    taken = [(tmp_path / f"taken.{board}.1").read_bytes() for board in (1, 2)]
    assert all(len(data) == 8000 for data in taken)
    assert sorted(path.read_bytes() for path in tmp_path.glob("saved*")) == sorted(taken)
    status, _, err = told("--virtual", "--protocol", "tcp", "--streams", "2", "--words", "10", "--record", tmp_path / "x")
    assert status == 2 and "--record: expected one stream of each board" in err
    status, _, err = told("--virtual", "--record", tmp_path / "none" / "x")
    assert status == 1 and "none/x.1.1: No such file or directory" in err


@pytest.mark.parametrize("protocol", ["fade10g", "fade1"])
def test_each_transmission_has_a_record_of_its_own(net, protocol):
    """Of FADE, whose last packet may be filled up: random words, of which each transmission has others."""
    sim = net.sim("--protocol", protocol, "--random", "--record", net.tmp / "taken")
    for number in (1, 2):
        out = net.tmp / f"{number}.dat"
        status, _, err = net.receive("--packets", 20, "--out", out).finish()
        assert status == 0, err
        taken = (net.tmp / f"taken.1.{number}").read_bytes()
        assert out.read_bytes() == (taken if protocol == "fade10g" else taken.ljust(-(-len(taken) // 1024) * 1024, b"\xa5"))
    net.end_sim(sim)
    first, second = ((net.tmp / f"taken.1.{number}").read_bytes() for number in (1, 2))
    assert first[:64] != second[:64]

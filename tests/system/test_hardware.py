"""Boards from pin to pin: the top module of a bitstream, its PLL, DDR registers and PHY, against the real receiver."""

import json

import pytest
from support.netns import FEBS, report, wait_for
from support.paths import SIM

# Board, what its PHY negotiates in Mb/s, and packets to receive.
LINKS = [("colorlight_i5", 1000, 100), ("colorlight_i5", 100, 20), ("ulx3s", 100, 40), ("ulx3s", 10, 8)]


def status_of(bench):
    """Counters of the board, or None while its link is still down."""
    status, out, err = bench.run("status", "--iface", "eth0", "--feb", FEBS[0], "--json")
    return json.loads(out)["counters"] if status == 0 else None


def start(bench, *words):
    """A board, until its PHY is up."""
    sim = bench.sim("--board", *words)
    found = []
    wait_for(lambda: found.append(status_of(bench)) or found[-1])
    return sim, found[-1]


@pytest.mark.parametrize("board, speed, packets", LINKS)
def test_every_word_arrives(bench, board, speed, packets):
    sim, counters = start(bench, board, "--speed", speed, "--link", "loss=0.02")
    assert counters["link"] == f"{speed} Mb/s, full duplex" and counters["link_downs"] == 0
    status, result = report(bench.receive("--verify", "counter", "--packets", packets).finish())
    assert status == 0 and result["complete"] and result["febs"][0]["verified"]
    assert result["febs"][0]["words"] >= packets * 1024
    counters = status_of(bench)
    assert counters["rx_error"] == counters["rx_runt"] == counters["rx_bad_fcs"] == 0, "no frame was damaged between the pins and the MAC"
    summary = bench.end_sim(sim)
    assert (summary["board"], summary["speed"]) == (board, speed)
    assert summary["boards"][0]["link_mbps"] == speed and summary["boards"][0]["sent"] >= packets


def test_corrupted_frames_are_counted(bench):
    """What a cable damages between the PHYs is counted in the core, and repaired."""
    sim, _ = start(bench, "colorlight_i5", "--link", "corrupt=0.05")
    status, result = report(bench.receive("--verify", "counter", "--packets", 100).finish())
    assert status == 0 and result["febs"][0]["verified"]
    corrupted = bench.end_sim(sim)["boards"][0]["down"]["corrupted"]
    assert corrupted > 0


def test_settings_of_the_board_are_user_commands(bench):
    """A source of random words, 5000 of them: the settings are registers, as on a real board."""
    _, _ = start(bench, "colorlight_i5")
    for register, value in ((0x02, 1), (0x03, 7), (0x05, 5000)):
        bench.command(0x0200 | register, value)
    status, result = report(bench.receive("--verify", "random:7", "--packets", 4).finish())
    assert status == 0 and result["febs"][0]["verified"], result


@pytest.mark.parametrize(
    "words, message",
    [
        (
            ["--board", "ulx3s", "--words", "5"],
            "--words with --board ulx3s: expected no such option, because a real board has constants there (docs/boards.md)",
        ),
        (["--board", "nexys"], "--board: nexys not in {ulx3s,colorlight_i5}"),
        (["--board", "ulx3s", "--speed", "1000"], "--speed 1000 with --board ulx3s: expected 10 or 100, its PHY has no more"),
        (["--speed", "100"], "--speed: expected --board, whose PHY has this speed"),
        (["--board", "ulx3s", "--protocol", "tcp"], "--board ulx3s with --protocol tcp: expected fade10g"),
    ],
)
def test_options_that_do_not_fit(bench, words, message):
    status, _, err = bench.start(bench.board_ns, SIM, "--iface", "feb0", *words).finish()
    assert status == 2 and err.strip() == f"fadelink-sim: {message}"

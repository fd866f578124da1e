"""Boards from pin to pin: the top module of a bitstream, its PLL, DDR registers and PHY, against the real receiver."""

import json
import struct

import pytest
from support.netns import FEBS, report, wait_for
from support.paths import SIM, TOP

# All that have a model, in the order of their folders.
SIMULATED = sorted(path.parent.name for path in (TOP / "rtl/boards").glob("*/sim.def"))
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
    sim, _ = start(bench, "colorlight_i5", "--link", "corrupt=0.2")
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


def test_the_template_has_its_data_and_registers(bench):
    """Windows of the ADC's pulses, then of all its samples, which are more than the link carries: what is lost is known."""
    bench.sim("--board", "template", "--link", "loss=0.01")
    names = ["--registers", TOP / "rtl/boards/template/registers.toml"]
    feb = ["--iface", "eth0", "--feb", FEBS[0]]

    def counters():
        status, out, err = bench.run("status", *feb, *names, "--json")
        return json.loads(out)["counters"] if status == 0 else None

    def windows(path, length):
        """Header and words of each whole window in a file."""
        words = struct.unpack(f"<{path.stat().st_size // 8}Q", path.read_bytes())
        found = [(words[at], words[at + 1 : at + 1 + length]) for at in range(0, len(words) - length, length + 1)]
        assert all(header >> 48 == 0xADC0 for header, _ in found)
        return [(header >> 32 & 0xFFFF, header & 0xFFFFFFFF, words) for header, words in found]

    wait_for(counters)
    found = counters()
    assert found["threshold"] == 250 and found["link"] == "1000 Mb/s, full duplex" and found["core"].startswith("FADE-10G")
    for name, *value in (("threshold", 2000, "mV"), ("length", 31)):
        assert bench.run("cmd", *feb, *names, name, *value)[0] == 0
    pulses = bench.tmp / "pulses"
    # The pulse of the model has 4,000 steps of 0.25 mV; nothing is above 8,000.
    status, result = report(bench.receive("--out", pulses, "--duration", 1).finish())
    assert status == 0 and result["febs"][0]["words"] == 0 and counters()["threshold"] == 2000
    assert bench.run("cmd", *feb, *names, "threshold", "1000mV")[:2] == (0, "threshold 1000.0 mV\n")
    status, result = report(bench.receive("--out", pulses, "--packets", 4, "--overwrite").finish())
    assert status == 0 and result["complete"]
    found = windows(pulses, 31)
    assert len(found) > 100 and all(words[0] & 0xFFFF == 4000 for _, _, words in found)
    assert {later[1] - earlier[1] for earlier, later in zip(found, found[1:], strict=False)} == {1024} and found[-1][0] == 0
    assert bench.run("cmd", *feb, *names, "mode", 1)[0] == 0
    every = bench.tmp / "every"
    status, result = report(bench.receive("--out", every, "--packets", 60).finish())
    assert status == 0 and result["complete"]
    found = windows(every, 31)
    for earlier, later in zip(found, found[1:], strict=False):
        assert later[1] - earlier[1] == 31 * (1 + later[0] - earlier[0]), "as many words are passed over as windows are lost"
    assert counters()["lost_windows"] >= found[-1][0] > 0
    status, out, _ = bench.run("top", *feb, *names, "--batch", 1)
    assert status == 0 and out.splitlines()[0].split()[-2:] == ["windows", "lost_windows"]


@pytest.mark.parametrize(
    "words, message",
    [
        (
            ["--board", "ulx3s", "--words", "5"],
            "--words with --board ulx3s: expected no such option, because a real board has constants there (docs/boards.md)",
        ),
        (["--board", "nexys"], f"--board: nexys not in {{{','.join(SIMULATED)}}}"),
        (["--board", "ulx3s", "--speed", "1000"], "--speed 1000 with --board ulx3s: expected 10 or 100, its PHY has no more"),
        (["--speed", "100"], "--speed: expected --board, whose PHY has this speed"),
        (["--board", "ulx3s", "--protocol", "tcp"], "--board ulx3s with --protocol tcp: expected fade10g"),
    ],
)
def test_options_that_do_not_fit(bench, words, message):
    status, _, err = bench.start(bench.board_ns, SIM, "--iface", "feb0", *words).finish()
    assert status == 2 and err.strip() == f"fadelink-sim: {message}"

"""Two boards behind one port of a switch, RTL in virtual time. host/feb/tests/all/sharing.rs has many seeds and queues."""

import json
import subprocess

import pytest
from support.block import SEED
from support.measure import jain
from support.paths import TOP

# Options, ms, and the least index of Jain. Boards of FADE v1 may keep a rhythm of 3 to 2 (docs/protocol/congestion.md).
CASES = {
    "fade1": (["--protocol", "fade1", "--switch", "rate=1000,queue=32768"], 120, 0.85),
    "fade10g": (["--window", "32", "--switch", "rate=10000,queue=131072"], 60, 0.99),
}


def share(name, *more):
    options, milliseconds, _ = CASES[name]
    words = [TOP / "build/sim/fadelink-sim", "--virtual", "--json", "--boards", "2", "--seed", str(SEED), "--rtt", "20",
             "--spread-us", "500", "--spread-ppm", "50", "--share-from-ms", str(milliseconds // 2),
             "--limit-ms", str(milliseconds), *options, *more]  # fmt: skip
    report = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
    assert all(board["wrong_words"] == 0 for board in report["boards"]) and report["switch"]["queue_full"] > 0
    return [board["goodput_bps"] for board in report["boards"]]


@pytest.mark.parametrize("name", [pytest.param("fade1", marks=pytest.mark.long), "fade10g"])
def test_equal_boards_have_equal_shares(name):
    rates = share(name)
    assert jain(rates) > CASES[name][2], rates
    port = {"fade1": 1e9 * 1024 / 1072, "fade10g": 1e10 * 8192 / 8256}[name]
    assert sum(rates) > 0.95 * port, rates

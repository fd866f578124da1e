"""Rates of the TCP sender in virtual time, against an ideal receiver: at the limit, and shared equally."""

import json
import subprocess

import pytest
from support.block import SEED
from support.measure import jain
from support.paths import TOP

WIRE, HEADERS = 8 + 14 + 4 + 12, 40


def run(*options, limit):
    words = [TOP / "build/sim/fadelink-sim", "--virtual", "--json", "--protocol", "tcp", "--seed", SEED,
             "--share-from-ms", limit / 2, "--limit-ms", limit, *options]  # fmt: skip
    report = json.loads(subprocess.run([str(word) for word in words], capture_output=True, text=True, check=True).stdout)
    assert all(board["wrong_words"] == 0 and board["protocol_errors"] == 0 for board in report["boards"])
    return report


def use(segment):
    """The share of a line that is user data, in full segments."""
    return segment / (segment + HEADERS + WIRE)


@pytest.mark.parametrize("phy,limit", [("xgmii", 4), ("gmii", 10)])
@pytest.mark.parametrize("mtu,segment", [(1500, 1456), (9000, 8960)])
def test_one_stream_fills_the_line(phy, limit, mtu, segment):
    board = run("--phy", phy, "--mtu", mtu, "--rtt", 10, limit=limit)["boards"][0]
    assert board["link_use"] > 0.993 * use(segment) and board["retransmitted"] == 0


@pytest.mark.parametrize("phy,limit", [("xgmii", 4), ("gmii", 10)])
@pytest.mark.parametrize("size", [64, 1024, 16384])
def test_pushed_fragments_fill_the_line(phy, limit, size):
    board = run("--phy", phy, "--mtu", 9000, "--rtt", 10, "--block", size // 8, "--push", limit=limit)["boards"][0]
    segments = -(-size // 8960)
    assert board["link_use"] > 0.993 * use(size / segments) and board["retransmitted"] == 0


def test_a_small_window_bounds_the_rate():
    """32 KiB under way, three full segments and a part, for the round trip, the time to fetch a segment and to send it."""
    board = run("--mtu", 9000, "--rtt", 100, "--receive-window", 32768, limit=8)["boards"][0]
    assert abs(board["goodput_bps"] / (32768 * 8 / 114e-6) - 1) < 0.03


def test_merged_boards_share_equally():
    report = run("--boards", 4, "--streams", 2, "--mtu", 9000, "--rtt", 20, "--receive-window", 65536,
                 "--switch", "rate=10000,queue=1048576", limit=6)  # fmt: skip
    rates = [board["goodput_bps"] for board in report["boards"]]
    assert sum(rates) > 0.99 * 1e10 * use(8960) and report["switch"]["queue_full"] == 0
    assert jain(rates) > 0.999


def test_slow_start_ends_when_the_queue_fills():
    """Two boards begin within a round trip of a full queue: neither is thrown back, and nothing of note is dropped."""
    report = run("--boards", 2, "--mtu", 9000, "--rtt", 20, "--receive-window", 2**20, "--spread-us", 1000, "--spread-ppm", 50,
                 "--switch", "rate=10000,queue=1048576", limit=10)  # fmt: skip
    rates = [board["goodput_bps"] for board in report["boards"]]
    assert report["switch"]["use"] > 0.99 and report["switch"]["queue_full"] < 0.01 * report["switch"]["frames"]
    assert min(rates) > max(rates) / 4 and all(board["timeouts"] == 0 for board in report["boards"])


def test_words_end_with_the_connection():
    words = [TOP / "build/sim/fadelink-sim", "--virtual", "--json", "--protocol", "tcp", "--words", "50000", "--streams", "3",
             "--link", "loss=0.02", "--rtt", "20", "--seed", str(SEED)]  # fmt: skip
    report = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
    board = report["boards"][0]
    assert board["complete"] and board["words"] == 150_000 and board["wrong_words"] == 0 and board["retransmitted"] > 0


def test_marks_keep_the_queue_short():
    """RFC 3168: boards that learn of a queue by ECN drop nothing, send nothing again, and share the port."""
    report = run("--boards", 4, "--ecn", "--mtu", 9000, "--rtt", 20, "--receive-window", 2**20, "--spread-us", 1000, "--spread-ppm", 50,
                 "--switch", "rate=10000,queue=1048576,mark=65536", limit=12)  # fmt: skip
    rates, port = [board["goodput_bps"] for board in report["boards"]], report["switch"]
    assert port["marked"] > 0 and port["queue_full"] == 0 and port["use"] > 0.99
    assert all(board["retransmitted"] == 0 for board in report["boards"])
    assert jain(rates) > 0.98

"""Crates of FADC modules that PTP ties to one time, over the wire of their data: the whole boards in virtual time."""

import json
import subprocess

import pytest
from support import fadc_model as model
from support.paths import SEED, SIM

SLAVE, MASTER, BEST = 1, 2, 3
# What two crates with a right time may differ by: the offset of PTP, a sample, and the clock of 8 ns that takes the pulse.
APART = 12
CRATES = {
    "TCP, 1 Gb/s": (1, ["--protocol", "fadc", "--phy", "gmii"]),
    "TCP, 10 Gb/s": (4, ["--protocol", "fadc", "--phy", "xgmii"]),
    "FADE-10G": (0, ["--protocol", "fade10g", "--phy", "xgmii", "--crate", "--packets", 4, "--warmup", 1]),
}


def run(folder, crate, window_ns, roles, *options, windows=400, small=True):
    """({record: {ns in the window}}, first record, last record) of both boards, and the report."""
    links, kind = CRATES[crate]
    window = ["--gap", window_ns // 4] if links == 0 else ["--window-ns", window_ns, "--windows", windows]
    words = [SIM, "--virtual", "--json", *kind, *window, *(["--small"] if small else []), "--boards", 2, "--ptp", roles, "--rtt", 4,
             "--pulse-rate", 0, "--test-pulse-us", 3.3, "--save", folder / "out", "--seed", SEED, "--limit-ms", 60, *options]  # fmt: skip
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    found = []
    for board in report["boards"]:
        hits, first, last = {}, 0, 1 << 64
        files = [folder / f"out.{board['feb']}.{port}" for port in range(49152, 49152 + links)] or [folder / f"out.{board['feb']}"]
        for file in files:
            messages = model.read_messages(file.read_bytes())
            records = [message.record for message in messages]
            assert records == list(range(records[0], records[0] + len(records)))
            first, last = max(first, records[0]), min(last, records[-1])
            for message in messages:
                if roles != 0:
                    assert message.sec * 10**9 + message.nsec == message.record * window_ns
                hits.setdefault(message.record, set()).update(4 * hit[2] for hit in model.read_hits(message, window_ns // 4)[0])
        found.append((hits, first, last))
    return found, report


def compare(found, window_ns):
    """(ns by which the slave's crate has pulses later, places of pulses in their window): each must be in the same window of both."""
    (hits, first, last), (others, other_first, other_last) = found
    later, phases = [], []
    for record in range(max(first, other_first) + 1, min(last, other_last)):
        there = others[record]
        for at in hits[record]:
            if not APART <= at < window_ns - APART:
                continue  # nobody can say to which window it belongs
            nearest = min(there, key=lambda other: abs(other - at), default=None)
            assert nearest is not None and abs(nearest - at) <= APART, (record, at, sorted(there))
            later.append(nearest - at)
            phases.append(at)
        assert all(any(abs(at - other) <= APART for at in hits[record]) for other in there if APART <= other < window_ns - APART)
    return later, phases


@pytest.mark.parametrize("crate,window_ns,roles,ppm", [
    ("TCP, 1 Gb/s", 16384, "2,1", 50), ("TCP, 1 Gb/s", 100_000, "1,2", 100), ("TCP, 10 Gb/s", 5000, "2,1", 100), ("FADE-10G", 65536, "3", 20),
])  # fmt: skip
def test_two_crates_have_a_pulse_in_the_same_window(tmp_path, crate, window_ns, roles, ppm):
    """Oscillators that are wrong, windows that begin at different times: a common pulse is in the same window of both, wherever in it."""
    windows = max(60, 6_000_000 // window_ns)
    found, report = run(tmp_path, crate, window_ns, roles, "--spread-ppm", ppm, windows=windows)
    later, phases = compare(found, window_ns)
    assert len(later) > 150
    # All parts of a window were tried.
    parts = min(20, len(later) // 20)
    assert {at * parts // window_ns for at in phases} == set(range(parts))
    if crate != "FADE-10G":
        assert all(board["windows_off_time"] == 0 and board["drop_ptp_malformed"] == board["drop_ptp_full"] == 0 for board in report["boards"])
        assert sum(board["ptp_offsets"] > 20 for board in report["boards"]) == 1, "one is the slave"


@pytest.mark.long
@pytest.mark.parametrize("crate,window_ns", [("TCP, 1 Gb/s", 16384), ("TCP, 10 Gb/s", 8192)])
@pytest.mark.parametrize("seed", range(3))
def test_whole_crates_have_a_pulse_in_the_same_window(tmp_path, crate, window_ns, seed):
    found, _ = run(tmp_path, crate, window_ns, "3", "--spread-ppm", 100, "--seed", int(SEED) + seed, windows=5_000_000 // window_ns, small=False)
    assert len(compare(found, window_ns)[0]) > 150


def test_crates_without_ptp_have_not(tmp_path):
    """Each counts from its own begin: what the test above finds is PTP's work."""
    with pytest.raises(AssertionError):
        compare(run(tmp_path, "TCP, 1 Gb/s", 16384, 0, "--spread-ppm", 50, "--spread-us", 40, windows=200)[0], 16384)

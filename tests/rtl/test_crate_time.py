"""Crates of FADC modules that PTP ties to one time, over the wire of their data: the whole boards in virtual time."""

import pytest
from support.crate_time import compare_pulses, run_crates
from support.paths import SEED


@pytest.mark.parametrize("crate,window_ns,roles,ppm", [
    pytest.param("TCP, 1 Gb/s", 16384, "2,1", 50, marks=pytest.mark.long), ("TCP, 1 Gb/s", 100_000, "1,2", 100), ("TCP, 10 Gb/s", 5000, "2,1", 100), ("FADE-10G", 65536, "3", 20),
])  # fmt: skip
def test_two_crates_have_a_pulse_in_the_same_window(tmp_path, crate, window_ns, roles, ppm):
    """Oscillators that are wrong, windows that begin at different times: a common pulse is in the same window of both, wherever in it."""
    windows = max(60, 6_000_000 // window_ns)
    found, report = run_crates(tmp_path, crate, window_ns, roles, "--spread-ppm", ppm, windows=windows)
    later, phases = compare_pulses(found, window_ns)
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
    found, _ = run_crates(tmp_path, crate, window_ns, "3", "--spread-ppm", 100, windows=5_000_000 // window_ns, small=False, seed=int(SEED) + seed)
    assert len(compare_pulses(found, window_ns)[0]) > 150


def test_crates_without_ptp_have_not(tmp_path):
    """Each counts from its own begin: what the test above finds is PTP's work."""
    with pytest.raises(AssertionError):
        compare_pulses(run_crates(tmp_path, "TCP, 1 Gb/s", 16384, 0, "--spread-ppm", 50, "--spread-us", 40, windows=200)[0], 16384)

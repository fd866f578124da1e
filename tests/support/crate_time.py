"""Two crates of FADC modules with PTP over the wire of their data, in virtual time, and where each has the same pulses."""

import json
import subprocess

from support import fadc_model as model
from support.paths import SEED, SIM

# What two crates with a right time may differ by: the offset of PTP, a sample, and the clock of 8 ns that takes the pulse.
APART = 12
CRATES = {
    "TCP, 1 Gb/s": (1, ["--protocol", "fadc", "--phy", "gmii"]),
    "TCP, 10 Gb/s": (4, ["--protocol", "fadc", "--phy", "xgmii"]),
    "FADE-10G": (0, ["--protocol", "fade10g", "--phy", "xgmii", "--crate", "--packets", 4, "--warmup", 1]),
}


def run_crates(folder, crate, window_ns, roles, *options, windows=400, small=True, seed=SEED):
    """Of both boards ({record: {ns in the window}}, first record, last record), from their messages; and the report.

    roles: as the option --ptp; windows: of crates over TCP; small: with few channels.
    """
    links, kind = CRATES[crate]
    window = ["--gap", window_ns // 4] if links == 0 else ["--window-ns", window_ns, "--windows", windows]
    words = [SIM, "--virtual", "--json", *kind, *window, *(["--small"] if small else ["--modules", 1]), "--boards", 2, "--ptp", roles, "--rtt", 4,
             "--pulse-rate", 0, "--test-pulse-us", 3.3, "--save", folder / "out", "--seed", seed, "--limit-ms", 60, *options]  # fmt: skip
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


def compare_pulses(found, window_ns):
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

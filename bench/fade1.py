#!/usr/bin/env python3
"""FADE v1 in cycle-accurate virtual time: link use by round trip and by loss, beside FADE-10G at 1 Gb/s.

Usage: bench/fade1.py [--quick]
The simulated board (the RTL) against an ideal receiver that confirms at once.
"""

import json
import subprocess

from fade10g import POOL, QUICK, SIM, table
from support import sandbox

CORES = {
    "FADE v1": ["--protocol", "fade1"],
    "FADE-10G, M = 16": ["--phy", "gmii", "--window", 16],
}


def link_use(core, *options, rate=0):
    def run():
        packets = {"FADE v1": 5000, "FADE-10G, M = 16": 600}[core] * (5 if rate else 1) // (4 if QUICK else 1)
        words = [SIM, "--virtual", "--json", *CORES[core], "--packets", packets, "--warmup", packets // 10,
                 "--limit-ms", 100000, "--link", f"loss={rate}", *options]  # fmt: skip
        result = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=True)
        return f"{100 * json.loads(result.stdout)['boards'][0]['link_use']:.2f} %"

    return POOL.submit(run)


if __name__ == "__main__":
    sandbox.enter()
    print("## FADE v1: link use by round trip, ideal receiver (limits 95.52 % and 99.22 %)\n")
    rtts = [3, 30, 100, 300]
    table(["core, 1 Gb/s", *(f"{rtt} us" for rtt in rtts)], [[core, *(link_use(core, "--rtt", rtt) for rtt in rtts)] for core in CORES])
    print("## FADE v1: link use by loss of frames in both directions, round trip 30 us\n")
    rates = [0, 0.001, 0.01, 0.05]
    table(["core, 1 Gb/s", *(f"{100 * rate:g} %" for rate in rates)],
          [[core, *(link_use(core, "--rtt", 30, rate=rate) for rate in rates)] for core in CORES])  # fmt: skip

#!/usr/bin/env python3
"""Resources of the cores, by Yosys for Xilinx 7-series.

Usage: bench/synth.py [WIDTH:PACKETS ...]     default 64:32 64:16 8:16
The cores are fade_core without MAC, source and user commands, of FADE-10G, and of FADE v1, whose buffer is a set; and
tcp_core with 1 to 16 streams, without the socket buffers; and the MACs.
"""

import sys

from support import sandbox
from support.synth import synthesize, totals

# Table 3 of the paper, for its own core and tools.
PAPER = {(64, 32): (2107, 1240, 65)}


def main():
    configs = [tuple(map(int, word.split(":"))) for word in sys.argv[1:]] or [(64, 32), (64, 16), (8, 16)]
    print("| core | M | LUT | FF | BRAM | paper's table 3: LUT, FF, BRAM |")
    print("|---|---|---|---|---|---|")
    for width, packets in configs:
        luts, ffs, brams = totals(synthesize("fade_core", WIDTH=width, PACKETS=packets))
        paper = ", ".join(f"{n:,}" for n in PAPER.get((width, packets), ())) or "-"
        name = "10G, 64 bit" if width == 64 else "1G, 8 bit"
        print(f"| {name} | {packets} | {luts:,} | {ffs:,} | {brams:g} | {paper} |", flush=True)
    luts, ffs, brams = totals(synthesize("fade_core", PROTOCOL=1, WIDTH=8, PACKETS=32))
    print(f"| FADE v1, 8 bit | 32 | {luts:,} | {ffs:,} | {brams:g} | - |", flush=True)
    print("\n| TCP sender | streams | LUT | FF | BRAM | paper: ALUTs for as many streams |")
    print("|---|---|---|---|---|---|")
    for width, streams in [(64, 1), (64, 2), (64, 4), (64, 8), (64, 16), (8, 1)]:
        luts, ffs, brams = totals(synthesize("tcp_core", WIDTH=width, STREAMS=streams))
        print(f"| {width} bit | {streams} | {luts:,} | {ffs:,} | {brams:g} | {3000 * streams:,} |", flush=True)
    print("\n| MAC | LUT | FF |")
    print("|---|---|---|")
    for name, top, settings in [("GMII", "gmii_mac", {}), ("XGMII", "xgmii_mac", {}), ("XGMII without PAUSE", "xgmii_mac", {"PAUSE": 0})]:
        luts, ffs, _ = totals(synthesize(top, **settings))
        print(f"| {name} | {luts:,} | {ffs:,} |", flush=True)


if __name__ == "__main__":
    sandbox.enter()
    main()

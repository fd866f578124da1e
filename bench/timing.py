#!/usr/bin/env python3
"""`make timing`: places and routes the cores, and writes the table of docs/timing.md.

Usage: bench/timing.py [--core NAME ...] [--seeds N] [--list]     default: every core, 3 seeds

As many cores are placed at a time as there are processors. With `--core` the other rows of the table stay. Exit status 1: a clock stays below what is needed.
"""

import argparse
import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor

from support.paths import TOP
from support.place import CORES, median, place_all

DOCUMENT = TOP / "docs/timing.md"
BEGIN, END = "<!-- make timing -->\n", "<!-- end -->\n"
HEAD = """\
| core | parameters | device | clock | needed | aim | least | median | COMB, FF, RAM | longest path |
|---|---|---|---|---|---|---|---|---|---|
"""


def rows(core, placements):
    """The lines of a core, one a clock; the worst seed's longest path."""
    first = placements[0]
    parameters = ", ".join(f"{name}={value}" for name, value in core.parameters.items()) or "-"
    for clock, (needed, aim) in core.clocks.items():
        worst = min(placements, key=lambda placement: placement.clocks[clock])
        middle = median(placements, clock)
        mark = "**" if middle < needed else ""
        size = f"{first.comb:,}, {first.ff:,}, {first.ram}"
        yield (f"| {core.name} | {parameters} | {core.device} | {clock} | {needed:g} | {aim:g} | {worst.clocks[clock]:.0f} | "
               f"{mark}{middle:.0f}{mark} | {size} | {worst.paths[clock]} |\n")  # fmt: skip


def main():
    names = [core.name for core in CORES]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--core", nargs="+", choices=names, metavar="NAME", default=names)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--list", action="store_true", help="name the cores")
    options = parser.parse_args()
    if options.list:
        print("\n".join(names))
        return
    if options.seeds < 1:
        parser.error(f"--seeds {options.seeds}: expected at least 1")
    chosen = [core for core in CORES if core.name in options.core]
    table, failed = {}, False
    print(HEAD, end="")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for core, placements in zip(chosen, pool.map(lambda core: place_all(core, range(1, options.seeds + 1)), chosen), strict=True):
            table[core.name] = "".join(rows(core, placements))
            print(table[core.name], end="", flush=True)
            failed |= any(median(placements, clock) < needed for clock, (needed, _) in core.clocks.items())
    text = DOCUMENT.read_text()
    for name in names:
        table.setdefault(name, "".join(re.findall(rf"^\| {name} \|.*\n", text, flags=re.M)))
    everything = HEAD + "".join(table[name] for name in names)
    DOCUMENT.write_text(re.sub(f"(?<={BEGIN}).*(?={END})", lambda _: everything, text, flags=re.S))
    sys.exit(failed)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""`make timing`: places and routes the cores and the designs of the boards, and writes the tables of docs/timing.md.

Usage: bench/timing.py [--core NAME ...] [--seeds N] [--list]     default: every core with 3 seeds, every board

As many are placed at a time as there are processors. With `--core`, names of cores, boards or BOARD/DESIGN, the other rows stay. Exit status 1:
a clock stays below what is needed.
"""

import argparse
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from support.bitstream import boards, build
from support.paths import TOP
from support.place import CORES, median, place_all

DOCUMENT = TOP / "docs/timing.md"
END = "<!-- end -->\n"
CORE_BEGIN, BOARD_BEGIN = "<!-- make timing -->\n", "<!-- make timing: boards -->\n"
CORE_HEAD = """\
| core | parameters | device | clock | needed | aim | least | median | COMB, FF, RAM | longest path |
|---|---|---|---|---|---|---|---|---|---|
"""
BOARD_HEAD = """\
| board | design | parameters | device | clock | needed | reached | seed | size | longest path |
|---|---|---|---|---|---|---|---|---|---|
"""


def listed(parameters):
    """Parameters as a cell of a table."""
    return ", ".join(f"{name}={value}" for name, value in parameters.items()) or "-"


def core_rows(core, seeds):
    """The lines of a core, one a clock, with the worst seed's longest path; and whether every clock is fast enough."""
    placements = place_all(core, range(1, seeds + 1))
    first, text, good = placements[0], "", True
    for clock, (needed, aim) in core.clocks.items():
        worst = min(placements, key=lambda placement: placement.clocks[clock])
        middle = median(placements, clock)
        good &= middle >= needed
        mark = "" if middle >= needed else "**"
        size = f"{first.comb:,}, {first.ff:,}, {first.ram}"
        text += (f"| {core.name} | {listed(core.parameters)} | {core.device} | {clock} | {needed:g} | {aim:g} | {worst.clocks[clock]:.0f} | "
                 f"{mark}{middle:.0f}{mark} | {size} | {worst.paths[clock]} |\n")  # fmt: skip
    return text, good


def board_rows(board, design):
    """The lines of a design of a board, one a clock; and whether every clock is fast enough."""
    settings = boards()[board]
    made = build(board, design, out=TOP / "build/timing")
    text = ""
    for clock in made.clocks:
        mark = "" if clock.reached >= clock.needed else "**"
        size = ", ".join(f"{count:,}" for count in made.size)
        text += (f"| {board} | {design} | {listed(settings['designs'][design])} | {settings['device']} | {clock.name} | {clock.needed:g} | "
                 f"{mark}{clock.reached:.0f}{mark} | {made.seed} | {size} | {clock.path} |\n")  # fmt: skip
    return text, not made.below()


def main():
    cores = {core.name: core for core in CORES}
    designs = [(board, design) for board, settings in boards().items() for design in settings["designs"]]
    names = [*cores, *boards(), *(f"{board}/{design}" for board, design in designs)]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--core", nargs="+", choices=names, metavar="NAME", default=[*cores, *boards()])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--list", action="store_true", help="name the cores and the boards")
    options = parser.parse_args()
    if options.list:
        print("\n".join(names))
        return
    if options.seeds < 1:
        parser.error(f"--seeds {options.seeds}: expected at least 1")
    # Begins of a row, to what makes it.
    work = {f"| {name} |": (core_rows, core, options.seeds) for name, core in cores.items() if name in options.core}
    work |= {f"| {board} | {design} |": (board_rows, board, design) for board, design in designs if {board, f"{board}/{design}"} & {*options.core}}
    rows, every = {}, True
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for begin, (text, good) in zip(work, pool.map(lambda call: call[0](*call[1:]), work.values()), strict=True):
            rows[begin] = text
            print(text, end="", flush=True)
            every &= good
    document = DOCUMENT.read_text()
    for mark, head, begins in [
        (CORE_BEGIN, CORE_HEAD, [f"| {name} |" for name in cores]),
        (BOARD_BEGIN, BOARD_HEAD, [f"| {board} | {design} |" for board, design in designs]),
    ]:
        for begin in begins:
            rows.setdefault(begin, "".join(re.findall(rf"^{re.escape(begin)}.*\n", document, flags=re.M)))
        table = head + "".join(rows[begin] for begin in begins)
        document = re.sub(f"(?<={mark}).*?(?={END})", lambda _, table=table: table, document, count=1, flags=re.S)
    DOCUMENT.write_text(document)
    # What shows these rows.
    for tool in ("datasheets.py", "fusesoc_cores.py"):
        subprocess.run([sys.executable, TOP / "tools" / tool], check=True)
    sys.exit(not every)


if __name__ == "__main__":
    main()

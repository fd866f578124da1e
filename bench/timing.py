#!/usr/bin/env python3
"""`make timing`: places and routes the cores and the designs of the boards, and writes the tables of docs/timing.md.

Usage: bench/timing.py [--core NAME ...] [--seeds N]     default: every core with 3 seeds, every board
       bench/timing.py --check [--core NAME ...]         prints the names whose rows are not of the present sources
       bench/timing.py --list                            names the cores and the boards

As many are placed at a time as there are processors. With `--core`, names of cores, boards or BOARD/DESIGN, the other rows stay. Exit status 1:
a clock stays below what is needed; with `--check`, a row is not of the present sources.
"""

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from support.bitstream import boards, build, digest_of
from support.paths import RTL, TOP
from support.place import CORES, median, place_all

DOCUMENT = TOP / "docs/timing.md"
END = "<!-- end -->\n"
CORE_BEGIN, BOARD_BEGIN = "<!-- make timing -->\n", "<!-- make timing: boards -->\n"
CORE_HEAD = """\
| core | parameters | device | clock | needed | aim | least | median | COMB, FF, RAM | longest path | commit | sources |
|---|---|---|---|---|---|---|---|---|---|---|---|
"""
BOARD_HEAD = """\
| board | design | parameters | device | clock | needed | reached | seed | size | longest path | commit | sources |
|---|---|---|---|---|---|---|---|---|---|---|---|
"""


@dataclass
class Subject:
    """A core, or a design of a board. measure: (number of seeds) to the cells of its rows, and whether every clock is fast enough."""

    name: str
    cells: tuple
    measure: Callable
    digest: Callable

    @property
    def begin(self):
        """How each of its rows begins."""
        return f"| {' | '.join(self.cells)} |"

    def rows(self, document):
        return re.findall(rf"^{re.escape(self.begin)}.*\n", document, flags=re.M)

    def is_current(self, document):
        """Its rows are there, and of the present sources."""
        rows = self.rows(document)
        return bool(rows) and all(row.endswith(f"| {self.digest()} |\n") for row in rows)


def listed(parameters):
    """Parameters as a cell of a table."""
    return ", ".join(f"{name}={value}" for name, value in parameters.items()) or "-"


def core_rows(core, seeds):
    """The cells of a core, a row for each clock, with the worst seed's longest path; and whether every clock is fast enough."""
    placements = place_all(core, range(1, seeds + 1))
    first, rows, good = placements[0], [], True
    for clock, (needed, aim) in core.clocks.items():
        worst = min(placements, key=lambda placement: placement.clocks[clock])
        middle = median(placements, clock)
        good &= middle >= needed
        mark = "" if middle >= needed else "**"
        size = f"{first.comb:,}, {first.ff:,}, {first.ram}"
        rows.append((listed(core.parameters), core.device, clock, f"{needed:g}", f"{aim:g}", f"{worst.clocks[clock]:.0f}",
                     f"{mark}{middle:.0f}{mark}", size, worst.paths[clock]))  # fmt: skip
    return rows, good


def board_rows(board, design, _):
    """The cells of a design of a board, a row for each clock; and whether every clock is fast enough."""
    settings = boards()[board]
    made = build(board, design, out=TOP / "build/timing")
    rows = []
    for clock in made.clocks:
        mark = "" if clock.reached >= clock.needed else "**"
        size = ", ".join(f"{count:,}" for count in made.size)
        rows.append((listed(settings["designs"][design]), settings["device"], clock.name, f"{clock.needed:g}",
                     f"{mark}{clock.reached:.0f}{mark}", str(made.seed), size, clock.path))  # fmt: skip
    return rows, not made.below()


CORE_SUBJECTS = [Subject(core.name, (core.name,), partial(core_rows, core), core.digest) for core in CORES]
BOARD_SUBJECTS = [
    Subject(f"{board}/{design}", (board, design), partial(board_rows, board, design), partial(digest_of, board, design))
    for board, settings in boards().items()
    for design in settings["designs"]
]
SUBJECTS = CORE_SUBJECTS + BOARD_SUBJECTS


def commit():
    """The commit that the sources are from, with a + where rtl/ has changes that are not in it; `none` outside a clone."""

    def git(*words):
        return subprocess.run(["git", *words], cwd=TOP, capture_output=True, text=True).stdout.strip()

    return (git("rev-parse", "--short=8", "HEAD") or "none") + ("+" if git("status", "--porcelain", "--", RTL) else "")


def measure(subject, seeds):
    """The rows of a subject as text, and whether every clock is fast enough."""
    # Before the placement, which takes minutes.
    origin = commit(), subject.digest()
    rows, good = subject.measure(seeds)
    return "".join(f"| {' | '.join((*subject.cells, *row, *origin))} |\n" for row in rows), good


def written(document, texts):
    """The document with the rows of `texts` by name; the others stay."""
    for mark, head, subjects in [(CORE_BEGIN, CORE_HEAD, CORE_SUBJECTS), (BOARD_BEGIN, BOARD_HEAD, BOARD_SUBJECTS)]:
        table = head + "".join(texts.get(subject.name) or "".join(subject.rows(document)) for subject in subjects)
        document = re.sub(f"(?<={mark}).*?(?={END})", lambda _: table, document, count=1, flags=re.S)
    return document


def main():
    names = [*(core.name for core in CORES), *boards()]
    every = dict.fromkeys([*names, *(subject.name for subject in SUBJECTS)])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--core", nargs="+", choices=every, metavar="NAME", default=names)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--check", action="store_true", help="print the names whose rows are not of the present sources")
    parser.add_argument("--list", action="store_true", help="name the cores and the boards")
    options = parser.parse_args()
    if options.list:
        print("\n".join(every))
        return 0
    if options.seeds < 1:
        parser.error(f"--seeds {options.seeds}: expected at least 1")
    subjects = [subject for subject in SUBJECTS if {subject.name, subject.cells[0]} & {*options.core}]
    if options.check:
        document = DOCUMENT.read_text()
        old = [subject.name for subject in subjects if not subject.is_current(document)]
        print("".join(f"{name}\n" for name in old), end="")
        return int(bool(old))
    texts, met = {}, True
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for subject, (text, good) in zip(subjects, pool.map(lambda subject: measure(subject, options.seeds), subjects), strict=True):
            texts[subject.name] = text
            print(text, end="", flush=True)
            met &= good
    DOCUMENT.write_text(written(DOCUMENT.read_text(), texts))
    # What shows these rows.
    for tool in ("datasheets.py", "fusesoc_cores.py"):
        subprocess.run([sys.executable, TOP / "tools" / tool], check=True)
    return int(not met)


if __name__ == "__main__":
    sys.exit(main())

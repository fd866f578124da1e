#!/usr/bin/env python3
"""`make bitstream BOARD=...`: builds the bitstream of a board with open tools: Yosys, nextpnr, ecppack or gowin_pack.

Usage: tools/bitstream.py [BOARD [DESIGN]] [--number N] [--seed N] [--out FOLDER]     without BOARD: the list of boards

BOARD is a folder of rtl/boards with a board.toml, DESIGN one of the designs in it. FOLDER (build/bitstream) gets
BOARD-DESIGN.bit (Gowin: .fs), and nextpnr's report BOARD-DESIGN.json. The placer begins with seed 1 and goes on to the next while a clock is
too slow. The same sources make the same bitstream, byte for byte. Exit status 1: a clock stays too slow.
"""

import argparse
import sys
from pathlib import Path

from support.bitstream import FAMILIES, OUT, SEEDS, boards, build


def main():
    known = boards()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("board", nargs="?", metavar="BOARD", help=", ".join(known))
    parser.add_argument("design", nargs="?", default="fade10g", metavar="DESIGN", help="default: fade10g")
    parser.add_argument("--number", type=int, default=1, help="of the board in its network, 1 to 250: its MAC and IP address end with it")
    parser.add_argument("--seed", type=int, help="of the placer, this one alone")
    parser.add_argument("--out", type=Path, default=OUT, metavar="FOLDER")
    options = parser.parse_args()
    if options.board is None:
        for board, settings in known.items():
            print(f"{board:16}{', '.join(settings['designs']):30}{settings['name']}, {settings['device']}")
        return 0
    if options.board not in known:
        parser.error(f"BOARD {options.board}: expected one of {', '.join(known)}")
    designs = known[options.board]["designs"]
    if options.design not in designs:
        parser.error(f"DESIGN {options.design}: expected one of {', '.join(designs)}")
    if not 1 <= options.number <= 250:
        parser.error(f"--number {options.number}: expected 1 to 250")
    if options.seed is not None and options.seed < 0:
        parser.error(f"--seed {options.seed}: expected 0 or more")
    made = build(options.board, options.design, options.number, options.seed, options.out.resolve())
    for clock in made.clocks:
        print(f"{clock.name:12}{clock.reached:7.1f} MHz, needed {clock.needed:g} MHz")
    names = FAMILIES[known[options.board]["family"]].names
    print(f"seed {made.seed}; {', '.join(f'{count:,} {name}' for count, name in zip(made.size, names, strict=True))}")
    print(made.file)
    for clock in made.below():
        tried = f"seeds {SEEDS[0]} to {SEEDS[-1]}" if options.seed is None else f"seed {made.seed}"
        print(f"{clock.name} is too slow with {tried}; its longest path: {clock.path}", file=sys.stderr)
    return int(bool(made.below()))


if __name__ == "__main__":
    sys.exit(main())

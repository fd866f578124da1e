#!/usr/bin/env python3
"""`make bitstream BOARD=...`: builds the bitstream of a board with open tools: Yosys, nextpnr, ecppack or gowin_pack.

Usage: tools/bitstream.py [BOARD [DESIGN]] [--number N] [--seed N] [--out FOLDER] [--load | --flash]     without BOARD: the list of boards

BOARD is a folder of rtl/boards with a board.toml, DESIGN one of the designs in it. FOLDER (build/bitstream) gets
BOARD-DESIGN.bit (Gowin: .fs), and nextpnr's report BOARD-DESIGN.json. The placer begins with seed 1 and goes on to the next while a clock is
too slow. The same sources make the same bitstream, byte for byte. With --load or --flash, openFPGALoader sends it to the board. Exit status
1: a clock stays too slow, and nothing is sent; or openFPGALoader failed.
"""

import argparse
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import project_python  # noqa: F401
from support.bitstream import FAMILIES, OUT, SEEDS, boards, build


def main():
    known = boards()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("board", nargs="?", metavar="BOARD", help=", ".join(known))
    parser.add_argument("design", nargs="?", default="fade10g", metavar="DESIGN", help="default: fade10g")
    parser.add_argument("--number", type=int, default=1, help="of the board in its network, 1 to 250: its MAC and IP address end with it")
    parser.add_argument("--seed", type=int, help="of the placer, this one alone")
    parser.add_argument("--out", type=Path, default=OUT, metavar="FOLDER")
    program = parser.add_mutually_exclusive_group()
    program.add_argument("--load", action="store_true", help="load the FPGA by openFPGALoader; lost when it is switched off")
    program.add_argument("--flash", action="store_true", help="write the board's flash by openFPGALoader")
    options = parser.parse_args()
    sends = options.load or options.flash
    if options.board is None:
        if sends:
            parser.error(f"BOARD: expected one of {', '.join(known)}")
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
    loader = shutil.which("openFPGALoader")
    if sends and loader is None:
        print("bitstream: openFPGALoader is not in the PATH: install it (Debian: apt install openfpgaloader)", file=sys.stderr)
        return 1
    made = build(options.board, options.design, options.number, options.seed, options.out.resolve())
    for clock in made.clocks:
        print(f"{clock.name:12}{clock.reached:7.1f} MHz, needed {clock.needed:g} MHz")
    names = FAMILIES[known[options.board]["family"]].names
    print(f"seed {made.seed}; {', '.join(f'{count:,} {name}' for count, name in zip(made.size, names, strict=True))}")
    print(made.file)
    for clock in made.below():
        tried = f"seeds {SEEDS[0]} to {SEEDS[-1]}" if options.seed is None else f"seed {made.seed}"
        print(f"{clock.name} is too slow with {tried}; its longest path: {clock.path}", file=sys.stderr)
    if made.below() or not sends:
        return int(bool(made.below()))
    words = [loader, *known[options.board]["loader"], *(["-f"] if options.flash else []), str(made.file)]
    status = subprocess.run(words).returncode
    if status != 0:
        print(f"bitstream: `{shlex.join(words)}` failed, exit status {status}: is the board connected, and may you use its adapter?", file=sys.stderr)
    return int(status != 0)


if __name__ == "__main__":
    sys.exit(main())

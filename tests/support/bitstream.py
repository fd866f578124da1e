"""Bitstreams of the boards, by Yosys, nextpnr-ecp5 and ecppack; what `make bitstream`, the tests and docs/timing.md use."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

import tomllib

from support.paths import RTL, TOP
from support.place import NEXTPNR, describe
from support.synth import rtl_sources, run_yosys

BOARDS = RTL / "boards"
ECPPACK = TOP / ".venv/bin/yowasp-ecppack"
OUT = TOP / "build/bitstream"
# Placements to try until one meets every clock.
SEEDS = range(1, 17)


@dataclass
class Clock:
    """A clock of a placement in MHz, by the name of its constraint: a pin, or an output of the PLL."""

    name: str
    reached: float
    needed: float
    path: str


@dataclass
class Bitstream:
    """A bitstream, and what nextpnr says of it."""

    file: Path
    seed: int
    clocks: list
    comb: int
    ff: int
    ram: int

    def below(self):
        """Clocks that are too slow."""
        return [clock for clock in self.clocks if clock.reached < clock.needed]


def boards():
    """Name of each board to its board.toml."""
    return {path.parent.name: tomllib.loads(path.read_text()) for path in sorted(BOARDS.glob("*/board.toml"))}


def sources(board):
    """Files of a board, relative to the top: the cores, what boards share, and the board's own."""
    shared = boards()[board]["shared"]
    own = [path for folder in ("common", *shared, board) for path in sorted((BOARDS / folder).glob("*.sv"))]
    return [*rtl_sources(), *(str(path.relative_to(TOP)) for path in own)]


def run(*words):
    """Runs a tool; its output is in the error if it fails."""
    process = subprocess.run([str(word) for word in words], cwd=TOP, capture_output=True, text=True)
    if process.returncode != 0:
        raise RuntimeError(f"{Path(words[0]).name} failed:\n{process.stdout[-4000:]}{process.stderr[-4000:]}")


def result(file, seed, report, generated):
    """What nextpnr's report says. Pins have their names; `generated`: those of clocks of a PLL, to their MHz."""
    paths = {path["from"].removeprefix("posedge "): describe(path["path"]) for path in report["critical_paths"] if path["from"] == path["to"]}
    names = {mhz: name for name, mhz in generated.items()}
    clocks = []
    for net, clock in sorted(report["fmax"].items()):
        pin = net.removeprefix("$glbnet$").removesuffix("$TRELLIS_IO_IN")
        name = pin if net.endswith("$TRELLIS_IO_IN") else names[clock["constraint"]]
        clocks.append(Clock(name, clock["achieved"], clock["constraint"], paths[net]))
    used = {name: cells["used"] for name, cells in report["utilization"].items()}
    return Bitstream(file, seed, clocks, used["TRELLIS_COMB"], used["TRELLIS_FF"], used["DP16KD"])


def build(board, design, number=1, seed=None, out=OUT):
    """Synthesizes a design for a board, places it with the first seed that meets every clock (or with `seed`), and packs it.

    If no seed does, the result is that of the last one, and below() is not empty.
    """
    settings = boards()[board]
    out.mkdir(parents=True, exist_ok=True)
    file = out / f"{board}-{design}"
    cells, routed, report = (file.with_suffix(end) for end in (".netlist", ".config", ".json"))
    parameters = {**settings["designs"][design], "NUMBER": number}
    run_yosys(board, parameters, f"synth_ecp5 -top {board} -json {cells}", sources=sources(board))
    for tried in SEEDS if seed is None else [seed]:
        run(NEXTPNR, *settings["nextpnr"], "--placer", "static", "--json", cells, "--lpf", BOARDS / board / f"{board}.lpf", "--textcfg", routed,
            "--report", report, "--seed", tried, "--timing-allow-fail", "--quiet")  # fmt: skip
        found = result(file.with_suffix(".bit"), tried, json.loads(report.read_text()), settings["clocks"])
        if not found.below():
            break
    run(ECPPACK, "--compress", routed, found.file)
    return found

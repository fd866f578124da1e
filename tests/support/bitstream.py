"""Bitstreams of the boards by open tools; what `make bitstream`, the tests and docs/timing.md use.

Lattice ECP5: Yosys, nextpnr-ecp5, ecppack. Gowin: Yosys, nextpnr-himbaechel-gowin, gowin_pack.
"""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

import tomllib

from support import yowasp
from support.paths import RTL, TOP
from support.place import describe
from support.sources import digest, files_of, modules
from support.synth import run_yosys

BOARDS = RTL / "boards"
OUT = TOP / "build/bitstream"
# Placements to try until one meets every clock.
SEEDS = range(1, 17)


@dataclass
class Clock:
    """A clock of a placement in MHz, by the name of its pin or of the output of a PLL."""

    name: str
    reached: float
    needed: float
    path: str


@dataclass
class Bitstream:
    """A bitstream, and what nextpnr says of it. size: logic cells, registers, block RAMs."""

    file: Path
    seed: int
    clocks: list
    size: tuple

    def below(self):
        """Clocks that are too slow."""
        return [clock for clock in self.clocks if clock.reached < clock.needed]


def boards():
    """Name of each board to its board.toml."""
    return {path.parent.name: tomllib.loads(path.read_text()) for path in sorted(BOARDS.glob("*/board.toml"))}


def sources(board):
    """Files that a board needs, relative to the top."""
    return files_of(board, modules())


def digest_of(board, design):
    """Of what the clocks of a design depend on."""
    settings = boards()[board]
    constraints = family_of(board).constraints.relative_to(TOP)
    return digest([*sources(board), constraints], settings["nextpnr"], settings["clocks"], settings["designs"][design])


def run(words):
    """Runs a tool; its output is in the error if it fails."""
    process = subprocess.run([str(word) for word in words], cwd=TOP, capture_output=True, text=True)
    if process.returncode != 0:
        raise RuntimeError(f"{Path(words[0]).name} failed:\n{process.stdout[-4000:]}{process.stderr[-4000:]}")


class Ecp5:
    """Lattice ECP5. Constraints: NAME.lpf."""

    synth, end, names = "synth_ecp5", ".bit", ("TRELLIS_COMB", "TRELLIS_FF", "DP16KD")

    def __init__(self, board, settings):
        self.constraints, self.settings = BOARDS / board / f"{board}.lpf", settings

    def place(self, cells, routed, report, seed):
        run(yowasp.command("nextpnr-ecp5", *self.settings["nextpnr"], "--placer", "static", "--json", cells, "--lpf", self.constraints,
                           "--textcfg", routed, "--report", report, "--seed", seed, "--timing-allow-fail", "--quiet"))  # fmt: skip

    def pack(self, routed, file):
        run(yowasp.command("ecppack", "--compress", routed, file))

    def clock(self, net, constraint, _):
        """(name, MHz needed) of a net: nextpnr knows the frequencies, and names pins."""
        pin = net.removeprefix("$glbnet$").removesuffix("$TRELLIS_IO_IN")
        names = {mhz: name for name, mhz in self.settings["clocks"].items()}
        return pin if net.endswith("$TRELLIS_IO_IN") else names[constraint], constraint


class Gowin:
    """Gowin. Constraints: NAME.cst; the frequencies are those of board.toml, because nextpnr does not follow a clock through the pin."""

    synth, end, names = "synth_gowin", ".fs", ("LUT4", "DFF", "BSRAM")

    def __init__(self, board, settings):
        self.constraints, self.settings = BOARDS / board / f"{board}.cst", settings

    def place(self, cells, routed, report, seed):
        run(yowasp.command("nextpnr-himbaechel-gowin", *self.settings["nextpnr"], "--vopt", f"cst={yowasp.relative(self.constraints)}",
                           "--json", cells, "--write", routed, "--report", report, "--freq", max(self.settings["clocks"].values()),
                           "--seed", seed, "--timing-allow-fail", "--quiet"))  # fmt: skip

    def pack(self, routed, file):
        family = next(word.removeprefix("family=") for word in self.settings["nextpnr"] if word.startswith("family="))
        run([TOP / ".venv/bin/gowin_pack", "-d", family, "-o", file, routed])

    def clock(self, net, _, cells):
        """(name, MHz needed) of a net: the pin whose buffer drives it."""
        (module,) = (module for module in json.loads(cells.read_text())["modules"].values() if "top" in module["attributes"])
        bits = module["netnames"][net]["bits"]
        for cell in module["cells"].values():
            if cell["type"] == "IBUF" and cell["connections"]["O"] == bits:
                (pin,) = (name for name, port in module["ports"].items() if port["bits"] == cell["connections"]["I"])
                return pin, self.settings["clocks"][pin]
        raise AssertionError(f"{net}: no pin drives it")


FAMILIES = {"ecp5": Ecp5, "gowin": Gowin}


def family_of(board):
    settings = boards()[board]
    return FAMILIES[settings["family"]](board, settings)


def build(board, design, number=1, seed=None, out=OUT):
    """Synthesizes a design for a board, places it with the first seed that meets every clock (or with `seed`), and packs it.

    If no seed does, the result is that of the last one, and below() is not empty.
    """
    settings, family = boards()[board], family_of(board)
    out.mkdir(parents=True, exist_ok=True)
    file = out / f"{board}-{design}"
    # Relative, so that they are the same in every clone.
    cells, routed, report = (yowasp.relative(file.with_suffix(end)) for end in (".netlist", ".config", ".json"))
    run_yosys(board, {**settings["designs"][design], "NUMBER": number}, f'{family.synth} -top {board} -json "{cells}"', sources=sources(board))
    for tried in SEEDS if seed is None else [seed]:
        family.place(cells, routed, report, tried)
        found = json.loads((TOP / report).read_text())
        paths = {path["from"].removeprefix("posedge "): describe(path["path"]) for path in found["critical_paths"] if path["from"] == path["to"]}
        clocks = []
        for net, clock in sorted(found["fmax"].items()):
            name, needed = family.clock(net, clock["constraint"], TOP / cells)
            clocks.append(Clock(name, clock["achieved"], needed, paths[net]))
        size = tuple(found["utilization"][name]["used"] for name in family.names)
        made = Bitstream(file.with_suffix(family.end), tried, clocks, size)
        if not made.below():
            break
    family.pack(routed, yowasp.relative(made.file))
    return made

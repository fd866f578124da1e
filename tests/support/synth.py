"""Synthesizes a core with Yosys for Xilinx 7-series and counts what it takes."""

import json
import re
import tempfile
from pathlib import Path

from support import yowasp
from support.paths import TOP

# Logic cells of a 7-series slice that one primitive takes as LUTs.
LUTS = {"RAM32M": 4, "RAM64M": 4, "RAM32X1D": 2, "RAM64X1D": 2, "RAM128X1D": 4, "RAM256X1S": 4, "SRL16E": 1, "SRLC32E": 1,
        "RAM32X1S": 1, "RAM64X1S": 1, "RAM128X1S": 2}  # fmt: skip


def rtl_sources():
    """The files of the cores, packages first, as paths from the top."""
    files = (TOP / "rtl/fadelink.f").read_text().split()
    sources = [word for word in files if word.endswith("_pkg.sv")]
    folders = [word.removeprefix("rtl/") for word in files if re.fullmatch(r"rtl/[\w/]+", word)]
    for folder in folders:
        sources += sorted(str(path.relative_to(TOP)) for path in (TOP / "rtl" / folder).glob("*.sv"))
    return list(dict.fromkeys(sources))


def run_yosys(top, parameters, *commands, sources=None):
    """Reads the cores, or other sources, and runs commands on one of them."""
    settings = " ".join(f"-set {name} {value}" for name, value in parameters.items())
    script = [
        f"read_verilog -sv {' '.join(yowasp.relative(TOP / path) for path in sources or rtl_sources())}",
        *([f"chparam {settings} {top}"] if settings else []),
        *commands,
    ]
    yowasp.run("yosys", "-q", "-p", "; ".join(script), check=True)


def elaborate(top, **parameters):
    """The flattened core as registers and logic, a module of Yosys' JSON; fails on a latch, a loop or an undriven net."""
    (TOP / "build").mkdir(exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=TOP / "build", suffix=".json") as out:
        checks = ["check -assert", "select -assert-none t:$dlatch* t:$adlatch* t:$sr", "select *"]
        run_yosys(top, parameters, f"prep -flatten -top {top}", *checks, f"write_json {Path(out.name).relative_to(TOP)}")
        (module,) = (module for module in json.load(out)["modules"].values() if "top" in module["attributes"])
    return module


def synthesize(top, luts=True, sources=None, **parameters):
    """Number of each primitive of the flattened core (of `sources`, else of ours); without `luts` the logic stays unmapped, which saves a third of the time."""
    stages = "" if luts else "-run begin:map_luts"
    (TOP / "build").mkdir(exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=TOP / "build", suffix=".json") as out:
        report = Path(out.name).relative_to(TOP)
        run_yosys(
            top,
            parameters,
            f"synth_xilinx -family xc7 -flatten -top {top} {stages}",
            "check -assert",
            f"tee -q -o {report} stat -json",
            sources=sources,
        )
        return json.load(out)["design"]["num_cells_by_type"]


def totals(cells):
    """(LUT, FF, BRAM of 36 Kbit)."""
    luts = sum(n for name, n in cells.items() if name.startswith("LUT"))
    luts += sum(n * LUTS.get(name, 0) for name, n in cells.items())
    ffs = sum(n for name, n in cells.items() if name.startswith("FD"))
    brams = cells.get("RAMB36E1", 0) + cells.get("RAMB18E1", 0) / 2
    return luts, ffs, brams

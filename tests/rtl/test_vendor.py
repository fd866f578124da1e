"""The Tcl and the constraints for Vivado and Quartus, which are not run here: by tclsh, with the tools' commands as stubs; the boards by Yosys."""

import re
import subprocess

import pytest
from support.bitstream import BOARDS
from support.paths import TOP
from support.synth import synthesize, totals

STUBS = """
# A command of the tool says what it was called with.
proc unknown {args} { puts [list CALL {*}$args]; return "" }
proc read_xdc {file} { puts [list CALL read_xdc $file]; uplevel #0 [list source $file] }
proc get_property {args} { return 1 }
foreach package {project flow} { package provide ::quartus::$package 1 }
set quartus(args) {NUMBER=2}
set argv {NUMBER=2}
"""
# Of each board: the tool's script, and what reads constraints.
BUILDS = ["kc705", "de2_115"]


def calls(board, tmp_path):
    """Each command of the tool that the script of a board calls, as a list of words."""
    folder = BOARDS / board
    script = (
        STUBS
        + f"source {folder}/build.tcl\n"
        + (f"source {folder}/de2_115.sdc\nsource {TOP}/rtl/common/crossings.sdc\n" if board == "de2_115" else "")
    )
    # tclsh splits the words: one a line, and an empty line behind each call.
    split = 'proc puts {call} { foreach word [lrange $call 1 end] { ::write stdout "<[string map {\\n { }} $word]>" }; ::write stdout "" }\nrename puts_ ::write\n'
    process = subprocess.run(["tclsh"], input=f"rename puts puts_\n{split}{script}", cwd=tmp_path, capture_output=True, text=True)
    assert process.returncode == 0 and not process.stderr, process.stderr
    return [re.findall(r"^<(.*)>$", call, re.M) for call in process.stdout.split("\n\n") if call]


def ports(board):
    """Every bit of the ports of a board's top: name to direction."""
    top = (BOARDS / board / f"{board}.sv").read_text()
    found = {}
    for direction, high, name in re.findall(r"^ +(input|output|inout)\s+(?:logic|wire)\s*(?:\[(\d+):0\])?\s*(\w+),?$", top, re.M):
        for i in range(int(high or 0) + 1):
            found[f"{name}[{i}]" if high else name] = direction
    return found


@pytest.mark.parametrize("board", BUILDS)
def test_script(board, tmp_path):
    called = calls(board, tmp_path)
    # Every source is there, packages before those that use them, the top last.
    sources = [words[-1] for words in called if words[0] == "read_verilog" or "SYSTEMVERILOG_FILE" in words]
    listed = [line for line in (BOARDS / board / f"{board}.f").read_text().splitlines() if line.startswith("rtl/")]
    assert sources == [str(TOP / name) for name in listed] and all((TOP / name).exists() for name in listed) and listed[-1].endswith(f"{board}.sv")
    # The settings are taken.
    assert ["set_parameter", "-name", "NUMBER", "2"] in called or any("-generic" in words and "NUMBER=2" in words for words in called)
    names = [words[0] for words in called]
    assert ["write_bitstream"] == names[-1:] or names.index("execute_flow") + 1 == names.index("project_close")


@pytest.mark.parametrize("board", BUILDS)
def test_constraints(board, tmp_path):
    """Each bit of a port has a place of its own and a standard; each clock that comes in has a period; the crossings are constrained."""
    called = calls(board, tmp_path)
    if board == "kc705":
        places = []
        # get_ports is a stub, and is called before what it is an argument of.
        for before, words in zip(called, called[1:], strict=False):
            if words[:2] == ["set_property", "-dict"]:
                keys = dict(zip(*[iter(words[2].split())] * 2, strict=True))
                places.append((before[1], keys["PACKAGE_PIN"], keys["IOSTANDARD"]))
    else:
        standards = {words[-1]: words[3] for words in called if words[0] == "set_instance_assignment"}
        places = [(words[-1], words[1], standards[words[-1]]) for words in called if words[0] == "set_location_assignment"]
    wanted = ports(board)
    assert sorted(name for name, _, _ in places) == sorted(wanted)
    assert len({pin for _, pin, _ in places}) == len(places) and all(standard for _, _, standard in places)
    clocks = {words[words.index("-name") + 1] for words in called if words[0] == "create_clock"}
    # Of a differential pair one.
    needed = {name.split("[")[0] for name, direction in wanted.items() if direction == "input" and re.search(r"clk|rxc", name)}
    assert needed <= clocks
    assert any("sync_first" in " ".join(words) for words in called) and any("cdc_held" in " ".join(words) for words in called)


@pytest.mark.long
@pytest.mark.parametrize("design", [0, 1, 2])
def test_kc705_synthesizes(design):
    """By Yosys with the primitives of the 7 series."""
    listed = [line for line in (BOARDS / "kc705/kc705.f").read_text().splitlines() if line.startswith("rtl/")]
    cells = synthesize("kc705", sources=listed, DESIGN=design)
    luts, ffs, brams = totals(cells)
    # Of an XC7K325T.
    assert luts < 203_800 / 10 and ffs < 407_600 / 10 and brams < 445
    assert (cells["MMCME2_BASE"], cells["ODDR"], cells["IBUFDS"], cells["IOBUF"]) == (1, 1, 1, 1) and cells["BUFG"] >= 4

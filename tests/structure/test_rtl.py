"""The shape of the RTL, as docs/style.md has it: one module a file under a header that draws it, ports in one order."""

import re
import subprocess
import sys

import pytest
from support.crossings import CARRIERS, HELD, SYNCHRONIZERS
from support.interface import interface
from support.paths import TOP

FILES = sorted((TOP / "rtl").rglob("*.sv"))
MODULES = [path for path in FILES if not path.stem.endswith("_pkg")]
DOMAINS = ["user", "tx", "rx"]
STREAM = ["tdata", "tkeep", "tvalid", "tready", "tlast", "tuser", "start"]
OTHER_NAMES = {"clock", "reset", "rst_n", "resetn", "aclk", "aresetn", "my_mac", "my_ip"}
PRIMITIVE = re.compile(
    r"^\s*(I?O?BUF\w*|BUFG\w*|BUFR|[IO]DDR\w*|[IO]SERDES\w*|PLLE\w+|MMCM\w+|RAMB\w+|FD[RCSP]E|LUT[1-6]|DSP48\w*|EHXPLL\w*|"
    r"TRELLIS_\w+|DCCA|SB_\w+|altpll|ALTDDIO_\w+|altsyncram|xpm_\w+)\s*(#\s*\(|\w+\s*\()",
    re.M,
)


def short(path):
    return str(path.relative_to(TOP / "rtl"))


@pytest.mark.parametrize("path", FILES, ids=short)
def test_one_file_one_thing(path):
    text = path.read_text()
    assert re.findall(r"^(?:module|package)\s+(\w+)", text, re.M) == [path.stem], "one module or package, named as its file"
    assert text.startswith("// SPDX-License-Identifier: Apache-2.0\n//\n// "), "the licence, and a header that says what it is"
    assert not re.search(r"^  end else if .*begin", text, re.M), "an else if in a generate block has no name in every tool: use case"
    assert "\n`default_nettype none\n" in text and text.endswith("\n`default_nettype wire\n"), "no net without a declaration"


@pytest.mark.parametrize("path", MODULES, ids=short)
def test_header_draws_the_module(path):
    assert any("+---" in line for line in interface(path.stem).header), "a drawing of its ports"


@pytest.mark.parametrize("path", MODULES, ids=short)
def test_ports_are_in_order(path):
    """Clock and reset first, domains as the data goes, the signals of a stream together."""
    names = [port.name for port in interface(path.stem).ports]
    assert names and not OTHER_NAMES & set(names)
    assert not [name for name in names if re.search(r"(_i|_o|_n|_in_i)$", name)], "no direction or polarity in a name"
    if "clk" in names:
        assert names[0] == "clk" and ("rst" not in names or names[1] == "rst"), names[:2]
    for i, name in enumerate(names):
        if name.endswith("_clk") and name[:-3] + "rst" in names:
            assert names[i + 1] == name[:-3] + "rst"
    domains = [name[:-4] for name in names if name.endswith("_clk") and name[:-4] in DOMAINS]
    assert domains == sorted(domains, key=DOMAINS.index)
    for prefix in {name[:-6] for name in names if name.endswith("_tdata")}:
        at = [i for i, name in enumerate(names) if name.startswith(prefix + "_") and name[len(prefix) + 1 :] in STREAM]
        here = [names[i][len(prefix) + 1 :] for i in at]
        assert here == sorted(here, key=STREAM.index) and at == list(range(at[0], at[0] + len(at))), here
    sides = [name[0] for name in names if re.match(r"[sm]_axis", name) and "clk" in names]
    assert sides == sorted(sides, reverse=True), "what comes in before what goes out"


def test_lint_refuses_what_is_not_legal(tmp_path):
    """A name before its declaration, as Verilator takes it."""
    bad = tmp_path / "bad.sv"
    bad.write_text("module bad(input logic a, output logic b);\n  assign b = c;\n  logic c;\n  assign c = a;\nendmodule\n")
    words = [sys.executable, "tools/lint_slang.py"]
    run = subprocess.run(words, cwd=TOP, input=f"{bad} --top bad\n", capture_output=True, text=True)
    assert run.returncode == 1 and "used before its declaration" in run.stdout + run.stderr
    good = tmp_path / "good.sv"
    good.write_text("module good(input logic a, output logic b);\n  logic c;\n  assign b = c;\n  assign c = a;\nendmodule\n")
    assert subprocess.run(words, cwd=TOP, input=f"{good} --top good\n", capture_output=True, text=True).returncode == 0


# Modules in which signals cross, and the register that the constraint files know them by.
CROSSINGS = {"sync_bits": "sync_first", "sync_reset": "sync_reset_stages", "cdc_register": "cdc_held", "async_fifo": "cdc_memory"}


@pytest.mark.parametrize("file", ["crossings.xdc", "crossings.sdc"])
def test_crossings_have_constraints(file):
    text = (TOP / "rtl/common" / file).read_text()
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    for line in lines:
        assert re.match(r"set_(max_delay|min_delay|false_path|max_skew) -", line) and all(line.count(a) == line.count(b) for a, b in ("[]", "{}"))
    for name, register in CROSSINGS.items():
        assert re.search(rf"\b{register}(\[\w+\])?;", (TOP / f"rtl/common/{name}.sv").read_text()), name
        assert any(f"*{register}" in line for line in lines), register
        others = [path.stem for path in MODULES if path.stem != name and register in path.read_text()]
        assert not others, f"{register} is the name for {name} alone"
    # Block RAM with two clocks has no path from one to the other.
    assert set(CROSSINGS) | {"packet_memory"} == SYNCHRONIZERS | CARRIERS | HELD


def test_no_vendor_primitives_outside_boards():
    for path in MODULES:
        if "boards" not in path.parts:
            assert not PRIMITIVE.search(path.read_text()), short(path)
    assert PRIMITIVE.search("  BUFG buffer (\n") and PRIMITIVE.search("  RAMB36E1 #(\n") and not PRIMITIVE.search("  fifo fifo (\n")


@pytest.mark.parametrize("core", ["fade/fade_core", "tcp/tcp_core", "udp/udp_core"])
def test_link_cores_have_the_same_sides(core):
    """User side, status reader, MAC: of the same names and types in every core, around the same shell."""
    path = TOP / f"rtl/{core}.sv"
    ports = {port.name: (port.kind, port.type) for port in interface(path.stem).ports}
    assert ports["m_axis"] == ("output", "link_pkg::frame_t") and ports["s_mac"] == ("input", "link_pkg::frame_t")
    assert ports["mac_stat"] == ("input", "link_pkg::mac_stat_t") and ports["rst"] == ("input", "logic")
    assert "link_pkg::words_t" in ports["s_axis"][1] or "link_pkg::WORDS_BITS" in ports["s_axis"][1]
    for name in ["user_clk", "user_rst", "s_axis_tready", "user_running", "tx_clk", "tx_rst", "rx_clk", "rx_rst", "mac_address",
                 "status_index", "status_request", "status_accepted", "status_value", "status_valid"]:  # fmt: skip
        assert name in ports, name
    assert "  link_shell #(" in path.read_text()

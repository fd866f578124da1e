"""Datasheets of the cores: each parameter and port is in its page, with a meaning that the sources give."""

import importlib.util
import re
import sys

import pytest
from support.interface import Interface, interface
from support.paths import TOP

PAGES = [path for path in sorted((TOP / "docs/cores").glob("*.md")) if path.stem != "README"]
MODULE = """\
// SPDX-License-Identifier: Apache-2.0
//
// A module; it ends at once. fast: ten times (or more); slow, slower: not so. speed: see another.
//
//   +---+
//   | m |==> said: in the drawing
//   +---+
`default_nettype none
module m #(
    parameter int WIDTH = 8,  // bits (8 or 64); never another
    parameter logic [37:0] PERIOD = WIDTH == 8 ? 38'd8 << 32 : '0
) (
    input wire clk,
    // sides (as usual);
    input logic fast,
    input logic slow,
    input logic slower,  // less than slow
    input logic signed [3:0] [7:0] speed,
    // more
    // of them
    output link_pkg::frame_t m_axis,
    input logic m_axis_tready,
    input logic [1:0] tx_ce,
    input logic rx_ce,
    output logic paused  // );
);
  gmii_mac mac (
      .rx_ce(1'b1),
      .tx_ce(tx_ce[0]),
      .*
  );
endmodule
"""


def test_a_comment_does_not_end_a_declaration():
    found = Interface(MODULE)
    assert [item.name for item in found.parameters] == ["WIDTH", "PERIOD"]
    assert [item.value for item in found.parameters] == ["8", "WIDTH == 8 ? 38'd8 << 32 : '0"]
    ports = ["clk", "fast", "slow", "slower", "speed", "m_axis", "m_axis_tready", "tx_ce", "rx_ce", "paused"]
    assert [item.name for item in found.ports] == ports
    assert [item.type for item in found.ports][:6] == ["wire", *["logic"] * 3, "logic signed [3:0][7:0]", "link_pkg::frame_t"]
    assert [item.group for item in found.ports] == ["", *["sides (as usual);"] * 4, *["more of them"] * 5]


def test_meanings_are_those_of_the_sources():
    assert Interface(MODULE).meanings() == {
        "WIDTH": "bits (8 or 64); never another",
        "PERIOD": "",
        "clk": "clock",
        "fast": "ten times (or more)",
        "slow": "not so",
        "slower": "less than slow",
        "speed": "",
        "m_axis": interface("gmii_mac").meanings()["m_axis"],
        "m_axis_tready": "the word is taken in a clock with tvalid",
        "tx_ce": interface("gmii_mac").meanings()["tx_ce"],
        "rx_ce": "",
        "paused": ");",
    }


@pytest.mark.parametrize("line", ["input logic a, b,", "input a_t c,", "parameter int X", "logic d;"])
def test_a_line_that_is_not_understood_is_an_error(line):
    with pytest.raises(ValueError, match=re.escape(f"m: {line}: expected one parameter or port")):
        Interface(MODULE.replace("    input wire clk,\n", f"    {line}\n"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_each_parameter_and_port_has_a_meaning(page):
    rows = re.findall(r"^\| `(\w+)` \| .* \| (.*?) ?\|$", page.read_text(), re.M)
    assert [name for name, _ in rows] == [item.name for item in interface(page.stem).declared]
    assert not [name for name, meaning in rows if not meaning]


def test_lint_refuses_a_port_without_a_meaning(monkeypatch):
    monkeypatch.syspath_prepend(TOP / "tools")
    spec = importlib.util.spec_from_file_location("datasheets", TOP / "tools/datasheets.py")
    datasheets = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(datasheets)
    monkeypatch.setattr(sys, "argv", ["datasheets.py", "--check"])
    assert not datasheets.main()
    text = (TOP / "rtl/mac/mii.sv").read_text()
    without = Interface(re.sub(r"(mii_rx_er,) *//.*", r"\1", text))
    monkeypatch.setattr(datasheets, "interface", lambda core: without if core == "mii" else interface(core))
    with pytest.raises(SystemExit, match="rtl/mac/mii.sv: no meaning of mii_rx_er"):
        datasheets.main()

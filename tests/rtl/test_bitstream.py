"""The boards: their pins, and bitstreams by open tools, whose clocks are fast enough (docs/boards.md)."""

import re
import subprocess

import pytest
from support.bitstream import BOARDS, OUT, boards, build
from support.paths import TOP

EVERY = [(board, design) for board, settings in boards().items() for design in settings["designs"]]
# The one that takes the least time.
SMALLEST = ("colorlight_i5", "fade1")


@pytest.mark.parametrize("board, design", [pytest.param(*one, marks=[] if one == SMALLEST else [pytest.mark.long]) for one in EVERY])
def test_bitstream(board, design):
    """Every clock is fast enough with one of the seeds, and what is packed is for the device of the board."""
    made = build(board, design, out=OUT / "test")
    assert not made.below()
    unpacked = made.file.with_suffix(".unpacked")
    # Its comments name the part.
    subprocess.run([TOP / ".venv/bin/yowasp-ecpunpack", made.file.relative_to(TOP), unpacked.relative_to(TOP)], cwd=TOP, check=True)
    device = boards()[board]["device"].rsplit("-", 1)[0]
    assert f".device {device}\n" in unpacked.read_text()


@pytest.mark.long
def test_bitstream_is_reproducible():
    """Byte for byte, in another folder."""
    first, second = (build(*SMALLEST, out=OUT / name).file for name in ("first", "second"))
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize("board", boards())
def test_every_pin_has_a_place(board):
    """A pin for each port of the top module, each once, with its standard; and each clock that comes in has a frequency."""
    top = (BOARDS / board / f"{board}.sv").read_text()
    ports = re.findall(r"^ +(input|output|inout)\s+(?:logic|wire)\s*(?:\[(\d+):0\])?\s*(\w+),?$", top, re.M)
    pins = [f"{name}[{i}]" if high else name for _, high, name in ports for i in range(int(high or 0) + 1)]
    text = (BOARDS / board / f"{board}.lpf").read_text()
    located = re.findall(r'^LOCATE COMP "([^"]+)" SITE "([A-Z]+\d+)";$', text, re.M)
    assert sorted(name for name, _ in located) == sorted(pins)
    assert len({site for _, site in located}) == len(located)
    assert sorted(re.findall(r'^IOBUF PORT "([^"]+)" IO_TYPE=\w+', text, re.M)) == sorted(pins)
    clocks = [name for direction, _, name in ports if direction == "input" and re.search(r"clk|rxc", name)]
    assert sorted(re.findall(r'^FREQUENCY PORT "([^"]+)" [\d.]+ MHZ;$', text, re.M)) == sorted(clocks)

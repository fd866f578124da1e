"""The boards: their pins, and bitstreams by open tools, whose clocks are fast enough (docs/boards.md)."""

import re

import pytest
from support import yowasp
from support.bitstream import BOARDS, OUT, boards, build

EVERY = [(board, design) for board, settings in boards().items() for design in settings["designs"]]
# The one that takes the least time.
SMALLEST = ("colorlight_i5", "fade1")


@pytest.mark.long
@pytest.mark.parametrize("board, design", EVERY)
def test_bitstream(board, design):
    """Every clock is fast enough with one of the seeds, and what is packed is for the device of the board."""
    made = build(board, design, out=OUT / "test")
    assert not made.below()
    device = boards()[board]["device"]
    assert packed_for(made.file) == (device.rsplit("-", 1)[0] if made.file.suffix == ".bit" else GOWIN_ID[device.rsplit("PG", 1)[0]])


# What a bitstream of Gowin says of its device (command 0x06 of the file: the identification code of JTAG, Gowin UG290).
GOWIN_ID = {"GW2A-LV18": 0x0000081B}


def packed_for(file):
    """The device in a packed bitstream."""
    if file.suffix == ".fs":
        for line in file.read_text().splitlines():
            if line.startswith("00000110") and len(line) == 64:
                return int(line[32:], 2)
    unpacked = file.with_suffix(".unpacked")
    yowasp.run("ecpunpack", file, unpacked, check=True)
    return re.search(r"^\.device (\S+)$", unpacked.read_text(), re.M)[1]


@pytest.mark.long
def test_bitstream_is_reproducible():
    """Byte for byte, in another folder."""
    first, second = (build(*SMALLEST, out=OUT / name).file for name in ("first", "second"))
    assert first.read_bytes() == second.read_bytes()


# Of each family: a pin's place, its standard, and the frequency of a clock pin.
CONSTRAINTS = {
    "ecp5": (".lpf", r'^LOCATE COMP "([^"]+)" SITE "([A-Z]+\d+)";$', r'^IOBUF PORT "([^"]+)" IO_TYPE=\w+', r'^FREQUENCY PORT "([^"]+)" [\d.]+ MHZ;$'),
    "gowin": (".cst", r'^IO_LOC "([^"]+)" ([A-Z]+\d+);$', r'^IO_PORT "([^"]+)" IO_TYPE=\w+', None),
}


@pytest.mark.parametrize("board", boards())
def test_every_pin_has_a_place(board):
    """A pin for each port of the top module, each once, with its standard; and each clock that comes in has a frequency."""
    top = (BOARDS / board / f"{board}.sv").read_text()
    ports = re.findall(r"^ +(input|output|inout)\s+(?:logic|wire)\s*(?:\[(\d+):0\])?\s*(\w+),?$", top, re.M)
    pins = [f"{name}[{i}]" if high else name for _, high, name in ports for i in range(int(high or 0) + 1)]
    end, place, standard, frequency = CONSTRAINTS[boards()[board]["family"]]
    text = (BOARDS / board / f"{board}{end}").read_text()
    located = re.findall(place, text, re.M)
    assert sorted(name for name, _ in located) == sorted(pins)
    assert len({site for _, site in located}) == len(located)
    assert sorted(re.findall(standard, text, re.M)) == sorted(pins)
    clocks = [name for direction, _, name in ports if direction == "input" and re.search(r"clk|rxc", name)]
    assert sorted(re.findall(frequency, text, re.M) if frequency else boards()[board]["clocks"]) == sorted(clocks)

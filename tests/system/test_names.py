"""Names of registers and user commands, from a description file (docs/boards.md)."""

import json
import re

import pytest
from support.netns import BOARD, FEBS
from support.paths import TOP

FEB = ["--iface", "eth0", "--feb", FEBS[0]]
# The example board, as a user may describe it.
DESCRIPTION = """
name = "thermometers"
identity = 0x4641444531304701

[[register]]
name = "temperature"
number = 1
writable = true
[[register.field]]
name = "celsius"
low = 4
bits = 12
signed = true
scale = 0.0625
unit = "°C"
top = true
[[register.field]]
name = "state"
bits = 2
values = ["off", "cold", "warm"]
top = true

[[register]]
name = "limit"
number = 5
writable = true

[[register]]
name = "once"
number = 7
on_request = true

[[register]]
name = "nothing"
number = 0x7F

[[register]]
name = "sent"
number = 0x10

[[command]]
name = "calibrate"
code = 0x0207
"""


@pytest.fixture
def described(bench):
    path = bench.tmp / "board.toml"
    path.write_text(DESCRIPTION)
    return ["--registers", path]


def counters(bench, *words):
    status, out, err = bench.run("status", *FEB, "--json", *words)
    assert status == 0, err
    return json.loads(out)["counters"]


def test_status_top_and_commands(bench, described):
    bench.sim()

    def command(*words):
        status, out, err = bench.run("cmd", *FEB, *described, *words)
        assert status == 0, err
        return out.rstrip("\n").split("\n")

    assert command("temperature", 0xFE71) == command("temperature") == ["temperature.celsius -1.5625 °C", "temperature.state cold"]
    assert command("temperature.state", "warm") == ["temperature.state warm"] and int(command("0x0101")[0].split()[1]) == 0xFE72
    assert command("temperature.celsius", 12.51, "°C") == ["temperature.celsius 12.5 °C"], "the nearest step"
    assert command("temperature.celsius", "-1.5625") and command("temperature.state", "0x1")
    assert int(command("0x0101")[0].split()[1]) == 0xFE71
    assert command("limit", 77) == command("limit") == ["limit 77"] and command("0x0105")[0].split()[1] == "77"
    sums = [command("calibrate", argument)[0].split()[1] for argument in (5, 6)]
    assert sums == ["5", "11"], "the accumulator answers its sum"
    status, out, _ = bench.run("cmd", *FEB, *described, "temperature", "--json")
    assert status == 0 and json.loads(out)["value"] == 0xFE71
    assert json.loads(out)["registers"] == {
        "temperature.celsius": {"value": -1.5625, "unit": "°C"}, "temperature.state": {"value": "cold", "unit": None},
    }  # fmt: skip
    # -25 sixteenths.
    assert counters(bench, *described) == {"temperature.celsius": -1.5625, "temperature.state": "cold", "limit": 77, "nothing": None, "sent": 0}
    status, out, err = bench.run("status", *FEB, *described)
    assert status == 0 and "  temperature.celsius  -1.5625 °C\n" in out and "  nothing              not there\n" in out, out
    status, out, err = bench.run("top", *FEB, *described, "--batch", 1)
    head, row = out.splitlines()
    assert status == 0 and head.split()[-2:] == ["temperature.celsius", "temperature.state"] and row.endswith("-1.5625 °C               cold")
    # A 64-bit word that a double does not have is a string.
    status, out, _ = bench.run("cmd", *FEB, "0x0100", "--json")
    assert status == 0 and json.loads(out)["value"] == str(0x4641444531304701)
    # Without a file the names are those of the example boards.
    assert counters(bench)["limit"] == 77
    assert bench.run("cmd", *FEB, "gap", 3)[0] == 0 and counters(bench)["gap"] == 3


def test_errors(bench, described):
    bench.sim()
    for words, message in [
        (["cmd", "preassure"], "`preassure`: expected a name of thermometers: temperature, limit, once, nothing, sent, calibrate"),
        (["cmd", "sent", 1], "register `sent` of thermometers is only read"),
        (["cmd", "temperature.celsius", 3, "K"], "value `3 K` of `temperature.celsius`: expected -128 to 127.9375 °C"),
        (["cmd", "limit", -1], "value `-1` of `limit`: expected 0 to 4294967295"),
        (["cmd", "0x0105", 1, "mV"], "argument `1 mV`: expected one number; units are for names"),
        (["cmd", "nosuch", "--json"], "`nosuch`: expected a name of thermometers"),
        (["cmd", "temperature.celsius", "-inf"], "value `-inf` of `temperature.celsius`: expected -128 to 127.9375 °C"),
        (["cmd", "temperature.celsius", "-300°C"], "value `-300°C` of `temperature.celsius`: expected -128 to 127.9375 °C"),
        (["cmd", "limit", "--jsn"], "value `--jsn` of `limit`: expected 0 to 4294967295"),
        (["cmd", "calibrate", "-5"], "argument `-5`: expected a number from 0 to 0xffffffff"),
        (["cmd", "0x0105", "-5"], "argument `-5`: expected a number from 0 to 0xffffffff"),
        (["cmd", "limit", 1, 2, 3], "unexpected argument '3' found"),
        (["cmd", "nothing"], "the board has no register `nothing`, or the access failed: it answered all ones to command 0x017f"),
        (["cmd", "0x0300"], "it answered all ones to command 0x0300"),
        (["cmd", "9x"], "expected the code of a user command, 0x0100 to 0xffff, or a name of --registers"),
    ]:
        status, _, err = bench.run(words[0], *FEB, *described, *words[1:])
        # What the user has written wrong is told from what the board says.
        assert status == (1 if "answered all ones" in message else 2) and message in err, (words, status, err)
    described[1].write_text(DESCRIPTION.replace("4641444531304701", "1234"))
    status, out, err = bench.run("status", *FEB, *described)
    assert status == 0 and "its registers are not those of thermometers: no counters (--registers FILE names others)" in out
    # Nothing is written to a board of another kind.
    for words in [["limit", 5], ["limit"], ["calibrate", 1], ["0x0205", 5], ["0x0105"], ["0x0100"], ["0x0207", 1, "--repeat", 2]]:
        status, _, err = bench.run("cmd", *FEB, *described, *words)
        assert status == 1 and "register 0 of this board is 0x4641444531304701, expected 0x1234" in err
        assert "its registers are not those of thermometers" in err, err
    assert bench.command(0x0105) == 0 and bench.command(0x0107) == 0, "an access by number without --registers is nobody's"


def test_wrong_files(bench, described):
    for old, new, message in [
        ('name = "limit"', 'name = "sent"', "name `sent`: expected one register or command with this name"),
        ('name = "limit"', 'name = "1st limit"', "name `1st limit`: expected a word that begins with a letter"),
        ("bits = 12", "bits = 61", "field `temperature.celsius`: 61 bits from bit 4 on, expected 1 or more, within 64"),
        ("code = 0x0207", "code = 7", "code 0x0007 of `calibrate`: expected the code of a user command, 0x0100 to 0xffff"),
        ("writable = true", "writeable = true", "unknown field `writeable`"),
        ("number = 5", "number = -5", "line 25"),
        ('"warm"]', '"warm", "hot", "hotter"]', "field `temperature.state`: 5 words in `values`, expected at most 4"),
        ("low = 4", "low = 1", "field `temperature.state`: 2 bits from bit 0 on, expected bits that no other field of `temperature` has"),
        ('name = "state"', 'name = "its state"', "field `temperature.its state`: expected a word that begins with a letter"),
        ('name = "state"', 'name = "celsius"', "field `temperature.celsius`: expected one field, register or command with this name"),
    ]:
        described[1].write_text(DESCRIPTION.replace(old, new, 1))
        status, _, err = bench.run("status", *FEB, *described)
        assert status == 1 and "board.toml does not describe registers (docs/boards.md tells how)" in err and message in err, err
    described[1].write_text(DESCRIPTION.replace("number = 5", "number = 0x100", 1))
    bench.sim()
    # That register alone is not shown.
    unreached = "number 256 of register `limit`: expected 0 to 255, as user commands reach no other"
    status, out, err = bench.run("status", *FEB, *described, "--json")
    found = json.loads(out)["counters"]
    assert status == 0 and unreached in err and found["limit"] is None and found["sent"] == 0 and found["temperature.state"] == "off"
    status, out, err = bench.run("top", *FEB, *described, "--batch", 1)
    assert status == 0 and out.splitlines()[1].split()[-3:] == ["0.0", "°C", "off"], out
    for words in (["limit"], ["limit", 5]):
        status, _, err = bench.run("cmd", *FEB, *described, *words)
        assert status == 2 and unreached in err, err
    described[1].unlink()
    status, _, err = bench.run("status", *FEB, *described)
    assert status == 1 and "cannot read" in err and "No such file" in err


# Kinds of fields, over registers of the example board.
KINDS = """
name = "kinds"
[[register]]
name = "serial"
number = 0
[[register]]
name = "signed"
number = 0
[[register.field]]
bits = 64
signed = true
[[register]]
name = "scaled"
number = 0
[[register.field]]
bits = 64
scale = 1.0
[[register]]
name = "small"
number = 0
[[register.field]]
bits = 16
scale = 0.1
[[register]]
name = "threshold"
number = 1
writable = true
[[register.field]]
bits = 12
signed = true
unit = "mV"
[[register]]
name = "pattern"
number = 2
writable = true
[[register]]
name = "accumulator"
number = 7
writable = true
"""


def test_what_is_shown_after_a_write_is_what_the_board_has(bench):
    """Also where it keeps less than was written, or makes something else of it."""
    path = bench.tmp / "kinds.toml"
    path.write_text(KINDS)
    bench.sim()

    def run(*words):
        status, out, err = bench.run("cmd", *FEB, "--registers", path, *words)
        assert status == 0, err
        return out.rstrip("\n")

    assert run("pattern", 5) == run("pattern") == "pattern 1"
    assert [run("accumulator", 3), run("accumulator", 4), run("accumulator")] == ["accumulator 3", "accumulator 7", "accumulator 7"]
    found = json.loads(run("accumulator", 4, "--json"))
    assert found == {"feb": FEBS[0], "code": 0x0207, "argument": 4, "value": 11, "registers": {"accumulator": {"value": 11, "unit": None}}}
    assert json.loads(run("pattern", 4, "--json"))["value"] == 0
    for value, shown in [("1500.0", 1500), ("1500.0 mV", 1500), ("1e3", 1000), ("-5mV", -5), ("-3.4", -3), ("-.6", -1)]:
        assert run("threshold", value) == run("threshold") == f"threshold {shown} mV", value
    assert bench.command(0x0101) == 0xFFF, "-1 in 12 bits"


def test_numbers_that_a_double_does_not_have_are_strings(bench):
    path = bench.tmp / "kinds.toml"
    path.write_text(KINDS)
    bench.sim()
    identity = "5062402520109827841"
    found = counters(bench, "--registers", path)
    assert [found[name] for name in ("serial", "signed", "scaled")] == [identity] * 3
    assert found["small"] == 0x4701 / 10 and '"small":1817.7' in bench.run("status", *FEB, "--registers", path, "--json")[1]
    for name in ("serial", "signed", "scaled", "0x0100"):
        status, out, err = bench.run("cmd", *FEB, "--registers", path, name, "--json")
        line = json.loads(out)
        assert status == 0 and line["value"] == identity, err
        assert line.get("registers", {name: {"value": identity, "unit": None}}) == {name: {"value": identity, "unit": None}}
        status, out, err = bench.run("cmd", *FEB, "--registers", path, name)
        assert status == 0 and out.split()[-1] == identity, out
    # The example boards say theirs in 64 bits.
    status, out, _ = bench.run("cmd", *FEB, "identity", "--json")
    line = json.loads(out)
    assert status == 0 and line["value"] == line["registers"]["identity"]["value"] == identity


def test_the_example_of_the_document_is_read(bench):
    bench.sim()
    path = bench.tmp / "board.toml"
    (text,) = re.findall(r"```toml\n(.*?)```", (TOP / "docs/boards.md").read_text(), re.S)
    path.write_text(text)
    status, out, err = bench.run("status", *FEB, "--registers", path)
    assert status == 0 and "its registers are not those of Muon counter" in out, err
    path.write_text(text.replace("identity", "# identity"))
    assert set(counters(bench, "--registers", path)) == {"temperature", "temperature.state"}


def test_slow_control(net):
    path = net.tmp / "board.toml"
    path.write_text('name = "a board"\n[[register]]\nname = "enable"\nnumber = 0x80000001\nwritable = true\n')
    net.sim("--protocol", "udp", "--stopped")
    for words, value in [(["enable"], 0), (["enable", 1], 1), (["0x80000001"], 1)]:
        status, out, err = net.run("register", "--board", BOARD, "--registers", path, *words, "--json")
        assert status == 0 and json.loads(out)["value"] == value, err
    path.write_text(
        'name = "a board"\nidentity = 5\n[[register]]\nname = "sum"\nnumber = 1\nwritable = true\n[[register.field]]\nscale = 0.5\nunit = "V"\n'
    )
    words = ["register", "--board", BOARD, "--registers", path, "sum"]
    status, _, err = net.run(*words, "1.5 V")
    assert status == 1 and "register 0 of this board is 0x0, expected 0x5: its registers are not those of a board" in err
    # Nor by number.
    by_number = [*words[:-1], "1"]
    for value in ([], ["7"]):
        status, out, err = net.run(*by_number, *value)
        assert status == 1 and not out and "register 0 of this board is 0x0, expected 0x5: its registers are not those of a board" in err
    assert net.run("register", "--board", BOARD, "0", "5")[0] == 0
    assert net.run(*by_number)[1] == "0x00000000 0\n", "nothing was written"
    status, out, err = net.run(*words, "1.5", "V")
    assert status == 0 and out == "sum 1.5 V\n" and net.run(*words)[1] == "sum 1.5 V\n", err
    path.write_text('name = "a board"\n[[register]]\nname = "enable"\nnumber = 0x80000001\n')
    status, _, err = net.run("register", "--board", BOARD, "--registers", path, "none")
    assert status == 2 and "`none`: expected a name of a board: enable" in err
    path.write_text(
        'name = "a board"\n[[register]]\nname = "wide"\nnumber = 1\n[[register.field]]\nlow = 24\nbits = 12\n[[command]]\nname = "fire"\ncode = 0x400\n'
    )
    for name, message in [
        ("wide", "field `wide`: 12 bits from bit 24 on, expected all within 32, as slow control has no others"),
        ("fire", "`fire` is a user command: expected a register, as slow control has no commands"),
    ]:
        status, _, err = net.run("register", "--board", BOARD, "--registers", path, name)
        assert status == 2 and message in err, err

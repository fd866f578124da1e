"""The FuseSoC cores by FuseSoC itself: lint, the cocotb tests, timing, bitstreams (docs/boards.md)."""

import json
import os
import subprocess
import sys

import pytest
from support.bitstream import boards
from support.paths import RTL, TOP

CORES = sorted(path.stem for path in RTL.glob("*/*.core"))
BOARDS = sorted(path.stem for path in RTL.glob("boards/*/*.core"))
OUT = TOP / "build/fusesoc-test"


def fusesoc(target, core, *words, **environment):
    """Runs a target: the last lines of its output, and whether it succeeded."""
    command = [TOP / "tools/fusesoc/run", "--build-root", OUT / core, "--target", target, f"fadelink:{core}", *words]
    process = subprocess.run(
        [str(word) for word in command], env=os.environ | environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    return process.stdout[-4000:], process.returncode == 0


def long_but(names, *small):
    return [pytest.param(name, marks=[] if name in small else [pytest.mark.long]) for name in names]


EVERY = [*(f"core:{core}" for core in CORES), *(f"board:{board}" for board in BOARDS)]


@pytest.mark.parametrize("core", long_but(EVERY, "core:fade_core", "core:udp_axi", "board:template"))
def test_lint(core):
    said, good = fusesoc("lint", core)
    assert good and "%Warning" not in said, said


@pytest.mark.parametrize("board, script, expected", [("kc705", "*.tcl", "xc7k325tffg900-2"), ("de2_115", "*.tcl", "EP4CE115F29C7")])
def test_projects_of_other_tools_are_written(board, script, expected):
    """Vivado and Quartus are not here: FuseSoC writes what they would run."""
    command = [TOP / "tools/fusesoc/run", "--setup", "--build-root", OUT / board, "--target", "bitstream", f"fadelink:board:{board}"]
    subprocess.run([str(word) for word in command], check=True, capture_output=True)
    text = "".join(path.read_text() for path in (OUT / board).rglob(script))
    assert expected in text and f"{board}.sv" in text and "crossings" in text


@pytest.mark.long
@pytest.mark.parametrize("core", CORES)
def test_sim(core):
    said, good = fusesoc("sim", f"core:{core}")
    assert good and "failed: none" in said, said
    # Without a test there is no success.
    said, good = fusesoc("sim", f"core:{core}", COCOTB_TEST_FILTER="none")
    assert not good and "0 tests" in said, said


@pytest.mark.long
@pytest.mark.parametrize("core", CORES)
def test_timing(core):
    said, good = fusesoc("timing", f"core:{core}")
    assert good and " MHz, needed " in said, said


@pytest.mark.long
@pytest.mark.parametrize("board, design", [(board, design) for board, settings in boards().items() for design in settings["designs"]])
def test_bitstream(board, design):
    target = "bitstream" if design == "fade10g" else f"bitstream_{design}"
    said, good = fusesoc(target, f"board:{board}")
    assert good, said
    (packed,) = [path for path in (OUT / f"board:{board}").rglob("*") if path.suffix in (".bit", ".fs") and path.parent.name == target]
    assert packed.stat().st_size > 100_000


def test_slow_clocks_are_an_error(tmp_path):
    report = tmp_path / "report.json"
    report.write_text(
        json.dumps({"fmax": {"$glbnet$tx_clk": {"achieved": 126.0, "constraint": 150.0}, "clk": {"achieved": 126.0, "constraint": 130.0}}})
    )
    check = [sys.executable, TOP / "tools/fusesoc/check_clocks.py", report, "tx_clk=125"]
    assert subprocess.run([*check, "clk=126"]).returncode == 0
    for slow in ([], ["clk=127"]):
        process = subprocess.run([*check, *slow], capture_output=True, text=True)
        assert process.returncode == 1 and "a clock is too slow" in process.stderr

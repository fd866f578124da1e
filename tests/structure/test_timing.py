"""Rows of docs/timing.md: which of them are not of the present sources, and what a new measurement changes."""

import importlib.util
import re
import shutil
import sys

import pytest
from support import sources
from support.paths import RTL, TOP
from support.place import CORES, netlist


@pytest.fixture
def timing(tmp_path, monkeypatch):
    """bench/timing.py with rtl/ and docs/timing.md in a folder of the test, where every row is current."""
    spec = importlib.util.spec_from_file_location("timing", TOP / "bench/timing.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "timing", module)
    spec.loader.exec_module(module)
    shutil.copytree(RTL, tmp_path / "rtl")
    for name, value in {"TOP": tmp_path, "RTL": tmp_path / "rtl"}.items():
        monkeypatch.setattr(sources, name, value)
    # Constraints of boards are relative to it.
    monkeypatch.setattr("support.bitstream.TOP", tmp_path)
    monkeypatch.setattr("support.bitstream.BOARDS", tmp_path / "rtl/boards")
    monkeypatch.setattr(module, "DOCUMENT", tmp_path / "timing.md")
    rows = {subject.name: f"{subject.begin} 100 | 1234567 | {subject.digest()} |\n" for subject in module.SUBJECTS}
    module.DOCUMENT.write_text(module.written((TOP / "docs/timing.md").read_text(), rows))
    return module


def check(timing, capsys, monkeypatch, *words):
    """(exit status, names) of --check."""
    monkeypatch.setattr(sys, "argv", ["timing.py", "--check", *words])
    status = timing.main()
    return status, capsys.readouterr().out.split()


def change(file, old, new):
    text = (sources.TOP / file).read_text()
    assert old in text
    (sources.TOP / file).write_text(text.replace(old, new, 1))


def test_rows_of_the_present_sources_are_current(timing, capsys, monkeypatch):
    assert check(timing, capsys, monkeypatch) == (0, [])


def test_check_names_the_cores_that_use_a_changed_file(timing, capsys, monkeypatch):
    change("rtl/mac/gmii_mac_rx.sv", "begin", "begin : g_changed")
    status, names = check(timing, capsys, monkeypatch)
    using = [core.name for core in CORES if "rtl/mac/gmii_mac_rx.sv" in core.sources()]
    assert status == 1 and "gmii_mac" in using and "xgmii_mac" not in names and "tang_primer_20k/udp" in names
    assert [name for name in names if "/" not in name] == using
    assert check(timing, capsys, monkeypatch, "--core", "xgmii_mac") == (0, [])


def test_comments_and_spaces_change_no_row(timing, capsys, monkeypatch):
    change("rtl/mac/gmii_mac.sv", "`default_nettype none", "// A comment.\n`default_nettype none")
    change("rtl/mac/gmii_mac.sv", "rx_ce,", "rx_ce,  // another")
    change("rtl/mac/gmii_mac_rx.sv", "[7:0]", "[ 7 : 0]")
    assert check(timing, capsys, monkeypatch) == (0, [])


def test_check_names_a_row_with_other_settings_or_none(timing, capsys, monkeypatch):
    core = next(core for core in CORES if core.name == "fade10g_64")
    monkeypatch.setitem(core.parameters, "PACKETS", 64)
    change("rtl/boards/ulx3s/ulx3s.lpf", "LOCATE", "# moved\nLOCATE")
    text = timing.DOCUMENT.read_text()
    timing.DOCUMENT.write_text(re.sub(r"^\| mii \|.*\n", "", text, flags=re.M))
    status, names = check(timing, capsys, monkeypatch)
    assert status == 1 and names == ["mii", "fade10g_64", *(f"ulx3s/{design}" for design in ("fade10g", "fade1", "tcp", "udp"))]


def test_a_measured_row_replaces_its_own_alone(timing):
    text = timing.DOCUMENT.read_text()
    assert timing.written(text, {}) == text
    new = timing.written(text, {"rmii": "| rmii | new |\n"})
    assert [line for line in new.splitlines() if line not in text.splitlines()] == ["| rmii | new |"]
    assert [line.split(" | ")[0] for line in text.splitlines() if line not in new.splitlines()] == ["| rmii"]


def test_a_measurement_records_its_commit_and_sources(timing):
    subject = timing.Subject("rmii", ("rmii",), lambda seeds: ([("clk", f"{seeds} seeds")], True), lambda: "01234567")
    text, good = timing.measure(subject, 2)
    assert good and re.fullmatch(r"\| rmii \| clk \| 2 seeds \| [0-9a-f]{8,}\+? \| 01234567 \|\n", text)
    assert subject.is_current(text) and not subject.is_current(text.replace("01234567", "01234568"))


def test_yosys_reads_the_files_of_the_core_alone(monkeypatch):
    read = []
    monkeypatch.setattr("support.place.run_yosys", lambda *_, sources: read.extend(sources))
    netlist(next(core for core in CORES if core.name == "gmii_mac"), TOP / "build/none")
    assert read == [line for line in (RTL / "mac/gmii_mac.f").read_text().splitlines() if not line.startswith("//")]

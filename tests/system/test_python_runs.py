"""Runs read by the Python package: words and events as numpy, Arrow, Polars and awkward; the notebook; types and docs."""

import inspect
import os
import re
import shutil
import subprocess
import sys

import awkward as ak
import fadelink
import nbformat
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
import tomllib
from support.lab import Lab, fade
from support.netns import BOARD, FEBS, add_address, sh
from support.paths import FADELINK, SIM, TOP

PACKAGE = TOP / "host/python"
NOTEBOOK = PACKAGE / "examples/histogram.ipynb"


def address(array):
    return array.__array_interface__["data"][0]


def test_runs_of_every_kind(bench):
    """Every word and every hit, the same by all ways; of plain files none is a copy."""
    lab = Lab(bench)
    add_address(bench)
    bench.sim("--boards", 2, "--link", "loss=0.01")
    bench.sim("--feb", FEBS[2], "--protocol", "tcp", "--streams", 2, "--words", 100000)
    bench.sim("--feb", FEBS[3], "--protocol", "fadc", "--small", "--phy", "gmii", "--ip", "10.9.0.4", "--port", 10002, "--windows", 2000)
    lab.write(
        'title = "first light"\nend = "told"\nstop = { duration = 5 }\n'
        + fade("one", 0, 'sinks = ["file:one.dat"]') + fade("many", 1, 'sinks = ["hdf5:many.h5", "file:{board}.dat,roll=1000000"]')
        + f'[[tcp]]\nname = "sender"\naddress = "{BOARD}"\nport = 10000\nstreams = 2\nsinks = ["hdf5:{{board}}-{{stream}}.h5"]\n'
        '[[crates]]\nname = "events"\nport = 10002\nwindow_ns = 65536\nexpect = 1\n'
        'sinks = ["parquet:{board}.parquet,every=1", "hdf5:{board}.h5", "file:{board}.dat"]\n'
    )  # fmt: skip
    status, manifest, err = lab.run()
    assert status == 0, err
    (run,) = fadelink.runs(lab.runs)
    assert (run.number, run.title, run.state, run.folder) == (1, "first light", "complete", lab.folder())
    assert run.begin < run.end and run.experiment["title"] == "first light" and run.log and run.manifest == manifest
    assert set(run.boards) == {"one", "many", *(name for name in run if name.startswith("sender/"))} and len(run.boards) == 4
    assert list(run.crates) == ["events"] and set(run) == {*run.boards, *run.crates} and "complete" in repr(run)

    for name, board in run.boards.items():
        words = board.numpy()
        assert words.dtype == np.uint64 and (words == np.arange(words.size, dtype="u8")).all(), name
        assert words.size * 8 == board.report["bytes"] - 8 * (board.report.get("filler_words") or 0) and board.complete
        assert board.verified is (True if "sender" not in name else None) and board.gaps == [] and name in repr(board)
        times, amounts = board.timeline
        assert amounts[-1] == board.report["bytes"] and (np.diff(amounts) >= 0).all() and times.dtype == "M8[ns]"
        assert (board.numpy("<u2")[::4] == words & 0xFFFF).all()
        assert board.arrow().to_pylist()[-1] == words.size - 1 and board.arrow("<u2").type == pa.uint16()
        series = board.polars()
        assert series.name == name and series.dtype == pl.UInt64 and series.sum() == words.sum()
        assert ak.sum(board.awkward()) == words.sum()
    one, many = run["one"], run["many"]
    # Views: what is mapped has no other address.
    (chunk,) = one.chunks()
    whole = one.numpy()
    assert not whole.flags.owndata and not whole.flags.writeable and isinstance(whole.base, np.memmap)
    arrow = one.arrow()
    assert arrow.num_chunks == 1 and arrow.chunk(0).buffers()[1].address != 0 and not chunk.flags.writeable
    events = one.awkward(starts=[0, 100, 100, 5000])
    assert ak.num(events).to_list() == [100, 0, 4900, whole.size - 5000] and events[2][0] == 100
    flat = np.asarray(ak.flatten(fadelink.jagged(whole, [0, 10])))
    assert address(flat) == address(whole), "no copy"
    for wrong in ([5, 3], [-1]):
        with pytest.raises(ValueError, match="starts: expected places from 0"):
            fadelink.jagged(whole, wrong)
    assert len(many.files) > 1 and [path.name for path in many.files[:2]] == ["many.dat", "many.000001.dat"]
    assert many.arrow().num_chunks == many.polars().n_chunks() == len(list(many.chunks())) > 1

    crates = run["events"]
    hits, windows = crates.arrow(), crates.arrow("windows")
    assert windows.num_rows == crates.report["events"] > 10 and hits.num_rows == sum(windows["hits"].to_pylist()) > 0 and crates.complete
    for table, expected in (("hits", hits), ("windows", windows)):
        assert crates.polars(table).equals(pl.from_arrow(expected))
        assert all((column == expected[name].to_numpy()).all() for name, column in crates.numpy(table).items())
    joined = crates.awkward()
    assert ak.num(joined.hits).to_list() == windows["hits"].to_pylist()
    assert ak.flatten(joined.hits.charge).to_list() == hits["charge"].to_pylist()
    messages = list(crates.messages())
    assert sorted({message.window for message in messages}) == windows["window"].to_pylist()
    assert messages[0].source == hits["source"][0].as_py() and messages[0].words.dtype == np.uint32
    # The same from HDF5 alone.
    for path in crates._folder.glob("events*.parquet"):
        path.unlink()
    report = {**crates.report, "sinks": crates.report["sinks"][1:]}
    again = fadelink.Crates(run.folder, report)
    for table, expected in (("hits", hits), ("windows", windows)):
        found = again.arrow(table)
        assert set(found.column_names) == set(expected.column_names)
        assert all(found[name].equals(expected[name]) for name in found.column_names)

    with pytest.raises(KeyError, match="nobody: expected one of"):
        run["nobody"]
    with pytest.raises(ValueError, match="table 'hit': expected hits or windows"):
        crates.arrow("hit")
    with pytest.raises(FileNotFoundError):
        fadelink.Run(lab.runs)
    nothing = fadelink.Board(run.folder, {**one.report, "sinks": [{"sink": "file:one.dat", "dropped": 8}]})
    with pytest.raises(FileNotFoundError, match="board one: expected a sink file: or hdf5:"):
        nothing.numpy()


def test_what_is_in_the_place_of_a_file(tmp_path):
    """A pipe is refused, and does not wait for who writes; a manifest that was closed early is read."""
    folder = tmp_path / "run_000001"
    folder.mkdir()
    board = {"name": "a", "sinks": [{"sink": "file:a.dat"}]}
    crates = {"name": "c", "sources": {}, "sinks": [{"sink": "file:c.dat"}]}
    read = {
        "a.dat": lambda: fadelink.Board(folder, board).numpy(),
        "a.dat.json": lambda: fadelink.Board(folder, board).numpy(),
        "c.dat": lambda: list(fadelink.Crates(folder, crates).messages()),
    }
    for name, call in read.items():
        (folder / "a.dat").write_bytes(bytes(8))
        (folder / "a.dat.json").write_text('{"word_bits": 64}')
        (folder / name).unlink(missing_ok=True)
        os.mkfifo(folder / name)
        # Else a pipe that has no bytes would be read as an empty file.
        with pytest.raises(ValueError, match="not a regular file"):
            call()
        (folder / name).unlink()
    (folder / "a.dat.json").write_text('{"word_bits": 64}')
    (folder / "a.dat").write_bytes(bytes(8))
    early = fadelink.Board(folder, board)
    assert early.numpy().tolist() == [0] and "? bytes, NOT COMPLETE" in repr(early)
    assert "? events, NOT COMPLETE" in repr(fadelink.Crates(folder, crates))
    with pytest.raises(ValueError, match="the words end at byte 8, expected 16"):
        fadelink.Board(folder, board | {"bytes": 16}).numpy()


def test_the_notebook(bench):
    """From the simulated board to the histogram in ten lines."""
    notebook = nbformat.read(NOTEBOOK, 4)
    nbformat.validate(notebook)
    lines = [line for line in notebook.cells[1].source.splitlines() if line]
    assert len(lines) == 10
    sh("ip", "-n", bench.pc_ns, "link", "set", "lo", "up")
    shutil.copy(NOTEBOOK.parent / "crate.toml", bench.tmp)
    environment = {
        **os.environ,
        "PATH": f"{FADELINK.parent}:{SIM.parent}:{os.environ['PATH']}",
        "IPYTHONDIR": str(bench.tmp / "ipython"),
        "JUPYTER_RUNTIME_DIR": str(bench.tmp / "jupyter"),
    }
    code = f"""
import nbformat, sys
from nbclient import NotebookClient
notebook = nbformat.read({str(NOTEBOOK)!r}, 4)
NotebookClient(notebook, timeout=300, kernel_name="python3", resources={{"metadata": {{"path": {str(bench.tmp)!r}}}}}).execute()
nbformat.write(notebook, {str(bench.tmp / "done.ipynb")!r})
"""
    status, _, err = bench.start(bench.pc_ns, sys.executable, "-c", code, env=environment).finish()
    assert status == 0, err
    done = nbformat.read(bench.tmp / "done.ipynb", 4)
    kinds = {kind for cell in done.cells[1:] for output in cell.get("outputs", []) for kind in output.get("data", {})}
    assert "image/png" in kinds and "text/html" in kinds, kinds
    charges = done.cells[-1].outputs[0].data["text/plain"]
    assert any(character.isdigit() for character in charges), charges


def packages_of(extra):
    """The names of all packages that an extra brings."""
    extras = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    names = set()
    for requirement in extras[extra]:
        own = re.fullmatch(r"fadelink\[(.*)\]", requirement)
        names |= set().union(*map(packages_of, own[1].split(","))) if own else {re.match(r"[\w-]+", requirement)[0]}
    return names


def test_the_notebook_says_what_it_needs():
    """Modules come with the extra that it names; programs are named."""
    first, *cells = nbformat.read(NOTEBOOK, 4).cells
    code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    brought = packages_of(re.search(r"pip install './host/python\[(\w+)\]'", first.source)[1])
    modules = set(re.findall(r"^import (\w+)", code, re.M)) | {way for way in ("polars", "awkward") if f".{way}(" in code}
    assert "matplotlib" in modules and modules <= brought | {"fadelink", *sys.stdlib_module_names}
    programs = {words.split()[0] for words in re.findall(r'"([^"]*)"\.split\(\)|simulator = "([^"]*)"', code) for words in words if words}
    assert "ip" in programs and all(f"`{program}`" in first.source for program in programs), programs
    assert "as root" in first.source


def test_types_and_docs():
    """Each public name has types, which a checker accepts, and a doc."""
    found = subprocess.run([sys.executable, "-m", "mypy", "--config-file", PACKAGE / "pyproject.toml", "--cache-dir", os.devnull,
                            PACKAGE / "fadelink"], capture_output=True, text=True)  # fmt: skip
    assert found.returncode == 0, found.stdout
    missing = []
    for name in fadelink.__all__:
        thing = getattr(fadelink, name)
        members = [(f"{name}.{key}", value) for key, value in vars(thing).items() if not key.startswith("_")] if inspect.isclass(thing) else []
        for label, value in [(name, thing), *members]:
            value = getattr(value, "fget", None) or value
            if callable(value) and not inspect.getdoc(value):
                missing.append(label)
    assert missing == []
    assert (PACKAGE / "fadelink/py.typed").exists()
